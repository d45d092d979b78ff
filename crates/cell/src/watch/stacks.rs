//! Samples of the stacks of watched threads, by perf events of each thread: where it sleeps, and where it runs.

use super::interpreted::{Interpreted, Reading, SharedMap};
use crate::CellError;
use punctual_analysis::explain::SAMPLE_PERIOD_NS;
use punctual_analysis::watch::Activation;
use punctual_code::{PERF_REGISTERS, RawSample, Record};
use punctual_host::MappedCode;
use punctual_model::{Order, SampledAt};
use punctual_sys::perf::StackSampler;
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::io;
use std::sync::Arc;

/// Most threads that are sampled: each has a ring of the kernel.
const MOST_THREADS: usize = 32;
/// Bytes that the kernel copies of a stack, and the size of a ring: enough for 200 samples between two readings.
const STACK_BYTES: u32 = 4096;
const RING_BYTES: usize = 1 << 20;
/// Bytes of samples that are kept of a thread, and their age, ns.
const MOST_BYTES: usize = 1 << 20;
const RECENT_NS: u64 = 3_000_000_000;
/// Approximate size of a sample without its stack, bytes.
const SAMPLE_BYTES: usize = 600;
/// Time around an activation whose samples are passed on, ns.
const MARGIN_NS: u64 = 1_000_000;
/// Most samples that are passed on of an activation: of more, those at its beginning and its end are left out.
const MOST_SAMPLES: usize = 400;

/// Samples of one thread, until it ends.
#[derive(Debug)]
struct Thread {
    process: u32,
    sampler: StackSampler,
    recent: VecDeque<(SampledAt, RawSample)>,
    bytes: usize,
}

/// Samples of the stack of a thread during an activation.
#[derive(Debug, Default)]
pub(super) struct Sampled {
    pub(super) samples: Vec<(SampledAt, RawSample)>,
    /// Code that its process has mapped, and code that it has made.
    pub(super) mapped: Arc<Vec<MappedCode>>,
    pub(super) made: Option<SharedMap>,
    /// Frames of an interpreter meanwhile.
    pub(super) frames: Vec<Reading>,
}

/// The samples of all watched threads.
#[derive(Debug, Default)]
pub(super) struct Stacks {
    threads: BTreeMap<i32, Thread>,
    /// Code that each process has mapped, as last read.
    mapped: HashMap<u32, Arc<Vec<MappedCode>>>,
    interpreted: Interpreted,
    /// Threads beyond the limit, and the first reason why one could not be sampled.
    left_out: BTreeSet<i32>,
    failed: Option<io::Error>,
    lost: u64,
}

impl Stacks {
    /// Checks that the kernel takes samples for this user. Errors: one line with the reason.
    pub(super) fn check() -> Result<(), CellError> {
        Stacks::sampler(punctual_sys::thread::id()).map(drop).map_err(|err| {
            CellError::Impossible(format!(
                "cannot sample stacks: {err}; leave --stacks out, or run as root on a kernel with perf events and without \
                 lockdown (perf_event_open(2))"
            ))
        })
    }

    fn sampler(tid: u32) -> io::Result<StackSampler> {
        StackSampler::start(tid, SAMPLE_PERIOD_NS, PERF_REGISTERS, STACK_BYTES, RING_BYTES)
    }

