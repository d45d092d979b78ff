//! Tests of the history.

use super::*;
use punctual_host::testing::Scratch;
use punctual_model::{Histogram, MonitoredCpu, Policy, Span};
use punctual_sys::testing::runs_alone;
use std::os::unix::fs::symlink;

fn start(started_unix_ms: u64) -> MonitorStart {
    MonitorStart {
        format: MONITOR_FORMAT,
        tool: "punctual 0.1.0".to_owned(),
        started_unix_ms,
        hostname: Some("board".to_owned()),
        kernel_release: None,
        cpus: [0].into_iter().collect(),
        policy: Policy::OTHER,
        period: "10ms".parse().unwrap(),
        window: Span(300_000_000_000),
        unexplained: None,
        memory_locked: true,
    }
}

fn window(ended_unix_ms: u64) -> MonitorWindow {
    MonitorWindow {
        started_unix_ms: 0,
        ended_unix_ms,
        measured: Span(5),
        cpus: vec![MonitoredCpu {
            cpu: 0,
            missed: 1,
            lost: 0,
            open: None,
            worst_unix_ms: Some(4),
            histogram: Histogram::of(&[5, 7_000, 1 << 40]),
        }],
        gaps: Vec::new(),
        explained: 0,
        not_covered: 0,
        spikes: Vec::new(),
        cpu_time_us: None,
    }
}

fn ends(lines: &MonitorLines) -> Vec<u64> {
    lines.windows.iter().map(|window| window.ended_unix_ms).collect()
}

#[test]
fn a_restart_continues_and_knows_the_last_window() {
    if !runs_alone() {
        return;
    }
    let scratch = Scratch::make();
    let dir = scratch.path("monitor");
    let (mut history, last) = MonitorHistory::open(&dir, start(1)).unwrap();
    assert_eq!(last, None);
    history.window(&window(10)).unwrap();
    history.window(&window(20)).unwrap();
    let second = MonitorHistory::open(&dir, start(2)).map(drop).unwrap_err().to_string();
    assert!(second.ends_with("another monitor writes to it; name another --dir"), "{second}");
    drop(history);
    let (mut history, last) = MonitorHistory::open(&dir, start(2)).unwrap();
    assert_eq!(last, Some(window(20)));
    history.window(&window(30)).unwrap();
    let read = read_monitor(&dir).unwrap();
    assert_eq!((read.starts, ends(&read_monitor(&dir).unwrap())), (vec![start(1), start(2)], vec![10, 20, 30]));
    assert_eq!(read.damage, None);
}

#[test]
fn what_was_cut_off_costs_itself_only() {
    if !runs_alone() {
        return;
    }
    let scratch = Scratch::make();
    let dir = scratch.dir();
    let (mut history, _) = MonitorHistory::open(dir, start(1)).unwrap();
    history.window(&window(10)).unwrap();
    drop(history);
    let path = dir.join(FILE);
    let whole = fs::read(&path).unwrap();
    let first = whole.iter().position(|byte| *byte == b'\n').unwrap() + 1;
    for cut in first..whole.len() {
        fs::write(&path, &whole[..cut]).unwrap();
        let (mut history, last) = MonitorHistory::open(dir, start(2)).unwrap();
        assert_eq!(last.is_some(), cut + 1 == whole.len(), "{cut}");
        history.window(&window(20)).unwrap();
        let read = read_monitor(dir).unwrap();
        let is_kept = cut + 1 == whole.len();
        assert_eq!(ends(&read), if is_kept { vec![10, 20] } else { vec![20] }, "{cut}");
        assert_eq!(read.damage.is_some(), !is_kept && cut > first, "{cut}: {:?}", read.damage);
    }
}

#[test]
fn damage_is_one_line_and_nothing_else_is_lost() {
    let scratch = Scratch::make();
    let dir = scratch.dir();
    let (mut history, _) = MonitorHistory::open(dir, start(1)).unwrap();
    (1..=4).for_each(|n| history.window(&window(n * 10)).unwrap());
    drop(history);
    let path = dir.join(FILE);
    let text = String::from_utf8(fs::read(&path).unwrap()).unwrap();
    fs::write(&path, text.replace("\"ended_unix_ms\":20", "\"ended_unix_ms\":21")).unwrap();
    let read = read_monitor(dir).unwrap();
    assert_eq!(ends(&read), [10, 30, 40]);
    assert_eq!(read.damage.unwrap(), format!("{}:3: checksum mismatch; line ignored", path.display()));
    fs::write(&path, text.replace("\"ended_unix_ms\":20", "\"\0").replace("\"ended_unix_ms\":30", "")).unwrap();
    let read = read_monitor(dir).unwrap();
    assert_eq!(ends(&read), [10, 40]);
    assert!(read.damage.unwrap().ends_with("this and 1 more lines ignored"));
}

