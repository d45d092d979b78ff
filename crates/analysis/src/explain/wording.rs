//! Sentences and names for explanations: one sentence for the main cause, a few words for the rest.

use super::causes::{EITHER, row_of};
use crate::wording::{duration, things};
use punctual_model::{Cause, CodePlace, ExplainRecord, Explanation, MarkTime, NotCovered, Owner, Share, Span};

/// Name of a cause in tables, with the alternative if the trace allows two.
pub fn cause_name(cause: Cause, or: Option<Cause>) -> String {
    or.map_or_else(|| cause.to_string(), |or| format!("{cause} or {or}"))
}

/// One sentence on the main cause of a late wake-up.
pub fn blame(explanation: &Explanation) -> String {
    let Some(share) = explanation.blame() else { return "No cause made it late.".to_owned() };
    let percent = share.total.ns().saturating_mul(100) / explanation.latency.ns().max(1);
    let mut sentence = clause(share);
    if let Some(place) = &share.place {
        sentence.push_str(": ");
        sentence.push_str(place);
    }
    if let Some(code) = &share.code {
        sentence.push_str(&format!(", {}", code_line(code)));
    }
    if percent < 95 {
        sentence.push_str(&format!(", {percent} % of it"));
    }
    sentence.push_str(&format!(" [{}]", share.evidence));
    let mut letters = sentence.chars();
    // Names keep their case; other sentences begin with a capital.
    let first = letters.next().filter(|_| !sentence.starts_with(&share.owner.name));
    first.map_or(sentence.clone(), |first| format!("{}{}", first.to_uppercase(), letters.as_str())) + "."
}

/// The phases into which marks cut an activation; `None` without marks.
pub fn marks_line(explanation: &Explanation) -> Option<String> {
    let one = |one: &MarkTime| {
        let again = if one.n > 1 { format!(" ({})", things(one.n, "time")) } else { String::new() };
        format!("{} {}{again}", one.mark, duration(one.length.ns() as f64))
    };
    let all: Vec<String> = explanation.marks.iter().map(one).collect();
    (!all.is_empty()).then(|| format!("From its marks on: {}", all.join(" | ")))
}

/// The cause of a share in a few words, with its owner unless that is `thread`, and its place.
pub(crate) fn main_cause(share: &Share, thread: Option<&Owner>) -> String {
    let (name, owner) = (cause_name(share.cause, share.or), &share.owner);
    let held = share.place.as_deref().and_then(|place| place.strip_prefix("held by "));
    let held = held.map(|held| held.split([',', ';']).next().unwrap_or(held));
    let mut words = match (share.cause, held) {
        (Cause::Lock, Some(by)) => format!("waiting for a lock held by {by}"),
        (Cause::KernelLock, Some(by)) => format!("waiting for a lock of the kernel held by {by}"),
        (Cause::PriorityInversion, Some(by)) => format!("priority inversion: lock held by {by}"),
        _ if owner.name.starts_with(&name) || owner.name.starts_with("the ") => owner.name.clone(),
        _ if thread.is_some_and(|thread| thread.name == owner.name) => name,
        _ => format!("{name} by {}", owner.name),
    };
    if let (None, Some(place)) = (held, &share.place) {
        words += &format!(" ({place})");
    }
    if let Some(code) = &share.code {
        words += &format!(", {}", code_line(code));
    }
    words
}

/// One sentence if the latest wake-up of a cell was not caught, with its latency `max_ns`. `None` if it was caught or
/// was no spike.
pub(crate) fn not_caught(explained: &ExplainRecord, max_ns: Option<i64>) -> Option<String> {
    let measured = explained.worst.iter().filter(|one| one.cycle >= 0);
    let caught = measured.map(|one| one.latency).max().unwrap_or(Span(0));
    let missed = explained.latest_not_covered.filter(|one| one.due_ns >= 0 && one.latency > caught);
    if let Some(NotCovered { cpu, due_ns, latency }) = missed {
        let (late, at) = (duration(latency.ns() as f64), due_ns as f64 / 1e9);
        return Some(format!(
            "Worst wake-up ({late} at {at:.4} s, CPU {cpu}): not captured; the trace was being read for another one, or had \
             just restarted."
        ));
    }
    let max = max_ns.and_then(|ns| u64::try_from(ns).ok()).map(Span)?;
    let is_spike = explained.above.is_some_and(|above| max > above);
    let late = duration(max.ns() as f64);
    (is_spike && max > caught)
        .then(|| format!("Worst wake-up ({late}): not captured; it came before the threshold was known."))
}

