//! After how many blocks a run is looked at that ends when its numbers are sure enough.

use crate::stats::woodruff::CONFIDENCE;
use model::{Header, Until};

/// Blocks after which a run is looked at for the first time.
const FIRST_LOOK: u32 = 2;

/// Looks at which a run is judged that stops when an interval is narrow enough: after each doubling of the measured time,
/// from the first to the most.
///
/// The more often one looks, the more confidence each look takes: 5 % is divided by the number of looks, so that all
/// intervals hold together in 95 % of runs (Bonferroni).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Looks {
    first: u32,
    most: u32,
}

impl Looks {
    /// Looks after `first` blocks and every doubling up to `most`, and at `most` itself. `None` unless
    /// `1 <= first <= most`.
    #[must_use]
    pub fn new(first: u32, most: u32) -> Option<Looks> {
        (1 <= first && first <= most).then_some(Looks { first, most })
    }

    /// After how many blocks they are.
    pub fn blocks(self) -> impl Iterator<Item = u32> {
        let Looks { first, most } = self;
        let doublings = std::iter::successors(Some(first), |blocks| blocks.checked_mul(2));
        doublings.take_while(move |blocks| *blocks < most).chain(std::iter::once(most))
    }

    /// The confidence of the intervals at each look.
    #[must_use]
    pub fn confidence(self) -> f64 {
        let n = u32::try_from(self.blocks().count()).unwrap_or(u32::MAX);
        1.0 - (1.0 - CONFIDENCE) / f64::from(n)
    }
}

/// After how many blocks a run that ends when it is enough is looked at; `None` for other runs.
#[must_use]
pub fn looks(header: &Header) -> Option<Looks> {
    let most = header.plan.repetitions;
    (header.plan.until == Some(Until::Enough)).then(|| Looks::new(FIRST_LOOK.min(most), most)).flatten()
}

/// The confidence of the quantiles' intervals of a run: that of each look, if it is looked at several times.
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
