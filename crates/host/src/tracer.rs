//! One of the kernel's tracers in operation: `timerlat`, `osnoise` or `hwlat`.
//!
//! It uses the kernel's main trace, not an instance: the tracers' options exist only there, and kernels before 5.17 run
//! them nowhere else. A trace that another program uses is left alone, and what is set is restored.

use super::mounts::TRACEFS_MOUNTS;
use super::{HostFs, Preparation};
use punctual_model::{CpuSet, Policy};
use punctual_sys::{mount, sched};
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Timeout until the tracer's threads have set themselves up.
const SETUP_TIMEOUT: Duration = Duration::from_secs(10);
const POLL_INTERVAL: Duration = Duration::from_millis(1);

/// An error in using a tracer.
#[derive(Debug, thiserror::Error)]
pub enum NoTracer {
    /// The kernel was built without it.
    #[error(
        "unsupported: this kernel has no tracer timerlat, osnoise or hwlat (CONFIG_TIMERLAT_TRACER, \
         CONFIG_OSNOISE_TRACER, CONFIG_HWLAT_TRACER); leave `tracers` out"
    )]
    Lacking,
    /// A file of the trace cannot be used.
    #[error("{path}: {source}")]
    File {
        /// The file.
        path: PathBuf,
        /// The kernel's reason.
        source: io::Error,
    },
    /// The trace cannot be set up.
    #[error("{0}")]
    Setting(String),
    /// Another program uses the trace.
    #[error("{path} {found}: another program uses the trace; stop it, or leave `tracers` out")]
    InUse {
        /// The file that shows it.
        path: PathBuf,
        /// What it has.
        found: String,
    },
    /// The tracer's threads did not start, or did not take their policy.
    #[error("the threads of {0}: {1}")]
    Threads(&'static str, io::Error),
}

/// Start parameters of a tracer.
#[derive(Debug)]
pub struct TracerRequest<'a> {
    /// Name of the tracer, with which its thread names begin.
    pub name: &'static str,
    /// Files of the trace and their values, in this order.
    pub options: &'a [(&'static str, String)],
    /// Number of lines to reserve for each CPU.
    pub lines: u64,
}

/// A tracer that runs until it is dropped, which restores the trace.
#[derive(Debug)]
pub struct Tracer {
    dir: PathBuf,
    name: &'static str,
    settings: Preparation,
}

/// The tracer with a thread on each CPU in this mode only, and the names of its threads.
const HWLAT: &str = "hwlat";
/// The file of its mode: `none [round-robin] per-cpu` (kernel/trace/trace_hwlat.c).
pub const HWLAT_MODE: &str = "hwlat_detector/mode";
const HWLAT_THREAD: &str = "hwlatd";

/// Bytes reserved for a line in the kernel's buffer; all need less than 100.
const LINE_BYTES: u64 = 128;
/// Minimum and maximum memory of the trace of one CPU, KiB.
const MIN_KIB: u64 = 64;
const MAX_KIB: u64 = 64 * 1024;

impl Tracer {
    /// Whether the kernel has a tracer of this name; mounts tracefs first if necessary.
    pub fn exists(name: &str) -> bool {
        Tracer::dir(name).is_some()
    }

