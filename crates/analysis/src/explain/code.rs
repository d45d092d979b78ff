//! Places in the code of a watched program: which samples of its stack belong to which share of a late activation.

use super::shares;
use crate::watch::Activation;
use punctual_model::{Cause, CodeFrame, CodePlace, Phase, SampledAt, Segment, Share};
use serde::{Deserialize, Serialize};
use std::ops::RangeInclusive;

/// A sample of the stack of a watched thread.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CodeSample {
    /// Time, `CLOCK_MONOTONIC`, ns.
    pub at_ns: u64,
    /// What took it.
    pub kind: SampledAt,
    /// Frames, innermost first.
    pub stack: Vec<CodeFrame>,
}

/// Time between two samples of a running thread, ns of its CPU time.
pub const SAMPLE_PERIOD_NS: u64 = 250_000;
/// Time between two readings of the frames of an interpreter, ns.
pub const READING_PERIOD_NS: u64 = 1_000_000;
/// Difference of two readings of one clock by different means, ns.
const NEAR_NS: u64 = 5_000;

/// Beginnings of the names of files that are part of every program: the C library, the dynamic linker, those of the
/// kernel and of languages. A frame there does not tell one program from another.
const LIBRARIES: [&str; 17] = [
    "libc.so", "libc-", "libc.musl", "ld-", "ld.so", "libpthread", "librt.", "librt-", "libm.so", "libm-", "libdl",
    "libgcc_s", "libstdc++", "libc++", "[vdso]", "[vsyscall]", "[uprobes]",
];

/// Sets the place of each share that the program itself can change. `segments` are all of the activation, whose release
/// is at `release_ns`.
pub(super) fn place(
    shares: &mut [Share],
    segments: &[Segment],
    activation: &Activation,
    samples: &[CodeSample],
    release_ns: u64,
) {
    if samples.is_empty() {
        return;
    }
    for share in shares.iter_mut().filter(|share| share.phase == Phase::Activation && is_own(share.cause)) {
        let mut found: Vec<(&CodeSample, u64)> = Vec::new();
        for segment in segments.iter().filter(|one| shares::is_part(one, share)) {
            found.extend(of_segment(segment, segments, share.cause, activation, samples, release_ns));
        }
        // What is in the interpreter itself does not tell one place of the program from another.
        if found.iter().any(|(one, _)| is_read(one)) {
            found.retain(|(one, _)| is_read(one));
        }
        share.code = chosen(&found);
    }
}

/// Whether a cause is about what the program itself did.
fn is_own(cause: Cause) -> bool {
    matches!(
        cause,
        Cause::RanLonger
            | Cause::Lock
            | Cause::PriorityInversion
            | Cause::Disk
            | Cause::MemoryAllocation
            | Cause::SystemCall
            | Cause::Migration
            | Cause::PageFault
    )
}

/// Whether the frames of a sample are those of an interpreter.
fn is_read(sample: &CodeSample) -> bool {
    matches!(sample.kind, SampledAt::Asleep | SampledAt::Running)
}

/// The samples of a segment with the time, ns, that each stands for: of a sleep the one at its beginning.
fn of_segment<'a>(
    segment: &Segment,
    segments: &[Segment],
    cause: Cause,
    activation: &Activation,
    samples: &'a [CodeSample],
    release_ns: u64,
) -> Vec<(&'a CodeSample, u64)> {
    let from_ns = release_ns.saturating_add(segment.at.ns());
    let to_ns = from_ns.saturating_add(segment.length.ns());
    let middle = from_ns + (to_ns - from_ns) / 2;
    let blocks = &activation.blocks;
    if let Some(block) = blocks.iter().find(|block| (block.from_ns..=block.to_ns).contains(&middle)) {
        // It leaves the CPU once in a sleep, and the sample comes just after the event.
        let off_cpu = block.from_ns.saturating_sub(NEAR_NS)..=block.to_ns;
        let within = |kind, times: RangeInclusive<u64>| {
            samples.iter().find(move |one| one.kind == kind && times.contains(&one.at_ns))
        };
        // The interpreter's frames stay as they are in the sleep.
        let read = within(SampledAt::Asleep, block.from_ns..=block.to_ns);
        let first = read.or_else(|| within(SampledAt::Switch, off_cpu));
        return first.map(|one| (one, segment.length.ns())).into_iter().collect();
    }
    let is_here = |one: &&CodeSample| match one.kind {
        SampledAt::Switch | SampledAt::Asleep => false,
        SampledAt::Fault => matches!(cause, Cause::PageFault | Cause::MemoryAllocation),
        SampledAt::Clock | SampledAt::Running => true,
    };
    // A sample is taken in an interrupt, which follows what it interrupted.
    let next = segments.iter().filter(|one| !matches!(one.cause, Cause::Interrupt | Cause::Softirq));
    let next_ns = next.map(|one| release_ns.saturating_add(one.at.ns())).filter(|at| *at > from_ns).min();
    let until_ns = next_ns.unwrap_or(to_ns).max(to_ns).min(activation.end_ns.max(to_ns));
    let within = samples.iter().filter(|one| (from_ns..until_ns).contains(&one.at_ns));
    let weight = |one| if is_read(one) { READING_PERIOD_NS } else { SAMPLE_PERIOD_NS };
    within.filter(is_here).map(|one| (one, weight(one))).collect()
}

