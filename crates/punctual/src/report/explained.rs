//! What made late wake-ups late: each of the worst as a story, and a table of the causes of a cell.

use super::lines::Lines;
use analysis::explain::{advice, blame, cause_name, evidence_name, phase_name, share_line};
use analysis::wording::{count, duration, things};
use analysis::{RunSummary, Stages};
use model::{CauseTotal, Evidence, ExplainRecord, Explanation, PhaseLength};
use std::io;

/// Shares of one wake-up that are shown; the rest is summed.
const SHARES: usize = 4;
/// Causes below this share of the time are not given advice about, percent.
const NOTABLE_PERCENT: f64 = 5.0;

/// Writes what is known of each cell whose late wake-ups were explained; `each` also tells the worst one by one.
pub(super) fn write(out: &mut dyn io::Write, summary: &RunSummary, lines: &Lines, each: bool) -> io::Result<()> {
    for cell in &summary.cells {
        let Some(explained) = &cell.explained else { continue };
        if each {
            for (index, explanation) in explained.worst.iter().enumerate() {
                one(out, explanation, index + 1, explained.worst.len(), lines)?;
                writeln!(out)?;
            }
        }
        let name = if summary.cells.len() > 1 { format!(" {}", cell.name) } else { String::new() };
        causes(out, &name, explained, lines)?;
        if let Some(stages) = &cell.stages {
            write_stages(out, stages)?;
        }
        writeln!(out)?;
    }
    Ok(())
}

/// One late wake-up.
fn one(out: &mut dyn io::Write, explanation: &Explanation, n: usize, of: usize, lines: &Lines) -> io::Result<()> {
    let Explanation { cpu, due_ns, latency, phases, shares, doubts, .. } = explanation;
    let head = format!(
        "spike {n} of {of}   {} late   CPU {cpu}   {:.4} s",
        duration(latency.ns() as f64),
        *due_ns as f64 / 1e9
    );
    lines.heading(out, &head)?;
    for line in bar(phases, latency.ns(), lines.width.min(100) - 4) {
        writeln!(out, "  {line}")?;
    }
    lines.paragraph(out, "  ", &blame(explanation))?;
    for share in shares.iter().take(SHARES).skip(1) {
        let said = format!("then {} [{}]", share_line(share), evidence_name(share.evidence));
        lines.paragraph(out, "  ", &said)?;
    }
    let rest: u64 = shares.iter().skip(SHARES).map(|share| share.total.ns()).sum();
    if rest > 0 {
        writeln!(out, "  and {} in {} more", duration(rest as f64), shares.len() - SHARES)?;
    }
    if let Some(advice) = explanation.blame().and_then(|share| advice(share.cause)) {
        lines.paragraph(out, "  ", &format!("Try: {}{}.", advice.what, checks(advice.checks)))?;
    }
    doubts.iter().try_for_each(|doubt| lines.paragraph(out, "  ", &format!("Doubt: {doubt}.")))
}

/// The checks of `punctual doctor` that tell more.
fn checks(names: &[&str]) -> String {
    if names.is_empty() { String::new() } else { format!(" (punctual doctor: {})", names.join(", ")) }
}

/// The phases as a bar of `width` characters, each at least as wide as its edge, and their lengths below.
fn bar(phases: &[PhaseLength], latency_ns: u64, width: usize) -> [String; 2] {
    let room = width.saturating_sub(phases.len() + 1);
    let mut drawn = String::from("|");
    for phase in phases {
        let share = phase.length.ns() as f64 / latency_ns.max(1) as f64;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share of a small width")]
        let cells = (share * room as f64).round() as usize;
        let label = format!(" {} ", duration(phase.length.ns() as f64));
        // Without room for its label, a phase is a line.
        let text = if label.len() <= cells { label } else { String::new() };
        let left = (cells - text.len()) / 2;
        drawn += &format!("{}{text}{}|", "-".repeat(left), "-".repeat(cells - text.len() - left));
    }
    let named = |phase: &PhaseLength| format!("{} {}", phase_name(phase.phase), duration(phase.length.ns() as f64));
    [drawn, phases.iter().map(named).collect::<Vec<_>>().join(" | ")]
}

