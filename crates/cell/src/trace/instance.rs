//! A private tracefs instance: created, set up, read, and always removed.

use super::TraceError;
use super::events::{EventScope, EventSet, IDLE, NEEDED, SYSTEM_CALLS, filter};
use super::probes::{self, Probes};
use super::source::PageSource;
use punctual_analysis::explain::state;
use punctual_code::ProbePlace;
use punctual_ftrace::{BEGIN, Decoder, END, Layouts, VECTORS};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Prefix of the names of all instances.
const PREFIX: &str = "punctual";
/// Memory of the trace of one CPU, KiB, at most and at least; and of all CPUs together.
const MAX_KIB: usize = 4096;
const MIN_KIB: usize = 256;
const ALL_KIB: usize = 64 * 1024;
/// Buffer size for one whole read: files like `events/header_page` and filters return their text to the first `read`
/// only.
const WHOLE: usize = 1 << 16;

/// The threads and events to trace.
#[derive(Debug, Clone, Copy)]
pub struct TraceRequest<'a> {
    pub(crate) events: EventSet,
    /// IDs of the measured threads in the kernel's initial namespace; `None` when not known.
    pub(crate) pids: Option<&'a [i32]>,
    /// Where the kernel's stack is recorded.
    pub(crate) stacks: StackRequest,
    /// Whether the CPUs have idle states to tell apart: otherwise their events cost time without a use.
    pub(crate) idle_states: bool,
}

/// The events with which the kernel's stack is recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StackRequest {
    /// None.
    Nowhere,
    /// The waking of a measured thread, and the switch to it.
    WakeUps,
    /// The beginning of each sleep that signals do not end: what a thread waits for.
    Sleeps,
}

/// A private trace. Dropping it removes it.
#[derive(Debug)]
pub struct Instance {
    dir: PathBuf,
    /// The root of tracefs, which has the formats.
    root: PathBuf,
    /// Keeps the trace alive while open: the kernel stops it when this process dies (`disable_on_free`).
    hold: Option<File>,
    /// The raw pipe of each CPU, by number.
    raw: Vec<Option<File>>,
    tracing_on: Option<File>,
    /// The layouts of the enabled events, and of those that ftrace itself writes.
    layouts: Layouts,
    /// Memory of the trace of one CPU, bytes.
    buffer_bytes: usize,
    /// Events that the kernel lacks, and the information lost by that.
    pub(crate) missing: Vec<String>,
    /// Whether texts of `trace_marker` are among the events.
    takes_markers: bool,
    /// The last field: they are removed after the instance.
    probes: Probes,
}

impl Instance {
    /// Creates an instance that traces nothing yet. Instances of dead processes are removed first. Errors: without
    /// tracefs, or without permission to use it.
    pub(crate) fn create() -> Result<Instance, TraceError> {
        Instance::create_sized(MAX_KIB)
    }

    /// A second instance of this process, for the events around those of [`Instance::create`]. Errors: as
    /// [`Instance::create`].
    pub(crate) fn create_second() -> Result<Instance, TraceError> {
        Instance::create_named(&format!("{}-2", own_name()), MAX_KIB)
    }

    /// A further one, the `number`th, for events of all CPUs that are read often. Errors: as [`Instance::create`].
    pub(crate) fn create_further(number: u8) -> Result<Instance, TraceError> {
        Instance::create_named(&format!("{}-{number}", own_name()), 1024)
    }

    /// As [`Instance::create`], with at most this memory for each CPU, KiB. Errors: as [`Instance::create`].
    pub(crate) fn create_sized(most_kib: usize) -> Result<Instance, TraceError> {
        Instance::create_named(&own_name(), most_kib)
    }

