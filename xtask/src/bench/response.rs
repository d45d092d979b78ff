//! Round trips between two network namespaces beside a minimal pair in C, and interrupts in the lab.

use super::Setup;
use super::engine::{
    Promise, Scratch, each, finish, min_and_median_us, number, quiet_cell, repeated, rounds, row, table,
};
use punctual_model::{Cell, CpuSet, Record, Span};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

const TRIGGERS: u64 = 2000;
const KERNEL: &str = "debian:6.1 preempt=full";

/// Both ends of the minimal pair: `ping HOST N` sends a datagram of 24 bytes each millisecond to `pong`, and prints the
/// median of the round trips, ns. Both are FIFO 80, on one CPU each, with memory locked, and keep CPUs from deep idle
/// states, as punctual does: on an idle machine that alone shortens a round trip to a third.
const PAIR: &str = include_str!("pair.c");

/// Measures all of them and prints the table. Needs root, `ip`, a C compiler, two CPUs, and a kernel of the lab.
pub(super) fn report(setup: &Setup) -> Result<(), String> {
    let bench = Bench::new(&setup.program)?;
    table(format_args!("response: pairs of {TRIGGERS} triggers of 1 ms between two network namespaces"));
    let [ours, theirs] = rounds(setup.pairs, [&|| bench.ours(), &|| bench.theirs()])?;
    row(
        "round trip, of that of a pair in C",
        &each(&ours, &theirs, |ours, theirs| ours.0 / theirs.0),
        Promise::AtMost(1.1),
    );
    let cpu_us: Vec<_> = ours.iter().map(|ours| ours.1).collect();
    row("logger, CPU us a trigger, with its system calls", &cpu_us, Promise::AtMost(5.0));
    let more_us = each(&ours, &theirs, |ours, theirs| ours.1 - theirs.1);
    row("logger, CPU us a trigger more than asking in C", &more_us, Promise::AtMost(5.0));
    bench.lab("none")?;
    let idle = repeated(3, || bench.lab("none"))?;
    let shortest = idle.iter().map(|cell| cell.0).fold(f64::MAX, f64::min);
    row("lab: shortest answer of an idle guest, us", &[shortest], Promise::AtMost(6.6));
    let busy = repeated(setup.pairs.min(6), || Ok(bench.lab("mmap")?.1))?;
    row("lab: 320 interrupts under mmap, CPU s", &busy, Promise::AtMost(10.0));
    Ok(())
}

struct Bench<'a> {
    program: &'a Path,
    scratch: Scratch,
    names: [String; 2],
}

impl<'a> Bench<'a> {
    fn new(program: &'a Path) -> Result<Bench<'a>, String> {
        let pid = std::process::id();
        let names = ["target", "logger"].map(|role| format!("pb-{role}-{pid}"));
        let bench = Bench { program, scratch: Scratch::new()?, names };
        let source = bench.scratch.write("pair.c", PAIR)?;
        run(Command::new("cc").args(["-O2", "-o"]).arg(bench.scratch.path("pair")).arg(&source))?;
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
        let pair = self.scratch.path("pair");
        let _pong = Responder::start(self.on(0, &pair, "pong 0"), false)?;
        let ping = finish(&mut self.on(1, &pair, &format!("ping 1 10.214.9.2 {TRIGGERS}")), b"")?;
        let p50_ns: f64 = ping.stdout.trim().parse().map_err(|_| format!("the pair in C said {:?}", ping.stdout))?;
        Ok((p50_ns, ping.cpu_us(TRIGGERS)))
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
        let (_, p50_us) = min_and_median_us(&record)?;
        let usage = record.threads.first().and_then(|thread| thread.usage);
        let usage = usage.ok_or("the kernel does not say what the thread used")?;
        Ok((p50_us * 1e3, (usage.user_us + usage.system_us) as f64 / TRIGGERS as f64))
    }

    /// The shortest answer, us, and the CPU time, s, of a cell of 320 interrupts under `load`.
    fn lab(&self, load: &str) -> Result<(f64, f64), String> {
        let plan = format!(
            "repetitions = 1\ncycles = 320\nwarm_up = \"20ms\"\n[axes]\nkernel = [\"{KERNEL}\"]\nload = [\"{load}\"]\n\
             policy = [\"fifo:90\"]\nperiod = [\"5ms\"]\nmethod = [\"response:uio\"]\n"
        );
        let (file, out) = (self.scratch.write("plan.toml", plan)?, self.scratch.path("run"));
        let _ = std::fs::remove_dir_all(&out);
        let finished = super::engine::run(self.program, "run --wait --format json --out", &[&out, &file])?;
        let min_us = number(&finished.json()?, "cells/0/summary/min_ns")? / 1e3;
        Ok((min_us, finished.cpu_s))
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
