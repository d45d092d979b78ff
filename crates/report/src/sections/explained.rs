//! Explanations of late wake-ups: each of the worst in detail, and a table of the causes of a cell.

use crate::lines::Lines;
use crate::table::{Column, Table, UNKNOWN};
use punctual_analysis::explain::{blame, cause_name, marks_line, row_of, share_line};
use punctual_analysis::wording::{count, duration, things};
use punctual_analysis::{CellSummary, RunSummary, Stages};
use punctual_model::{
    Cause, CauseTotal, Evidence, ExplainRecord, Explanation, Header, OwnName, Phase, PhaseLength, Share, Span,
};
use std::io;

/// Number of shares shown for a wake-up; the rest is summed.
const SHARES: usize = 4;
/// The reason why evidence is weak in a guest, once for a run.
const AMBIGUOUS: &str = "In a virtual machine some causes are ambiguous: the guest's kernel, or the host that took the \
                            CPU away. --stacks or --witness 100us may decide; on the hardware there is one.";
/// Least share of the time for which advice is given, percent.
const NOTABLE_PERCENT: f64 = 5.0;

/// Writes the explanations of each cell, and up to `spikes` of the worst wake-ups one by one.
pub(crate) fn write(
    out: &mut dyn io::Write,
    header: &Header,
    summary: &RunSummary,
    lines: &Lines,
    spikes: usize,
) -> io::Result<()> {
    if header.host.hypervisor.is_some() && summary.cells.iter().any(is_ambiguous) {
        lines.paragraph(out, "", AMBIGUOUS)?;
        writeln!(out)?;
    }
    for cell in &summary.cells {
        let Some(explained) = &cell.explained else { continue };
        let name = if summary.cells.len() > 1 { format!(" {}", cell.name) } else { String::new() };
        let uncaught = cell.not_caught();
        if let Some(first) = &uncaught {
            let of = if name.is_empty() { String::new() } else { format!("{}: ", name.trim_start()) };
            lines.paragraph(out, "", &format!("{of}{first}"))?;
            writeln!(out)?;
        }
        worst(out, explained, lines, spikes)?;
        let why = match cell.cell.task.is_noise() {
            true => "events around them were lost, or the trace began later",
            false => "the trace was being read for another one, or had just restarted",
        };
        causes(out, (&name, why), explained, lines, uncaught.is_some())?;
        if let Some(stages) = &cell.stages {
            write_stages(out, stages, explained, lines)?;
        }
        writeln!(out)?;
    }
    Ok(())
}

/// Writes the explanations of a recorded trace, as [`write()`].
pub(crate) fn of_recorded(
    out: &mut dyn io::Write,
    explained: &ExplainRecord,
    lines: &Lines,
    spikes: usize,
) -> io::Result<()> {
    worst(out, explained, lines, spikes)?;
    causes(
        out,
        ("", "the trace begins later, ends earlier, or has too many events around them"),
        explained,
        lines,
        false,
    )
}

/// Writes up to `spikes` of the worst wake-ups one by one.
fn worst(out: &mut dyn io::Write, explained: &ExplainRecord, lines: &Lines, spikes: usize) -> io::Result<()> {
    for (index, explanation) in explained.worst.iter().enumerate().take(spikes) {
        one(out, explanation, index + 1, explained.worst.len(), lines)?;
        writeln!(out)?;
    }
    let more = explained.worst.len().saturating_sub(spikes);
    if spikes > 0 && more > 0 {
        lines.paragraph(out, "", &format!("{more} more explained: --all shows them."))?;
        writeln!(out)?;
    }
    Ok(())
}

/// Whether a notable part of the time that is explained is ambiguous on this machine.
fn is_ambiguous(cell: &CellSummary) -> bool {
    let Some(explained) = cell.explained.as_ref().filter(|_| cell.cell.kernel.is_here()) else { return false };
    let ns = explained.evidence_ns.get(Evidence::Ambiguous.index()).copied().unwrap_or(0);
    ns as f64 * 100.0 >= NOTABLE_PERCENT * explained.late.ns().max(1) as f64
}

