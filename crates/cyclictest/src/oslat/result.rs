//! The result of oslat: a column for each CPU, and JSON.

use punctual_model::Span;
use punctual_rt::NoiseOutcome;
use serde::{Serialize, Serializer};
use std::collections::BTreeMap;
use std::fmt::Write;

/// The gaps of one CPU, in buckets of 1 us: `counts[n]` are those of up to `bias + n + 1` us.
#[derive(Debug)]
pub(super) struct Core {
    pub(super) cpu: u32,
    /// Rate of the counter, MHz.
    pub(super) mhz: u64,
    pub(super) counts: Vec<u64>,
    bias: u64,
    max: u64,
    /// Sum of what gaps exceed the last bucket by, us.
    excess: u64,
    seen: u64,
    /// Gaps for which the log had no room.
    lost: u64,
    measured: Span,
}

impl Core {
    pub(super) fn new(cpu: u32, mhz: u64, buckets: usize, bias: u64) -> Core {
        let counts = vec![0; buckets];
        Core { cpu, mhz, counts, bias, max: 0, excess: 0, seen: 0, lost: 0, measured: Span(0) }
    }

    /// Takes a gap, us, rounded up.
    pub(super) fn take(&mut self, us: u64) {
        self.max = self.max.max(us);
        self.seen += 1;
        let place = us.saturating_sub(self.bias).max(1);
        let last = self.counts.len() as u64;
        self.excess += place.saturating_sub(last);
        let index = usize::try_from(place.min(last) - 1).unwrap_or(0);
        self.counts.get_mut(index).into_iter().for_each(|count| *count += 1);
    }

    /// Takes the counts of the loop: the readings without a gap are in the first bucket.
    pub(super) fn end(&mut self, noise: &NoiseOutcome) {
        self.lost = noise.gaps.saturating_sub(self.seen);
        self.measured = noise.observed;
        let readings = noise.readings.saturating_sub(noise.gaps);
        self.counts.first_mut().into_iter().for_each(|count| *count += readings);
        self.max = self.max.max(1);
    }

    fn average(&self) -> f64 {
        let of_buckets = (self.bias + 1..).zip(&self.counts).map(|(us, count)| us as f64 * *count as f64);
        let n: u64 = self.counts.iter().sum();
        (of_buckets.sum::<f64>() + self.excess as f64) / n.max(1) as f64
    }

    fn seconds(&self) -> f64 {
        self.measured.ns() as f64 / 1e9
    }
}

/// The table; `leaves_zeros_out`: without the buckets that are empty on all CPUs.
pub(super) fn table(cores: &[Core], leaves_zeros_out: bool) -> String {
    let mut text = String::new();
    let mut line = |label: &str, value: &dyn Fn(&Core) -> String, end: &str| {
        let values: String = cores.iter().map(|core| format!(" {}", value(core))).collect();
        // Writing to a String never fails.
        let _ = writeln!(text, "{label:>12}:\t{values}{end}");
    };
    line("Core", &|core| core.cpu.to_string(), "");
    line("Counter Freq", &|core| core.mhz.to_string(), " (Mhz)");
    let Some(first) = cores.first() else { return text };
    let last = first.counts.len().saturating_sub(1);
    let mut is_left_out = false;
    for (index, us) in (0..=last).zip(first.bias + 1..) {
        let count = |core: &Core| core.counts.get(index).copied().unwrap_or(0);
        if leaves_zeros_out && index < last && cores.iter().all(|core| count(core) == 0) {
            is_left_out = true;
            continue;
        }
        let name = format!("{us:03} (us)");
        let name = if std::mem::take(&mut is_left_out) { format!("    ...\n{name:>12}") } else { name };
        line(&name, &|core| count(core).to_string(), if index == last { " (including overflows)" } else { "" });
    }
    line("Minimum", &|_| "1".to_owned(), " (us)");
    line("Average", &|core| format!("{:.3}", core.average()), " (us)");
    line("Maximum", &|core| core.max.to_string(), " (us)");
    line("Max-Min", &|core| (core.max - 1).to_string(), " (us)");
    line("Duration", &|core| format!("{:.3}", core.seconds()), " (sec)");
    text.push('\n');
    if cores.iter().any(|core| core.lost > 0) {
        let lost: String = cores.iter().map(|core| format!(" {}", core.lost)).collect();
        let _ = writeln!(text, "# Lost Samples:{lost}");
    }
    text
}

