//! `punctual lab list`: the available kernels.

use crate::cli::arguments::{Format, LabListArguments};
use crate::cli::terminal::{Outcome, note, output};
use comfy_table::{CellAlignment, ContentArrangement, Table};
use punctual_model::{ListedKernel, ListedKernels};

pub(super) fn list(arguments: &LabListArguments) -> Outcome {
    let (kernels, asked) = punctual_lab::list();
    let mut text = Vec::new();
    match arguments.format {
        Format::Json => output::json(&mut text, &ListedKernels { kernels: &kernels })?,
        Format::Text if kernels.is_empty() => {}
        Format::Text => text = drawn(&kernels).into_bytes(),
    }
    output::write(&text)?;
    let none = match asked {
        Ok(true) if !kernels.is_empty() => None,
        Ok(true) => Some("apt lists no kernels (apt-get update)".to_owned()),
        Ok(false) => Some("this system has no apt".to_owned()),
        Err(err) => Some(err.to_string()),
    };
    if let Some(none) = none {
        note(format_args!("punctual: {none}; a plan may also name a kernel's file, /path/of/vmlinuz"));
    }
    Ok(0)
}

/// A row for each kernel, with a dash for unknown values.
fn drawn(kernels: &[ListedKernel]) -> String {
    let dash = || "-".to_owned();
    let mut table = Table::new();
    table.set_content_arrangement(ContentArrangement::Disabled);
    table.load_style(comfy_table::presets::NOTHING);
    table.set_header(["kernel", "version", "flavour", "preemption", "package", "fetched", "sha256 of the package"]);
    for kernel in kernels {
        table.add_row([
            kernel.kernel.clone(),
            kernel.version.clone().unwrap_or_else(dash),
            kernel.flavour.map_or_else(dash, str::to_owned),
            models(kernel),
            kernel.package_bytes.map_or_else(dash, punctual_report::size),
            kernel.path.as_ref().map_or_else(|| "no".to_owned(), |path| path.display().to_string()),
            kernel.package_sha256.as_ref().map_or_else(dash, |sum| sum.chars().take(16).collect()),
        ]);
    }
    for (i, column) in table.column_iter_mut().enumerate() {
        column.set_cell_alignment(if i == 4 { CellAlignment::Right } else { CellAlignment::Left });
        column.set_padding((if i == 0 { 0 } else { 2 }, 0));
    }
    table.lines().map(|line| line.trim_end().to_owned() + "\n").collect()
}

/// The known preemption models.
fn models(kernel: &ListedKernel) -> String {
    let choices = kernel.preempt.as_ref().filter(|choices| !choices.is_empty());
    let choices = choices.map(|choices| format!("preempt={}", choices.join("|")));
    match (kernel.preempt_rt, choices) {
        (Some(true), Some(choices)) => format!("PREEMPT_RT, {choices}"),
        (Some(true), None) => "PREEMPT_RT".to_owned(),
        (_, Some(choices)) => choices,
        (Some(false), None) if kernel.preempt.is_some() => "built in".to_owned(),
        _ => "-".to_owned(),
    }
}
