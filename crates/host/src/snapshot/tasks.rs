//! Reading the other programs that run in real time or change settings.

use super::read::field;
use crate::HostFs;
use punctual_model::{CpuSet, CrowdedCpu, RealtimeTask, SpinningTask, Tasks};
use std::collections::BTreeMap;
use std::time::Duration;

/// Programs that change frequencies, affinities or policies by themselves, by the kernel's names of at most 15 bytes.
const DAEMONS: [&str; 9] = [
    "auto-cpufreq", "irqbalance", "ksmtuned", "numad", "power-profiles-", "rtkit-daemon", "stalld", "thermald", "tuned",
];

/// Maximum number of threads read: one takes about 10 us, so all take no more than a tenth of a second.
const MOST: u32 = 10_000;

/// Looks at a thread that may keep a CPU busy, with the percentage above which it does: most others show in the first.
/// The second is as long as the period of real-time throttling and of the fair server, which leave it 95 %: this is
/// 90 % of that.
const LOOKS: [(Duration, u64); 2] = [(Duration::from_millis(60), 15), (Duration::from_secs(1), 85)];

/// `PF_KTHREAD` (include/linux/sched.h).
const KERNEL_THREAD: u64 = 0x0020_0000;

/// Fields of `/proc/PID/stat` of a thread (proc_pid_stat(5)).
#[derive(Debug, PartialEq, Eq)]
struct Stat {
    name: String,
    is_running: bool,
    parent: u32,
    is_kernel: bool,
    threads: u32,
    /// The policy if it is a real-time one, and its priority.
    realtime: Option<(&'static str, Option<u32>)>,
}

/// Reads each process, and each thread of multithreaded ones, except those of this program.
pub(super) fn read(fs: &HostFs) -> Tasks {
    let own: Option<u32> = fs.text("proc/self/stat").and_then(|stat| stat.split(' ').next()?.parse().ok());
    let is_ours = fs.is_running() && own == Some(std::process::id());
    let processes = fs.numbered("proc", "");
    let mut found = TaskScan::default();
    for pid in &processes {
        let Some(process) = found.look_at(fs, &format!("proc/{pid}/stat")) else { continue };
        if DAEMONS.contains(&process.name.as_str()) && !found.daemons.contains(&process.name) {
            found.daemons.push(process.name.clone());
        }
        // A measurement may have processes of its own.
        if own.is_some_and(|own| own == *pid || own == process.parent) {
            continue;
        }
        found.note(fs, *pid, &process);
        if process.threads > 1 {
            let dir = format!("proc/{pid}/task");
            for tid in fs.numbered(&dir, "").into_iter().filter(|tid| tid != pid) {
                if is_ours && is_normal(tid) {
                    found.looked_at = found.looked_at.saturating_add(1);
                } else if let Some(thread) = found.look_at(fs, &format!("{dir}/{tid}/stat")) {
                    found.note(fs, tid, &thread);
                }
            }
        }
    }
    found.daemons.sort();
    Tasks {
        looked_at: (!processes.is_empty()).then_some(found.looked_at.min(MOST)),
        is_complete: !processes.is_empty() && found.looked_at <= MOST,
        realtime: together(found.realtime),
        spinning: spinning(fs, found.running),
        crowded: crowded(found.bound),
        daemons: found.daemons,
    }
}

/// Whether a thread of this kernel and namespace has no real-time policy. Reading its file takes ten times as long.
fn is_normal(tid: u32) -> bool {
    punctual_sys::sched::policy(tid).is_ok_and(|policy| !policy.is_realtime())
}

#[derive(Debug, Default)]
struct TaskScan {
    looked_at: u32,
    realtime: Vec<RealtimeTask>,
    daemons: Vec<String>,
    /// Real-time threads that run and have no parent of their own.
    running: Vec<SpinningTask>,
    /// Names of real-time threads by the one CPU that they may use.
    bound: BTreeMap<u32, Vec<String>>,
}

impl TaskScan {
    fn look_at(&mut self, fs: &HostFs, path: &str) -> Option<Stat> {
        self.looked_at = self.looked_at.saturating_add(1);
        if self.looked_at > MOST {
            return None;
        }
        // A program's name need not be UTF-8.
        let bytes = fs.bytes(path).ok()?;
        parse(&String::from_utf8_lossy(&bytes))
    }

