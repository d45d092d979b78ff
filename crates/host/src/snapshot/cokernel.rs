//! Reading a co-kernel beside Linux: Xenomai's Cobalt, EVL, and the interrupt pipeline below them.

use super::config::Config;
use super::read::field;
use crate::HostFs;
use punctual_model::{Clocks, CoKernel, Cobalt, CpuSet, Evl, Gravity, ModeSwitches, Pipeline, SwitchingThread, plain};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;

/// Maximum size of a file, bytes: a thread takes 80 bytes of `sched/stat`.
const LONGEST_BYTES: u64 = 1 << 20;

/// Maximum length of a name or value, characters: Cobalt's names have at most 31 (`XNOBJECT_NAME_LEN`).
const LONGEST_WORD: usize = 64;

/// Maximum number of parameters, and of kinds of faults: x86 has 20.
const MOST_ENTRIES: usize = 64;

/// Maximum number of threads read one file each.
const MOST_THREADS: usize = 1024;

/// Name of the clockevents device in place of a timer that a co-kernel has taken over (`tick_setup_proxy`,
/// kernel/time/tick-proxy.c of Dovetail).
const PROXY: &str = "proxy";

const PARAMETERS: &str = "sys/module/xenomai/parameters";

pub(super) fn read(
    fs: &HostFs,
    config: Option<&Config>,
    kernel_version: Option<&str>,
    command_line: Option<&str>,
    clocks: &Clocks,
) -> Option<CoKernel> {
    let is_built = |option: &str| config.is_some_and(|config| config.value(option) == Some("y"));
    let proxies = clocks.timer_devices.iter().filter(|on| on.value == PROXY);
    let proxies: CpuSet = proxies.flat_map(|on| on.cpus.iter()).collect();
    // Dovetail adds the word to the version (init/Makefile).
    let is_named = kernel_version.is_some_and(|version| version.split(' ').any(|word| word == "IRQPIPE"));
    let pipeline = match () {
        () if is_built("DOVETAIL") || is_built("IRQ_PIPELINE") || is_named || !proxies.is_empty() => {
            Some(Pipeline::Dovetail)
        }
        () if is_built("IPIPE") || fs.exists("proc/ipipe") => Some(Pipeline::Ipipe),
        () => None,
    };
    let has_cobalt = fs.exists("proc/xenomai") || fs.exists("sys/module/xenomai") || is_built("XENOMAI");
    // The file of the core clock names the timer of CPU 0, which it takes for granted.
    let is_clock_safe = pipeline == Some(Pipeline::Ipipe) || proxies.contains(0);
    let is_known = pipeline == Some(Pipeline::Dovetail) && !clocks.timer_devices.is_empty();
    let cokernel = CoKernel {
        pipeline,
        proxy_cpus: is_known.then_some(proxies),
        cobalt: has_cobalt.then(|| cobalt(fs, command_line, is_clock_safe)),
        evl: fs.exists("sys/devices/virtual/evl").then(|| evl(fs)),
    };
    (cokernel != CoKernel::default()).then_some(cokernel)
}

fn cobalt(fs: &HostFs, command_line: Option<&str>, is_clock_safe: bool) -> Cobalt {
    let file = |name: &str| bounded(fs, &format!("proc/xenomai/{name}"));
    let core_clock = if is_clock_safe { file("clock/coreclk").unwrap_or_default() } else { String::new() };
    let device = |name: &str| {
        let devices = field(&core_clock, "devices")?.split(", ");
        devices.filter_map(|pair| pair.split_once('=')).find(|(key, _)| *key == name).and_then(|(_, value)| word(value))
    };
    let latency = || Some(Gravity { user_ns: Some(file("latency")?.trim().parse().ok()?), ..Gravity::default() });
    Cobalt {
        version: file("version").and_then(|version| word(version.trim())),
        is_initialized: fs.exists("proc").then(|| fs.exists("proc/xenomai")),
        gravity: field(&core_clock, "gravity").and_then(gravity_of_cobalt).or_else(latency),
        timer: device("timer"),
        clock: device("clock"),
        cpus: file("affinity").and_then(|mask| cpus(mask.trim())),
        parameters: parameters(fs, command_line),
        faults: file("faults").and_then(|text| faults(&text)),
        mode_switches: file("sched/stat").and_then(|text| mode_switches(&text)),
        has_smi_chipset: fs.exists("sys/bus/pci/devices").then(|| has_smi_chipset(fs)),
    }
}

