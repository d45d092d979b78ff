//! Experiments of `punctual tune` that are killed, at each place of theirs and of their cells.

use crate::places::{Places, names};
use crate::program::{Start, a_cpu, command, entries, inconclusive, kill_and_wait, machine_and_scratch, run, running};
use punctual_sys::testing::comes_true;
use std::path::{Path, PathBuf};

const KSM: &str = "sys/kernel/mm/ksm/run";
const SETTINGS: [(&str, &str); 3] =
    [(KSM, "1"), ("proc/sys/kernel/timer_migration", "1"), ("proc/sys/vm/stat_interval", "1")];

fn is_changed(root: &Path) -> bool {
    SETTINGS.iter().any(|(path, value)| std::fs::read_to_string(root.join(path)).unwrap().trim() != *value)
}

#[track_caller]
fn recover_and_compare(root: &Path, what: &str) {
    let said = run(command("recover --wait").env("PUNCTUAL_ROOT", root));
    assert!(said.status == 0 && !is_changed(root), "{what}: {said:?}");
    assert_eq!(std::fs::read_dir(root.join("run/punctual")).map_or(0, Iterator::count), 0, "{what}: {said:?}");
}

#[test]
fn an_experiment_killed_at_any_place_leaves_the_machine_as_before_after_recover() {
    let (_machine, scratch) = machine_and_scratch("tune-killed");
    let (root, places) = (scratch.dir(), Places::new());
    SETTINGS.iter().for_each(|(path, value)| drop(scratch.file(path, format!("{value}\n"))));
    let plan = format!(
        "duration = \"50ms\"\nwarm_up = \"0s\"\n[knobs]\nprepare.\"/{KSM}\" = [\"leave\", \"0\"]\n\
         prepare.timer_migration = [\"leave\", \"off\"]\nprepare.\"sysctl:vm.stat_interval\" = [\"leave\", \"9\"]\n\
         [axes]\nload = [\"none\"]\npolicy = [\"other\"]\nperiod = [\"1ms\"]\n"
    );
    let plan = scratch.file("plan.toml", plan);
    let start = |out: &Path, action: &str| {
        let mut tune = command(&format!("tune {} --response p50 --wait --cpus {} --out", plan.display(), a_cpu()));
        places
            .act(tune.arg(out).args(["--blocks", "2", "--confirm", "6"]).env("PUNCTUAL_ROOT", root), action)
            .start_silent()
    };
    let mut n = 0;
    let mut out = || -> PathBuf {
        n += 1;
        scratch.path(&format!("t{n}"))
    };
    let mut whole = start(&out(), "");
    let first = whole.id();
    whole.wait().unwrap();
    let needed = [
        "lock-taken",
        "run-directory-made",
        "header-half",
        "header-unnamed",
        "run-made",
        "experiment-begun",
        "cell-started",
        "cell-given",
        "cell-ended",
        "record-half",
        "record-kept",
        "experiment-screened",
    ];
    let of_experiment = names(places.all(Some(first), &needed));
    // Of its cells, those with changed settings; `life/prepare.rs` visits all.
    let of_cells = ["journal-written", "setting-empty", "setting-made", "settings-made", "journal-removed"];
    places.all(None, &of_cells);
    let mut last = PathBuf::new();
    for place in &of_experiment {
        last = out();
        places.killed(&mut start(&last, &format!("kill:{place}")), place);
        assert!(comes_true(|| running().is_empty()), "killed at {place}: {:?} left", running());
        recover_and_compare(root, place);
    }
    for place in of_cells {
        let mut experiment = start(&out(), &format!("stop:{place}"));
        let cell = places.stopped(&mut experiment, place);
        kill_and_wait(&mut experiment);
        assert!(
            comes_true(|| running().is_empty() && punctual_host::is_gone(cell)),
            "killed at {place}: {:?}",
            running()
        );
        if ["setting-empty", "setting-made", "settings-made"].contains(&place) {
            assert!(is_changed(root), "killed at {place}");
        }
        recover_and_compare(root, place);
    }
    // The screening of the last experiment is complete.
    let resumed = format!("tune --resume {} --response p50 --confirm 6", last.display());
    let said = run(command(&resumed).env("PUNCTUAL_ROOT", root));
    if said.status == 1 && said.last_line().contains(" wake-ups above p50, but needs ") {
        inconclusive(said.last_line());
    } else {
        assert!([0, 3].contains(&said.status), "{said:?}");
    }
    let mut planned: Vec<_> = entries(&last.join("screening")).iter().map(|entry| entry.planned).collect();
    let n = planned.len();
    planned.sort_unstable();
    planned.dedup();
    assert_eq!((n, planned.len()), (16, 16), "every measurement, none twice");
    recover_and_compare(root, "resumed");
}
