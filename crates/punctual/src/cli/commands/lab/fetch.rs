//! `punctual lab fetch`: downloads kernels into the cache, with a progress line.

use super::super::fetching::observed;
use crate::cli::arguments::LabFetchArguments;
use crate::cli::terminal::{Outcome, note, output};
use punctual_campaign::Stop;
use punctual_lab::Monitor;
use punctual_model::Kernel;

pub(super) fn fetch(arguments: &LabFetchArguments) -> Outcome {
    let stop = Stop::on_signals()?;
    let monitor = Monitor { is_stopped: &|| stop.is_requested(), say: &|line| note(line) };
    for kernel in &arguments.kernels {
        let Kernel::Lab(of_lab) = kernel else {
            return Err(
                "invalid kernel `running`: it is the host's kernel, which is not fetched; expected one like debian:6.1"
                    .into(),
            );
        };
        let ready = observed(|observe| punctual_lab::ready_observed(&of_lab.source, monitor, observe));
        if stop.is_requested() {
            return Err("interrupted; the partial download is removed".into());
        }
        let ready = ready?;
        output::write(format!("{kernel}: {}, {}\n", ready.name, ready.file.display()).as_bytes())?;
    }
    Ok(0)
}
