//! `punctual lab check-config`: tells whether two kernels are built alike, so that their latencies are like for like.

use crate::cli::arguments::{Format, LabCheckConfigArguments};
use crate::cli::terminal::{Outcome, note, output};
use punctual_analysis::config::{ConfiguredKernel, compare_configs};
use punctual_campaign::Stop;
use punctual_host::HostFs;
use punctual_lab::{FoundConfig, Monitor};
use punctual_model::{Kernel, KernelConfig};
use punctual_report::KernelPair;
use punctual_report::json::ComparedKernel;
use std::error::Error;

pub(super) fn check_config(arguments: &LabCheckConfigArguments) -> Outcome {
    let stop = Stop::on_signals()?;
    let monitor = Monitor { is_stopped: &|| stop.is_requested(), say: &|line| note(line) };
    let (a, b) = (found(&arguments.a, monitor)?, found(&arguments.b, monitor)?);
    if stop.is_requested() {
        return Err("interrupted".into());
    }
    let comparison = match (&a, &b) {
        (Some(a), Some(b)) => {
            let [a_words, b_words] = [&arguments.a, &arguments.b].map(words);
            let a = ConfiguredKernel { config: &a.config, words: &a_words };
            Ok(compare_configs(a, ConfiguredKernel { config: &b.config, words: &b_words }))
        }
        _ => {
            let named = [("A", &arguments.a, &a), ("B", &arguments.b, &b)];
            let missing = named.iter().filter(|(.., found)| found.is_none());
            let missing: Vec<_> = missing.map(|(letter, kernel, _)| format!("{letter} ({kernel})")).collect();
            let places = "neither inside (CONFIG_IKCONFIG) nor in a file config-RELEASE beside";
            Err(format!("no configuration of {}: {places}", missing.join(" and ")))
        }
    };
    let kernels = [(&arguments.a, &a), (&arguments.b, &b)].map(|(kernel, found)| ComparedKernel {
        kernel: kernel.to_string(),
        file: found.as_ref().map(|found| found.file.clone()),
        version: found.as_ref().and_then(|found| found.config.version.clone()),
        options: found.as_ref().map(|found| found.config.options.len()),
    });
    let pair = KernelPair { kernels, comparison };
    let mut text = Vec::new();
    match arguments.format {
        Format::Json => output::json(&mut text, &pair.json())?,
        Format::Text => pair.text(&mut text, output::style(arguments.all))?,
    }
    output::write(&text)?;
    Ok(pair.exit_status())
}

fn found(kernel: &Kernel, monitor: Monitor<'_>) -> Result<Option<FoundConfig>, Box<dyn Error>> {
    match kernel {
        Kernel::Running => punctual_host::kernel_config(&HostFs::here())
            .map(|(file, text)| match KernelConfig::parse(&text) {
                Ok(config) => Ok(FoundConfig { file, config }),
                Err(err) => Err(format!("{file}: {err}").into()),
            })
            .transpose(),
        Kernel::Installed(kernel) => Err(format!(
            "unsupported: the configuration of installed:{0}; compare its file, like /boot/config-{0}",
            kernel.release
        )
        .into()),
        Kernel::Lab(kernel) => Ok(punctual_lab::config_of(&kernel.source, monitor)?),
    }
}

/// The words after a kernel, as in a plan.
fn words(kernel: &Kernel) -> String {
    match kernel {
        Kernel::Running => String::new(),
        Kernel::Installed(kernel) => kernel.arguments.clone(),
        Kernel::Lab(kernel) => kernel.words(),
    }
}
