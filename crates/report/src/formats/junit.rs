//! JUnit XML for Jenkins, GitLab and most CI systems (`junit-10.xsd` of Jenkins' xUnit plugin, the Surefire schema).
//!
//! A violated limit is a `failure`. An inconclusive one is an `error`: it has no verdict and must not be green.

use super::page::Page;
use super::{Outcome, Test, as_tests};
use std::fmt::Write;

/// The cases of a run as one test suite.
pub fn junit(page: &Page<'_>) -> String {
    let tests = as_tests(page);
    let count = |outcome| tests.iter().filter(|test| test.outcome == outcome).count();
    let (failures, errors, skipped) = (count(Outcome::Failed), count(Outcome::Inconclusive), count(Outcome::NotAsked));
    // The sum of nothing is -0.
    let seconds = 0.0
        + match &page.given {
            Some(given) => given.iter().map(|test| test.seconds).sum::<f64>(),
            None => page.rows.iter().map(super::seconds).sum(),
        };
    let name = escaped(page.title);
    let counts = format!("tests=\"{}\" failures=\"{failures}\" errors=\"{errors}\"", tests.len());
    let host = page.host.hostname.as_deref().map(|host| format!(" hostname=\"{}\"", escaped(host)));
    let mut text = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    let _ = writeln!(text, "<testsuites name=\"punctual\" {counts} time=\"{seconds:.3}\">");
    let _ = writeln!(
        text,
        "  <testsuite name=\"{name}\" {counts} skipped=\"{skipped}\" time=\"{seconds:.3}\"{}{}>",
        page.started_unix_ms.map(timestamp).unwrap_or_default(),
        host.unwrap_or_default()
    );
    properties(&mut text, page);
    tests.iter().for_each(|test| case(&mut text, test));
    text.push_str("  </testsuite>\n</testsuites>\n");
    text
}

/// Writes the answer, the machine and the program version as properties.
fn properties(text: &mut String, page: &Page<'_>) {
    let host = page.host;
    let facts = [
        ("answer", Some(page.answer.to_string())),
        ("tool", Some(page.tool.to_owned())),
        ("cpu_model", host.cpu_model.clone()),
        ("kernel_release", host.kernel_release.clone()),
        ("preemption", host.preemption.map(|model| model.name().to_owned())),
        ("hypervisor", host.hypervisor.clone()),
        ("container", host.container.clone()),
    ];
    text.push_str("    <properties>\n");
    for (name, value) in facts.into_iter().filter_map(|(name, value)| Some((name, value?))) {
        let _ = writeln!(text, "      <property name=\"{name}\" value=\"{}\"/>", escaped(&value));
    }
    text.push_str("    </properties>\n");
}

fn case(text: &mut String, test: &Test<'_>) {
    let (of, limit, why) = (escaped(test.of), escaped(test.limit), escaped(&test.why));
    let _ = write!(text, "    <testcase classname=\"punctual.{of}\" name=\"{limit}\" time=\"{:.3}\">", test.seconds);
    let _ = match test.outcome {
        Outcome::Passed => write!(text, "<system-out>{why}</system-out>"),
        Outcome::Failed => write!(text, "<failure type=\"violated\" message=\"{why}\"/>"),
        Outcome::Inconclusive => write!(text, "<error type=\"inconclusive\" message=\"{why}\"/>"),
        Outcome::NotAsked => write!(text, "<skipped message=\"{why}\"/>"),
    };
    text.push_str("</testcase>\n");
}

/// ISO 8601 without a zone, as the schema requires; the time is UTC.
fn timestamp(unix_ms: u64) -> String {
    let text = crate::rfc3339(unix_ms);
    format!(" timestamp=\"{}\"", text.trim_end_matches('Z'))
}

/// Text for an attribute or an element. XML 1.0 cannot represent most control characters; they become blanks.
pub(crate) fn escaped(text: &str) -> String {
    let mut escaped = String::new();
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            // XML excludes noncharacters (Extensible Markup Language 1.0, 2.2).
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => escaped.push(' '),
            c => escaped.push(c),
        }
    }
    escaped
}
