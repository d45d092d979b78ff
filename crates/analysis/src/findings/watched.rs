//! Findings about watched threads of other programs.

use super::{Finding, refused, unfit, when};
use crate::machine::doctor::{self, Outcome};
use crate::summary::cell::CellSummary;
use crate::summary::watched::WatchedSummary;
use crate::wording::{count, duration, things};
use punctual_model::{Host, OpenActivation, OpenKind, RefusedCall, SettingChange, Span};

finding!(
    /// Events of the watched threads were lost.
    pub struct ActivityLost {
        /// Number of gaps in the trace.
        pub gaps: u64,
    },
    importance = 1,
    {
        let gaps = things(*gaps, "gap");
        format!(
            "lost events: {gaps} in the trace of the watched threads; late activations may be missing; watch fewer threads"
        )
    },
    [ActivityLost { gaps: 3 }]
);

finding!(
    /// The figures pool several threads.
    pub struct ThreadsPooled {
        /// Number of threads.
        pub threads: u64,
    },
    importance = 4,
    {
        let threads = count(*threads);
        format!("{threads} threads are watched, and the figures of the cell pool them; choose one with --thread")
    },
    [ThreadsPooled { threads: 3 }]
);

finding!(
    /// A thread sleeps for a length of time, so that its activations drift.
    pub struct RelativeSleep {
        /// Name of the thread.
        pub thread: String,
        /// The call that it sleeps in.
        pub wait: String,
        /// Median interval between its releases, ns.
        pub interval_ns: u64,
        /// The period that was given, ns; `null` if none was.
        pub period_ns: Option<u64>,
    },
    importance = 3,
    {
        let interval = duration(*interval_ns as f64);
        let drift = period_ns
            .filter(|period| interval_ns > period)
            .map(|period| format!(", {} more than its period", duration((*interval_ns - period) as f64)));
        let drift = drift.unwrap_or_default();
        let call = wait.split(' ').next().unwrap_or_default();
        format!(
            "drift: {thread} sleeps for a length of time ({call}), once every {interval}{drift}; sleep until an instant"
        )
    },
    [RelativeSleep {
        thread: "control".to_owned(),
        wait: "clock_nanosleep for a length of time".to_owned(),
        interval_ns: 1_120_000,
        period_ns: Some(1_000_000),
    }]
);

finding!(
    /// A thread without a period: nothing says when it is late.
    pub struct NoPeriod {
        /// Name of the thread.
        pub thread: String,
    },
    importance = 5,
    format!("no period: {thread} is not periodic, so that misses are unknown; give --deadline or --period"),
    [NoPeriod { thread: "logger".to_owned() }]
);

finding!(
    /// The watched program ended by itself.
    pub struct ProgramEnded {
        /// How it ended.
        pub status: String,
        /// Measured time, ns.
        pub measured_ns: u64,
    },
    importance = 4,
    {
        let after = duration(*measured_ns as f64);
        format!("the watched program ended by itself after {after} ({status})")
    },
    [ProgramEnded { status: "exit status: 1".to_owned(), measured_ns: 2_500_000_000 }]
);

/// What a thread had not finished at the end, as a clause.
pub(crate) fn unfinished(thread: &str, open: &OpenActivation) -> String {
    let OpenActivation { kind, at_least, doing } = open;
    let time = duration(at_least.ns() as f64);
    match kind {
        OpenKind::Activation => format!("{thread} had not finished an activation after {time} ({doing})"),
        OpenKind::Wait => format!("{thread} was not released for {time} beyond its period ({doing})"),
        OpenKind::Silence => format!("{thread} was not released for {time} longer than usual ({doing})"),
    }
}

finding!(
    /// A thread had not finished at the end: an activation that is not over, or a wait beyond its period.
    pub struct NotFinished {
        /// Name of the thread.
        pub thread: String,
        /// What it had not finished.
        pub open: OpenActivation,
    },
    importance = 1,
    format!("open activation: {}", unfinished(thread, open)),
    [NotFinished {
        thread: "control".to_owned(),
        open: OpenActivation {
            kind: OpenKind::Activation,
            at_least: Span(6_000_000_000),
            doing: "sleeps in futex".to_owned(),
        },
    }]
);

