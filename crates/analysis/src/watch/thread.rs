//! One watched thread: its state, the call it waits in, and what it has not finished at the end.

use super::Finished;
use super::calls::Call;
use super::open::Open;
use super::settings::Settings;
use super::tally::Tally;
use super::track::{Completed, Track, Unfinished};
use super::wait::Chooser;
use crate::events::Event;
use model::OpenKind;

/// Most events that are kept until the wait is known.
const MOST_EVENTS: usize = 50_000;

/// A thread.
#[derive(Debug)]
pub(super) struct Thread {
    pub(super) track: Track,
    pub(super) wait: Option<Call>,
    chooser: Chooser,
    /// Events so far, while the wait is not known.
    early: Vec<(u32, Event)>,
    pub(super) tally: Tally,
    pub(super) ended_ns: Option<u64>,
    /// Priority at its last start, as the kernel counts.
    pub(super) priority: Option<i32>,
}

impl Thread {
    pub(super) fn new(pid: i32, settings: &Settings) -> Thread {
        Thread {
            track: Track::new(pid, None),
            wait: None,
            chooser: Chooser::default(),
            early: Vec::new(),
            tally: Tally::new(settings),
            ended_ns: None,
            priority: None,
        }
    }

    /// Takes an event; adds the activations that it completes, which are not counted yet.
    pub(super) fn take(
        &mut self,
        pid: i32,
        cpu: u32,
        event: &Event,
        offsets: &[i64],
        settings: &Settings,
        finished: &mut Vec<Finished>,
    ) {
        if self.wait.is_some() {
            finished.extend(self.known(pid, cpu, event, offsets, settings));
            return;
        }
        if self.early.len() < MOST_EVENTS {
            self.early.push((cpu, *event));
        }
        let Some(Completed::Sleep { call, from_ns, release_ns, by_timer }) = self.track.take(cpu, event, offsets)
        else {
            return;
        };
        if settings.wait.as_ref().is_some_and(|wait| call.name() != *wait) {
            return;
        }
        if let Some(wait) = self.chooser.take(call, from_ns, release_ns, by_timer) {
            self.choose(pid, wait, offsets, settings, finished);
        }
    }

    /// Chooses the wait from what is known so far, at the end; adds the activations.
    pub(super) fn choose_now(&mut self, pid: i32, offsets: &[i64], settings: &Settings, finished: &mut Vec<Finished>) {
        if let Some(wait) = self.chooser.choice().filter(|_| self.wait.is_none()) {
            self.choose(pid, wait, offsets, settings, finished);
        }
    }

    fn choose(&mut self, pid: i32, wait: Call, offsets: &[i64], settings: &Settings, finished: &mut Vec<Finished>) {
        self.wait = Some(wait);
        self.track = Track::new(pid, Some(wait));
        let early = std::mem::take(&mut self.early);
        finished.extend(early.iter().filter_map(|(cpu, event)| self.known(pid, *cpu, event, offsets, settings)));
    }

    fn known(&mut self, pid: i32, cpu: u32, event: &Event, offsets: &[i64], settings: &Settings) -> Option<Finished> {
        let Some(Completed::Activation(one)) = self.track.take(cpu, event, offsets) else { return None };
        let is_measured = (settings.since_ns..settings.until_ns).contains(&one.release_ns);
        is_measured.then_some(Finished { pid, activation: *one, usual_response_ns: None, deadline: None })
    }

    /// The activation that was released in the measured time and is not over; events are known up to `at_ns`.
    pub(super) fn unfinished(&self, at_ns: u64, offsets: &[i64], settings: &Settings) -> Option<Unfinished> {
        let is_waiting = self.wait.is_some() && self.ended_ns.is_none();
        let unfinished = self.track.unfinished(at_ns, offsets).filter(|_| is_waiting)?;
        (unfinished.release_ns < settings.until_ns).then_some(unfinished)
    }

    /// What is not finished at the end, after [`Tally::finish`].
    pub(super) fn open(&self, at_ns: u64, offsets: &[i64], settings: &Settings) -> Option<Open> {
        if let Some(Unfinished { release_ns, has_run }) = self.unfinished(at_ns, offsets, settings) {
            let (kind, at_least_ns) = (OpenKind::Activation, at_ns.saturating_sub(release_ns));
            return Some(Open {
                kind,
                due_ns: release_ns,
                at_least_ns,
                behind: self.behind(release_ns, settings),
                has_run,
            });
        }
        self.overdue(settings)
    }

    /// A wait that is longer than any before it, and than two periods. Where a timer releases the thread, or the period
    /// is given, a due time has passed; otherwise nothing says that there was anything to do.
    fn overdue(&self, settings: &Settings) -> Option<Open> {
        if self.wait.is_none() || self.ended_ns.is_some() {
            return None;
        }
        let (found, last_ns) = self.tally.period.result().zip(self.tally.last_release_ns())?;
        let period_ns = found.period.ns();
        let longest_ns = self.tally.interval.max_ns.and_then(|ns| u64::try_from(ns).ok()).unwrap_or(0);
        let since_ns = settings.until_ns.saturating_sub(last_ns);
        if since_ns < period_ns.saturating_mul(2) || since_ns <= longest_ns {
            return None;
        }
        let due_ns = last_ns.saturating_add(period_ns);
        let is_due = found.is_given || self.tally.is_by_timer();
        Some(Open {
            kind: if is_due { OpenKind::Wait } else { OpenKind::Silence },
            due_ns,
            at_least_ns: settings.until_ns.saturating_sub(due_ns),
            behind: if is_due { self.behind(due_ns, settings) } else { 0 },
            has_run: false,
        })
    }

    /// The due times after `due_ns` that passed in the measured time.
    fn behind(&self, due_ns: u64, settings: &Settings) -> u64 {
        let period = self.tally.period.result().filter(|_| self.tally.is_on_grid());
        let passed_ns = settings.until_ns.saturating_sub(due_ns).saturating_sub(1);
        period.map_or(0, |found| passed_ns / found.period.ns())
    }
}
