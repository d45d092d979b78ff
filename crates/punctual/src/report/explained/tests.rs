//! Stories and tables as people see them.

use super::super::Style;
use super::*;
use analysis::testing::RunBuilder;
use expect_test::expect;
use model::{Cause, Owner, Phase, Share, Span};

fn share(name: &str, cause: Cause, or: Option<Cause>, evidence: Evidence, ns: u64) -> Share {
    Share {
        phase: Phase::Queue,
        owner: Owner { name: name.to_owned(), pid: Some(7) },
        threads: 1,
        cause,
        or,
        evidence,
        total: Span(ns),
        longest: Span(ns),
        pieces: 1,
        place: (cause == Cause::NonPreemptible).then(|| "let go in refresh_cpu_vm_stats < vmstat_update".to_owned()),
    }
}

fn explained() -> ExplainRecord {
    let phase = |phase, ns| PhaseLength { phase, length: Span(ns) };
    let explanation = Explanation {
        cpu: 1,
        cycle: 12_031,
        due_ns: 12_031_800_000,
        latency: Span(412_000),
        phases: vec![phase(Phase::Expiry, 2_000), phase(Phase::Queue, 404_000), phase(Phase::Return, 6_000)],
        shares: vec![
            share("kworker vmstat_update", Cause::NonPreemptible, None, Evidence::Direct, 391_000),
            share("softirq RCU", Cause::Softirq, None, Evidence::Direct, 13_000),
            share("the wake-up itself", Cause::Ordinary, None, Evidence::Direct, 8_000),
        ],
        segments: Vec::new(),
        doubts: vec!["1 switch of CPU 1 left no event".to_owned()],
    };
    let mut totals = analysis::explain::Totals::default();
    totals.add(&explanation);
    ExplainRecord {
        above: Some(Span(100_000)),
        above_at_end: Some(Span(100_000)),
        spikes: 3,
        explained: 1,
        not_covered: 2,
        longest_freeze: Some(Span(20_000)),
        events: 5_000,
        explaining_us: Some(900),
        late: Span(412_000),
        evidence_ns: totals.evidence_ns,
        answers: Vec::new(),
        irq: vec![model::IrqLatency { cpu: 0, histogram: model::Histogram::of(&[1_000, 2_000, 9_000]) }],
        missing: vec!["no event nmi/nmi_handler: non-maskable interrupts".to_owned()],
        causes: totals.causes(),
        worst: vec![explanation],
    }
}

fn shown(explained: ExplainRecord, each: bool) -> String {
    let mut run = RunBuilder::new();
    run.cell("none", "fifo:80").measure(0, 0, |_, _| 5_000);
    run.entries[0].record.explained = Some(explained);
    let summary = analysis::summarise(&run.header, &run.entries);
    let style = Style { width: 90, colour: false, unicode: false, all_findings: false, each_spike: false };
    let mut out = Vec::new();
    write(&mut out, &summary, &Lines::new(style), each).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn a_spike_is_a_story_and_a_cell_a_table() {
    expect![[r#"
        spike 1 of 1   412 us late   CPU 1   12.0318 s
          ||------------------------------------ 404 us ------------------------------------|-|
          expiry to interrupt 2 us | waking to switch 404 us | switch to user 6 us
          kworker vmstat_update ran 391 us in the kernel without letting go: let go in
            refresh_cpu_vm_stats < vmstat_update, 94 % of it [direct].
          then softirq RCU ran 13 us [direct]
          then the wake-up itself took 8 us [direct]
          Try: boot with preempt=full, or take a PREEMPT_RT kernel (punctual doctor:
            preemption-model, workqueues).
          Doubt: 1 switch of CPU 1 left no event.

        What makes it late: 3 wake-ups above 100 us, 1 explained, 412 us in all
        2 not covered: the trace stood still for another one, or had just begun again.
          cause               share     worst  wake-ups  blamed  by
          not preemptible      95 %    391 us         1       1  kworker vmstat_update
          softirq               3 %     13 us         1       0  softirq RCU
          the wake-up itself    2 %      8 us         1       0  the wake-up itself
        Evidence: direct 100 %, inferred 0 %, two readings 0 %, cannot tell 0 %.
        not preemptible: boot with preempt=full, or take a PREEMPT_RT kernel (punctual doctor:
          preemption-model, workqueues).
        Not traced here: no event nmi/nmi_handler: non-maskable interrupts.
          of every wake-up           seen       min       p50       p99       max
          irq: to its interrupt         3      1 us   2.01 us      9 us      9 us
          thread: to its clock      4 000      5 us      5 us      5 us      5 us

    "#]]
    .assert_eq(&shown(explained(), true));
}

#[test]
fn without_spikes_it_says_so() {
    let none =
        ExplainRecord { irq: Vec::new(), spikes: 0, explained: 0, not_covered: 0, causes: Vec::new(), ..explained() };
    assert_eq!(shown(none.clone(), false), "What makes it late: no wake-up was later than 100 us\n\n");
    let unknown = ExplainRecord { above: None, ..none };
    assert!(shown(unknown, false).starts_with("What makes it late: nothing was explained\n"));
}

#[test]
fn a_bar_fits_and_is_whole() {
    let phase = |ns| PhaseLength { phase: Phase::Queue, length: Span(ns) };
    for (phases, width) in [(vec![], 20), (vec![phase(1)], 3), (vec![phase(1), phase(999_999), phase(1)], 40)] {
        let latency = phases.iter().map(|phase| phase.length.ns()).sum();
        let [drawn, _] = bar(&phases, latency, width);
        assert!(drawn.len() <= width + phases.len(), "{drawn}");
        assert_eq!(drawn.matches('|').count(), phases.len() + 1);
    }
}
