//! The answer of a stick: for which periods this PC is good enough.

use std::process::{Command, Stdio};

/// Periods, with the latency that leaves half of each for the work.
const LIMITS: [(&str, &str); 4] = [("2 ms", "1ms"), ("1 ms", "500us"), ("500 us", "250us"), ("250 us", "125us")];

/// The answers from the run in `dir`, one line.
pub(super) fn answer(dir: &str) -> String {
    let judged = LIMITS.map(|(period, limit)| {
        let mut command = Command::new(punctual_host::THIS_PROGRAM);
        let command = command.args(["check", dir, "--require", &format!("max={limit}")]).stdin(Stdio::null());
        match command.output() {
            Ok(output) => (period, judgement(output.status.code(), &String::from_utf8_lossy(&output.stdout))),
            Err(err) => (period, format!("not known, because {err}")),
        }
    });
    joined(&judged)
}

/// The judgement for one period, from exit status and output of `punctual check`: 0 passed, 2 violated, 3 inconclusive.
/// Of several reasons the first one is named.
fn judgement(status: Option<i32>, output: &str) -> String {
    let verdict = output.lines().find_map(|line| line.strip_prefix("Verdict: ")).unwrap_or_default();
    let reason = verdict.split_once(' ').map_or("the run cannot be judged", |(_, reasons)| reasons);
    let reason = reason.split(';').next().unwrap_or(reason);
    match status {
        Some(0) => "yes".to_owned(),
        Some(2) => format!("no, because {reason}"),
        _ => format!("not known, because {reason}"),
    }
}

/// All judgements as a sentence; what is too late for a period is too late for the shorter ones after it.
fn joined(judged: &[(&str, String)]) -> String {
    let first_no = judged.iter().position(|(_, judgement)| judgement.starts_with("no,")).unwrap_or(judged.len());
    let (told, shorter) = judged.split_at((first_no + 1).min(judged.len()));
    let told = told.iter().map(|(period, judgement)| format!("{period}: {judgement}"));
    let shorter = shorter.iter().map(|(period, _)| format!("{period}: no"));
    format!("fit for {}", told.chain(shorter).collect::<Vec<_>>().join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_passed_check_is_a_yes() {
        let late =
            "Verdict: FAIL messaging/fifo:80: max 310 us > 250 us; none/fifo:80: max 260 us > 250 us; and\n  1 more";
        for (status, output, expected) in [
            (Some(0), "Verdict: PASS all\n", "yes"),
            (Some(2), late, "no, because messaging/fifo:80: max 310 us > 250 us"),
            (Some(3), "Verdict: INCONCLUSIVE: too few\n", "not known, because too few"),
            (Some(1), "", "not known, because the run cannot be judged"),
            (None, "Verdict: PASS all\n", "not known, because all"),
        ] {
            assert_eq!(judgement(status, output), expected);
        }
    }

    #[test]
    fn the_reason_is_named_once() {
        let all = |judgements: [&str; 3]| {
            let judged: Vec<_> = ["2 ms", "1 ms", "500 us"].into_iter().zip(judgements.map(str::to_owned)).collect();
            joined(&judged)
        };
        assert_eq!(all(["yes"; 3]), "fit for 2 ms: yes; 1 ms: yes; 500 us: yes");
        let late = "no, because max 3 ms > 500 us";
        assert_eq!(all(["yes", late, late]), format!("fit for 2 ms: yes; 1 ms: {late}; 500 us: no"));
        assert_eq!(all(["yes", "yes", late]), format!("fit for 2 ms: yes; 1 ms: yes; 500 us: {late}"));
        let unknown = "not known, because too few";
        assert_eq!(all([unknown; 3]), format!("fit for 2 ms: {unknown}; 1 ms: {unknown}; 500 us: {unknown}"));
    }
}
