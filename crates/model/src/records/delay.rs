//! Delays of wake-ups that were searched in virtual time, and the execution of one of them.

use super::run::Planned;
use crate::Order;
use crate::words::word::words;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

words! {
    /// What the longest part of a delay was.
    json DelayKind, "kind of delay" {
        /// The timer's interrupt was not taken: interrupts were off.
        InterruptsOff = "interrupts-off",
        /// The scheduler was not called: preemption was off, or the kernel has none there.
        PreemptionOff = "preemption-off",
        /// Work in softirq context.
        Softirq = "softirq",
        /// Handlers of interrupts, that of the timer included.
        Interrupt = "interrupt",
        /// Other threads of a higher priority, and the change to the woken one.
        Other = "other",
    }
}

/// Place of a wake-up in a search: enough to repeat it, with the same cell and program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Witness {
    /// Number of the guest, which starts at another phase.
    pub block: u32,
    /// Index of the cycle, counted from the first of the warm-up.
    pub cycle: u64,
    /// How much earlier its due time is, ns.
    pub earlier_ns: u64,
}

impl fmt::Display for Witness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.block, self.cycle, self.earlier_ns)
    }
}

/// A witness in another form than `BLOCK/CYCLE/EARLIER`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid witness `{0}`: expected BLOCK/CYCLE/EARLIER as `lab worst` prints it, like 3/1204/61877")]
pub struct WitnessError(String);

impl FromStr for Witness {
    type Err = WitnessError;

    fn from_str(text: &str) -> Result<Witness, WitnessError> {
        let mut parts = text.split('/');
        let witness = (|| {
            Some(Witness {
                block: parts.next()?.parse().ok()?,
                cycle: parts.next()?.parse().ok()?,
                earlier_ns: parts.next()?.parse().ok()?,
            })
        })();
        witness.filter(|_| parts.next().is_none()).ok_or_else(|| WitnessError(text.to_owned()))
    }
}

impl Serialize for Witness {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Witness {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Witness, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

/// A stretch of instructions in one function, called through the same others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece {
    /// Name of the function, with its module; `user` in programs.
    pub function: Arc<str>,
    /// Instructions from the due time to its first.
    pub from: u64,
    /// Number of instructions, calls left out.
    pub instructions: u64,
    /// Number of known callers.
    pub depth: usize,
}

/// The execution of a late wake-up, from its due time to its reading of the clock.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(into = "Packed", try_from = "Packed")]
pub struct Film {
    /// All instructions in order.
    pub pieces: Vec<Piece>,
    /// Instructions of each kind, in the order of [`DelayKind::ALL`].
    pub kinds: [u64; DelayKind::ALL.len()],
    /// Function in which the due time was, helpers of locks left out.
    pub begins: String,
    /// The known callers of that function and itself, outermost first.
    pub path: Vec<String>,
}

impl Film {
    /// The most callers of a piece of a film that is read.
    const DEEPEST: usize = 256;

    /// All instructions: the latency, ns.
    pub fn instructions(&self) -> u64 {
        self.pieces.iter().map(|piece| piece.instructions).sum()
    }

    /// Functions with the sum of their own instructions, most first.
    pub fn functions(&self) -> Vec<(&str, u64)> {
        let mut sums: HashMap<&str, u64> = HashMap::new();
        for piece in &self.pieces {
            *sums.entry(&piece.function).or_default() += piece.instructions;
        }
        let mut sums: Vec<_> = sums.into_iter().collect();
        sums.order_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(b.0)));
        sums
    }

    /// Functions with their calls as nested frames, in the order of their beginnings.
    pub fn frames(&self) -> Vec<Frame<'_>> {
        let mut frames: Vec<Frame<'_>> = Vec::new();
        // Places of the open frames, from the outermost.
        let mut open: Vec<usize> = Vec::new();
        for piece in &self.pieces {
            open.retain(|place| frames[*place].depth <= piece.depth);
            let innermost = open.last().map(|place| (frames[*place].depth, frames[*place].function));
            if innermost != Some((piece.depth, &*piece.function)) {
                open.retain(|place| frames[*place].depth < piece.depth);
                open.push(frames.len());
                let Piece { function, from, depth, .. } = piece;
                frames.push(Frame { function, depth: *depth, from: *from, to: *from });
            }
            for place in &open {
                frames[*place].to = piece.from + piece.instructions;
            }
        }
        frames
    }

    /// The kind with most instructions.
    pub fn kind(&self) -> DelayKind {
        let kinds = DelayKind::ALL.into_iter().zip(self.kinds).rev();
        kinds.max_by_key(|(_, instructions)| *instructions).map_or(DelayKind::Other, |(kind, _)| kind)
    }
}

/// A film as JSON: each name once.
#[derive(Serialize, Deserialize)]
struct Packed {
    functions: Vec<Arc<str>>,
    /// Place of the function, number of instructions, number of callers.
    pieces: Vec<(usize, u64, usize)>,
    kinds: [u64; DelayKind::ALL.len()],
    begins: String,
    path: Vec<String>,
}

impl From<Film> for Packed {
    fn from(film: Film) -> Packed {
        let Film { pieces, kinds, begins, path } = film;
        let mut places = HashMap::new();
        let mut functions = Vec::new();
        let packed = pieces.into_iter().map(|Piece { function, from: _, instructions, depth }| {
            let place = *places.entry(function).or_insert_with_key(|function| {
                functions.push(Arc::clone(function));
                functions.len() - 1
            });
            (place, instructions, depth)
        });
        let pieces = packed.collect();
        Packed { functions, pieces, kinds, begins, path }
    }
}

impl TryFrom<Packed> for Film {
    type Error = &'static str;