    fn create_named(name: &str, most_kib: usize) -> Result<Instance, TraceError> {
        let root = Instance::root()?;
        let instances = root.join("instances");
        sweep(&instances);
        probes::sweep(&root, is_abandoned);
        let dir = instances.join(name);
        fs::create_dir(&dir).map_err(TraceError::file(&dir))?;
        let mut made = Instance {
            dir,
            probes: Probes::new(&root, name),
            takes_markers: false,
            root,
            hold: None,
            raw: Vec::new(),
            tracing_on: None,
            layouts: Layouts::default(),
            buffer_bytes: 0,
            missing: Vec::new(),
        };
        made.write("tracing_on", "0")?;
        made.write("trace_clock", "mono")?;
        let n_cpus = made.cpus();
        let kib = (ALL_KIB / n_cpus.max(1)).clamp(MIN_KIB, most_kib);
        made.write("buffer_size_kb", &kib.to_string())?;
        made.buffer_bytes = kib * 1024;
        made.write("options/overwrite", "1")?;
        made.write("options/disable_on_free", "1")?;
        made.hold = Some(made.open_for_writing("free_buffer")?);
        for cpu in 0..n_cpus {
            let path = made.dir.join(format!("per_cpu/cpu{cpu}/trace_pipe_raw"));
            made.raw.push(OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path).ok());
        }
        made.tracing_on = Some(made.open_for_writing("tracing_on")?);
        Ok(made)
    }

    /// The path of tracefs. Errors: when there is no tracefs, or this user has no access.
    pub fn root() -> Result<PathBuf, TraceError> {
        Ok(punctual_host::tracing_dir()?)
    }

    /// Removes the instances of dead processes; returns their paths. Without access to tracefs there are none.
    pub fn remove_abandoned() -> Vec<PathBuf> {
        let Ok(root) = Instance::root() else { return Vec::new() };
        let instances = root.join("instances");
        let removed = sweep(&instances).into_iter().map(|name| instances.join(name));
        // While an instance has them enabled, they stay.
        let removed: Vec<PathBuf> = removed.collect();
        let groups = probes::sweep(&root, is_abandoned).into_iter().map(|group| root.join("events").join(group));
        removed.into_iter().chain(groups).collect()
    }

    /// One more than the highest number of a CPU that has a trace.
    fn cpus(&self) -> usize {
        let entries = fs::read_dir(self.dir.join("per_cpu")).into_iter().flatten().flatten();
        let numbers =
            entries.filter_map(|entry| entry.file_name().to_str()?.strip_prefix("cpu")?.parse::<usize>().ok());
        numbers.max().map_or(0, |highest| highest + 1)
    }

    /// Opens two files for the thread that stops the trace: the trace marker, and `tracing_on` for a write of 0 where
    /// the marker alone does not stop it. Errors: when they cannot be opened.
    pub(crate) fn freezer(&self) -> Result<(File, Option<File>), TraceError> {
        let marker = self.open_for_writing("trace_marker")?;
        let tracing_on = if self.stops_at_marks() { None } else { Some(self.open_for_writing("tracing_on")?) };
        Ok((marker, tracing_on))
    }

    /// Sets a trigger that stops the trace at a mark; returns whether it is in force. Writing 0 to `tracing_on` instead
    /// wakes all waiting readers of any CPU, by an interrupt of the CPU itself: 17 us in a guest, against 1 us for a
    /// mark with the trigger.
    fn stops_at_marks(&self) -> bool {
        const TRIGGER: &str = "events/ftrace/print/trigger";
        // Before Linux 5.18 the trigger of an instance stopped all other traces too ("tracing: Have traceon and
        // traceoff trigger honor the instance").
        let release = punctual_host::kernel_release().unwrap_or_default();
        let mut numbers = release.split(['.', '-']).map_while(|number| number.parse::<u32>().ok());
        let is_ours = (numbers.next(), numbers.next()) >= (Some(5), Some(18));
        is_ours
            && self.write(TRIGGER, "traceoff").is_ok()
            && self.read(TRIGGER).is_some_and(|kept| kept.lines().any(|line| line.starts_with("traceoff:unlimited")))
    }

    /// Adds to the events the texts that threads write into `trace_marker`. Errors: where the kernel does not pass them
    /// to other traces than the main one.
    pub(crate) fn take_markers(&mut self) -> Result<(), TraceError> {
        self.takes_markers = true;
        self.write("options/copy_trace_marker", "1").map_err(|_| TraceError::NoMarkers)
    }

    /// Adds to the events the passing of places in a file: that of the mark with this number. Errors: where the kernel
    /// cannot trace programs, or not there.
    pub(crate) fn add_probes(&mut self, mark: usize, file: &File, places: &[ProbePlace]) -> Result<(), TraceError> {
        self.probes.add(mark, file, places)
    }

    /// Enables the events that explain the threads with these IDs. Errors: as of [`Instance::enable`].
    pub(crate) fn enable_for(
        &mut self,
        tids: &[u32],
        stacks: StackRequest,
        idle_states: bool,
    ) -> Result<Decoder, TraceError> {
        let pids: Option<Vec<i32>> = punctual_host::is_initial_pid_namespace()
            .then(|| tids.iter().map(|tid| i32::try_from(*tid).unwrap_or(-1)).collect());
        self.enable(TraceRequest { events: EventSet::Explanation, pids: pids.as_deref(), stacks, idle_states })
    }

    /// Enables the events for `watched`, reads every filter back, and returns their decoder. Errors: when an essential
    /// event does not exist, or a filter is not kept.
    pub(crate) fn enable(&mut self, watched: TraceRequest<'_>) -> Result<Decoder, TraceError> {
        let mut formats = Vec::new();
        let events = watched.events.requests();
        for wanted in events.iter().filter(|wanted| watched.idle_states || wanted.path != IDLE) {
            match self.format(wanted.path) {
                Some(format) => formats.push((wanted.path.to_owned(), format)),
                None if NEEDED.contains(&wanted.path) => {
                    let path = self.dir.join("events").join(wanted.path);
                    return Err(TraceError::file(path)(io::Error::from_raw_os_error(libc::ENOENT)));
                }
                None => self.missing.extend(wanted.tells.map(|tells| format!("no event {}: {tells}", wanted.path))),
            }
        }
        let others = ["ftrace/kernel_stack", "ftrace/print"].into_iter().take(1 + usize::from(self.takes_markers));
        for path in others.chain(self.probes.paths.iter().map(String::as_str)) {
            formats.extend(self.format(path).map(|format| (path.to_owned(), format)));
        }
        for vector in if watched.events.has_vectors() { self.vectors() } else { Vec::new() } {
            formats.extend(self.format(&vector).map(|format| (vector, format)));
        }
        let whole = |name: &str| {
            let path = self.root.join("events").join(name);
            read_at_once(&path).map_err(TraceError::file(path))
        };
        // A page may be larger than a memory page, also for this instance only.
        let kib = self.read("buffer_subbuf_size_kb").and_then(|text| text.trim().parse::<usize>().ok());
        self.layouts = Layouts {
            page: whole("header_page")?,
            event: whole("header_event")?,
            page_bytes: kib.map_or(0, |kib| kib * 1024),
            formats,
        };
        let decoder = self.layouts.decoder().map_err(|err| {
            let path = self.root.join("events");
            TraceError::Content { path, what: err.to_string() }
        })?;
        self.layouts.page_bytes = decoder.page_bytes();
        let formats = &self.layouts.formats;
        let is_on = |path: &str| !path.starts_with("ftrace/");
        for (path, _) in formats.iter().filter(|(path, _)| is_on(path)) {
            let of =
                events.iter().find(|wanted| wanted.path == path).map_or(EventScope::AllThreads, |wanted| wanted.of);
            match of {
                EventScope::AllThreads => {}
                EventScope::MeasuredThreads(field) => self.filter(path, &filter(field, watched.pids))?,
                EventScope::Where(wanted) => self.filter(path, wanted)?,
            }
            self.write(&format!("events/{path}/enable"), "1")?;
        }
        self.stacks(watched.stacks, watched.pids);
        Ok(decoder)
    }

    /// Limits all events to those of the threads with these IDs, and of the threads that they start: one of them runs,
    /// or is woken. The kernel checks this before it records anything. Errors: when the kernel refuses, for example
    /// because a thread has ended.
    pub(crate) fn follow(&mut self, pids: &[i32]) -> Result<(), TraceError> {
        self.write("options/event-fork", "1")?;
        self.follow_also(pids)
    }

    /// As [`Instance::follow`], of these threads besides those so far: without a list, if only for a moment, the kernel
    /// traces all threads. It takes off those that end. Errors: as [`Instance::follow`].
    pub(crate) fn follow_also(&mut self, pids: &[i32]) -> Result<(), TraceError> {
        // A write is a command of its own, of less than a page.
        for some in pids.chunks(256) {
            let text = some.iter().map(i32::to_string).collect::<Vec<_>>().join("\n");
            let path = self.dir.join("set_event_pid");
            let written =
                OpenOptions::new().append(true).open(&path).and_then(|mut file| file.write_all(text.as_bytes()));
            written.map_err(TraceError::file(path))?;
        }
        Ok(())
    }

    /// Leaves out the system calls of threads of this name: reading the trace makes some for each page, which would
    /// fill the next page. Errors: when the filter is not kept.
    pub(crate) fn without_calls_of(&mut self, name: &str) -> Result<(), TraceError> {
        let wanted = format!("comm != \"{name}\"");
        SYSTEM_CALLS.iter().try_for_each(|event| self.filter(event, &wanted))
    }

    /// Names of threads that the kernel keeps for its own output: of some that have ended, too.
    pub(crate) fn kept_names(&self) -> Vec<(i32, String)> {
        let text = fs::read_to_string(self.root.join("saved_cmdlines")).unwrap_or_default();
        let name = |line: &str| line.split_once(' ').and_then(|(pid, name)| Some((pid.parse().ok()?, name.to_owned())));
        text.lines().filter_map(name).collect()
    }

    /// Stops the trace; [`PageSource::start`] restarts it.
    pub(crate) fn stop(&mut self) -> Result<(), TraceError> {
        self.set_running(b"0")
    }

    /// Paired events of the processor's own interrupts.
    fn vectors(&self) -> Vec<String> {
        let entries = fs::read_dir(self.dir.join("events").join(VECTORS)).into_iter().flatten().flatten();
        let mut names: Vec<String> = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.retain(|name| name.ends_with(BEGIN) || name.ends_with(END));
        names.sort_unstable();
        names.iter().map(|name| format!("{VECTORS}/{name}")).collect()
    }

    /// Records the kernel's stack with some events.
    fn stacks(&mut self, wanted: StackRequest, pids: Option<&[i32]>) {
        let (conditions, lost) = match wanted {
            StackRequest::Nowhere => return,
            StackRequest::WakeUps => {
                let switched = filter("next_pid", pids).replacen("comm ", "next_comm ", 1);
                let conditions = vec![("sched/sched_waking", filter("pid", pids)), ("sched/sched_switch", switched)];
                (conditions, "the functions that disabled interrupts or left the CPU")
            }
            StackRequest::Sleeps => {
                let is_asleep = format!("prev_state == {}", state::UNINTERRUPTIBLE);
                (vec![("sched/sched_switch", is_asleep)], "the locks of the kernel that threads wait for")
            }
        };
        for (event, condition) in conditions {
            let trigger = format!("stacktrace if {condition}");
            if let Err(err) = self.write(&format!("events/{event}/trigger"), &trigger) {
                self.missing.push(format!("no stacks ({err}): {lost}"));
                return;
            }
        }
    }

    /// Sets a filter, and reads it back: without a filter the event of all threads would be traced.
    fn filter(&self, event: &str, wanted: &str) -> Result<(), TraceError> {
        let name = format!("events/{event}/filter");
        self.write(&name, wanted)?;
        let kept = self.read(&name).unwrap_or_default();
        if kept.trim() == wanted {
            return Ok(());
        }
        let what = format!("the filter `{wanted}` was set and reads `{}`", kept.trim());
        Err(TraceError::Content { path: self.dir.join(name), what })
    }

    /// The format of an event; `None` if the kernel lacks it.
    fn format(&self, event: &str) -> Option<String> {
        // Formats are the same for all instances; those of `ftrace/` exist only at the root.
        fs::read_to_string(self.root.join("events").join(event).join("format")).ok()
    }

    /// How to read its pages elsewhere.
    pub(crate) fn layouts(&self) -> &Layouts {
        &self.layouts
    }

    /// Whether the events of the processor's own interrupts are missing, which this architecture has.
    pub(crate) fn lacks_vectors(&self) -> bool {
        cfg!(target_arch = "x86_64") && !self.layouts.formats.iter().any(|(path, _)| path.starts_with(VECTORS))
    }

    fn set_running(&mut self, word: &[u8]) -> Result<(), TraceError> {
        let path = self.dir.join("tracing_on");
        let closed = || TraceError::Process(io::Error::from_raw_os_error(libc::EBADF));
        let file = self.tracing_on.as_mut().ok_or_else(closed)?;
        file.write_all(word).map_err(TraceError::file(path))
    }

    fn open_for_writing(&self, name: &str) -> Result<File, TraceError> {
        let path = self.dir.join(name);
        OpenOptions::new().write(true).open(&path).map_err(TraceError::file(path))
    }

    fn write(&self, name: &str, text: &str) -> Result<(), TraceError> {
        let path = self.dir.join(name);
        let written = OpenOptions::new().write(true).truncate(true).open(&path).and_then(|mut file| {
            // A single write: each write is a command of its own.
            file.write_all(text.as_bytes())
        });
        written.map_err(TraceError::file(path))
    }

    fn read(&self, name: &str) -> Option<String> {
        read_at_once(&self.dir.join(name)).ok()
    }
}

