//! Settings of the machine that are changed for the length of a cell.

mod realtime_limit;

use crate::words::word::as_text;
use crate::{CpuSet, Span, UnknownWord};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::path::Path;
use std::str::FromStr;

/// Changes to the machine for the length of a cell. An omitted setting is not changed; by default none is.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Prepare {
    /// Frequency governor of the measured CPUs, as the kernel names it (`scaling_governor`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub governor: Option<String>,
    /// Longest exit latency, ns, of the idle states that measured CPUs may use (`cpuidle/state*/disable`).
    #[serde(rename = "idle_latency_ns", skip_serializing_if = "Option::is_none")]
    pub idle_latency: Option<Span>,
    /// CPU time, us, of real-time threads in each period; -1: no limit (`sched_rt_runtime_us`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rt_runtime_us: Option<i64>,
    /// Whether timers of an idle CPU may move to a busy one (`timer_migration`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timer_migration: Option<bool>,
    /// Use of transparent huge pages: `always`, `madvise` or `never`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transparent_hugepages: Option<String>,
    /// Whether irqbalance is stopped for the length of the cell.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pause_irqbalance: Option<bool>,
    /// CPUs for all movable interrupts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub irq_cpus: Option<CpusAway>,
    /// CPUs for the kernel's unbound work and, with control groups v2, for all services and users.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub housekeeping_cpus: Option<CpusAway>,
    /// Control group, an absolute path, that the measuring process moves to, so that it gets the CPU time of an
    /// application there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cgroup: Option<String>,
    /// Gravity of Cobalt's clock, ns: the time by which its timers fire early, for interrupts, kernel and user threads
    /// alike (`/proc/xenomai/clock/coreclk`).
    #[serde(rename = "cobalt_gravity_ns", skip_serializing_if = "Option::is_none")]
    pub cobalt_gravity: Option<Span>,
    /// Values of other files of the kernel, by their typed names: `sysctl:vm.stat_interval`, or a path below `/sys` or
    /// `/proc/sys`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub files: BTreeMap<String, String>,
}

/// CPUs that other work is confined to, away from the measured ones.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[schemars(with = "String")]
#[serde(try_from = "String", into = "String")]
pub enum CpusAway {
    /// Every CPU that is not measured.
    Others,
    /// A fixed set.
    Only(CpuSet),
}

/// Parse error of a setting.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PrepareError {
    /// Unknown setting.
    #[error(transparent)]
    Unknown(#[from] UnknownWord),
    /// An invalid value of a setting.
    #[error("invalid setting `{0} = {1}`: expected {2}")]
    Value(&'static str, String, &'static str),
    /// The same setting twice.
    #[error("duplicate setting `{0}`; give each setting once")]
    Twice(String),
    /// A file that is none of the kernel's settings.
    #[error(
        "invalid setting `{0}`: expected a name like sysctl:vm.stat_interval, or a path below /sys or /proc/sys, and none \
         that names a program for the kernel to start"
    )]
    File(String),
    /// A value that cannot be written to such a file.
    #[error("invalid value of `{0}`: expected a text without commas and control characters, of 1 to 1000 bytes")]
    FileValue(String),
    /// Not `key=value`.
    #[error("invalid setting `{0}`: expected KEY=VALUE, like governor=performance")]
    NoValue(String),
}

impl Prepare {
    /// The typed form without a setting.
    pub(crate) const LEAVE: &str = "leave";

    /// Every setting in its typed form.
    pub const KNOWN: &[&str] = &[
        "governor",
        "idle_latency",
        "rt_runtime",
        "timer_migration",
        "transparent_hugepages",
        "irqbalance",
        "irq_cpus",
        "housekeeping_cpus",
        "cgroup",
        "cobalt_gravity",
    ];

    /// Whether no setting is changed.
    pub fn is_empty(&self) -> bool {
        *self == Prepare::default()
    }

