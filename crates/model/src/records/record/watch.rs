//! Results of watched threads: their activations in distributions and sums.

use crate::{CpuSet, Histogram, Order, PacketReleases, Period, Policy, RefusedCall, Span};
use serde::{Deserialize, Serialize};

/// Results of a cell that watches threads of other programs.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct WatchRecord {
    /// The program that the cell started, as words; empty when it watched running ones.
    pub command_line: Vec<String>,
    /// How the program ended, as text; `null` when it was still running at the end of the cell, or was not started
    /// here.
    pub status: Option<String>,
    /// The threads with activations, those of the highest priority and rate first.
    pub threads: Vec<WatchedThread>,
    /// Number of threads that were watched and never waited for a further activation.
    pub inactive: u64,
    /// Those of them that ran, were stopped or slept uninterruptibly at the end of the cell, with their state, as text:
    /// nothing is known of them. Only in records of versions without `others`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unseen: Vec<String>,
    /// Threads without activations that ran or did not sleep at the end, those that ran longest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub others: Vec<OtherThread>,
    /// Calls of all threads that asked for a policy, CPUs or locked memory and were refused, each kind once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<RefusedCall>,
    /// Number of threads beyond the most that are watched, or at least so many: nothing is known of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left_out: Option<u64>,
    /// The chain of threads, if requested.
    pub chain: Option<ChainRecord>,
    /// Number of gaps in the trace of the threads' activity: the kernel overwrote events before they were read.
    pub gaps: u64,
    /// Number of events read.
    pub events: u64,
    /// CPU time, us, of the thread that reads the events and explains; `null` when it cannot be read.
    pub watching_us: Option<u64>,
    /// Events that this kernel cannot trace, and what is unknown without them.
    pub missing: Vec<String>,
}

/// Activations of one thread.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct WatchedThread {
    /// Thread ID.
    pub tid: u32,
    /// Name of the thread.
    pub name: String,
    /// ID of its process; `null` when it ended before that was read.
    pub process: Option<u32>,
    /// Policy at the end of the cell, or the last one known; `null` when unknown.
    pub policy: Option<Policy>,
    /// CPUs that it may use; `null` when unknown.
    pub cpus: Option<CpuSet>,
    /// CPU on which most activations began.
    pub cpu: u32,
    /// The call in which it waits for its next activation, as text; empty if it never waited.
    pub wait: String,
    /// Its period; `null` when its activations are not periodic.
    pub period: Option<FoundPeriod>,
    /// Response time, ns, above which an activation is late; `null` when neither a deadline nor a period is known.
    #[serde(rename = "deadline_ns")]
    pub deadline: Option<Span>,
    /// Number of complete activations.
    pub activations: u64,
    /// Due times that passed while an activation before them was not over.
    pub skipped: u64,
    /// Activations whose response time exceeds the deadline.
    pub late: u64,
    /// Numbers of releases by what released the activation.
    pub releases: Releases,
    /// Names of the threads that released most activations, most frequent first, up to five.
    pub wakers: Vec<CountedName>,
    /// Those that packets released; `null`: no softirq released any, and in records of versions that did not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub packets: Option<PacketReleases>,
    /// From the release until the program runs.
    pub latency: Histogram,
    /// Difference of the interval between two starts from the period, without its sign; empty without a period.
    pub jitter: Histogram,
    /// Time on the CPU.
    pub run: Histogram,
    /// Time in which it was to run within an activation and did not: preempted, or woken and not yet running.
    pub preempted: Histogram,
    /// Time in which it slept within an activation.
    pub blocked: Histogram,
    /// From the release to the end of the activation.
    pub response: Histogram,
    /// Lower bound of the response time, where an activation may be several: the thread waits for a futex, and the
    /// kernel sees no release that finds it running. One of them took at least an equal share. `null` where none may be
    /// several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_at_least: Option<Histogram>,
    /// Upper bound of the response time, once for each activation that one may be: where a call returned at once, its
    /// data came at some time after the last call that slept, so it counts from the release of that one. `null` where
    /// every activation slept and none may be several, and in records of versions that did not count it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_at_most: Option<Histogram>,
    /// Interval between two releases.
    pub interval: Histogram,
    /// Threads that ran instead of it within an activation, most time first, up to five. Those of single switches only.
    pub preempted_by: Vec<NamedTime>,
    /// Where its time went; `null` in records of versions that did not count it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account: Option<TimeAccount>,
    /// Phases into which marks cut its activations, the median first pass of each in order; `null` where no marks were
    /// given, and in records of versions without them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phases: Option<Vec<PhaseRecord>>,
    /// Calls in which it slept within an activation, most time first, up to ten.
    pub blocked_in: Vec<NamedTime>,
    /// Changes of its priority and of the CPUs that it may use, oldest first, up to ten.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<SettingChange>,
    /// Policies that it asked for and was refused; only in records of versions without [`WatchRecord::refused`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<RefusedCall>,
    /// Page faults within activations.
    pub page_faults: u64,
    /// Locked memory of its process at the end, bytes (`VmLck`); `null` when it had ended, and in older records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_locked_bytes: Option<u64>,
    /// Time by which the kernel may delay the timer of its latest wait; `null` without one, and in older records.
    #[serde(default, rename = "timer_slack_ns", skip_serializing_if = "Option::is_none")]
    pub timer_slack: Option<Span>,
    /// Changes of the CPU within and between activations.
    pub migrations: u64,
    /// Whether its sleeps last a length of time instead of until an instant, so that its activations drift.
    pub is_relative: Option<bool>,
    /// Seconds after the start of the cell at which it ended or was stopped, as text; `null` while it runs.
    pub ended: Option<String>,
    /// What it had not finished at the end of the cell; `null`: nothing, and in records of versions that did not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open: Option<OpenActivation>,
}