impl PageSource for Instance {
    fn n_cpus(&self) -> usize {
        self.raw.len()
    }

    fn buffer_bytes(&self) -> usize {
        self.buffer_bytes
    }

    fn drain(&mut self, cpu: usize, page_bytes: usize, pages: &mut Vec<u8>) -> io::Result<()> {
        let Some(file) = self.raw.get_mut(cpu).and_then(Option::as_mut) else { return Ok(()) };
        // One page more, for the reader page.
        let most = pages.len() + self.buffer_bytes.next_multiple_of(page_bytes) + page_bytes;
        while pages.len() < most {
            let at = pages.len();
            pages.resize(at + page_bytes, 0);
            let read = file.read(pages.get_mut(at..).unwrap_or_default());
            match read {
                Ok(0) => {}
                // A page is read as a whole; the last one may be short.
                Ok(_) => continue,
                Err(err) if err.kind() == io::ErrorKind::Interrupted => {
                    pages.truncate(at);
                    continue;
                }
                Err(err) if err.kind() == io::ErrorKind::WouldBlock => {}
                Err(err) => {
                    pages.truncate(at);
                    return Err(err);
                }
            }
            pages.truncate(at);
            break;
        }
        Ok(())
    }

    fn start(&mut self) -> Result<(), TraceError> {
        self.set_running(b"1")
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        // If any of this fails, the next run removes the rest.
        let _ = self.write("tracing_on", "0");
        let _ = self.write("events/enable", "0");
        self.raw.clear();
        (self.tracing_on, self.hold) = (None, None);
        remove(&self.dir);
    }
}

