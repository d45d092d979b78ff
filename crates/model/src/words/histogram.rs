//! A log-linear histogram of latencies, 128 steps per octave, without an upper limit.

use serde::{Deserialize, Serialize};

/// Steps per octave, as a power of two: 2^7 = 128, so a bucket is at most 1/128 = 0.78 % wide.
const STEP_BITS: u32 = 7;

/// One bucket: the values from `lower_ns` to `upper_ns`, both included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Bucket {
    /// Smallest value of the bucket.
    pub lower_ns: u64,
    /// Largest value of the bucket.
    pub upper_ns: u64,
    /// Number of samples in it.
    pub count: u64,
}

/// Counts of latencies in buckets whose width grows with the value: exact below 256 ns, at most 0.78 % wide above.
///
/// `n`, `min`, `max`, `sum` and `sum_of_squares` are exact for every sample, early ones included; only the position
/// inside a bucket is lost. Early samples (negative latency) are counted in the first bucket. Every value has a bucket.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(try_from = "Stored", into = "Stored")]
pub struct Histogram {
    /// Number of samples.
    pub n: u64,
    /// Smallest latency, ns; `None` without samples.
    pub min_ns: Option<i64>,
    /// Largest latency, ns; `None` without samples.
    pub max_ns: Option<i64>,
    /// Sum of all latencies, ns.
    pub sum_ns: i128,
    /// Sum of the squares of all latencies, ns²; saturates, which takes 300 000 samples of a year.
    pub sum_of_squares_ns2: u128,
    /// Non-empty buckets, ascending. A list, because a run holds hundreds of thousands of histograms with few buckets
    /// each.
    counts: Vec<Count>,
}

/// Index of a bucket, below 2^13, and its number of samples: packed, because these make up most of the memory of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C, packed(2))]
struct Count {
    bucket: u16,
    n: u64,
}

/// The JSON form. Sums are text, because they exceed the range of numbers in most JSON parsers.
#[derive(Debug, Clone, Serialize, Deserialize, schemars::JsonSchema)]
#[schemars(rename = "Histogram")]
struct Stored {
    n: u64,
    min_ns: Option<i64>,
    max_ns: Option<i64>,
    /// Integer as text, ns.
    sum_ns: String,
    /// Integer as text, ns².
    sum_of_squares_ns2: String,
    /// `[lowest value of the bucket in ns, count]`, ascending, without empty buckets.
    buckets: Vec<(u64, u64)>,
}

/// Index of the bucket of `ns`: each value below 256 ns has its own.
fn bucket_of(ns: u64) -> u16 {
    let shift = (u64::BITS - ns.leading_zeros()).saturating_sub(STEP_BITS + 1);
    let step = u16::try_from(ns >> shift).unwrap_or(u16::MAX);
    // At most 56 << 7.
    step + u16::try_from(shift << STEP_BITS).unwrap_or(0)
}

/// The lowest and highest value of a bucket.
fn edges(bucket: u16) -> (u64, u64) {
    let shift = (bucket >> STEP_BITS).saturating_sub(1);
    let lower = u64::from(bucket - (shift << STEP_BITS)) << shift;
    (lower, lower | ((1 << shift) - 1))
}

impl Histogram {
    /// Creates the histogram of these latencies.
    pub fn of(latencies_ns: &[i64]) -> Self {
        let mut histogram = Histogram::default();
        latencies_ns.iter().for_each(|ns| histogram.record(*ns));
        histogram
    }

    /// Counts one latency.
    pub fn record(&mut self, latency_ns: i64) {
        self.record_n(latency_ns, 1);
    }

    /// Counts one latency `n` times.
    pub fn record_n(&mut self, latency_ns: i64, n: u64) {
        if n == 0 {
            return;
        }
        self.n += n;
        self.min_ns = Some(self.min_ns.map_or(latency_ns, |min| min.min(latency_ns)));
        self.max_ns = Some(self.max_ns.map_or(latency_ns, |max| max.max(latency_ns)));
        self.sum_ns += i128::from(latency_ns) * i128::from(n);
        let length_ns = u128::from(latency_ns.unsigned_abs());
        let square = length_ns * length_ns;
        // A multiplication of 128 bits takes longer than all else.
        let squares = if n == 1 { square } else { square.saturating_mul(u128::from(n)) };
        self.sum_of_squares_ns2 = self.sum_of_squares_ns2.saturating_add(squares);
        let bucket = bucket_of(u64::try_from(latency_ns).unwrap_or(0));
        match self.counts.binary_search_by_key(&bucket, |count| count.bucket) {
            Ok(at) => self.counts[at].n += n,
            Err(at) => self.counts.insert(at, Count { bucket, n }),
        }
    }

