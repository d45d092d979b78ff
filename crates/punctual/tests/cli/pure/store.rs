//! `punctual store` and `punctual history` with SQLite: additions, questions, changes, and what may go wrong.

use crate::places::{Places, go_on};
use crate::program::{ProgramOutput, Scratch, Start, command, finish, punctual, run, wrapped};
use crate::session::play;
use punctual_analysis::testing::RunBuilder;
use std::fs;
use std::path::Path;

pub(crate) const DAY_MS: u64 = 86_400_000;

/// A nightly run of two cells, whose latencies are about `ns`; on another kernel from day 30 on.
pub(crate) fn nightly(day: u64, ns: i64) -> RunBuilder {
    let mut run = RunBuilder::new();
    run.cell("none", "fifo:80").cell("messaging", "fifo:80");
    run.header.plan.repetitions = 2;
    run.header.plan.title = "nightly".to_owned();
    run.header.started_unix_ms += day * DAY_MS;
    run.header.host.kernel_release = Some(if day < 30 { "6.1-rt" } else { "6.12-rt" }.to_owned());
    let wave = i64::try_from(day * 7_919 % 101).unwrap() - 50;
    for block in 0..2 {
        for cell in 0..2 {
            run.measure(block, cell, move |cpu, cycle| {
                ns + 5 * wave + i64::try_from((cycle * 31 + u64::from(cpu)) % 97).unwrap()
            });
        }
    }
    run
}

/// Writes nightly runs, the latencies of those from day 30 on multiplied by `times`, and returns their directory.
pub(crate) fn nights(scratch: &Scratch, n: u64, times: f64) -> String {
    for day in 0..n {
        let ns = if day < 30 { 10_000.0 } else { 10_000.0 * times };
        #[expect(clippy::cast_possible_truncation, reason = "some microseconds")]
        scratch.run(&format!("runs/{day:04}"), &nightly(day, ns as i64));
    }
    scratch.path("runs").display().to_string()
}

/// The command with the store in `SCRATCH/lab.sqlite`.
fn of(scratch: &Scratch, words: &str) -> ProgramOutput {
    punctual(&format!("{words} --store {}", scratch.path("lab.sqlite").display()))
}

