//! A recorded trace: how late its threads were, and why. Nothing is measured, and no machine is needed but this one.

use super::arguments::RunFormat;
use super::output::SPIKES;
use super::{Outcome, output};
use analysis::explain::Taker;
use analysis::recorded::{Judged, Wanted};
use ftrace::{DatFile, DatRecording};
use indicatif::ProgressBar;
use model::{Span, Watch};
use report::{RecordedDocument, Style};
use std::io::{self, BufReader, IsTerminal};
use std::path::Path;

/// Steps of the progress.
const STEPS: u64 = 1000;

/// Judges the threads of `watch` in a file. Explains activations above a response time, at most this number of them.
pub(super) fn judge(
    path: &Path,
    watch: Watch,
    (above, keep): (Option<Span>, u32),
    all: bool,
    format: RunFormat,
) -> Outcome {
    if !matches!(format, RunFormat::Text | RunFormat::Json) {
        return Err("unsupported: a recorded trace in this format; use text or json".into());
    }
    let of_file = |err: &dyn std::fmt::Display| format!("{}: {err}", path.display());
    let file = host::file::open(path).map_err(|err| of_file(&err))?;
    let file = DatFile::open(BufReader::new(file)).map_err(|err| of_file(&err))?;
    let mut recording = DatRecording::new(file).map_err(|err| of_file(&err))?;
    let bar = if io::stderr().is_terminal() { ProgressBar::new(STEPS) } else { ProgressBar::hidden() };
    let sample = watch.sample;
    let machine = recording.file().head.machine.as_ref();
    let is_bare = machine.is_some_and(|machine| machine.hypervisor.is_none());
    let wanted = Wanted {
        names: recording.file().head.names.clone(),
        watch,
        above,
        keep: usize::try_from(keep).unwrap_or(usize::MAX),
        // Files of other programs do not say whether there is a hypervisor.
        taker: if is_bare { Taker::Firmware } else { Taker::Hypervisor },
    };
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share of a small number")]
    let judged = analysis::recorded::judge(&mut recording, &wanted, &mut |share| {
        bar.set_position((share * STEPS as f64) as u64)
    });
    bar.finish_and_clear();
    let judged = judged.map_err(|err| of_file(&err))?;
    if judged.threads.is_empty() {
        return Err(of_file(&nothing(&judged, &wanted.watch)).into());
    }
    let (clock, cpus) = (recording.file().clock.clone(), analysis::recorded::Recording::n_cpus(&recording));
    let file = (path.display().to_string(), clock, cpus);
    let document = RecordedDocument::new(env!("CARGO_PKG_VERSION"), file, judged, sample);
    let mut text = Vec::new();
    match format {
        RunFormat::Json => output::json(&mut text, &document)?,
        _ => {
            document.text(&mut text, Style { spikes: if all { usize::MAX } else { SPIKES }, ..output::style(false) })?
        }
    }
    output::write(&text)?;
    Ok(0)
}

/// Why there is nothing to show.
fn nothing(judged: &Judged, watch: &Watch) -> String {
    let Judged { seen, others, most_active, .. } = judged;
    let of = |what: &str| {
        format!(
            "nothing to report: no event {what}; record it, like trace-cmd record -C mono -e sched -e irq -e timer -e raw_syscalls"
        )
    };
    match &watch.thread {
        _ if !seen.switches => of("sched_switch"),
        _ if !seen.wakings => of("sched_waking"),
        Some(name) => format!("nothing to report: no thread named `{name}` waited twice in one call"),
        None if *others == 0 => "nothing to report: no thread waited twice in one call".to_owned(),
        None => format!(
            "nothing to report: no thread looks periodic; name one with --thread, e.g. {}",
            most_active.iter().map(|name| model::shell_word(name)).collect::<Vec<_>>().join(", ")
        ),
    }
}
