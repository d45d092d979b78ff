//! Tests of the store: versions of its schema, and what it gives back.

use crate::engine::{Access, Engine};
use crate::schema::{MIGRATIONS, migrate, version};
use crate::{Added, Database, Location, Selection};
use punctual_analysis::testing::RunBuilder;
use std::path::PathBuf;

/// A file of one test, removed afterwards.
struct File(PathBuf);

impl File {
    fn new(name: &str) -> File {
        let file = File(std::env::temp_dir().join(format!("punctual-database-{name}-{}", std::process::id())));
        let _ = std::fs::remove_file(&file.0);
        file
    }

    fn at(&self) -> Location {
        Location::File(self.0.clone())
    }
}

impl Drop for File {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// A run of one cell on this day.
fn run(day: u64) -> RunBuilder {
    let mut run = RunBuilder::new();
    run.cell("none", "fifo:80").require("max=1ms");
    run.header.started_unix_ms += day * 86_400_000;
    run.measure(0, 0, |_, cycle| 5_000 + i64::try_from(cycle % 10).unwrap());
    run
}

fn add(database: &mut Database, run: &RunBuilder) -> Added {
    database.add(&run.header, &run.entries, "runs/x").unwrap()
}

#[test]
fn versions_follow_each_other_and_a_failed_one_changes_nothing() {
    let file = File::new("versions");
    let at = file.at();
    add(&mut Database::open(&at).unwrap(), &run(0));
    let mut engine = Engine::open(&at, Access::Write).unwrap();
    assert_eq!(version(&mut engine, &at).unwrap(), Some(1));
    let next: Vec<&[&str]> = [MIGRATIONS, &[&["ALTER TABLE run ADD COLUMN note TEXT", "SELEKT"]]].concat();
    let err = migrate(&mut engine, &at, &next).unwrap_err().to_string();
    assert!(err.contains("whole or not at all"), "{err}");
    assert_eq!(version(&mut engine, &at).unwrap(), Some(1));
    assert!(engine.query("SELECT note FROM run", &[]).is_err());
    let next: Vec<&[&str]> = [MIGRATIONS, &[&["ALTER TABLE run ADD COLUMN note TEXT"]]].concat();
    for _ in 0..2 {
        migrate(&mut engine, &at, &next).unwrap();
        assert_eq!(version(&mut engine, &at).unwrap(), Some(2));
    }
    assert_eq!(engine.query("SELECT note FROM run", &[]).unwrap().len(), 1, "the run is still there");
    let err = Database::open(&at).unwrap_err().to_string();
    assert!(err.contains("has schema 2, newer than this program (1)"), "{err}");
}

#[test]
fn a_series_goes_on_over_kernels_and_deadlines() {
    let file = File::new("series");
    let mut database = Database::open(&file.at()).unwrap();
    let (first, mut second, mut other) = (run(0), run(1), run(2));
    second.require("max=2ms");
    second.header.host.kernel_release = Some("6.12".to_owned());
    let cell = second.header.cells[0].clone();
    second.entries[0].record.cell = cell;
    other.header.host.hostname = Some("board8".to_owned());
    for run in [&first, &second, &other] {
        assert_eq!(add(&mut database, run), Added::New);
        assert_eq!(add(&mut database, run), Added::Known);
    }
    let series = database.series(&Selection::default()).unwrap();
    let runs: Vec<_> = series.iter().map(|one| (one.machine.as_str(), one.points.len())).collect();
    assert_eq!(runs, [("board7", 2), ("board8", 1)]);
    let point = &series[0].points[0];
    assert_eq!((point.max_ns, point.samples), (Some(5_009), 4_000));
    assert!((point.typical_max_ns.unwrap() - 5_009.0).abs() < 1e-6, "{point:?}");
    assert_eq!(series[0].points[1].facts["kernel"], "6.12");
    let histogram = database.histograms(&[(point.run, point.cell_index), (77, 0)]).unwrap();
    assert_eq!(histogram[0].as_ref().unwrap().iter().map(|bucket| bucket.1).sum::<u64>(), 4_000);
    assert_eq!(histogram[1], None);
    let host = &first.header.host;
    let earlier = |day: u64| {
        let now = first.header.started_unix_ms + day * 86_400_000;
        Database::open_to_read(&file.at()).unwrap().earlier(host, &first.header.cells[0], now).unwrap().len()
    };
    assert_eq!((earlier(0), earlier(1), earlier(9)), (0, 1, 2));
    let selected = Selection { machine: Some("board8".to_owned()), cell: Some("fifo".to_owned()) };
    assert_eq!(database.series(&selected).unwrap().len(), 1);
    assert_eq!(database.runs().unwrap()[0].machine, "board8");
}

#[test]
fn a_run_is_known_whatever_the_version_that_added_it_and_the_one_that_reads_it() {
    let file = File::new("identity");
    let mut database = Database::open(&file.at()).unwrap();
    let mut one = run(0);
    assert_eq!(add(&mut database, &one), Added::New);
    // As an earlier version has added it.
    let earlier = crate::contents::of(&one.header, &one.entries, "x").unwrap().earlier_identity;
    let sql = "UPDATE run SET identity = $1";
    database.engine.execute(sql, &[crate::Value::Text(earlier)]).unwrap();
    assert_eq!(add(&mut database, &one), Added::Known);
    // As a later version reads it, with a field that is not in the file.
    one.header.host.memory_bytes = Some(1);
    assert_eq!(add(&mut database, &one), Added::Known);
    let changes: [fn(&mut punctual_model::Header); 5] = [
        |header| header.seed += 1,
        |header| header.started_unix_ms += 1,
        |header| header.host.boot_id = Some("other".to_owned()),
        |header| header.shard = Some("1/2".parse().unwrap()),
        |header| header.cells[0].period = "3ms".parse().unwrap(),
    ];
    for change in changes {
        let mut other = run(0);
        change(&mut other.header);
        assert_eq!(add(&mut database, &other), Added::New);
    }
}

#[test]
fn a_run_without_measurements_is_refused() {
    let file = File::new("empty");
    let mut database = Database::open(&file.at()).unwrap();
    let err = database.add(&run(0).header, &[], "runs/\x1bx").unwrap_err().to_string();
    assert_eq!(err, "cannot add runs/\u{fffd}x: it has no readable measurement");
}
