//! Two guests connected by a serial line or a network.
//!
//! One responds to triggers under the load of the cell, the other one measures.

use super::machine::{AtRest, Setup};
use super::protocol::Job;
use super::qemu::{Limits, QemuError};
use super::{LabError, directories, network};
use punctual_model::{Load, Record};
use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

/// Additional timeout of the responder, which starts before the measuring guest, ns.
const RESPONDER_MARGIN_NS: u64 = 120_000_000_000;
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Measures the cell of `job`; its load runs in the responder guest. Errors: if either guest gives no record.
pub(crate) fn carry_out(setup: &Setup, job: &Job, limits: Limits<'_>) -> Result<Record, LabError> {
    let cell = &job.cell;
    let addresses = network::addresses(cell).map(|addresses| addresses.map(Some)).unwrap_or_default();
    let limit_ns = job.limit_ns.saturating_add(RESPONDER_MARGIN_NS);
    let of_target = Job { is_target: true, limit_ns, address: addresses[0], ..job.clone() };
    let mut of_logger = Job { address: addresses[1], ..job.clone() };
    of_logger.cell.load = Load::NONE;
    of_logger.cell.conditions.load_policy = None;
    of_logger.cell.conditions.load_must_hold = None;

    let [target_place, logger_place] = [directories::for_guest()?, directories::for_guest()?];
    let line = target_place.path().join("line");
    let ends = match addresses {
        [None, _] => [end(&line, ",server=on,wait=off"), end(&line, "")],
        _ => [0, 1].map(|number| network::arguments(&line, number)),
    };
    let [target_end, logger_end] = ends;
    let files = setup.files_below(target_place.path(), Some(&of_target))?;
    let AtRest { qemu: mut target, mut threads, .. } = setup.boot(&files, target_end, limits)?;
    setup.go_on(&mut target, &files, limits)?;
    while !files.is_ready() {
        // The responder ends early only on an error.
        if let Some(gone) = target.has_exited(limits, POLL_INTERVAL) {
            return Err(setup.target(&files).err().unwrap_or_else(|| setup.failed(&files, gone)));
        }
    }
    let logger_files = setup.files_below(logger_place.path(), Some(&of_logger))?;
    let AtRest { qemu: mut logger, threads: of_logger_guest, .. } = setup.boot(&logger_files, logger_end, limits)?;
    setup.go_on(&mut logger, &logger_files, limits)?;
    threads.extend(of_logger_guest);
    logger.wait(limits).map_err(|gone| setup.failed(&logger_files, gone))?;
    let mut record = setup.record(&logger_files, &of_logger)?;
    drop(logger);
    // No more triggers arrive, so the responder ends.
    target.wait(limits).map_err(|gone: QemuError| setup.failed(&files, gone))?;
    let target = setup.target(&files)?;
    record.loads.clone_from(&target.loads);
    if let Some(response) = &mut record.response {
        response.target = Some(Box::new(target));
    }
    record.lab.iter_mut().for_each(|lab| lab.threads.clone_from(&threads));
    (record.cell_id, record.cell) = (cell.id(), cell.clone());
    Ok(record)
}

/// QEMU arguments of the third serial port, one end of the line.
fn end(line: &Path, how: &str) -> Vec<OsString> {
    vec!["-serial".into(), format!("unix:{}{how}", line.display()).into()]
}
