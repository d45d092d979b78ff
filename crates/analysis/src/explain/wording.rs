//! Sentences and names for explanations: one sentence for the main cause, a few words for the rest.

use crate::wording::{duration, things};
use model::{Cause, CodePlace, Evidence, ExplainRecord, Explanation, NotCovered, Phase, Share, Span};

/// Name of a cause in tables.
pub fn cause_name(cause: Cause, or: Option<Cause>) -> String {
    let name = |cause| match cause {
        Cause::Steal => "CPU stalled",
        Cause::IrqsOff => "interrupts off",
        Cause::NonPreemptible => "not preemptible",
        Cause::Softirq => "softirq",
        Cause::Interrupt => "interrupt",
        Cause::HigherPriority => "higher priority",
        Cause::EqualPriority => "equal priority",
        Cause::Throttling => "throttling",
        Cause::Demoted => "demoted",
        Cause::FairScheduling => "fair scheduling",
        Cause::TimerSlack => "timer slack",
        Cause::IdleExit => "idle exit",
        Cause::PageFault => "page fault",
        Cause::Stopped => "stopped",
        Cause::OwnOverrun => "own overrun",
        Cause::Away => "link and target",
        Cause::VcpuWaiting => "vCPU off the CPU",
        Cause::EmulatorWaiting => "emulator off the CPU",
        Cause::Guest => "the guest itself",
        Cause::Emulation => "emulation",
        Cause::GuestStopped => "guest stopped",
        Cause::LongRun => "ran longer",
        Cause::Lock => "lock",
        Cause::KernelLock => "kernel lock",
        Cause::PriorityInversion => "priority inversion",
        Cause::Storage => "disk",
        Cause::Memory => "memory from the kernel",
        Cause::SystemCall => "system call",
        Cause::Migration => "migration",
        Cause::UsualRun => "its usual work",
        Cause::Ordinary => "the wake-up itself",
        Cause::Unknown => "unknown",
    };
    or.map_or_else(|| name(cause).to_owned(), |or| format!("{} or {}", name(cause), name(or)))
}

/// Name of a degree of evidence.
pub fn evidence_name(evidence: Evidence) -> &'static str {
    match evidence {
        Evidence::Direct => "direct",
        Evidence::Inferred => "inferred",
        Evidence::TwoReadings => "ambiguous",
        Evidence::CannotTell => "undetermined",
    }
}

