//! `punctual monitor`: windows, metrics, restarts, and its place beside other measurements.

use crate::program::{
    ProgramOutput, Scratch, Start, a_cpu, command, entries, finish, inconclusive, is_installed, is_root, kill_and_wait,
    machine, machine_and_scratch, punctual, run, skip_unless, wrapped,
};
use crate::real::explain::instances;
use crate::session::play;
use punctual_sys::process;
use punctual_sys::testing::comes_true;
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// A monitor of one CPU with windows of a second, which a normal user may start, and its lines on stderr.
pub(crate) struct Running {
    child: Child,
    stderr: BufReader<std::process::ChildStderr>,
}

impl Running {
    pub(crate) fn start(dir: &Path, more: &str) -> Running {
        let arguments = format!("monitor --policy other --window 1s --cpus {} --dir {} {more}", a_cpu(), dir.display());
        let mut child = command(&arguments).start_piped();
        let stderr = BufReader::new(child.stderr.take().unwrap());
        Running { child, stderr }
    }

    /// Reads lines until one contains `words`, and returns it.
    pub(crate) fn expect(&mut self, words: &str) -> String {
        let mut said = String::new();
        loop {
            let begin = said.len();
            assert_ne!(self.stderr.read_line(&mut said).unwrap(), 0, "no line has `{words}`: {said}");
            if said[begin..].contains(words) {
                return said.split_off(begin);
            }
        }
    }

    /// The address of its metrics.
    pub(crate) fn address(&mut self) -> String {
        let line = self.expect("metrics at http://");
        line.trim().trim_end_matches("/metrics").rsplit_once('/').unwrap().1.to_owned()
    }

    /// Ends it by a signal; returns its exit status and what it printed.
    pub(crate) fn end(self, signal: i32) -> (i32, String) {
        process::signal(self.child.id(), signal).unwrap();
        let ended = finish(self.child);
        (ended.status, ended.stdout)
    }
}

/// The body of `GET path`.
pub(crate) fn get(address: &str, path: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.") && head.contains(" 200 "), "{head}");
    body.to_owned()
}

/// The metrics, once they contain `words`: a window is in the history a moment before it is in the metrics.
fn metrics_with(address: &str, words: &str) -> String {
    let mut metrics = String::new();
    let is_there = comes_true(|| {
        metrics = get(address, "/metrics");
        metrics.contains(words)
    });
    assert!(is_there, "{words}: {metrics}");
    metrics
}

/// The history in `dir` as JSON.
pub(crate) fn history(dir: &Path) -> Value {
    punctual(&format!("monitor show {} --format json", dir.display())).expect_success().json()
}

/// The number of windows in a history that may not exist yet.
pub(crate) fn n_windows(dir: &Path) -> usize {
    let text = std::fs::read_to_string(dir.join("monitor.jsonl")).unwrap_or_default();
    text.matches("\"line\":\"window\"").count()
}

pub(crate) fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value}"))
}

/// Measured time of a window, ns, and its due times that were wake-ups or passed.
pub(crate) fn sums(window: &Value) -> (u64, u64) {
    let cpu = &window["cpus"][0];
    let due = number(&cpu["histogram"]["n"]) + number(&cpu["missed"]) + number(&cpu["lost"]);
    (number(&window["measured_ns"]), due)
}

