//! `punctual store` and `punctual history` with SQLite: additions, questions, changes, and what may go wrong.

use crate::places::{Places, go_on};
use crate::program::{ProgramOutput, Scratch, Start, command, finish, punctual, run, wrapped};
use analysis::testing::RunBuilder;
use std::fs;
use std::path::Path;
use std::process::Command;

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
fn runs_are_added_once_and_questions_answered() {
    let scratch = Scratch::new("store");
    let runs = nights(&scratch, 3, 1.0);
    let added = of(&scratch, &format!("store add {runs}")).expect_success();
    assert_eq!(added.stdout.matches(": added, 4 measurements\n").count(), 3, "{added:?}");
    let again = of(&scratch, &format!("store add {runs}/0001")).expect_success();
    assert_eq!(again.stdout, format!("{runs}/0001: known\n"));
    for (sql, n) in [
        ("SELECT count(*) FROM run", 3),
        ("SELECT count(*) FROM measurement", 6),
        ("SELECT count(*) FROM block", 12),
        ("SELECT count(*) FROM histogram", 6),
        ("SELECT count(*) FROM machine", 1),
        ("SELECT count(*) FROM cell", 2),
        ("SELECT count(*) FROM finding WHERE kind = 'visibility_floor'", 3),
        ("SELECT sum(samples) FROM measurement WHERE run_id = 1", 16_000),
    ] {
        assert_eq!(number(&scratch, sql), n, "{sql}");
    }
    let listed = of(&scratch, "store list").expect_success();
    assert!(listed.stdout.contains("board7") && listed.stdout.contains("/0002"), "{listed:?}");
    let json = of(&scratch, "store list --format json").expect_success().json();
    crate::pure::schema::assert_conforms("store-query", &json);
    let csv = of(&scratch, "store list --format csv").expect_success();
    assert_eq!(csv.stdout.lines().next(), Some("started,machine,kernel,title,measured,planned,path"));
    assert_eq!(csv.stdout.lines().count(), 4);
}

#[test]
fn a_resumed_run_replaces_its_beginning_and_not_the_reverse() {
    let scratch = Scratch::new("store-resumed");
    let whole = nightly(0, 10_000);
    let mut part = whole.clone();
    part.entries.truncate(2);
    let (whole, part) = (scratch.run("whole", &whole), scratch.run("part", &part));
    for (dir, effect, measurements) in
        [(&part, "added, 2 measurements", 2), (&whole, "replaced, 4 measurements now", 4), (&part, "known", 4)]
    {
        let said = of(&scratch, &format!("store add {}", dir.display())).expect_success();
        assert_eq!(said.stdout, format!("{}: {effect}\n", dir.display()));
        assert_eq!(number(&scratch, "SELECT sum(measurements) FROM run"), measurements);
        assert_eq!(number(&scratch, "SELECT count(*) FROM block"), measurements);
    }
}

#[test]
fn a_change_is_found_with_the_kernel_that_came_with_it() {
    let scratch = Scratch::new("history");
    let runs = nights(&scratch, 45, 1.5);
    of(&scratch, &format!("store add {runs}")).expect_success();
    let text = of(&scratch, "history");
    assert_eq!(text.status, 2, "{text:?}");
    assert!(text.stdout.contains("p99 later since 2026-10-21"), "{text:?}");
    assert!(unwrapped(&text).contains("coincides with kernel: 6.1-rt to 6.12-rt"), "{text:?}");
    let json = of(&scratch, "history --cell none/ --format json").json();
    crate::pure::schema::assert_conforms("history", &json);
    let change = &json["series"][0]["changes"][0];
    assert_eq!((json["series"].as_array().unwrap().len(), &change["direction"]), (1, &"later".into()));
    let ratio = change["ratio"].as_f64().unwrap();
    assert!((1.4..1.6).contains(&ratio), "{change}");
    let junit = of(&scratch, "history --format junit");
    assert!(junit.status == 2 && junit.stdout.contains("tests=\"2\" failures=\"2\""), "{junit:?}");
    let page = scratch.path("history.html");
    let html = of(&scratch, &format!("history --format html -o {}", page.display()));
    assert_eq!((html.status, html.stdout), (2, format!("{}\n", page.display())));
    let html = fs::read_to_string(page).unwrap();
    for part in ["<h1>History</h1>", "6.12-rt", "stroke-dasharray", "style=\"fill:var(--t7)\"", "</html>"] {
        assert!(html.contains(part), "{part}");
    }
    // Neither an old change nor a small one is an alarm.
    assert_eq!(of(&scratch, "history --recent 1h").status, 0);
    assert_eq!(of(&scratch, "history --margin 2").status, 0);
    of(&scratch, "history --machine other").expect_error(&format!(
        "no series in {} matches; `punctual store list` shows its runs",
        scratch.path("lab.sqlite").display()
    ));
}