/// The text without its line breaks.
pub(crate) fn unwrapped(output: &ProgramOutput) -> String {
    output.stdout.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// One number of the store.
pub(crate) fn number(scratch: &Scratch, sql: &str) -> i64 {
    let mut query = command("store query");
    let answer = run(query.arg(sql).args(["--format", "json", "--store"]).arg(scratch.path("lab.sqlite")));
    answer.expect_success().json()["rows"][0][0].as_i64().unwrap()
}

#[test]
fn runs_are_added_asked_for_and_checked_or_refused() {
    play(|scratch, title| {
        match title {
            "Runs are added once and questions answered" => drop(nights(scratch, 3, 1.0)),
            "A change is found with the kernel that came with it" => drop(nights(scratch, 45, 1.5)),
            "Nights without a change give no alarm" => drop(nights(scratch, 40, 1.0)),
            "A run is checked against the store" => drop(nights(scratch, 20, 1.0)),
            "A resumed run replaces its beginning and not the reverse" => {
                let mut part = nightly(0, 10_000);
                scratch.run("whole", &part);
                part.entries.truncate(2);
                scratch.run("part", &part);
            }
            "Foreign text of a run stays text" => {
                let mut run = nightly(0, 10_000);
                run.header.host.hostname = Some("x'); DROP TABLE run; --\x1b[2J\0".to_owned());
                run.header.plan.title = "\u{202e}=1+1".to_owned();
                scratch.run("foreign", &run);
            }
            _ => drop(nights(scratch, 1, 1.0)),
        }
        if title == "A run is checked against the store" {
            scratch.run("same", &nightly(25, 10_000));
            scratch.run("later", &nightly(25, 15_000));
        }
        if title == "What is not a store" {
            sqlite(&scratch.path("other.sqlite"), "CREATE TABLE t (x)");
        }
        if title == "A store of a newer program" {
            let store = scratch.path("lab.sqlite");
            punctual(&format!("store add {} --store {}", scratch.path("runs").display(), store.display()))
                .expect_success();
            sqlite(&store, "INSERT INTO schema_version VALUES (99, 'punctual 9', 0)");
        }
    });
}

#[test]
fn a_damaged_store_gives_one_line() {
    let scratch = Scratch::new("store-damaged");
    let runs = nights(&scratch, 8, 1.0);
    of(&scratch, &format!("store add {runs}")).expect_success();
    let path = scratch.path("lab.sqlite");
    let sound = fs::read(&path).unwrap();
    for page in 0..sound.len() / 4096 {
        let mut damaged = sound.clone();
        damaged[page * 4096 + 8..page * 4096 + 300].fill(0xa5);
        fs::write(&path, damaged).unwrap();
        for words in ["history", "store list"] {
            let said = of(&scratch, words);
            assert!([0, 1, 2].contains(&said.status) && said.stderr.lines().count() <= 1, "page {page}: {said:?}");
        }
    }
    fs::write(&path, &sound[..sound.len() / 2]).unwrap();
    assert_eq!(of(&scratch, "history").status, 1);
}

/// Changes a file of SQLite as another program would.
fn sqlite(path: &Path, sql: &str) {
    rusqlite::Connection::open(path).unwrap().execute_batch(sql).unwrap();
}

#[test]
fn a_locked_store_is_waited_for_and_then_an_error() {
    let scratch = Scratch::new("store-locked");
    let runs = nights(&scratch, 2, 1.0);
    of(&scratch, &format!("store add {runs}/0000")).expect_success();
    let path = scratch.path("lab.sqlite");
    let other = rusqlite::Connection::open(&path).unwrap();
    other.execute_batch("BEGIN EXCLUSIVE").unwrap();
    let locked = of(&scratch, &format!("store add {runs}/0001"));
    locked.expect_error(&format!(
        "{} is locked by another process; repeat the command when it has ended",
        path.display()
    ));
    let places = Places::new();
    let mut add = command(&format!("store add {runs}/0001 --store {}", path.display()));
    let mut waiting = places.act(&mut add, "stop:store-waits").start_piped();
    let stopped = places.stopped(&mut waiting, "store-waits");
    other.execute_batch("COMMIT").unwrap();
    go_on(stopped);
    let added = finish(waiting).expect_success();
    assert!(added.stdout.contains(": added"), "{added:?}");
}

#[test]
fn a_process_that_keeps_runs_meanwhile_is_waited_for_longer() {
    let (scratch, places) = (Scratch::new("store-busy"), Places::new());
    let runs = nights(&scratch, 2, 1.0);
    of(&scratch, &format!("store add {runs}/0000")).expect_success();
    let path = scratch.path("lab.sqlite");
    let other = rusqlite::Connection::open(&path).unwrap();
    let hold = || other.execute_batch("BEGIN IMMEDIATE; UPDATE machine SET hostname = 'other'").unwrap();
    hold();
    let mut add = command(&format!("store add {runs}/0001 --store {}", path.display()));
    let mut waiting = places.act(&mut add, "stop:store-waits@1001,stop:store-waits@1002").start_piped();
    // The last look, after which a lock that nothing changed is an error.
    let stopped = places.stopped(&mut waiting, "store-waits@1001");
    other.execute_batch("COMMIT").unwrap();
    hold();
    go_on(stopped);
    let stopped = places.stopped(&mut waiting, "store-waits@1002");
    other.execute_batch("COMMIT").unwrap();
    go_on(stopped);
    let added = finish(waiting).expect_success();
    assert!(added.stdout.contains(": added"), "{added:?}");
}

#[test]
fn an_addition_that_meets_the_schema_of_another_goes_on() {
    let (scratch, places) = (Scratch::new("store-met"), Places::new());
    let runs = nights(&scratch, 2, 1.0);
    let words = |run| format!("store add {runs}/{run} --store {}", scratch.path("lab.sqlite").display());
    let mut first = places.act(&mut command(&words("0000")), "stop:schema-looked").start_piped();
    let stopped = places.stopped(&mut first, "schema-looked");
    run(&mut command(&words("0001"))).expect_success();
    go_on(stopped);
    let added = finish(first).expect_success();
    assert!(added.stdout.contains(": added"), "{added:?}");
    assert_eq!(number(&scratch, "SELECT count(*) FROM run"), 2);
}

#[test]
fn a_full_disk_loses_nothing() {
    let scratch = Scratch::new("store-full");
    let runs = nights(&scratch, 30, 1.0);
    of(&scratch, &format!("store add {runs}/0000")).expect_success();
    let path = scratch.path("lab.sqlite");
    let kib = fs::metadata(&path).unwrap().len() / 1024;
    // A limit of the file size stands for the disk: `ulimit -f` counts blocks of 512 bytes.
    let limit = format!("ulimit -f {}; exec \"$0\" \"$@\"", 2 * kib + 16);
    let words = format!("store add {runs} --store {}", path.display());
    let full = run(&mut wrapped(&scratch, &["sh", "-c", &limit], &words));
    assert_eq!(full.status, 1, "{full:?}");
    assert!(full.last_line().contains(": cannot write ") || full.last_line().contains("disk"), "{full:?}");
    let added = i64::try_from(full.stdout.lines().filter(|line| line.ends_with(": added, 4 measurements")).count());
    assert_eq!(number(&scratch, "SELECT count(*) FROM run"), 1 + added.unwrap(), "{full:?}");
    assert_is_sound(&path);
    of(&scratch, &format!("store add {runs}")).expect_success();
    assert_eq!(number(&scratch, "SELECT count(*) FROM run"), 30);
}

/// Asserts that the file is in order and every run in it is complete.
pub(crate) fn assert_is_sound(path: &Path) {
    let connection = rusqlite::Connection::open(path).unwrap();
    let check: String = connection.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    assert_eq!(check, "ok");
    for (table, n) in [("measurement", 2), ("block", 4), ("histogram", 2)] {
        let sql =
            format!("SELECT count(*) FROM run r WHERE (SELECT count(*) FROM {table} t WHERE t.run_id = r.id) <> {n}");
        let torn: i64 = connection.query_row(&sql, [], |row| row.get(0)).unwrap();
        assert_eq!(torn, 0, "{table}");
    }
}

#[test]
fn two_additions_at_the_same_time_both_succeed() {
    let scratch = Scratch::new("store-two");
    let runs = nights(&scratch, 30, 1.0);
    let words = format!("store add {runs} --store {}", scratch.path("lab.sqlite").display());
    let both = [command(&words).start_piped(), command(&words).start_piped()].map(finish);
    let added: usize = both.iter().map(|one| one.stdout.matches(": added, ").count()).sum();
    assert!(both.iter().all(|one| one.status == 0) && added == 30, "{both:?}");
    assert_is_sound(&scratch.path("lab.sqlite"));
}
