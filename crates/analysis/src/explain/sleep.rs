//! Sleeps within an activation, and what they were for.
//!
//! The system call, the functions of the kernel in which the thread slept, and what ended the sleep tell it.

use super::event::{Context, Event, What, softirq_name};
use super::judge::{Reading, Scene};
use super::locate::first_after;
use super::{stack, timeline};
use crate::watch::{Block, Call, CallKind, priority_text};
use punctual_model::Cause;

/// What a sleep within an activation was for.
pub(super) struct Sleep {
    pub(super) reading: Reading,
    /// The thread that it waited for; `None`: itself.
    pub(super) owner: Option<i32>,
}

impl Sleep {
    fn own(reading: Reading) -> Sleep {
        Sleep { reading, owner: None }
    }
}

/// What an uninterruptible sleep waits for, by the functions of the kernel in which it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum KernelWait {
    /// Another program that handles page faults (userfaultfd(2)).
    UserFault,
    /// The thawing of its control group, or of all processes.
    Frozen,
    GracePeriod,
    /// The program or the machine that serves a file system.
    Server,
    Reclaim,
    Lock,
    Device,
    Timer,
    Work,
}

/// Beginnings of functions in which a thread sleeps.
const WAITS: [(KernelWait, &[&str]); 9] = [
    (KernelWait::UserFault, &["handle_userfault"]),
    (KernelWait::Frozen, &["do_freezer_trap", "__refrigerator"]),
    (
        KernelWait::GracePeriod,
        &["__wait_rcu_gp", "synchronize_rcu", "synchronize_srcu", "__synchronize_srcu", "rcu_barrier"],
    ),
    (KernelWait::Server, &["request_wait_answer", "rpc_wait", "p9_client_rpc"]),
    (KernelWait::Reclaim, &["reclaim_throttle", "mem_cgroup_handle_over_high", "shrink_", "try_to_free"]),
    (
        KernelWait::Lock,
        &[
            "rwsem_", "down_", "__down", "mutex_", "__mutex", "__ww_mutex", "rt_mutex", "__rt_mutex", "rt_spin_lock",
            "rt_read_lock", "rt_write_lock", "rwbase_", "percpu_down", "percpu_rwsem",
        ],
    ),
    (
        KernelWait::Device,
        &[
            "io_schedule",
            "bit_wait_io",
            "balance_dirty_pages",
            "wait_for_completion_io",
            "blk_",
            "rq_qos_wait",
            "jbd2_",
            "submit_bio_wait",
            "__wait_on_buffer",
            "folio_wait",
            "xlog_",
        ],
    ),
    (KernelWait::Timer, &["msleep", "usleep_range"]),
    (KernelWait::Work, &["__flush_work", "flush_work", "__flush_workqueue"]),
];

impl KernelWait {
    fn of(function: &str) -> Option<KernelWait> {
        let is_of = |begins: &&[&str]| begins.iter().any(|begin| function.starts_with(begin));
        WAITS.iter().find(|(_, begins)| is_of(begins)).map(|(wait, _)| *wait)
    }
}

/// Parts of the names of functions that take the lock of the memory of a process, or of a file.
const OF_MEMORY: [&str; 8] = ["mmap", "munmap", "brk", "fault", "madvise", "mprotect", "mremap", "vma"];
const OF_FILES: [&str; 12] = [
    "write_iter", "read_iter", "file_write", "fallocate", "setattr", "truncate", "lookup", "open", "unlink", "rename",
    "iterate_dir", "fsync",
];

/// Name of the kernel lock that a thread waits for in these functions, innermost first.
fn lock_name(functions: &[String]) -> String {
    let is_of_lock = |name: &&String| KernelWait::of(name) == Some(KernelWait::Lock);
    let outside = functions.iter().skip_while(|name| !is_of_lock(name)).skip_while(is_of_lock);
    let Some(caller) = outside.into_iter().find(|name| name.as_str() != "?") else {
        return "unknown".to_owned();
    };
    let has = |parts: &[&str]| parts.iter().any(|part| caller.contains(part));
    match () {
        () if has(&OF_MEMORY) => format!("that of the memory map, in {caller}"),
        () if has(&OF_FILES) => format!("that of the file, in {caller}"),
        () => format!("in {caller}"),
    }
}

