//! `punctual monitor`: windows, metrics, restarts, and its place beside other measurements.

use crate::explain::instances;
use crate::program::{
    MARK, ProgramOutput, Scratch, Start, a_cpu, a_cpu_and_the_others, comes_true, command, finish, is_installed,
    is_root, kill_and_wait, machine, machine_and_scratch, mark, punctual, run, skip_unless, wrapped,
};
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use sys::process;

/// A monitor of one CPU with windows of a second, which a normal user may start, and its lines on stderr.
struct Running {
    child: Child,
    stderr: BufReader<std::process::ChildStderr>,
}

impl Running {
    fn start(dir: &Path, more: &str) -> Running {
        let arguments = format!("monitor --policy other --window 1s --cpus {} --dir {} {more}", a_cpu(), dir.display());
        let mut child = command(&arguments).start_piped();
        let stderr = BufReader::new(child.stderr.take().unwrap());
        Running { child, stderr }
    }

    /// Reads lines until one contains `words`, and returns it.
    fn expect(&mut self, words: &str) -> String {
        loop {
            let mut line = String::new();
            assert_ne!(self.stderr.read_line(&mut line).unwrap(), 0, "{words}");
            if line.contains(words) {
                return line;
            }
        }
    }

    /// The address of its metrics.
    fn address(&mut self) -> String {
        let line = self.expect("metrics at http://");
        line.trim().trim_end_matches("/metrics").rsplit_once('/').unwrap().1.to_owned()
    }

    /// Ends it by a signal; returns its exit status and what it printed.
    fn end(self, signal: i32) -> (i32, String) {
        process::signal(self.child.id(), signal).unwrap();
        let ended = finish(self.child);
        (ended.status, ended.stdout)
    }
}

/// The body of `GET path`.
fn get(address: &str, path: &str) -> String {
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

fn history(dir: &Path) -> Value {
    punctual(&format!("monitor show {} --format json", dir.display())).expect_success().json()
}

/// The number of windows in a history that may not exist yet.
fn n_windows(dir: &Path) -> usize {
    let text = std::fs::read_to_string(dir.join("monitor.jsonl")).unwrap_or_default();
    text.matches("\"line\":\"window\"").count()
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value}"))
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
        // Every due time of the measured time is a wake-up or a missed one; the last may still be waited for.
        let (due, seen) = (number(&window["measured_ns"]) / 10_000_000, wake_ups + number(&cpu["missed"]));
        assert!(seen + 4 + seen / 2 >= due && seen <= due + 100, "{seen} of {due}: {window}");
    }
    // Windows begin and end at whole seconds, but for the first and the last.
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
    let measured = punctual("measure --duration 500ms --no-keep --format json").expect_success().json();
    running.expect("paused: another punctual measures this machine");
    running.expect("measuring again");
    assert!(comes_true(|| history(&dir)["windows"]
        .as_array()
        .unwrap()
        .iter()
        .any(|window| window["gaps"][0]["reason"] == "measurement")));
    running.end(libc::SIGINT);
    let document = history(&dir);
    let windows = document["windows"].as_array().unwrap();
    let gaps: Vec<_> = windows.iter().flat_map(|window| window["gaps"].as_array().unwrap()).collect();
    let (from, to) = (number(&gaps[0]["started_unix_ms"]), number(&gaps[gaps.len() - 1]["ended_unix_ms"]));
    // The cell is within the gap: its threads were not disturbed.
    let started = number(&measured["run"]["started_unix_ms"]);
    assert!(from <= started + 2_000 && to >= started + 500, "{from} {started} {to}");
    for window in windows {
        let length = number(&window["ended_unix_ms"]) - number(&window["started_unix_ms"]);
        let gap: u64 = window["gaps"]
            .as_array()
            .unwrap()
            .iter()
            .map(|gap| number(&gap["ended_unix_ms"]) - number(&gap["started_unix_ms"]))
            .sum();
        let measured_ms = number(&window["measured_ns"]) / 1_000_000;
        assert!(measured_ms + gap <= length + 1_500, "{window}");
    }
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