/// A change of the priority of a watched thread, or of the CPUs that it may use.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct SettingChange {
    /// Time after the start of the cell at which it was seen, ns: that of the next activation, or of the next look
    /// once a second.
    #[serde(rename = "at_ns")]
    pub at: Span,
    /// The setting before, as text: `priority 50`, `nice 0`, `CPUs 0-1`.
    pub from: String,
    /// The setting since then.
    pub to: String,
}

impl SettingChange {
    /// Time after the start in which programs set up their threads.
    pub const BEGINNING: Span = Span::SECOND;
    /// Changes of one thread that are kept, at most.
    pub const MOST: usize = 10;
}

/// A watched thread that never waited twice in one call, so that it has no activations.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct OtherThread {
    /// Thread ID.
    pub tid: u32,
    /// Name of the thread.
    pub name: String,
    /// Policy at the end of the cell; `null` when unknown.
    pub policy: Option<Policy>,
    /// State at the end of the cell.
    pub state: ThreadState,
    /// Time on the CPU, ns.
    #[serde(rename = "ran_ns")]
    pub ran: Span,
    /// Time in which it was to run and did not, ns.
    #[serde(rename = "waited_ns")]
    pub waited: Span,
    /// Time in which both were counted, ns.
    #[serde(rename = "counted_ns")]
    pub counted: Span,
    /// Calls for data of a socket, a file or several of them that returned at once without any; `null` in records of
    /// versions that did not count them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub empty_polls: Option<u64>,
}

/// State of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ThreadState {
    /// It sleeps.
    Asleep,
    /// It has ended.
    Ended,
    /// A signal or a debugger has stopped it.
    Stopped,
    /// It sleeps, and no signal wakes it.
    Uninterruptible,
    /// It runs, or is to run.
    Running,
}

impl ThreadState {
    /// Whether the thread is not waiting for its next activation, so that nothing is known of it.
    pub fn is_awake(self) -> bool {
        !matches!(self, ThreadState::Asleep | ThreadState::Ended)
    }
}

impl std::fmt::Display for ThreadState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            ThreadState::Asleep => "asleep",
            ThreadState::Ended => "ended",
            ThreadState::Stopped => "stopped",
            ThreadState::Uninterruptible => "in an uninterruptible sleep",
            ThreadState::Running => "running",
        })
    }
}

/// What a thread had not finished at the end of the cell.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct OpenActivation {
    /// Its kind.
    pub kind: OpenKind,
    /// Time, ns, since its release, or since the due time that passed without one: a lower bound.
    #[serde(rename = "at_least_ns")]
    pub at_least: Span,
    /// Activity of the thread at the end, as text, like `sleeps in futex`.
    pub doing: String,
}

