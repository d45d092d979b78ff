//! The local end of a link, set up before the barrier.

use super::CellError;
use model::{Cell, Link};
use rt::LinkEnd;
use workload::link::{self, LinkMonitor};

/// The end of the link that `cell` measures, and its monitor where the link is a line; `None` for a cell that measures
/// no answers.
///
/// # Errors
/// When the device does not exist or is not accessible, or the peer does not answer.
pub(super) fn end_of(cell: &Cell) -> Result<(Option<LinkEnd>, Option<LinkMonitor>), CellError> {
    match cell.task.link() {
        None => Ok((None, None)),
        Some(Link::Uio) => Ok((Some(timers(cell).map_err(CellError::Impossible)?), None)),
        Some(link) => {
            let (logger, watch) = link::logger(link, cell.period, cell.first_cycle()).map_err(CellError::Impossible)?;
            Ok((Some(LinkEnd::Logger(logger)), Some(watch)))
        }
    }
}

#[cfg(target_arch = "x86_64")]
fn timers(cell: &Cell) -> Result<LinkEnd, String> {
    let count = Link::devices(cell.period).unwrap_or(u64::MAX);
    host::dma_timers(&host::HostFs::here(), count).map(LinkEnd::Timers)
}

#[cfg(not(target_arch = "x86_64"))]
fn timers(_: &Cell) -> Result<LinkEnd, String> {
    Err("unsupported: response:uio on other machines than x86-64".to_owned())
}
