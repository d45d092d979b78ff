//! The search: samples wake-ups in guests of different phases, and refines the latest of several guests.

use super::super::{LabError, Monitor, regular_file};
use super::film::{self, Footage};
use super::{Search, Symbols, refine};
use punctual_model::{Delay, DelayKind, Film, LongestDelays, Order, Span, Witness, Worst};
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::path::Path;

/// Largest file of an interrupted search, bytes: some kilobytes a delay.
const LARGEST_STATE: u64 = 64 << 20;
/// Guests after which the latest of their wake-ups are refined, and the most of these: a quarter of the CPU time.
const GUESTS_PER_ROUND: u32 = 16;
const REFINED_PER_ROUND: usize = 4;
/// Times that one function is refined, unless a sampled wake-up is later than all its delays so far.
const REFINED_PER_FUNCTION: u32 = 2;
/// Delays kept for each one that is listed: memory does not grow with the budget.
const KEPT_PER_LISTED: usize = 4;
/// Failed guests after which the search ends.
const MAX_FAILED: usize = 10;
/// Phases between the guests of one seed and those of the next.
const BLOCKS_PER_SEED: u32 = 97;

/// What a search may use, and what it lists.
#[derive(Debug, Clone, Copy)]
pub struct Limit {
    /// Virtual time of all guests.
    pub budget: Span,
    /// Number of delays.
    pub top: usize,
    /// Chooses the phases of the guests.
    pub seed: u32,
}

/// The delays so far.
struct Found<'a> {
    search: &'a Search,
    symbols: &'a Symbols,
    limit: Limit,
    result: LongestDelays,
    /// Delays by kind and the function in which they begin.
    delays: BTreeMap<Place, Delay>,
    /// Refinements, and the longest latency, by kind and function of the sampled wake-up.
    refined: BTreeMap<Place, (u32, u64)>,
    late: Late,
}

type Place = (DelayKind, String);

/// The latest wake-ups of each guest since the last refinements, with the block of the guest.
type Late = Vec<(u32, Worst)>;

/// A search between two guests, as a file keeps it.
#[derive(Serialize, Deserialize)]
struct State {
    /// Hash of all that determines a guest, see [`Setup::key`](crate::machine::Setup::key).
    key: String,
    top: usize,
    result: LongestDelays,
    delays: Vec<Delay>,
    refined: Vec<(Place, (u32, u64))>,
    late: Late,
}

impl Search {
    /// Searches the longest delays until the budget is used. The result depends on the other arguments alone; `state`
    /// is a file from which an interrupted search goes on, written after each guest. Errors: if the budget is smaller
    /// than one guest, no guest can be measured, or the file is of another search.
    pub fn longest(
        &self,
        limit: Limit,
        symbols: &Symbols,
        state: Option<&Path>,
        monitor: Monitor<'_>,
    ) -> Result<LongestDelays, LabError> {
        let first = limit.seed.saturating_mul(BLOCKS_PER_SEED);
        let needed = self.guest_ns(first);
        if limit.budget.ns() < needed {
            let reason = format!("budget {} is too small: one guest takes {}", limit.budget, Span(needed));
            return Err(LabError::program("lab worst", reason));
        }
        let result = LongestDelays {
            kernel: self.cell.kernel.to_string(),
            load: self.cell.load.to_string(),
            policy: self.cell.policy.to_string(),
            seed: limit.seed,
            ..LongestDelays::default()
        };
        let (delays, refined, late) = Default::default();
        let mut found = Found { search: self, symbols, limit, result, delays, refined, late };
        state.filter(|state| state.exists()).map_or(Ok(()), |state| found.go_on_from(state))?;
        for block in first.saturating_add(found.result.guests).. {
            let is_over = found.result.searched_ns.saturating_add(self.guest_ns(block)) > limit.budget.ns();
            if is_over || found.result.failed.len() >= MAX_FAILED {
                break;
            }
            found.guest(block, monitor)?;
            if found.result.guests.is_multiple_of(GUESTS_PER_ROUND) {
                found.refine_latest(monitor)?;
                (monitor.say)(&found.progress());
            }
            state.map_or(Ok(()), |state| found.save(state))?;
        }
        // Not part of the state: with a larger budget they are chosen among those of more guests.
        found.refine_latest(monitor)?;
        Ok(found.finish())
    }

