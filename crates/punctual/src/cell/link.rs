//! What answers are waited for by, made before the barrier.

use super::CellError;
use crate::host::{self, HostFs};
use model::{Cell, Link};
use rt::LinkEnd;

/// The end of the link that `cell` measures; `None` when it measures no answers.
///
/// # Errors
/// When there is no such device, or it may not be used.
pub(super) fn end_of(cell: &Cell) -> Result<Option<LinkEnd>, CellError> {
    let Some(link) = cell.method.link() else { return Ok(None) };
    let end = match link {
        #[cfg(target_arch = "x86_64")]
        Link::Uio => {
            let count = Link::devices(cell.period).unwrap_or(u64::MAX);
            host::dma_timers(&HostFs::here(), count).map(LinkEnd::Timers)
        }
        _ => Err(format!("{link} is not known here")),
    };
    end.map(Some).map_err(CellError::Impossible)
}