    /// Adds `other`, exactly as if its samples had been recorded here.
    pub fn merge(&mut self, other: &Histogram) {
        self.n += other.n;
        self.min_ns = [self.min_ns, other.min_ns].into_iter().flatten().min();
        self.max_ns = self.max_ns.max(other.max_ns);
        self.sum_ns += other.sum_ns;
        self.sum_of_squares_ns2 = self.sum_of_squares_ns2.saturating_add(other.sum_of_squares_ns2);
        if self.counts.is_empty() {
            self.counts.clone_from(&other.counts);
            return;
        }
        // Both are ascending, and so short that a linear scan is faster than a search.
        let mut at = 0;
        for &count in &other.counts {
            let before = |own: &&Count| own.bucket < count.bucket;
            at += self.counts[at..].iter().take_while(before).count();
            match self.counts.get_mut(at) {
                Some(own) if own.bucket == count.bucket => own.n += count.n,
                _ => self.counts.insert(at, count),
            }
        }
    }

    /// The mean of all samples, ns, rounded towards 0; `None` without samples.
    pub fn mean_ns(&self) -> Option<i64> {
        i64::try_from(self.sum_ns.checked_div(i128::from(self.n))?).ok()
    }

    /// The non-empty buckets, ascending.
    pub fn buckets(&self) -> impl DoubleEndedIterator<Item = Bucket> + '_ {
        self.counts.iter().map(|&Count { bucket, n }| {
            let (lower_ns, upper_ns) = edges(bucket);
            Bucket { lower_ns, upper_ns, count: n }
        })
    }

    /// Number of samples in buckets wholly above `ns`: exceedances, at the resolution of a bucket.
    pub fn count_above(&self, ns: u64) -> u64 {
        let highest = bucket_of(ns);
        self.counts.iter().rev().take_while(|count| count.bucket > highest).map(|count| count.n).sum()
    }
}

impl From<Histogram> for Stored {
    fn from(h: Histogram) -> Stored {
        Stored {
            n: h.n,
            min_ns: h.min_ns,
            max_ns: h.max_ns,
            sum_ns: h.sum_ns.to_string(),
            sum_of_squares_ns2: h.sum_of_squares_ns2.to_string(),
            buckets: h.counts.iter().map(|count| (edges(count.bucket).0, count.n)).collect(),
        }
    }
}

impl TryFrom<Stored> for Histogram {
    type Error = String;

    fn try_from(stored: Stored) -> Result<Histogram, String> {
        if let Some((lower, _)) = stored.buckets.iter().find(|(lower, _)| edges(bucket_of(*lower)).0 != *lower) {
            return Err(format!("invalid histogram: {lower} ns is not the lower edge of a bucket"));
        }
        let sum = stored.buckets.iter().try_fold(0, |sum: u64, (_, count)| sum.checked_add(*count));
        if !stored.buckets.is_sorted_by(|a, b| a.0 < b.0) || sum != Some(stored.n) {
            return Err(format!("invalid histogram: the buckets do not add up to n = {}", stored.n));
        }
        let integer = |text: &str| text.parse().map_err(|_| format!("invalid integer `{text}`"));
        let squares = &stored.sum_of_squares_ns2;
        Ok(Histogram {
            n: stored.n,
            min_ns: stored.min_ns,
            max_ns: stored.max_ns,
            sum_ns: integer(&stored.sum_ns)?,
            sum_of_squares_ns2: squares.parse().map_err(|_| format!("invalid integer `{squares}`"))?,
            counts: stored.buckets.iter().map(|(lower, n)| Count { bucket: bucket_of(*lower), n: *n }).collect(),
        })
    }
}

