//! `punctual verify` on this machine: however busy it is, no promise is called broken.

use crate::program::{
    Start, UNPRIVILEGED, command, is_root, machine, machine_and_scratch, punctual, run, running, wrapped,
};
use punctual_sys::testing::comes_true;
use serde_json::Value;

/// Verdicts of all claims, with their reasons.
fn claims(document: &Value) -> Vec<&Value> {
    let promises = document["promises"].as_array().unwrap();
    promises.iter().flat_map(|promise| promise["claims"].as_array().unwrap()).collect()
}

#[test]
fn no_promise_is_broken_and_the_exit_status_says_so() {
    let _machine = machine();
    let said = punctual("verify --wait --format json");
    let document = said.json();
    crate::pure::schema::assert_conforms("verify", &document);
    assert_eq!((document["promises"].as_array().unwrap().len(), claims(&document).len()), (11, 22));
    let is_any = |verdict: &str| claims(&document).iter().any(|claim| claim["verdict"] == verdict);
    assert!(!is_any("broken"), "{said:?}");
    assert_eq!(said.status, if is_any("cannot_tell") { 3 } else { 0 });
    for claim in claims(&document) {
        assert_eq!(claim["why"].is_null(), claim["verdict"] == "kept", "{claim}");
        assert_eq!(claim["chance_wrong"].is_null(), claim["verdict"] == "cannot_tell", "{claim}");
        // Both are sure, however busy the machine is.
        let is_certain = ["thread_ended", "never_early"].iter().any(|name| claim["claim"] == *name);
        assert!(claim["verdict"] == "kept" || !is_certain, "{claim}");
    }
    assert!(comes_true(|| running().is_empty()));
}

#[test]
fn root_without_the_privilege_nothing_is_called_broken() {
    if !is_root() {
        return;
    }
    let (_machine, scratch) = machine_and_scratch("verify");
    let said = run(&mut wrapped(&scratch, UNPRIVILEGED, "verify wake-order robust-mutex --wait --format json"));
    assert_eq!(said.status, 3, "{said:?}");
    for claim in claims(&said.json()).iter().take(4) {
        let why = claim["why"].as_str().unwrap();
        assert!(why.starts_with("needs real-time priority: ") && claim["verdict"] == "cannot_tell", "{claim}");
    }
}

#[test]
fn a_killed_one_leaves_no_process() {
    let _machine = machine();
    let mut child = command("verify throttling round-robin --wait").start_silent();
    assert!(comes_true(|| running().len() > 1 || child.try_wait().unwrap().is_some()));
    crate::program::kill_and_wait(&mut child);
    assert!(comes_true(|| running().is_empty()));
}