    fn note(&mut self, fs: &HostFs, tid: u32, Stat { name, is_kernel, realtime, parent, is_running, .. }: &Stat) {
        if let Some((policy, priority)) = *realtime {
            let (name, policy) = (name.clone(), policy.to_owned());
            if !*is_kernel {
                let status = fs.text(format!("proc/{tid}/status")).unwrap_or_default();
                let cpus = field(&status, "Cpus_allowed_list").and_then(|list| list.parse::<CpuSet>().ok());
                if let Some(cpu) = cpus.filter(|cpus| cpus.len() == 1).and_then(|cpus| cpus.iter().next()) {
                    self.bound.entry(cpu).or_default().push(name.clone());
                }
                let manager = || fs.text(format!("proc/{parent}/comm")).is_some_and(|name| name == "systemd");
                if *is_running && (*parent == 1 || manager()) {
                    let (name, policy) = (name.clone(), policy.clone());
                    self.running.push(SpinningTask { tid, name, policy, priority, used_percent: 0 });
                }
            }
            self.realtime.push(RealtimeTask { name, policy, priority, is_kernel: *is_kernel, count: 1 });
        }
    }
}

/// Those of these threads that keep a CPU busy. It takes no time where there is none.
fn spinning(fs: &HostFs, mut tasks: Vec<SpinningTask>) -> Vec<SpinningTask> {
    // Recorded machines stand still.
    tasks.retain(|_| fs.is_running());
    for (time, percent) in LOOKS {
        if tasks.is_empty() {
            break;
        }
        let used = |task: &SpinningTask| crate::times_of_thread(task.tid).map(|(ran_ns, _)| ran_ns);
        let before: Vec<(SpinningTask, Option<u64>)> =
            tasks.drain(..).map(|task| (task.clone(), used(&task))).collect();
        let began = punctual_sys::clock::monotonic();
        std::thread::sleep(time);
        for (mut task, before) in before {
            let took_ns = punctual_sys::clock::monotonic().0.saturating_sub(began.0).max(1);
            let ran_ns = used(&task).zip(before).map_or(0, |(now, before)| now.saturating_sub(before));
            let share = ran_ns.saturating_mul(100) / took_ns;
            task.used_percent = u32::try_from(share.min(100)).unwrap_or(100);
            if share > percent {
                tasks.push(task);
            }
        }
    }
    tasks
}

fn crowded(bound: BTreeMap<u32, Vec<String>>) -> Vec<CrowdedCpu> {
    let crowded = bound.into_iter().filter(|(_, threads)| threads.len() > 1);
    crowded.map(|(cpu, threads)| CrowdedCpu { cpu, threads }).collect()
}

fn parse(stat: &str) -> Option<Stat> {
    // The name may itself contain blanks and parentheses.
    let (head, rest) = stat.rsplit_once(')')?;
    let (_, name) = head.split_once('(')?;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    // proc_pid_stat(5) counts from 1; the third field is the first here.
    let number = |field: usize| fields.get(field - 3)?.parse::<u64>().ok();
    let priority = u32::try_from(number(40)?).ok();
    let realtime = match number(41)? {
        1 => Some(("fifo", priority)),
        2 => Some(("rr", priority)),
        6 => Some(("deadline", None)),
        _ => None,
    };
    Some(Stat {
        name: name.to_owned(),
        is_running: fields.first() == Some(&"R"),
        parent: u32::try_from(number(4)?).ok()?,
        is_kernel: number(9)? & KERNEL_THREAD != 0,
        threads: u32::try_from(number(20)?).ok()?,
        realtime,
    })
}

/// Groups threads of the same name, policy and priority. Of kernel threads the name is the part before the `/`, because
/// there is one for each CPU or interrupt.
fn together(tasks: Vec<RealtimeTask>) -> Vec<RealtimeTask> {
    let mut groups: BTreeMap<_, RealtimeTask> = BTreeMap::new();
    for task in tasks {
        let stem = task.name.split('/').next().unwrap_or_default();
        let stem = if task.is_kernel { stem.to_owned() } else { task.name.clone() };
        let key = (std::cmp::Reverse(task.priority), task.policy.clone(), task.is_kernel, stem.clone());
        groups
            .entry(key)
            .and_modify(|group| {
                group.count = group.count.saturating_add(1);
                if group.name.contains('/') {
                    group.name = format!("{stem}/*");
                }
            })
            .or_insert(task);
    }
    groups.into_values().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(name: &str, flags: u64, threads: u32, priority: u32, policy: u32) -> String {
        let zeros = "0 ".repeat(19);
        format!("7 ({name}) S 2 0 0 0 -1 {flags} 0 0 0 0 0 0 0 0 20 0 {threads} {zeros}{priority} {policy} 0 0 0")
    }

    #[test]
    fn a_thread_is_read_whatever_its_name() {
        for name in ["migration/0", "a b", ") R 1 (", "Xorg\u{fffd}"] {
            let stat = parse(&line(name, KERNEL_THREAD, 3, 99, 1)).unwrap();
            assert_eq!((stat.name.as_str(), stat.parent, stat.threads), (name, 2, 3));
            assert_eq!((stat.is_kernel, stat.realtime), (true, Some(("fifo", Some(99)))));
        }
        assert_eq!(parse(&line("x", 0, 1, 0, 6)).unwrap().realtime, Some(("deadline", None)));
        assert_eq!(parse(&line("x", 0, 1, 0, 0)).unwrap().realtime, None);
        for text in ["", "7", "7 (x) S", "7 (x)", ")(", "7 (x) S a b c d e f g h"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    #[test]
    fn alike_threads_are_together() {
        let task = |name: &str, priority, is_kernel| RealtimeTask {
            name: name.to_owned(),
            policy: "fifo".to_owned(),
            priority: Some(priority),
            is_kernel,
            count: 1,
        };
        let tasks = [
            ("irq/9-acpi", 50, true),
            ("migration/0", 99, true),
            ("migration/1", 99, true),
            ("a/b", 50, false),
            ("a/c", 50, false),
        ];
        let tasks = tasks.map(|(name, priority, is_kernel)| task(name, priority, is_kernel)).to_vec();
        let names: Vec<_> = together(tasks).into_iter().map(|task| (task.name, task.count)).collect();
        let expected = [("migration/*", 2), ("a/b", 1), ("a/c", 1), ("irq/9-acpi", 1)];
        assert_eq!(names, expected.map(|(name, count)| (name.to_owned(), count)));
    }
}