finding!(
    /// Data had waited for a thread, at times for longer than its deadline or its longest response.
    pub struct DataWaited {
        /// Name of the thread.
        pub thread: String,
        /// Activations whose call returned at once.
        pub at_once: u64,
        /// All activations.
        pub activations: u64,
        /// Upper bound of the response time, ns.
        pub at_most_ns: i64,
    },
    importance = 2,
    {
        let (at_once, all) = (count(*at_once), things(*activations, "activation"));
        let at_most = duration(*at_most_ns as f64);
        format!(
            "backlog: data had waited for {thread} in {at_once} of {all}; with that a response took at most {at_most}"
        )
    },
    [DataWaited { thread: "consumer".to_owned(), at_once: 643, activations: 5_004, at_most_ns: 104_000_000 }]
);

finding!(
    /// A network device holds back the packets that release a thread.
    pub struct PacketsHeldBack {
        /// Name of the thread.
        pub thread: String,
        /// What the device, or the kernel for it, does.
        pub held: String,
        /// The command that changes it.
        pub change: String,
    },
    importance = 3,
    format!("packets that release {thread} may come late: {held}; {change}"),
    [PacketsHeldBack {
        thread: "control".to_owned(),
        held: "eth0 waits 30 us".to_owned(),
        change: "ethtool -C eth0 adaptive-rx off rx-usecs 0".to_owned(),
    }]
);

finding!(
    /// Activations of a thread that waits for a futex may be several: a release that finds it running is not seen.
    pub struct Several {
        /// Name of the thread.
        pub thread: String,
        /// Complete activations.
        pub activations: u64,
        /// Most that they may be.
        pub at_most: u64,
    },
    importance = 2,
    {
        let (all, at_most) = (things(*activations, "activation"), count(*at_most));
        format!(
            "several as one: {all} of {thread} may be up to {at_most}; it waits for futexes, where the kernel does not see \
             each release"
        )
    },
    [Several { thread: "consumer".to_owned(), activations: 1_900, at_most: 2_010 }]
);

finding!(
    /// Threads without activations that were not asleep at the end.
    pub struct ThreadsUnseen {
        /// The threads, with their state.
        pub threads: Vec<String>,
    },
    importance = 3,
    {
        let names = threads.join(", ");
        format!(
            "no activations: {names} never waited twice in one call; measure longer, or choose threads with --thread"
        )
    },
    [ThreadsUnseen { threads: vec!["main (running)".to_owned()] }]
);

finding!(
    /// The priority of a thread, or the CPUs that it may use, changed during the measurement.
    pub struct SettingsChanged {
        /// Name of the thread.
        pub thread: String,
        /// The first change.
        pub first: SettingChange,
        /// Number of changes.
        pub changes: u64,
    },
    importance = 2,
    {
        let SettingChange { at, from, to } = first;
        let at = duration(at.ns() as f64);
        let more = if *changes > 1 { format!(", and {} more", things(*changes - 1, "change")) } else { String::new() };
        format!("changed settings: {thread} had {from} until {at}, then {to}{more}; its figures mix both")
    },
    [SettingsChanged {
        thread: "control".to_owned(),
        first: SettingChange { at: Span(3_000_000_000), from: "priority 20".to_owned(), to: "nice 0".to_owned() },
        changes: 1,
    }]
);

impl SettingsChanged {
    /// That of the thread with this name; `None` without a change.
    pub(super) fn of(thread: String, changes: &[SettingChange]) -> Option<Finding> {
        let first = changes.first()?.clone();
        let changes = u64::try_from(changes.len()).unwrap_or(u64::MAX);
        Some(SettingsChanged { thread, first, changes }.into())
    }
}