/// The text of a file of a co-kernel; `None` when it is unreadable or too long. Names of threads need not be UTF-8.
fn bounded(fs: &HostFs, path: &str) -> Option<String> {
    let mut bytes = Vec::new();
    let n_bytes = File::open(fs.root.join(path)).ok()?.take(LONGEST_BYTES + 1).read_to_end(&mut bytes).ok()?;
    (u64::try_from(n_bytes).ok()? <= LONGEST_BYTES).then(|| String::from_utf8_lossy(&bytes).into_owned())
}

/// A name or value that is safe to print; `None` when it is empty or too long.
fn word(text: &str) -> Option<String> {
    (!text.is_empty() && text.chars().nth(LONGEST_WORD).is_none()).then(|| plain(text).into_owned())
}

/// `irq=0 kernel=2000 user=2000` (`clock_show`, kernel/cobalt/clock.c).
fn gravity_of_cobalt(text: &str) -> Option<Gravity> {
    let value =
        |name: &str| text.split_whitespace().find_map(|pair| pair.strip_prefix(name)?.strip_prefix('=')?.parse().ok());
    some_of(Gravity { irq_ns: value("irq"), kernel_ns: value("kernel"), user_ns: value("user") })
}

/// `2000i 3500k 3500u` (`gravity_show`, kernel/evl/clock.c).
fn gravity_of_evl(text: &str) -> Option<Gravity> {
    let value = |unit: char| text.split_whitespace().find_map(|word| word.strip_suffix(unit)?.parse().ok());
    some_of(Gravity { irq_ns: value('i'), kernel_ns: value('k'), user_ns: value('u') })
}

fn some_of(gravity: Gravity) -> Option<Gravity> {
    (gravity != Gravity::default()).then_some(gravity)
}

/// A mask of one word, that of the kernel's `unsigned long` (`affinity_vfile_show`, kernel/cobalt/sched.c).
fn cpus(mask: &str) -> Option<CpuSet> {
    let bits = u64::from_str_radix(mask, 16).ok()?;
    Some((0..u64::BITS).filter(|bit| bits >> bit & 1 == 1).collect())
}

/// Faults by kind: a row for each trap, with a count for each CPU and the kind in parentheses (`faults_vfile_show`,
/// kernel/cobalt/procfs.c). `None` when any row has another form.
fn faults(text: &str) -> Option<BTreeMap<String, u64>> {
    let mut lines = text.lines();
    lines.next().filter(|head| head.starts_with("TRAP"))?;
    let fault = |line: &str| {
        let (_, row) = line.split_once(':')?;
        let (counts, kind) = row.split_once('(')?;
        let counts: Option<Vec<u64>> = counts.split_whitespace().map(|count| count.parse().ok()).collect();
        let sum = counts?.iter().fold(0_u64, |sum, count| sum.saturating_add(*count));
        Some((word(kind.trim_end().strip_suffix(')')?)?, sum))
    };
    let faults: Option<Vec<_>> = lines.filter(|line| !line.trim().is_empty()).map(fault).collect();
    let faults = faults.filter(|faults| faults.len() <= MOST_ENTRIES)?;
    Some(faults.into_iter().filter(|(_, count)| *count > 0).collect())
}

/// Columns of `sched/stat` before the name: CPU, PID, MSW, CSW, XSC, PF, STAT, %CPU (`vfile_schedstat_show`,
/// kernel/cobalt/sched.c).
const COLUMNS: usize = 8;

