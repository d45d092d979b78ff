//! Published studies: listed, shown, filled by runs, repeated.

use crate::program::{Scratch, command, entries, import_fixture, is_root, machine_and_scratch, punctual, run};
use crate::schema::assert_conforms;

/// Studies that a plan repeats.
const REPEATED: [&str; 5] = [
    "adeos-2005",
    "arm64-preemption-models",
    "debian10-stock-vs-rt-2020",
    "python-sleep-2021",
    "toshiba-periodic-2010",
];

#[test]
fn studies_are_listed_and_shown_without_files() {
    let scratch = Scratch::new("studies");
    let here = |words: &str| run(command(words).current_dir(scratch.dir())).expect_success();
    let listed = here("study list --format json").json();
    assert_conforms("study-list", &listed);
    let studies = listed["studies"].as_array().unwrap();
    let repeated: Vec<_> = studies.iter().filter(|study| !study["ways"].as_array().unwrap().is_empty()).collect();
    assert_eq!(repeated.iter().map(|study| study["name"].as_str().unwrap()).collect::<Vec<_>>(), REPEATED);
    for name in REPEATED {
        let shown = here(&format!("study show {name} --format json")).json();
        assert_conforms("study", &shown);
        let conclusions = shown["conclusions"].as_array().unwrap();
        assert!(conclusions.iter().all(|one| one["verdict"] == "not_tested"), "{name}: {conclusions:?}");
        assert!(shown["ways"].as_array().unwrap().len() >= 2, "{name}");
        let text = here(&format!("study show {name}")).stdout;
        assert!(text.contains("Conclusions") && text.contains("This machine") && text.contains("published"), "{text}");
        let csv = here(&format!("study show {name} --format csv")).stdout;
        assert!(csv.starts_with("table,") && csv.contains(",published,"), "{csv}");
    }
    let numbers = here("study show ospert-2013").stdout;
    assert!(!numbers.contains("This machine"), "{numbers}");
    assert!(std::fs::read_dir(scratch.dir()).unwrap().next().is_none(), "files were left");
}

#[test]
fn what_is_no_study_or_no_way_is_one_line() {
    let scratch = Scratch::new("no-study");
    let import = scratch.path("import");
    punctual(&format!("import {} --out {}", import_fixture("cyclictest-h.txt").display(), import.display()))
        .expect_success();
    for (words, message) in [
        ("study show toshiba", "unknown study `toshiba` (known: adeos-2005 "),
        ("study run ospert-2013", "unsupported: no plan repeats ospert-2013, whose numbers only are known"),
        ("study run adeos-2005 --way labs", "unknown way `labs` (known: lab cost co-kernel machines)"),
        ("study run adeos-2005 --way co-kernel", "way co-kernel needs a kernel with Dovetail and Cobalt"),
        ("study run adeos-2005 --set load=none", "--way"),
        ("study run adeos-2005 --resume", "--out"),
        ("study show adeos-2005 /none", "/none"),
        (&format!("study show adeos-2005 {}", import.display()), "imported measurements do not belong to a study"),
    ] {
        let said = punctual(words);
        assert!(said.status == 1 && said.stderr.contains(message), "{words}: {}", said.stderr);
        assert!(said.stdout.is_empty(), "{words}: {}", said.stdout);
    }
}

/// The running kernel has one preemption model, so orders of kernels are not tested; those of policies are.
#[test]
fn root_a_study_is_repeated_on_the_running_kernel() {
    let (_machine, scratch) = machine_and_scratch("study-run");
    if !is_root() {
        return;
    }
    let out = scratch.path("study");
    let words = format!(
        "study run debian10-stock-vs-rt-2020 --way here --quick --repetitions 3 --wait --out {}",
        out.display()
    );
    let said = punctual(&format!("{words} --format json")).expect_success();
    let shown = said.json();
    assert_conforms("study", &shown);
    let verdict = |says: &str| {
        let conclusions = shown["conclusions"].as_array().unwrap();
        let found = conclusions.iter().find(|one| one["says"].as_str().unwrap().starts_with(says));
        found.unwrap_or_else(|| panic!("{says}: {conclusions:?}"))["verdict"].as_str().unwrap().to_owned()
    };
    assert_eq!(verdict("As SCHED_FIFO, the largest latency of PREEMPT_RT is below"), "not_tested");
    assert_ne!(verdict("On both kernels the largest latency as SCHED_FIFO"), "not_tested");
    let rows = shown["tables"][0]["rows"].as_array().unwrap();
    let filled: Vec<_> = rows.iter().filter(|row| !row["runs"].as_array().unwrap().is_empty()).collect();
    assert_eq!(filled.len(), 8, "two loads, policies and threads of one kernel: {filled:?}");
    assert_eq!(entries(&out.join("here")).len(), 12);
    assert!(out.join("report.html").exists());
    // Nothing is left to measure; the same tables come from the run by its name.
    let again = format!("study run debian10-stock-vs-rt-2020 --way here --resume --out {}", out.display());
    punctual(&again).expect_success();
    let by_name = format!("study show debian10-stock-vs-rt-2020 {} --format json", out.join("here").display());
    let by_name = punctual(&by_name).expect_success().json();
    assert_eq!((&by_name["tables"], &by_name["conclusions"]), (&shown["tables"], &shown["conclusions"]));
}
