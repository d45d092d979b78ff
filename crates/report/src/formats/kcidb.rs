//! KCIDB, the database of kernel test results: a report of its I/O schema 5.3, for `kcidb-submit`.
//!
//! Each number and each limit of a cell is a test run. A test belongs to a build of a kernel and that to a checkout of
//! its source, of which a run knows only the release; the user who built the kernel replaces their identifiers. A
//! violated limit is FAIL; an inconclusive one is ERROR, because the status of the kernel is unknown.

use super::page::Page;
use super::{Outcome, as_tests};
use punctual_analysis::{Origin, Row};
use punctual_model::Host;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, HashSet};

/// Identifier of the submitter, which KCIDB calls an origin. It begins every other identifier.
const ORIGIN: &str = "punctual";

/// The numbers of each cell, then the verdict on each limit.
pub fn kcidb(page: &Page<'_>) -> String {
    let mut report = Report::of(page);
    let builds: Vec<String> = page.rows.iter().map(|row| report.build(lab_kernel(row), row.host)).collect();
    for (row, build) in page.rows.iter().zip(&builds) {
        for (name, value_ns) in super::latencies(row) {
            let Some(value_ns) = value_ns else { continue };
            let number = json!({"value": value_ns / 1e3, "unit": super::unit(row)});
            report.test(row.name, &name.replace('.', "_"), build, "DONE", [("number", number)]);
        }
        if let Some(missed) = row.missed {
            report.test(row.name, "missed", build, "DONE", [("number", json!({"value": missed, "unit": "cycles"}))]);
        }
    }
    for test in as_tests(page) {
        let status = match test.outcome {
            Outcome::Passed => "PASS",
            Outcome::Failed => "FAIL",
            Outcome::Inconclusive => "ERROR",
            Outcome::NotAsked => continue,
        };
        let of = page.rows.iter().position(|row| row.name == test.of);
        // What is about the whole run is about its one kernel, or the machine that it ran on.
        let one = of.or_else(|| builds.windows(2).all(|pair| pair[0] == pair[1]).then_some(0));
        let build = one.and_then(|at| builds.get(at)).cloned().unwrap_or_else(|| report.build(None, page.host));
        report.test(test.of, test.limit, &build, status, [("log_excerpt", json!(plain(&test.why)))]);
    }
    report.into_text()
}

/// A report under construction.
struct Report<'a> {
    page: &'a Page<'a>,
    /// Identifier of the run.
    run: String,
    checkouts: BTreeMap<String, Value>,
    builds: BTreeMap<String, Value>,
    tests: Vec<Value>,
    paths: HashSet<String>,
}

impl<'a> Report<'a> {
    fn of(page: &'a Page<'a>) -> Report<'a> {
        let host = page.host.hostname.as_deref().unwrap_or("unknown");
        let run = format!("{ORIGIN}:{}:{}", plain(host), page.started_unix_ms.unwrap_or(0));
        let (checkouts, builds) = (BTreeMap::new(), BTreeMap::new());
        Report { page, run, checkouts, builds, tests: Vec::new(), paths: HashSet::new() }
    }

    /// Adds the kernel of the lab or of a machine, if it is new; returns the identifier of its build.
    fn build(&mut self, lab: Option<String>, host: &Host) -> String {
        let release = lab.as_deref().or(host.kernel_release.as_deref()).unwrap_or("unknown");
        let release = plain(release);
        // The architecture of a guest is part of the kernel's name.
        let architecture = host.architecture.as_deref().filter(|_| lab.is_none()).unwrap_or_default();
        let architecture: String =
            architecture.chars().filter(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || *c == '_').collect();
        let checkout = format!("{ORIGIN}:kernel:{release}");
        let id = format!("{checkout}:{architecture}");
        let kernel = json!({"id": checkout, "origin": ORIGIN, "comment": format!("Linux {release}")});
        self.checkouts.entry(checkout.clone()).or_insert(kernel);
        let mut build = json!({"id": id, "origin": ORIGIN, "checkout_id": checkout});
        if !architecture.is_empty() {
            build["architecture"] = json!(architecture);
        }
        self.builds.entry(id.clone()).or_insert(build);
        id
    }

    /// Adds a test run with further members.
    fn test<const N: usize>(&mut self, of: &str, what: &str, build: &str, status: &str, more: [(&str, Value); N]) {
        let row = self.page.rows.iter().find(|row| row.name == of);
        let path = self.path(of, what);
        let mut test = json!({
            "id": format!("{}:{path}", self.run),
            "origin": ORIGIN,
            "build_id": build,
            "path": path,
            "comment": plain(&format!("{of}: {what}")),
            "status": status,
            "environment": environment(self.page, row),
            "misc": {"title": plain(self.page.title), "tool": plain(self.page.tool)},
        });
        if let Some(started) = row.and_then(|row| row.started_unix_ms).or(self.page.started_unix_ms) {
            test["start_time"] = json!(crate::rfc3339(started));
        }
        if let Some(row) = row {
            test["misc"]["cell"] = cell(row);
            if row.measured.is_some() {
                test["duration"] = json!(super::seconds(row));
            }
        }
        for (key, value) in more {
            test[key] = value;
        }
        self.tests.push(test);
    }

    /// The path of a test in the tree of all tests: `punctual.CELL.WHAT`. Distinct names stay distinct, although paths
    /// lose characters.
    fn path(&mut self, of: &str, what: &str) -> String {
        let plain = format!("{ORIGIN}.{}.{}", node(of), node(what));
        let again = (2..).map(|number| format!("{plain}_{number}"));
        let free = std::iter::once(plain.clone()).chain(again).find(|path| !self.paths.contains(path));
        let path = free.unwrap_or_default();
        self.paths.insert(path.clone());
        path
    }

    fn into_text(self) -> String {
        let document = json!({
            "version": {"major": 5, "minor": 3},
            "checkouts": self.checkouts.into_values().collect::<Vec<_>>(),
            "builds": self.builds.into_values().collect::<Vec<_>>(),
            "tests": self.tests,
        });
        format!("{document:#}\n")
    }
}

