//! Recorded traces of hand-made events: read in parts, with losses, and without what other programs leave out.

use super::*;
use crate::watch::script::{ME, OTHER, Script};
use punctual_model::WatchTarget;
use std::convert::Infallible;
use syscalls::Sysno;

/// The activations of [`a_loop`], and the late one of 500 us more.
const LOOPS: u64 = 120;
const LATE: u64 = 100;

/// A trace in memory, whose parts have some events of one CPU after the other.
#[derive(Debug)]
struct InMemory {
    trace: Trace,
    events_of_part: usize,
    at: Vec<usize>,
    windows: u64,
}

impl InMemory {
    fn new(script: &Script, events_of_part: usize) -> InMemory {
        InMemory { trace: script.trace.clone(), events_of_part, at: vec![0; 2], windows: 0 }
    }

    /// Without the events for which `is_left_out` holds.
    fn without(mut self, is_left_out: impl Fn(What) -> bool) -> InMemory {
        self.trace.cpus.iter_mut().for_each(|cpu| cpu.events.retain(|event| !is_left_out(event.what)));
        self
    }
}

impl Recording for InMemory {
    type Error = Infallible;

    fn n_cpus(&self) -> usize {
        2
    }

    fn rewind(&mut self) {
        self.at = vec![0; 2];
    }

    fn next(&mut self, part: &mut Trace) -> Result<Option<u64>, Infallible> {
        let known_ns = |trace: &InMemory, cpu: usize| {
            let events = &trace.trace.cpus[cpu].events;
            let at = trace.at[cpu];
            (at < events.len()).then(|| at.checked_sub(1).map_or(0, |last| events[last].at_ns))
        };
        let Some((_, cpu)) = (0..2).filter_map(|cpu| Some((known_ns(self, cpu)?, cpu))).min() else { return Ok(None) };
        let of_cpu = &self.trace.cpus[cpu];
        let (from, end) = (self.at[cpu], (self.at[cpu] + self.events_of_part).min(of_cpu.events.len()));
        part.cpus[cpu].events.extend(&of_cpu.events[from..end]);
        let (first_ns, last_ns) = (of_cpu.events[from].at_ns, of_cpu.events[end - 1].at_ns);
        part.cpus[cpu].is_cut = from == 0 && of_cpu.is_cut;
        let is_in_part = |at_ns: &&u64| from > 0 && (first_ns..=last_ns).contains(at_ns);
        part.cpus[cpu].lost_ns.extend(of_cpu.lost_ns.iter().filter(is_in_part));
        part.names.extend(self.trace.names.clone());
        self.at[cpu] = end;
        Ok(Some((0..2).filter_map(|cpu| known_ns(self, cpu)).min().unwrap_or(u64::MAX)))
    }

    fn window(&mut self, times_ns: &Range<u64>) -> Result<Option<Trace>, Infallible> {
        self.windows += 1;
        let mut trace = self.trace.clone();
        trace.cpus.iter_mut().for_each(|cpu| cpu.events.retain(|event| times_ns.contains(&event.at_ns)));
        Ok(Some(trace))
    }

    fn share(&self) -> f64 {
        0.0
    }

    fn function(&self, _: u64) -> Option<String> {
        None
    }
}

/// A loop with a period of 2 ms, in which a thread on the other CPU sleeps once; one activation takes 550 us, of which
/// it waits 400 us for that thread.
fn a_loop() -> Script {
    let mut script = Script::new().waits_until(100_000, Script::PERIOD_NS);
    for cycle in 1..=LOOPS {
        let due_ns = cycle * Script::PERIOD_NS;
        script = script.runs_at(due_ns);
        if cycle == LATE {
            script = script
                .enter(due_ns + 20_000, Sysno::futex, [7, 128, 2])
                .sleep(due_ns + 30_000, 0)
                .switch_on(1, due_ns + 40_000, OTHER, 0)
                .woken_by(1, due_ns + 430_000)
                .switch(due_ns + 440_000, ME, 0)
                .exit(due_ns + 450_000, Sysno::futex, 0)
                .switch_on(1, due_ns + 460_000, 0, 1);
        }
        let end_ns = due_ns + if cycle == LATE { 550_000 } else { 50_000 };
        script = script.waits_until(end_ns, due_ns + Script::PERIOD_NS);
    }
    script
}

fn wanted() -> Wanted {
    let watch = Watch::new(WatchTarget::Everywhere);
    Wanted { watch, above: None, keep: 20, taker: Taker::Firmware, names: HashMap::new(), marks: Vec::new() }
}

fn judged(recording: &mut InMemory, wanted: &Wanted) -> Judged {
    let Ok(judged) = judge(recording, wanted, &mut |_| ());
    judged
}

#[test]
fn the_parts_of_a_trace_make_no_difference() {
    let script = a_loop();
    for events_of_part in [1, 7, 100_000] {
        let judged = judged(&mut InMemory::new(&script, events_of_part), &wanted());
        let [control] = &judged.threads[..] else { panic!("{:?}", judged.threads) };
        let one = &control.thread;
        assert_eq!((one.name.as_str(), one.activations, one.skipped), ("control", LOOPS, 0));
        assert_eq!(one.period.map(|found| found.period.ns()), Some(Script::PERIOD_NS));
        assert_eq!((one.response.max_ns, one.latency.max_ns), (Some(550_000), Some(5_000)));
        assert_eq!((judged.gaps, judged.others, judged.seen.missing().len()), (0, 0, 2), "{:?}", judged.seen);
        let [spike] = &judged.explained.worst[..] else { panic!("{:#?}", judged.explained) };
        assert_eq!((spike.cycle, spike.latency), (LATE.cast_signed() - 1, Span(550_000)));
        let first = &spike.shares[0];
        assert_eq!(
            (first.cause, first.owner.name.as_str()),
            (punctual_model::Cause::Lock, "logger"),
            "{:#?}",
            spike.shares
        );
        assert!(spike.is_complete());
    }
}

