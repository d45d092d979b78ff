//! Test Anything Protocol, version 13 (testanything.org), for `prove` and kernel selftests.

use super::page::Page;
use super::{Outcome, as_tests};
use std::fmt::Write;

/// The cases of a run. An inconclusive one is `not ok`, with its verdict in the YAML block.
pub fn tap(page: &Page<'_>) -> String {
    let tests = as_tests(page);
    let mut text = format!("TAP version 13\n1..{}", tests.len());
    text.push_str(if tests.is_empty() { " # SKIP nothing was measured\n" } else { "\n" });
    for (test, number) in tests.iter().zip(1..) {
        let ok = if matches!(test.outcome, Outcome::Passed | Outcome::NotAsked) { "ok" } else { "not ok" };
        let skip = if test.outcome == Outcome::NotAsked { " # SKIP nothing was required" } else { "" };
        let _ = writeln!(text, "{ok} {number} - {} {}{skip}", described(test.of), described(test.limit));
        let verdict = match test.outcome {
            Outcome::Passed => "PASS",
            Outcome::Failed => "FAIL",
            Outcome::Inconclusive => "INCONCLUSIVE",
            Outcome::NotAsked => continue,
        };
        let _ = writeln!(text, "  ---\n  verdict: {verdict}\n  message: \"{}\"\n  ...", quoted(&test.why));
    }
    for sentence in &page.sentences {
        let _ = writeln!(text, "# {}", sentence.replace(char::is_control, " "));
    }
    text
}

/// A description without line breaks and directives.
fn described(text: &str) -> String {
    text.replace(char::is_control, " ").replace('\\', "\\\\").replace('#', "\\#")
}

/// Text for a double-quoted YAML string.
fn quoted(text: &str) -> String {
    text.replace(char::is_control, " ").replace('\\', "\\\\").replace('"', "\\\"")
}