#[test]
fn nights_without_a_change_give_no_alarm() {
    let scratch = Scratch::new("history-calm");
    let runs = nights(&scratch, 40, 1.0);
    of(&scratch, &format!("store add {runs}")).expect_success();
    let text = of(&scratch, "history").expect_success();
    assert!(text.stdout.contains("2 series: 0 changed, 0 later lately."), "{text:?}");
}

#[test]
fn a_run_is_checked_against_the_store() {
    let scratch = Scratch::new("history-check");
    let runs = nights(&scratch, 20, 1.0);
    of(&scratch, &format!("store add {runs}")).expect_success();
    let store = scratch.path("lab.sqlite").display().to_string();
    let check = |ns: i64, more: &str| {
        let new = scratch.run("new", &nightly(25, ns));
        punctual(&format!("check {} --baseline store:{store} {more}", new.display()))
    };
    let same = check(10_000, "");
    assert!(same.status == 0 && same.stdout.contains("none/fifo:80 history: PASS"), "{same:?}");
    let later = check(15_000, "--format junit");
    assert!(later.status == 2 && later.stdout.contains("name=\"history\""), "{later:?}");
    assert_eq!(check(15_000, "--margin 2").status, 0);
    // The first night has no earlier one.
    let first = punctual(&format!("check {runs}/0000 --baseline store:{store}"));
    assert!(first.status == 3 && first.stdout.contains("the store has 0 earlier runs of it"), "{first:?}");
    check(10_000, "--force")
        .expect_error("unsupported: --force, and a metric other than p99, with a store; leave them out");
    let none = punctual(&format!("check {runs}/0000 --baseline store:{store}.none"));
    none.expect_error(&format!(
        "no store at {store}.none: `punctual store add RUN` makes it; name another with --store"
    ));
}

#[test]
fn the_store_of_the_user_is_found() {
    let scratch = Scratch::new("store-home");
    let runs = nights(&scratch, 1, 1.0);
    let add = |name: &str, value: &Path, others: &[&str]| {
        let mut command = command(&format!("store add {runs}"));
        for other in others {
            command.env_remove(other);
        }
        run(command.env(name, value)).expect_success();
    };
    add("HOME", &scratch.path("home"), &["XDG_DATA_HOME", "PUNCTUAL_STORE"]);
    assert!(scratch.path("home/.local/share/punctual/store.sqlite").is_file());
    add("XDG_DATA_HOME", &scratch.path("data"), &["PUNCTUAL_STORE"]);
    assert!(scratch.path("data/punctual/store.sqlite").is_file());
    add("PUNCTUAL_STORE", &scratch.path("named.sqlite"), &[]);
    assert!(scratch.path("named.sqlite").is_file());
}

#[test]
fn a_query_changes_nothing() {
    let scratch = Scratch::new("store-query");
    let runs = nights(&scratch, 1, 1.0);
    of(&scratch, &format!("store add {runs}")).expect_success();
    let path = scratch.path("lab.sqlite");
    let before = fs::read(&path).unwrap();
    let copy = scratch.path("copy.sqlite");
    for sql in [
        "DELETE FROM run",
        "DROP TABLE run",
        "SELECT 1; DELETE FROM run",
        "PRAGMA user_version = 7",
        &format!("ATTACH '{}' AS other", copy.display()),
        &format!("VACUUM INTO '{}'", copy.display()),
        "SELECT load_extension('x')",
        "SELEKT",
        "",
    ] {
        let mut query = command("store query");
        let answer = run(query.arg(sql).arg("--store").arg(&path));
        let is_harmless = answer.status == 1 || answer.stdout.trim() == "1";
        assert!(is_harmless && answer.stderr.lines().count() <= 1, "{sql}: {answer:?}");
        assert_eq!(fs::read(&path).unwrap(), before, "{sql}");
        assert!(!copy.exists(), "{sql}");
    }
}

