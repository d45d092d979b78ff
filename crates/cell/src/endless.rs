//! Explanation of late wake-ups in a measurement without an end: each is passed on as it is explained.

use super::explainer::{Explainer, MeasuredThread, SpikeReport};
use crate::trace::TraceError;
use punctual_model::{Host, Method, MonoTime, Schedule, Span, Task};
use punctual_rt::{Member, SpikeWatch};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, sync_channel};

/// Reports that wait until they are taken. The next one is dropped, and none is made until the threshold is set again:
/// each costs a stop of the trace.
const WAITING: usize = 12;

/// A running trace, and the threads that take and explain it. Dropping it removes the trace.
#[derive(Debug)]
pub struct EndlessExplainer {
    explainer: Explainer,
    reports_rx: Receiver<SpikeReport>,
}

impl EndlessExplainer {
    /// Creates the trace, stopped. Errors: without tracefs, or without permission to use it.
    pub fn create(host: &Host) -> Result<EndlessExplainer, TraceError> {
        let (reports_tx, reports_rx) = sync_channel(WAITING);
        Ok(EndlessExplainer { explainer: Explainer::create_endless(host, reports_tx)?, reports_rx })
    }

    /// The channel by which measured threads report late wake-ups.
    pub fn watch(&self) -> &Arc<SpikeWatch> {
        self.explainer.watch()
    }

    /// Enables the events of these threads, which takes a while.
    pub fn enable(&mut self, members: &[Member]) -> Result<(), TraceError> {
        self.explainer.enable(&members.iter().map(|member| member.tid).collect::<Vec<_>>())
    }

    /// Starts the trace. Takes as long as the machine lets it, so due times are chosen afterwards. Errors: when the
    /// kernel refuses, or a thread cannot be started.
    pub fn begin(&mut self, members: &[Member]) -> Result<(), TraceError> {
        self.explainer.begin(&members.iter().map(|member| member.spec.cpu).collect())
    }

    /// Explains late wake-ups of these threads from now on, which wait at the gate and use `CLOCK_MONOTONIC`.
    /// `schedule` gives the due times of each. Due times of explanations count from `started`.
    pub fn follow(&mut self, members: &mut [Member], schedule: impl Fn(&Member) -> Schedule, started: MonoTime) {
        let measured = members.iter_mut().filter_map(|member| {
            let late = member.late.take()?;
            let measured = MeasuredThread {
                cpu: member.spec.cpu,
                tid: member.tid,
                policy: member.policy,
                slack: member.timer_slack,
                schedule: schedule(member),
                cycles: member.spec.cycles.clone(),
            };
            Some((measured, late))
        });
        let measured = measured.collect();
        self.explainer.follow(&Task::Cyclic(Method::CLOCK_NANOSLEEP), started, measured);
    }

    /// Sets the latency above which a wake-up is a spike; `None`: none is.
    pub fn set_threshold(&self, above: Option<Span>) {
        self.explainer.set_threshold(above.unwrap_or(Span(u64::MAX)));
    }

    /// The spikes since the last call.
    pub fn reports(&self) -> impl Iterator<Item = SpikeReport> + '_ {
        self.reports_rx.try_iter()
    }
}
