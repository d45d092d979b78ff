//! Names of code without a file: read from watched programs while they run, by a thread beside that of the activations.

use punctual_code::PerfMap;
use punctual_model::{Nice, Policy};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

/// Interval of reading the maps of code that programs make: its names hold for samples after.
const MAPS_INTERVAL: Duration = Duration::from_millis(100);

/// The map of a process, for all its explanations.
pub(super) type SharedMap = Arc<Mutex<PerfMap>>;

/// What both threads use.
#[derive(Debug, Default)]
struct Shared {
    is_over: AtomicBool,
    /// By process.
    maps: Mutex<HashMap<u32, SharedMap>>,
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
    /// Reads those of the processes of these threads, and of no others.
    pub(super) fn follow(&mut self, threads: &[(i32, u32)]) {
        let mut maps = locked(&self.shared.maps);
        maps.retain(|process, _| threads.iter().any(|(_, one)| one == process));
        for (_, process) in threads {
            maps.entry(*process).or_insert_with(|| Arc::new(Mutex::new(PerfMap::of(*process))));
        }
        if self.thread.is_none() {
            let shared = Arc::clone(&self.shared);
            self.thread = Builder::new().name("names".to_owned()).spawn(move || read(&shared)).ok();
        }
    }

    /// Forgets what was known of a process that started another program.
    pub(super) fn forget(&mut self, process: u32) {
        locked(&self.shared.maps).remove(&process);
    }

    /// The map of a process.
    pub(super) fn map_of(&self, process: u32) -> Option<SharedMap> {
        locked(&self.shared.maps).get(&process).map(Arc::clone)
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

fn read(shared: &Shared) {
    // As the thread that reads the activations.
    let _ = punctual_sys::sched::set_policy(0, Policy::Other(Nice::HIGHEST));
    while !shared.is_over.load(Relaxed) {
        let maps: Vec<SharedMap> = locked(&shared.maps).values().map(Arc::clone).collect();
        maps.iter().for_each(|map| locked(map).refresh());
        std::thread::sleep(MAPS_INTERVAL);
    }
}