    /// Virtual time of a guest whose cell is carried out, ns, without that before its start.
    fn guest_ns(&self, block: u32) -> u64 {
        let cell = self.cell_of(block);
        cell.duration.ns().saturating_add(cell.conditions.warm_up.ns())
    }
}

impl Found<'_> {
    /// Samples one guest.
    fn guest(&mut self, block: u32, monitor: Monitor<'_>) -> Result<(), LabError> {
        let record = self.search.sample(block, monitor);
        self.result.searched_ns += self.search.guest_ns(block);
        self.result.guests += 1;
        let Some(record) = self.unless_failed(block, record)? else { return Ok(()) };
        if let Some(failure) = record.loads.iter().find_map(|load| load.failure.as_ref()) {
            self.result.failed.push(format!("guest {block}: load: {}", failure.reason));
        }
        let Some(thread) = record.threads.first() else { return Ok(()) };
        self.result.sampled += thread.recorded;
        let latest = thread.histogram.max_ns.map_or(0, positive);
        self.result.sampled_max_ns = self.result.sampled_max_ns.max(latest);
        let usual = thread.histogram.min_ns.map_or(0, positive);
        let is_late = |worst: &&Worst| positive(worst.latency_ns) > 2 * usual || positive(worst.latency_ns) == latest;
        self.late.extend(thread.worst.iter().filter(is_late).map(|worst| (block, *worst)));
        Ok(())
    }

    /// Refines late wake-ups of different lengths since the last refinements: the latest, then the latest that is by a
    /// third less late than the one before.
    fn refine_latest(&mut self, monitor: Monitor<'_>) -> Result<(), LabError> {
        let mut late = std::mem::take(&mut self.late);
        late.order_by_key(|(block, worst)| (Reverse(worst.latency_ns), *block, worst.cycle));
        let (mut below, mut refined) = (u64::MAX, 0);
        for (block, worst) in late {
            if positive(worst.latency_ns) <= below && refined < REFINED_PER_ROUND {
                refined += 1;
                let done = self.refine(block, worst, monitor);
                if self.unless_failed(block, done)?.is_some() {
                    below = positive(worst.latency_ns) / 3 * 2;
                }
            }
        }
        Ok(())
    }

    /// The result of a guest. One that failed, by a panic for example, is noted; all other errors end the search.
    fn unless_failed<T>(&mut self, block: u32, result: Result<T, LabError>) -> Result<Option<T>, LabError> {
        match result {
            Ok(result) => Ok(Some(result)),
            Err(LabError::Guest { reason, .. }) if reason != "interrupted" => {
                self.result.failed.push(format!("guest {block}: {reason}"));
                Ok(None)
            }
            Err(err) => Err(err),
        }
    }

    /// Moves the due time of a late wake-up to the beginning of its delay.
    fn refine(&mut self, block: u32, worst: Worst, monitor: Monitor<'_>) -> Result<(), LabError> {
        let search = self.search;
        let cycle = search.cell_of(block).first_cycle() + worst.cycle;
        let period_ns = search.cell.period.ns();
        let sampled_ns = positive(worst.latency_ns);
        let failed = |reason: &str| format!("guest {block}: cycle {cycle} is {} late, {reason}", Span(sampled_ns));
        if sampled_ns + period_ns > film::LONGEST_NS {
            self.result.failed.push(failed("too long for a film"));
            return Ok(());
        }
        let approach = search.approach(block, cycle, monitor)?;
        self.result.searched_ns += cycle * period_ns;
        let (first, Footage { film: seen, beginnings_ns }) = approach.footage(0, self.symbols, monitor)?;
        self.result.moved += 1;
        if first.woke_ns.saturating_sub(first.due_ns) != sampled_ns {
            self.result.failed.push(failed("and differs when it is repeated"));
            return Ok(());
        }
        let place = (seen.kind(), function_of(&seen));
        let (times, longest_ns) = self.refined.get(&place).copied().unwrap_or_default();
        if times >= REFINED_PER_FUNCTION && longest_ns >= sampled_ns {
            return Ok(());
        }
        let refined = refine(first, &beginnings_ns, |earlier_ns| approach.wake(earlier_ns, monitor))?;
        let (_, film) = approach.film(refined.earlier_ns, self.symbols, monitor)?;
        self.result.moved += u64::from(refined.tried) + 1;
        self.result.searched_ns += u64::from(refined.tried) * refined.latency_ns;
        let _ = self.refined.insert(place, (times + 1, longest_ns.max(refined.latency_ns)));
        let witness = Witness { block, cycle, earlier_ns: refined.earlier_ns };
        let kind = film.kind();
        self.keep(Delay {
            latency_ns: refined.latency_ns,
            kind,
            kind_instructions: film.kinds[kind as usize],
            function: function_of(&film),
            begins: film.begins,
            path: film.path,
            witness,
            sampled_ns,
            reached: 1,
            is_whole: refined.is_whole,
        });
        for (longest, instructions) in self.result.longest_of_kind.iter_mut().zip(film.kinds) {
            *longest = instructions.max(*longest);
        }
        Ok(())
    }

    /// Keeps the longest delay of each kind and beginning, and the longest of all.
    fn keep(&mut self, delay: Delay) {
        let key = place(&delay);
        let reached = self.delays.get(&key).map_or(0, |known| known.reached);
        let longer = self.delays.remove(&key).filter(|known| known.latency_ns >= delay.latency_ns).unwrap_or(delay);
        let _ = self.delays.insert(key, Delay { reached: reached + 1, ..longer });
        if self.delays.len() > self.limit.top.saturating_mul(KEPT_PER_LISTED) {
            let shortest = self.delays.iter().min_by_key(|(_, delay)| delay.latency_ns).map(|(key, _)| key.clone());
            shortest.map(|key| self.delays.remove(&key));
        }
    }

    /// Takes over a search that was interrupted. Errors: if the file is of another search, or cannot be read.
    fn go_on_from(&mut self, path: &Path) -> Result<(), LabError> {
        let text = regular_file::read(path, LARGEST_STATE)?;
        let State { key, top, result, delays, refined, late } = serde_json::from_slice(&text)
            .map_err(|err| LabError::file(path, format!("no state of a search: {err}")))?;
        let asked = |of: &LongestDelays| (of.kernel.clone(), of.load.clone(), of.policy.clone(), of.seed);
        if (key, top, asked(&result)) != (self.search.setup.key(), self.limit.top, asked(&self.result)) {
            let reason = "is of a search with other arguments, program or QEMU; name another file";
            return Err(LabError::file(path, reason));
        }
        self.result = result;
        self.delays = delays.into_iter().map(|delay| (place(&delay), delay)).collect();
        self.refined = refined.into_iter().collect();
        self.late = late;
        Ok(())
    }

    fn save(&self, path: &Path) -> Result<(), LabError> {
        let state = State {
            key: self.search.setup.key(),
            top: self.limit.top,
            result: self.result.clone(),
            delays: self.delays.values().cloned().collect(),
            refined: self.refined.clone().into_iter().collect(),
            late: self.late.clone(),
        };
        let text = serde_json::to_vec(&state).map_err(|err| LabError::file(path, err))?;
        punctual_host::file::replace(path, &text).map_err(|err| LabError::file(path, err))
    }

    fn progress(&self) -> String {
        let searched = Span(self.result.searched_ns / 1_000_000 * 1_000_000);
        let longest_ns = self.delays.values().map(|delay| delay.latency_ns).max();
        let longest = longest_ns.map_or("none refined yet".to_owned(), |longest_ns| Span(longest_ns).to_string());
        format!("searched {searched} of {}: longest delay {longest}", self.limit.budget)
    }

    fn finish(self) -> LongestDelays {
        let mut delays: Vec<Delay> = self.delays.into_values().collect();
        delays.order_by(|a, b| b.latency_ns.cmp(&a.latency_ns).then(a.witness.cmp(&b.witness)));
        delays.truncate(self.limit.top);
        LongestDelays { delays, ..self.result }
    }
}

fn place(delay: &Delay) -> Place {
    (delay.kind, delay.begins.clone())
}

/// A latency, ns; 0 before the due time.
fn positive(latency_ns: i64) -> u64 {
    u64::try_from(latency_ns).unwrap_or(0)
}

/// The function with most instructions of its own.
fn function_of(film: &Film) -> String {
    film.functions().first().map(|(name, _)| (*name).to_owned()).unwrap_or_default()
}