/// Writes one late wake-up.
fn one(out: &mut dyn io::Write, explanation: &Explanation, n: usize, of: usize, lines: &Lines) -> io::Result<()> {
    let Explanation { cpu, due_ns, latency, phases, shares, doubts, thread, .. } = explanation;
    let what = match thread {
        Some(thread) => format!("{} took {}", thread.name, duration(latency.ns() as f64)),
        None if is_gap(explanation) => format!("gap of {}", duration(latency.ns() as f64)),
        None => format!("{} late", duration(latency.ns() as f64)),
    };
    let head = format!("spike {n} of {of}   {what}   CPU {cpu}   {:.4} s", *due_ns as f64 / 1e9);
    lines.heading(out, &head)?;
    let [drawn, lengths] = bar(phases, latency.ns(), lines.width.min(100) - 4);
    writeln!(out, "  {drawn}")?;
    lines.paragraph(out, "  ", &lengths)?;
    marks_line(explanation).iter().try_for_each(|marks| lines.paragraph(out, "  ", marks))?;
    lines.paragraph(out, "  ", &blame(explanation))?;
    for share in shares.iter().take(SHARES).skip(1) {
        let said = format!("then {} [{}]", share_line(share), share.evidence);
        lines.paragraph(out, "  ", &said)?;
    }
    let rest: u64 = shares.iter().skip(SHARES).map(|share| share.total.ns()).sum();
    if rest > 0 {
        writeln!(out, "  and {} in {} more", duration(rest as f64), shares.len() - SHARES)?;
    }
    if let Some(advice) = explanation.blame().and_then(advice_on) {
        lines.paragraph(out, "  ", &format!("Try: {advice}."))?;
    }
    doubts.iter().try_for_each(|doubt| lines.paragraph(out, "  ", &format!("Doubt: {doubt}.")))
}

/// The action against the largest share of a late wake-up.
fn advice_on(share: &Share) -> Option<String> {
    let is_own = share.cause != Cause::CpuStalled && OwnName::is_own(&share.owner.name);
    if is_own { Some("leave a CPU to punctual itself (--cpus)".to_owned()) } else { advice(share.cause) }
}

/// The action against a cause, with the related checks of `punctual doctor`.
fn advice(cause: Cause) -> Option<String> {
    let row = row_of(cause);
    let advice = row.advice?.to_owned();
    Some(if row.checks.is_empty() { advice } else { format!("{advice} (punctual doctor: {})", row.checks.join(", ")) })
}

/// The phases as a bar of `width` characters, each at least as wide as its edge, with their lengths below.
fn bar(phases: &[PhaseLength], latency_ns: u64, width: usize) -> [String; 2] {
    let room = width.saturating_sub(phases.len() + 1);
    let mut drawn = String::from("|");
    for phase in phases {
        let share = phase.length.ns() as f64 / latency_ns.max(1) as f64;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share of a small width")]
        let cells = (share * room as f64).round() as usize;
        let label = format!(" {} ", duration(phase.length.ns() as f64));
        // A phase without room for its label is a line.
        let text = if label.len() <= cells { label } else { String::new() };
        let left = (cells - text.len()) / 2;
        drawn += &format!("{}{text}{}|", "-".repeat(left), "-".repeat(cells - text.len() - left));
    }
    let named = |phase: &PhaseLength| format!("{} {}", phase.phase, duration(phase.length.ns() as f64));
    [drawn, phases.iter().map(named).collect::<Vec<_>>().join(" | ")]
}

/// Writes the table of causes, the evidence, and advice; with the name of the cell, and why wake-ups are not covered.
fn causes(
    out: &mut dyn io::Write,
    (name, why): (&str, &str),
    explained: &ExplainRecord,
    lines: &Lines,
    is_uncaught: bool,
) -> io::Result<()> {
    let ExplainRecord { above, spikes, not_covered, .. } = explained;
    let Some(above) = above.or(Some(Span(0)).filter(|_| *spikes > 0)) else {
        lines.heading(out, &format!("What makes it late:{name} nothing was explained"))?;
        let why = "There were too few wake-ups to know what is usual; measure longer, or say --above.";
        return lines.paragraph(out, "", why);
    };
    let above = duration(above.ns() as f64);
    if *spikes == 0 {
        let since = if is_uncaught { " once that was known" } else { "" };
        return lines.heading(out, &format!("What makes it late:{name} nothing was later than {above}{since}"));
    }
    let what = if thing(explained) == GAP { "What takes the time" } else { "What makes it late" };
    lines.heading(out, &format!("{what}:{name} {}", extent(explained)))?;
    if *not_covered > 0 {
        lines.paragraph(out, "", &format!("{} not covered: {why}.", count(*not_covered)))?;
    }
    totals(explained).lines().iter().try_for_each(|line| writeln!(out, "{line}"))?;
    remarks(explained).iter().try_for_each(|said| lines.paragraph(out, "", said))
}

