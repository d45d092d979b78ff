//! Names of code without a file: read from watched programs while they run, by a thread beside that of the activations.
//!
//! What Python executes is only known while it does so: its frames are read once a millisecond. Those of a sleep are
//! read in it, so the kernel's sample of it gets them; while a thread runs, each reading is a sample.

use punctual_analysis::explain::READING_PERIOD_NS;
use punctual_code::{PerfMap, Python, PythonFrames, PythonThread};
use punctual_host::MappedCode;
use punctual_model::{CodeFrame, Nice, OwnName, Policy, RtPriority};
use std::collections::{BTreeSet, HashMap, VecDeque};
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

/// The file of Java's virtual machine.
const JAVA: &str = "libjvm.so";
/// Interval of reading the maps of code that programs make: its names hold for samples after.
const MAPS_NS: u64 = 100_000_000;
/// The least pause as a multiple of the time that the frames of all threads took.
const PAUSE: u64 = 4;
/// Pauses between attempts to find an interpreter or a thread in it: longer by a quarter each time.
const RETRY_NS: RangeInclusive<u64> = 50_000_000..=10_000_000_000;
/// Longest time of a reading, ns: longer, this thread was interrupted.
const LONGEST_NS: u64 = 1_000_000;
/// Readings that are kept of a thread: their age, ns, and the memory of their stacks, bytes.
const RECENT_NS: u64 = 3_000_000_000;
const MOST_BYTES: usize = 1 << 20;

/// The map of a process, for all its explanations.
pub(super) type SharedMap = Arc<Mutex<PerfMap>>;

/// Frames that a thread had.
#[derive(Debug, Clone)]
pub(super) struct Reading {
    /// Time, `CLOCK_MONOTONIC`, ns.
    pub(super) at_ns: u64,
    /// Whether it did not run on while they were read.
    pub(super) is_still: bool,
    pub(super) frames: Arc<[CodeFrame]>,
}

/// What both threads use.
#[derive(Debug, Default)]
struct Shared {
    is_over: AtomicBool,
    /// CPU time of the thread that reads names so far, us.
    used_us: AtomicU64,
    /// The threads, each with its process.
    threads: Mutex<Vec<(i32, u32)>>,
    /// By process.
    maps: Mutex<HashMap<u32, SharedMap>>,
    /// By thread.
    readings: Mutex<HashMap<i32, Readings>>,
    missing: Mutex<BTreeSet<String>>,
    /// Processes that have started another program.
    changed: Mutex<Vec<u32>>,
}

/// The latest frames of a thread.
#[derive(Debug, Default)]
struct Readings {
    all: VecDeque<Reading>,
    bytes: usize,
}

