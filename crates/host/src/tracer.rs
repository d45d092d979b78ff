//! One of the kernel's tracers at work: `timerlat` or `osnoise`.
//!
//! It has the kernel's main trace, not an instance: their options are there only, kernels before 5.17 let them run nowhere
//! else, and in a guest nobody else traces.

use super::HostFs;
use model::{CpuSet, Policy};
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use sys::{mount, sched};

/// Where tracefs is mounted in a guest.
const TRACING: &str = super::mounts::TRACEFS_MOUNTS[0];

/// Timeout until the tracer's threads have set themselves up.
const SETUP_TIMEOUT: Duration = Duration::from_secs(10);
const POLL_INTERVAL: Duration = Duration::from_millis(1);

/// Why there is no tracer.
#[derive(Debug, thiserror::Error)]
pub enum NoTracer {
    /// The kernel was built without it.
    #[error("the kernel has no such tracer")]
    Lacking,
    /// A file of the trace cannot be used.
    #[error("{path}: {source}")]
    File {
        /// Which.
        path: PathBuf,
        /// The kernel's reason.
        source: io::Error,
    },
    /// Its threads did not come, or did not take their policy.
    #[error("the threads of {0}: {1}")]
    Threads(&'static str, io::Error),
}

/// What a tracer is started with.
#[derive(Debug)]
pub struct TracerRequest<'a> {
    /// Its name, which its threads begin with.
    pub name: &'static str,
    /// CPUs that it has a thread on.
    pub cpus: &'a CpuSet,
    /// Files below `osnoise/`, with what they are set to, in this order.
    pub options: &'a [(&'static str, u64)],
    /// Room for lines, of each CPU.
    pub lines: u64,
}

/// A tracer that runs until it is dropped.
#[derive(Debug)]
pub struct Tracer {
    dir: PathBuf,
    name: &'static str,
}

/// Room that a line takes in the kernel's buffer, bytes; it is below 50 for both tracers.
const LINE_BYTES: u64 = 64;
/// Memory of the trace of one CPU, KiB, at least and at most.
const LEAST_KIB: u64 = 64;
const MOST_KIB: u64 = 64 * 1024;

impl Tracer {
    /// Whether the kernel has a tracer of this name; tracefs is mounted first where it is not.
    pub fn exists(name: &str) -> bool {
        Tracer::dir(name).is_some()
    }

    /// Where tracefs is, if the kernel has such a tracer.
    fn dir(name: &str) -> Option<PathBuf> {
        let dir = HostFs::running().root.join(TRACING);
        if !dir.join("available_tracers").exists() {
            // Fails for a kernel that traces nothing at all.
            mount::file_system("tracefs", dir.to_str()?).ok()?;
        }
        let all = fs::read_to_string(dir.join("available_tracers")).ok()?;
        all.split_whitespace().any(|tracer| tracer == name).then_some(dir)
    }

    /// Starts it.
    ///
    /// # Errors
    /// When the kernel has none, or it does not take what is request.
    pub fn start(request: &TracerRequest<'_>) -> Result<Tracer, NoTracer> {
        let dir = Tracer::dir(request.name).ok_or(NoTracer::Lacking)?;
        let tracer = Tracer { dir, name: request.name };
        let kib = (request.lines.saturating_mul(LINE_BYTES) / 1024).clamp(LEAST_KIB, MOST_KIB);
        tracer.write("tracing_on", "1")?;
        // The beginning is kept, so that what is lost is lost at the end, and counted.
        tracer.write("options/overwrite", "0")?;
        tracer.write("buffer_size_kb", &kib.to_string())?;
        tracer.write("osnoise/cpus", &request.cpus.to_string())?;
        for (option, value) in request.options {
            tracer.write(&format!("osnoise/{option}"), &value.to_string())?;
        }
        tracer.write("current_tracer", request.name)?;
        Ok(tracer)
    }

    /// Gives its threads a policy, once they have the one that the kernel gives them.
    ///
    /// # Errors
    /// When they do not come, or it is refused.
    pub fn set_policy(&self, cpus: &CpuSet, policy: Policy) -> Result<(), NoTracer> {
        let failed = |err| NoTracer::Threads(self.name, err);
        for cpu in cpus.iter() {
            let thread = self.thread(cpu).map_err(failed)?;
            sched::set_policy(thread, policy).map_err(failed)?;
            let achieved = sched::policy(thread).map_err(failed)?.to_string();
            if achieved != policy.to_string() {
                return Err(failed(io::Error::other(format!("{policy} was asked for, and they have {achieved}"))));
            }
        }
        Ok(())
    }

    /// The thread on `cpu`, once it is a real-time one: it makes itself that, and would undo an earlier change.
    fn thread(&self, cpu: u32) -> io::Result<u32> {
        let name = format!("{}/{cpu}", self.name);
        let began = Instant::now();
        let fs = HostFs::running();
        loop {
            let is_it = |pid: &u32| fs.text(format!("proc/{pid}/comm")).as_deref() == Some(&name);
            if let Some(thread) = fs.numbers_in("proc").into_iter().find(is_it)
                && sched::policy(thread)?.to_string().starts_with("fifo:")
            {
                return Ok(thread);
            }
            if began.elapsed() > SETUP_TIMEOUT {
                return Err(io::Error::other(format!("{name} did not start within {} s", SETUP_TIMEOUT.as_secs())));
            }
            std::thread::sleep(POLL_INTERVAL);
        }
    }

    /// Forgets what was traced so far.
    ///
    /// # Errors
    /// The kernel's reason.
    pub fn forget(&self) -> Result<(), NoTracer> {
        // Opened to be written anew, it is emptied (tracing_open, kernel/trace/trace.c).
        let path = self.dir.join("trace");
        File::create(&path).map(drop).map_err(file(&path))
    }

    /// Lines that the trace of `cpu` holds, and how many it had no room for.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn lines(&self, cpu: u32) -> Result<(u64, u64), NoTracer> {
        let stats = self.read(&format!("per_cpu/cpu{cpu}/stats"))?;
        let number = |name: &str| {
            let line = stats.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
            line.and_then(|number| number.trim().parse::<u64>().ok()).unwrap_or(0)
        };
        Ok((number("entries"), number("overrun") + number("commit overrun") + number("dropped events")))
    }

    /// Stops it, and hands every line of the trace to `take`.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn finish(self, mut take: impl FnMut(&str)) -> Result<(), NoTracer> {
        self.write("tracing_on", "0")?;
        let path = self.dir.join("trace");
        let lines = BufReader::new(File::open(&path).map_err(file(&path))?).lines();
        for line in lines {
            take(&line.map_err(file(&path))?);
        }
        Ok(())
    }

    fn read(&self, name: &str) -> Result<String, NoTracer> {
        let path = self.dir.join(name);
        fs::read_to_string(&path).map_err(file(&path))
    }

    /// In one write, which is a command of its own.
    fn write(&self, name: &str, text: &str) -> Result<(), NoTracer> {
        let path = self.dir.join(name);
        let written = OpenOptions::new().write(true).open(&path).and_then(|mut file| file.write_all(text.as_bytes()));
        written.map_err(file(&path))
    }
}

impl Drop for Tracer {
    fn drop(&mut self) {
        // Should it fail, the guest ends soon anyway.
        let _ = self.write("current_tracer", "nop");
    }
}

fn file(path: &Path) -> impl FnOnce(io::Error) -> NoTracer {
    let path = path.to_owned();
    move |source| NoTracer::File { path, source }
}