/// The place with most of the time; of equal ones the first.
fn chosen(found: &[(&CodeSample, u64)]) -> Option<CodePlace> {
    let mut places: Vec<(&CodeFrame, u64, Vec<&CodeSample>)> = Vec::new();
    for (sample, weight) in found {
        let Some(at) = named(&sample.stack) else { continue };
        match places.iter_mut().find(|(known, ..)| is_same_function(known, at)) {
            Some((_, sum, samples)) => {
                *sum += weight;
                samples.push(sample);
            }
            None => places.push((at, *weight, vec![sample])),
        }
    }
    let most = places.iter().map(|(_, sum, _)| *sum).max()?;
    let (_, _, samples) = places.iter().find(|(_, sum, _)| *sum == most)?;
    // Of the function, the line with most samples.
    let same_line = |one: &CodeSample| {
        let at = named(&one.stack);
        samples.iter().filter(|other| named(&other.stack).map(line) == at.map(line)).count()
    };
    let most = samples.iter().map(|one| same_line(one)).max()?;
    let one = samples.iter().find(|one| same_line(one) == most)?;
    Some(CodePlace {
        at: named(&one.stack)?.clone(),
        samples: u32::try_from(samples.len()).unwrap_or(u32::MAX),
        of: u32::try_from(found.len()).unwrap_or(u32::MAX),
        stack: one.stack.clone(),
    })
}

fn line(frame: &CodeFrame) -> (Option<&str>, Option<u32>) {
    (frame.file.as_deref(), frame.line)
}

fn is_same_function(a: &CodeFrame, b: &CodeFrame) -> bool {
    (&a.object, &a.function, &a.file) == (&b.object, &b.function, &b.file)
}

