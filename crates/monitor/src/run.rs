//! The main loop: once a second it empties the logs, looks for other measurements, and ends windows.

use crate::hooks::{Hooks, MonitorError};
use crate::session::Session;
use crate::threshold::Threshold;
use crate::window::{WallClock, Window};
use punctual_cell::SpikeReport;
use punctual_host::{HostFs, LockError, MonitorMark};
use punctual_model::{
    ClockId, CpuSet, GapReason, Host, MONITOR_FORMAT, MonitorGap, MonitorStart, MonitorStatus, MonitorWindow, MonoTime,
    Span,
};
use punctual_store::MonitorHistory;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

/// Interval at which the logs are emptied.
const TICK: Duration = Duration::from_secs(1);
/// Interval at which a pausing monitor looks for the end of the other measurement, which it is not to disturb.
const PAUSED_TICK: Duration = Duration::from_secs(5);
/// Memory that a monitor may lock, bytes: several times what it takes.
const LOCKED_BYTES: usize = 256 << 20;
/// Interval of writing the text file.
const TEXTFILE_INTERVAL: Duration = Duration::from_secs(60);
/// Smallest step of the wall clock that ends a window.
const STEP_NS: u64 = 1_000_000_000;
/// Windows that wait for a disk that is full: a day of five minutes each.
const WAITING_WINDOWS: usize = 288;

/// A running monitor.
#[derive(Debug)]
pub struct Monitor {
    settings: crate::Settings,
    host: Host,
    explains: bool,
    status: Arc<Mutex<MonitorStatus>>,
    /// The same state, which this thread changes; copied to `status` once a tick.
    present: MonitorStatus,
    history: MonitorHistory,
    /// Windows that could not be written yet.
    waiting: VecDeque<MonitorWindow>,
    mark: MonitorMark,
    session: Option<Session>,
    window: Window,
    threshold: Threshold,
    /// Begin of the present gap.
    paused_since: Option<MonoTime>,
    clock: WallClock,
    textfile_due: Instant,
    /// CPU time up to the last window.
    cpu_time: Option<Span>,
}

impl Monitor {
    /// Starts measuring. Errors: when another punctual measures here, the history cannot be used, or the threads cannot
    /// be set up.
    pub fn start(settings: crate::Settings, hooks: &Hooks<'_>) -> Result<Monitor, MonitorError> {
        let mark = MonitorMark::set().map_err(|err| match err {
            LockError::Monitored => {
                MonitorError::Lock("another monitor measures this machine; end it first".to_owned())
            }
            err => MonitorError::Lock(err.to_string()),
        })?;
        punctual_sys::memory::use_one_arena();
        // With less, an allocation could fail some day.
        let locked = punctual_sys::memory::try_to_lock(LOCKED_BYTES).and_then(|()| punctual_sys::memory::lock_all());
        if let Err(err) = &locked {
            (hooks.note)(&format!(
                "cannot lock memory ({err}): page faults of the monitor can make a wake-up late; raise `ulimit -l`, or run \
                 as root"
            ));
        }
        let host = punctual_host::snapshot(&HostFs::here());
        let allowed =
            punctual_sys::sched::affinity(0).map_err(|err| MonitorError::Setting("read the affinity", err))?;
        let absent = settings.cpus.minus(&allowed);
        if !absent.is_empty() {
            let reason = format!("cannot use CPU {absent}: this process may use {allowed} (--cpus)");
            return Err(MonitorError::Session(reason));
        }
        // This thread and those that it creates leave the measured CPUs if there are others.
        let others = allowed.minus(&settings.cpus);
        if !others.is_empty() {
            punctual_sys::sched::set_affinity(0, &others)
                .map_err(|err| MonitorError::Setting("leave the measured CPUs", err))?;
        }
        let (session, reason) = Session::start(&settings, settings.explains, &host)?;
        let unexplained = match &reason {
            _ if !settings.explains => Some("--no-explain".to_owned()),
            Some(err) => Some(err.to_string()),
            None => None,
        };
        let start = MonitorStart {
            format: MONITOR_FORMAT,
            tool: punctual_model::TOOL.to_owned(),
            started_unix_ms: unix_ms_now(),
            hostname: host.hostname.clone(),
            kernel_release: host.kernel_release.clone(),
            cpus: settings.cpus.clone(),
            policy: settings.policy,
            period: settings.period,
            window: settings.window,
            unexplained,
            memory_locked: locked.is_ok(),
        };
        let (history, last) = MonitorHistory::open(&settings.dir, start.clone())?;
        let clock = wall_clock();
        let now = punctual_sys::clock::monotonic();
        let mut window = Window::begin(now, clock, settings.window, settings.cpus.iter());
        let mut present = MonitorStatus::at_start(start, None);
        if let Some(last) = last {
            let gap = MonitorGap {
                started_unix_ms: last.ended_unix_ms,
                ended_unix_ms: clock.unix_ms(now),
                reason: GapReason::NotRunning,
            };
            if gap.started_unix_ms < gap.ended_unix_ms {
                window.gap(gap);
            }
            let cpus: CpuSet = last.cpus.iter().map(|cpu| cpu.cpu).collect();
            present.last = Some(Arc::new(last)).filter(|_| cpus == settings.cpus);
        }
        Ok(Monitor {
            explains: settings.explains && reason.is_none(),
            threshold: Threshold::new(settings.above),
            status: Arc::new(Mutex::new(present.clone())),
            present,
            history,
            waiting: VecDeque::new(),
            mark,
            session: Some(session),
            window,
            paused_since: None,
            clock,
            textfile_due: Instant::now(),
            cpu_time: cpu_time(),
            host,
            settings,
        })
    }