/// The thread that reads names; it ends when this is dropped.
#[derive(Debug, Default)]
pub(super) struct Interpreted {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

/// What the mutex protects: there are no states between two in it.
pub(super) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Interpreted {
    /// Reads those of these threads, each given with its process, and of no others.
    pub(super) fn follow(&mut self, threads: &[(i32, u32)]) {
        let mut maps = locked(&self.shared.maps);
        maps.retain(|process, _| threads.iter().any(|(_, one)| one == process));
        for (_, process) in threads {
            maps.entry(*process).or_insert_with(|| Arc::new(Mutex::new(PerfMap::of(*process))));
        }
        threads.clone_into(&mut locked(&self.shared.threads));
        locked(&self.shared.readings).retain(|tid, _| threads.iter().any(|(one, _)| one == tid));
        if self.thread.is_none() {
            let shared = Arc::clone(&self.shared);
            let run = move || {
                Reader { shared, is_real_time: false, interpreters: HashMap::new(), threads: HashMap::new() }.run()
            };
            self.thread = Builder::new().name(OwnName::Names.to_string()).spawn(run).ok();
        }
    }

    /// Forgets what was known of a process that started another program.
    pub(super) fn forget(&mut self, process: u32) {
        locked(&self.shared.maps).remove(&process);
        locked(&self.shared.changed).push(process);
    }

    /// The map of a process that has mapped this code.
    pub(super) fn map_of(&self, process: u32, mapped: &[MappedCode]) -> Option<SharedMap> {
        // Its map is of one moment: what it has compiled since, in place of other code, is not in it.
        if mapped.iter().any(|one| one.name == JAVA) {
            locked(&self.shared.missing)
                .insert(format!("names of Java code of process {process}: its map is not kept current"));
            return None;
        }
        locked(&self.shared.maps).get(&process).map(Arc::clone)
    }

    /// The frames of a thread in a time, ns.
    pub(super) fn frames_of(&self, tid: i32, ns: &RangeInclusive<u64>) -> Vec<Reading> {
        let readings = locked(&self.shared.readings);
        let all = readings.get(&tid).into_iter().flat_map(|readings| &readings.all);
        all.filter(|one| ns.contains(&one.at_ns)).cloned().collect()
    }

    /// CPU time of reading them so far, us.
    pub(super) fn used_us(&self) -> u64 {
        self.shared.used_us.load(Relaxed)
    }

    /// Reasons why names are missing.
    pub(super) fn missing(&self) -> Vec<String> {
        locked(&self.shared.missing).iter().cloned().collect()
    }
}

impl Drop for Interpreted {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Readings {
    fn take(&mut self, reading: Reading) {
        let old = reading.at_ns.saturating_sub(RECENT_NS);
        self.bytes += bytes(&reading);
        self.all.push_back(reading);
        while let Some(first) = self.all.front().filter(|one| self.bytes > MOST_BYTES || one.at_ns < old) {
            self.bytes -= bytes(first);
            self.all.pop_front();
        }
    }
}

/// Memory of a reading, bytes, as if no other one had the same frames.
fn bytes(reading: &Reading) -> usize {
    let text = |text: &Option<String>| text.as_ref().map_or(0, String::len);
    let of_frame = |one: &CodeFrame| size_of::<CodeFrame>() + text(&one.function) + text(&one.file) + one.object.len();
    size_of::<Reading>() + reading.frames.iter().map(of_frame).sum::<usize>()
}

/// Something that is looked for again, less and less often, until it is found.
#[derive(Debug)]
struct Sought<T> {
    found: Option<T>,
    next_ns: u64,
    pause_ns: u64,
}

impl<T> Default for Sought<T> {
    fn default() -> Sought<T> {
        Sought { found: None, next_ns: 0, pause_ns: *RETRY_NS.start() }
    }
}

impl<T> Sought<T> {
    fn get(&mut self, now_ns: u64, find: impl FnOnce() -> Option<T>) -> Option<&T> {
        if self.found.is_none() && now_ns >= self.next_ns {
            self.found = find();
            self.next_ns = now_ns + self.pause_ns;
            self.pause_ns = (self.pause_ns + self.pause_ns / 4).min(*RETRY_NS.end());
        }
        self.found.as_ref()
    }
}

/// A thread of an interpreter.
#[derive(Debug, Default)]
struct Followed {
    thread: Sought<PythonThread>,
    /// What it had when it was last seen asleep, and how often it had got a CPU before.
    asleep: Option<(u64, Reading)>,
}

/// The state of the reading thread.
struct Reader {
    shared: Arc<Shared>,
    /// Whether a real-time thread of an interpreter was found.
    is_real_time: bool,
    /// By process.
    interpreters: HashMap<u32, Sought<Python>>,
    threads: HashMap<i32, Followed>,
}

impl Reader {
    fn run(mut self) {
        // As the thread that reads the activations.
        let _ = punctual_sys::sched::set_policy(0, Policy::Other(Nice::HIGHEST));
        let mut maps_ns = 0;
        while !self.shared.is_over.load(Relaxed) {
            let now_ns = punctual_sys::clock::monotonic().0;
            if now_ns >= maps_ns {
                let maps: Vec<SharedMap> = locked(&self.shared.maps).values().map(Arc::clone).collect();
                // One that names an activation now is read again later: that takes long, at the lowest priority.
                maps.iter().filter_map(|map| map.try_lock().ok()).for_each(|mut map| map.refresh());
                maps_ns = now_ns + MAPS_NS;
            }
            for process in locked(&self.shared.changed).drain(..) {
                self.interpreters.remove(&process);
                self.threads.clear();
            }
            let threads = locked(&self.shared.threads).clone();
            self.interpreters.retain(|process, _| threads.iter().any(|(_, one)| one == process));
            self.threads.retain(|tid, _| threads.iter().any(|(one, _)| one == tid));
            threads.iter().for_each(|(tid, process)| self.read(*tid, *process, now_ns));
            let took_ns = punctual_sys::clock::monotonic().0.saturating_sub(now_ns);
            self.shared.used_us.store(punctual_sys::usage::thread_cpu_time().ns() / 1000, Relaxed);
            let pause_ns = READING_PERIOD_NS.saturating_sub(took_ns).max(took_ns.saturating_mul(PAUSE));
            std::thread::sleep(Duration::from_nanos(pause_ns.min(MAPS_NS)));
        }
    }

    /// Reads the frames of a thread.
    fn read(&mut self, tid: i32, process: u32, now_ns: u64) {
        let find = || {
            let found = Python::find(process, &punctual_host::mapped_code(process, &[]));
            found.unwrap_or_else(|reason| {
                locked(&self.shared.missing).insert(reason);
                None
            })
        };
        let Some(python) = self.interpreters.entry(process).or_default().get(now_ns, find) else { return };
        let one = self.threads.entry(tid).or_default();
        let id = tid.unsigned_abs();
        let Some(known) = one.thread.get(now_ns, || python.thread(punctual_host::own_id_of(id)?)) else { return };
        if !self.is_real_time && punctual_sys::sched::known_policy(id).is_some_and(Policy::is_realtime) {
            self.is_real_time = true;
            // Else it would wait on the CPU of a real-time thread until that is done. Without the right it does.
            let _ = RtPriority::new(1).map(|lowest| punctual_sys::sched::set_policy(0, Policy::Fifo(lowest)));
        }
        // In a sleep nothing changes: it has not got a CPU since it was in it.
        let turns = punctual_host::turns_of_thread(id);
        let slept_since = |id, before| punctual_host::turns_of_thread(id) == Some(before);
        let reading = match one.asleep.take().filter(|(before, _)| turns == Some(*before)) {
            Some((_, reading)) => Reading { at_ns: now_ns, ..reading },
            None => {
                let is_asleep = matches!(punctual_host::state_of_thread(id), Some('S' | 'D'));
                let began_ns = punctual_sys::clock::monotonic().0;
                let Some(PythonFrames { frames, at_ns, is_still }) = python.frames(known) else {
                    // It has ended, unless it was elsewhere at the end of the reading.
                    if !python.has(known) {
                        self.threads.remove(&tid);
                    }
                    return;
                };
                let took_ns = punctual_sys::clock::monotonic().0.saturating_sub(began_ns);
                if frames.is_empty() || took_ns > LONGEST_NS {
                    return;
                }
                let is_still = is_still && is_asleep && turns.is_some_and(|turns| slept_since(id, turns));
                Reading { at_ns, is_still, frames: frames.into() }
            }
        };
        one.asleep = turns.filter(|_| reading.is_still).map(|turns| (turns, reading.clone()));
        locked(&self.shared.readings).entry(tid).or_default().take(reading);
    }
}
