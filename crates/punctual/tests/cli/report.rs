//! `punctual report`, and the page that `run` writes next to its records.

use crate::program::{Scratch, command, import_fixture, machine, punctual, run};
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
fn what_cannot_be_read_or_written_is_one_line() {
    let scratch = Scratch::new("report-errors");
    let absent = scratch.path("absent");
    punctual(&format!("report {}", absent.display())).expect_error(&format!(
        "invalid run {}: it has no run.jsonl; name a directory written by `punctual run`",
        absent.display()
    ));
    run(command("report").current_dir(scratch.dir()))
        .expect_error("no run below runs/: name the directory of a run, or measure first: punctual run");
}

#[test]
fn old_data_get_a_page_of_their_own_and_beside_each_other() {
    let scratch = Scratch::new("report-imported");
    let fixture = |name: &str| import_fixture(name).display().to_string();
    let old = scratch.path("old");
    let files = ["cyclictest.json", "jitterdebugger-us.raw", "cyclictest-q.txt"].map(fixture).join(" ");
    punctual(&format!("import {files} --title A&B --out {}", old.display())).expect_success();
    let said = punctual(&format!("report {}", old.display()));
    let page = old.join("report.html");
    assert_eq!((said.status, said.stdout), (0, format!("{}\n", page.display())), "{}", said.stderr);
    let first = fs::read_to_string(&page).unwrap();
    for part in [
        "<h1>A&amp;B</h1>",
        "\u{2265} 30 us<small>beyond the histogram</small>",
        "-<small>no distribution</small>",
        "<figcaption>Worst so far</figcaption>",
        "histogram overflow: 1 083 samples",
        "cyclictest -q -m -p80 -S -i 1000 -l 3000 -h 30 --json=h.json",
    ] {
        assert!(first.contains(part), "{part}");
    }
    // A run named by its file produces the same page.
    fs::remove_file(&page).unwrap();
    punctual(&format!("report {}", old.join("imported.jsonl").display()));
    assert_eq!(fs::read_to_string(&page).unwrap(), first);
    let both = scratch.path("both.html");
    punctual(&format!("report {0} {0} -o {1}", old.display(), both.display())).expect_success();
    let both = fs::read_to_string(&both).unwrap();
    assert!(both.contains("aria-label=\"B cyclictest.json\">B cyclictest.json</a>"));
}