/// The part of the JSON about the threads.
#[derive(Debug, Serialize)]
pub(super) struct Results<'a> {
    num_threads: usize,
    #[serde(serialize_with = "by_index")]
    thread: &'a [Core],
}

impl Results<'_> {
    pub(super) fn of(cores: &[Core]) -> Results<'_> {
        Results { num_threads: cores.len(), thread: cores }
    }
}

#[derive(Debug, Serialize)]
struct Thread {
    cpu: u32,
    freq: u64,
    min: u64,
    avg: f64,
    max: u64,
    duration: f64,
    lost: u64,
    histogram: BTreeMap<Us, u64>,
}

/// A key of the histogram, in the order of its number.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Us(u64);

impl Serialize for Us {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

fn by_index<S: Serializer>(cores: &[Core], serializer: S) -> Result<S::Ok, S::Error> {
    let rounded = |value: f64, digits: f64| (value * digits).round() / digits;
    let thread = |core: &Core| Thread {
        cpu: core.cpu,
        freq: core.mhz,
        min: 1,
        avg: rounded(core.average(), 1e6),
        max: core.max,
        duration: rounded(core.seconds(), 1e3),
        lost: core.lost,
        histogram: (core.bias + 1..).map(Us).zip(core.counts.iter().copied()).filter(|(_, n)| *n > 0).collect(),
    };
    serializer.collect_map(cores.iter().enumerate().map(|(index, core)| (index.to_string(), thread(core))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    fn cores(bias: u64) -> Vec<Core> {
        let core = |cpu, gaps: &[u64], lost| {
            let mut core = Core::new(cpu, 2_600, 5, bias);
            gaps.iter().for_each(|gap| core.take(*gap));
            let (seen, readings) = (gaps.len() as u64, 1_000);
            core.end(&NoiseOutcome {
                threshold: Span(1_000),
                reading_ps: 9_000,
                readings,
                gaps: seen + lost,
                lost: Span(0),
                observed: Span(2_000_400_000),
            });
            core
        };
        vec![core(1, &[2, 2, 5, 40], 0), core(3, &[], 1)]
    }

    /// With `|` for tabs.
    fn visible(text: &str) -> String {
        text.replace('\t', "|")
    }

    #[test]
    fn the_table_is_that_of_oslat() {
        expect![[r#"
                    Core:| 1 3
            Counter Freq:| 2600 2600 (Mhz)
                001 (us):| 996 999
                002 (us):| 2 0
                003 (us):| 0 0
                004 (us):| 0 0
                005 (us):| 2 0 (including overflows)
                 Minimum:| 1 1 (us)
                 Average:| 1.045 1.000 (us)
                 Maximum:| 40 1 (us)
                 Max-Min:| 39 0 (us)
                Duration:| 2.000 2.000 (sec)

            # Lost Samples: 0 1
        "#]]
        .assert_eq(&visible(&table(&cores(0), false)));
        expect![[r#"
                    Core:| 1 3
            Counter Freq:| 2600 2600 (Mhz)
                002 (us):| 998 999
                ...
                005 (us):| 1 0
                006 (us):| 1 0 (including overflows)
        "#]]
        .assert_eq(&visible(&table(&cores(1), true).split_inclusive('\n').take(6).collect::<String>()));
    }

    #[test]
    fn the_json_has_the_keys_of_oslat_and_the_lost_gaps() {
        let json = serde_json::to_string(&Results::of(&cores(0))).unwrap();
        expect![[r#"{"num_threads":2,"thread":{"0":{"cpu":1,"freq":2600,"min":1,"avg":1.045,"max":40,"duration":2.0,"lost":0,"histogram":{"1":996,"2":2,"5":2}},"1":{"cpu":3,"freq":2600,"min":1,"avg":1.0,"max":1,"duration":2.0,"lost":1,"histogram":{"1":999}}}}"#]]
        .assert_eq(&json);
    }
}