/// The table of causes, how sure it is, and what to do.
fn causes(out: &mut dyn io::Write, name: &str, explained: &ExplainRecord, lines: &Lines) -> io::Result<()> {
    let ExplainRecord { above, spikes, explained: n, not_covered, late, causes, missing, .. } = explained;
    let Some(above) = above else {
        lines.heading(out, &format!("What makes it late:{name} nothing was explained"))?;
        let why = "There were too few wake-ups to know what is usual; measure longer, or say --above.";
        return lines.paragraph(out, "", why);
    };
    let above = duration(above.ns() as f64);
    if *spikes == 0 {
        return lines.heading(out, &format!("What makes it late:{name} no wake-up was later than {above}"));
    }
    let head = format!(
        "What makes it late:{name} {} above {above}, {} explained, {} in all",
        things(*spikes, "wake-up"),
        count(*n),
        duration(late.ns() as f64)
    );
    lines.heading(out, &head)?;
    if *not_covered > 0 {
        let why = "the trace stood still for another one, or had just begun again";
        lines.paragraph(out, "", &format!("{} not covered: {why}.", count(*not_covered)))?;
    }
    let percent = |ns: u64| ns as f64 * 100.0 / late.ns().max(1) as f64;
    let rows: Vec<_> = causes.iter().map(|cause| (cause_name(cause.cause, cause.or), cause)).collect();
    let width = rows.iter().map(|(name, _)| name.len()).max().unwrap_or(0).max(5);
    writeln!(out, "  {:width$}  share     worst  wake-ups  blamed  by", "cause")?;
    for (name, cause) in &rows {
        let CauseTotal { total, worst, wakeups, blamed, owners, .. } = cause;
        let share = percent(total.ns());
        let worst = duration(worst.ns() as f64);
        let by = shortened(&owners.join(", "), lines.width.saturating_sub(width + 39));
        writeln!(out, "  {name:width$} {share:>4.0} % {worst:>9}  {wakeups:>8}  {blamed:>6}  {by}")?;
    }
    let sure = Evidence::ALL.map(|kind| {
        let ns = explained.evidence_ns.get(kind.index()).copied().unwrap_or(0);
        format!("{} {:.0} %", evidence_name(kind), percent(ns))
    });
    lines.paragraph(out, "", &format!("Evidence: {}.", sure.join(", ")))?;
    for (name, cause) in rows.iter().filter(|(_, cause)| percent(cause.total.ns()) >= NOTABLE_PERCENT) {
        if let Some(advice) = advice(cause.cause) {
            lines.paragraph(out, "", &format!("{name}: {}{}.", advice.what, checks(advice.checks)))?;
        }
    }
    missing.iter().try_for_each(|lost| lines.paragraph(out, "", &format!("Not traced here: {lost}.")))
}

/// The two stages of every wake-up, late or not.
fn write_stages(out: &mut dyn io::Write, stages: &Stages) -> io::Result<()> {
    let known = |ns: Option<i64>| ns.map_or_else(|| "-".to_owned(), |ns| duration(ns as f64));
    writeln!(out, "  {:21} {:>9} {:>9} {:>9} {:>9} {:>9}", "of every wake-up", "seen", "min", "p50", "p99", "max")?;
    for (name, stage) in stages.named() {
        let [min, p50, p99, max] = [stage.min_ns, stage.p50_ns, stage.p99_ns, stage.max_ns].map(known);
        writeln!(out, "  {name:21} {:>9} {min:>9} {p50:>9} {p99:>9} {max:>9}", count(stage.samples))?;
    }
    Ok(())
}

/// A text cut to `width`.
fn shortened(text: &str, width: usize) -> String {
    let width = width.max(12);
    if text.chars().count() <= width {
        return text.to_owned();
    }
    text.chars().take(width - 3).chain("...".chars()).collect()
}

#[cfg(test)]
mod tests;