/// The kernel of a cell in the lab.
fn lab_kernel(row: &Row<'_>) -> Option<String> {
    match row.origin {
        Origin::Own(summary, _) if !summary.cell.kernel.is_here() => Some(summary.cell.kernel.to_string()),
        _ => None,
    }
}

/// The machine of a test.
fn environment(page: &Page<'_>, row: Option<&Row<'_>>) -> Value {
    let host = row.map_or(page.host, |row| row.host);
    let facts = [
        ("hostname", host.hostname.clone()),
        ("cpu_model", host.cpu_model.clone()),
        ("preemption", host.preemption.map(|model| model.name().to_owned())),
        ("hypervisor", host.hypervisor.clone()),
        ("container", host.container.clone()),
    ];
    let misc: Map<_, _> =
        facts.into_iter().filter_map(|(key, value)| Some((key.to_owned(), json!(plain(&value?))))).collect();
    let comment = [host.hostname.as_deref(), host.cpu_model.as_deref()].into_iter().flatten().collect::<Vec<_>>();
    json!({"comment": plain(&comment.join(", ")), "misc": misc})
}

/// The conditions of a cell.
fn cell(row: &Row<'_>) -> Value {
    let facts = [
        ("name", Some(row.name.to_owned())),
        ("load", row.load.as_ref().map(ToString::to_string)),
        ("policy", row.policy.clone()),
        ("period", row.period.map(|period| period.to_string())),
        ("method", row.method.clone()),
        ("cpus", row.cpus.clone()),
    ];
    let text = facts.into_iter().filter_map(|(key, value)| Some((key.to_owned(), json!(plain(&value?)))));
    let number = row.samples.map(|samples| ("samples".to_owned(), json!(samples)));
    Value::Object(text.chain(number).collect())
}

/// Keeps letters, digits, `_` and `-`; other characters become a single `_`. A node of a path is not empty.
fn node(name: &str) -> String {
    let mut node = String::new();
    for c in name.chars() {
        match c {
            'a'..='z' | 'A'..='Z' | '0'..='9' | '-' => node.push(c),
            _ if node.ends_with('_') => {}
            _ => node.push('_'),
        }
    }
    let node = node.trim_matches('_');
    if node.is_empty() { "_".to_owned() } else { node.to_owned() }
}

/// The text without control characters: KCIDB excludes zero bytes, and pages show the rest.
fn plain(text: &str) -> String {
    punctual_model::plain(text).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_are_of_the_path_alphabet() {
        for (name, expected) in [("none/fifo:80", "none_fifo_80"), ("p99.9", "p99_9"), ("/", "_"), ("a--b", "a--b")] {
            assert_eq!(node(name), expected);
        }
    }
}