#[test]
fn root_late_wake_ups_are_explained_and_nothing_is_left_after_sigkill() {
    let Some(instances) = instances() else { return };
    let (_machine, scratch) = machine_and_scratch("monitor");
    let dir = scratch.path("m");
    // The slack of a normal thread alone is 50 us.
    let mut running = Running::start(&dir, "--above 1us --listen 127.0.0.1:0");
    let address = running.address();
    assert!(comes_true(|| {
        let windows = history(&dir)["windows"].clone();
        windows.as_array().unwrap().iter().any(|window| !window["spikes"].as_array().unwrap().is_empty())
    }));
    let metrics = metrics_with(&address, "punctual_spikes_total{cause=\"");
    assert!(metrics.contains("_explains 1\n"), "{metrics}");
    promtool_accepts(&metrics);
    for window in history(&dir)["windows"].as_array().unwrap() {
        let spikes = window["spikes"].as_array().unwrap();
        let explained = number(&window["explained"]);
        // The rest of the window goes without stops of the trace.
        assert!(explained <= 16 && spikes.len() <= 3, "{window}");
        for spike in spikes {
            let shares: u64 = spike["shares"].as_array().unwrap().iter().map(|share| number(&share["total_ns"])).sum();
            assert_eq!(shares, number(&spike["latency_ns"]), "the whole latency has causes");
            let due = number(&spike["due_unix_ms"]);
            let (from, to) = (number(&window["started_unix_ms"]), number(&window["ended_unix_ms"]));
            assert!(due + 2_000 >= from && due <= to, "{window}");
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
fn root_an_interferer_is_named() {
    skip_unless!(is_root() && instances().is_some() && is_installed("chrt", "util-linux"));
    let Some((measured, _)) = a_cpu_and_the_others() else { return };
    let (_machine, scratch) = machine_and_scratch("monitor");
    let dir = scratch.path("m");
    // 3 ms of FIFO 90 every 50 ms, for 15 s at most: the CPU stays usable.
    let busy = "end=$(($(date +%s) + 15)); while [ $(date +%s) -lt $end ]; do i=0; while [ $i -lt 3000 ]; do i=$((i+1)); done; sleep 0.05; done";
    let mut hog = Command::new("timeout");
    hog.args(["20", "taskset", "-c", &measured.to_string(), "chrt", "-f", "90", "sh", "-c", busy]).env(MARK, mark());
    let mut hog = hog.start_silent();
    let arguments = format!(
        "monitor --policy fifo:80 --window 2s --above 500us --for 6s --cpus {measured} --dir {}",
        dir.display()
    );
    let said = run(&mut command(&arguments));
    process::signal(hog.id(), libc::SIGTERM).unwrap();
    hog.wait().unwrap();
    assert_eq!(said.status, 0, "{said:?}");
    let document = history(&dir);
    let spikes: Vec<_> = document["windows"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|window| window["spikes"].as_array().unwrap())
        .collect();
    let is_named = |spike: &&&Value| {
        spike["shares"]
            .as_array()
            .unwrap()
            .iter()
            .any(|share| share["cause"] == "higher_priority" && share["owner"]["name"] == "sh")
    };
    assert!(spikes.iter().filter(is_named).count() > 0, "{spikes:?}");
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
    let scratch = Scratch::new("monitor");
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap();
    let victim = scratch.file("victim", "precious");
    std::fs::create_dir(scratch.path("link")).unwrap();
    std::os::unix::fs::symlink(&victim, scratch.path("link/monitor.jsonl")).unwrap();
    scratch.file("text/monitor.jsonl", "hello\n");
    let dir = scratch.dir().display();
    for (arguments, words) in [
        ("--listen 0.0.0.0:9769".to_owned(), "unsupported: listening on 0.0.0.0:9769: expected a loopback address"),
        (format!("--listen {port}"), "cannot listen on 127.0.0.1:"),
        ("--window 100ms".to_owned(), "invalid window `100ms`: expected whole seconds, 1s to 24h"),
        ("--window 1s --period 100ms".to_owned(), "expected at least 20 periods of 100ms"),
        ("--policy deadline:1ms/10ms/10ms".to_owned(), "unsupported: a monitor under SCHED_DEADLINE"),
        ("--cpus 4095".to_owned(), "cannot use CPU 4095: this process may use "),
        ("--textfile a.txt".to_owned(), "invalid file `a.txt`: expected a name ending in .prom"),
        (format!("--policy other --textfile {dir}/none/a.prom --dir {dir}/m"), "cannot write "),
        (format!("--policy other --dir {dir}/link"), "expected a regular file, found a link"),
        (format!("--policy other --dir {dir}/text"), "invalid header"),
        (format!("--policy other --dir {}/m", victim.display()), "cannot make "),
        (format!("show {dir}/none"), "cannot read "),
        (format!("show {dir}/text"), "invalid header"),
    ] {
        let said = punctual(&format!("monitor {arguments}"));
        said.expect_error_like(words);
    }
    assert_eq!(std::fs::read_to_string(victim).unwrap(), "precious");
    assert_eq!(std::fs::read_to_string(scratch.path("text/monitor.jsonl")).unwrap(), "hello\n");
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
fn packaging(name: &str) -> PathBuf {
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

/// The queries of the dashboard, with its variables replaced, and where they come from.
fn queries() -> Vec<(String, String)> {
    let dashboard: Value =
        serde_json::from_str(&std::fs::read_to_string(packaging("grafana/punctual-monitor.json")).unwrap()).unwrap();
    let replaced =
        |text: &str| text.replace("$__rate_interval", "10s").replace("$__range", "1h").replace("$instance", ".+");
    let mut queries = Vec::new();
    for panel in dashboard["panels"].as_array().unwrap() {
        let title = panel["title"].as_str().unwrap();
        for key in ["id", "type", "gridPos", "fieldConfig", "options", "datasource", "description"] {
            assert!(!panel[key].is_null(), "{title}: {key}");
        }
        for target in panel["targets"].as_array().unwrap() {
            assert_eq!(target["datasource"]["uid"], "${datasource}", "{title}");
            queries.push((title.to_owned(), replaced(target["expr"].as_str().unwrap())));
        }
    }
    let mut places: Vec<_> =
        dashboard["panels"].as_array().unwrap().iter().map(|panel| panel["gridPos"].to_string()).collect();
    places.sort();
    places.dedup();
    assert_eq!(places.len(), dashboard["panels"].as_array().unwrap().len(), "two panels in one place");
    let names: Vec<_> =
        dashboard["templating"]["list"].as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["datasource", "instance"]);
    queries
}

#[test]
fn root_each_query_of_the_dashboard_has_data_in_a_real_prometheus() {
    skip_unless!(is_root() && instances().is_some() && is_installed("prometheus", "prometheus"));
    let (_machine, scratch) = machine_and_scratch("prometheus");
    let mut running = Running::start(&scratch.path("m"), "--above 1us --listen 127.0.0.1:0");
    let monitor = running.address();
    let config = format!(
        "global: {{scrape_interval: 1s, scrape_timeout: 1s}}\nscrape_configs:\n- {{job_name: punctual, static_configs: [{{targets: ['{monitor}']}}]}}\n"
    );
    let config = scratch.file("prometheus.yml", config);
    // A free port; another process could take it before Prometheus does.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut prometheus = Command::new("prometheus");
    prometheus
        .arg(format!("--config.file={}", config.display()))
        .arg(format!("--storage.tsdb.path={}", scratch.path("tsdb").display()));
    prometheus.arg(format!("--web.listen-address={port}")).env(MARK, mark());
    let mut prometheus = prometheus.start_silent();
    let query = |expression: &str| -> Value {
        let escaped: String = expression
            .bytes()
            .map(
                |byte| if byte.is_ascii_alphanumeric() { char::from(byte).to_string() } else { format!("%{byte:02X}") },
            )
            .collect();
        let Ok(mut stream) = TcpStream::connect(port) else { return Value::Null };
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        write!(stream, "GET /api/v1/query?query={escaped} HTTP/1.0\r\n\r\n").unwrap();
        let mut answer = String::new();
        let _ = stream.read_to_string(&mut answer);
        answer.split_once("\r\n\r\n").and_then(|(_, body)| serde_json::from_str(body).ok()).unwrap_or_default()
    };
    let has_data = |answer: &Value| answer["data"]["result"].as_array().is_some_and(|rows| !rows.is_empty());
    // Two scrapes and a window with an explained wake-up.
    for (title, expression) in queries() {
        let mut last = Value::Null;
        let came = comes_true(|| {
            last = query(&expression);
            has_data(&last) || last["status"] == "error"
        });
        assert!(came && has_data(&last), "{title}: {expression}: {last}");
    }
    assert_eq!(query("up{job=\"punctual\"}")["data"]["result"][0]["value"][1], "1");
    kill_and_wait(&mut prometheus);
    running.end(libc::SIGTERM);
}
