//! Late wake-ups of a guest, explained through both kernels.
//!
//! The states of the guest's threads on the host cut its explanation: its own causes hold while the vCPU ran.

use super::shares;
use super::totals::Totals;
use punctual_model::{
    Cause, Cell, Evidence, ExplainRecord, Explanation, GuestStop, HostLanes, HostPiece, HostState, NotCovered, Order,
    Owner, Phase, PhaseLength, Segment, Span,
};

/// Owner of the time in which no thread of the host is to blame.
const EMULATOR: &str = "the emulator";
/// Owner of the time in which all threads of the guest were stopped.
const SIGNAL: &str = "a signal, a debugger or QMP";
/// Reasons why the guest's trace does not say more.
const NOT_COVERED: &str = "the guest's trace does not explain it";
const MORE_PARTS: &str = "the guest's explanation has more parts than are kept";

/// Explains the late wake-ups of a guest with the host's part of each: `lanes` of `subjects(record)`, in this order.
/// `error_ns` is that of the guest's times on the host; `keep` explanations are kept.
pub fn join(record: &mut ExplainRecord, cell: &Cell, lanes: Vec<HostLanes>, error_ns: u64, keep: usize) {
    let all = subjects(record, cell);
    let known = record.worst.len();
    if usize::try_from(record.explained).is_ok_and(|explained| explained > known) {
        record.missing.push(format!("causes on the host: those of the {known} latest of {}", record.explained));
    }
    let mut worst: Vec<_> = all.into_iter().zip(lanes).map(|(one, lanes)| on_host(one, lanes, error_ns)).collect();
    let mut totals = Totals::default();
    worst.iter().for_each(|one| totals.add(one));
    let added = u64::try_from(record.others_not_covered.len()).unwrap_or(0);
    record.explained += added;
    record.not_covered = record.not_covered.saturating_sub(added);
    if !std::mem::take(&mut record.others_not_covered).is_empty() {
        record.latest_not_covered = None;
    }
    record.host_error_ns = Some(error_ns);
    (record.late, record.evidence_ns, record.causes) = (Span(totals.late_ns), totals.evidence_ns, totals.causes());
    record.layers = totals.layers();
    worst.order_by_key(|one| std::cmp::Reverse(one.latency));
    worst.truncate(keep);
    record.worst = worst;
}

/// The lanes of a wake-up due at `due_ns` of the host, with the times for which QEMU had stopped the guest: its vCPU
/// then sleeps like an idle one.
pub fn with_stops(mut lanes: HostLanes, due_ns: u64, stops: &[GuestStop]) -> HostLanes {
    for stop in stops {
        let (from, to) = (stop.from_ns.saturating_sub(due_ns), stop.to_ns.saturating_sub(due_ns));
        let parts = |piece: &HostPiece| {
            let (begin, end) = (piece.at.ns(), piece.at.ns() + piece.length.ns());
            let (a, b) = (from.clamp(begin, end), to.clamp(begin, end));
            let part = |at: u64, to: u64| HostPiece { at: Span(at), length: Span(to - at), ..piece.clone() };
            let stopped =
                HostPiece { state: HostState::Stopped, cpu: None, owner: None, is_inferred: false, ..part(a, b) };
            [part(begin, a), stopped, part(b, end)]
        };
        let cut = lanes.vcpu.iter().flat_map(parts).filter(|piece| piece.length.ns() > 0);
        lanes.vcpu = cut.collect();
    }
    lanes
}

/// The late wake-ups of a guest that a host may explain: the explained ones, and those that the guest's trace does not
/// cover.
pub fn subjects(record: &ExplainRecord, cell: &Cell) -> Vec<Explanation> {
    let others = record.others_not_covered.iter().map(|one| not_traced(one, cell));
    record.worst.iter().cloned().chain(others).collect()
}

/// A wake-up of which the guest's trace says nothing.
fn not_traced(one: &NotCovered, cell: &Cell) -> Explanation {
    let NotCovered { cpu, due_ns, latency } = *one;
    let period = cell.period_on(cpu);
    let [period_ns, lead_ns] = [period.ns(), cell.lead_of(period).ns()].map(|ns| i64::try_from(ns).unwrap_or(i64::MAX));
    let segment = Segment {
        at: Span(0),
        length: latency,
        phase: Phase::WholeWakeUp,
        owner: Owner { name: "?".to_owned(), pid: None },
        cause: Cause::Unknown,
        or: None,
        evidence: Evidence::Undetermined,
        place: Some(NOT_COVERED.to_owned()),
    };
    Explanation {
        cpu,
        cycle: due_ns.saturating_sub(lead_ns).div_euclid(period_ns),
        due_ns,
        latency,
        phases: vec![PhaseLength { phase: Phase::WholeWakeUp, length: latency }],
        shares: shares::roll_up(std::slice::from_ref(&segment)),
        segments: vec![segment],
        ..Explanation::default()
    }
}

