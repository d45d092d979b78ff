//! Findings about settings of the measured threads that cost time, and settings of the machine that did not last.

use super::watched::SettingsChanged;
use super::{Finding, when};
use crate::summary::pool::Pool;
use crate::wording::{duration, things};
use punctual_model::{Achieved, Task};

finding!(
    /// A setting made for the cells was changed by another program.
    pub struct SettingLost {
        /// The file or process.
        pub what: String,
        /// The value that was set.
        pub set: String,
        /// Value at the end of a cell; `None` if unreadable.
        pub found: Option<String>,
        /// Number of measurements.
        pub measurements: u64,
    },
    importance = 1,
    {
        let found = found.as_deref().unwrap_or("unreadable");
        let measurements = things(*measurements, "measurement");
        format!(
            "lost setting: {what} was set to {set} and was {found} at the end of {measurements}; stop what changes it (tuned, \
             a power daemon)"
        )
    },
    [SettingLost {
        what: "cpu0/cpufreq/scaling_governor".into(),
        set: "performance".into(),
        found: Some("powersave".into()),
        measurements: 3
    }]
);

finding!(
    /// Part of each wake-up is the timer slack of normal threads.
    pub struct TimerSlack {
        /// The slack, ns.
        pub slack_ns: u64,
    },
    importance = 4,
    {
        let slack = duration(*slack_ns as f64);
        format!(
            "timer slack: up to {slack} of each wake-up (prctl PR_SET_TIMERSLACK); exclude it with --timer-slack 1ns"
        )
    },
    [TimerSlack { slack_ns: 50_000 }]
);

finding!(
    /// Memory was not locked.
    pub struct MemoryUnlocked {},
    importance = 8,
    "memory not locked: latency may include page faults; raise the limit: ulimit -l unlimited",
    [MemoryUnlocked {}]
);

finding!(
    /// CPUs were allowed to enter deep idle states.
    pub struct DmaLatencyLeft {},
    importance = 8,
    "idle states not limited (/dev/cpu_dma_latency left alone): latency includes leaving deep idle states",
    [DmaLatencyLeft {}]
);

/// Smallest timer slack that is reported; the smallest possible one is 1 ns.
const SLACK_NS: u64 = 1_000;

/// Settings of the measured threads that cost time.
pub(super) fn of_threads(pool: &Pool<'_>) -> Vec<Finding> {
    let achieved = || pool.threads().map(|(_, thread)| &thread.achieved);
    let has_slack = |achieved: &&Achieved| !achieved.policy.is_realtime() && pool.cell.task.has_timer_slack();
    let slack_ns = achieved().filter(has_slack).map(|achieved| achieved.timer_slack_ns).max().unwrap_or(0);
    // A program in another language does not lock its memory, and is measured as it is.
    let is_ours = !matches!(pool.cell.task, Task::Sleep(_) | Task::Program(_) | Task::Timerbench(_) | Task::Watch(_));
    let changed = pool.threads().filter_map(|(_, thread)| {
        SettingsChanged::of(format!("the thread of CPU {}", thread.cpu), &thread.achieved.changes)
    });
    let found = [
        when(slack_ns >= SLACK_NS, TimerSlack { slack_ns }),
        when(is_ours && achieved().any(|achieved| achieved.memory_locked_bytes == 0), MemoryUnlocked {}),
        when(achieved().any(|achieved| achieved.cpu_dma_latency_us.is_none()), DmaLatencyLeft {}),
    ];
    changed.chain(found.into_iter().flatten()).collect()
}

/// One finding for each setting with another value at the end of a measurement, in the order in which they were made.
pub(super) fn lost(pool: &Pool<'_>) -> Vec<Finding> {
    let mut all: Vec<SettingLost> = Vec::new();
    let settings = pool.entries.iter().flat_map(|entry| &entry.record.prepared);
    for setting in settings.filter(|setting| setting.at_end.as_ref() != Some(&setting.during)) {
        match all.iter_mut().find(|lost| lost.what == setting.what) {
            Some(lost) => lost.measurements += 1,
            None => all.push(SettingLost {
                what: setting.what.clone(),
                set: setting.during.clone(),
                found: setting.at_end.clone(),
                measurements: 1,
            }),
        }
    }
    all.into_iter().map(Finding::from).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::cell::tests::{findings_of, of, steady};
    use crate::summarise;
    use crate::testing::RunBuilder;
    use punctual_model::PreparedSetting;

    #[test]
    fn normal_threads_have_timer_slack() {
        assert_eq!(of("other", steady, |_| {}), [TimerSlack { slack_ns: 50_000 }.into()]);
        assert_eq!(of("other", steady, |thread| thread.achieved.timer_slack_ns = 1), []);
        let mut timer = RunBuilder::new();
        timer.cell("none", "other");
        timer.header.cells[0].task = "timerfd".parse().unwrap();
        timer.measure(0, 0, steady);
        assert_eq!(findings_of(&timer), [], "timers have none");
        let unused = of("fifo:80", steady, |thread| thread.achieved.timer_slack_ns = 50_000);
        assert_eq!(unused, [], "older kernels report a value that real-time threads do not use");
    }

    #[test]
    fn a_language_keeps_no_period_and_locks_no_memory() {
        let mut run = RunBuilder::new();
        run.cell("none", "fifo:80");
        run.header.cells[0].task = "clock_nanosleep:relative".parse().unwrap();
        // Every fourth sleep is so long that a due time passes.
        run.measure(0, 0, |_, cycle| if cycle % 4 == 0 { 1_500_000 } else { 5_000 });
        run.entries[0].record.threads.iter_mut().for_each(|thread| thread.achieved.memory_locked_bytes = 0);
        let found = findings_of(&run);
        assert!(matches!(found[..], [Finding::Drift(_), Finding::MemoryUnlocked(_)]), "{found:?}");
        run.header.cells[0].task = "sleep:c".parse().unwrap();
        assert_eq!(findings_of(&run), []);
    }

    #[test]
    fn a_setting_that_did_not_stay_is_said_once() {
        let mut run = RunBuilder::new();
        run.cell("none", "other").measure(0, 0, |_, _| 5_000).measure(1, 0, |_, _| 5_000);
        let setting = |what: &str, at_end: &str| PreparedSetting {
            what: what.to_owned(),
            before: "powersave".to_owned(),
            during: "performance".to_owned(),
            at_end: Some(at_end.to_owned()),
        };
        for entry in &mut run.entries {
            entry.record.prepared = vec![setting("/kept", "performance"), setting("/lost", "powersave")];
        }
        let findings = summarise(&run.header, &run.entries).cell_findings.remove(0);
        let said: Vec<_> = findings.iter().map(ToString::to_string).filter(|text| text.contains("was set")).collect();
        assert_eq!(
            said,
            ["lost setting: /lost was set to performance and was powersave at the end of 2 measurements; stop what \
                 changes it (tuned, a power daemon)"]
        );
    }
}