#[test]
fn without_system_calls_sleeps_are_told_apart_by_their_timers_and_have_no_cause() {
    let is_call = |what| matches!(what, What::SysEnter { .. } | What::SysExit { .. });
    let mut recording = InMemory::new(&a_loop(), 10).without(is_call);
    let judged = judged(&mut recording, &wanted());
    let [control] = &judged.threads[..] else { panic!("{:?}", judged.threads) };
    assert_eq!((control.thread.activations, control.thread.wait.as_str()), (LOOPS, "unknown call with a timer"));
    // From the due time to the start of the timer of the next sleep.
    assert_eq!(control.thread.response.max_ns, Some(551_000));
    assert!(judged.seen.missing()[0].starts_with("system calls: "));
    let [spike] = &judged.explained.worst[..] else { panic!("{:#?}", judged.explained) };
    let first = &spike.shares[0];
    assert_eq!((first.cause, first.evidence), (punctual_model::Cause::Unknown, punctual_model::Evidence::Undetermined));
    assert!(first.place.as_ref().is_some_and(|place| place.contains("until logger woke it")), "{first:?}");
    assert!(spike.is_complete());
}

#[test]
fn without_interrupts_or_timers_nothing_is_concluded_from_their_lack() {
    let is_interrupt = |what| matches!(what, What::Enter(_) | What::Leave(_) | What::TimerStart { .. });
    let judged = judged(&mut InMemory::new(&a_loop(), 10).without(is_interrupt), &wanted());
    let [control] = &judged.threads[..] else { panic!("{:?}", judged.threads) };
    assert_eq!((control.thread.releases.timer, control.thread.releases.interrupt), (0, LOOPS));
    // From the waking, 2 us after the due time.
    assert_eq!(control.thread.response.max_ns, Some(548_000));
    assert_eq!(judged.seen.missing().len(), 4, "{:?}", judged.seen);
    let spike = &judged.explained.worst[0];
    let is_guess = |share: &punctual_model::Share| {
        [Some(share.cause), share.or].into_iter().flatten().any(|cause| {
            matches!(
                cause,
                punctual_model::Cause::CpuStalled
                    | punctual_model::Cause::InterruptsOff
                    | punctual_model::Cause::IdleExit
                    | punctual_model::Cause::RanLonger
            )
        })
    };
    assert!(!spike.shares.iter().any(is_guess), "{:#?}", spike.shares);
}

#[test]
fn calls_that_come_late_in_a_trace_are_seen() {
    let mut script = a_loop();
    let first_ns = LATE * Script::PERIOD_NS;
    for cpu in &mut script.trace.cpus {
        cpu.events.retain(|event| {
            !matches!(event.what, What::SysEnter { .. } | What::SysExit { .. }) || event.at_ns > first_ns
        });
    }
    let judged = judged(&mut InMemory::new(&script, 10), &wanted());
    assert!(judged.seen.calls);
    assert!(judged.threads[0].thread.wait.starts_with("clock_nanosleep"), "{:?}", judged.threads[0].thread.wait);
}

#[test]
fn lost_events_are_a_gap_and_not_a_late_activation() {
    let mut script = a_loop();
    let lost = 50 * Script::PERIOD_NS..60 * Script::PERIOD_NS - 500_000;
    script.trace.cpus[0].events.retain(|event| !lost.contains(&event.at_ns));
    let after = script.trace.cpus[0].events.iter().find(|event| event.at_ns >= lost.end).unwrap().at_ns;
    script.trace.cpus[0].lost_ns.push(after);
    let judged = judged(&mut InMemory::new(&script, 10), &wanted());
    assert_eq!((judged.gaps, judged.explained.spikes), (1, 1), "{:#?}", judged.explained.worst);
    // Those before the gap were too few to know what the thread waits for.
    let one = &judged.threads[0].thread;
    assert_eq!((one.activations, one.skipped, one.late), (LOOPS - 60, 0, 0));
}

#[test]
fn names_choose_threads_and_what_is_kept_is_what_is_explained() {
    let script = a_loop();
    let mut of_name = wanted();
    of_name.watch.thread = Some("logg*".to_owned());
    let mut recording = InMemory::new(&script, 10);
    let found = judged(&mut recording, &of_name);
    assert_eq!((found.threads.len(), found.explained.spikes, recording.windows), (0, 0, 0));
    let above = Wanted { above: Some(Span(40_000)), keep: 3, ..wanted() };
    let mut recording = InMemory::new(&script, 10);
    let found = judged(&mut recording, &above);
    assert_eq!(
        (found.explained.spikes, found.explained.explained, recording.windows),
        (LOOPS, 3, 2),
        "two of them overlap"
    );
    assert_eq!(found.explained.worst.first().map(|one| one.latency), Some(Span(550_000)));
}
