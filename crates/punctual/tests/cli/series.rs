//! Rounds of a test that depends on the machine: how often each is right, compared with the last time on this machine.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Rounds of a series unless `PUNCTUAL_ROUNDS` says otherwise.
const ROUNDS: u64 = 20;

/// A series is worse than the last row if chance explains the difference less often than this.
const BY_CHANCE: f64 = 0.001;

/// Result of one round.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Round {
    Right,
    /// It claims what is not so.
    Wrong(String),
    /// It claims nothing, or the machine did not do what the round is about.
    Nothing(String),
}

impl Round {
    /// Right if the condition holds; else nothing was found, and `why`.
    pub(crate) fn right_if(holds: bool, why: impl FnOnce() -> String) -> Round {
        if holds { Round::Right } else { Round::Nothing(why()) }
    }
}

/// A row of the files beside this one: what one series found, on which machine, when and with which commit.
#[derive(Debug, Clone, serde::Serialize, serde::Deserialize)]
struct Row {
    series: String,
    /// UTC, `2026-11-26T12:00:00Z`.
    date: String,
    /// The commit, with `+` after it where files are changed.
    commit: String,
    rounds: u64,
    right: u64,
    wrong: u64,
    nothing: u64,
}

/// Runs the rounds of a series and compares them with the last row of this machine. Fails if fewer rounds are right, or
/// more are wrong, than chance explains; otherwise the new row is appended.
#[track_caller]
pub(crate) fn series(name: &str, mut round: impl FnMut() -> Round) {
    let rounds = std::env::var("PUNCTUAL_ROUNDS").ok().and_then(|n| n.parse().ok()).unwrap_or(ROUNDS);
    let results: Vec<Round> = (0..rounds).map(|_| round()).collect();
    judge(name, &results, &file());
}

/// Runs a series for each item, all to their end, and fails after the last one if any has failed.
pub(crate) fn each<T>(items: impl IntoIterator<Item = T>, run: impl Fn(T)) {
    let failed = |item| std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| run(item))).err();
    let failed: Vec<_> = items.into_iter().filter_map(failed).collect();
    if let Some(panic) = failed.into_iter().next() {
        std::panic::resume_unwind(panic);
    }
}

/// Judges a series by the rows in `file`, and appends its row.
#[track_caller]
fn judge(name: &str, results: &[Round], file: &Path) {
    let count = |is_meant: fn(&Round) -> bool| results.iter().filter(|round| is_meant(round)).count() as u64;
    let row = Row {
        series: name.to_owned(),
        date: said_by("date", &["-u", "+%Y-%m-%dT%H:%M:%SZ"]),
        commit: said_by("git", &["describe", "--always", "--dirty=+", "--match=nothing"]),
        rounds: results.len() as u64,
        right: count(|round| *round == Round::Right),
        wrong: count(|round| matches!(round, Round::Wrong(_))),
        nothing: count(|round| matches!(round, Round::Nothing(_))),
    };
    let rows = std::fs::read_to_string(file).unwrap_or_default();
    let mut rows = rows.lines().map(|line| serde_json::from_str::<Row>(line).expect("a row of a series"));
    let last = rows.rfind(|row| row.series == name);
    let (lower, upper) = punctual_analysis::share_interval(row.right as f64, row.rounds as f64).expect("rounds");
    let before = last.as_ref().map_or("first row of this machine".to_owned(), |last| {
        let Row { right, rounds, wrong, date, commit, .. } = last;
        format!("last {right} of {rounds} right, {wrong} wrong ({date}, {commit})")
    });
    eprintln!(
        "series {name}: {} of {} right ({:.0} to {:.0} %), {} wrong, {} with nothing; {before}",
        row.right,
        row.rounds,
        lower * 100.0,
        upper * 100.0,
        row.wrong,
        row.nothing
    );
    for round in results.iter().filter(|round| **round != Round::Right) {
        eprintln!("  {round:?}");
    }
    if let Some(last) = last {
        let fewer_right = by_chance((row.right, row.rounds), (last.right, last.rounds));
        let more_wrong = by_chance((row.rounds - row.wrong, row.rounds), (last.rounds - last.wrong, last.rounds));
        assert!(fewer_right >= BY_CHANCE, "{name}: fewer rounds are right than before: {results:#?}");
        assert!(more_wrong >= BY_CHANCE, "{name}: more rounds are wrong than before: {results:#?}");
    }
    std::fs::create_dir_all(file.parent().expect("a file in a directory")).expect("the directory of rows");
    let mut rows = std::fs::OpenOptions::new().append(true).create(true).open(file).expect("the file of rows");
    let line = serde_json::to_string(&row).expect("a row is JSON") + "\n";
    rows.write_all(line.as_bytes()).expect("the file of rows");
}

/// The probability of at most `k` of `n` rounds, if both series have the same share: Fisher's exact test, one-sided
/// (Fisher 1935).
fn by_chance((k, n): (u64, u64), (k_before, n_before): (u64, u64)) -> f64 {
    let (all, of_all) = (k + k_before, n + n_before);
    let ln_choose =
        |n: u64, k: u64| -> f64 { (1..=k.min(n - k)).map(|i| ((n - k.min(n - k) + i) as f64 / i as f64).ln()).sum() };
    let term = |k: u64| (ln_choose(n, k) + ln_choose(n_before, all - k) - ln_choose(of_all, all)).exp();
    (all.saturating_sub(n_before)..=k).map(term).sum()
}

/// The file of rows of this machine: of its processor and its number of CPUs.
fn file() -> PathBuf {
    let rows = std::env::var_os("PUNCTUAL_HOST_ROWS").map(PathBuf::from);
    let rows = rows.unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli/host/rows"));
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = info.lines().find_map(|line| line.strip_prefix("model name").or(line.strip_prefix("Model")));
    let model = model.and_then(|line| line.split_once(':')).map_or("unknown", |(_, name)| name.trim());
    let cpus = punctual_sys::sched::affinity(0).expect("own affinity").len();
    let name = format!("{model} {cpus} cpus").to_lowercase();
    let words = name.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    rows.join(words.collect::<Vec<_>>().join("-") + ".jsonl")
}

/// The first line that a program prints, or `unknown`.
fn said_by(program: &str, arguments: &[&str]) -> String {
    let said = Command::new(program).args(arguments).current_dir(env!("CARGO_MANIFEST_DIR")).output();
    let said =
        said.ok().filter(|said| said.status.success()).map(|said| String::from_utf8_lossy(&said.stdout).into_owned());
    said.and_then(|said| said.lines().next().map(str::to_owned)).unwrap_or("unknown".to_owned())
}

#[test]
fn a_series_is_worse_only_if_chance_does_not_explain_it() {
    for (now, before, least, most) in [
        ((20, 20), (20, 20), 1.0, 1.0),
        ((19, 20), (20, 20), 0.499, 0.501),
        // scipy.stats.fisher_exact([[10, 10], [20, 0]], "less")
        ((10, 20), (20, 20), 0.000_21, 0.000_22),
        ((0, 20), (20, 20), 0.0, 1e-10),
        ((0, 20), (0, 20), 1.0, 1.0),
        ((20, 20), (0, 20), 0.999_999, 1.000_001),
    ] {
        let p = by_chance(now, before);
        assert!((least - 1e-9..=most + 1e-9).contains(&p), "{now:?} {before:?}: {p}");
    }
}
