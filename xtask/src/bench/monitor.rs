//! CPU time of a monitor: one thread that wakes each 10 ms, without and with the kernel's trace.

use super::statistics::row;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// The promise: share of one CPU, %.
const MOST_PERCENT: f64 = 0.1;
/// Time after the start that is not counted: threads are set up and memory is locked.
const SETTLING: Duration = Duration::from_secs(3);
/// Measured time of each run. It has 30 windows of a second: their cost counts more than with 5 minutes.
const TIME: Duration = Duration::from_secs(30);

/// The signal that ends a monitor in good order, so that it removes its trace (signal(7): the same on all machines).
const SIGTERM: i32 = 15;

/// A monitor that is ended with this value, and its directory.
struct Running {
    child: Child,
    dir: std::path::PathBuf,
}

impl Running {
    fn start(program: &Path, cpu: u32, window: &str, more: &[&str]) -> Result<Running, String> {
        let dir = std::env::temp_dir().join(format!("punctual-bench-monitor-{}", std::process::id()));
        let mut command = Command::new(program);
        command.args(["monitor", "--window", window, "--cpus", &cpu.to_string(), "--for", "10min"]).args(more);
        command.arg("--dir").arg(&dir).stdout(Stdio::null()).stderr(Stdio::null());
        let child = command.spawn().map_err(|err| format!("{}: {err}", program.display()))?;
        Ok(Running { child, dir })
    }

    /// CPU time in the measured time, as a share of one CPU, %.
    fn percent(&self) -> Result<f64, String> {
        let used = || sys::usage::cpu_time_of(self.child.id()).map_err(|err| format!("the monitor has ended: {err}"));
        std::thread::sleep(SETTLING);
        let (before, began) = (used()?, Instant::now());
        std::thread::sleep(TIME);
        let (after, took) = (used()?, began.elapsed());
        Ok((after.as_secs_f64() - before.as_secs_f64()) / took.as_secs_f64() * 100.0)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = sys::process::signal(self.child.id(), SIGTERM);
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

/// Measures and prints the table.
pub(super) fn report(program: &Path, cpu: u32, runs: u64) -> Result<(), String> {
    println!("\nmonitor: FIFO 80 each 10 ms on CPU {cpu}, {runs} runs of {} s", TIME.as_secs());
    println!("{:<46}{:>10}  {:<20}promise", "", "median", "[95 %]");
    for (name, window, more) in [
        ("% of a CPU, windows of 5 min", "5min", &["--no-explain"][..]),
        ("% of a CPU, windows of 1 s", "1s", &["--no-explain"]),
        ("% of a CPU, traced, windows of 5 min", "5min", &[]),
    ] {
        let shares: Result<Vec<f64>, String> =
            (0..runs).map(|_| Running::start(program, cpu, window, more)?.percent()).collect();
        row(name, &shares?, MOST_PERCENT);
    }
    Ok(())
}