/// Switches of the threads of `sched/stat`. Rows without a PID are the Linux threads of each CPU and interrupts.
/// `None` when any row has another form.
fn mode_switches(text: &str) -> Option<ModeSwitches> {
    let mut lines = text.lines();
    let head: Vec<&str> = lines.next()?.split_whitespace().collect();
    if head.get(..3) != Some(&["CPU", "PID", "MSW"]) || head.len() != COLUMNS + 1 {
        return None;
    }
    let row = |line: &str| {
        let (fields, name) = columns(line)?;
        Some((fields[1].parse::<u32>().ok()?, fields[2].parse().ok()?, word(name)?))
    };
    let rows: Option<Vec<_>> = lines.map(row).collect();
    Some(summed(rows?.into_iter().filter(|(pid, ..)| *pid > 0).map(|(_, switches, name)| (switches, name))))
}

/// The columns of a row and the name after them, which may have blanks.
fn columns(line: &str) -> Option<([&str; COLUMNS], &str)> {
    let mut fields = [""; COLUMNS];
    let mut rest = line;
    for field in &mut fields {
        (*field, rest) = rest.trim_start().split_once(' ')?;
    }
    Some((fields, rest.trim()))
}

fn summed(threads: impl Iterator<Item = (u64, String)>) -> ModeSwitches {
    let mut sum = ModeSwitches::default();
    for (switches, name) in threads {
        sum.threads = sum.threads.saturating_add(1);
        sum.switches = sum.switches.saturating_add(switches);
        if switches > sum.most.as_ref().map_or(0, |most| most.switches) {
            sum.most = Some(SwitchingThread { name, switches });
        }
    }
    sum
}

/// Module parameters in effect; those that cannot be read, or all where there is no such directory, by the kernel
/// command line.
fn parameters(fs: &HostFs, command_line: Option<&str>) -> BTreeMap<String, String> {
    let words = command_line.unwrap_or_default().split_whitespace();
    let pairs = words.filter_map(|word| word.strip_prefix("xenomai.")?.split_once('='));
    // The kernel takes - for _ in the name of a parameter (`parameqn`, kernel/params.c).
    let given = pairs.filter_map(|(name, value)| Some((word(&name.replace('-', "_"))?, word(value)?)));
    let read = |name: String| Some((word(&name)?, word(bounded(fs, &format!("{PARAMETERS}/{name}"))?.trim())?));
    let mut parameters: BTreeMap<_, _> = given.take(MOST_ENTRIES).collect();
    parameters.extend(fs.names(PARAMETERS).into_iter().take(MOST_ENTRIES).filter_map(read));
    parameters
}

/// Whether `xenomai.smi` acts on this machine (`mach_x86_smi_init`, kernel/cobalt/arch/x86/dovetail/smi.c).
fn has_smi_chipset(fs: &HostFs) -> bool {
    let is = |file: &str, value: &str| {
        fs.text(format!("sys/bus/pci/devices/0000:00:1f.0/{file}")).is_some_and(|text| text == value)
    };
    is("vendor", "0x8086") && is("class", "0x060100")
}

fn evl(fs: &HostFs) -> Evl {
    let control = |name: &str| bounded(fs, &format!("sys/devices/virtual/evl/control/{name}"));
    let gravity = bounded(fs, "sys/devices/virtual/clock/monotonic/gravity");
    Evl {
        abi: control("abi").and_then(|abi| abi.trim().parse().ok()),
        state: control("state").and_then(|state| word(state.trim())),
        cpus: control("cpus").filter(|cpus| !cpus.trim().is_empty()).and_then(|cpus| cpus.trim().parse().ok()),
        gravity: gravity.and_then(|text| gravity_of_evl(&text)),
        mode_switches: in_band_switches(fs),
    }
}

/// Switches of EVL's threads: the first number of `stats` (`evl ps`). `None` when any cannot be read.
fn in_band_switches(fs: &HostFs) -> Option<ModeSwitches> {
    let dir = "sys/devices/virtual/thread";
    let names = fs.exists("sys/devices/virtual/evl/control").then(|| fs.names(dir))?;
    let read = |name: String| {
        let stats = bounded(fs, &format!("{dir}/{name}/stats"))?;
        Some((stats.split_whitespace().next()?.parse().ok()?, word(&name)?))
    };
    let threads: Option<Vec<_>> = (names.len() <= MOST_THREADS).then(|| names.into_iter().map(read).collect())?;
    Some(summed(threads?.into_iter()))
}

#[cfg(test)]
mod tests;