/// `3 wake-ups above 430 us, 2 explained, 1.2 ms in all`.
pub(crate) fn extent(explained: &ExplainRecord) -> String {
    let above = explained.above.map_or_else(|| "an unknown threshold".to_owned(), |above| duration(above.ns() as f64));
    format!(
        "{} above {above}, {} explained, {} in all",
        things(explained.spikes, thing(explained)),
        count(explained.explained),
        duration(explained.late.ns() as f64)
    )
}

/// What follows the table of causes: the evidence, advice, and the limits of the trace.
pub(crate) fn remarks(explained: &ExplainRecord) -> Vec<String> {
    let ExplainRecord { late, causes, missing, host_error_ns, .. } = explained;
    let percent = |ns: u64| ns as f64 * 100.0 / late.ns().max(1) as f64;
    let sure = Evidence::ALL.map(|kind| {
        let ns = explained.evidence_ns.get(kind.index()).copied().unwrap_or(0);
        format!("{kind} {:.0} %", percent(ns))
    });
    let mut remarks = vec![format!("Evidence: {}.", sure.join(", "))];
    let notable = causes.iter().filter(|cause| percent(cause.total.ns()) >= NOTABLE_PERCENT);
    remarks.extend(
        notable.filter_map(|cause| Some(format!("{}: {}.", cause_name(cause.cause, cause.or), advice(cause.cause)?))),
    );
    remarks.extend(host_error_ns.map(|error_ns| {
        let error = duration(error_ns as f64);
        format!("Explained through both kernels; times of the guest on this machine are within {error}.")
    }));
    remarks.extend(kept_events(explained));
    remarks.extend(missing.iter().map(|lost| format!("Not traced here: {lost}.")));
    remarks
}

/// One sentence on the spikes that can be explained again; `None` without any.
fn kept_events(explained: &ExplainRecord) -> Option<String> {
    let kept = explained.worst.iter().filter(|one| one.capture.is_some()).count();
    let of = things(u64::try_from(explained.worst.len()).unwrap_or(u64::MAX), "spike");
    let said =
        format!("The events of {kept} of {of} are kept: punctual explain RUN --again explains them by later rules.");
    (kept > 0).then_some(said)
}

const GAP: &str = "gap";

/// What is explained: wake-ups, activations of watched threads, or gaps of threads that never wait.
fn thing(explained: &ExplainRecord) -> &'static str {
    match explained.worst.first() {
        Some(one) if is_gap(one) => GAP,
        Some(one) if one.thread.is_some() => "activation",
        _ => "wake-up",
    }
}

/// Whether it explains a gap.
pub(crate) fn is_gap(one: &Explanation) -> bool {
    one.phases.iter().any(|phase| phase.phase == Phase::Gap)
}

/// Name of a cause, with its owner if it has only one.
pub(crate) fn name_of(total: &CauseTotal) -> String {
    let name = cause_name(total.cause, total.or);
    match total.owners.as_slice() {
        [_] if total.cause == Cause::UsualWakeUp => name,
        [only] if only.name.starts_with(&name) => only.name.clone(),
        [only] => format!("{name} by {}", only.name),
        _ => name,
    }
}

