//! The part of a trace that explains a late wake-up: pages around it, cut out of all.

use super::decode::Decoder;
use super::pages::{PageLayout, mark_lost, page_begins};
use punctual_analysis::explain::{Event, Symbols, Trace, What};
use std::ops::Range;

/// The pages around some late wake-ups. An explanation is made from these and no others, so that it can be made again.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Window {
    /// Start, `CLOCK_MONOTONIC`, ns: earlier events are left out but for the last one of each CPU.
    pub from_ns: u64,
    /// Pages of each CPU.
    pub around: Vec<Vec<u8>>,
    /// Pages of each CPU of a second trace, of what the watched threads do themselves; empty: there is none.
    pub own: Vec<Vec<u8>>,
}

impl Window {
    /// The pages of each CPU with events of these times, `CLOCK_MONOTONIC`, ns: from the last one that begins at or
    /// before the start to the last one that begins before the end. If pages are left out, here or before (`is_cut`),
    /// the first one says that events before it are missing.
    pub fn cut(decoder: &Decoder, times_ns: &Range<u64>, pages: &[Vec<u8>], is_cut: bool) -> Vec<Vec<u8>> {
        pages.iter().map(|pages| within(pages, &decoder.layout, times_ns, is_cut)).collect()
    }

    /// Its events, and their number. `name` adds names of threads.
    pub fn trace(&self, decoder: &Decoder, name: impl FnOnce(&mut Trace)) -> (Trace, u64) {
        let mut trace = decoder.begin(self.around.len());
        let mut n_events = 0;
        for (cpu, pages) in self.around.iter().enumerate() {
            n_events += decoder.read(&mut trace, cpu, pages).events;
        }
        forget_before(&mut trace, self.from_ns);
        let mut own = decoder.begin(self.own.len());
        for (cpu, pages) in self.own.iter().enumerate() {
            decoder.read(&mut own, cpu, pages);
        }
        let n_stacks = u32::try_from(trace.stacks.len()).unwrap_or(u32::MAX);
        trace.stacks.append(&mut own.stacks);
        for (cpu, events) in own.cpus.iter_mut().enumerate() {
            for event in &mut events.events {
                if let What::Stack(index) = &mut event.what {
                    *index = index.saturating_add(n_stacks);
                }
            }
            add(&mut trace, cpu, &events.events);
        }
        trace.add_names(&mut own);
        name(&mut trace);
        trace.imply_switches();
        (trace, n_events)
    }
}

/// The pages of one CPU, as [`Window::cut`].
fn within(pages: &[u8], layout: &PageLayout, times_ns: &Range<u64>, is_cut: bool) -> Vec<u8> {
    let begins = || pages.chunks(layout.page_bytes).map(page_begins);
    let is_early = |begins_ns: &Option<u64>| begins_ns.is_some_and(|begins_ns| begins_ns <= times_ns.start);
    let first = begins().take_while(is_early).count().saturating_sub(1);
    let end = begins().take_while(|begins_ns| begins_ns.is_none_or(|begins_ns| begins_ns <= times_ns.end)).count();
    let kept = pages.get(first * layout.page_bytes..pages.len().min(end * layout.page_bytes));
    let mut kept = kept.unwrap_or_default().to_vec();
    if first > 0 || is_cut {
        mark_lost(&mut kept, layout);
    }
    kept
}

/// Leaves out what was long before: it explains nothing, and looking through it takes time. Its last event stays.
pub(super) fn forget_before(trace: &mut Trace, since_ns: u64) {
    for cpu in &mut trace.cpus {
        let old = cpu.last_before(since_ns);
        cpu.is_cut |= old > 0;
        cpu.events.drain(..old);
    }
}

/// Adds the events of watched threads on a CPU to the trace of the surroundings. Both have the switches, the changes of
/// priorities and the interrupts.
fn add(trace: &mut Trace, cpu: usize, own: &[Event]) {
    let Some(events) = trace.cpus.get_mut(cpu) else { return };
    // Not before the surroundings begin: nothing else is known of that time.
    let Some(first_ns) = events.events.first().map(|first| first.at_ns) else { return };
    let is_known =
        |what: What| matches!(what, What::Switch { .. } | What::Inherit { .. } | What::Enter(_) | What::Leave(_));
    events.events.extend(own.iter().filter(|event| event.at_ns >= first_ns && !is_known(event.what)));
    Event::sort(&mut events.events);
}

/// The functions at all addresses of a trace, with their addresses, ascending.
pub fn functions(trace: &Trace, symbols: Symbols<'_>) -> Vec<(u64, String)> {
    let works = trace.cpus.iter().flat_map(|cpu| &cpu.events).filter_map(|event| match event.what {
        What::Work { function } => Some(function),
        _ => None,
    });
    let mut addresses: Vec<u64> =
        trace.stacks.iter().flatten().copied().chain(works).chain(trace.timer_functions.iter().copied()).collect();
    addresses.sort_unstable();
    addresses.dedup();
    addresses.into_iter().filter_map(|address| Some((address, symbols(address)?))).collect()
}

#[cfg(test)]
mod tests {
    use super::super::testing::{LAYOUT, page};
    use super::*;

    #[test]
    fn pages_of_other_times_are_left_out_but_the_one_that_may_contain_the_start() {
        let of = |flags: &[u64]| -> Vec<u8> {
            let times = [1_000, 2_000, 3_000];
            times.into_iter().zip(flags).flat_map(|(at, flags)| page(at, *flags, &[], &LAYOUT, None)).collect()
        };
        let pages = of(&[0; 3]);
        let one = LAYOUT.page_bytes;
        for (times_ns, kept) in [
            (0..9_000, 0..3),
            (999..2_000, 0..2),
            (1_000..1_999, 0..1),
            (1_999..3_000, 0..3),
            (2_000..9_000, 1..3),
            (2_500..2_999, 1..2),
            (9_000..9_001, 2..3),
        ] {
            let marked = of(&[0, 1, 2].map(|index| if index == kept.start && index > 0 { 1 << 31 } else { 0 }));
            assert_eq!(
                within(&pages, &LAYOUT, &times_ns, false),
                &marked[kept.start * one..kept.end * one],
                "{times_ns:?}"
            );
        }
        assert_eq!(within(&of(&[0; 3]), &LAYOUT, &(0..9_000), true), of(&[1 << 31, 0, 0]));
        assert_eq!(within(&[], &LAYOUT, &(5..6), true), &[] as &[u8]);
        // A page that was cut is damaged, not old.
        assert_eq!(within(&pages[..one + 3], &LAYOUT, &(5_000..6_000), false).len(), one + 3);
    }
}
