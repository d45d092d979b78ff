//! The window that is being measured, and the division of wake-ups among windows.

use crate::threshold::KEPT;
use punctual_model::{Explanation, Histogram, MonitorGap, MonitorSpike, MonitorWindow, MonitoredCpu, MonoTime, Span};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct WakeUp {
    /// Position of its CPU among those measured.
    pub(crate) index: usize,
    pub(crate) due: MonoTime,
    /// `woke - due`, ns.
    pub(crate) latency_ns: i64,
    /// Due times missed by it.
    pub(crate) missed: u64,
}

impl WakeUp {
    fn woke(&self) -> MonoTime {
        MonoTime(self.due.0.saturating_add_signed(self.latency_ns))
    }
}

/// The offset between the wall clock and `CLOCK_MONOTONIC`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct WallClock {
    /// `CLOCK_REALTIME - CLOCK_MONOTONIC`, ns.
    pub(crate) ahead_ns: i64,
}

impl WallClock {
    /// The wall time of an instant, ms since 1970-01-01 UTC.
    pub(crate) fn unix_ms(self, instant: MonoTime) -> u64 {
        instant.0.saturating_add_signed(self.ahead_ns) / 1_000_000
    }

    /// The next multiple of `window` of the wall clock after `instant`.
    fn boundary(self, instant: MonoTime, window: Span) -> MonoTime {
        let wall = instant.0.saturating_add_signed(self.ahead_ns);
        let into = wall % window.ns().max(1);
        instant.plus(Span(window.ns() - into))
    }
}

#[derive(Debug, Clone, Default)]
struct CpuWindow {
    cpu: u32,
    histogram: Histogram,
    missed: u64,
    lost: u64,
    /// When the wake-up was due for which its thread still waited at the last look, if it was late by then.
    open_since: Option<MonoTime>,
    worst_due: Option<MonoTime>,
}

/// A window that has not ended.
#[derive(Debug, Clone)]
pub(crate) struct Window {
    started: MonoTime,
    /// Its end: wake-ups from then on belong to the next one.
    pub(crate) ends: MonoTime,
    clock: WallClock,
    cpus: Vec<CpuWindow>,
    measured: Span,
    gaps: Vec<MonitorGap>,
    spikes: Vec<MonitorSpike>,
    explained: u64,
    not_covered: u64,
    /// Wake-ups that belong to later windows.
    later: Vec<WakeUp>,
    /// Measured time, from and until, that belongs to later windows.
    measured_later: Vec<(MonoTime, MonoTime)>,
}

impl Window {
    /// A window that begins at `now` and ends at the next multiple of `length`.
    pub(crate) fn begin(now: MonoTime, clock: WallClock, length: Span, cpus: impl Iterator<Item = u32>) -> Window {
        let cpus = cpus.map(|cpu| CpuWindow { cpu, ..CpuWindow::default() }).collect();
        Window {
            started: now,
            ends: clock.boundary(now, length),
            clock,
            cpus,
            measured: Span(0),
            gaps: Vec::new(),
            spikes: Vec::new(),
            explained: 0,
            not_covered: 0,
            later: Vec::new(),
            measured_later: Vec::new(),
        }
    }

    /// Takes a wake-up: of this window, or of a later one.
    pub(crate) fn take(&mut self, wake_up: WakeUp) {
        if wake_up.woke() >= self.ends {
            self.later.push(wake_up);
            return;
        }
        let Some(cpu) = self.cpus.get_mut(wake_up.index) else { return };
        if cpu.histogram.max_ns.is_none_or(|max| wake_up.latency_ns > max) {
            cpu.worst_due = Some(wake_up.due);
        }
        cpu.histogram.record(wake_up.latency_ns);
        cpu.missed += wake_up.missed;
    }

    /// Adds lost wake-ups of a CPU.
    pub(crate) fn lost(&mut self, index: usize, lost: u64) {
        if let Some(cpu) = self.cpus.get_mut(index) {
            cpu.lost += lost;
        }
    }

    /// States since when a CPU's wait is open, if it is late by now.
    pub(crate) fn open(&mut self, index: usize, since: Option<MonoTime>) {
        if let Some(cpu) = self.cpus.get_mut(index) {
            cpu.open_since = since;
        }
    }

    /// Adds measured time. What is after the end of the window belongs to later ones.
    pub(crate) fn measured(&mut self, from: MonoTime, until: MonoTime) {
        let of_this = Span(until.min(self.ends).0.saturating_sub(from.0));
        self.measured = Span(self.measured.ns().saturating_add(of_this.ns()));
        if until > self.ends {
            self.measured_later.push((from.max(self.ends), until));
        }
    }

    /// Adds a gap.
    pub(crate) fn gap(&mut self, gap: MonitorGap) {
        self.gaps.push(gap);
    }

    /// Adds an explained wake-up, which was due at this wall time. The worst are kept.
    pub(crate) fn spike(&mut self, due_unix_ms: u64, explanation: Explanation) {
        self.explained += 1;
        let at = self.spikes.partition_point(|kept| kept.explanation.latency >= explanation.latency);
        let explanation = Explanation { segments: Vec::new(), ..explanation };
        self.spikes.insert(at, MonitorSpike { due_unix_ms, explanation });
        self.spikes.truncate(KEPT);
    }

    /// Counts a late wake-up that no trace covers.
    pub(crate) fn not_covered(&mut self) {
        self.not_covered += 1;
    }