    /// These parts of a name, and after them the settings, between separators.
    pub fn after<const N: usize>(&self, parts: [String; N], separator: &str) -> String {
        parts.into_iter().chain(self.words()).collect::<Vec<_>>().join(separator)
    }

    /// The settings in their typed form, `KEY=VALUE` each.
    pub fn words(&self) -> Vec<String> {
        // Without `..`, so that a new setting is never left out.
        let Prepare {
            governor,
            idle_latency,
            rt_runtime_us,
            timer_migration,
            transparent_hugepages,
            pause_irqbalance,
            irq_cpus,
            housekeeping_cpus,
            cgroup,
            cobalt_gravity,
            files,
        } = self;
        let runtime = |us: i64| {
            u64::try_from(us).map_or_else(|_| "unlimited".to_owned(), |us| Span(us.saturating_mul(1000)).to_string())
        };
        let values = [
            ("governor", governor.clone()),
            ("idle_latency", idle_latency.map(|latency| latency.to_string())),
            ("rt_runtime", rt_runtime_us.map(runtime)),
            ("timer_migration", timer_migration.map(|on| if on { "on" } else { "off" }.to_owned())),
            ("transparent_hugepages", transparent_hugepages.clone()),
            ("irqbalance", pause_irqbalance.filter(|pause| *pause).map(|_| "pause".to_owned())),
            ("irq_cpus", irq_cpus.as_ref().map(ToString::to_string)),
            ("housekeeping_cpus", housekeeping_cpus.as_ref().map(ToString::to_string)),
            ("cgroup", cgroup.clone()),
            ("cobalt_gravity", cobalt_gravity.map(|gravity| gravity.to_string())),
        ];
        let set = values.into_iter().filter_map(|(key, value)| value.map(|value| format!("{key}={value}")));
        set.chain(files.iter().map(|(name, value)| format!("{name}={value}"))).collect()
    }

    /// Sets one setting from its text forms. Errors: if `key` is not a setting or `value` is invalid for it.
    pub fn set(&mut self, key: &str, value: &str) -> Result<(), PrepareError> {
        let wrong = |key: &'static str, forms| PrepareError::Value(key, value.to_owned(), forms);
        let is_word = |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        match key {
            "governor" => {
                let name = Some(value.to_owned()).filter(|name| is_word(name));
                self.governor = Some(name.ok_or(wrong("governor", "a name like performance"))?);
            }
            "idle_latency" => {
                let latency = value.parse().ok();
                self.idle_latency = Some(latency.ok_or(wrong("idle_latency", "a time like 0us or 10us"))?);
            }
            "rt_runtime" => {
                let runtime = rt_runtime_us(value);
                self.rt_runtime_us = Some(runtime.ok_or(wrong("rt_runtime", "a time like 950ms, or unlimited"))?);
            }
            "timer_migration" => {
                let on = [("on", true), ("off", false)].into_iter().find(|(word, _)| *word == value);
                self.timer_migration = Some(on.ok_or(wrong("timer_migration", "on or off"))?.1);
            }
            "transparent_hugepages" => {
                let known = ["always", "madvise", "never"].contains(&value);
                let forms = "always, madvise or never";
                self.transparent_hugepages =
                    Some(known.then(|| value.to_owned()).ok_or(wrong("transparent_hugepages", forms))?);
            }
            "irqbalance" => {
                self.pause_irqbalance = (value == "pause").then_some(true);
                self.pause_irqbalance.ok_or(wrong("irqbalance", "pause"))?;
            }
            "irq_cpus" => {
                let cpus = value.parse().ok();
                self.irq_cpus = Some(cpus.ok_or(wrong("irq_cpus", "others, or CPUs like 0-1"))?);
            }
            "housekeeping_cpus" => {
                let cpus = value.parse().ok();
                self.housekeeping_cpus = Some(cpus.ok_or(wrong("housekeeping_cpus", "others, or CPUs like 0-1"))?);
            }
            "cgroup" => {
                let path = Some(value.to_owned()).filter(|path| path.starts_with('/'));
                self.cgroup = Some(path.ok_or(wrong("cgroup", "an absolute path, like /sys/fs/cgroup/rt"))?);
            }
            "cobalt_gravity" => {
                let gravity = value.parse().ok().filter(|gravity: &Span| *gravity < Span::SECOND);
                self.cobalt_gravity = Some(gravity.ok_or(wrong("cobalt_gravity", "a time below 1s, like 0us"))?);
            }
            _ if is_file(key) => {
                Prepare::file_of(key).ok_or_else(|| PrepareError::File(key.to_owned()))?;
                let is_plain = |c: char| !c.is_control() && c != ',';
                if !(1..=1000).contains(&value.len()) || !value.chars().all(is_plain) {
                    return Err(PrepareError::FileValue(key.to_owned()));
                }
                self.files.insert(key.to_owned(), value.to_owned());
            }
            _ => return Err(UnknownWord::new("setting", key, Prepare::KNOWN).into()),
        }
        Ok(())
    }

