//! Round trips between two network namespaces beside a minimal pair in C, and interrupts in the lab.

use super::process::{cpu_us_per_wakeup, finish, quiet_cell};
use super::statistics::row;
use model::{Cell, CpuSet, Record, Span};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// Promises: a round trip as a share of that of the pair in C; CPU time, us, of the logger for each trigger, including
/// system calls (printed beside it: the difference from the pair in C); in the lab the shortest answer of an idle
/// preempt=full, us, and a cell of 320 interrupts under `mmap` from a saved state, CPU s.
const OF_THE_PAIR: f64 = 1.10;
const LOGGER_US: f64 = 5.0;
const IDLE_US: f64 = 6.6;
const CELL_S: f64 = 10.0;

const TRIGGERS: u64 = 2000;
const KERNEL: &str = "debian:6.1 preempt=full";

/// Both ends of the minimal pair: `ping HOST N` sends a datagram of 24 bytes each millisecond to `pong`, and prints the
/// median of the round trips, ns. Both are FIFO 80, on one CPU each, with memory locked, and keep CPUs from deep idle
/// states, as punctual does: on an idle machine that alone shortens a round trip to a third.
const PAIR: &str = r#"
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <fcntl.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
static int64_t now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec * 1000000000LL + t.tv_nsec; }
static int order(const void *a, const void *b) { int64_t x = *(int64_t *)a, y = *(int64_t *)b; return (x > y) - (x < y); }
int main(int n, char **v) {
  int is_ping = !strcmp(v[1], "ping"); char data[24] = {0};
  cpu_set_t cpus; CPU_ZERO(&cpus); CPU_SET(atoi(v[2]), &cpus); sched_setaffinity(0, sizeof cpus, &cpus);
  struct sched_param p = {.sched_priority = 80}; if (sched_setscheduler(0, SCHED_FIFO, &p)) return 2;
  mlockall(MCL_CURRENT | MCL_FUTURE);
  int32_t none = 0; int awake = open("/dev/cpu_dma_latency", O_WRONLY); if (write(awake, &none, sizeof none) != sizeof none) return 4;
  struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(4001)}, from; socklen_t len = sizeof from;
  int s = socket(AF_INET, SOCK_DGRAM, 0);
  if (!is_ping) {
    if (bind(s, (struct sockaddr *)&to, sizeof to)) return 3;
    puts("ready"); fflush(stdout);
    for (;;) { len = sizeof from; ssize_t got = recvfrom(s, data, sizeof data, 0, (struct sockaddr *)&from, &len); sendto(s, data, got, 0, (struct sockaddr *)&from, len); }
  }
  inet_pton(AF_INET, v[3], &to.sin_addr);
  int count = atoi(v[4]); int64_t *took = calloc(count, sizeof *took);
  int64_t due = now() + 1000000;
  for (int i = 0; i < count; i++, due += 1000000) {
    struct timespec t = {due / 1000000000, due % 1000000000}; clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, 0);
    int64_t sent = now(); sendto(s, data, sizeof data, 0, (struct sockaddr *)&to, sizeof to);
    len = sizeof from; recvfrom(s, data, sizeof data, 0, (struct sockaddr *)&from, &len); took[i] = now() - sent;
  }
  qsort(took, count, sizeof *took, order); printf("%lld\n", (long long)took[count / 2]); return 0;
}
"#;

/// Measures all of them and prints the table. Needs root, `ip`, a C compiler, two CPUs, and a kernel of the lab.
pub(super) fn report(program: &Path, pairs: u64) -> Result<(), String> {
    println!("\nresponse: {pairs} pairs of {TRIGGERS} triggers of 1 ms between two network namespaces");
    println!("{:<46}{:>10}  {:<20}promise", "", "median", "[95 %]");
    let bench = Bench::new(program)?;
    let (mut ratio, mut cpu_us, mut more_us) = (Vec::new(), Vec::new(), Vec::new());
    for pair in 0..pairs {
        let theirs_first = (pair % 2 == 1).then(|| bench.theirs()).transpose()?;
        let ours = bench.ours()?;
        let theirs = theirs_first.map_or_else(|| bench.theirs(), Ok)?;
        ratio.push(ours.0 / theirs.0);
        cpu_us.push(ours.1);
        more_us.push(ours.1 - theirs.1);
    }
    row("round trip, of that of a pair in C", &ratio, OF_THE_PAIR);
    row("logger, CPU us a trigger", &cpu_us, LOGGER_US);
    row("logger, CPU us a trigger more than asking in C", &more_us, LOGGER_US);
    bench.lab("none")?;
    let idle: Vec<_> = (0..3).map(|_| bench.lab("none")).collect::<Result<_, _>>()?;
    row(
        "lab: shortest answer of an idle guest, us",
        &[idle.iter().map(|cell| cell.0).fold(f64::MAX, f64::min)],
        IDLE_US,
    );
    let busy = (0..pairs.min(6)).map(|_| Ok(bench.lab("mmap")?.1)).collect::<Result<Vec<_>, String>>()?;
    row("lab: 320 interrupts under mmap, CPU s", &busy, CELL_S);
    Ok(())
}

struct Bench<'a> {
    program: &'a Path,
    dir: PathBuf,
    names: [String; 2],
}