/// Line of a list: a share with its place.
pub fn share_line(share: &Share) -> String {
    let place = share.place.as_ref().map(|place| format!(": {place}")).unwrap_or_default();
    let code = share.code.as_ref().map(|code| format!(", {}", code_line(code))).unwrap_or_default();
    format!("{}{place}{code}", clause(share))
}

/// Few words on a place in the code of a program: `at control_step (servo.c:212)`.
pub fn code_line(place: &CodePlace) -> String {
    let CodePlace { at, samples, of, .. } = place;
    let object = &at.object;
    let mut words = match (&at.function, &at.file, at.line) {
        (Some(function), Some(file), Some(line)) => {
            format!("at {function} ({}:{line})", file.rsplit('/').next().unwrap_or(file))
        }
        (Some(function), Some(file), None) => format!("at {function} ({})", file.rsplit('/').next().unwrap_or(file)),
        (Some(function), ..) => format!("at {function} of {object}"),
        (None, ..) => format!("in {object}, which has no symbols"),
    };
    if *of > 1 {
        words.push_str(&format!(" ({samples} of {of} samples)"));
    }
    words
}

/// Clause on a share: owner, activity and duration.
fn clause(share: &Share) -> String {
    let took = duration(share.total.ns() as f64);
    let name = &share.owner.name;
    let longest = duration(share.longest.ns() as f64);
    let pieces = match share.pieces {
        0 | 1 => String::new(),
        n => format!(" in {} (longest {longest})", things(n.into(), "part")),
    };
    let owner = match share.threads {
        0 | 1 => name.clone(),
        n => format!("{n} threads of {name}"),
    };
    let time = format!("{took}{pieces}");
    let is_both = |(cause, or, _): &&(Cause, Cause, &str)| (*cause, Some(*or)) == (share.cause, share.or);
    let clause = match EITHER.iter().find(is_both) {
        Some((.., clause)) => (*clause).to_owned(),
        None if share.or.is_some() => format!("{{owner}} {{time}}: {}", cause_name(share.cause, share.or)),
        None => row_of(share.cause).clause.to_owned(),
    };
    // The owner last: its name may have braces.
    clause.replace("{time}", &time).replace("{took}", &took).replace("{owner}", &owner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use punctual_model::{Evidence, Owner, Phase};

    fn share(cause: Cause, or: Option<Cause>, evidence: Evidence) -> Share {
        Share {
            phase: Phase::WakeupToSwitch,
            owner: Owner { name: "kworker vmstat_update".to_owned(), pid: Some(7) },
            threads: 1,
            cause,
            or,
            evidence,
            total: Span(391_000),
            longest: Span(391_000),
            pieces: 1,
            place: Some("rescheduled in refresh_cpu_vm_stats".to_owned()),
            code: None,
        }
    }

    fn said(shares: Vec<Share>, latency: u64) -> String {
        blame(&explanation(shares, latency))
    }

    fn explanation(shares: Vec<Share>, latency: u64) -> Explanation {
        Explanation { latency: Span(latency), shares, ..Explanation::default() }
    }

    #[test]
    fn that_the_latest_was_not_caught_is_said_and_why() {
        let one = |cycle, latency| Explanation { cycle, latency: Span(latency), ..explanation(Vec::new(), 0) };
        let missed = |latency| Some(NotCovered { cpu: 1, due_ns: 2_500_000_000, latency: Span(latency) });
        let record = |worst: Vec<Explanation>, latest_not_covered| ExplainRecord {
            above: Some(Span(100_000)),
            latest_not_covered,
            worst,
            ..ExplainRecord::default()
        };
        let behind = |record: &ExplainRecord, max_ns| not_caught(record, max_ns).map(|said| said[..40].to_owned());
        let still =
            |late: &str| Some(format!("Worst wake-up ({late} at 2.5000 s, CPU 1): not captured")[..40].to_owned());
        for (worst, missed, max_ns, said) in [
            (vec![one(5, 300_000)], None, Some(300_000), None),
            (vec![one(5, 300_000)], missed(300_000), Some(300_000), None),
            (vec![one(5, 300_000)], missed(7_500_000), Some(7_500_000), still("7.5 ms")),
            (vec![], missed(7_500_000), Some(7_500_000), still("7.5 ms")),
            // Spikes of the warm-up do not count for the cell.
            (vec![one(-5, 900_000)], missed(300_000), Some(300_000), still("300 us")),
            (vec![], None, Some(100_000), None),
            (vec![], None, None, None),
        ] {
            assert_eq!(behind(&record(worst, missed), max_ns), said);
        }
        let early = not_caught(&record(vec![one(5, 300_000)], missed(200_000)), Some(2_000_000));
        assert_eq!(
            early.as_deref(),
            Some("Worst wake-up (2 ms): not captured; it came before the threshold was known.")
        );
    }

    #[test]
    fn a_place_in_the_code_has_what_is_known() {
        let place = |function: Option<&str>, line: Option<u32>, samples, of| {
            let at = punctual_model::CodeFrame {
                function: function.map(str::to_owned),
                file: line.map(|_| "/src/robot/servo.c".to_owned()),
                line,
                object: "servo".to_owned(),
                address: Some(0x1234),
            };
            CodePlace { stack: vec![at.clone()], at, samples, of }
        };
        for (place, words) in [
            (place(Some("control_step"), Some(212), 1, 1), "at control_step (servo.c:212)"),
            (place(Some("control_step"), Some(212), 12, 14), "at control_step (servo.c:212) (12 of 14 samples)"),
            (place(Some("control_step"), None, 1, 1), "at control_step of servo"),
            (place(None, None, 1, 1), "in servo, which has no symbols"),
            (
                {
                    let mut of_python = place(Some("step"), Some(7), 1, 1);
                    of_python.at.line = None;
                    of_python
                },
                "at step (servo.c)",
            ),
        ] {
            assert_eq!(code_line(&place), words);
        }
        let with_code = Share {
            place: Some("usually 60 us".to_owned()),
            code: Some(place(Some("solve"), Some(9), 3, 4)),
            ..share(Cause::RanLonger, None, Evidence::Direct)
        };
        assert_eq!(
            said(vec![with_code], 391_000),
            "It ran 391 us, longer than usual: usually 60 us, at solve (servo.c:9) (3 of 4 samples) [direct]."
        );
    }

    #[test]
    fn the_blame_is_one_sentence_with_what_it_rests_on() {
        assert_eq!(said(Vec::new(), 0), "No cause made it late.");
        assert_eq!(
            said(vec![share(Cause::NotPreemptible, None, Evidence::Direct)], 400_000),
            "kworker vmstat_update ran 391 us in the kernel, not preemptible: rescheduled in refresh_cpu_vm_stats [direct]."
        );
        assert_eq!(
            said(vec![share(Cause::NotPreemptible, Some(Cause::CpuStalled), Evidence::Ambiguous)], 782_000),
            "kworker vmstat_update ran 391 us in the kernel, not preemptible, or the CPU was stalled (host, SMI): \
             rescheduled in refresh_cpu_vm_stats, 50 % of it [ambiguous]."
        );
        let slack = Share { place: None, ..share(Cause::TimerSlack, None, Evidence::Direct) };
        assert_eq!(said(vec![slack], 391_000), "Its timer was allowed to expire 391 us later (timer slack) [direct].");
        let many = Share {
            threads: 3,
            pieces: 9,
            place: None,
            longest: Span(50_000),
            ..share(Cause::FairScheduling, None, Evidence::Direct)
        };
        assert_eq!(
            said(vec![many], 391_000),
            "3 threads of kworker vmstat_update ran 391 us in 9 parts (longest 50 us): the fair scheduler shares the CPU [direct]."
        );
    }
}
