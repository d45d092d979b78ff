//! Designs of experiments: the settings of each run, with every knob at one of its two values.

/// A two-level design: for each run, whether each knob is at its high value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Design {
    /// One row for each run of a replicate.
    pub runs: Vec<Vec<bool>>,
    /// Effects that the design can estimate.
    pub kind: Kind,
}

/// Effects that a design can estimate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// All combinations: effects and interactions of any two knobs.
    Full,
    /// Resolution IV (Box, Hunter & Hunter 2005, table 6.22): effects are confounded only with interactions of three or
    /// more knobs; interactions of two are confounded with each other.
    Fraction,
    /// Plackett & Burman (1946): effects only, confounded with interactions of two.
    MainEffectsOnly,
}

/// Knobs that can be examined together.
pub const MAX_KNOBS: usize = 11;

/// The columns of the generators of a fraction in 16 runs: each further knob is the product of these of the first four.
const GENERATORS: [[usize; 3]; 4] = [[0, 1, 2], [0, 1, 3], [0, 2, 3], [1, 2, 3]];

/// The first row of the design of Plackett and Burman for 12 runs; the next ten are its rotations.
const PLACKETT_BURMAN: [bool; 11] = [true, true, false, true, true, true, false, false, false, true, false];

impl Design {
    /// The design for this many knobs: all combinations up to 4, a fraction in 16 runs up to 8, and 12 runs up to 11.
    /// `None` without knobs or for more than [`MAX_KNOBS`].
    pub fn of(knobs: usize) -> Option<Design> {
        let bits = |n: usize, run: usize| (0..n).map(|knob| run >> knob & 1 == 1).collect::<Vec<_>>();
        match knobs {
            1..=4 => Some(Design { runs: (0..1 << knobs).map(|run| bits(knobs, run)).collect(), kind: Kind::Full }),
            5..=8 => {
                let runs = (0..16).map(|run| {
                    let mut row = bits(4, run);
                    let product =
                        |columns: [usize; 3]| columns.iter().filter(|knob| run >> **knob & 1 == 1).count() % 2;
                    row.extend(GENERATORS.iter().take(knobs - 4).map(|columns| product(*columns) == 1));
                    row
                });
                Some(Design { runs: runs.collect(), kind: Kind::Fraction })
            }
            9..=MAX_KNOBS => {
                let rotated = |by: usize| PLACKETT_BURMAN.iter().cycle().skip(by).take(knobs).copied().collect();
                let mut runs: Vec<Vec<bool>> = (0..11).map(rotated).collect();
                runs.push(vec![false; knobs]);
                Some(Design { runs, kind: Kind::MainEffectsOnly })
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sign(high: bool) -> i32 {
        if high { 1 } else { -1 }
    }

    #[test]
    fn every_design_is_balanced_and_its_knobs_are_independent() {
        for knobs in 1..=MAX_KNOBS {
            let design = Design::of(knobs).unwrap();
            for a in 0..knobs {
                assert_eq!(design.runs.iter().map(|run| sign(run[a])).sum::<i32>(), 0, "{knobs}: {a} balanced");
                for b in 0..a {
                    let product: i32 = design.runs.iter().map(|run| sign(run[a]) * sign(run[b])).sum();
                    assert_eq!(product, 0, "{knobs}: {a} and {b}");
                }
            }
        }
        assert_eq!((Design::of(0), Design::of(12)), (None, None));
    }

    #[test]
    fn a_fraction_mixes_no_effect_up_with_an_interaction_of_two() {
        let design = Design::of(8).unwrap();
        for a in 0..8 {
            for b in 0..8 {
                for c in (0..8).filter(|c| *c != b && *c != a && a != b) {
                    let product: i32 = design.runs.iter().map(|run| sign(run[a]) * sign(run[b]) * sign(run[c])).sum();
                    assert_eq!(product, 0, "{a} {b} {c}");
                }
            }
        }
    }

    #[test]
    fn designs_have_their_sizes() {
        for (knobs, runs, kind) in
            [(1, 2, Kind::Full), (4, 16, Kind::Full), (5, 16, Kind::Fraction), (9, 12, Kind::MainEffectsOnly)]
        {
            let design = Design::of(knobs).unwrap();
            assert_eq!((design.runs.len(), design.kind), (runs, kind), "{knobs}");
        }
    }
}