impl<'a> Bench<'a> {
    fn new(program: &'a Path) -> Result<Bench<'a>, String> {
        let pid = std::process::id();
        let dir = std::env::temp_dir().join(format!("punctual-bench-response-{pid}"));
        std::fs::create_dir_all(&dir).map_err(|err| err.to_string())?;
        let names = ["target", "logger"].map(|role| format!("pb-{role}-{pid}"));
        let bench = Bench { program, dir, names };
        let source = bench.dir.join("pair.c");
        std::fs::write(&source, PAIR).map_err(|err| err.to_string())?;
        run(Command::new("cc").args(["-O2", "-o"]).arg(bench.dir.join("pair")).arg(&source))?;
        let [target, logger] = &bench.names;
        let ip = |words: &str| run(Command::new("ip").args(words.split_whitespace()));
        for (name, end) in [(target, 2), (logger, 1)] {
            ip(&format!("netns add {name}"))?;
            ip(&format!("-n {name} link set lo up"))?;
            if end == 1 {
                ip(&format!("-n {name} link add eth0 type veth peer name eth0 netns {target}"))?;
            }
        }
        for (name, end) in [(target, 2), (logger, 1)] {
            ip(&format!("-n {name} addr add 10.214.9.{end}/24 dev eth0"))?;
            ip(&format!("-n {name} link set eth0 up"))?;
        }
        Ok(bench)
    }

    /// The median round trip, ns, of the pair in C, and the CPU time of `ping`, us for each trigger.
    fn theirs(&self) -> Result<(f64, f64), String> {
        let pair = self.dir.join("pair");
        let _pong = Responder::start(self.on(0, &pair, "pong 0"), false)?;
        let ping = finish(&mut self.on(1, &pair, &format!("ping 1 10.214.9.2 {TRIGGERS}")), b"")?;
        let p50_ns: f64 = ping.stdout.trim().parse().map_err(|_| format!("the pair in C said {:?}", ping.stdout))?;
        Ok((p50_ns, cpu_us_per_wakeup(&ping.reaped, TRIGGERS)))
    }

    /// The median round trip, ns, of punctual, and the CPU time of its logger, us for each trigger.
    fn ours(&self) -> Result<(f64, f64), String> {
        let respond = self.on(0, self.program, "respond --on udp:10.214.9.2:4000 --policy fifo:80 --cpu 0");
        let _respond = Responder::start(respond, true)?;
        let method = "response:udp:10.214.9.2:4000".parse().map_err(|err| format!("{err}"))?;
        let duration = Span(TRIGGERS * 1_000_000);
        let cell = Cell { task: method, ..quiet_cell(CpuSet::from_iter([1]), duration) };
        let json = serde_json::to_vec(&cell).map_err(|err| err.to_string())?;
        let said = finish(&mut self.on(1, self.program, "cell"), &json)?.stdout;
        let record: Record = serde_json::from_str(&said).map_err(|err| format!("punctual cell: {err}"))?;
        let [thread] = &record.threads[..] else { return Err("one thread measures".to_owned()) };
        let p50_ns = analysis::quantile(&thread.histogram, 0.5).ok_or("nothing was answered")?;
        let usage = thread.usage.ok_or("the kernel does not say what the thread used")?;
        Ok((p50_ns as f64, (usage.user_us + usage.system_us) as f64 / TRIGGERS as f64))
    }

    /// The shortest answer, us, and the CPU time, s, of a cell of 320 interrupts under `load`.
    fn lab(&self, load: &str) -> Result<(f64, f64), String> {
        let plan = format!(
            "repetitions = 1\ncycles = 320\nwarm_up = \"20ms\"\n[axes]\nkernel = [\"{KERNEL}\"]\nload = [\"{load}\"]\n\
             policy = [\"fifo:90\"]\nperiod = [\"5ms\"]\nmethod = [\"response:uio\"]\n"
        );
        let (file, out) = (self.dir.join("plan.toml"), self.dir.join("run"));
        std::fs::write(&file, plan).map_err(|err| err.to_string())?;
        let _ = std::fs::remove_dir_all(&out);
        let mut command = Command::new(self.program);
        command.args(["run", "--wait", "--format", "json", "--out"]).arg(&out).arg(&file);
        let finished = finish(&mut command, b"")?;
        let json: serde_json::Value = serde_json::from_str(&finished.stdout).map_err(|err| err.to_string())?;
        let min_us = json["cells"][0]["summary"]["min_ns"].as_f64().ok_or("no smallest latency")? / 1e3;
        let used = finished.reaped.usage;
        Ok((min_us, (used.user_us + used.system_us) as f64 / 1e6))
    }

    /// A command in a network namespace.
    fn on(&self, machine: usize, program: &Path, words: &str) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec"]).args(self.names.get(machine)).arg(program).args(words.split_whitespace());
        command
    }
}

impl Drop for Bench<'_> {
    fn drop(&mut self) {
        for name in &self.names {
            let _ = Command::new("ip").args(["netns", "del", name]).output();
        }
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

/// A responder process that is killed on drop.
struct Responder(Child);

impl Responder {
    /// Starts a process and waits for its first line, on stderr or stdout.
    fn start(mut command: Command, on_stderr: bool) -> Result<Responder, String> {
        let command = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut responder = Responder(command.spawn().map_err(|err| err.to_string())?);
        let mut line = String::new();
        let read = match (on_stderr, &mut responder.0.stderr, &mut responder.0.stdout) {
            (true, Some(stderr), _) => BufReader::new(stderr).read_line(&mut line),
            (false, _, Some(stdout)) => BufReader::new(stdout).read_line(&mut line),
            _ => Ok(0),
        };
        match read {
            Ok(0) | Err(_) => Err("what answers has ended; run as root".to_owned()),
            Ok(_) => Ok(responder),
        }
    }
}

impl Drop for Responder {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn run(command: &mut Command) -> Result<(), String> {
    let name = format!("{command:?}");
    let output = command.output().map_err(|err| format!("{name}: {err}"))?;
    let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    if output.status.success() { Ok(()) } else { Err(format!("{name}: {said}")) }
}
