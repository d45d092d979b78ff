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
            Ok(output) => judgement(period, output.status.code(), &String::from_utf8_lossy(&output.stdout)),
            Err(err) => format!("{period}: unknown, because {err}"),
        }
    });
    format!("fit for {}", judged.join("; "))
}

/// The answer for one period, from exit status and output of `punctual check`: 0 passed, 2 violated, 3 inconclusive.
fn judgement(period: &str, status: Option<i32>, output: &str) -> String {
    let verdict = output.lines().find_map(|line| line.strip_prefix("Verdict: ")).unwrap_or_default();
    let reason = verdict.split_once(' ').map_or("the run cannot be judged", |(_, reason)| reason);
    match status {
        Some(0) => format!("{period}: yes"),
        Some(2) => format!("{period}: no, because {reason}"),
        _ => format!("{period}: not known, because {reason}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_passed_check_is_a_yes() {
        let late = "Verdict: FAIL messaging/fifo:80: max 310 us > 250 us\n";
        for (status, output, expected) in [
            (Some(0), "Verdict: PASS all\n", "1 ms: yes"),
            (Some(2), late, "1 ms: no, because messaging/fifo:80: max 310 us > 250 us"),
            (Some(3), "Verdict: INCONCLUSIVE too few\n", "1 ms: not known, because too few"),
            (Some(1), "", "1 ms: not known, because the run cannot be judged"),
            (None, "Verdict: PASS all\n", "1 ms: not known, because all"),
        ] {
            assert_eq!(judgement("1 ms", status, output), expected);
        }
    }
}