/// A row for each cause of the explained wake-ups, with one for each owner below it. Those of less than 0.5 % share a
/// row.
pub(crate) fn totals(explained: &ExplainRecord) -> Table {
    let ExplainRecord { causes, late, .. } = explained;
    let columns = vec![
        Column::text("cause by owner"),
        Column::figure("share"),
        Column::figure("total").after(1).at_least(9),
        Column::figure("worst").after(1).at_least(9),
        Column::figure(if thing(explained) == GAP { "gaps" } else { "wake-ups" }),
        Column::figure("blamed"),
    ];
    let share = |ns: u64| format!("{:.0} %", ns as f64 * 100.0 / late.ns().max(1) as f64);
    let time = |ns: u64| duration(ns as f64);
    let is_small = |ns: u64| ns.saturating_mul(200) < late.ns();
    let (small, large): (Vec<_>, Vec<_>) = causes.iter().partition(|total| is_small(total.total.ns()));
    let mut rows = Vec::new();
    for total in large {
        let ns = total.total.ns();
        rows.push(vec![
            name_of(total),
            share(ns),
            time(ns),
            time(total.worst.ns()),
            count(total.wakeups),
            count(total.blamed),
        ]);
        let owners = owners(total, is_small).into_iter().map(|(name, ns, n)| {
            let known = |of: &dyn Fn(u64) -> String| ns.map_or(UNKNOWN.to_owned(), of);
            let n = n.map_or_else(String::new, count);
            vec![format!("  {name}"), known(&share), known(&time), String::new(), n, String::new()]
        });
        rows.extend(owners);
    }
    if !small.is_empty() {
        let ns = small.iter().map(|total| total.total.ns()).sum();
        let name = format!("{} of less than 0.5 %", things(small.len() as u64, "cause"));
        let worst = small.iter().map(|total| total.worst.ns()).max().unwrap_or(0);
        let blamed = small.iter().map(|total| total.blamed).sum();
        rows.push(vec![name, share(ns), time(ns), time(worst), String::new(), count(blamed)]);
    }
    Table::new(columns, rows)
}

/// The owners of a cause that has several, with their time, ns, and number of wake-ups, if known; those with a small
/// time together.
fn owners(total: &CauseTotal, is_small: impl Fn(u64) -> bool) -> Vec<(&str, Option<u64>, Option<u64>)> {
    let all = total.owners.iter().map(|owner| (owner.name.as_str(), owner.total.map(Span::ns), owner.wakeups));
    let mut shown: Vec<_> = all.filter(|(_, ns, _)| ns.is_none_or(|ns| !is_small(ns))).collect();
    let known: Option<u64> = shown.iter().map(|(_, ns, _)| *ns).sum();
    let others = known.map(|ns| total.total.ns().saturating_sub(ns)).filter(|ns| !is_small(*ns));
    shown.extend(others.map(|ns| ("others", Some(ns), None)));
    if total.owners.len() > 1 { shown } else { Vec::new() }
}

/// A row for each of the two stages of all wake-ups, late or not.
pub(crate) fn stages(stages: &Stages) -> Table {
    let figure = |head: &'static str| Column::figure(head).after(1).at_least(9);
    let figures = ["seen", "min", "p50", "p99", "max"].map(figure);
    let columns = std::iter::once(Column::text("of every wake-up").at_least(21)).chain(figures).collect();
    let known = |ns: Option<i64>| ns.map_or_else(|| UNKNOWN.to_owned(), |ns| duration(ns as f64));
    let rows = stages.named().map(|(name, stage)| {
        let [min, p50, p99, max] = [stage.min_ns, stage.p50_ns, stage.p99_ns, stage.max_ns].map(known);
        vec![name.to_owned(), count(stage.samples), min, p50, p99, max]
    });
    Table::new(columns, rows.collect())
}

/// Writes the two stages of all wake-ups.
fn write_stages(out: &mut dyn io::Write, both: &Stages, explained: &ExplainRecord, lines: &Lines) -> io::Result<()> {
    stages(both).lines().iter().try_for_each(|line| writeln!(out, "{line}"))?;
    unseen(both, explained).map_or(Ok(()), |said| lines.paragraph(out, "  ", &said))
}

