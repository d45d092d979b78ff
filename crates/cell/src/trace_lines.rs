//! Trace lines of the kernel's tracers `timerlat`, `osnoise` and `hwlat` (kernel/trace/trace_output.c).
//!
//! ```text
//!           <idle>-0       [000] d..h1..     1.783244: #1     context    irq timer_latency      1888 ns
//!       timerlat/0-212     [000] .......     1.783248: #1     context thread timer_latency      5384 ns
//!        osnoise/0-213     [000] .......     3.100000: 1000000        229  99.97710      30      0      0    249      0     28
//!        hwlatd/0-214     [000] d......     4.100000: #1     inner/outer(us):   11/12    ts:1581527483.343962693 count:6
//! ```

use punctual_model::{HwlatRecord, OsnoiseRecord, TimerlatRecord};

/// One line of a trace.
#[derive(Debug, PartialEq, Eq)]
struct Line<'a> {
    cpu: u32,
    words: Vec<&'a str>,
}

/// Parses the part that all tracers have in common; `None` for a header and for a note of lost lines, which are counted
/// elsewhere.
fn line(text: &str) -> Result<Option<Line<'_>>, String> {
    let is_lost = text.starts_with("CPU:") && text.ends_with("EVENTS]");
    if text.trim().is_empty() || text.starts_with('#') || is_lost {
        return Ok(None);
    }
    let words: Vec<&str> = text.split_whitespace().collect();
    // Task names may contain anything: the last triple of CPU, flags and time is the right one.
    let cpu = |word: &str| word.strip_prefix('[')?.strip_suffix(']')?.parse::<u32>().ok();
    let is_time = |word: &str| {
        let time = word.strip_suffix(':').filter(|time| !time.is_empty());
        time.is_some_and(|time| time.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.'))
    };
    let heads = words.windows(3).enumerate().filter(|(_, head)| is_time(head[2]));
    let head = heads.filter_map(|(at, head)| Some((at + 3, cpu(head[0])?))).next_back();
    let (rest, cpu) = head.ok_or_else(|| malformed(text))?;
    Ok(Some(Line { cpu, words: words.get(rest..).unwrap_or_default().to_vec() }))
}

fn malformed(text: &str) -> String {
    format!("invalid line `{}` in the trace; please report this, with the kernel version", text.trim())
}

/// Adds a line of timerlat to the record of its CPU; lines of CPUs that are not measured are ignored. Errors: one line
/// of text that quotes a malformed line.
pub(super) fn timerlat(text: &str, known: &mut [TimerlatRecord]) -> Result<(), String> {
    let Some(Line { cpu, words }) = line(text)? else { return Ok(()) };
    let (context, ns) = match words[..] {
        [number, "context", context, "timer_latency", ns, "ns"] if number.starts_with('#') => (context, ns),
        // Latency of the return to user space, which only rtla requests.
        [_, "context", "user", "ret", "timer_latency", _, "ns"] => return Ok(()),
        _ => return Err(malformed(text)),
    };
    let ns: i64 = ns.parse().map_err(|_| malformed(text))?;
    let record = known.iter_mut().find(|record| record.cpu == cpu);
    match (context, record) {
        ("irq", Some(record)) => record.irq.record(ns),
        ("thread", Some(record)) => record.thread.record(ns),
        ("irq" | "thread", None) => {}
        _ => return Err(malformed(text)),
    }
    Ok(())
}

/// Adds a line of osnoise to the record of its CPU, unless that has `most` samples already. Errors: one line of text
/// that quotes a malformed line.
pub(super) fn osnoise(text: &str, most: u64, known: &mut [OsnoiseRecord]) -> Result<(), String> {
    let Some(Line { cpu, words }) = line(text)? else { return Ok(()) };
    let number = |word: &&str| word.parse::<u64>().map_err(|_| malformed(text));
    // The third word is a percentage that follows from the first two.
    let [runtime, noise, _, counts @ ..] = &words[..] else { return Err(malformed(text)) };
    let counts = counts.iter().map(number).collect::<Result<Vec<_>, _>>()?;
    let [max_single, hardware, nmi, irq, softirq, thread] = counts[..] else { return Err(malformed(text)) };
    let (runtime, noise) = (number(runtime)?, number(noise)?);
    let Some(sum) = known.iter_mut().find(|sum| sum.cpu == cpu && sum.samples < most) else { return Ok(()) };
    *sum = OsnoiseRecord {
        cpu,
        samples: sum.samples + 1,
        runtime_us: sum.runtime_us.saturating_add(runtime),
        noise_us: sum.noise_us.saturating_add(noise),
        max_single_us: sum.max_single_us.max(Some(max_single)),
        hardware: sum.hardware.saturating_add(hardware),
        nmi: sum.nmi.saturating_add(nmi),
        irq: sum.irq.saturating_add(irq),
        softirq: sum.softirq.saturating_add(softirq),
        thread: sum.thread.saturating_add(thread),
    };
    Ok(())
}