/// Kinds of what is not finished.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OpenKind {
    /// A wait without a release for longer than ever before, of a thread that others release or that sleeps for lengths
    /// of time: nothing is known to be late.
    Silence,
    /// A wait without a release, although the period of the thread has passed.
    Wait,
    /// An activation.
    Activation,
}

/// Period of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct FoundPeriod {
    /// The period, ns.
    #[serde(rename = "period_ns")]
    pub period: Period,
    /// Whether the user gave it; else it is the median interval between releases.
    pub is_given: bool,
    /// Share of the intervals between releases that are a multiple of it within 10 %.
    pub regular: f64,
}

/// Numbers of activations by what released them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Releases {
    /// A timer of the thread, whose due time is the release.
    pub timer: u64,
    /// Another thread, whose waking is the release.
    pub thread: u64,
    /// An interrupt, whose waking is the release, or a packet, whose arrival is.
    pub interrupt: u64,
    /// Nothing: the call returned at once, and its beginning is the release.
    pub immediate: u64,
}

/// A name and how often it occurred.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct CountedName {
    /// The name.
    pub name: String,
    /// Number of occurrences.
    pub n: u64,
}

impl CountedName {
    /// The most frequent names, at most so many; the numbers of one name are added up.
    pub fn most_frequent(all: impl Iterator<Item = (String, u64)>, most: usize) -> Vec<CountedName> {
        let mut named: Vec<CountedName> = Vec::new();
        for (name, n) in all {
            match named.iter_mut().find(|known| known.name == name) {
                Some(known) => known.n += n,
                None => named.push(CountedName { name, n }),
            }
        }
        named.order_by(|a, b| b.n.cmp(&a.n).then_with(|| a.name.cmp(&b.name)));
        named.truncate(most);
        named
    }
}

/// Where the time of a watched thread went, within activations and between them, from the first look at it until it
/// ended: the sum of the parts is exactly that.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct TimeAccount {
    /// Time on a CPU, ns, with the interrupts that were handled meanwhile.
    #[serde(rename = "running_ns")]
    pub running: Span,
    /// These interrupts; `null` where they were not traced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interrupts: Option<InterruptTime>,
    /// Time in which it was to run and did not, ns: `run_delay` of /proc/TID/schedstat.
    #[serde(rename = "waiting_for_cpu_ns")]
    pub waiting_for_cpu: Span,
    /// The part of it in which a quota of its control groups or, of FIFO and round-robin threads, the kernel's limit of
    /// real-time threads kept it from a CPU; `null` where that is unknown: of deadline threads, of real-time threads in
    /// groups with budgets (`cpu.rt_runtime_us`), after lost events, in recorded traces, and in older records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub throttled: Option<ThrottledTime>,
    /// Time asleep, ns.
    #[serde(rename = "asleep_ns")]
    pub asleep: Span,
    /// What it slept for; `null` in records of versions that did not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asleep_for: Option<SleepTime>,
    /// Time of which nothing is known, ns: before its first event, and after lost ones; `null` in records of versions
    /// that did not count it.
    #[serde(rename = "unknown_ns", default, skip_serializing_if = "Option::is_none")]
    pub unknown: Option<Span>,
    /// Threads that had the CPU meanwhile, with their priority if it is not nice 0, most time first, up to five;
    /// `idle`: nothing had it yet, or the thread was throttled. Empty where the trace does not show all switches.
    pub waited_for: Vec<NamedTime>,
}

/// Time in which a quota of control groups (`cpu.max`) kept a normal thread from a CPU, or real-time throttling
/// (`sched_rt_runtime_us`) or the fair server (Linux 6.12) a real-time thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ThrottledTime {
    /// Its waits while the CPU was idle, ns, as far as its groups count that much; of a real-time thread, its waits
    /// while the CPU that took it off, runnable, ran normal threads.
    #[serde(rename = "at_least_ns")]
    pub at_least: Span,
    /// All of its waits, ns, as far as its groups count that much (`throttled_usec` of cpu.stat); of a real-time
    /// thread, those while its CPU ran no real-time thread, 0 if no CPU took one off that was runnable.
    #[serde(rename = "at_most_ns")]
    pub at_most: Span,
}

