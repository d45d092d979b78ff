//! What measuring in the lab costs, and what it says beside cyclictest in one guest.

mod guest;

use super::process::finish;
use super::statistics::row;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The kernels of the campaign that is promised, and its loads.
const KERNELS: [&str; 4] =
    ["debian:6.1 preempt=none", "debian:6.1 preempt=voluntary", "debian:6.1 preempt=full", "debian:6.1-rt"];
const LOADS: [&str; 4] = ["none", "exec", "tcp", "mmap"];
const PHASES: u32 = 4;

/// What is promised, CPU seconds: a kernel started up to its first sample, a guest that goes on to its first sample, a cell of
/// 300 samples on average over the loads, and the whole campaign.
const COLD_S: f64 = 4.5;
const RESTORED_S: f64 = 0.5;
const CELL_S: f64 = 1.5;
const CAMPAIGN_S: f64 = 120.0;

/// Measures all of it and prints the table.
pub(super) fn report(program: &Path, times: u64) -> Result<(), String> {
    let scratch = Scratch::new()?;
    // What is fetched is no part of it.
    let kernels = guest::fetched(program, &KERNELS)?;
    println!("\nlab: CPU time of QEMU and punctual together; {times} times each");
    println!("{:<52}{:>8}  {:<20}promise", "", "median", "[95 %]");
    let bench = Bench { program, scratch: &scratch };
    let first_sample = Ask { kernels: &KERNELS[2..3], loads: &LOADS[..1], cycles: 1, blocks: 1 };

    let cold = repeated(times, || bench.cold(&first_sample))?;
    row("a kernel from its start to a first sample, s", &cold, COLD_S);
    bench.warm(&first_sample)?;
    let without = repeated(times, || bench.warm(&first_sample))?;
    let with = repeated(times, || bench.warm(&Ask { blocks: 9, ..first_sample }))?;
    let restored: Vec<f64> = with.iter().zip(&without).map(|(nine, one)| (nine - one) / 8.0).collect();
    row("a guest that goes on to a first sample, s", &restored, RESTORED_S);

    let all = Ask { kernels: &KERNELS, loads: &LOADS, cycles: 300, blocks: PHASES };
    bench.warm(&Ask { cycles: 1, blocks: 1, ..all })?;
    let campaign = bench.warm(&all)?;
    let n = (KERNELS.len() * LOADS.len()) as f64;
    row("a cell of 300 samples, mean over four loads, s", &[campaign / (n * f64::from(PHASES))], CELL_S);
    row("four kernels x four loads x four phases, s", &[campaign], CAMPAIGN_S);
    let booted = LOADS.iter().map(|load| {
        let [kernel, load] = [&KERNELS[2..3], &[*load][..]];
        bench.cold(&Ask { kernels: kernel, loads: load, cycles: 300, blocks: 1 })
    });
    let booted = booted.collect::<Result<Vec<f64>, String>>()?;
    let booted = booted.iter().sum::<f64>() / booted.len() as f64;
    println!("  the same cells, each started from the kernel's start: {booted:.2} s a cell");
    guest::beside_cyclictest(program, &scratch.0, &kernels)
}

/// A campaign in virtual time.
#[derive(Clone, Copy)]
struct Ask<'a> {
    kernels: &'a [&'a str],
    loads: &'a [&'a str],
    cycles: u64,
    blocks: u32,
}

struct Bench<'a> {
    program: &'a Path,
    scratch: &'a Scratch,
}

impl Bench<'_> {
    /// CPU time, s, of a campaign that finds its kernels started and saved.
    fn warm(&self, ask: &Ask<'_>) -> Result<f64, String> {
        self.carried_out(ask, &self.scratch.0.join("warm"))
    }

    /// The same of one that has to start them.
    fn cold(&self, ask: &Ask<'_>) -> Result<f64, String> {
        let cache = self.scratch.0.join("cold");
        let _ = fs::remove_dir_all(&cache);
        self.carried_out(ask, &cache)
    }

    fn carried_out(&self, ask: &Ask<'_>, cache: &Path) -> Result<f64, String> {
        let failed = |err: std::io::Error| err.to_string();
        let places = cache.join("punctual");
        if !places.exists() {
            fs::create_dir_all(&places).map_err(failed)?;
            std::os::unix::fs::symlink(guest::kernels()?, places.join("kernels")).map_err(failed)?;
        }
        let list = |words: &[&str]| words.iter().map(|word| format!("\"{word}\"")).collect::<Vec<_>>().join(", ");
        let plan = format!(
            "repetitions = {}\ncycles = {}\nwarm_up = \"0s\"\n[axes]\nkernel = [{}]\nload = [{}]\npolicy = [\"fifo:90\"]\n",
            ask.blocks,
            ask.cycles,
            list(ask.kernels),
            list(ask.loads)
        );
        let (file, out) = (self.scratch.0.join("plan.toml"), self.scratch.0.join("run"));
        fs::write(&file, plan).map_err(failed)?;
        let _ = fs::remove_dir_all(&out);
        let mut command = Command::new(self.program);
        command.args(["run", "--wait", "--format", "json", "--out"]).arg(&out).arg(&file);
        let used = finish(command.env("XDG_CACHE_HOME", cache), b"")?.reaped.usage;
        Ok((used.user_us + used.system_us) as f64 / 1e6)
    }
}

fn repeated(times: u64, of: impl Fn() -> Result<f64, String>) -> Result<Vec<f64>, String> {
    (0..times).map(|_| of()).collect()
}

/// A directory that does not outlive the bench.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Result<Scratch, String> {
        let dir = std::env::temp_dir().join(format!("punctual-bench-lab-{}", std::process::id()));
        fs::create_dir_all(&dir).map_err(|err| err.to_string())?;
        Ok(Scratch(dir))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
