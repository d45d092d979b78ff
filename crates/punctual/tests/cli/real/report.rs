//! What a run leaves: its page, and the records from which the page and every report are made again.

use crate::program::{Scratch, a_cpu, machine, machine_and_scratch, punctual};
use std::fs;

#[test]
fn a_run_leaves_its_page_and_report_makes_it_again() {
    let scratch = Scratch::new("report");
    let (run, plan) = (scratch.path("run"), scratch.path("plan.toml"));
    fs::write(&plan, "title = \"A & B\"\nrepetitions = 2\nduration = \"50ms\"\nwarm_up = \"0s\"\n[axes]\nload = [\"none\"]\npolicy = [\"other\"]\n").unwrap();
    let _machine = machine();
    let said = punctual(&format!("run {} --wait --out {}", plan.display(), run.display()));
    let page = run.join("report.html");
    assert!(said.stderr.ends_with(&format!("report: {}\n", page.display())), "{said:?}");
    let first = fs::read_to_string(&page).unwrap();
    assert!(first.contains("<h1>A &amp; B</h1>") && first.contains("none/other"));

    // The same records produce the same page, wherever it is written.
    fs::remove_file(&page).unwrap();
    let said = punctual(&format!("report {}", run.display()));
    assert_eq!((said.stdout, said.status), (format!("{}\n", page.display()), 0));
    assert_eq!(fs::read_to_string(&page).unwrap(), first);
    let other = scratch.path("other.html");
    let said = punctual(&format!("report {} -o {}", run.join("run.jsonl").display(), other.display()));
    assert_eq!((said.status, fs::read_to_string(&other).unwrap()), (0, first));
    assert_eq!(fs::read_dir(&run).unwrap().count(), 2, "nothing half written stays");

    punctual(&format!("report {0} {0} -o {1}", run.display(), other.display())).expect_success();
    assert!(fs::read_to_string(&other).unwrap().contains("aria-label=\"B none/other\""));

    let script = run.join("report.gnuplot");
    let said = punctual(&format!("report {} --format gnuplot", run.display()));
    assert_eq!((said.stdout, said.status), (format!("{}\n", script.display()), 0));
    let shown = punctual(&format!("show {} --format gnuplot", run.display()));
    assert_eq!(fs::read_to_string(&script).unwrap(), shown.stdout, "the same script");
    punctual(&format!("report {0} {0} --format gnuplot -o {1}", run.display(), other.display())).expect_success();
    assert!(fs::read_to_string(&other).unwrap().contains("title 'B none/other"));

    // The records suffice to reconstruct the plan.
    let text = fs::read_to_string(&page).unwrap();
    let written = text.split("<pre tabindex=0><code>").nth(2).unwrap().split("</code>").next().unwrap();
    let plan = model::Plan::parse(&written.replace("&quot;", "\"").replace("&amp;", "&")).unwrap();
    assert_eq!((plan.title.as_str(), plan.repetitions), ("A & B", 2));
}

#[test]
fn a_run_is_shown_as_it_was_when_it_was_measured() {
    let (_machine, scratch) = machine_and_scratch("report-formats");
    let plan = scratch.file("plan.toml", "[axes]\nload = [\"none\"]\npolicy = [\"other\", \"other:nice=5\"]\n");
    let dir = scratch.path("run");
    let measured = punctual(&format!(
        "run {} --wait --out {} --quick --duration 200ms --cpus {} --format junit --require max=10s",
        plan.display(),
        dir.display(),
        a_cpu()
    ));
    assert!(measured.stdout.starts_with("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites "), "{measured:?}");
    let shown = punctual(&format!("show {} --format junit", dir.display()));
    assert_eq!(shown.stdout, measured.stdout, "the same records, the same report");
    // The verdict is that of the limit, whatever the machine did.
    let checked = punctual(&format!("check {} --require max=10s", dir.display()));
    assert_eq!(checked.status, measured.status);
}