/// Interrupts and softirqs that were handled while a thread was running.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct InterruptTime {
    /// Their time, ns.
    #[serde(rename = "total_ns")]
    pub total: Span,
    /// Each without those that interrupted it, most time first, up to five.
    pub by: Vec<NamedTime>,
}

/// What a thread slept for. The sum of the times is exactly that of its sleeps.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct SleepTime {
    /// The next activation, and lengths of time that it chose, ns.
    #[serde(rename = "on_purpose_ns")]
    pub on_purpose: Span,
    /// Locks of the program, ns: futexes with the value of a lock that it released afterwards, and locks with priority
    /// inheritance. Others are among `others_ns`.
    #[serde(rename = "locks_ns")]
    pub locks: Span,
    /// The threads that released these locks, most time first, up to five.
    pub locks_of: Vec<NamedTime>,
    /// Page faults, and calls for memory, ns.
    #[serde(rename = "memory_ns")]
    pub memory: Span,
    /// Uninterruptible sleeps in other calls, and calls like `fsync`, ns: disks, and locks of the kernel.
    #[serde(rename = "uninterruptible_ns")]
    pub uninterruptible: Span,
    /// A signal or a debugger that stopped it, ns.
    #[serde(rename = "stopped_ns")]
    pub stopped: Span,
    /// Others within an activation, ns: data, messages and conditions that other threads or devices bring.
    #[serde(rename = "others_ns")]
    pub others: Span,
    /// Nothing that the events tell, ns.
    #[serde(rename = "unknown_ns")]
    pub unknown: Span,
}

impl TimeAccount {
    /// All of its time.
    pub fn total(&self) -> Span {
        let unknown = self.unknown.unwrap_or_default();
        let all = [self.running, self.waiting_for_cpu, self.asleep, unknown];
        Span(all.into_iter().map(Span::ns).sum())
    }
}

/// Time of a name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct NamedTime {
    /// The name.
    pub name: String,
    /// Number of occurrences.
    pub n: u64,
    /// Total time, ns.
    #[serde(rename = "total_ns")]
    pub total: Span,
    /// Longest time, ns.
    #[serde(rename = "longest_ns")]
    pub longest: Span,
}

/// A phase of the activations of a thread. The phases of one activation add up to the time from its release to its end.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct PhaseRecord {
    /// Its kind.
    pub phase: PhaseKind,
    /// The mark that begins it; empty for other kinds.
    pub mark: String,
    /// Passes after the first one of an activation.
    pub repeated: u64,
    /// From the release to its beginning, once for each activation that has the phase: of a mark that was passed
    /// several times, to the first pass.
    pub since_release: Histogram,
    /// Its length in each of these activations: from each pass of its mark to that of another one, or to the end.
    pub length: Histogram,
    /// Late activations that have it.
    pub late: u64,
    /// Its length in these, added up, ns.
    #[serde(rename = "late_ns")]
    pub late_length: Span,
}

/// Kinds of phases, in the order in which they begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PhaseKind {
    /// From the release until the program runs.
    #[default]
    WakeUp,
    /// From then to the first mark, or to the end.
    Start,
    /// From a mark.
    Mark,
    /// From a mark beyond those that are distinguished.
    OtherMark,
}

/// Activations of the last thread of a chain that the first one caused by waking the next, and so on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ChainRecord {
    /// Names of the threads, from the first to the last.
    pub threads: Vec<String>,
    /// Activations of the last thread that something else released.
    pub other: u64,
    /// From the release of the first thread to the end of the last one's activation.
    pub latency: Histogram,
    /// From the release of the first thread until the last one runs: age of its data then.
    pub age: Histogram,
    /// Stages, in order: two of each thread but the last, which has its wake-up and its run.
    pub stages: Vec<ChainStage>,
}

/// One stage of a chain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ChainStage {
    /// The thread.
    pub thread: String,
    /// Whether it is the stage from its release until it runs; else from then until it wakes the next, or ends.
    pub is_wake_up: bool,
    /// Its lengths.
    pub histogram: Histogram,
}