    /// The path, without a leading slash, of a file as it is typed; `None` for anything but the kernel's settings.
    pub fn file_of(key: &str) -> Option<String> {
        let path = match key.strip_prefix(SYSCTL) {
            // The first separator decides, sysctl(8): net.ipv4.conf.eth0/1.forwarding is also
            // net/ipv4/conf/eth0.1/forwarding.
            Some(name) if name.find(['.', '/']).is_some_and(|at| name[at..].starts_with('.')) => {
                let swapped = |c| match c {
                    '.' => '/',
                    '/' => '.',
                    c => c,
                };
                format!("proc/sys/{}", name.chars().map(swapped).collect::<String>())
            }
            Some(name) => format!("proc/sys/{name}"),
            None => key.strip_prefix('/')?.to_owned(),
        };
        let is_typed = |c: char| c == '/' || c.is_ascii_graphic() && !matches!(c, '=' | ',' | '"');
        Some(path).filter(|path| Prepare::may_change(path) && path.chars().all(is_typed))
    }

    /// Whether settings change the file with this path, without a leading slash: one below `/sys` or `/proc/sys`,
    /// except those that name a program for the kernel to start.
    pub fn may_change(path: &str) -> bool {
        let is_setting = path.starts_with("sys/") || path.starts_with("proc/sys/");
        let is_program = PROGRAMS.iter().any(|program| Path::new(path).starts_with(program));
        is_setting && !is_program && !path.split('/').any(|part| matches!(part, "" | "." | ".."))
    }

    /// Sets several settings from text like `governor=performance,timer_migration=off`. Errors: as [`Prepare::set`],
    /// and if a part is not `key=value`.
    pub fn set_all(&mut self, text: &str) -> Result<(), PrepareError> {
        let mut seen = HashSet::new();
        let mut parts: Vec<String> = Vec::new();
        for part in text.split(',') {
            match parts.last_mut() {
                // A list of CPUs contains commas.
                Some(last) if !part.contains('=') && !part.is_empty() => *last = format!("{last},{part}"),
                _ => parts.push(part.to_owned()),
            }
        }
        for part in parts {
            let (key, value) = part.split_once('=').ok_or_else(|| PrepareError::NoValue(part.clone()))?;
            self.set(key.trim(), value.trim())?;
            if !seen.insert(key.trim().to_owned()) {
                return Err(PrepareError::Twice(key.trim().to_owned()));
            }
        }
        Ok(())
    }
}

/// How the name of a sysctl begins.
const SYSCTL: &str = "sysctl:";