/// Whether `promtool` accepts these metrics without a complaint.
fn promtool_accepts(metrics: &str) {
    skip_unless!(is_installed("promtool", "prometheus"));
    let mut promtool = Command::new("promtool");
    promtool.args(["check", "metrics"]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = promtool.spawn().unwrap();
    child.stdin.take().unwrap().write_all(metrics.as_bytes()).unwrap();
    let said = finish(child);
    assert_eq!((said.status, said.stderr.as_str(), said.stdout.as_str()), (0, "", ""), "{metrics}");
}

#[test]
fn windows_are_kept_shown_and_served_until_it_is_ended() {
    let (_machine, scratch) = machine_and_scratch("monitor");
    let (dir, textfile) = (scratch.path("m"), scratch.path("a.prom"));
    let more = format!("--no-explain --listen 127.0.0.1:0 --textfile {}", textfile.display());
    let mut running = Running::start(&dir, &more);
    let address = running.address();
    assert!(comes_true(|| n_windows(&dir) >= 2));
    let metrics = metrics_with(&address, "punctual_window_latency_max_seconds{cpu=");
    for name in
        ["punctual_wakeup_latency_seconds_bucket{cpu=", "punctual_monitor_paused 0\n", "punctual_monitor_explains 0\n"]
    {
        assert!(metrics.contains(name), "{name}: {metrics}");
    }
    promtool_accepts(&metrics);
    assert!(comes_true(|| std::fs::read_to_string(&textfile).is_ok_and(|text| text.contains("_window_latency_max_"))));
    promtool_accepts(&std::fs::read_to_string(&textfile).unwrap());
    let (status, lines) = running.end(libc::SIGTERM);
    assert_eq!(status, 143, "SIGTERM");
    assert!(!textfile.exists(), "old numbers would look like present ones");
    let document = history(&dir);
    let windows = document["windows"].as_array().unwrap();
    assert_eq!(windows.len(), lines.lines().count(), "{lines}");
    for (window, line) in windows.iter().zip(lines.lines()) {
        let cpu = &window["cpus"][0];
        assert_eq!(number(&cpu["cpu"]), u64::from(a_cpu()));
        let wake_ups = number(&cpu["histogram"]["n"]);
        assert!(line.contains(&format!("{wake_ups} wake-up")), "{line}");
    }
    // No more due times than the measured time has; the last ones may still be waited for. The period is 10 ms.
    let (measured_ns, due) = windows.iter().map(sums).fold((0, 0), |all, one| (all.0 + one.0, all.1 + one.1));
    if windows.last().is_none_or(|window| window["cpus"][0]["histogram"]["max_ns"].as_i64() < Some(100_000_000)) {
        assert!(due <= measured_ns / 10_000_000 + 1, "{due} in {measured_ns} ns: {windows:?}");
    } else {
        inconclusive("the machine stood still at the end");
    }
    // Windows end at whole seconds, but for the last.
    let ends: Vec<u64> = windows.iter().map(|window| number(&window["ended_unix_ms"])).collect();
    assert!(ends[..ends.len() - 1].iter().all(|ms| (ms + 5) % 1000 <= 10), "{ends:?}");
    let text = punctual(&format!("monitor show {}", dir.display())).expect_success().stdout;
    assert!(text.contains("Worst windows") && text.contains("windows of 1s"), "{text}");
    let none = punctual(&format!("monitor show {} --last 0s --format json", dir.display())).expect_success().json();
    assert_eq!(none["windows"], Value::Array(Vec::new()));
}

#[test]
fn a_restart_continues_and_states_the_gap() {
    let (_machine, scratch) = machine_and_scratch("monitor");
    let dir = scratch.path("m");
    // Killed while it measures.
    let mut first = Running::start(&dir, "--no-explain");
    assert!(comes_true(|| n_windows(&dir) >= 1));
    kill_and_wait(&mut first.child);
    let before = history(&dir);
    let file = dir.join("monitor.jsonl");
    let whole = std::fs::read(&file).unwrap();
    // Its last line is cut off, as by a power failure.
    std::fs::write(&file, [&whole[..], b"{\"line\":\"window\",\"star"].concat()).unwrap();
    let second = Running::start(&dir, "--no-explain --for 2500ms");
    finish(second.child).expect_success();
    let after = history(&dir);
    assert_eq!(after["starts"].as_array().unwrap().len(), 2);
    let (before, windows) = (before["windows"].as_array().unwrap(), after["windows"].as_array().unwrap());
    assert_eq!(windows[..before.len()], before[..]);
    let gap = &windows[before.len()]["gaps"][0];
    assert_eq!(
        (gap["reason"].as_str(), &gap["started_unix_ms"]),
        (Some("not_running"), &before.last().unwrap()["ended_unix_ms"])
    );
    assert!(after["damage"].as_str().unwrap().ends_with("line ignored"), "{}", after["damage"]);
    let text = punctual(&format!("monitor show {}", dir.display())).expect_success().stdout;
    assert!(text.contains("not running: ") && text.contains("damaged: "), "{text}");
}

#[test]
fn it_pauses_for_other_measurements_which_it_does_not_exclude() {
    let (_machine, scratch) = machine_and_scratch("monitor");
    let dir = scratch.path("m");
    let mut running = Running::start(&dir, "--no-explain");
    running.expect("history: ");
    let second = format!("monitor --policy other --cpus {} --dir {}", a_cpu(), scratch.path("n").display());
    punctual(&second).expect_error_like("another monitor measures this machine; end it first");
    // Without --wait.
    let out = scratch.path("run");
    let measured = punctual(&format!("measure --duration 500ms --out {}", out.display()));
    if measured.last_line().contains("a monitor measures this machine and does not pause") {
        return inconclusive("the monitor had no CPU time to pause");
    }
    assert_eq!(measured.status, 0, "{measured:?}");
    running.expect("paused: another punctual measures this machine");
    running.expect("measuring again");
    let gaps = || -> Vec<Value> {
        let windows = history(&dir)["windows"].as_array().unwrap().clone();
        windows.iter().flat_map(|window| window["gaps"].as_array().unwrap().clone()).collect()
    };
    assert!(comes_true(|| gaps().iter().any(|gap| gap["reason"] == "measurement")));
    running.end(libc::SIGINT);
    let gaps = gaps();
    assert!(gaps.iter().all(|gap| gap["reason"] == "measurement"), "{gaps:?}");
    for pair in gaps.windows(2) {
        let (end, begin) = (number(&pair[0]["ended_unix_ms"]), number(&pair[1]["started_unix_ms"]));
        assert!(end.abs_diff(begin) <= 1, "one pause, in rounded milliseconds: {gaps:?}");
    }
    let (from, to) = (number(&gaps[0]["started_unix_ms"]), number(&gaps[gaps.len() - 1]["ended_unix_ms"]));
    // The cell is within the gap: its threads were not disturbed. Milliseconds are rounded.
    let record = &entries(&out)[0].record;
    let (started, measured_ms) = (record.started_unix_ms, record.measured.ns() / 1_000_000);
    assert!(from <= started + 1 && to + 1 >= started + measured_ms, "{from} {started} {measured_ms} {to}");
}

#[test]
fn a_monitor_that_does_not_pause_makes_a_measurement_fail_not_lie() {
    let (_machine, scratch) = machine_and_scratch("monitor");
    let mut running = Running::start(&scratch.path("m"), "--no-explain");
    running.expect("history: ");
    process::signal(running.child.id(), libc::SIGSTOP).unwrap();
    let refused = punctual("measure --duration 100ms --no-keep");
    process::signal(running.child.id(), libc::SIGCONT).unwrap();
    refused
        .expect_error("a monitor measures this machine and does not pause; end it, or continue it if it was stopped");
    running.end(libc::SIGTERM);
}

/// Windows after which nothing is waited for any more.
pub(crate) const ENOUGH: usize = 30;

#[test]
fn root_late_wake_ups_are_explained_and_nothing_is_left_after_sigkill() {
    let Some(instances) = instances() else { return };
    let (_machine, scratch) = machine_and_scratch("monitor");
    let dir = scratch.path("m");
    // The slack of a normal thread alone is 50 us.
    let mut running = Running::start(&dir, "--above 1us --listen 127.0.0.1:0");
    let address = running.address();
    let spikes = || -> Vec<Value> {
        let windows = history(&dir)["windows"].as_array().unwrap().clone();
        windows.iter().flat_map(|window| window["spikes"].as_array().unwrap().clone()).collect()
    };
    assert!(comes_true(|| n_windows(&dir) >= 1 && (!spikes().is_empty() || n_windows(&dir) >= ENOUGH)));
    if spikes().is_empty() {
        inconclusive("nothing was late and covered by the trace");
    } else {
        let metrics = metrics_with(&address, "punctual_spikes_total{cause=\"");
        assert!(metrics.contains("_explains 1\n"), "{metrics}");
        promtool_accepts(&metrics);
    }
    for window in history(&dir)["windows"].as_array().unwrap() {
        let spikes = window["spikes"].as_array().unwrap();
        assert!(spikes.len() <= 3 && spikes.len() as u64 <= number(&window["explained"]), "{window}");
        for spike in spikes {
            let shares: u64 = spike["shares"].as_array().unwrap().iter().map(|share| number(&share["total_ns"])).sum();
            assert_eq!(shares, number(&spike["latency_ns"]), "the whole latency has causes");
        }
    }
    let pid = running.child.id();
    assert_eq!(instances_of(pid, &instances).len(), 1);
    kill_and_wait(&mut running.child);
    assert_eq!(instances_of(pid, &instances).len(), 1, "SIGKILL");
    let recovered = punctual("recover --wait").expect_success();
    assert!(recovered.stdout.contains("/instances/punctual-"), "{recovered:?}");
    assert_eq!(instances_of(pid, &instances), Vec::<PathBuf>::new());
    // In good order it needs no help.
    let mut running = Running::start(&dir, "");
    running.expect("history: ");
    let pid = running.child.id();
    assert_eq!(running.end(libc::SIGINT).0, 130);
    assert_eq!(instances_of(pid, &instances), Vec::<PathBuf>::new());
}

/// The traces of a process.
fn instances_of(pid: u32, instances: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(instances).unwrap().flatten();
    let is_its = |path: &PathBuf| path.to_string_lossy().contains(&format!("-{pid}-"));
    entries.map(|entry| entry.path()).filter(is_its).collect()
}

#[test]
fn root_two_capabilities_are_enough() {
    skip_unless!(is_root() && is_installed("setpriv", "util-linux"));
    let (_machine, scratch) = machine_and_scratch("monitor");
    let rights = [
        "setpriv",
        "--reuid=54321",
        "--regid=54321",
        "--clear-groups",
        "--no-new-privs",
        "--bounding-set=-all,+sys_nice,+ipc_lock",
        "--inh-caps=-all,+sys_nice,+ipc_lock",
        "--ambient-caps=-all,+sys_nice,+ipc_lock",
    ];
    let said = run(&mut wrapped(
        &scratch,
        &rights,
        &format!("monitor --window 1s --for 2500ms --no-explain --cpus {}", a_cpu()),
    ));
    assert_eq!(said.status, 0, "{said:?}");
    let document = history(&scratch.path("monitor"));
    assert_eq!(
        (&document["starts"][0]["policy"], &document["starts"][0]["memory_locked"]),
        (&Value::from("fifo:80"), &Value::from(true))
    );
    // The trace belongs to root: the reason is stated, and the rest is measured.
    let said = run(&mut wrapped(&scratch, &rights, &format!("monitor --window 1s --for 1500ms --cpus {}", a_cpu())));
    assert!(said.status == 0 && said.stderr.contains("late wake-ups are not explained: "), "{said:?}");
}

#[test]
fn bad_input_is_one_line() {
    let _machine = machine();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    play(|scratch, _| drop(scratch.file("port", taken.local_addr().unwrap().to_string())));
}

impl ProgramOutput {
    /// Asserts an error whose last line contains these words, with exit status 1 and nothing on stdout.
    #[track_caller]
    fn expect_error_like(&self, words: &str) {
        assert!(self.status == 1 && self.stdout.is_empty(), "{self:?}");
        let line = self.last_line();
        assert!(line.starts_with("punctual: ") && line.contains(words), "{words}: {self:?}");
    }
}

/// A file of the repository.
pub(crate) fn packaging(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging").join(name)
}

#[test]
fn the_unit_is_valid_and_has_few_rights() {
    skip_unless!(is_installed("systemd-analyze", "systemd"));
    let scratch = Scratch::new("unit");
    let unit = std::fs::read_to_string(packaging("punctual-monitor.service")).unwrap();
    let explain = std::fs::read_to_string(packaging("punctual-monitor-explain.conf")).unwrap();
    // The largest exposure of each, of 10.
    for (name, text, most) in [("plain", unit.clone(), 2.0), ("explain", format!("{unit}\n{explain}"), 4.0)] {
        let file =
            scratch.file(&format!("{name}/punctual-monitor.service"), text.replace("/usr/bin/punctual", "/bin/true"));
        let analyze = |words: &[&str]| {
            run(Command::new("systemd-analyze").args(words).arg(&file).env("SYSTEMD_LOG_LEVEL", "warning"))
        };
        let verified = analyze(&["verify", "--man=no"]);
        assert_eq!((verified.status, verified.stdout.as_str(), verified.stderr.as_str()), (0, "", ""), "{name}");
        let security = analyze(&["security", "--offline=true", "--no-pager"]).expect_success().stdout;
        let exposure =
            security.split("punctual-monitor.service:").last().and_then(|rest| rest.split_whitespace().next());
        let exposure: f64 = exposure.unwrap().parse().unwrap();
        assert!(exposure <= most, "{name}: {exposure}");
    }
    // Its command is one that this program accepts, but for the directory.
    let line = unit.lines().find_map(|line| line.strip_prefix("ExecStart=/usr/bin/punctual ")).unwrap();
    let line = line.replace("%S", &scratch.dir().display().to_string()) + " --policy deadline:1ms/10ms/10ms";
    punctual(&line).expect_error_like("SCHED_DEADLINE");
}