    /// Samples these threads, each given with its process, and no others.
    pub(super) fn follow(&mut self, threads: &[(i32, u32)]) {
        self.threads.retain(|tid, _| threads.iter().any(|(one, _)| one == tid));
        self.mapped.retain(|process, _| threads.iter().any(|(_, one)| one == process));
        for (tid, process) in threads {
            if self.threads.contains_key(tid) {
                continue;
            }
            if self.threads.len() >= MOST_THREADS {
                self.left_out.insert(*tid);
                continue;
            }
            match Stacks::sampler(tid.unsigned_abs()) {
                Ok(sampler) => {
                    let thread = Thread { process: *process, sampler, recent: VecDeque::new(), bytes: 0 };
                    self.threads.insert(*tid, thread);
                    self.left_out.remove(tid);
                    // A program that ends by itself is explained from these.
                    self.mapped.entry(*process).or_insert_with(|| Arc::new(punctual_host::mapped_code(*process, &[])));
                }
                // It has just ended.
                Err(err) if err.raw_os_error() == Some(libc::ESRCH) => {}
                Err(err) => self.failed = self.failed.take().or(Some(err)),
            }
        }
        let sampled: Vec<_> = threads.iter().filter(|(tid, _)| self.threads.contains_key(tid)).copied().collect();
        self.interpreted.follow(&sampled);
    }

    /// Takes the samples that the kernel has written since.
    pub(super) fn drain(&mut self) {
        for thread in self.threads.values_mut() {
            let Thread { process, sampler, recent, bytes } = thread;
            let mut taken = Vec::new();
            sampler.drain(|record| taken.extend(punctual_code::parse(record)));
            for record in taken {
                match record {
                    Record::Sample(sample) => {
                        let Some(kind) = sampler.kind(sample.event) else { continue };
                        *bytes += sample.stack.len() + SAMPLE_BYTES;
                        recent.push_back((kind, sample));
                    }
                    Record::Lost(n) => self.lost += n,
                    // Addresses of the program before mean nothing in the one after.
                    Record::Exec => {
                        self.interpreted.forget(*process);
                        recent.clear();
                        *bytes = 0;
                        self.mapped.remove(process);
                    }
                }
            }
            let old = recent.back().map_or(0, |(_, last)| last.at_ns.saturating_sub(RECENT_NS));
            while let Some((_, first)) = recent.front().filter(|(_, first)| *bytes > MOST_BYTES || first.at_ns < old) {
                *bytes -= first.stack.len() + SAMPLE_BYTES;
                recent.pop_front();
            }
        }
    }

    /// The samples of an activation of a thread, and what names them.
    pub(super) fn of(&mut self, process: u32, tid: i32, one: &Activation) -> Sampled {
        let Some(thread) = self.threads.get(&tid) else { return Sampled::default() };
        let ns = one.release_ns.saturating_sub(MARGIN_NS)..=one.end_ns.saturating_add(MARGIN_NS);
        let within = thread.recent.iter().filter(|(_, sample)| ns.contains(&sample.at_ns));
        let mut samples: Vec<_> = within.cloned().collect();
        samples.order_by_key(|(_, sample)| sample.at_ns);
        if samples.len() > MOST_SAMPLES {
            samples.drain(..(samples.len() - MOST_SAMPLES) / 2);
            samples.truncate(MOST_SAMPLES);
        }
        let known = self.mapped.get(&process).cloned().unwrap_or_default();
        let now = punctual_host::mapped_code(process, &known);
        // It has ended: what it had mapped is known.
        let mapped = if now.is_empty() { known } else { Arc::new(now) };
        self.mapped.insert(process, Arc::clone(&mapped));
        let mut frames = self.interpreted.frames_of(tid, &ns);
        frames.truncate(MOST_SAMPLES);
        let made = self.interpreted.map_of(process, &mapped);
        Sampled { samples, mapped, made, frames }
    }

    /// CPU time of reading names of code so far, us.
    pub(super) fn names_us(&self) -> u64 {
        self.interpreted.used_us()
    }

    /// Reasons why places in the code may be missing.
    pub(super) fn missing(&self) -> Vec<String> {
        let mut all = Vec::new();
        if !self.left_out.is_empty() {
            all.push(format!("stacks of {} threads: at most {MOST_THREADS} are sampled", self.left_out.len()));
        }
        if self.lost > 0 {
            all.push(format!("{} samples of stacks: their ring was full", self.lost));
        }
        all.extend(self.interpreted.missing());
        all.extend(self.failed.as_ref().map(|err| format!("stacks of some threads: {err}")));
        all
    }
}
