//! Costs of measuring in the lab, and its results beside those of cyclictest in one guest.

use super::Setup;
use super::engine::{Promise, Scratch, finish, quiet_cell, repeated, row, run, table};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Kernels and loads of the campaign in the promise.
const KERNELS: [&str; 4] =
    ["debian:6.1 preempt=none", "debian:6.1 preempt=voluntary", "debian:6.1 preempt=full", "debian:6.1-rt"];
const LOADS: [&str; 4] = ["none", "exec", "tcp", "mmap"];
const PHASES: u32 = 4;

/// Measures all of it and prints the table.
pub(super) fn report(setup: &Setup) -> Result<(), String> {
    let program = &*setup.program;
    let scratch = Scratch::new()?;
    // Downloads are not part of it.
    let kernels = fetched(program, &KERNELS)?;
    table("lab: CPU time of QEMU and punctual together");
    let bench = Bench { program, scratch: &scratch };
    let first_sample = Ask { kernels: &KERNELS[2..3], loads: &LOADS[..1], cycles: 1, blocks: 1 };

    let cold = repeated(setup.pairs, || bench.cold(&first_sample))?;
    row("a kernel from its start to a first sample, s", &cold, Promise::AtMost(4.5));
    bench.warm(&first_sample)?;
    let without = repeated(setup.pairs, || bench.warm(&first_sample))?;
    let with = repeated(setup.pairs, || bench.warm(&Ask { blocks: 9, ..first_sample }))?;
    let restored = super::engine::each(&with, &without, |nine, one| (nine - one) / 8.0);
    row("a guest that goes on to a first sample, s", &restored, Promise::AtMost(0.5));

    let all = Ask { kernels: &KERNELS, loads: &LOADS, cycles: 300, blocks: PHASES };
    bench.warm(&Ask { cycles: 1, blocks: 1, ..all })?;
    let campaign = bench.warm(&all)?;
    let n = (KERNELS.len() * LOADS.len()) as f64;
    row("a cell of 300 samples, mean over four loads, s", &[campaign / (n * f64::from(PHASES))], Promise::AtMost(1.5));
    row("four kernels x four loads x four phases, s", &[campaign], Promise::AtMost(120.0));
    let booted = LOADS.iter().map(|load| {
        let [kernel, load] = [&KERNELS[2..3], &[*load][..]];
        bench.cold(&Ask { kernels: kernel, loads: load, cycles: 300, blocks: 1 })
    });
    let booted = booted.collect::<Result<Vec<f64>, String>>()?;
    let booted = booted.iter().sum::<f64>() / booted.len() as f64;
    println!("  the same cells, each started from the kernel's start: {booted:.2} s a cell");
    beside_cyclictest(program, &scratch.0, &kernels)
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
    /// CPU time, s, of a campaign whose kernels are already booted and saved.
    fn warm(&self, ask: &Ask<'_>) -> Result<f64, String> {
        self.carried_out(ask, &self.scratch.0.join("warm"))
    }

    /// CPU time, s, of a campaign that boots its kernels.
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
            std::os::unix::fs::symlink(kernels()?, places.join("kernels")).map_err(failed)?;
        }
        let list = |words: &[&str]| words.iter().map(|word| format!("\"{word}\"")).collect::<Vec<_>>().join(", ");
        let plan = format!(
            "repetitions = {}\ncycles = {}\nwarm_up = \"0s\"\n[axes]\nkernel = [{}]\nload = [{}]\npolicy = [\"fifo:90\"]\n",
            ask.blocks,
            ask.cycles,
            list(ask.kernels),
            list(ask.loads)
        );
        let (file, out) = (self.scratch.write("plan.toml", plan)?, self.scratch.path("run"));
        let _ = fs::remove_dir_all(&out);
        let mut command = Command::new(self.program);
        command.args(["run", "--wait", "--format", "json", "--out"]).arg(&out).arg(&file);
        Ok(finish(command.env("XDG_CACHE_HOME", cache), b"")?.cpu_s)
    }
}

/// The command line of QEMU in the lab.
const QEMU: &str = "timeout 300 qemu-system-x86_64 -nodefaults -no-user-config -display none -no-reboot -M pc \
    -accel tcg,thread=single -icount shift=0,sleep=off -cpu qemu64 -smp 1 -rtc base=2026-01-01,clock=vm -m 512";
const ARGUMENTS: &str = "console=ttyS0 quiet panic=-1 nokaslr norandmaps no_timer_check cryptomgr.notests i8042.noaux \
    i8042.nokbd i8042.nopnp random.trust_cpu=off tsc=reliable tsc_early_khz=1000000 lpj=4000000";

/// Both measure 2000 cycles of a millisecond at FIFO 90 in nanoseconds. The kernel settles between them.
///
/// The main thread of cyclictest wakes up every 10 ms meanwhile and does some of the kernel's timekeeping, which
/// otherwise falls to a measured wake-up in four. So this program is measured once more beside an idle cyclictest,
/// whose main thread does the same.
const INIT: &str = include_str!("guest-init");

/// The kernel cache of `punctual lab fetch`.
fn kernels() -> Result<PathBuf, String> {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let base = set("XDG_CACHE_HOME").or_else(|| set("HOME").map(|home| home.join(".cache")));
    Ok(base.ok_or("neither XDG_CACHE_HOME nor HOME is set")?.join("punctual/kernels"))
}