#[test]
fn an_answer_has_all_rows_and_a_failed_one_none() {
    let scratch = Scratch::new("store-rows");
    let runs = nights(&scratch, 1, 1.0);
    of(&scratch, &format!("store add {runs}")).expect_success();
    let query = |sql: &str, format: &str| {
        let mut query = command("store query");
        run(query.arg(sql).args(["--format", format, "--store"]).arg(scratch.path("lab.sqlite")))
    };
    let many =
        "WITH RECURSIVE many(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM many WHERE n < 5000) SELECT n FROM many";
    for (format, lines) in [("text", 5001), ("csv", 5001), ("json", 5005)] {
        let answer = query(many, format).expect_success();
        assert_eq!(answer.stdout.lines().count(), lines, "{format}");
        assert!(answer.stdout.contains("5000"), "{format}");
    }
    let cut = query("SELECT zeroblob(9000000)", "text").expect_success().stdout;
    assert!(cut.lines().all(|line| line.len() <= 256) && cut.ends_with("00...\n"), "{cut}");
    query("SELECT zeroblob(17000000)", "csv").expect_error("cannot run this query: string or blob too big");
    let late = "SELECT 1 UNION ALL SELECT abs(-9223372036854775807 - 1)";
    for format in ["text", "csv", "json"] {
        query(late, format).expect_error("cannot run this query: integer overflow");
    }
}

#[test]
fn what_is_not_a_store_is_refused() {
    let scratch = Scratch::new("store-bad");
    let runs = nights(&scratch, 1, 1.0);
    let add = |path: &Path| punctual(&format!("store add {runs} --store {}", path.display()));
    let text =
        scratch.file("text", "not a database, but longer than the header of one, which has 100 bytes in all ....\n");
    add(&text).expect_error(&format!(
        "{} is a database without a store of punctual; name another file or database",
        text.display()
    ));
    let other = scratch.path("other.sqlite");
    sqlite(&other, "CREATE TABLE t (x)");
    add(&other).expect_error(&format!(
        "{} is a database without a store of punctual; name another file or database",
        other.display()
    ));
    let store = scratch.path("store.sqlite");
    add(&store).expect_success();
    let link = scratch.path("link.sqlite");
    std::os::unix::fs::symlink(&store, &link).unwrap();
    add(&link)
        .expect_error(&format!("cannot open {}: it is not a regular file (links are not followed)", link.display()));
    assert_eq!(run(Command::new("mkfifo").arg(scratch.path("pipe"))).status, 0);
    assert!(add(&scratch.path("pipe")).stderr.contains("it is not a regular file"));
    sqlite(&store, "INSERT INTO schema_version VALUES (99, 'punctual 9', 0)");
    let before = fs::read(&store).unwrap();
    for words in [format!("store add {runs}"), "history".to_owned(), "store list".to_owned()] {
        punctual(&format!("{words} --store {}", store.display())).expect_error(&format!(
            "unsupported: {} has schema 99, newer than this program (1); use a newer punctual",
            store.display()
        ));
    }
    assert_eq!(fs::read(&store).unwrap(), before);
    punctual("store list --store mysql://me:secret@db/lab").expect_error(
        "invalid store `mysql://me@db/lab`: expected a file, a directory or postgresql://USER@HOST/DATABASE",
    );
    punctual(&format!("store add {} --store {}", scratch.dir().display(), scratch.path("x/y.sqlite").display()))
        .expect_success();
    assert!(scratch.path("x/y.sqlite").is_file());
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

#[test]
fn foreign_text_of_a_run_stays_text() {
    let scratch = Scratch::new("store-foreign");
    let mut run = nightly(0, 10_000);
    run.header.host.hostname = Some("x'); DROP TABLE run; --\x1b[2J\0".to_owned());
    run.header.plan.title = "\u{202e}=1+1".to_owned();
    let dir = scratch.run("foreign", &run);
    of(&scratch, &format!("store add {}", dir.display())).expect_success();
    let listed = of(&scratch, "store list").expect_success();
    assert!(listed.stdout.contains("DROP TABLE") && !listed.stdout.contains('\x1b'), "{listed:?}");
}
