//! Shards: the parts of a run that several machines make.

use crate::Planned;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::num::NonZero;
use std::str::FromStr;

/// One of several parts of a run: `2/4` is the second of four.
///
/// Every measurement of a run belongs to exactly one of its shards, so that shards made anywhere can be merged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Shard {
    /// Its index, from 0; below `of`.
    index: u32,
    of: NonZero<u32>,
}

/// Reason why a text is not a shard.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid shard \"{0}\": expected I/N, from 1/N to N/N, with N up to 10000")]
pub struct ShardError(String);

impl Shard {
    /// Limit of the number of shards: that of the blocks of a run.
    const MAX: u32 = 10_000;

    /// Number of shards of the run.
    pub fn of(self) -> u32 {
        self.of.get()
    }

    /// Every shard of a run that has as many as this one's.
    pub fn all(self) -> impl Iterator<Item = Shard> {
        (0..self.of.get()).map(move |index| Shard { index, of: self.of })
    }

    /// How many of `n` blocks or measurements, which are dealt to the shards in turn, it gets.
    pub fn share_of(self, n: usize) -> usize {
        let of = usize::try_from(self.of.get()).unwrap_or(usize::MAX);
        let before = usize::try_from(self.index).unwrap_or(usize::MAX);
        n.saturating_sub(before).div_ceil(of)
    }

    /// Whether a measurement belongs to it.
    ///
    /// Whole blocks do on a real machine, so that one machine measures all cells of a block in alternation. In virtual
    /// time, which is the same everywhere, single measurements are dealt in turn.
    pub fn has(self, planned: &Planned, n_cells: usize, is_virtual: bool) -> bool {
        usize::try_from(self.index).is_ok_and(|index| index == self.index_of(planned, n_cells, is_virtual))
    }

    /// Index of the shard of [`Shard::all`] to which a measurement belongs.
    pub fn index_of(self, planned: &Planned, n_cells: usize, is_virtual: bool) -> usize {
        let block = u64::from(planned.block);
        let number = match is_virtual {
            true => block.wrapping_mul(n_cells as u64).wrapping_add(u64::from(planned.position)),
            false => block,
        };
        usize::try_from(number % u64::from(self.of.get())).unwrap_or(usize::MAX)
    }
}

impl FromStr for Shard {
    type Err = ShardError;

    fn from_str(text: &str) -> Result<Shard, ShardError> {
        let number = |text: &str| {
            let is_plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
            text.parse::<u32>().ok().filter(|number| is_plain && (1..=Shard::MAX).contains(number))
        };
        let parts = text.split_once('/').and_then(|(number_of_it, of)| Some((number(number_of_it)?, number(of)?)));
        let shard = parts
            .filter(|(number, of)| number <= of)
            .and_then(|(number, of)| Some(Shard { index: number - 1, of: NonZero::new(of)? }));
        shard.ok_or_else(|| ShardError(text.to_owned()))
    }
}

impl TryFrom<String> for Shard {
    type Error = ShardError;

    fn try_from(text: String) -> Result<Shard, ShardError> {
        text.parse()
    }
}

impl From<Shard> for String {
    fn from(shard: Shard) -> String {
        shard.to_string()
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.index + 1, self.of)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::planned_order;

    #[test]
    fn a_shard_is_written_as_it_is_read() {
        for text in ["1/1", "2/4", "4/4", "10000/10000"] {
            let shard: Shard = text.parse().unwrap();
            assert_eq!(shard.to_string(), text);
            assert_eq!(serde_json::to_string(&shard).unwrap(), format!("\"{text}\""));
        }
        for text in ["", "1", "/", "0/4", "5/4", "1/0", "1/10001", "-1/4", "+1/4", "1/4/4", " 1/4", "1/4294967297"] {
            let expected = format!("invalid shard \"{text}\": expected I/N, from 1/N to N/N, with N up to 10000");
            assert_eq!(text.parse::<Shard>().map_err(|err| err.to_string()), Err(expected));
            assert!(serde_json::from_slice::<Shard>(format!("\"{text}\"").as_bytes()).is_err());
        }
    }

    #[test]
    fn every_measurement_belongs_to_one_shard_and_blocks_of_a_machine_stay_whole() {
        let (n_cells, blocks) = (3, 7);
        let order = planned_order(n_cells, blocks, 5);
        for n in 1..=9 {
            let first: Shard = format!("1/{n}").parse().unwrap();
            for is_virtual in [false, true] {
                let of = |shard: Shard| order.iter().filter(move |planned| shard.has(planned, n_cells, is_virtual));
                let mut sizes: Vec<_> = first.all().map(|shard| of(shard).count()).collect();
                let shares = first.all().map(|shard| match is_virtual {
                    true => shard.share_of(order.len()),
                    false => n_cells * shard.share_of(7),
                });
                assert_eq!(sizes, shares.collect::<Vec<_>>(), "{n}");
                assert_eq!(sizes.iter().sum::<usize>(), order.len(), "{n}");
                let owners =
                    |planned: &Planned| first.all().filter(|one| one.has(planned, n_cells, is_virtual)).count();
                assert!(order.iter().all(|planned| owners(planned) == 1));
                sizes.sort_unstable();
                let spread = sizes.last().unwrap() - sizes.first().unwrap();
                assert!(spread <= if is_virtual { 1 } else { n_cells }, "{n} {sizes:?}");
                let whole = first.all().all(|shard| of(shard).count() % n_cells == 0);
                assert!(whole || is_virtual, "{n}");
            }
        }
    }
}
