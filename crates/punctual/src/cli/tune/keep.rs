//! Files that make confirmed settings permanent, and files that undo them. Nothing is installed.

use super::super::new_directory::NewDirectory;
use super::super::note;
use analysis::tune::{KnobAnswer, Tuned};
use model::{Entry, Plan, PreparedSetting};
use std::fmt::Write;
use std::path::Path;

/// Writes the files of the knobs that were confirmed to be better.
///
/// # Errors
/// If there is nothing to keep, or the directory cannot be made.
pub(super) fn write(dir: &Path, plan: &Plan, tuned: &Tuned, confirmed: &[Entry]) -> Result<(), String> {
    let is_better: Vec<bool> = tuned.knobs.iter().map(|knob| knob.answer == KnobAnswer::Better).collect();
    if !is_better.contains(&true) {
        note("nothing was confirmed to be better: there is nothing to keep");
        return Ok(());
    }
    let kept = plan.with_knobs(&is_better)?;
    let new = NewDirectory::make(dir)?;
    new.write("plan.toml", kept.to_toml().as_bytes(), false)?;
    let settings = settings(tuned, confirmed);
    let keep = host::permanent(&settings, |setting| &setting.during);
    let undo = host::permanent(&settings, |setting| &setting.before);
    let (has_sysctl, has_tmpfiles) = (!keep.sysctl.is_empty(), !keep.tmpfiles.is_empty());
    for (which, files) in [("keep", keep), ("undo", undo)] {
        for (name, text) in [("sysctl.conf", files.sysctl), ("tmpfiles.conf", files.tmpfiles)] {
            if !text.is_empty() {
                new.write(&format!("{which}/{name}"), text.as_bytes(), false)?;
            }
        }
    }
    new.write("README", readme(tuned, has_sysctl, has_tmpfiles).as_bytes(), false)?;
    new.finish()?;
    note(format_args!("how to keep it: {}", dir.join("README").display()));
    Ok(())
}

/// Settings of the machine that the better knobs make, as the cells of the confirmation recorded them.
fn settings(tuned: &Tuned, confirmed: &[Entry]) -> Vec<PreparedSetting> {
    let candidates = tuned.screening.candidates();
    let is_better = |index: &usize| tuned.knobs.get(*index).is_some_and(|knob| knob.answer == KnobAnswer::Better);
    // The first cell is the machine as it is.
    let cells = candidates.iter().enumerate().filter(|(_, index)| is_better(index)).map(|(at, _)| at + 1);
    let entries = cells.filter_map(|cell| confirmed.iter().find(|entry| entry.planned.cell_index == cell));
    let mut settings: Vec<PreparedSetting> = entries.flat_map(|entry| entry.record.prepared.clone()).collect();
    settings.dedup_by(|a, b| a.what == b.what);
    settings
}

fn readme(tuned: &Tuned, has_sysctl: bool, has_tmpfiles: bool) -> String {
    let mut text = String::from("Settings that were confirmed to be better, and how to keep or undo them.\n\n");
    for knob in tuned.knobs.iter().filter(|knob| knob.answer == KnobAnswer::Better) {
        let _ = writeln!(text, "{}.", knob.sentence);
    }
    text += "\nplan.toml measures with them: punctual run plan.toml\n";
    if has_sysctl {
        text += "keep/sysctl.conf: copy it to /etc/sysctl.d/99-punctual.conf; sysctl --system\n";
    }
    if has_tmpfiles {
        text += "keep/tmpfiles.conf: copy it to /etc/tmpfiles.d/99-punctual.conf; systemd-tmpfiles --create\n";
    }
    text += "To undo: remove the copies, and apply the files of undo/ once in the same way.\n";
    for knob in tuned.knobs.iter().filter(|knob| knob.answer == KnobAnswer::Better) {
        let model::Knob { key, as_is, changed } = &knob.knob;
        match key.as_str() {
            "kernel" => {
                let _ = writeln!(text, "kernel: boot `{changed}` instead of `{as_is}`.");
            }
            "policy" | "timer_slack" | "cpus" | "period" | "method" => {
                let _ = writeln!(text, "{key}: a property of the program; set {changed} in its unit or its code.");
            }
            "cpu_dma_latency" => {
                text += "cpu_dma_latency: the program holds /dev/cpu_dma_latency open with this value.\n";
            }
            _ => {}
        }
    }
    text
}