/// Reason for unseen wake-ups, if known.
pub(crate) fn unseen(stages: &Stages, explained: &ExplainRecord) -> Option<String> {
    let ExplainRecord { stood_still, overwritten, .. } = explained;
    let n = stages.thread.samples.checked_sub(stages.irq.as_ref()?.samples).filter(|n| *n > 0)?;
    let still = duration((*stood_still)?.ns() as f64);
    let overwritten = match overwritten.unwrap_or(0) {
        0 => String::new(),
        times => format!(", or after events were overwritten ({} times)", count(times)),
    };
    Some(format!(
        "{} not seen: their timer was started or expired while the trace was stopped ({still} in all){overwritten}.",
        count(n)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Style;
    use expect_test::expect;
    use punctual_analysis::testing::RunBuilder;
    use punctual_model::{Owner, Phase};

    fn share(name: &str, cause: Cause, or: Option<Cause>, evidence: Evidence, ns: u64) -> Share {
        Share {
            phase: Phase::WakeupToSwitch,
            owner: Owner { name: name.to_owned(), pid: Some(7) },
            threads: 1,
            cause,
            or,
            evidence,
            total: Span(ns),
            longest: Span(ns),
            pieces: 1,
            place: (cause == Cause::NotPreemptible)
                .then(|| "rescheduled in refresh_cpu_vm_stats < vmstat_update".to_owned()),
            code: None,
        }
    }

    fn explained() -> ExplainRecord {
        let phase = |phase, ns| PhaseLength { phase, length: Span(ns) };
        let explanation = Explanation {
            cpu: 1,
            cycle: 12_031,
            due_ns: 12_031_800_000,
            latency: Span(412_000),
            phases: vec![
                phase(Phase::ExpiryToInterrupt, 2_000),
                phase(Phase::WakeupToSwitch, 404_000),
                phase(Phase::SwitchToUser, 6_000),
            ],
            shares: vec![
                share("kworker vmstat_update", Cause::NotPreemptible, None, Evidence::Direct, 391_000),
                share("softirq RCU", Cause::Softirq, None, Evidence::Direct, 13_000),
                share("usual wake-up", Cause::UsualWakeUp, None, Evidence::Direct, 8_000),
            ],
            doubts: vec!["1 switch of CPU 1 left no event".to_owned()],
            ..Explanation::default()
        };
        let mut totals = punctual_analysis::explain::Totals::default();
        totals.add(&explanation);
        ExplainRecord {
            above: Some(Span(100_000)),
            above_at_end: Some(Span(100_000)),
            spikes: 3,
            explained: 1,
            not_covered: 2,
            latest_not_covered: Some(punctual_model::NotCovered {
                cpu: 1,
                due_ns: 3_000_000_000,
                latency: Span(7_500_000),
            }),
            stood_still: Some(Span(2_100_000)),
            overwritten: Some(2),
            longest_freeze: Some(Span(20_000)),
            events: 5_000,
            explaining_us: Some(900),
            late: Span(412_000),
            evidence_ns: totals.evidence_ns,
            answers: Vec::new(),
            irq: vec![punctual_model::IrqLatency {
                cpu: 0,
                histogram: punctual_model::Histogram::of(&[1_000, 2_000, 9_000]),
            }],
            missing: vec!["no event nmi/nmi_handler: non-maskable interrupts".to_owned()],
            causes: totals.causes(),
            worst: vec![explanation],
            ..ExplainRecord::default()
        }
    }

    fn shown(explained: ExplainRecord, spikes: usize) -> String {
        shown_of(explained, spikes, None)
    }

    fn shown_of(explained: ExplainRecord, spikes: usize, hypervisor: Option<&str>) -> String {
        let mut run = RunBuilder::new();
        run.cell("none", "fifo:80").measure(0, 0, |_, _| 5_000);
        run.entries[0].record.explained = Some(explained);
        run.header.host.hypervisor = hypervisor.map(str::to_owned);
        let summary = punctual_analysis::summarise(&run.header, &run.entries);
        let style = Style::plain(90);
        let mut out = Vec::new();
        write(&mut out, &run.header, &summary, &Lines::new(style), spikes).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn against_a_thread_of_our_own_the_advice_is_to_leave_it_a_cpu() {
        let advice = |owner| advice_on(&share(owner, Cause::NotPreemptible, None, Evidence::Direct, 1)).unwrap();
        assert_eq!(advice("punctual-trace"), "leave a CPU to punctual itself (--cpus)");
        assert!(advice("rcu_preempt").starts_with("boot with preempt=full"));
    }

    #[test]
    fn a_spike_is_a_story_and_a_cell_a_table() {
        expect![[r#"
            Worst wake-up (7.5 ms at 3.0000 s, CPU 1): not captured; the trace was being read for
              another one, or had just restarted.

            spike 1 of 1   412 us late   CPU 1   12.0318 s
              ||------------------------------------ 404 us ------------------------------------|-|
              expiry to interrupt 2 us | wakeup to switch 404 us | switch to user 6 us
              kworker vmstat_update ran 391 us in the kernel, not preemptible: rescheduled in
                refresh_cpu_vm_stats < vmstat_update, 94 % of it [direct].
              then softirq RCU ran 13 us [direct]
              then the usual wake-up took 8 us [direct]
              Try: boot with preempt=full, or use a PREEMPT_RT kernel (punctual doctor:
                preemption-model, workqueues).
              Doubt: 1 switch of CPU 1 left no event.

            What makes it late: 3 wake-ups above 100 us, 1 explained, 412 us in all
            2 not covered: the trace was being read for another one, or had just restarted.
              cause by owner                            share     total     worst  wake-ups  blamed
              not preemptible by kworker vmstat_update   95 %    391 us    391 us         1       1
              softirq RCU                                 3 %     13 us     13 us         1       0
              usual wake-up                               2 %      8 us      8 us         1       0
            Evidence: direct 100 %, inferred 0 %, ambiguous 0 %, undetermined 0 %.
            not preemptible: boot with preempt=full, or use a PREEMPT_RT kernel (punctual doctor:
              preemption-model, workqueues).
            Not traced here: no event nmi/nmi_handler: non-maskable interrupts.
              of every wake-up           seen       min       p50       p99       max
              irq: to its interrupt         3      1 us   2.01 us      9 us      9 us
              thread: to its clock      4 000      5 us      5 us      5 us      5 us
              3 997 not seen: their timer was started or expired while the trace was stopped (2.1 ms
                in all), or after events were overwritten (2 times).

        "#]]
        .assert_eq(&shown(explained(), 20));
    }

    #[test]
    fn the_worst_few_are_shown_and_the_rest_is_counted() {
        let one = explained();
        let three = ExplainRecord { worst: vec![one.worst[0].clone(); 3], latest_not_covered: None, ..one };
        let text = shown(three.clone(), 1);
        assert!(text.starts_with("spike 1 of 3 "), "{text}");
        assert!(text.contains("\n2 more explained: --all shows them.\n") && !text.contains("spike 2"), "{text}");
        assert!(!shown(three.clone(), 0).contains("--all") && !shown(three, 3).contains("--all"));
    }

    #[test]
    fn that_a_guest_leaves_two_readings_is_said_once_and_only_where_it_does() {
        let weak = ExplainRecord {
            evidence_ns: Evidence::ALL.map(|kind| if kind == Evidence::Ambiguous { 30_000 } else { 0 }),
            ..explained()
        };
        let times = |text: String| text.matches("are ambiguous").count();
        assert_eq!(times(shown_of(weak.clone(), 20, Some("KVM"))), 1);
        assert_eq!(times(shown_of(weak, 20, None)), 0);
        assert_eq!(times(shown_of(explained(), 20, Some("KVM"))), 0);
    }

    #[test]
    fn without_spikes_it_says_so() {
        let none = ExplainRecord {
            spikes: 0,
            explained: 0,
            latest_not_covered: None,
            above: Some(Span(100_000)),
            ..ExplainRecord::default()
        };
        assert_eq!(shown(none.clone(), 0), "What makes it late: nothing was later than 100 us\n\n");
        let unknown = ExplainRecord { above: None, ..none };
        assert!(shown(unknown, 0).starts_with("What makes it late: nothing was explained\n"));
    }

    #[test]
    fn a_bar_fits_and_is_whole() {
        let phase = |ns| PhaseLength { phase: Phase::WakeupToSwitch, length: Span(ns) };
        for (phases, width) in [(vec![], 20), (vec![phase(1)], 3), (vec![phase(1), phase(999_999), phase(1)], 40)] {
            let latency = phases.iter().map(|phase| phase.length.ns()).sum();
            let [drawn, _] = bar(&phases, latency, width);
            assert!(drawn.len() <= width + phases.len(), "{drawn}");
            assert_eq!(drawn.matches('|').count(), phases.len() + 1);
        }
    }
}