/// Fetches the kernels of these names. Returns each name with the image for QEMU.
fn fetched(program: &Path, kernels: &[&str]) -> Result<Vec<(String, PathBuf)>, String> {
    let mut command = Command::new(program);
    let said = finish(command.args(["lab", "fetch"]).args(kernels), b"")?.stdout;
    let file = |line: &str| line.rsplit_once(", ").map(|(_, path)| PathBuf::from(path));
    Ok(kernels.iter().zip(said.lines()).filter_map(|(name, line)| Some(((*name).to_owned(), file(line)?))).collect())
}

/// Measures with both programs on each kernel, and prints smallest and mean latency.
fn beside_cyclictest(program: &Path, dir: &Path, kernels: &[(String, PathBuf)]) -> Result<(), String> {
    println!("\nidle, FIFO 90, 1 ms, 2000 cycles, in one guest; virtual ns, smallest / mean");
    println!("{:<40}{:>16}{:>16}{:>28}", "", "ours", "cyclictest", "ours beside its main thread");
    let archive = archive(program, dir)?;
    for (name, kernel) in kernels {
        let words = name.split_once(' ').map_or("", |(_, words)| words);
        let mut qemu = QEMU.split(' ');
        let mut command = Command::new(qemu.next().unwrap_or_default());
        command.args(qemu).arg("-kernel").arg(kernel).arg("-initrd").arg(&archive);
        command.args(["-serial", "stdio", "-append", &format!("{ARGUMENTS} {words}")]);
        let output = command.stdin(Stdio::null()).output().map_err(|err| format!("qemu-system-x86_64: {err}"))?;
        let said = String::from_utf8_lossy(&output.stdout);
        let line = |begin: &str| said.lines().find_map(|line| line.trim().strip_prefix(begin));
        let theirs = line("THEIRS ").ok_or_else(|| format!("{name}: the guest said nothing of cyclictest"))?;
        let number = |key: &str| theirs.split(key).nth(1)?.split_whitespace().next()?.parse::<u64>().ok();
        let ours = |name: &str| {
            let record = line(name).and_then(|json| serde_json::from_str::<Value>(json).ok());
            let record = record.ok_or("the guest gave no record")?;
            let histogram = &record["threads"][0]["histogram"];
            // A sum may exceed the exact range of JSON numbers, and is text then.
            let number_of = |key| histogram[key].as_f64().or_else(|| histogram[key].as_str()?.parse().ok());
            let [min, sum, n] = ["min_ns", "sum_ns", "n"].map(number_of);
            let show = |ns: Option<f64>| ns.map_or("?".to_owned(), |ns| format!("{ns:.0}"));
            Ok::<_, String>(format!("{} / {}", show(min), show(sum.zip(n).map(|(sum, n)| sum / n))))
        };
        let [their_min, their_mean] =
            ["Min:", "Avg:"].map(|key| number(key).map_or("?".to_owned(), |ns| ns.to_string()));
        let theirs = format!("{their_min} / {their_mean}");
        println!("{name:<40}{:>16}{theirs:>16}{:>28}", ours("OURS ")?, ours("BESIDE ")?);
    }
    Ok(())
}

/// The guest's initramfs: a static busybox, cyclictest with its libraries, punctual, and a cell for it.
fn archive(program: &Path, dir: &Path) -> Result<PathBuf, String> {
    let failed = |err: std::io::Error| err.to_string();
    let root = dir.join("root");
    fs::create_dir_all(&root).map_err(failed)?;
    let cyclictest = which("cyclictest").ok_or("cyclictest is not installed; apt-get install rt-tests")?;
    let busybox = which("busybox").ok_or("busybox is not installed; apt-get install busybox-static")?;
    let mut cell = quiet_cell([0].into_iter().collect(), punctual_model::Span(2_000_000_000));
    cell.policy = "fifo:90".parse().map_err(|err| format!("{err}"))?;
    fs::write(root.join("cell"), serde_json::to_vec(&cell).map_err(|err| err.to_string())?).map_err(failed)?;
    for (from, to) in [(busybox, "busybox"), (program.to_owned(), "punctual"), (cyclictest.clone(), "cyclictest")] {
        fs::copy(from, root.join(to)).map_err(failed)?;
    }
    fs::write(root.join("init"), INIT).map_err(failed)?;
    let libraries = run(Path::new("ldd"), "", &[&cyclictest])?.stdout;
    for library in libraries.split_whitespace().filter(|word| word.starts_with('/')) {
        let target = root.join(library.trim_start_matches('/'));
        fs::create_dir_all(target.parent().unwrap_or(&root)).map_err(failed)?;
        fs::copy(library, target).map_err(failed)?;
    }
    let archive = dir.join("guest.cpio");
    let script = "chmod 755 init busybox punctual cyclictest; find . | cpio --quiet -o -H newc > \"$0\"";
    finish(Command::new("sh").args(["-c", script]).arg(&archive).current_dir(&root), b"")?;
    Ok(archive)
}

fn which(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|dir| dir.join(program)).find(|path| path.is_file())
}