/// The latencies of one interval of the window.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Slice {
    /// First cycle, counted from the first measured one.
    pub first_cycle: u64,
    /// Cycles in the slice.
    pub cycles: u64,
    /// Latencies whose due time lies in the slice.
    pub histogram: Histogram,
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn buckets_are_exact_below_256_ns_and_never_wider_than_1_in_128() {
        for (ns, bucket) in [
            (0, (0, 0)),
            (255, (255, 255)),
            (256, (256, 257)),
            (511, (510, 511)),
            (512, (512, 515)),
            (1 << 62, (1 << 62, (1 << 62) + (1 << 55) - 1)),
            (u64::MAX, (255 << 56, u64::MAX)),
        ] {
            assert_eq!(edges(bucket_of(ns)), bucket, "{ns}");
        }
    }

    #[test]
    fn a_count_takes_ten_bytes() {
        assert_eq!(size_of::<Count>(), 10);
    }

    #[test]
    fn nothing_falls_out() {
        let h = Histogram::of(&[-7, 0, 1, 300, 301, i64::MAX]);
        assert_eq!((h.n, h.min_ns, h.max_ns), (6, Some(-7), Some(i64::MAX)));
        assert_eq!(h.sum_ns, 595 + i128::from(i64::MAX));
        let counts: Vec<_> = h.buckets().map(|b| (b.lower_ns, b.count)).collect();
        assert_eq!(counts, [(0, 2), (1, 1), (300, 2), (255 << 55, 1)]);
        assert_eq!((h.count_above(0), h.count_above(1), h.count_above(301)), (4, 3, 1));
    }

    #[test]
    fn counting_many_equals_counting_one_by_one() {
        let mut many = Histogram::of(&[7]);
        many.record_n(-300, 3);
        many.record_n(1 << 40, 0);
        assert_eq!(many, Histogram::of(&[-300, 7, -300, -300]));
    }

    #[test]
    fn sums_are_exact_where_floats_are_not() {
        // NIST StRD NumAcc4 scaled to integers: mean 10000000.2, sd 0.1.
        let mut h = Histogram::default();
        h.record(100_000_002);
        for _ in 0..500 {
            h.record(100_000_001);
            h.record(100_000_003);
        }
        let n = i128::from(h.n);
        assert_eq!(h.sum_ns, 100_000_002 * n);
        let squares = i128::try_from(h.sum_of_squares_ns2).unwrap();
        assert_eq!(squares * n - h.sum_ns * h.sum_ns, n * (n - 1), "variance of exactly 1");
    }

    #[test]
    fn damaged_counts_are_refused() {
        let json = serde_json::to_string(&Histogram::of(&[5, 300])).unwrap();
        assert_eq!(serde_json::from_str::<Histogram>(&json).unwrap(), Histogram::of(&[5, 300]));
        for (from, to) in [("[300,1]", "[301,1]"), ("[300,1]", "[300,2]"), ("[5,1]", "[300,1]"), ("\"305\"", "\"x\"")] {
            assert!(serde_json::from_str::<Histogram>(&json.replace(from, to)).is_err(), "{from} -> {to}");
        }
    }

    proptest! {
        #[test]
        fn merging_equals_recording(a in prop::collection::vec(any::<i64>(), 0..40), b in prop::collection::vec(any::<i64>(), 0..40), c in prop::collection::vec(any::<i64>(), 0..40)) {
            let mut left = Histogram::of(&a);
            left.merge(&Histogram::of(&b));
            left.merge(&Histogram::of(&c));
            let mut bc = Histogram::of(&b);
            bc.merge(&Histogram::of(&c));
            let mut right = Histogram::of(&a);
            right.merge(&bc);
            prop_assert_eq!(&left, &right);
            prop_assert_eq!(left, Histogram::of(&[a, b, c].concat()));
        }

        #[test]
        fn a_value_lies_in_its_bucket(ns in any::<u64>()) {
            let (lower, upper) = edges(bucket_of(ns));
            prop_assert!(lower <= ns && ns <= upper && bucket_of(lower) == bucket_of(upper));
            prop_assert!(upper - lower <= lower / 128);
        }
    }
}
