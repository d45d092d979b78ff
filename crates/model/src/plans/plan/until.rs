//! Conditions that end a run before all of its blocks are measured.

use crate::words::word::words;

words! {
    /// The condition that ends a run; the number of blocks is then an upper bound.
    json Until, "end" {
        /// Its two cells are shown to differ or to be equivalent. Checked after every block.
        Decided = "decided",
        /// Its numbers are as precise as required. Checked whenever the measured time has doubled.
        Enough = "enough",
    }
}
