//! The engine of tests with random mutations, which `cargo xtask fuzz` runs for long.

use super::cpu_us;
use punctual_model::SplitMix64;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// CPU time of one try, us: far more than the largest input takes.
const MOST_US: u64 = 120_000_000;
/// Limit of bytes added by a repetition.
const MAX_ADDED: usize = 1 << 17;

/// Random choices by seed, so that findings can be reproduced.
#[derive(Debug)]
pub struct Random(SplitMix64);

impl Random {
    /// A number below `end`; 0 if that is 0.
    pub fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.0.next_bits() % u64::try_from(end.max(1)).expect("64 bits")).expect("below a usize")
    }

    /// One of several.
    ///
    /// # Panics
    /// If there is none.
    pub fn one<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.below(of.len())]
    }
}

/// Calls `tried` with mutations, `n` times or as long as requested; it returns whether its input was accepted. Where
/// sums of impossible numbers `may_wrap` in a release build, an overflow passes.
///
/// # Panics
/// As `tried`, whose input is kept in a file then; or if it accepts everything, or nothing, or takes minutes.
#[expect(clippy::disallowed_macros, reason = "read by developers only")]
pub fn fuzz(
    name: &str,
    n: u64,
    may_wrap: bool,
    mut mutated: impl FnMut(&mut Random) -> Vec<u8>,
    tried: impl Fn(&[u8]) -> bool,
) {
    let seed = fuzz_seed();
    let (mut random, mut runs, mut accepted, mut wrapped) = (Random(SplitMix64::new(seed)), 0_u64, 0_u64, 0_u64);
    for run in fuzz_runs(n) {
        let bytes = mutated(&mut random);
        let began = cpu_us();
        match catch_unwind(AssertUnwindSafe(|| tried(&bytes))) {
            Ok(is_accepted) => accepted += u64::from(is_accepted),
            Err(panic) if may_wrap && is_overflow(&*panic) => wrapped += 1,
            Err(panic) => {
                let path = std::env::temp_dir().join(format!("punctual-fuzz-{name}"));
                std::fs::write(&path, &bytes).expect("the input is kept");
                eprintln!("{name}: run {run} with seed {seed} panics; the file is {}", path.display());
                resume_unwind(panic);
            }
        }
        assert!(cpu_us() - began < MOST_US, "{} bytes took {} us", bytes.len(), cpu_us() - began);
        runs += 1;
    }
    eprintln!("{name}: {runs} files, {accepted} accepted, {wrapped} with sums that wrap");
    assert!(accepted > 0 && accepted < runs, "mutations that are all the same to the reader show nothing");
}

/// Some mutations of one of `seeds`, also with one of `words` put in, or in place of a number.
pub fn mutate(seeds: &[Vec<u8>], words: &[&[u8]], random: &mut Random) -> Vec<u8> {
    let mut bytes = random.one(seeds).clone();
    for _ in 0..=random.below(4) {
        let (from, to) = (random.below(bytes.len() + 1), random.below(bytes.len() + 1));
        let (from, to) = (from.min(to), from.max(to).min(from.min(to) + 200));
        match random.below(9) {
            0 => drop(bytes.drain(from..to)),
            1 => drop(bytes.splice(from..from, random.one(words).to_vec())),
            2 => {
                let Some(start) = bytes[from..].iter().position(u8::is_ascii_digit).map(|at| from + at) else {
                    continue;
                };
                let end = bytes[start..].iter().position(|b| !b.is_ascii_digit()).map_or(bytes.len(), |n| start + n);
                drop(bytes.splice(start..end, random.one(words).to_vec()));
            }
            3 if from < bytes.len() => bytes[from] = u8::try_from(random.below(256)).unwrap_or(0),
            4 if from < bytes.len() => bytes[from] ^= 1 << random.below(8),
            5 => {
                let copy = bytes[from..to].to_vec();
                let at = random.below(bytes.len() + 1);
                drop(bytes.splice(at..at, copy));
            }
            6 => bytes.truncate(from),
            // Many repetitions, which reveal superlinear cost.
            7 => {
                let copies = 1 + random.below(MAX_ADDED / (to - from + 1));
                let repeated = bytes[from..to].repeat(copies);
                drop(bytes.splice(from..to, repeated));
            }
            _ => {
                let other = random.one(seeds);
                let cut = random.below(other.len() + 1);
                bytes.truncate(from);
                bytes.extend_from_slice(&other[cut..]);
            }
        }
    }
    bytes
}

/// Runs of a fuzzing test: `n` or `PUNCTUAL_FUZZ_RUNS`, or as many as there is CPU time for in the seconds of
/// `PUNCTUAL_FUZZ_SECONDS`, which `cargo xtask fuzz` sets.
pub fn fuzz_runs(n: u64) -> impl Iterator<Item = u64> {
    let (seconds, n) = (number("PUNCTUAL_FUZZ_SECONDS"), number("PUNCTUAL_FUZZ_RUNS").unwrap_or(n));
    let began = cpu_us();
    (0..).take_while(move |run| seconds.map_or(*run < n, |seconds| cpu_us() - began < seconds * 1_000_000))
}

/// The seed of a fuzzing test.
pub fn fuzz_seed() -> u64 {
    number("PUNCTUAL_FUZZ_SEED").unwrap_or(1)
}

/// Whether a panic is an arithmetic overflow, which only builds with checks detect.
pub fn is_overflow(panic: &(dyn std::any::Any + Send)) -> bool {
    let text = panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.is_some_and(|text| text.starts_with("attempt to ") && text.ends_with(" with overflow"))
}

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fuzzing_has_its_runs() {
        if number("PUNCTUAL_FUZZ_SECONDS").is_none() {
            assert_eq!(fuzz_runs(3).collect::<Vec<_>>(), [0, 1, 2]);
        }
    }

    #[test]
    #[should_panic(expected = "show nothing")]
    fn a_reader_that_accepts_everything_is_not_tested() {
        fuzz("all", 4, false, |random| mutate(&[b"abc".to_vec()], &[b"1"], random), |_| true);
    }
}