/// The explanation with the host's part.
fn on_host(guest: Explanation, lanes: HostLanes, error_ns: u64) -> Explanation {
    let latency = guest.latency.ns();
    let phases = guest.phases.iter().scan(0, |at, phase| {
        let from = *at;
        *at += phase.length.ns();
        Some((from, *at, phase.phase))
    });
    let phases: Vec<_> = phases.collect();
    let ends = |piece: &HostPiece| [piece.at.ns(), piece.at.ns() + piece.length.ns()];
    let mut cuts: Vec<u64> = phases.iter().flat_map(|(from, to, _)| [*from, *to]).collect();
    cuts.extend(guest.segments.iter().flat_map(|one| [one.at.ns(), one.at.ns() + one.length.ns()]));
    cuts.extend(lanes.vcpu.iter().chain(&lanes.emulator).flat_map(ends));
    cuts.extend([0, latency]);
    cuts.retain(|at| *at <= latency);
    cuts.sort_unstable();
    cuts.dedup();
    let mut segments: Vec<Segment> = Vec::new();
    for (from, to) in cuts.iter().zip(cuts.iter().skip(1)).map(|(from, to)| (*from, *to)) {
        let phase = phases.iter().find(|(begin, end, _)| (*begin..*end).contains(&from)).map(|(.., phase)| *phase);
        let own = guest.segments.iter().find(|one| (one.at.ns()..one.at.ns() + one.length.ns()).contains(&from));
        let at = |lane: &[HostPiece]| {
            lane.iter().find(|piece| (piece.at.ns()..piece.at.ns() + piece.length.ns()).contains(&from)).cloned()
        };
        let part = Part { phase: phase.unwrap_or(Phase::WholeWakeUp), own, error_ns };
        let judged = part.judge(guest.cpu, at(&lanes.vcpu), at(&lanes.emulator));
        let next = Segment { at: Span(from), length: Span(to - from), ..judged };
        let is_same = |last: &&mut Segment| {
            let moved = Segment { at: last.at, length: last.length, ..next.clone() };
            moved == **last
        };
        match segments.last_mut().filter(is_same) {
            Some(last) => last.length = Span(to - last.at.ns()),
            None => segments.push(next),
        }
    }
    let shares = shares::roll_up(&segments);
    shares::keep_longest(&mut segments, |segment| (segment.at, segment.length));
    Explanation { shares, segments, host: Some(shortened(lanes)), ..guest }
}

/// One interval in which nothing changes.
struct Part<'a> {
    phase: Phase,
    /// The guest's own explanation of it, if it was kept.
    own: Option<&'a Segment>,
    error_ns: u64,
}

impl Part<'_> {
    /// Its cause, with the states of both threads.
    fn judge(&self, cpu: u32, vcpu: Option<HostPiece>, emulator: Option<HostPiece>) -> Segment {
        let Some(vcpu) = vcpu else { return self.unknown("the host's trace does not cover it") };
        match vcpu.state {
            HostState::Running => self.guest(),
            HostState::Waiting => {
                self.waiting(Cause::VcpuOffTheCpu, &vcpu, |on| format!("vCPU {cpu} waited for host CPU {on}"))
            }
            HostState::Stopped => {
                let owner = Owner { name: SIGNAL.to_owned(), pid: None };
                let place = Some(format!("vCPU {cpu} was stopped on the host"));
                self.segment(Cause::GuestStopped, owner, self.evidence(&vcpu), place)
            }
            HostState::Unknown => self.unknown("events of the host were lost"),
            HostState::Asleep => match emulator {
                Some(emulator) if emulator.state == HostState::Waiting => {
                    self.waiting(Cause::EmulatorOffTheCpu, &emulator, |on| {
                        format!("the emulator waited for host CPU {on}")
                    })
                }
                Some(emulator) if emulator.state == HostState::Running => {
                    let owner = Owner { name: EMULATOR.to_owned(), pid: None };
                    let place = Some(format!("vCPU {cpu} slept"));
                    self.segment(Cause::Emulation, owner, self.evidence(&emulator), place)
                }
                Some(emulator) if emulator.state == HostState::Asleep => {
                    self.unknown("vCPU and emulator slept on the host")
                }
                _ => self.unknown("events of the host were lost"),
            },
        }
    }

    /// The guest's own cause while its vCPU ran: what it takes for a stalled CPU is the emulator's work.
    fn guest(&self) -> Segment {
        let Some(own) = self.own.filter(|own| own.cause != Cause::Unknown) else {
            let owner = Owner { name: "the guest".to_owned(), pid: None };
            let place = Some(self.own.map_or(MORE_PARTS, |_| NOT_COVERED).to_owned());
            return self.segment(Cause::InsideTheGuest, owner, Evidence::Direct, place);
        };
        let mut segment = Segment { phase: self.phase, ..own.clone() };
        if own.cause == Cause::CpuStalled {
            segment.owner = Owner { name: EMULATOR.to_owned(), pid: None };
            (segment.cause, segment.place) = (Cause::Emulation, Some("the vCPU's thread ran on the host".to_owned()));
        } else if own.or == Some(Cause::CpuStalled) {
            segment.or = Some(Cause::Emulation);
        }
        segment
    }

    fn waiting(&self, cause: Cause, piece: &HostPiece, place: impl Fn(u32) -> String) -> Segment {
        let owner = piece.owner.clone().unwrap_or_else(|| Owner { name: "?".to_owned(), pid: None });
        self.segment(cause, owner, self.evidence(piece), piece.cpu.map(place))
    }

    /// An interval shorter than the error of its ends may belong beside it.
    fn evidence(&self, piece: &HostPiece) -> Evidence {
        let is_short = piece.length.ns() < 2 * self.error_ns;
        if is_short || piece.is_inferred { Evidence::Inferred } else { Evidence::Direct }
    }

    fn unknown(&self, place: &str) -> Segment {
        let owner = self.own.map_or_else(|| Owner { name: "?".to_owned(), pid: None }, |own| own.owner.clone());
        self.segment(Cause::Unknown, owner, Evidence::Undetermined, Some(place.to_owned()))
    }

    fn segment(&self, cause: Cause, owner: Owner, evidence: Evidence, place: Option<String>) -> Segment {
        Segment { at: Span(0), length: Span(0), phase: self.phase, owner, cause, or: None, evidence, place }
    }
}

