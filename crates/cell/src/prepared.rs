//! The first phase: the machine is inspected and set up as the cell requires.

use super::CellError;
use punctual_host::{DmaLatency, HostFs, Preparation};
use punctual_model::{Cell, CpuSet, Host, Policy, Span};
use punctual_store::SampleWriter;
use punctual_workload::load::{self, Place, Running};
use std::path::{Path, PathBuf};

/// A machine that is set up for the cell; nothing runs yet.
#[derive(Debug)]
pub struct Prepared {
    pub(super) cell: Cell,
    pub(super) host: Host,
    /// CPUs that this process may use.
    pub(super) allowed: CpuSet,
    /// Held for as long as the cell lasts, with the value in force, us.
    pub(super) dma_latency: Option<(DmaLatency, u32)>,
    /// The file of raw samples, if they are kept.
    pub(super) samples: Option<SampleWriter>,
    /// Path of the file of activations of watched threads, if they are kept.
    pub(super) activations: Option<PathBuf>,
    /// The last field, so that settings are restored when nothing runs any more.
    pub(super) preparation: Preparation,
}

/// Extra lifetime of a real-time load that nothing else ends: longer than any cell takes to finish.
const LOAD_LIFETIME_MARGIN: Span = Span(60_000_000_000);

impl Prepared {
    /// Checks the cell against this machine and applies its host settings. The raw samples go to the new file
    /// `samples`, if given. Errors: when the cell cannot be measured here as it is written, or the file of samples
    /// cannot be created.
    pub fn new(cell: Cell, samples: Option<&Path>) -> Result<Prepared, CellError> {
        let allowed = punctual_sys::sched::affinity(0).map_err(|err| CellError::Impossible(err.to_string()))?;
        cell.check().and_then(|()| cell.check_on(&allowed)).map_err(CellError::Impossible)?;
        let absent = cell.cpus.minus(&allowed);
        if !absent.is_empty() {
            let reason = format!("cannot use CPU {absent}: this process may use {allowed}");
            return Err(CellError::Impossible(reason));
        }
        if let Some(cpus) = cell.load_cpus.as_ref().filter(|cpus| cpus.is_empty() || !cpus.minus(&allowed).is_empty()) {
            let reason = format!("cannot run the load on CPU {cpus}: this process may use {allowed}");
            return Err(CellError::Impossible(reason));
        }
        let fs = HostFs::here();
        let preparation = Preparation::make(&fs, &cell.conditions.prepare, &cell.cpus).map_err(CellError::Setting)?;
        let dma_latency =
            cell.conditions.cpu_dma_latency_us.map(DmaLatency::hold).transpose().map_err(CellError::Setting)?;
        let host = punctual_host::snapshot(&fs);
        cell.check_on_host(&host).map_err(CellError::Impossible)?;
        // Activations are more than one latency each: their file has another form.
        let activations = samples.filter(|_| cell.task.watch().is_some()).map(Path::to_owned);
        let samples = samples.filter(|_| activations.is_none()).map(SampleWriter::create).transpose()?;
        punctual_sys::fail::point("samples-created");
        Ok(Prepared { host, cell, allowed, dma_latency, samples, activations, preparation })
    }

    /// Starts the load of the cell, for the sum of these spans.
    pub(super) fn start_load(&self, wanted: &[Span]) -> Result<Vec<Running>, CellError> {
        let sum = |sum: Span, span: &Span| Span(sum.ns().saturating_add(span.ns()));
        let place = Place {
            cpus: self.cell.load_cpus.as_ref().unwrap_or(&self.allowed),
            policy: self.cell.conditions.load_policy.unwrap_or(Policy::OTHER),
            at_most: wanted.iter().fold(LOAD_LIFETIME_MARGIN, sum),
        };
        Ok(load::start(&self.cell.load, &place)?)
    }
}
