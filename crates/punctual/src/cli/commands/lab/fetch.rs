//! `punctual lab fetch`: downloads kernels into the cache, with a progress line.

use crate::cli::arguments::LabFetchArguments;
use crate::cli::terminal::redraw::RedrawnLines;
use crate::cli::terminal::{Outcome, note, output};
use punctual_campaign::Stop;
use punctual_lab::{Fetching, Monitor};
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
        let mut terminal = RedrawnLines::on_terminal();
        let mut is_said = false;
        let ready = punctual_lab::ready_observed(&of_lab.source, monitor, &mut |fetching| match &mut terminal {
            Some(terminal) => terminal.draw(&[line(fetching).into()], RedrawnLines::size().columns),
            None if !is_said => {
                is_said = true;
                note(format_args!("fetching {}{}", fetching.package, size_of(fetching)));
            }
            None => {}
        });
        if let Some(terminal) = &mut terminal {
            terminal.erase();
        }
        if stop.is_requested() {
            return Err("interrupted; the partial download is removed".into());
        }
        let ready = ready?;
        output::write(format!("{kernel}: {}, {}\n", ready.name, ready.file.display()).as_bytes())?;
    }
    Ok(0)
}

fn size_of(fetching: Fetching<'_>) -> String {
    fetching.of_bytes.map(|bytes| format!(", {}", punctual_report::size(bytes))).unwrap_or_default()
}

fn line(fetching: Fetching<'_>) -> String {
    let Fetching { package, bytes, of_bytes } = fetching;
    let of = of_bytes.map(|all| format!(" of {}", punctual_report::size(all))).unwrap_or_default();
    format!("fetching {package}: {}{of}", punctual_report::size(bytes))
}
