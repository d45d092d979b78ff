//! Interim looks of a run that stops when its intervals are narrow enough.

use crate::stats::woodruff::CONFIDENCE;
use punctual_model::{Header, Until};

/// Number of blocks before the first look.
const FIRST_LOOK: u32 = 2;

/// Looks of a run that stops when an interval is narrow enough: after each doubling of the measured time, from the
/// first to the most.
///
/// More looks need more confidence each: 5 % is divided by the number of looks, so that all intervals hold together in
/// 95 % of runs (Bonferroni).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Looks {
    first: u32,
    most: u32,
}

impl Looks {
    /// Looks after `first` blocks and every doubling up to `most`, and at `most` itself. `None` unless
    /// `1 <= first <= most`.
    pub fn new(first: u32, most: u32) -> Option<Looks> {
        (1 <= first && first <= most).then_some(Looks { first, most })
    }

    /// Numbers of blocks after which there is a look.
    pub fn blocks(self) -> impl Iterator<Item = u32> {
        let Looks { first, most } = self;
        let doublings = std::iter::successors(Some(first), |blocks| blocks.checked_mul(2));
        doublings.take_while(move |blocks| *blocks < most).chain(std::iter::once(most))
    }

    /// The confidence of the intervals at each look.
    pub fn confidence(self) -> f64 {
        let n = u32::try_from(self.blocks().count()).unwrap_or(u32::MAX);
        1.0 - (1.0 - CONFIDENCE) / f64::from(n)
    }
}

/// Looks of a run that stops when its intervals are narrow enough; `None` for other runs.
pub fn looks(header: &Header) -> Option<Looks> {
    let most = header.plan.repetitions;
    (header.plan.until == Some(Until::Enough)).then(|| Looks::new(FIRST_LOOK.min(most), most)).flatten()
}

/// The confidence of the quantiles' intervals of a run: that of each look, if there are several.
pub(crate) fn confidence(header: &Header) -> f64 {
    looks(header).map_or(CONFIDENCE, Looks::confidence)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_double_and_share_the_error() {
        let looks = Looks::new(6, 50).unwrap();
        assert_eq!(looks.blocks().collect::<Vec<_>>(), [6, 12, 24, 48, 50]);
        assert!((looks.confidence() - 0.99).abs() < 1e-12);
        assert_eq!(Looks::new(6, 6).unwrap().blocks().collect::<Vec<_>>(), [6]);
        assert_eq!((Looks::new(0, 6), Looks::new(7, 6)), (None, None));
    }
}