/// The frame that names a stack: the innermost one of the program itself with a line, or else with a name, or else any.
fn named(stack: &[CodeFrame]) -> Option<&CodeFrame> {
    let is_of_python = |file: &str| file.starts_with("<frozen ") || file.contains("/lib/python3");
    let is_library = |frame: &CodeFrame| {
        LIBRARIES.iter().any(|start| frame.object.starts_with(start)) || frame.file.as_deref().is_some_and(is_of_python)
    };
    let own = || stack.iter().filter(|frame| !is_library(frame));
    own()
        .find(|frame| frame.line.is_some() && frame.function.is_some())
        .or_else(|| own().find(|frame| frame.function.is_some()))
        .or_else(|| own().next())
        .or_else(|| stack.iter().find(|frame| frame.function.is_some()))
        .or_else(|| stack.first())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::watch::Block;
    use punctual_model::{Evidence, Owner, Span};

    fn frame(object: &str, function: Option<&str>, line: Option<u32>) -> CodeFrame {
        CodeFrame {
            function: function.map(str::to_owned),
            file: line.map(|_| "servo.c".to_owned()),
            line,
            object: object.to_owned(),
            address: None,
        }
    }

    #[test]
    fn the_innermost_frame_of_the_program_names_a_stack() {
        let libc = frame("libc.so.6", Some("fsync"), Some(3));
        let bare = frame("servo", None, None);
        let static_part = frame("servo", Some("__fsync"), None);
        let step = frame("servo", Some("storage_step"), Some(212));
        let main = frame("servo", Some("main"), Some(400));
        let vdso = frame("[vdso]", None, None);
        let of_python =
            |file: &str| CodeFrame { file: Some(file.to_owned()), ..frame("python3.12", Some("wait"), Some(9)) };
        let (threading, frozen) = (of_python("/usr/lib/python3.12/threading.py"), of_python("<frozen importlib>"));
        let control = of_python("control.py");
        for (stack, expected) in [
            (vec![&libc, &step, &main], Some(&step)),
            (vec![&static_part, &step, &main], Some(&step)),
            (vec![&bare, &static_part], Some(&static_part)),
            (vec![&libc, &bare], Some(&bare)),
            (vec![&vdso, &libc], Some(&libc)),
            (vec![&vdso], Some(&vdso)),
            (vec![&threading, &frozen, &control], Some(&control)),
            (vec![&threading], Some(&threading)),
            (vec![], None),
        ] {
            let stack: Vec<CodeFrame> = stack.into_iter().cloned().collect();
            assert_eq!(named(&stack), expected, "{stack:?}");
        }
    }

    #[test]
    fn what_an_interpreter_executes_comes_before_what_is_in_it() {
        let sample = |at_ns, kind, function| CodeSample {
            at_ns,
            kind,
            stack: vec![frame("python3.12", Some(function), Some(5))],
        };
        let samples = [
            sample(1_100, SampledAt::Switch, "clock_nanosleep"),
            sample(1_200, SampledAt::Running, "before"),
            sample(1_500, SampledAt::Asleep, "fetch"),
            sample(2_100, SampledAt::Clock, "eval"),
            sample(2_200, SampledAt::Clock, "eval"),
            sample(2_500, SampledAt::Running, "solve"),
            sample(2_600, SampledAt::Asleep, "after"),
        ];
        let block = Block {
            call: None,
            is_fault: false,
            is_uninterruptible: false,
            is_stopped: false,
            from_ns: 1_000,
            to_ns: 2_000,
            waker: None,
            futex: 0,
            may_be_wait: false,
            is_lock: false,
        };
        let activation = Activation { release_ns: 1_000, end_ns: 3_000, blocks: vec![block], ..Activation::default() };
        let segment = |at, length, cause| Segment {
            at: Span(at),
            length: Span(length),
            phase: Phase::Activation,
            owner: Owner { name: String::new(), pid: None },
            cause,
            or: None,
            evidence: Evidence::Direct,
            place: None,
        };
        let (sleep, run) = (segment(0, 1_000, Cause::SystemCall), segment(1_000, 1_000, Cause::RanLonger));
        let names = |segment: &Segment, samples: &[CodeSample]| {
            let found = of_segment(segment, &[sleep.clone(), run.clone()], segment.cause, &activation, samples, 1_000);
            found.iter().map(|(one, ns)| (one.stack[0].function.clone().unwrap(), *ns)).collect::<Vec<_>>()
        };
        let named = |all: &[(&str, u64)]| all.iter().map(|(name, ns)| ((*name).to_owned(), *ns)).collect::<Vec<_>>();
        assert_eq!(names(&sleep, &samples), named(&[("fetch", 1_000)]));
        assert_eq!(names(&sleep, &samples[..2]), named(&[("clock_nanosleep", 1_000)]));
        let ran = [("eval", SAMPLE_PERIOD_NS), ("eval", SAMPLE_PERIOD_NS), ("solve", READING_PERIOD_NS)];
        assert_eq!(names(&run, &samples), named(&ran));
    }

    #[test]
    fn most_time_chooses_the_function_and_most_samples_its_line() {
        let sample = |function, line| CodeSample {
            at_ns: 0,
            kind: SampledAt::Clock,
            stack: vec![frame("servo", Some(function), Some(line))],
        };
        let all = [sample("spin", 10), sample("spin", 11), sample("spin", 11), sample("other", 5)];
        let short: Vec<_> = all.iter().map(|one| (one, 1)).collect();
        let place = chosen(&short).unwrap();
        assert_eq!((place.at.line, place.samples, place.of), (Some(11), 3, 4));
        let long: Vec<_> = all.iter().map(|one| (one, if one.stack[0].line == Some(5) { 9 } else { 1 })).collect();
        assert_eq!(chosen(&long).map(|place| (place.at.line, place.samples)), Some((Some(5), 1)));
        assert_eq!(chosen(&[]), None);
        // A sample without a stack counts, and names nothing.
        let empty = CodeSample { stack: Vec::new(), ..all[0].clone() };
        assert_eq!(chosen(&[(&empty, 9), (&all[3], 1)]).map(|place| (place.samples, place.of)), Some((1, 2)));
        assert_eq!(chosen(&[(&empty, 9)]), None);
    }
}