    /// The mount point of tracefs below the root, if the kernel has such a tracer.
    fn dir(name: &str) -> Option<&'static str> {
        let fs = HostFs::running();
        let tracers = |dir: &str| fs.text(format!("{dir}/available_tracers"));
        if TRACEFS_MOUNTS.into_iter().all(|dir| tracers(dir).is_none()) {
            // Fails for a kernel without tracing.
            mount::file_system("tracefs", fs.root.join(TRACEFS_MOUNTS[0]).to_str()?).ok()?;
        }
        let has = |dir: &&str| tracers(dir).is_some_and(|all| all.split_whitespace().any(|tracer| tracer == name));
        // Before 5.14, hwlat has one thread that moves from CPU to CPU.
        let is_by_cpu = |dir: &&str| name != HWLAT || fs.text(format!("{dir}/{HWLAT_MODE}")).is_some();
        TRACEFS_MOUNTS.into_iter().find(has).filter(is_by_cpu)
    }

    /// Whether the tracer could be started now. Errors: as [`Tracer::start`].
    pub fn check(name: &'static str) -> Result<(), NoTracer> {
        Tracer::usable(&HostFs::running(), name).map(drop)
    }

    /// The mount point of a trace that the tracer can be started in. Errors: as [`Tracer::start`].
    fn usable(fs: &HostFs, name: &'static str) -> Result<&'static str, NoTracer> {
        let below = Tracer::dir(name).ok_or(NoTracer::Lacking)?;
        let dir = fs.root.join(below);
        let path = dir.join("current_tracer");
        OpenOptions::new().write(true).open(&path).map_err(file(&path))?;
        let text = |name: &str| fs.text(format!("{below}/{name}")).unwrap_or_default();
        let stats = |cpu: u32| text(&format!("per_cpu/cpu{cpu}/stats"));
        let holds = |cpu: &u32| stats(*cpu).lines().any(|line| line.starts_with("entries: ") && line != "entries: 0");
        let cpus = punctual_sys::sched::affinity(0).unwrap_or_default();
        let found = match (text("current_tracer").as_str(), text("set_event").is_empty(), cpus.iter().find(holds)) {
            ("nop" | "", true, None) => return Ok(below),
            ("nop" | "", true, Some(_)) => ("trace", "has lines (echo > trace clears it)".to_owned()),
            ("nop" | "", false, _) => ("set_event", "names events".to_owned()),
            (other, ..) => ("current_tracer", format!("is {other}")),
        };
        Err(NoTracer::InUse { path: dir.join(found.0), found: found.1 })
    }

    /// Starts the tracer. Errors: when unsupported: the kernel lacks this tracer, or does not accept the request.
    pub fn start(request: &TracerRequest<'_>) -> Result<Tracer, NoTracer> {
        let fs = HostFs::running();
        let below = Tracer::usable(&fs, request.name)?;
        let kib = (request.lines.saturating_mul(LINE_BYTES) / 1024).clamp(MIN_KIB, MAX_KIB);
        let options = request.options.iter().map(|(option, value)| ((*option).to_owned(), value.clone()));
        let files = [
            ("tracing_on", "1".to_owned()),
            // The beginning is kept, so that lines are lost at the end only, and counted.
            ("options/overwrite", "0".to_owned()),
            ("buffer_size_kb", kib.to_string()),
        ];
        let files = files.map(|(name, value)| (name.to_owned(), value)).into_iter().chain(options);
        // The trace stops at the end.
        let last = [("current_tracer".to_owned(), request.name.to_owned()), ("tracing_on".to_owned(), "0".to_owned())];
        let files = files.chain(last);
        let files: Vec<_> = files.map(|(name, value)| (format!("{below}/{name}"), value)).collect();
        let settings = Preparation::of_trace(&fs, &files).map_err(NoTracer::Setting)?;
        Ok(Tracer { dir: fs.root.join(below), name: request.name, settings })
    }

    /// Sets the policy of the tracer's threads, once they have the policy that the kernel gives them. Errors: when the
    /// threads do not start, or the policy is refused.
    pub fn set_policy(&self, cpus: &CpuSet, policy: Policy) -> Result<(), NoTracer> {
        let failed = |err| NoTracer::Threads(self.name, err);
        for cpu in cpus.iter() {
            let thread = self.thread(cpu).map_err(failed)?;
            sched::set_policy(thread, policy).map_err(failed)?;
            let achieved = sched::policy(thread).map_err(failed)?.to_string();
            if achieved != policy.to_string() {
                return Err(failed(io::Error::other(format!("requested {policy}, the kernel reports {achieved}"))));
            }
        }
        Ok(())
    }

    /// CPU time of the thread on `cpu`; `None` without `CONFIG_SCHED_INFO`, or without such a thread.
    pub fn ran(&self, cpu: u32) -> Option<Duration> {
        let name = if self.name == HWLAT { HWLAT_THREAD } else { self.name };
        let fs = HostFs::running();
        // The first number of `/proc/PID/schedstat` (Documentation/scheduler/sched-stats.rst).
        let counts = fs.text(format!("proc/{}/schedstat", thread(&fs, &format!("{name}/{cpu}"))?))?;
        counts.split_whitespace().next()?.parse().ok().map(Duration::from_nanos)
    }

    /// The thread on `cpu`, once it is a real-time one: it makes that change itself, and would undo an earlier one.
    fn thread(&self, cpu: u32) -> io::Result<u32> {
        let name = format!("{}/{cpu}", self.name);
        let began = Instant::now();
        let fs = HostFs::running();
        loop {
            if let Some(thread) = thread(&fs, &name)
                && sched::policy(thread)?.to_string().starts_with("fifo:")
            {
                return Ok(thread);
            }
            if began.elapsed() > SETUP_TIMEOUT {
                return Err(io::Error::other(format!(
                    "timeout: {name} not started after {} s",
                    SETUP_TIMEOUT.as_secs()
                )));
            }
            std::thread::sleep(POLL_INTERVAL);
        }
    }

    /// Discards the trace so far. Errors: the kernel's reason.
    pub fn forget(&self) -> Result<(), NoTracer> {
        // Opening with truncation empties it (tracing_open, kernel/trace/trace.c).
        let path = self.dir.join("trace");
        File::create(&path).map(drop).map_err(file(&path))
    }

    /// Numbers of lines that the trace of `cpu` contains, and that it had no room for.
    pub fn lines(&self, cpu: u32) -> Result<(u64, u64), NoTracer> {
        let stats = self.read(&format!("per_cpu/cpu{cpu}/stats"))?;
        let number = |name: &str| {
            let line = stats.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
            line.and_then(|number| number.trim().parse::<u64>().ok()).unwrap_or(0)
        };
        Ok((number("entries"), number("overrun") + number("commit overrun") + number("dropped events")))
    }

    /// Stops the trace, passes every line of it to `take`, and discards them.
    pub fn finish(mut self, mut take: impl FnMut(&str)) -> Result<(), NoTracer> {
        self.settings.end().map_err(NoTracer::Setting)?;
        let path = self.dir.join("trace");
        let lines = BufReader::new(File::open(&path).map_err(file(&path))?).lines();
        for line in lines {
            take(&line.map_err(file(&path))?);
        }
        self.forget()
    }

    fn read(&self, name: &str) -> Result<String, NoTracer> {
        let path = self.dir.join(name);
        fs::read_to_string(&path).map_err(file(&path))
    }
}

/// The thread of this name.
fn thread(fs: &HostFs, name: &str) -> Option<u32> {
    let is_it = |pid: &u32| fs.text(format!("proc/{pid}/comm")).as_deref() == Some(name);
    fs.numbers_in("proc").into_iter().find(is_it)
}

fn file(path: &Path) -> impl FnOnce(io::Error) -> NoTracer {
    let path = path.to_owned();
    move |source| NoTracer::File { path, source }
}
