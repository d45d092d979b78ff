//! Published studies: listed and shown.

use crate::program::{Scratch, command, import_fixture, punctual, run};
use crate::pure::schema::assert_conforms;

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

#[test]
fn own_values_take_the_place_of_those_of_a_way_which_is_resumed_by_name() {
    let scratch = Scratch::new("study-set");
    let words = "study run arm64-preemption-models --way lab --set kernel=/no/such/kernel --out out";
    // It has a lock of its own: of guests in virtual time, nothing is measured here.
    let said = run(command(words).current_dir(scratch.dir()).env("PUNCTUAL_LOCK", scratch.path("lock")));
    assert!(said.status == 1 && said.stderr.contains("/no/such/kernel"), "{said:?}");
    let again = "try again with: punctual study run arm64-preemption-models --way lab --resume --out out";
    assert!(said.last_line().ends_with(again), "{}", said.stderr);
}