/// Name of a phase.
pub fn phase_name(phase: Phase) -> &'static str {
    match phase {
        Phase::NotAsleep => "not yet waiting",
        Phase::Sending => "sending",
        Phase::Away => "away",
        Phase::Slack => "timer slack",
        Phase::Expiry => "expiry to interrupt",
        Phase::Handler => "interrupt to wakeup",
        Phase::Queue => "wakeup to switch",
        Phase::Return => "switch to user",
        Phase::Undivided => "whole wake-up",
        Phase::Activation => "activation",
    }
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
    sentence.push_str(&format!(" [{}]", evidence_name(share.evidence)));
    let mut letters = sentence.chars();
    // Names keep their case; other sentences begin with a capital.
    let first = letters.next().filter(|_| !sentence.starts_with(&share.owner.name));
    first.map_or(sentence.clone(), |first| format!("{}{}", first.to_uppercase(), letters.as_str())) + "."
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
            "The latest ({late}, CPU {cpu}, {at:.4} s) was not caught: the trace was being read for another one, or had just \
             restarted."
        ));
    }
    let max = max_ns.and_then(|ns| u64::try_from(ns).ok()).map(Span)?;
    let is_spike = explained.above.is_some_and(|above| max > above);
    let late = duration(max.ns() as f64);
    (is_spike && max > caught)
        .then(|| format!("The latest ({late}) was not caught: it came before the threshold was known."))
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
    let who = match share.threads {
        0 | 1 => name.clone(),
        n => format!("{n} threads of {name}"),
    };
    match (share.cause, share.or) {
        (Cause::IrqsOff, Some(Cause::Steal)) => {
            format!("{who} disabled interrupts for {took}{pieces}, or the CPU was stalled (host, SMI)")
        }
        (Cause::NonPreemptible, Some(Cause::Steal)) => {
            format!("{who} ran {took}{pieces} in the kernel, not preemptible, or the CPU was stalled (host, SMI)")
        }
        (Cause::IdleExit, Some(Cause::Steal)) => {
            format!("the idle CPU took {took}{pieces} to wake up, or was stalled (host, SMI)")
        }
        (Cause::HigherPriority, Some(Cause::Throttling)) => format!("{who} ran {took}{pieces} before it"),
        (Cause::Steal, Some(Cause::Interrupt)) => {
            format!("the CPU was stalled (host, SMI) for {took}{pieces} under {who}, or {who} ran so long")
        }
        (Cause::LongRun, Some(Cause::Steal)) => {
            format!("it ran {took}{pieces}, longer than usual, or the CPU was stalled (host, SMI)")
        }
        (Cause::OwnOverrun, Some(Cause::Steal)) => {
            format!("the measured thread was not yet waiting for {took}{pieces}, or the CPU was stalled (host, SMI)")
        }
        (cause, Some(or)) => format!("{who} {took}{pieces}: {}", cause_name(cause, Some(or))),
        (Cause::Steal, None) => format!("the CPU was stalled (host, SMI) for {took}{pieces} under {who}"),
        (Cause::IrqsOff, None) => format!("{who} disabled interrupts for {took}{pieces}"),
        (Cause::NonPreemptible, None) => format!("{who} ran {took}{pieces} in the kernel, not preemptible"),
        (Cause::Softirq | Cause::Interrupt, None) => format!("{who} ran {took}{pieces}"),
        (Cause::HigherPriority, None) => format!("{who}, of higher priority, ran {took}{pieces}"),
        (Cause::EqualPriority, None) => format!("{who}, of the same priority, ran first, {took}{pieces}"),
        (Cause::Throttling, None) => format!("throttling let {who} run {took}{pieces} instead"),
        (Cause::Demoted, None) => format!("{who} ran {took}{pieces}: the priority of the thread had been lowered"),
        (Cause::FairScheduling, None) => format!("{who} ran {took}{pieces}: the fair scheduler shares the CPU"),
        (Cause::TimerSlack, None) => format!("its timer was allowed to expire {took} later (timer slack)"),
        (Cause::IdleExit, None) => format!("the idle CPU took {took}{pieces} to wake up"),
        (Cause::PageFault, None) => format!("page faults of the thread took {took}{pieces}"),
        (Cause::Stopped, None) => format!("it was stopped for {took}{pieces}"),
        (Cause::OwnOverrun, None) => format!("the measured thread was not yet waiting for {took}{pieces}"),
        (Cause::Away, None) => format!("the answer took {took}{pieces} on the link and at the responder"),
        (Cause::VcpuWaiting, None) => format!("{who} ran {took}{pieces} on the host instead of the vCPU"),
        (Cause::EmulatorWaiting, None) => {
            format!("{who} ran {took}{pieces} on the host instead of the emulator, which was to wake the vCPU")
        }
        (Cause::Guest, None) => format!("the vCPU ran {took}{pieces} on the host: the guest itself was late"),
        (Cause::Emulation, None) => format!("the emulator worked for {took}{pieces}"),
        (Cause::GuestStopped, None) => format!("the guest was stopped on the host for {took}{pieces}"),
        (Cause::LongRun, None) => format!("it ran {took}{pieces}, longer than usual"),
        (Cause::Lock, None) => format!("it waited {took}{pieces} for a lock"),
        (Cause::KernelLock, None) => format!("it waited {took}{pieces} for a lock of the kernel"),
        (Cause::PriorityInversion, None) => format!("priority inversion: it waited {took}{pieces} for a lock"),
        (Cause::Storage, None) => format!("it waited {took}{pieces} for a disk"),
        (Cause::Memory, None) => format!("memory from the kernel took {took}{pieces}"),
        (Cause::SystemCall, None) => format!("a system call took {took}{pieces}"),
        (Cause::Migration, None) => format!("moving it to another CPU took {took}{pieces}"),
        (Cause::UsualRun, None) => format!("its usual work took {took}{pieces}"),
        (Cause::Ordinary, None) => format!("the wake-up itself took {took}"),
        (Cause::Unknown, None) => format!("no event explains {took}{pieces} with {who} on the CPU"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::Owner;

    fn share(cause: Cause, or: Option<Cause>, evidence: Evidence) -> Share {
        Share {
            phase: Phase::Queue,
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
        let still = |late: &str| Some(format!("The latest ({late}, CPU 1, 2.5000 s) was not caught")[..40].to_owned());
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
        assert_eq!(early.as_deref(), Some("The latest (2 ms) was not caught: it came before the threshold was known."));
    }

    #[test]
    fn a_place_in_the_code_has_what_is_known() {
        let place = |function: Option<&str>, line: Option<u32>, samples, of| {
            let at = model::CodeFrame {
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
        ] {
            assert_eq!(code_line(&place), words);
        }
        let with_code = Share {
            place: Some("usually 60 us".to_owned()),
            code: Some(place(Some("solve"), Some(9), 3, 4)),
            ..share(Cause::LongRun, None, Evidence::Direct)
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
            said(vec![share(Cause::NonPreemptible, None, Evidence::Direct)], 400_000),
            "kworker vmstat_update ran 391 us in the kernel, not preemptible: rescheduled in refresh_cpu_vm_stats [direct]."
        );
        assert_eq!(
            said(vec![share(Cause::NonPreemptible, Some(Cause::Steal), Evidence::TwoReadings)], 782_000),
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
