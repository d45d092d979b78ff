//! Test-case signals of LAVA: lines that the dispatcher recognizes on a board's console.
//!
//! Each parameter is `KEY=VALUE` without blanks or a second `=`; the dispatcher splits at both (`handle_testcase` of
//! its lava_test_shell). Results are pass, fail, skip and unknown.

use super::page::Page;
use super::{Outcome, as_tests, decimal};
use std::collections::HashSet;
use std::fmt::Write;

/// The measurements of each cell, in microseconds, then the verdict on each limit.
pub fn lava(page: &Page<'_>) -> String {
    let mut signals = Signals { text: String::new(), used: HashSet::new() };
    for cell in &page.rows {
        for (name, value_ns) in super::latencies(cell) {
            let result = if value_ns.is_some() { "pass" } else { "unknown" };
            let measurement =
                value_ns.map(|ns| format!(" UNITS={} MEASUREMENT={}", super::unit(cell), decimal(ns / 1e3)));
            signals.case(&format!("{}-{name}", cell.name), result, &measurement.unwrap_or_default());
        }
        if let Some(missed) = cell.missed {
            signals.case(&format!("{}-missed", cell.name), "pass", &format!(" UNITS=cycles MEASUREMENT={missed}"));
        }
    }
    for test in as_tests(page) {
        let result = match test.outcome {
            Outcome::Passed => "pass",
            Outcome::Failed => "fail",
            Outcome::Inconclusive => "unknown",
            Outcome::NotAsked => continue,
        };
        signals.case(&format!("{}-{}", test.of, test.limit), result, "");
    }
    signals.text
}

struct Signals {
    text: String,
    used: HashSet<String>,
}

impl Signals {
    fn case(&mut self, name: &str, result: &str, measurement: &str) {
        let plain = slug(name);
        let mut id = plain.clone();
        let mut again = 2;
        // Distinct names stay distinct, although identifiers lose characters.
        while !self.used.insert(id.clone()) {
            id = format!("{plain}-{again}");
            again += 1;
        }
        let _ = writeln!(self.text, "<LAVA_SIGNAL_TESTCASE TEST_CASE_ID={id} RESULT={result}{measurement}>");
    }
}

/// Keeps letters, digits, `_`, `.` and `-`; other characters become a single `-`.
fn slug(name: &str) -> String {
    let mut slug = String::new();
    for c in name.chars() {
        match c {
            'a'..='z' | 'A'..='Z' | '0'..='9' | '_' | '.' => slug.push(c),
            _ if slug.ends_with('-') => {}
            _ => slug.push('-'),
        }
    }
    slug.trim_matches('-').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_identifiers() {
        for (name, id) in [
            ("none/fifo:80-p99.9", "none-fifo-80-p99.9"),
            ("cmd:make -j4 = x/other-max=1ms", "cmd-make-j4-x-other-max-1ms"),
            ("/", ""),
        ] {
            assert_eq!(slug(name), id);
        }
    }

    #[test]
    fn names_that_become_alike_stay_apart() {
        let mut signals = Signals { text: String::new(), used: HashSet::new() };
        signals.case("a/b", "pass", "");
        signals.case("a:b", "fail", "");
        assert!(signals.text.contains("ID=a-b ") && signals.text.contains("ID=a-b-2 "), "{}", signals.text);
    }
}