#[test]
fn a_damaged_first_line_costs_itself_and_a_missing_file_hides_no_other() {
    if !runs_alone() {
        return;
    }
    let scratch = Scratch::make();
    let dir = scratch.dir();
    let (mut history, _) = MonitorHistory::open(dir, start(1)).unwrap();
    (1..=2).for_each(|n| history.window(&window(n * 10)).unwrap());
    drop(history);
    let [earlier, path] = [EARLIER, FILE].map(|name| dir.join(name));
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&earlier, text.replacen("punctual", "punctuil", 1)).unwrap();
    let read = read_monitor(dir).unwrap();
    assert_eq!((ends(&read), read.starts.len()), (vec![10, 20, 10, 20], 1));
    assert_eq!(read.damage.unwrap(), format!("{}:1: checksum mismatch; line ignored", earlier.display()));
    // As after a crash between the two steps of a new file.
    fs::remove_file(&path).unwrap();
    assert_eq!(ends(&read_monitor(dir).unwrap()), [10, 20]);
    fs::write(&earlier, "text\n").unwrap();
    assert!(matches!(read_monitor(dir), Err(StoreError::Header { .. })));
}

#[test]
fn files_have_a_size() {
    if !runs_alone() {
        return;
    }
    let scratch = Scratch::make();
    let dir = scratch.dir();
    let (mut history, _) = MonitorHistory::open_limited(dir, start(1), 2_000).unwrap();
    for n in 1..=50 {
        history.window(&window(n)).unwrap();
        for file in [FILE, EARLIER] {
            assert!(fs::metadata(dir.join(file)).map_or(0, |file| file.len()) < 3_000);
        }
    }
    let read = read_monitor(dir).unwrap();
    let ends = ends(&read);
    assert!(ends.len() >= 4 && ends.ends_with(&[48, 49, 50]) && ends.is_sorted(), "{ends:?}");
    assert_eq!((read.starts.len(), scratch.names()), (2, vec![EARLIER.to_owned(), FILE.to_owned()]));
    // The file that grows has just begun: the last window is in the other one.
    drop(history);
    fs::remove_file(dir.join(FILE)).unwrap();
    let (_, last) = MonitorHistory::open(dir, start(2)).unwrap();
    assert!(last.is_some_and(|last| last.ended_unix_ms < 50));
}

#[test]
fn a_file_that_cannot_begin_costs_the_windows_until_it_can() {
    if !runs_alone() {
        return;
    }
    let scratch = Scratch::make();
    let dir = scratch.dir();
    let (mut history, _) = MonitorHistory::open_limited(dir, start(1), 1_000).unwrap();
    // A directory in the way, instead of a full disk: of the new file, then of the name that the old one gets.
    let blocks = [format!("{FILE}.new"), EARLIER.to_owned()].map(|name| scratch.path(&name));
    fs::create_dir(&blocks[0]).unwrap();
    let written = (1..=20).take_while(|n| history.window(&window(*n)).is_ok()).count() as u64;
    let all: Vec<u64> = (1..=written).collect();
    assert!(written < 19 && history.window(&window(30)).is_err());
    assert_eq!(ends(&read_monitor(dir).unwrap()), all);
    fs::remove_dir(&blocks[0]).unwrap();
    fs::create_dir(&blocks[1]).unwrap();
    assert!(history.window(&window(40)).is_err());
    fs::remove_dir(&blocks[1]).unwrap();
    // As after a try that has failed when the old file had its other name.
    fs::rename(dir.join(FILE), dir.join(EARLIER)).unwrap();
    history.window(&window(50)).unwrap();
    assert_eq!(ends(&read_monitor(dir).unwrap()), [all, vec![50]].concat());
}

#[test]
fn what_is_no_history_is_refused_and_unchanged() {
    let scratch = Scratch::make();
    let victim = scratch.file("victim", "precious");
    let newer = String::from_utf8(line(&MonitorLine::Start(start(1))).unwrap()).unwrap();
    let newer = newer.replace("\"format\":1", "\"format\":2").rsplit_once(",\"xxh3\"").unwrap().0.to_owned() + "}\n";
    for (name, content, said) in [
        ("empty", "", "invalid header"),
        ("text", "hello\n", "invalid header"),
        ("run", "{\"format\":1,\"tool\":\"punctual\"}\n", "expected the start of a monitor"),
        ("newer", &newer, "format 2 is newer than this program (1)"),
        ("cut", "{\"line\":\"start\",\"format\":1", "truncated line"),
    ] {
        fs::create_dir(scratch.path(name)).unwrap();
        let path = scratch.file(&format!("{name}/{FILE}"), content);
        let refused = MonitorHistory::open(&scratch.path(name), start(2)).map(drop).unwrap_err().to_string();
        assert!(refused.contains(said) && !refused.contains('\n'), "{name}: {refused}");
        assert_eq!(fs::read(&path).unwrap(), content.as_bytes(), "{name}");
    }
    fs::create_dir(scratch.path("link")).unwrap();
    symlink(&victim, scratch.path(&format!("link/{FILE}"))).unwrap();
    let refused = MonitorHistory::open(&scratch.path("link"), start(2)).map(drop).unwrap_err().to_string();
    assert!(refused.contains("expected a regular file, found a link"), "{refused}");
    fs::create_dir(scratch.path("pipe")).unwrap();
    scratch.fifo(&format!("pipe/{FILE}"));
    assert!(MonitorHistory::open(&scratch.path("pipe"), start(2)).is_err());
    assert_eq!(fs::read(victim).unwrap(), b"precious");
    assert!(read_monitor(&scratch.path("none")).is_err());
}
