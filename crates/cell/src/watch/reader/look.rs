//! Looks at the watched threads, once a second and at the end.

use super::{Reader, ThreadFacts, Times};
use crate::watch::targets::Targets;
use punctual_analysis::{MIN_EXCEEDANCES, quantile};
use punctual_host::CpuGroups;
use punctual_model::{Bin, ClockId, Measured, SettingChange, Span, ThreadProgress, ThreadState, WatchTarget};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::PoisonError;
use std::sync::atomic::Ordering::Relaxed;

impl Reader {
    /// Looks at the watched threads, once a second: new ones, names, policies, quotas, and the numbers so far.
    pub(super) fn look(&mut self) {
        self.threads.set_offsets(
            [ClockId::Realtime, ClockId::Tai, ClockId::Boottime].map(punctual_host::offset_from_monotonic_ns).to_vec(),
        );
        let watched: Vec<u32>;
        if let Some(program) = self.program {
            // Those that it had started before the kernel followed it.
            watched = threads_below(program).collect();
            let new: Vec<u32> = watched.iter().copied().filter(|tid| !self.targets.tids.contains(tid)).collect();
            let pids: Vec<i32> = new.iter().filter_map(|tid| i32::try_from(*tid).ok()).collect();
            if !pids.is_empty() && self.instance.follow_also(&pids).is_ok() {
                self.targets.tids.extend(new);
            }
        } else {
            let now = Targets::find(&self.watch);
            if now != self.targets
                && !now.tids.is_empty()
                && self.instance.follow_also(&now.new_since(&self.targets)).is_ok()
            {
                self.targets = now;
            }
            watched = self.targets.tids.clone();
        }
        self.note_times(&watched);
        let at = Span(punctual_sys::clock::monotonic().0.saturating_sub(self.started.0));
        let alive: Vec<i32> = self.threads.alive().collect();
        // The threads of a process are in its groups, so these are read once a process.
        let mut groups_of: HashMap<u32, (CpuGroups, Option<u64>)> = HashMap::new();
        for pid in &alive {
            let tid = pid.unsigned_abs();
            let Some(process) = punctual_host::process_of(tid) else { continue };
            if let Some(name) = punctual_host::name_of_thread(process, tid) {
                self.threads.names.insert(*pid, name.trim().to_owned());
            }
            let policy = punctual_sys::sched::known_policy(tid);
            let cpus = punctual_sys::sched::affinity(tid).ok();
            let (groups, throttled) = groups_of.entry(process).or_insert_with(|| {
                let groups = CpuGroups::of(process);
                let throttled = groups.throttled_ns();
                (groups, throttled)
            });
            let (groups, throttled) = (groups.clone(), *throttled);
            let known = self.facts.remove(pid);
            let before = known.as_ref().map_or(throttled, |facts| facts.throttled_ns[1]);
            // In its beginning, a program sets up its threads; their priorities are in the events.
            let is_set_up = at >= SettingChange::BEGINNING;
            let throttled_before_ns = match &known {
                Some(facts) if facts.groups == groups && at > Span(0) => facts.throttled_before_ns,
                Some(facts) if facts.groups != groups && is_set_up => None,
                _ => throttled,
            };
            let mut observed = known.map(|facts| facts.observed).filter(|_| is_set_up).unwrap_or_default();
            observed.look(None, cpus, at);
            let throttled_ns = [before, throttled];
            let facts = ThreadFacts { process, policy, observed, groups, throttled_ns, throttled_before_ns };
            self.facts.insert(*pid, facts);
        }
        if let Some(stacks) = &mut self.stacks {
            let is_meant = |pid: &i32| self.threads.names.get(pid).is_some_and(|name| self.watch.is_meant(name));
            let meant: Vec<(i32, u32)> = alive
                .iter()
                .filter(|pid| is_meant(pid))
                .filter_map(|pid| Some((*pid, self.facts.get(pid)?.process)))
                .collect();
            stacks.follow(&meant);
        }
        let tids: Vec<u32> = alive.iter().map(|pid| pid.unsigned_abs()).collect();
        let has_ended = match &self.watch.target {
            WatchTarget::Command(_) => false,
            _ => self.targets.tids.iter().all(|tid| punctual_host::process_of(*tid).is_none()),
        };
        self.shared.has_ended.store(has_ended, Relaxed);
        *self.shared.tids.lock().unwrap_or_else(PoisonError::into_inner) = tids;
        let progress = self.progress();
        *self.shared.progress.lock().unwrap_or_else(PoisonError::into_inner) = progress;
    }

    /// Numbers so far of the threads that are meant and have activations.
    fn progress(&self) -> Vec<ThreadProgress> {
        let of_thread = |(pid, histogram, late): (i32, &punctual_model::Histogram, u64)| {
            let above = 0.01 * histogram.n as f64;
            let name = self.threads.names.get(&pid).cloned().unwrap_or_default();
            ThreadProgress {
                thread: Measured::Thread { name, tid: pid.unsigned_abs() },
                n: histogram.n,
                min_ns: histogram.min_ns,
                last_ns: None,
                mean_ns: histogram.mean_ns(),
                p99_ns: quantile(histogram, 0.99).filter(|_| above >= MIN_EXCEEDANCES),
                max_ns: histogram.max_ns,
                missed: late,
                bins: Bin::of(histogram),
                spikes: Vec::new(),
            }
        };
        self.threads
            .progress()
            .filter(|(pid, histogram, _)| histogram.n > 0 && self.is_meant(*pid))
            .map(of_thread)
            .collect()
    }

    /// Notes the states of the watched threads.
    pub(super) fn note_states(&mut self) {
        let state = |tid: u32| {
            let state = match punctual_host::state_of_thread(tid)? {
                'R' => ThreadState::Running,
                'D' => ThreadState::Uninterruptible,
                'T' | 't' => ThreadState::Stopped,
                _ => ThreadState::Asleep,
            };
            Some((tid, state))
        };
        let watched = match self.program {
            Some(program) => threads_below(program).collect(),
            None => self.targets.tids.clone(),
        };
        self.states = watched.into_iter().filter_map(state).collect();
        for (tid, _) in self.states.iter().filter(|(_, state)| state.is_awake()) {
            // It may never have made a system call, by which others become known.
            let Some([first, _]) = self.times.get(tid) else { continue };
            self.threads.add(tid.cast_signed(), first.at_ns);
            let name = || Some(punctual_host::name_of_thread(*tid, *tid)?.trim().to_owned());
            if let (Entry::Vacant(unnamed), Some(name)) = (self.threads.names.entry(tid.cast_signed()), name()) {
                unnamed.insert(name);
            }
        }
    }

    /// Notes what the scheduler has counted of each watched thread.
    fn note_times(&mut self, watched: &[u32]) {
        for tid in watched {
            let at_ns = punctual_sys::clock::monotonic().0;
            let Some((ran_ns, waited_ns)) = punctual_host::times_of_thread(*tid) else { continue };
            let now = Times { at_ns, ran_ns, waited_ns };
            self.times.entry(*tid).or_insert([now; 2])[1] = now;
        }
    }
}

/// The threads of process `program` and of its descendants.
fn threads_below(program: u32) -> impl Iterator<Item = u32> {
    punctual_host::with_descendants(program).into_iter().flat_map(punctual_host::threads_of)
}
