//! The local end of a link, set up before the barrier.

use super::CellError;
use punctual_model::{Cell, Link};
use punctual_rt::LinkEnd;
use punctual_workload::link::{self, LinkMonitor};

/// The devices of a guest whose interrupts `cell` measures, bound and open; `None` for every other cell. Call it before
/// the load is started. Errors: when a device is missing or cannot be bound.
pub(super) fn timers_of(cell: &Cell) -> Result<Option<LinkEnd>, CellError> {
    let link = cell.task.link().filter(|link| link.is_timers());
    link.map(|link| timers(cell, link).map_err(CellError::Impossible)).transpose()
}

/// The end of the link that `cell` measures, and its monitor where the link is a line; `None` for a cell that measures
/// no answers, and for devices of a guest, see [`timers_of`]. Errors: when the device does not exist or is not
/// accessible, or the peer does not answer.
pub(super) fn end_of(cell: &Cell) -> Result<(Option<LinkEnd>, Option<LinkMonitor>), CellError> {
    match cell.task.link() {
        Some(link) if !link.is_timers() => {
            let (logger, watch) = link::logger(link, cell.period, cell.first_cycle()).map_err(CellError::Impossible)?;
            Ok((Some(LinkEnd::Logger(logger)), Some(watch)))
        }
        _ => Ok((None, None)),
    }
}

#[cfg(target_arch = "x86_64")]
fn timers(cell: &Cell, link: Link) -> Result<LinkEnd, String> {
    let count = Link::devices(cell.period).unwrap_or(u64::MAX);
    punctual_host::dma_timers(&punctual_host::HostFs::here(), link, count).map(LinkEnd::Timers)
}

#[cfg(not(target_arch = "x86_64"))]
fn timers(_: &Cell, link: Link) -> Result<LinkEnd, String> {
    Err(format!("unsupported: response:{link} on other machines than x86-64"))
}
