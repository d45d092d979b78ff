//! `cargo xtask results`: what a run of the tests says at its end, from the file that cargo-nextest writes.

use std::collections::BTreeMap;
use std::path::Path;

/// Tests named as the slowest.
const SLOWEST: usize = 20;

/// One test, as the file has it.
#[derive(Debug, PartialEq)]
struct Test {
    /// Program and path: `punctual::cli real::stalls::a_stop`.
    name: String,
    layer: String,
    seconds: f64,
    is_failed: bool,
    /// Attempts before the last one.
    retries: usize,
    skipped: Option<String>,
    inconclusive: Option<String>,
}

/// Prints the layers with their times, the slowest tests, what was skipped, inconclusive or flaky, and the sums.
pub(crate) fn print(file: &Path) -> Result<(), String> {
    let text = std::fs::read_to_string(file).map_err(|err| format!("cannot read {}: {err}", file.display()))?;
    println!("{}", summary(&tests(&text).map_err(|err| format!("{}: {err}", file.display()))?));
    Ok(())
}

/// The tests of a JUnit file.
fn tests(text: &str) -> Result<Vec<Test>, String> {
    let document = roxmltree::Document::parse(text).map_err(|err| err.to_string())?;
    let cases = document.descendants().filter(|node| node.has_tag_name("testcase"));
    let test = |case: roxmltree::Node<'_, '_>| {
        let attribute = |name| case.attribute(name).ok_or_else(|| format!("a test without `{name}`"));
        let (program, path) = (attribute("classname")?, attribute("name")?);
        let seconds =
            attribute("time")?.parse().map_err(|_| format!("invalid time of {path}: expected a number of seconds"))?;
        let outputs =
            case.children().filter(|child| child.has_tag_name("system-out") || child.has_tag_name("system-err"));
        let output: String = outputs.filter_map(|output| output.text()).collect::<Vec<_>>().join("\n");
        let said = |word: &str| output.lines().find_map(|line| Some(line.strip_prefix(word)?.to_owned()));
        let children =
            |names: &[&str]| case.children().filter(|child| names.contains(&child.tag_name().name())).count();
        Ok(Test {
            layer: layer(program, path).to_owned(),
            name: format!("{program} {path}"),
            seconds,
            is_failed: children(&["failure", "error"]) > 0,
            retries: children(&["flakyFailure", "flakyError", "rerunFailure", "rerunError"]),
            skipped: said("skipped: "),
            inconclusive: said("inconclusive: "),
        })
    };
    cases.map(test).collect()
}

/// The layer of a test: the folder of its module in the tests of the program; unit tests are one.
fn layer<'a>(program: &str, path: &'a str) -> &'a str {
    let folder = path.split("::").next().filter(|_| program == "punctual::cli");
    folder.filter(|name| ["life", "real", "guest", "host", "field"].contains(name)).unwrap_or("pure")
}

fn summary(tests: &[Test]) -> String {
    let mut lines = vec![format!("{:<7}{:>6}{:>10}", "layer", "tests", "seconds")];
    let mut layers: BTreeMap<&str, (usize, f64)> = BTreeMap::new();
    for test in tests {
        let (n, seconds) = layers.entry(&test.layer).or_default();
        (*n, *seconds) = (*n + 1, *seconds + test.seconds);
    }
    lines.extend(layers.iter().map(|(layer, (n, seconds))| format!("{layer:<7}{n:>6}{seconds:>10.1}")));
    let mut by_time: Vec<&Test> = tests.iter().collect();
    by_time.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
    lines.push(format!("the {} slowest, seconds:", SLOWEST.min(tests.len())));
    lines.extend(by_time.iter().take(SLOWEST).map(|test| format!("{:>8.1}  {}", test.seconds, test.name)));
    let mut list = |word: &str, reason: fn(&Test) -> Option<&String>| {
        let all: Vec<_> = tests.iter().filter_map(|test| Some((test, reason(test)?))).collect();
        if !all.is_empty() {
            lines.push(format!("{} {word}:", all.len()));
            lines.extend(all.iter().map(|(test, reason)| format!("  {}: {reason}", test.name)));
        }
        all.len()
    };
    let skipped = list("skipped", |test| test.skipped.as_ref());
    let inconclusive = list("inconclusive", |test| test.inconclusive.as_ref().filter(|_| test.skipped.is_none()));
    let flaky = tests.iter().filter(|test| test.retries > 0 && !test.is_failed);
    lines.extend(flaky.map(|test| format!("FLAKY {} {}/{}", test.name, test.retries, test.retries + 1)));
    let failed: Vec<_> = tests.iter().filter(|test| test.is_failed).collect();
    lines.extend(failed.iter().map(|test| format!("FAILED {}", test.name)));
    lines.push(format!(
        "tests: {} passed, {skipped} skipped, {inconclusive} inconclusive, {} failed",
        tests.len() - failed.len() - skipped - inconclusive,
        failed.len()
    ));
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_test_counts_once_and_what_it_says_is_listed() {
        let file = r#"<?xml version="1.0" encoding="UTF-8"?>
<testsuites name="nextest-run" tests="5">
<testsuite name="punctual::cli" tests="4">
<testcase name="real::stalls::a" classname="punctual::cli" time="2.5"><system-err>skipped: needs root
</system-err></testcase>
<testcase name="guest::lab::b" classname="punctual::cli" time="30.0"><system-out>
inconclusive: the machine stood still
</system-out></testcase>
<testcase name="schema::c" classname="punctual::cli" time="0.1"><failure type="test failure">x</failure></testcase>
<testcase name="field::board::d" classname="punctual::cli" time="9"><flakyFailure type="test failure"/></testcase>
</testsuite>
<testsuite name="punctual-analysis" tests="1">
<testcase name="real::e" classname="punctual-analysis" time="0.01"/>
</testsuite></testsuites>"#;
        let said = summary(&tests(file).unwrap());
        let expected = "layer   tests   seconds
field       1       9.0
guest       1      30.0
pure        2       0.1
real        1       2.5
the 5 slowest, seconds:
    30.0  punctual::cli guest::lab::b
     9.0  punctual::cli field::board::d
     2.5  punctual::cli real::stalls::a
     0.1  punctual::cli schema::c
     0.0  punctual-analysis real::e
1 skipped:
  punctual::cli real::stalls::a: needs root
1 inconclusive:
  punctual::cli guest::lab::b: the machine stood still
FLAKY punctual::cli field::board::d 1/2
FAILED punctual::cli schema::c
tests: 2 passed, 1 skipped, 1 inconclusive, 1 failed";
        assert_eq!(said, expected);
        for (file, error) in [("<a><testcase/></a>", "a test without `classname`"), ("<a>", "never closed")] {
            assert!(tests(file).unwrap_err().contains(error), "{file}");
        }
    }
}