/// Files and directories that name programs and code for the kernel to run, sysctl(8), core(5).
const PROGRAMS: [&str; 7] = [
    "proc/sys/fs/binfmt_misc",
    "proc/sys/kernel/core_pattern",
    "proc/sys/kernel/hotplug",
    "proc/sys/kernel/modprobe",
    "proc/sys/kernel/poweroff_cmd",
    "sys/kernel/uevent_helper",
    "sys/module/firmware_class/parameters/path",
];

/// Whether a setting is named by its file.
fn is_file(key: &str) -> bool {
    key.starts_with(SYSCTL) || key.starts_with('/')
}

/// The kernel's value, us: whole microseconds, or -1 for no limit.
fn rt_runtime_us(text: &str) -> Option<i64> {
    if text == "unlimited" {
        return Some(-1);
    }
    let span: Span = text.parse().ok()?;
    i64::try_from(span.ns() / 1000).ok().filter(|_| span.ns().is_multiple_of(1000))
}

impl fmt::Display for Prepare {
    /// The typed form, separated by commas; `leave` without a setting.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_empty() { f.write_str(Prepare::LEAVE) } else { f.write_str(&self.words().join(",")) }
    }
}

impl FromStr for Prepare {
    type Err = PrepareError;

    fn from_str(text: &str) -> Result<Prepare, PrepareError> {
        let mut prepare = Prepare::default();
        if text != Prepare::LEAVE {
            prepare.set_all(text)?;
        }
        Ok(prepare)
    }
}

impl CpusAway {
    /// The CPUs on a machine with `online` CPUs, of which `measured` are measured. Errors: one line, if the set is
    /// empty or not online.
    pub fn resolve(&self, online: &CpuSet, measured: &CpuSet) -> Result<CpuSet, String> {
        let cpus = match self {
            CpusAway::Others => online.minus(measured),
            CpusAway::Only(cpus) => cpus.clone(),
        };
        if cpus.is_empty() {
            return Err(format!(
                "no CPU is left: all online CPUs ({online}) are measured; measure fewer (--cpus, key `cpus`)"
            ));
        }
        let absent = cpus.minus(online);
        if absent.is_empty() { Ok(cpus) } else { Err(format!("CPU {absent} is not online; online CPUs: {online}")) }
    }
}

impl FromStr for CpusAway {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "others" {
            return Ok(CpusAway::Others);
        }
        let cpus = text.parse().ok().filter(|cpus: &CpuSet| !cpus.is_empty());
        cpus.map(CpusAway::Only)
            .ok_or_else(|| format!("invalid CPU list `{text}`: expected others, or a list like 0-1"))
    }
}

impl fmt::Display for CpusAway {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CpusAway::Others => f.write_str("others"),
            CpusAway::Only(cpus) => cpus.fmt(f),
        }
    }
}