/// Adds a line of hwlat, a window with gaps, to the record of its CPU. Errors: one line of text that quotes a malformed
/// line.
pub(super) fn hwlat(text: &str, known: &mut [HwlatRecord]) -> Result<(), String> {
    let Some(Line { cpu, words }) = line(text)? else { return Ok(()) };
    let number = |word: &str| word.parse::<u64>().map_err(|_| malformed(text));
    // Gaps between two readings of the loop, and from the end of one turn to the next.
    let [window, "inner/outer(us):", both, rest @ ..] = &words[..] else { return Err(malformed(text)) };
    let (inner, outer) = both.split_once('/').filter(|_| window.starts_with('#')).ok_or_else(|| malformed(text))?;
    let (mut gaps, mut nmi) = (1, 0);
    for word in rest {
        match word.split_once(':') {
            Some(("count", n)) => gaps = number(n)?,
            Some(("nmi-count", n)) => nmi = number(n)?,
            Some(("ts" | "nmi-total", _)) => {}
            _ => return Err(malformed(text)),
        }
    }
    let longest = number(inner)?.max(number(outer)?);
    let Some(sum) = known.iter_mut().find(|sum| sum.cpu == cpu).map(|record| &mut record.gaps) else { return Ok(()) };
    sum.gaps = sum.gaps.saturating_add(gaps);
    sum.nmi = sum.nmi.saturating_add(nmi);
    sum.longest_us = sum.longest_us.max(Some(longest));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use punctual_model::Histogram;

    const HEADS: &str = "# tracer: timerlat\n#\n#                                _-----=> irqs-off\n\n\
                         CPU:0 [LOST 12 EVENTS]\n##### CPU 1 buffer started ####\n";

    fn of_timerlat(text: &str) -> Result<Vec<TimerlatRecord>, String> {
        let record = |cpu| TimerlatRecord { cpu, irq: Histogram::default(), thread: Histogram::default(), lost: 0 };
        let mut known = vec![record(0), record(2)];
        text.lines().try_for_each(|line| timerlat(line, &mut known)).map(|()| known)
    }

    #[test]
    fn timerlat_has_a_line_for_the_interrupt_and_one_for_the_thread() {
        let known = of_timerlat(&format!(
            "{HEADS}          <idle>-0       [000] d..h1..     1.783244: #1     context    irq timer_latency      1888 ns\n\
             \x20     timerlat/0-212     [000] .......     1.783248: #1     context thread timer_latency      5384 ns\n\
             \x20 a [7] x 1.5: b-99     [002] dNh1.     99.000001: #4294967295 context irq timer_latency 18446744073 ns\n\
             \x20     timerlat/1-213     [001] .......     1.783249: #1     context thread timer_latency      9 ns\n\
             \x20     timerlat/0-212     [000] .......     1.784: #2     context thread timer_latency         0 ns\n\
             \x20           rtla-300     [000] .......     1.785: #2     context user ret timer_latency      7000 ns"
        ))
        .unwrap();
        assert_eq!(
            (known[0].irq.clone(), known[0].thread.clone()),
            (Histogram::of(&[1888]), Histogram::of(&[5384, 0]))
        );
        assert_eq!((known[1].irq.clone(), known[1].thread.n), (Histogram::of(&[18_446_744_073]), 0));
    }

    #[test]
    fn what_is_no_line_of_timerlat_is_shown() {
        for text in [
            "nonsense",
            "x-1 [000] d.... 1.0:",
            "x-1 [000] d.... 1.0: #1 context irq timer_latency 5",
            "x-1 [000] d.... 1.0: #1 context irq timer_latency -5 us",
            "x-1 [000] d.... 1.0: #1 context irq timer_latency many ns",
            "x-1 [000] d.... 1.0: #1 context nmi timer_latency 5 ns",
            "x-1 [000] d.... 1.0: 1 context irq timer_latency 5 ns",
            "x-1 [0x0] d.... 1.0: #1 context irq timer_latency 5 ns",
            "x-1 [000] d.... soon: #1 context irq timer_latency 5 ns",
            "x-1 [000] d.... 1.0: #1 context irq timer_latency 99999999999999999999 ns",
        ] {
            let said = of_timerlat(text).unwrap_err();
            assert!(said.contains(&format!("`{text}`")), "{said}");
        }
    }

    fn of_osnoise(text: &str, most: u64) -> Result<OsnoiseRecord, String> {
        let mut known = [OsnoiseRecord { cpu: 1, ..OsnoiseRecord::default() }];
        text.lines().try_for_each(|line| osnoise(line, most, &mut known)).map(|()| known[0].clone())
    }

    #[test]
    fn osnoise_adds_up_and_keeps_the_longest() {
        let rows = format!(
            "{HEADS}   osnoise/1-213  [001] .......     3.1: 1000000  229  99.97710   30   0   1   249   2   28\n\
             \x20  osnoise/0-212  [000] .......     3.1: 1000000  999999  0.00010   9   9   9   9   9   9\n\
             \x20  osnoise/1-213  [001] .......     4.1: 500000  1  99.99980   7   3   0   0   0   1\n\
             \x20  osnoise/1-213  [001] .......     5.1: 500000  500000  0.00000   500000   0   0   0   0   1"
        );
        let two = OsnoiseRecord {
            cpu: 1,
            samples: 2,
            runtime_us: 1_500_000,
            noise_us: 230,
            max_single_us: Some(30),
            hardware: 3,
            nmi: 1,
            irq: 249,
            softirq: 2,
            thread: 29,
        };
        assert_eq!(of_osnoise(&rows, 2), Ok(two), "a third is more than was asked for");
        assert_eq!(of_osnoise(&rows, 3).map(|sum| (sum.samples, sum.max_single_us)), Ok((3, Some(500_000))));
        assert_eq!(of_osnoise(HEADS, 3).map(|sum| (sum.samples, sum.max_single_us)), Ok((0, None)));
    }

    #[test]
    fn what_is_no_line_of_osnoise_is_shown() {
        for text in [
            "x-1 [001] ..... 1.0: 1000000 229",
            "x-1 [001] ..... 1.0: 1000000 229 99.9 30 0 0 249 0",
            "x-1 [001] ..... 1.0: 1000000 229 99.9 30 0 0 249 0 28 5",
            "x-1 [001] ..... 1.0: 1000000 -1 99.9 30 0 0 249 0 28",
            "1000000 229 99.9 30 0 0 249 0 28",
        ] {
            assert!(of_osnoise(text, 9).unwrap_err().contains(&format!("`{text}`")), "{text}");
        }
    }

    #[test]
    fn hwlat_adds_up_its_windows_and_shows_what_is_none() {
        let of = |text: &str| {
            let mut known = [HwlatRecord { cpu: 1, ..HwlatRecord::default() }];
            text.lines().try_for_each(|line| hwlat(line, &mut known)).map(|()| known[0].gaps.clone())
        };
        let head = "hwlatd/1-21 [001] d..... 4.1:";
        let none = of(HEADS).unwrap();
        assert_eq!((none.gaps, none.longest_us), (0, None));
        let seen = of(&format!(
            "{head} #1     inner/outer(us):   11/12    ts:1581527483.343962693 count:6\n\
             {head} #2     inner/outer(us): 1400/9     ts:1581527484.000000001 count:1 nmi-total:7 nmi-count:2\n\
             {head} #3     inner/outer(us):    0/15    ts:1581527484.5\n\
             hwlatd/0-20 [000] d..... 4.1: #1 inner/outer(us): 77/77 ts:1.5 count:9"
        ));
        let seen = seen.unwrap();
        assert_eq!((seen.gaps, seen.longest_us, seen.nmi), (8, Some(1_400), 2), "an old kernel counts no gaps");
        for rest in [
            "#1 inner/outer(us): 11",
            "#1 inner/outer(us): -1/2",
            "1 inner/outer(us): 1/2",
            "#1 outer(us): 1/2",
            "#1 inner/outer(us): 1/2 count:x",
            "#1 inner/outer(us): 1/2 more",
        ] {
            assert!(of(&format!("{head} {rest}")).unwrap_err().contains(rest), "{rest}");
        }
    }
}