    /// What this monitor does and does not, as it was started.
    pub fn settings(&self) -> &MonitorStart {
        &self.present.start
    }

    /// The file of the history.
    pub fn history(&self) -> &std::path::Path {
        self.history.path()
    }

    /// The metrics, for another thread.
    pub fn page(&self, metrics: fn(&MonitorStatus) -> String) -> impl Fn() -> String + Send + Sync + 'static {
        let status = Arc::clone(&self.status);
        move || {
            let status = status.lock().unwrap_or_else(PoisonError::into_inner).clone();
            metrics(&status)
        }
    }

    /// Measures until a stop is requested. The window until then is kept, too. Errors: when a thread cannot measure any
    /// more, or the text file cannot be written for the first time.
    pub fn run(mut self, hooks: &Hooks<'_>) -> Result<(), MonitorError> {
        if let Some(path) = self.settings.textfile.clone() {
            // An error in the path is reported at once, later ones once a window.
            self.write_textfile(hooks).map_err(|source| MonitorError::Textfile { path, source })?;
        }
        let mut tick = Instant::now();
        loop {
            tick = (tick + if self.session.is_some() { TICK } else { PAUSED_TICK }).max(Instant::now());
            let is_over = (hooks.wait)(tick);
            let outcome = self.tick(hooks);
            if is_over || outcome.is_err() {
                self.finish(hooks);
                return outcome;
            }
        }
    }

    fn tick(&mut self, hooks: &Hooks<'_>) -> Result<(), MonitorError> {
        self.collect()?;
        self.follow_clock(hooks)?;
        while punctual_sys::clock::monotonic() >= self.window.ends {
            self.end_window(hooks)?;
        }
        match &self.session {
            Some(_) if self.mark.is_machine_taken() => self.pause(hooks),
            None if !self.mark.is_machine_taken() => self.resume(hooks)?,
            _ => {}
        }
        if let Some(session) = &self.session {
            session.set_threshold(self.threshold.above(self.window.worst()));
        }
        self.publish();
        if self.settings.textfile.is_some() && Instant::now() >= self.textfile_due {
            // A full disk is reported when a window ends.
            let _ = self.write_textfile(hooks);
        }
        Ok(())
    }

    /// Takes wake-ups and explanations from the other threads.
    fn collect(&mut self) -> Result<(), MonitorError> {
        let Some(session) = &mut self.session else { return Ok(()) };
        let measured = session.collect(&mut self.window, &mut self.present.cpus, self.settings.period)?;
        self.count_measured(measured);
        let Some(session) = &mut self.session else { return Ok(()) };
        for report in session.reports() {
            match report {
                SpikeReport::Explained(explanation) => {
                    self.threshold.explained(explanation.latency);
                    if let Some(share) = explanation.blame() {
                        *self.present.causes.entry((explanation.cpu, share.cause)).or_default() += 1;
                    }
                    let due = MonoTime(u64::try_from(explanation.due_ns).unwrap_or(0));
                    self.window.spike(self.clock.unix_ms(due), *explanation);
                }
                SpikeReport::NotCovered(_) => {
                    self.present.not_covered += 1;
                    self.window.not_covered();
                }
            }
        }
        Ok(())
    }

    fn count_measured(&mut self, time: Span) {
        self.present.measured = Span(self.present.measured.ns().saturating_add(time.ns()));
    }

    /// Ends the window when the wall clock was set or the machine was suspended.
    fn follow_clock(&mut self, hooks: &Hooks<'_>) -> Result<(), MonitorError> {
        let clock = wall_clock();
        let step = clock.ahead_ns - self.clock.ahead_ns;
        if step.unsigned_abs() < STEP_NS {
            // Slewed, or set by less than a second: the next window takes it.
            return Ok(());
        }
        let now = punctual_sys::clock::monotonic();
        self.count_pause(now);
        let (before, after) = (self.clock.unix_ms(now), clock.unix_ms(now));
        self.clock = clock;
        self.end_window(hooks)?;
        // A clock that was set back leaves no time out.
        if step > 0 {
            self.gap(MonitorGap { started_unix_ms: before, ended_unix_ms: after, reason: GapReason::Clock });
        }
        Ok(())
    }

    fn gap(&mut self, gap: MonitorGap) {
        let length = Span(gap.ended_unix_ms.saturating_sub(gap.started_unix_ms).saturating_mul(1_000_000));
        let sum = self.present.gaps.entry(gap.reason).or_default();
        *sum = Span(sum.ns().saturating_add(length.ns()));
        self.window.gap(gap);
    }

    /// Adds the pause so far to the window.
    fn count_pause(&mut self, until: MonoTime) {
        if let Some(since) = &mut self.paused_since {
            let since = std::mem::replace(since, until);
            let (started_unix_ms, ended_unix_ms) = (self.clock.unix_ms(since), self.clock.unix_ms(until));
            self.gap(MonitorGap { started_unix_ms, ended_unix_ms, reason: GapReason::Measurement });
        }
    }

    /// Ends the present window, writes it, and begins the next one.
    fn end_window(&mut self, hooks: &Hooks<'_>) -> Result<(), MonitorError> {
        let now = punctual_sys::clock::monotonic();
        self.count_pause(now.min(self.window.ends));
        self.threshold.window_ended(self.window.worst());
        let (length, cpus) = (self.settings.window, self.settings.cpus.iter());
        self.clock = wall_clock();
        let next = Window::begin(now, self.clock, length, cpus);
        let (mut ended, next) = std::mem::replace(&mut self.window, next).end(now, self.clock, length);
        self.window = next;
        let used = cpu_time();
        ended.cpu_time_us = used.zip(self.cpu_time).map(|(now, before)| now.ns().saturating_sub(before.ns()) / 1_000);
        (self.cpu_time, self.present.cpu_time) = (used, used);
        if ended.measured == Span(0) && ended.gaps.is_empty() {
            // It had just begun when the monitor was ended.
            return Ok(());
        }
        (hooks.window)(&ended);
        self.present.last = Some(Arc::new(ended.clone()));
        self.waiting.push_back(ended);
        self.write_windows(hooks);
        // The textfile is to have each window.
        self.textfile_due = Instant::now();
        self.session.as_ref().map_or(Ok(()), Session::check)?;
        Ok(())
    }

    /// Writes the windows that wait. A full disk costs nothing for a day.
    fn write_windows(&mut self, hooks: &Hooks<'_>) {
        while let Some(window) = self.waiting.front() {
            if let Err(err) = self.history.window(window) {
                (hooks.note)(&format!("{err}; {} windows wait in memory", self.waiting.len()));
                break;
            }
            self.waiting.pop_front();
        }
        while self.waiting.len() > WAITING_WINDOWS {
            self.waiting.pop_front();
            self.present.unwritten += 1;
        }
    }

    /// Ends the threads and the trace, and tells the holder of the machine lock by the mark.
    fn pause(&mut self, hooks: &Hooks<'_>) {
        if let Some(mut session) = self.session.take() {
            session.end(self.settings.period);
            // An error is one of a thread that has ended anyway.
            let measured = session.collect(&mut self.window, &mut self.present.cpus, self.settings.period);
            self.count_measured(measured.unwrap_or(Span(0)));
            drop(session);
        }
        self.paused_since = Some(punctual_sys::clock::monotonic());
        self.mark.clear();
        (hooks.note)("paused: another punctual measures this machine");
    }

    /// Measures again, unless another measurement has begun meanwhile.
    fn resume(&mut self, hooks: &Hooks<'_>) -> Result<(), MonitorError> {
        match self.mark.set_again() {
            Ok(()) => {}
            Err(LockError::Held { .. } | LockError::Monitored) => return Ok(()),
            Err(err) => return Err(MonitorError::Lock(err.to_string())),
        }
        let (session, reason) = Session::start(&self.settings, self.explains, &self.host)?;
        self.session = Some(session);
        self.count_pause(punctual_sys::clock::monotonic());
        self.paused_since = None;
        (hooks.note)("measuring again");
        if let Some(err) = reason {
            (hooks.note)(&format!("late wake-ups are not explained any more: {err}"));
            self.explains = false;
        }
        Ok(())
    }

    fn publish(&mut self) {
        self.present.is_paused = self.session.is_none();
        self.present.cpu_time = cpu_time().or(self.present.cpu_time);
        self.status.lock().unwrap_or_else(PoisonError::into_inner).clone_from(&self.present);
    }

    fn write_textfile(&mut self, hooks: &Hooks<'_>) -> std::io::Result<()> {
        self.textfile_due = Instant::now() + TEXTFILE_INTERVAL;
        let Some(path) = &self.settings.textfile else { return Ok(()) };
        punctual_host::file::replace(path, (hooks.metrics)(&self.present).as_bytes())
    }

    /// Keeps what was measured last, and removes the text file, whose numbers would look like present ones forever.
    fn finish(&mut self, hooks: &Hooks<'_>) {
        if let Some(session) = &mut self.session {
            session.end(self.settings.period);
        }
        let _ = self.collect();
        self.session = None;
        let _ = self.end_window(hooks);
        self.mark.clear();
        if let Some(path) = &self.settings.textfile {
            let _ = std::fs::remove_file(path);
        }
    }
}

fn cpu_time() -> Option<Span> {
    punctual_sys::usage::cpu_time_of(std::process::id()).ok()
}

fn wall_clock() -> WallClock {
    WallClock { ahead_ns: punctual_host::offset_from_monotonic_ns(ClockId::Realtime) }
}

fn unix_ms_now() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(0)
}
