//! One watched thread: its state, the call it waits in, and what it has not finished at the end.

use super::Finished;
use super::account::{Account, Phase};
use super::calls::{Call, CallKind};
use super::open::Open;
use super::period::{Behind, Missing, Rhythm};
use super::samples::Settings;
use super::tally::Tally;
use super::track::{Completed, Track, Unfinished};
use super::wait::Chooser;
use crate::events::Event;
use punctual_model::{OpenKind, SettingChange};
use std::collections::VecDeque;

/// Most events of one thread that are kept until its wait is known.
const MOST_EVENTS: usize = 50_000;

#[derive(Debug, Default)]
pub(super) struct Thread {
    /// Its first event, or the first look at it, ns.
    seen_ns: u64,
    pub(super) track: Track,
    pub(super) wait: Option<Call>,
    chooser: Chooser,
    /// Events so far, while the wait is not known.
    pub(super) early: VecDeque<(u32, Event)>,
    pub(super) tally: Tally,
    behind: Behind,
    rhythm: Rhythm,
    pub(super) ended_ns: Option<u64>,
    /// Priority at its last start, as the kernel counts.
    pub(super) priority: Option<i32>,
    /// Changes of the priority with which activations begin: the release, and the priority before and since, as the
    /// kernel counts.
    pub(super) changes: Vec<(u64, i32, i32)>,
    began_with: Option<i32>,
    /// Where its time went.
    pub(super) account: Account,
}

impl Thread {
    /// A thread that was there at `seen_ns`.
    pub(super) fn new(pid: i32, seen_ns: u64, settings: &Settings) -> Thread {
        Thread {
            seen_ns,
            track: Track::new(pid, None),
            tally: Tally::new(settings),
            rhythm: Rhythm::new(settings.period),
            account: Account::new(seen_ns),
            ..Thread::default()
        }
    }

