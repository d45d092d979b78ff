//! A recorded trace: how late its threads were, and why. Nothing is measured, and no machine is needed but this one.

use crate::cli::arguments::RunFormat;
use crate::cli::terminal::output::SPIKES;
use crate::cli::terminal::{Outcome, output};
use indicatif::ProgressBar;
use punctual_analysis::explain::Taker;
use punctual_analysis::recorded::{Judged, Wanted};
use punctual_ftrace::RecordedFile;
use punctual_model::{Mark, Span, Watch, shell_word};
use punctual_report::{RecordedDocument, Style};
use std::error::Error;
use std::io::{self, IsTerminal};
use std::path::Path;

/// Steps of the progress.
const STEPS: u64 = 1000;
/// Most files of a directory with a trace.
const MOST_FILES: usize = 1 << 17;

/// Judges the threads of `watch` in a file. Explains activations above a response time, at most this number of them;
/// `marks` cut all into phases.
pub(super) fn judge(
    path: &Path,
    watch: Watch,
    (above, keep, marks): (Option<Span>, u32, Vec<Mark>),
    all: bool,
    format: RunFormat,
) -> Outcome {
    if !matches!(format, RunFormat::Text | RunFormat::Json) {
        return Err("unsupported: a recorded trace in this format; use text or json".into());
    }
    if let Some(mark) = marks.iter().find(|mark| !matches!(mark, Mark::Marker(_))) {
        return Err(
            format!("unsupported: mark `{mark}` in a recorded trace, which has texts only: use marker[:TEXT]").into()
        );
    }
    let of_file = |err: &dyn std::fmt::Display| format!("{}: {err}", path.display());
    let RecordedFile { mut recording, clock, names, machine, resolution_ns, foreign } =
        open(path).map_err(|err| of_file(&*err))?;
    let bar = if io::stderr().is_terminal() { ProgressBar::new(STEPS) } else { ProgressBar::hidden() };
    let sample = watch.sample;
    let is_bare = machine.is_some_and(|machine| machine.hypervisor.is_none());
    let wanted = Wanted {
        names,
        watch,
        above,
        marks,
        keep: usize::try_from(keep).unwrap_or(usize::MAX),
        // Files of other programs do not say whether there is a hypervisor.
        taker: if is_bare { Taker::Firmware } else { Taker::Hypervisor },
    };
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share of a small number")]
    let judged = punctual_analysis::recorded::judge(&mut *recording, &wanted, &mut |share| {
        bar.set_position((share * STEPS as f64) as u64)
    });
    bar.finish_and_clear();
    let judged = judged.map_err(|err| of_file(&err))?;
    if judged.threads.is_empty() {
        return Err(of_file(&nothing(&judged, &wanted.watch)).into());
    }
    let cpus = recording.n_cpus();
    let file = (path.display().to_string(), clock, cpus);
    let mut document = RecordedDocument::new(env!("CARGO_PKG_VERSION"), file, judged, sample);
    if resolution_ns > 1 {
        document
            .missing
            .push(format!("times finer than {}", punctual_analysis::wording::duration(resolution_ns as f64)));
    }
    if let Some(architecture) = foreign {
        document.missing.push(format!("names of system calls: those of {architecture} have other numbers"));
    }
    let mut text = Vec::new();
    match format {
        RunFormat::Json => output::json(&mut text, &serde_json::to_value(&document)?)?,
        _ => {
            document.text(&mut text, Style { spikes: if all { usize::MAX } else { SPIKES }, ..output::style(false) })?
        }
    }
    output::write(&text)?;
    Ok(0)
}

/// Opens a file, the only trace in a directory, or its raw pages. Links in the directory are not followed.
fn open(path: &Path) -> Result<RecordedFile, Box<dyn Error>> {
    if !path.is_dir() {
        return Ok(RecordedFile::open(punctual_host::file::open(path)?)?);
    }
    let typed = |path: &Path, option| format!("punctual explain {}{option}", shell_word(&path.display().to_string()));
    if punctual_store::is_run(path) || !punctual_store::captures(path).is_empty() {
        return Err(format!("expected a recorded trace; for kept spikes: {}", typed(path, " --again")).into());
    }
    let mut found = punctual_host::file::below(path, MOST_FILES)?;
    found.sort_unstable();
    let is_trace = |path: &Path| path.extension().is_some_and(|end| end == "dat" || end == "data");
    match &found.iter().map(|(name, _)| path.join(name)).filter(|path| is_trace(path)).collect::<Vec<_>>()[..] {
        [] => {}
        [one] => return Ok(RecordedFile::open(punctual_host::file::open_without_link(one)?)?),
        [first, .., last] => {
            let both = (first.display(), last.display());
            return Err(
                format!("several recorded traces, {} to {}; name one: {}", both.0, both.1, typed(first, "")).into()
            );
        }
    }
    let (paths, sizes): (Vec<_>, Vec<_>) = found.into_iter().unzip();
    let files = paths.iter().map(|path| path.to_string_lossy().into_owned()).zip(sizes).collect();
    let directory = path.to_owned();
    Ok(RecordedFile::of_directory(files, move |index| {
        let path = paths.get(index).ok_or(io::ErrorKind::NotFound)?;
        punctual_host::file::open_without_link(&directory.join(path))
    })?)
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
            most_active.iter().map(|name| shell_word(name)).collect::<Vec<_>>().join(", ")
        ),
    }
}