/// What ended a sleep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EndedBy {
    /// A thread of the kernel that works for others.
    Worker,
    Thread(i32),
    /// The interrupt of a device, or its softirq.
    Device,
    Timer,
    GracePeriod,
    Unknown,
}

/// Beginnings of the names of threads of the kernel that end the work of devices.
const WORKERS: [&str; 7] = ["kworker/", "ksoftirqd/", "irq/", "jbd2/", "kswapd", "xfsaild/", "btrfs-"];

/// The same of those that end grace periods of RCU, and of those that hold no lock for others.
const GRACE_PERIODS: [&str; 1] = ["rcu"];
const OTHERS_OF_KERNEL: [&str; 3] = ["migration/", "cpuhp/", "kthreadd"];

impl Scene<'_> {
    /// The sleep of the activation, or of one before it, that is under way at `at_ns`.
    fn block_at(&self, at_ns: u64) -> Option<Block> {
        let blocks = self.within(at_ns)?.activation.blocks.iter();
        blocks.copied().find(|block| (block.from_ns..=block.to_ns).contains(&at_ns))
    }

    /// What the thread slept for between two instants of an activation.
    pub(super) fn slept(&self, from_ns: u64, to_ns: u64) -> Sleep {
        let cannot_tell = |place: &str| Sleep::own(Reading::cannot_tell(place));
        let Some(block) = self.block_at(from_ns + (to_ns - from_ns) / 2) else {
            return cannot_tell("the events of its sleep are missing");
        };
        let until = self.until(block);
        if block.call.is_some_and(Call::is_unknown) {
            return cannot_tell(&format!("the trace has no system calls{until}"));
        }
        if block.is_uninterruptible || block.is_fault {
            return self.in_kernel(block);
        }
        let Some(call) = block.call else {
            // Signals end such a sleep, and no program can begin one itself.
            return match block.waker {
                Some(_) => {
                    Sleep::own(Reading::inferred(Cause::Stopped, format!("its control group was frozen{until}")))
                }
                None => cannot_tell("it slept outside of system calls, without a page fault"),
            };
        };
        let plain = |cause| Sleep::own(Reading::direct(cause).at(Some(format!("{}{until}", self.described(call)))));
        match (call.kind(), block.waker) {
            (CallKind::PiLock | CallKind::Futex, None) => plain(Cause::SystemCall),
            (CallKind::PiLock, Some(waker)) => self.lock(block, waker, true),
            (CallKind::Futex, _) if call.text() != "futex" || self.is_no_lock(block) => plain(Cause::SystemCall),
            (CallKind::Futex, Some(waker)) => self.lock(block, waker, false),
            (CallKind::Memory, _) => plain(Cause::MemoryAllocation),
            (CallKind::Storage, _) => plain(Cause::Disk),
            (CallKind::Affinity, _) => plain(Cause::Migration),
            (CallKind::Sleep, _) => {
                let place = format!("it sleeps itself: {}", call.text());
                Sleep::own(Reading::direct(Cause::SystemCall).at(Some(place)))
            }
            (CallKind::Other, _) => plain(Cause::SystemCall),
        }
    }

    /// What ended a sleep, as a clause.
    fn until(&self, block: Block) -> String {
        match block.waker {
            Some(waker) => format!(", until {} woke it", self.named(waker)),
            None => ", until an interrupt or a timer woke it".to_owned(),
        }
    }

    /// A sleep that signals do not end: by the functions in which the thread slept, or else by what ended it. No such
    /// sleep is one for a disk unless a device, or a thread of the kernel that works for devices, ended it.
    fn in_kernel(&self, block: Block) -> Sleep {
        let functions = self.asleep_in(block);
        let wait = functions.iter().find_map(|name| KernelWait::of(name));
        let ended_by = self.ended_by(block);
        let until = self.until(block);
        let what = block.call.map_or_else(|| "page fault".to_owned(), |call| self.described(call));
        // Functions that no list knows: at least none of them takes a lock.
        let inner = functions.iter().find(|name| !stack::is_scheduler(name)).filter(|_| wait.is_none());
        let said = |cause, place| Sleep::own(Reading::direct(cause).at(Some(place)));
        let guessed = |cause, place: String| Sleep::own(Reading::inferred(cause, place));
        let calls = block.call.map(Call::kind);
        if block.call.is_none() && !block.is_fault && wait.is_none() {
            return Sleep::own(Reading::cannot_tell("it slept outside of system calls, without a page fault"));
        }
        let from_device = |is_certain: bool| {
            let (cause, place) = match (block.is_fault, calls) {
                (true, _) => (Cause::PageFault, "the page came from a file or from swap".to_owned()),
                (false, Some(CallKind::Memory)) => (Cause::MemoryAllocation, format!("{what}{until}")),
                (false, _) => (Cause::Disk, format!("{what}{until}")),
            };
            if is_certain { said(cause, place) } else { guessed(cause, place) }
        };
        let locked = |holder: i32, name: &str, is_certain: bool| {
            let place = format!("{what}: {name}, held by {}", self.with_priority(holder));
            let sleep = if is_certain { said(Cause::KernelLock, place) } else { guessed(Cause::KernelLock, place) };
            Sleep { owner: Some(holder), ..sleep }
        };
        match (wait, ended_by) {
            (Some(KernelWait::UserFault), _) => said(Cause::PageFault, format!("userfaultfd{until}")),
            (Some(KernelWait::Frozen), _) => said(Cause::Stopped, format!("its control group was frozen{until}")),
            (Some(KernelWait::GracePeriod), _) => said(Cause::SystemCall, format!("{what}: a grace period of RCU")),
            (Some(KernelWait::Server), _) => {
                said(Cause::SystemCall, format!("{what}: the server of a file system{until}"))
            }
            (Some(KernelWait::Reclaim), _) => {
                said(Cause::MemoryAllocation, format!("{what}: the kernel reclaims memory{until}"))
            }
            (Some(KernelWait::Timer), _) => said(Cause::SystemCall, format!("{what}: the kernel sleeps in it")),
            (Some(KernelWait::Work), _) => said(Cause::SystemCall, format!("{what}: work of the kernel{until}")),
            (Some(KernelWait::Lock), EndedBy::Thread(holder)) => locked(holder, &lock_name(&functions), true),
            (Some(KernelWait::Lock), _) => said(Cause::KernelLock, format!("{what}: {}{until}", lock_name(&functions))),
            (Some(KernelWait::Device), EndedBy::Thread(_)) => from_device(false),
            (Some(KernelWait::Device), _) => from_device(true),
            (None, _) if calls == Some(CallKind::Affinity) => said(Cause::Migration, format!("{what}{until}")),
            (None, EndedBy::Device) => from_device(true),
            (None, EndedBy::Worker | EndedBy::Thread(_)) if let Some(inner) = inner => {
                said(Cause::SystemCall, format!("{what}: in {inner}{until}"))
            }
            (None, EndedBy::Worker) => from_device(calls == Some(CallKind::Storage)),
            (None, EndedBy::Thread(waker)) if block.is_fault && !block.is_uninterruptible => {
                guessed(Cause::PageFault, format!("userfaultfd, answered by {}", self.named(waker)))
            }
            (None, EndedBy::Thread(holder)) => locked(holder, "unknown which", false),
            (None, EndedBy::Timer) if calls != Some(CallKind::Storage) => {
                said(Cause::SystemCall, format!("{what}: a timer ended it"))
            }
            (None, EndedBy::GracePeriod) => said(Cause::SystemCall, format!("{what}: a grace period of RCU")),
            (None, EndedBy::Timer | EndedBy::Unknown) if calls == Some(CallKind::Storage) => from_device(true),
            (None, EndedBy::Timer | EndedBy::Unknown) => {
                Sleep::own(Reading::cannot_tell(format!("{what}: nothing shows what it waited for{until}")))
            }
        }
    }

    /// The functions of the kernel in which the thread slept, innermost first; empty where they are not recorded.
    fn asleep_in(&self, block: Block) -> Vec<String> {
        let is_stack = |event: &Event| event.pid == self.subject.pid && matches!(event.what, What::Stack(_));
        match first_after(self.trace, block.from_ns, block.to_ns, is_stack).map(|(_, event)| event.what) {
            Some(What::Stack(index)) => stack::names(self.trace, index, self.symbols).unwrap_or_default(),
            _ => Vec::new(),
        }
    }

    /// What ended a sleep.
    fn ended_by(&self, block: Block) -> EndedBy {
        if let Some(waker) = block.waker {
            let name = self.named(waker);
            let is_of = |begins: &[&str]| begins.iter().any(|begin| name.starts_with(begin));
            return match () {
                () if is_of(&WORKERS) => EndedBy::Worker,
                () if is_of(&GRACE_PERIODS) => EndedBy::GracePeriod,
                () if is_of(&OTHERS_OF_KERNEL) => EndedBy::Unknown,
                () => EndedBy::Thread(waker),
            };
        }
        let waking = self.waking_at(block.to_ns).and_then(|(cpu, _)| self.trace.cpu(cpu));
        let contexts = waking.map(|cpu| timeline::contexts_at(cpu, block.to_ns)).unwrap_or_default();
        let is_timer =
            |vector: u8| self.trace.vectors.get(usize::from(vector)).is_some_and(|name| name.contains("timer"));
        match contexts.last().map(|(context, _)| *context) {
            Some(Context::Interrupt(_)) => EndedBy::Device,
            Some(Context::Vector(vector)) if is_timer(vector) => EndedBy::Timer,
            Some(Context::Softirq(number)) => match softirq_name(number) {
                "BLOCK" => EndedBy::Device,
                "TIMER" | "HRTIMER" => EndedBy::Timer,
                "RCU" => EndedBy::GracePeriod,
                _ => EndedBy::Unknown,
            },
            _ => EndedBy::Unknown,
        }
    }

    /// Priority of a thread without what it inherits: the lowest with which a switch shows it.
    pub(super) fn priority(&self, pid: i32) -> Option<i32> {
        let shown = self.trace.cpus.iter().flat_map(|cpu| &cpu.events).filter_map(|event| match event.what {
            What::Switch { next, next_priority, .. } if next == pid => Some(next_priority),
            What::Switch { prev, prev_priority, .. } if prev == pid => Some(prev_priority),
            _ => None,
        });
        shown.max().or_else(|| self.inside?.priorities.get(&pid).copied())
    }

    fn named(&self, pid: i32) -> String {
        self.trace.owner_name(None, pid)
    }

    /// A thread with its priority as users write it: `logger (nice 10)`.
    pub(super) fn with_priority(&self, pid: i32) -> String {
        let name = self.named(pid);
        self.priority(pid).map_or(name.clone(), |priority| format!("{name} ({})", priority_text(priority)))
    }

    /// A system call with the file that it is about.
    pub(super) fn described(&self, call: Call) -> String {
        let text = call.text();
        let is_about_file = text.ends_with(')') && call.kind() == CallKind::Other;
        let file = self.inside.filter(|_| is_about_file).and_then(|inside| inside.files.get(&call.detail));
        file.map_or(text.clone(), |file| format!("{text} {file}"))
    }
}