    /// What it does, for the account of its time. Its last event is the switch after its end.
    pub(super) fn phase(&self) -> Phase {
        match self.track.phase() {
            Phase::Asleep(_) if self.ended_ns.is_some() => Phase::Ended,
            phase => phase,
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
        if Call::is_exec(event) && event.pid == pid {
            // From now on it is another program, which waits elsewhere.
            finished.retain(|one| one.pid != pid);
            let (account, seen_ns) = (std::mem::take(&mut self.account), self.seen_ns);
            *self = Thread { account, priority: self.priority, ..Thread::new(pid, seen_ns, settings) };
        }
        if self.wait.is_some() {
            finished.extend(self.known(pid, cpu, event, offsets, settings));
            return;
        }
        // The latest ones: a hole between them and what follows would look like one long activation.
        if self.early.len() >= MOST_EVENTS {
            self.early.pop_front();
        }
        self.early.push_back((cpu, *event));
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

    /// Forgets the earliest events above this number.
    pub(super) fn keep_early(&mut self, most: impl FnOnce() -> usize) {
        if !self.early.is_empty() {
            let excess = self.early.len().saturating_sub(most());
            self.early.drain(..excess);
        }
    }

    /// Forgets what may be wrong after lost events, and those before the wait is known, which do not join with later
    /// ones.
    pub(super) fn lose(&mut self) {
        self.track.forget();
        self.account.forget();
        self.tally.lose();
        self.behind = Behind::default();
        self.early.clear();
    }

    /// Chooses the wait from what is known so far, at the end; adds the activations.
    pub(super) fn choose_now(&mut self, pid: i32, offsets: &[i64], settings: &Settings, finished: &mut Vec<Finished>) {
        if let Some(wait) = self.chooser.choice().filter(|_| self.wait.is_none()) {
            self.choose(pid, wait, offsets, settings, finished);
        }
    }

    fn choose(&mut self, pid: i32, wait: Call, offsets: &[i64], settings: &Settings, finished: &mut Vec<Finished>) {
        self.wait = Some(wait);
        self.tally.wait_in(wait, settings.wait.is_some());
        self.track = self.track.again(wait);
        let early = std::mem::take(&mut self.early);
        finished.extend(early.iter().filter_map(|(cpu, event)| self.known(pid, *cpu, event, offsets, settings)));
    }

    fn known(&mut self, pid: i32, cpu: u32, event: &Event, offsets: &[i64], settings: &Settings) -> Option<Finished> {
        let Some(Completed::Activation(one)) = self.track.take(cpu, event, offsets) else { return None };
        if one.release_ns < settings.until_ns {
            self.rhythm.take(&one);
        }
        for block in one.blocks.iter().filter(|block| block.is_lock) {
            let measured = (settings.since_ns, settings.until_ns);
            self.account.locked(block.waker.unwrap_or(0), block.from_ns, block.to_ns, measured);
        }
        let behind = self.behind.take(&one);
        if let (Some(before), Some(since)) = (self.began_with, one.priority)
            && before != since
            && self.changes.len() < SettingChange::MOST
        {
            self.changes.push((one.release_ns, before, since));
        }
        self.began_with = one.priority.or(self.began_with);
        let is_measured = (settings.since_ns..settings.until_ns).contains(&one.release_ns);
        is_measured.then_some(Finished { pid, activation: *one, behind, usual_response_ns: None, deadline: None })
    }

    /// The activation that was released in the measured time and is not over; events are known up to `at_ns`.
    pub(super) fn unfinished(&self, at_ns: u64, offsets: &[i64], settings: &Settings) -> Option<Unfinished> {
        let is_waiting = self.wait.is_some() && self.ended_ns.is_none();
        let unfinished = self.track.unfinished(at_ns, offsets).filter(|_| is_waiting)?;
        (unfinished.release_ns < settings.until_ns).then_some(unfinished)
    }

    /// What is not finished at the end, after [`Tally::finish`]. A thread that was given a period and never waited is
    /// behind since it was seen, if it is awake; not one that yields, as those of policy deadline do.
    pub(super) fn open(&mut self, at_ns: u64, offsets: &[i64], settings: &Settings, is_awake: bool) -> Option<Open> {
        let never_waited = self.wait.is_none() && is_awake && !self.track.yields();
        if let Some(period) = settings.period.filter(|_| never_waited) {
            let due_ns = settings.since_ns.max(self.seen_ns);
            let age_ns = settings.until_ns.saturating_sub(due_ns);
            let (kind, behind) = (OpenKind::Activation, age_ns.saturating_sub(1) / period.ns());
            return Some(Open { kind, due_ns, at_least_ns: age_ns, behind, has_run: true });
        }
        let unfinished = self.unfinished(at_ns, offsets, settings);
        let wait = self.wait.filter(|_| self.ended_ns.is_none())?;
        if let Some(since_ns) = self.track.asleep_in_futex().filter(|_| unfinished.is_some()) {
            let at_least_ns = at_ns.saturating_sub(since_ns);
            if self.tally.bounds.is_idle(at_least_ns) {
                let kind = OpenKind::Silence;
                return Some(Open { kind, due_ns: since_ns, at_least_ns, behind: 0, has_run: true });
            }
        }
        let (kind, due_ns, until_ns) = match unfinished {
            Some(Unfinished { release_ns, .. }) => (OpenKind::Activation, release_ns, at_ns),
            None => {
                let Missing { due_ns, is_by_timer } = self.rhythm.missing(settings.until_ns)?;
                // A thread that sleeps for lengths of time, or that others release, may have nothing to do.
                let is_length = self.tally.is_relative() == Some(true)
                    || wait.kind() == CallKind::Sleep && !wait.is_until_instant();
                let is_due = settings.period.is_some() || is_by_timer && !is_length;
                (if is_due { OpenKind::Wait } else { OpenKind::Silence }, due_ns, settings.until_ns)
            }
        };
        let age_ns = until_ns.saturating_sub(due_ns);
        Some(Open {
            kind,
            due_ns,
            at_least_ns: age_ns / unfinished.map_or(1, |unfinished| self.tally.bounds.most(unfinished.run_ns, age_ns)),
            behind: if kind == OpenKind::Silence { 0 } else { self.behind(due_ns, settings) },
            has_run: unfinished.is_some_and(|unfinished| unfinished.has_run),
        })
    }

    /// The due times after `due_ns` that passed in the measured time.
    fn behind(&self, due_ns: u64, settings: &Settings) -> u64 {
        let Some(found) = self.tally.period.result().filter(|_| self.tally.is_on_grid()) else { return 0 };
        let before = |at_ns: u64| at_ns.saturating_sub(due_ns).saturating_sub(1) / found.period.ns();
        before(settings.until_ns) - before(settings.since_ns)
    }
}
