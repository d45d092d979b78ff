//! Results of one watched thread, and their form as a record of a measured thread.

use punctual_model::{
    Achieved, Censored, Episodes, MonoTime, Second, Slice, Span, ThreadRecord, ThrottledTime, WatchSample,
    WatchedThread, Worst,
};

/// Results of one thread: its sums, and its samples as tables.
#[derive(Debug, Clone)]
pub struct ThreadResult {
    /// Its sums.
    pub thread: WatchedThread,
    /// Samples in slices.
    pub slices: Vec<Slice>,
    /// Samples in seconds.
    pub seconds: Vec<Second>,
    /// Largest samples.
    pub worst: Vec<Worst>,
    /// Episodes of late activations.
    pub episodes: Episodes,
    /// Due times that passed while events were lost.
    pub lost: u64,
    /// First release, `CLOCK_MONOTONIC`, ns.
    pub first_release_ns: u64,
    /// End of the last activation, ns.
    pub last_end_ns: u64,
    /// The sample that is still growing, if it has one.
    pub censored: Option<Censored>,
    /// Long waits beside an idle CPU, ns; `None` where the trace does not show all switches.
    pub held_ns: Option<u64>,
    /// Time in which the kernel's limit of real-time threads kept it from a CPU; `None`: unknown, events were lost.
    pub limited: Option<ThrottledTime>,
    /// Priority at its last start, as the kernel counts: lower is more.
    pub priority: i32,
}

impl ThreadResult {
    /// The record of the thread in a cell that started at `started`: due times are complete activations, skipped ones,
    /// and the one that is still open.
    pub fn record(&self, started: MonoTime, sample: WatchSample, achieved: Achieved) -> ThreadRecord {
        let WatchedThread { cpu, period, skipped, response, latency, .. } = &self.thread;
        let histogram = match sample {
            WatchSample::Response => response,
            WatchSample::Latency => latency,
        };
        let open = u64::from(self.censored.is_some_and(|open| open.cycle >= 0));
        ThreadRecord {
            cpu: *cpu,
            period: period.map(|found| found.period),
            offset: Span(self.first_release_ns.saturating_sub(started.0)),
            achieved,
            cycles_due: histogram.n.saturating_add(*skipped).saturating_add(open).saturating_add(self.lost),
            recorded: histogram.n,
            missed: *skipped,
            lost: self.lost,
            censored: self.censored,
            histogram: histogram.clone(),
            seconds: self.seconds.clone(),
            slices: self.slices.clone(),
            worst: self.worst.clone(),
            episodes: self.episodes.clone(),
            ..ThreadRecord::default()
        }
    }
}
