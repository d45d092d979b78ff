//! `cargo xtask bench`: interleaved runs of this program and installed peer programs, compared in pairs.
//!
//! Noise that affects both cancels in a pair; the order within pairs rotates. Nothing is asserted: each number is
//! printed with its confidence interval and the promise that it belongs to.

mod engine;
mod lab;
mod machine;
mod peers;
mod response;
mod runs;
mod setup;
mod store;
mod traces;

use setup::Setup;
use std::path::Path;

/// A benchmark: its name, what it needs, whether `cargo xtask bench` alone runs it, and its function.
struct Bench {
    name: &'static str,
    needs: &'static str,
    is_default: bool,
    run: fn(&Setup) -> Result<(), String>,
}

const BENCHES: [Bench; 20] = [
    Bench { name: "cyclictest", needs: "rt-tests", is_default: true, run: peers::cyclictest },
    Bench { name: "clone", needs: "rt-tests", is_default: true, run: peers::clone },
    Bench { name: "jitterdebugger", needs: "jitterdebugger", is_default: true, run: peers::jitterdebugger },
    Bench { name: "missed", needs: "rt-tests", is_default: true, run: peers::missed },
    Bench { name: "samples", needs: "jitterdebugger", is_default: true, run: peers::samples },
    Bench { name: "first-sample", needs: "", is_default: true, run: peers::first_sample },
    Bench { name: "loads", needs: "rt-tests", is_default: true, run: machine::loads },
    Bench { name: "host", needs: "", is_default: true, run: machine::host },
    Bench { name: "cost", needs: "linux-perf", is_default: true, run: machine::cost },
    Bench { name: "statistics", needs: "python3-numpy", is_default: true, run: runs::statistics },
    Bench { name: "report", needs: "chromium", is_default: true, run: runs::report },
    Bench { name: "merge", needs: "", is_default: true, run: runs::merge },
    Bench { name: "import", needs: "400 MB below TMPDIR", is_default: true, run: runs::import },
    Bench { name: "lab", needs: "rt-tests, kernels", is_default: true, run: lab::report },
    Bench { name: "response", needs: "root, kernels", is_default: true, run: response::report },
    Bench { name: "explain", needs: "root", is_default: false, run: traces::explain },
    Bench { name: "watch", needs: "root", is_default: false, run: traces::watch },
    Bench { name: "trace", needs: "root, trace-cmd", is_default: false, run: traces::recorded },
    Bench { name: "monitor", needs: "root", is_default: false, run: traces::monitor },
    Bench { name: "store", needs: "1 GB below TMPDIR", is_default: false, run: store::report },
];

const HELP: &str = "\
cargo xtask bench [--pairs N] [--cycles N] [--only WORD]
  10 pairs of 10000 cycles (more at shorter periods) unless told otherwise; --only: benchmarks whose name holds WORD";

/// Runs the chosen benchmarks, which print their tables.
pub(crate) fn run(root: &Path, arguments: &[&str]) -> Result<(), String> {
    let (mut pairs, mut cycles, mut only) = (10, 10_000, "");
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        let target = match *argument {
            "--pairs" => &mut pairs,
            "--cycles" => &mut cycles,
            "--only" => {
                only = arguments.next().ok_or_else(|| format!("--only needs a word\n{}", help()))?;
                continue;
            }
            _ => return Err(format!("`{argument}` is unknown\n{}", help())),
        };
        let number = arguments.next().and_then(|text| text.parse().ok()).filter(|n| *n > 0);
        *target = number.ok_or_else(|| format!("{argument} needs a number above 0\n{}", help()))?;
    }
    let is_chosen = |bench: &&Bench| if only.is_empty() { bench.is_default } else { bench.name.contains(only) };
    let chosen: Vec<_> = BENCHES.iter().filter(is_chosen).collect();
    if chosen.is_empty() {
        return Err(format!("no benchmark is named `{only}`\n{}", help()));
    }
    let cpus = punctual_sys::sched::affinity(0).map_err(|err| err.to_string())?;
    let cpu = cpus.iter().last().ok_or("no CPU may be used")?;
    let setup = Setup { root: root.to_owned(), program: engine::program(root)?, cpus, cpu, pairs, cycles };
    println!("{pairs} pairs; measured is CPU {cpu}; punctual: {}", setup.program.display());
    chosen.into_iter().try_for_each(|bench| (bench.run)(&setup))
}

fn help() -> String {
    let line = |bench: &Bench| {
        let when = if bench.is_default { "" } else { "only if named; " };
        format!("\n  {:<16}{when}{}", bench.name, bench.needs)
    };
    format!("{HELP}{}", BENCHES.iter().map(line).collect::<String>())
}