/// Removes an instance with everything enabled in it. The measuring threads may close its files a moment later.
fn remove(dir: &Path) -> bool {
    (0..100).any(|attempt| {
        if attempt > 0 {
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        fs::remove_dir(dir).map_or_else(|err| err.raw_os_error() != Some(libc::EBUSY), |()| true)
    })
}

/// The text of a file that returns everything to the first `read`.
fn read_at_once(path: &Path) -> io::Result<String> {
    let mut bytes = vec![0; WHOLE];
    let n = File::open(path)?.read(&mut bytes)?;
    bytes.truncate(n);
    String::from_utf8(bytes).map_err(io::Error::other)
}

/// Removes the instances of dead processes; returns their names. Only those of this PID namespace.
pub(crate) fn sweep(instances: &Path) -> Vec<String> {
    let entries = fs::read_dir(instances).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    names.filter(|name| is_abandoned(name) && remove(&instances.join(name))).collect()
}

/// Whether an instance was created by this program and its process is dead.
fn is_abandoned(name: &str) -> bool {
    let mut words = name.split('-');
    let mut number = || words.next().and_then(|word| word.parse::<u64>().ok());
    // The prefix is not a number.
    let (None, Some(namespace), Some(pid), Some(ticks)) = (number(), number(), number(), number()) else {
        return false;
    };
    let is_ours = name.starts_with(&format!("{PREFIX}-")) && Some(namespace) == punctual_host::pid_namespace();
    let lives = |pid| punctual_host::started_ticks_of(pid) == Some(ticks);
    is_ours && u32::try_from(pid).is_ok_and(|pid| !lives(pid))
}

/// The name of this process's instance; distinct even if another process, or one in another container, has the same
/// PID.
fn own_name() -> String {
    let pid = std::process::id();
    let ticks = punctual_host::started_ticks_of(pid).unwrap_or(0);
    format!("{PREFIX}-{}-{pid}-{ticks}", punctual_host::pid_namespace().unwrap_or(0))
}

#[cfg(test)]
pub(super) mod tests;