/// Findings about the watched threads of a cell.
pub(super) fn findings(host: &Host, summary: &CellSummary) -> Vec<Finding> {
    let Some(watch) = &summary.watch else { return Vec::new() };
    let n = u64::try_from(watch.threads.len()).unwrap_or(u64::MAX);
    let ended = watch.status.as_ref().zip(watch.ended_after_ns);
    let ended = ended.map(|(status, measured_ns)| ProgramEnded { status: status.clone(), measured_ns }.into());
    let unseen = when(!watch.unseen.is_empty(), ThreadsUnseen { threads: watch.unseen.clone() });
    let mut all: Vec<Finding> = [
        when(watch.gaps > 0, ActivityLost { gaps: watch.gaps }),
        when(n > 1, ThreadsPooled { threads: n }),
        ended,
        unseen,
    ]
    .into_iter()
    .flatten()
    .collect();
    all.extend(of_threads(&watch.threads, &watch.refused));
    all.extend(watch.threads.iter().flat_map(|thread| held_back(host, thread)));
    all
}

/// What the network devices whose packets release a thread do to them.
fn held_back(host: &Host, thread: &WatchedSummary) -> Vec<Finding> {
    let devices = thread.packets.iter().flat_map(|packets| &packets.devices);
    let outcomes = devices.filter_map(|device| doctor::of_network_device(host, &device.name));
    let found = |Outcome { found, remedy, .. }: Outcome| {
        let (thread, change) = (thread.name.clone(), remedy?.change);
        Some(PacketsHeldBack { thread, held: found, change }.into())
    };
    outcomes.filter_map(found).collect()
}

/// Findings about watched threads and their refused calls, wherever they come from.
pub fn of_threads(threads: &[WatchedSummary], refused: &[RefusedCall]) -> Vec<Finding> {
    let mut all: Vec<Finding> = refused::of_calls(refused).chain(unfit::of_watched(threads)).collect();
    for thread in threads {
        let open = thread.unfinished().cloned();
        all.extend(open.map(|open| Finding::from(NotFinished { thread: thread.name.clone(), open })));
        let usual = thread.deadline.filter(|deadline| *deadline > Span(0)).map(|deadline| deadline.ns().cast_signed());
        let is_longer = |at_most: &i64| Some(*at_most) > usual.max(thread.response_max_ns);
        if let Some(at_most_ns) = thread.response_max_at_most_ns.filter(is_longer) {
            let (at_once, activations) = (thread.releases.immediate, thread.activations);
            all.push(DataWaited { thread: thread.name.clone(), at_once, activations, at_most_ns }.into());
        }
        if let Some(at_most) = thread.activations_at_most {
            all.push(Several { thread: thread.name.clone(), activations: thread.activations, at_most }.into());
        }
        all.extend(SettingsChanged::of(thread.name.clone(), &thread.changes));
        if thread.is_relative == Some(true) {
            let given = thread.period.filter(|found| found.is_given).map(|found| found.period.ns());
            let interval_ns = thread.interval_p50_ns.and_then(|ns| u64::try_from(ns).ok()).unwrap_or(0);
            let (name, wait) = (thread.name.clone(), thread.wait.clone());
            all.push(RelativeSleep { thread: name, wait, interval_ns, period_ns: given }.into());
        }
        if thread.deadline.is_none_or(|deadline| deadline == Span(0)) {
            all.push(NoPeriod { thread: thread.name.clone() }.into());
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use punctual_model::{CountedName, NetworkDevice, PacketReleases, WatchedThread};

    #[test]
    fn the_device_of_the_packets_is_named_if_it_holds_them_back() {
        let device = |name: &str, rx_delay_us| NetworkDevice {
            name: name.to_owned(),
            rx_delay_us,
            rx_adapts: None,
            link_sleeps: None,
            rps_cpus: None,
            irqs: Vec::new(),
        };
        let host = Host { network: vec![device("eth0", Some(30)), device("eth1", Some(0))], ..Host::default() };
        for (name, expected) in [("eth0", 1), ("eth1", 0), ("lo", 0)] {
            let devices = vec![CountedName { name: name.to_owned(), n: 1 }];
            let packets = Some(PacketReleases { devices, ..PacketReleases::default() });
            let thread = WatchedThread { name: "control".to_owned(), packets, ..WatchedThread::default() };
            let found = held_back(&host, &WatchedSummary::of(&thread, &[], true, 0.95).unwrap());
            assert_eq!(found.len(), expected, "{found:?}");
            assert!(found.iter().all(|one| one.to_string().contains("late: eth0 waits 30 us; ethtool -C eth0")));
        }
    }
}