    /// The latencies of the CPU with the largest one.
    pub(crate) fn worst(&self) -> &Histogram {
        static NONE: std::sync::OnceLock<Histogram> = std::sync::OnceLock::new();
        let worst = self.cpus.iter().map(|cpu| &cpu.histogram).max_by_key(|histogram| histogram.max_ns);
        worst.unwrap_or_else(|| NONE.get_or_init(Histogram::default))
    }

    /// Ends the window at `now`, at the latest at its end, and returns it with the next one, which gets the wake-ups
    /// that do not belong to this one.
    pub(crate) fn end(self, now: MonoTime, clock: WallClock, length: Span) -> (MonitorWindow, Window) {
        let ended = now.min(self.ends);
        let unix_ms = |instant| self.clock.unix_ms(instant);
        let cpus = self.cpus.iter().map(|cpu| cpu.cpu);
        let mut next = Window::begin(ended, clock, length, cpus);
        let mut open: Vec<_> = self.cpus.iter().map(|cpu| cpu.open_since).collect();
        (0..).zip(&open).for_each(|(index, since)| next.open(index, *since));
        // What woke after the end was open then.
        for WakeUp { index, due, .. } in self.later.iter().filter(|one| one.missed > 0) {
            if let Some(since) = open.get_mut(*index) {
                *since = Some(since.map_or(*due, |since| since.min(*due)));
            }
        }
        let late_at_end = |since: MonoTime| ended.0.checked_sub(since.0).filter(|late| *late > 0).map(Span);
        self.later.into_iter().for_each(|wake_up| next.take(wake_up));
        self.measured_later.into_iter().for_each(|(from, until)| next.measured(from, until));
        let finished = MonitorWindow {
            started_unix_ms: unix_ms(self.started),
            ended_unix_ms: unix_ms(ended),
            measured: self.measured,
            cpus: self
                .cpus
                .into_iter()
                .zip(open)
                .map(|(cpu, since)| MonitoredCpu {
                    cpu: cpu.cpu,
                    missed: cpu.missed,
                    lost: cpu.lost,
                    open: since.and_then(late_at_end),
                    worst_unix_ms: cpu.worst_due.map(unix_ms),
                    histogram: cpu.histogram,
                })
                .collect(),
            gaps: self.gaps,
            explained: self.explained,
            not_covered: self.not_covered,
            spikes: self.spikes,
            cpu_time_us: None,
        };
        (finished, next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn wake_up(due: u64, latency_ns: i64) -> WakeUp {
        WakeUp { index: 0, due: MonoTime(due), latency_ns, missed: 1 }
    }

    #[test]
    fn a_wake_up_belongs_to_the_window_in_which_it_woke() {
        let clock = WallClock { ahead_ns: 7_000_000_000 };
        let length = Span(10 * SECOND);
        let mut window = Window::begin(MonoTime(SECOND), clock, length, [3].into_iter());
        assert_eq!(window.ends, MonoTime(3 * SECOND), "10 s by the wall clock");
        let end = 3 * SECOND;
        for (due, latency) in
            [(end - 10, 9), (end - 10, 10), (end - 1, 500), (end, -1), (end + 10 * SECOND, 5), (end - 20, 2)]
        {
            window.take(wake_up(due, latency));
        }
        window.measured(MonoTime(end - 5), MonoTime(end + 10 * SECOND + 3));
        window.open(0, Some(MonoTime(end + 15 * SECOND)));
        window.lost(0, 2);
        let (first, second) = window.end(MonoTime(end + 300), clock, length);
        assert_eq!((first.started_unix_ms, first.ended_unix_ms), (8_000, 10_000));
        assert_eq!(first.measured, Span(5));
        let [cpu] = &first.cpus[..] else { panic!("one CPU") };
        assert_eq!((cpu.cpu, cpu.histogram.n, cpu.missed, cpu.lost, cpu.open), (3, 3, 3, 2, Some(Span(10))));
        assert_eq!((cpu.histogram.max_ns, cpu.worst_unix_ms), (Some(9), Some(9_999)));
        let (second, third) = second.end(MonoTime(end + 20 * SECOND), clock, length);
        assert_eq!(second.cpus[0].open, None, "each wait of it ended in it");
        assert_eq!((second.ended_unix_ms, second.cpus[0].histogram.n, second.measured), (20_000, 2, length));
        let (third, _) = third.end(MonoTime(end + 12 * SECOND), clock, length);
        assert_eq!((third.started_unix_ms, third.ended_unix_ms, third.cpus[0].histogram.n), (20_000, 22_000, 1));
        assert_eq!(third.measured, Span(3));
        assert_eq!(third.cpus[0].open, None, "it opened later");
    }

    #[test]
    fn the_worst_explanations_are_kept_and_all_are_counted() {
        let explanation = |ns| Explanation { latency: Span(ns), ..Explanation::default() };
        let clock = WallClock { ahead_ns: 0 };
        let mut window = Window::begin(MonoTime(0), clock, Span(SECOND), [0].into_iter());
        for ns in [5, 9, 2, 7, 8] {
            window.spike(ns, explanation(ns));
        }
        window.not_covered();
        let (ended, next) = window.end(MonoTime(SECOND), clock, Span(SECOND));
        assert_eq!(ended.spikes.iter().map(|spike| spike.due_unix_ms).collect::<Vec<_>>(), [9, 8, 7]);
        assert_eq!((ended.explained, ended.not_covered), (5, 1));
        assert_eq!(next.ends, MonoTime(2 * SECOND), "a boundary begins a window");
    }
}
