//! A measurement of a run, by its place in the order.

use serde::{Deserialize, Serialize};

/// One measurement of a run: a cell in a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Planned {
    /// The pass over all cells, from 0.
    pub block: u32,
    /// Position in the block's random order, from 0.
    pub position: u32,
    /// Index into [`Header::cells`](crate::Header::cells).
    pub cell_index: usize,
}