/// The lanes with their longest pieces, as many as a picture needs.
fn shortened(mut lanes: HostLanes) -> HostLanes {
    for lane in [&mut lanes.vcpu, &mut lanes.emulator] {
        shares::keep_longest(lane, |piece| (piece.at, piece.length));
    }
    lanes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(at: u64, length: u64, state: HostState, owner: Option<&str>) -> HostPiece {
        let owner = owner.map(|name| Owner { name: name.to_owned(), pid: Some(9) });
        HostPiece {
            at: Span(at),
            length: Span(length),
            state,
            cpu: owner.as_ref().map(|_| 1),
            owner,
            is_inferred: false,
        }
    }

    fn segment(at: u64, length: u64, cause: Cause, or: Option<Cause>) -> Segment {
        Segment {
            at: Span(at),
            length: Span(length),
            phase: Phase::WakeupToSwitch,
            owner: Owner { name: "swapper".to_owned(), pid: None },
            cause,
            or,
            evidence: Evidence::Direct,
            place: None,
        }
    }

    fn guest(segments: Vec<Segment>) -> Explanation {
        Explanation {
            cpu: 0,
            cycle: 3,
            due_ns: 3_000_000,
            latency: Span(1_000_000),
            phases: vec![
                PhaseLength { phase: Phase::ExpiryToInterrupt, length: Span(400_000) },
                PhaseLength { phase: Phase::WakeupToSwitch, length: Span(600_000) },
            ],
            segments,
            ..Explanation::default()
        }
    }

    fn shares(one: &Explanation) -> Vec<(Cause, &str, u64)> {
        one.shares.iter().map(|share| (share.cause, share.owner.name.as_str(), share.total.ns())).collect()
    }

    #[test]
    fn the_guests_own_cause_holds_while_its_vcpu_ran() {
        use HostState::{Asleep, Running, Stopped, Waiting};
        let lanes = HostLanes {
            vcpu: vec![
                piece(0, 300_000, Asleep, None),
                piece(300_000, 200_000, Waiting, Some("load/cpu")),
                piece(500_000, 350_000, Running, None),
                piece(850_000, 150_000, Stopped, None),
            ],
            emulator: vec![
                piece(0, 50_000, Asleep, None),
                piece(50_000, 150_000, Waiting, Some("kworker")),
                piece(200_000, 800_000, Running, None),
            ],
        };
        let own = vec![
            segment(0, 600_000, Cause::CpuStalled, None),
            segment(600_000, 100_000, Cause::Softirq, None),
            segment(700_000, 300_000, Cause::InterruptsOff, Some(Cause::CpuStalled)),
        ];
        let joined = on_host(guest(own), lanes.clone(), 2_000);
        assert!(joined.is_complete());
        let expected = [
            (Cause::VcpuOffTheCpu, "load/cpu", 200_000),
            (Cause::Emulation, "the emulator", 200_000),
            (Cause::GuestStopped, SIGNAL, 150_000),
            (Cause::EmulatorOffTheCpu, "kworker", 150_000),
            (Cause::InterruptsOff, "swapper", 150_000),
            (Cause::Softirq, "swapper", 100_000),
            (Cause::Unknown, "swapper", 50_000),
        ];
        let mut found = shares(&joined);
        found.order_by_key(|(cause, _, ns)| (std::cmp::Reverse(*ns), expected.iter().position(|one| one.0 == *cause)));
        assert_eq!(found, expected);
        assert_eq!(
            joined.shares.iter().find(|share| share.cause == Cause::InterruptsOff).unwrap().or,
            Some(Cause::Emulation)
        );
        assert_eq!(joined.host, Some(lanes));
    }

    #[test]
    fn a_stop_over_qmp_is_cut_out_of_the_vcpus_lane() {
        let lane = |pieces: &[(u64, u64, HostState)]| HostLanes {
            vcpu: pieces.iter().map(|(at, length, state)| piece(*at, *length, *state, None)).collect(),
            emulator: Vec::new(),
        };
        use HostState::{Asleep, Running, Stopped};
        let before = lane(&[(0, 400, Running), (400, 600, Asleep)]);
        let stop = |from_ns, to_ns| GuestStop { from_ns, to_ns };
        let after = with_stops(before.clone(), 5_000, &[stop(5_300, 5_700), stop(1, 2), stop(9_000, 9_100)]);
        let expected = lane(&[(0, 300, Running), (300, 100, Stopped), (400, 300, Stopped), (700, 300, Asleep)]);
        assert_eq!(after, expected);
        assert_eq!(with_stops(before.clone(), 5_000, &[]), before);
    }

    #[test]
    fn an_interval_shorter_than_the_error_is_not_direct() {
        let lanes = || HostLanes {
            vcpu: vec![
                piece(0, 3_000, HostState::Waiting, Some("load")),
                piece(3_000, 997_000, HostState::Running, None),
            ],
            emulator: Vec::new(),
        };
        let evidence = |error_ns| {
            let joined = on_host(guest(vec![segment(0, 1_000_000, Cause::Softirq, None)]), lanes(), error_ns);
            joined.shares.iter().find(|share| share.cause == Cause::VcpuOffTheCpu).unwrap().evidence
        };
        assert_eq!((evidence(1_500), evidence(1_501)), (Evidence::Direct, Evidence::Inferred));
    }

    #[test]
    fn wake_ups_that_the_guest_did_not_trace_are_explained_by_the_host() {
        let mut cell = crate::testing::cell("none", "other");
        // The thread on CPU 0 has the period of the cell, that on CPU 1 is due 1 ms after it first.
        (cell.conditions.period_step, cell.conditions.warm_up) = (Some(Span(2_000_000)), Span(5_000_000));
        let late = |due_ns, latency| NotCovered { cpu: 0, due_ns, latency: Span(latency) };
        let mut record = ExplainRecord {
            explained: 1,
            not_covered: 2,
            latest_not_covered: Some(late(7_000_000, 20_000)),
            others_not_covered: vec![late(7_000_000, 20_000), late(-1, 10_000)],
            worst: vec![guest(vec![segment(0, 1_000_000, Cause::Softirq, None)])],
            ..ExplainRecord::default()
        };
        let on_cpu_1 = NotCovered { cpu: 1, ..late(7_000_000, 20_000) };
        assert_eq!(not_traced(&on_cpu_1, &cell).cycle, 2);
        let subjects = subjects(&record, &cell);
        assert_eq!(subjects.iter().map(|one| one.cycle).collect::<Vec<_>>(), [3, 7, -1]);
        let lanes = |one: &Explanation| HostLanes {
            vcpu: vec![
                piece(0, 8_000, HostState::Stopped, None),
                piece(8_000, one.latency.ns() - 8_000, HostState::Running, None),
            ],
            emulator: Vec::new(),
        };
        let lanes = subjects.iter().map(lanes).collect();
        join(&mut record, &cell, lanes, 100, 2);
        assert_eq!((record.explained, record.not_covered, record.latest_not_covered), (3, 0, None));
        assert_eq!((record.worst.len(), record.host_error_ns, record.late), (2, Some(100), Span(1_030_000)));
        let expected = [(Cause::InsideTheGuest, "the guest", 12_000), (Cause::GuestStopped, SIGNAL, 8_000)];
        assert_eq!(shares(&record.worst[1]), expected);
        assert!(record.worst.iter().all(Explanation::is_complete) && record.missing.is_empty());
        assert_eq!(record.causes.iter().map(|total| total.total.ns()).sum::<u64>(), 1_030_000);
    }
}
