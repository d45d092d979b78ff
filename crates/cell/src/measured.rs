//! The last phase: the measurement is complete and only the record is left to write.

use super::CellError;
use super::measurers::{Measurement, Measurers};
use super::prepared::Prepared;
use punctual_host::HostFs;
use punctual_model::{LoadRecord, MachineSecond, MonoTime, RECORD_FORMAT, Record};
use punctual_workload::load::Running;
use std::time::{Duration, SystemTime};

/// All results. The load still runs and the host is still held until this is dropped.
#[derive(Debug)]
pub struct Measured {
    /// The first field, as in the phase before.
    pub(super) measurers: Box<dyn Measurers>,
    pub(super) running: Vec<Running>,
    pub(super) prepared: Prepared,
    pub(super) measurement: Measurement,
    pub(super) loads: Vec<LoadRecord>,
    pub(super) machine: Vec<MachineSecond>,
}

impl Measured {
    /// Builds the record. The file of samples is complete when this returns. Errors: when the samples cannot be kept.
    pub fn record(self) -> Result<Record, CellError> {
        let Measured { measurers, running, prepared, measurement, loads, machine } = self;
        // Dropped before the host is inspected again.
        drop(measurers);
        drop(running);
        punctual_sys::fail::point("load-over");
        let record = Record {
            format: RECORD_FORMAT,
            tool: punctual_model::TOOL.to_owned(),
            cell_id: prepared.cell.id(),
            started_unix_ms: unix_ms_of(measurement.started),
            started: measurement.started,
            measured: measurement.measured,
            ended: measurement.ended,
            threads: measurement.threads,
            clock_steps: measurement.clock_steps,
            clock_reading: Some(punctual_sys::clock::reading(prepared.cell.task.clock())),
            runtime: measurement.runtime,
            instrument: measurement.instrument.map(Box::new),
            response: measurement.response,
            loads,
            lab: None,
            explained: measurement.explained,
            on_spike: measurement.on_spike,
            tracers: None,
            cost: measurement.cost,
            watch: measurement.watch.map(Box::new),
            prepared: prepared.preparation.settings(),
            machine,
            host_before: prepared.host.into(),
            host_after: punctual_host::snapshot(&HostFs::here()).into(),
            cell: prepared.cell,
        };
        if let Some(samples) = prepared.samples {
            samples.finish(&record)?;
        }
        Ok(record)
    }
}

/// The wall-clock time of a past instant, ms since 1970, as the wall clock stands now.
fn unix_ms_of(instant: MonoTime) -> u64 {
    let ago = Duration::from_nanos(punctual_sys::clock::monotonic().0.saturating_sub(instant.0));
    let unix = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(unix.saturating_sub(ago).as_millis()).unwrap_or(0)
}
