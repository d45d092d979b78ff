//! `punctual report` of imported measurements, and what it refuses.

use crate::program::{Scratch, command, import_fixture, punctual, run};
use std::fs;

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
