//! Culprits: threads of this process that take the CPU of measured ones.

use punctual_model::Policy;
use punctual_sys::{sched, thread};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::{JoinHandle, sleep};
use std::time::{Duration, Instant};

/// A thread named `culprit` that runs for `burst` every `pause`, until it is dropped or its time is over: if this
/// process is stopped, nothing else ends it.
pub(crate) struct Spinner {
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Spinner {
    pub(crate) fn on(cpu: u32, time: Duration, policy: &str, burst: Duration, pause: Duration) -> Spinner {
        let policy: Policy = policy.parse().unwrap();
        let is_over = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&is_over);
        let spin = move || {
            sched::set_affinity(0, &[cpu].into_iter().collect()).unwrap();
            sched::set_policy(thread::id(), policy).unwrap();
            let begin = Instant::now();
            while !told.load(Relaxed) && begin.elapsed() < time {
                let burst_begins = Instant::now();
                while burst_begins.elapsed() < burst && !told.load(Relaxed) {
                    std::hint::spin_loop();
                }
                if !pause.is_zero() {
                    sleep(pause);
                }
            }
        };
        let thread = std::thread::Builder::new().name("culprit".to_owned()).spawn(spin).unwrap();
        Spinner { is_over, thread: Some(thread) }
    }

    /// Whether its time is not over.
    pub(crate) fn is_at_work(&self) -> bool {
        self.thread.as_ref().is_some_and(|thread| !thread.is_finished())
    }
}

impl Drop for Spinner {
    fn drop(&mut self) {
        self.is_over.store(true, Relaxed);
        self.thread.take().unwrap().join().unwrap();
    }
}