as_text!(CpusAway, String);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_print_as_they_are_typed() {
        let text = "governor=performance,idle_latency=10us,rt_runtime=940ms,timer_migration=off,\
                    transparent_hugepages=never,irqbalance=pause,irq_cpus=0,2-3,housekeeping_cpus=others,\
                    cgroup=/sys/fs/cgroup/rt";
        let mut prepare = Prepare::default();
        assert!(prepare.is_empty());
        prepare.set_all(text).unwrap();
        assert_eq!((prepare.to_string(), prepare.rt_runtime_us), (text.to_owned(), Some(940_000)));
        assert_eq!(serde_json::from_str::<Prepare>(&serde_json::to_string(&prepare).unwrap()).unwrap(), prepare);
        prepare.set("rt_runtime", "unlimited").unwrap();
        assert_eq!(prepare.rt_runtime_us, Some(-1));
    }

    #[test]
    fn what_cannot_be_asked_for_is_one_line_that_says_what_to_write() {
        for (text, message) in [
            ("governor", "invalid setting `governor`: expected KEY=VALUE, like governor=performance"),
            ("", "invalid setting ``: expected KEY=VALUE, like governor=performance"),
            ("governor=", "invalid setting `governor = `: expected a name like performance"),
            ("governor=../x", "invalid setting `governor = ../x`: expected a name like performance"),
            ("rt_runtime=1", "invalid setting `rt_runtime = 1`: expected a time like 950ms, or unlimited"),
            ("rt_runtime=1ns", "invalid setting `rt_runtime = 1ns`: expected a time like 950ms, or unlimited"),
            ("timer_migration=yes", "invalid setting `timer_migration = yes`: expected on or off"),
            ("irq_cpus=", "invalid setting `irq_cpus = `: expected others, or CPUs like 0-1"),
            ("cgroup=rt", "invalid setting `cgroup = rt`: expected an absolute path, like /sys/fs/cgroup/rt"),
            ("timer_migration=on,timer_migration=off", "duplicate setting `timer_migration`; give each setting once"),
        ] {
            assert_eq!(Prepare::default().set_all(text).map_err(|err| err.to_string()), Err(message.to_owned()));
        }
        let unknown = Prepare::default().set("govenor", "performance").unwrap_err().to_string();
        assert!(unknown.starts_with("unknown setting `govenor` (did you mean `governor`?"), "{unknown}");
    }

    #[test]
    fn files_are_settings_of_the_kernel_only() {
        for (key, path) in [
            ("sysctl:vm.stat_interval", Some("proc/sys/vm/stat_interval")),
            ("sysctl:net.ipv4.conf.eth0/1.forwarding", Some("proc/sys/net/ipv4/conf/eth0.1/forwarding")),
            ("sysctl:net/ipv4/conf/eth0.1/forwarding", Some("proc/sys/net/ipv4/conf/eth0.1/forwarding")),
            ("/sys/kernel/mm/ksm/run", Some("sys/kernel/mm/ksm/run")),
            ("/proc/sys/vm/swappiness", Some("proc/sys/vm/swappiness")),
            ("sysctl:", None),
            ("sysctl:a...b", None),
            ("sysctl:../../etc/passwd", None),
            ("/sys/../etc/passwd", None),
            ("/etc/passwd", None),
            ("/proc/1/oom_score_adj", None),
            ("/sys//x", None),
            ("/sys/a b", None),
            ("sysctl:kernel.core_pattern", None),
            ("sysctl:kernel.core_uses_pid", Some("proc/sys/kernel/core_uses_pid")),
            ("/proc/sys/kernel/modprobe", None),
            ("/proc/sys/kernel/modprobe_x", Some("proc/sys/kernel/modprobe_x")),
            ("sysctl:fs.binfmt_misc.register", None),
            ("/sys/kernel/uevent_helper", None),
        ] {
            assert_eq!(Prepare::file_of(key).as_deref(), path, "{key}");
        }
        let mut prepare = Prepare::default();
        prepare.set_all("timer_migration=off,sysctl:vm.stat_interval=120,/sys/a/b=x y").unwrap();
        assert_eq!(prepare.to_string(), "timer_migration=off,/sys/a/b=x y,sysctl:vm.stat_interval=120");
        for wrong in ["/etc/passwd=1", "sysctl:vm.x=", "sysctl:=1"] {
            assert!(Prepare::default().set_all(wrong).unwrap_err().to_string().starts_with("invalid "), "{wrong}");
        }
    }

    #[test]
    fn others_are_those_that_are_not_measured() {
        let cpus = |text: &str| text.parse::<CpuSet>().unwrap();
        let resolve = |text: &str, measured: &str| text.parse::<CpusAway>()?.resolve(&cpus("0-3"), &cpus(measured));
        assert_eq!(resolve("others", "2-3"), Ok(cpus("0-1")));
        assert_eq!(resolve("1", "1"), Ok(cpus("1")));
        assert!(resolve("others", "0-3").unwrap_err().contains("no CPU is left"));
        assert_eq!(resolve("3-4", "0"), Err("CPU 4 is not online; online CPUs: 0-3".to_owned()));
    }
}