    fn try_from(packed: Packed) -> Result<Film, &'static str> {
        let Packed { functions, pieces, kinds, begins, path } = packed;
        let mut all = 0_u64;
        let unpacked = pieces.into_iter().map(|(place, instructions, depth)| {
            let function = functions.get(place).map(Arc::clone).ok_or("a function without a name")?;
            let from = all;
            all = all.checked_add(instructions).ok_or("too many instructions")?;
            (depth <= Film::DEEPEST).then_some(Piece { function, from, instructions, depth }).ok_or("too many callers")
        });
        let pieces = unpacked.collect::<Result<_, _>>()?;
        Ok(Film { pieces, kinds, begins, path })
    }
}

/// A film of a wake-up of a run, kept with the run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptFilm {
    /// The measurement within the run.
    #[serde(flatten)]
    pub planned: Planned,
    /// Index of the cycle within the measurement.
    pub cycle: u64,
    /// The execution.
    pub film: Arc<Film>,
}

/// A call of a function in a film.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame<'a> {
    /// Name of the function.
    pub function: &'a str,
    /// Number of known callers.
    pub depth: usize,
    /// Instructions from the due time to its first.
    pub from: u64,
    /// One past its last.
    pub to: u64,
}

/// A delay that a search has found, from its first instruction on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Delay {
    /// Latency of a wake-up that is due at its first instruction, virtual ns.
    pub latency_ns: u64,
    /// Its longest part.
    pub kind: DelayKind,
    /// Instructions of that part.
    pub kind_instructions: u64,
    /// Function in which it begins.
    pub begins: String,
    /// The known callers of that function and itself, outermost first.
    pub path: Vec<String>,
    /// Function with most of its instructions.
    pub function: String,
    /// Place of the wake-up, as `punctual lab film` takes it.
    #[schemars(with = "String")]
    pub witness: Witness,
    /// Latency of the sampled wake-up that led to it, virtual ns.
    pub sampled_ns: u64,
    /// Number of refined wake-ups that led to it.
    pub reached: u32,
    /// Whether its beginning was found; it is longer otherwise.
    pub is_whole: bool,
}

impl Delay {
    /// Whether it begins in this function, or has most of its instructions in it; its module may be left out.
    pub fn is_in(&self, function: &str) -> bool {
        [&self.begins, &self.function].into_iter().any(|name| name == function || without_module(name) == function)
    }
}

/// The name of a function without its module.
pub fn without_module(name: &str) -> &str {
    name.split_once(' ').map_or(name, |(name, _)| name)
}

/// Longest delays of wake-ups on one kernel, as a search has found them.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct LongestDelays {
    /// The kernel as requested.
    pub kernel: String,
    /// Background load.
    pub load: String,
    /// Policy of the thread that wakes up.
    pub policy: String,
    /// Number that chose the phases.
    pub seed: u32,
    /// Virtual time of all guests, ns.
    pub searched_ns: u64,
    /// Guests with sampled wake-ups.
    pub guests: u32,
    /// Sampled wake-ups.
    pub sampled: u64,
    /// The longest latency among them, ns.
    pub sampled_max_ns: u64,
    /// Wake-ups with a moved due time.
    pub moved: u64,
    /// Most instructions of each kind in one refined wake-up, in the order of [`DelayKind::ALL`].
    pub longest_of_kind: [u64; DelayKind::ALL.len()],
    /// The delays, longest first.
    pub delays: Vec<Delay>,
    /// Guests that failed during the search, with the reason: a panic is a find.
    pub failed: Vec<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(function: &str, from: u64, instructions: u64, depth: usize) -> Piece {
        Piece { function: function.into(), from, instructions, depth }
    }

    #[test]
    fn frames_last_until_a_caller_goes_on() {
        let pieces = vec![
            piece("f", 0, 10, 1),
            piece("g", 10, 5, 2),
            piece("h", 15, 1, 3),
            piece("g", 16, 4, 2),
            piece("f", 20, 2, 1),
            piece("g", 22, 1, 2),
            piece("e", 23, 7, 0),
        ];
        let film = Film { pieces, ..Film::default() };
        let frames: Vec<_> = film.frames().iter().map(|f| (f.function, f.depth, f.from, f.to)).collect();
        assert_eq!(frames, [("f", 1, 0, 23), ("g", 2, 10, 20), ("h", 3, 15, 16), ("g", 2, 22, 23), ("e", 0, 23, 30)]);
        assert_eq!((film.instructions(), film.functions()[..2].to_vec()), (30, vec![("f", 12), ("g", 10)]));
        assert_eq!(Film::default().frames(), []);
        let json = serde_json::to_string(&film).unwrap();
        assert!(json.starts_with(r#"{"functions":["f","g","h","e"],"pieces":[[0,10,1],[1,5,2],"#), "{json}");
        assert_eq!(serde_json::from_str::<Film>(&json).unwrap(), film);
        for (damage, said) in [
            ("[[4,10,1],", "a function without a name"),
            ("[[0,10,257],", "too many callers"),
            ("[[0,18446744073709551615,1],", "too many instructions"),
        ] {
            let err = serde_json::from_str::<Film>(&json.replace("[[0,10,1],", damage)).unwrap_err().to_string();
            assert!(err.starts_with(said), "{err}");
        }
    }

    #[test]
    fn a_witness_is_read_as_it_is_printed() {
        for text in ["0/0/0", "3/1204/61877"] {
            assert_eq!(text.parse::<Witness>().map(|witness| witness.to_string()), Ok(text.to_owned()));
        }
        for text in ["", "1", "1/2", "1/2/3/4", "1/2/-3", "a/2/3", "1//3"] {
            assert!(text.parse::<Witness>().is_err(), "{text}");
        }
    }
}
