//! `punctual stick`: writes the image of a stick.

use super::fetching::observed;
use crate::cli::arguments::StickArguments;
use crate::cli::terminal::{Outcome, note, output};
use punctual_campaign::Stop;
use punctual_lab::Monitor;
use punctual_model::{Kernel, LabKernel, shell_word};

pub(super) fn stick(arguments: &StickArguments) -> Outcome {
    if !punctual_lab::STARTS_GUESTS {
        return Err(punctual_lab::left_out().into());
    }
    let mut kernels = Vec::new();
    for kernel in &arguments.kernel {
        match kernel {
            Kernel::Lab(kernel) => kernels.push(LabKernel::clone(kernel)),
            of_this_machine => {
                let message = "expected one like debian:6.12-rt, or a file";
                return Err(format!("invalid kernel `{of_this_machine}`: {message}").into());
            }
        }
    }
    let stop = Stop::on_signals()?;
    let monitor = Monitor { is_stopped: &|| stop.is_requested(), say: &|line| note(line) };
    let made = observed(|observe| punctual_lab::make_stick(&kernels, &arguments.output, monitor, observe));
    if stop.is_requested() {
        return Err("interrupted; nothing is written".into());
    }
    let (bytes, name) = (punctual_report::size(made?), arguments.output.display().to_string());
    output::write(format!("{name}: {bytes}\n").as_bytes())?;
    note(format_args!(
        "write it to a stick, whose content is lost: dd if={} of=/dev/sdX bs=4M conv=fsync",
        shell_word(&name)
    ));
    Ok(0)
}
