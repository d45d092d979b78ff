//! Additions to the store that are killed: at each place of the program, and at each write to the disk.

use super::store::{assert_is_sound, nights};
use crate::places::Places;
use crate::program::{Scratch, Start, command, is_installed, punctual, skip_unless, wrapped};
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Stdio;

/// Number that SQLite finds, which first undoes what a killed process left half written.
fn number(path: &Path, sql: &str) -> i64 {
    rusqlite::Connection::open(path).unwrap().query_row(sql, [], |row| row.get(0)).unwrap()
}

/// Asserts that what is in the store is whole, that the next addition completes it to `n` runs, and removes it.
#[track_caller]
fn assert_can_be_completed(path: &Path, words: &str, n: i64, what: &str) {
    if path.exists() && number(path, "SELECT count(*) FROM sqlite_master WHERE name = 'run'") == 1 {
        assert_is_sound(path);
    }
    punctual(words).expect_success();
    assert_is_sound(path);
    assert_eq!(number(path, "SELECT count(*) FROM run"), n, "{what}");
    fs::remove_file(path).unwrap();
}

#[test]
fn an_addition_killed_at_any_place_leaves_no_torn_run() {
    let (scratch, places) = (Scratch::new("store-killed"), Places::new());
    let runs = nights(&scratch, 2, 1.0);
    let path = scratch.path("lab.sqlite");
    let words = format!("store add {runs} --store {}", path.display());
    let start = |action: &str| places.act(&mut command(&words), action).start_silent();
    assert!(start("").wait().unwrap().success());
    let needed = [
        "schema-begun", "schema-put", "schema-kept", "addition-begun", "addition-half", "addition-put",
        "addition-kept", "addition-begun@2", "addition-kept@2",
    ];
    let all = places.all(None, &needed);
    fs::remove_file(&path).unwrap();
    for place in all {
        places.killed(&mut start(&format!("kill:{place}")), &place);
        // A question undoes what is half written, too; there may be no table yet.
        let listed = punctual(&format!("store list --store {}", path.display()));
        assert!(listed.status == 0 || listed.stderr.contains("no store at"), "{place}: {listed:?}");
        assert_can_be_completed(&path, &words, 2, &place);
    }
}

/// System calls by which SQLite changes its file and its journal; `?`: not on every architecture.
const WRITES: [&str; 6] = ["pwrite64", "fdatasync", "fsync", "ftruncate", "?unlink", "?unlinkat"];

#[test]
fn an_addition_killed_at_any_write_leaves_no_torn_run() {
    skip_unless!(is_installed("strace", "strace"));
    let scratch = Scratch::new("store-writes");
    let runs = nights(&scratch, 1, 1.0);
    let path = scratch.path("lab.sqlite");
    let words = format!("store add {runs} --store {}", path.display());
    let killed_at = |call: &str, nth: u32| {
        let inject = format!("inject={call}:signal=SIGKILL:when={nth}");
        let wrapper = ["strace", "-f", "-qq", "-o", "/dev/null", "-e", &inject];
        let status = wrapped(&scratch, &wrapper, &words).stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap();
        // strace ends as its program did.
        let is_killed = status.signal() == Some(libc::SIGKILL);
        if !is_killed {
            let _ = fs::remove_file(&path);
        }
        is_killed
    };
    let mut visited = 0;
    for call in WRITES {
        for nth in (1..).take_while(|nth| killed_at(call, *nth)) {
            visited += 1;
            assert_can_be_completed(&path, &words, 1, &format!("{call} {nth}"));
        }
    }
    if visited == 0 {
        eprintln!("skipped: strace may not trace here");
        return;
    }
    // Each of two transactions writes pages, syncs, and removes its journal.
    assert!(visited > 20, "{visited}");
}
