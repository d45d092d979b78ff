//! `punctual capture`: records what all threads and CPUs do, here or on another machine, for analysis elsewhere.

use crate::cli::arguments::CaptureArguments;
use crate::cli::terminal::{Outcome, note};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use punctual_analysis::wording::{duration, things};
use punctual_campaign::{Stop, output_from};
use punctual_cell::{CellError, Recording};
use punctual_host::file::{self, Replacement};
use punctual_model::{Policy, Site, Span, shell_word};
use punctual_sys::sched;
use punctual_workload::runtime::Launch;
use punctual_workload::watched::WatchedProgram;
use std::error::Error;
use std::io::{self, BufRead, BufReader, BufWriter, IsTerminal, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::Builder;
use std::time::{Duration, Instant};

/// Interval at which pages are moved: a CPU fills its 4 MiB in it at 80 MB/s.
const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// Suffix of the file until it is complete.
const UNFINISHED: &str = ".part";
/// Buffer of what is written, bytes.
const BUFFER: usize = 1 << 20;
/// Most bytes that a login shell prints before a file comes.
const MOST_BEFORE: u64 = 1 << 20;
/// Bytes that a file from another machine may have beyond `--most`: its head, and what its CPUs still had in their
/// buffers when that was reached, 4 MiB each.
const MARGIN: u64 = 512_000_000;
/// First byte of a file, which no text has.
const FIRST: u8 = 0x17;

/// Takes no lock of the machine: what is recorded may be a measurement of this or another tool.
pub(super) fn capture(arguments: CaptureArguments) -> Outcome {
    if arguments.duration == Span(0) {
        return Err("--for: invalid duration `0s`: expected a positive duration, like 10s".into());
    }
    let path = Some(arguments.output.clone()).filter(|path| path.as_os_str() != "-");
    let directory = path.as_deref().map(directory_of).transpose()?;
    if path.is_none() && io::stdout().is_terminal() {
        return Err("cannot write a trace to a terminal; redirect stdout, or name a file with --output".into());
    }
    let stop = Arc::new(Stop::on_signals()?);
    if let Some(site) = arguments.on.as_ref().filter(|site| **site != Site::Here) {
        let words = words_there(&arguments);
        let limit = arguments.most.0.saturating_add(MARGIN);
        let take = |from: &mut dyn Read| received(from, path.as_deref(), limit);
        let file = output_from(site, &words, &stop, &|line| note(line), take)?;
        return finish(path.as_deref(), file, &format!("from {site}"));
    }
    if arguments.until_eof {
        let is_over = Arc::clone(&stop);
        let listen = move || {
            // Nothing is expected; an error also counts as its end.
            let _ = io::copy(&mut io::stdin(), &mut io::sink());
            is_over.request();
        };
        Builder::new().spawn(listen).map_err(|err| punctual_host::no_thread(&err))?;
    }
    let (recording, summary) = record(&arguments, &directory.unwrap_or_else(scratch), &stop).map_err(cannot)?;
    let file = filled(path.as_deref(), |mut out| recording.write(&mut out))?;
    finish(path.as_deref(), file, &summary)
}

/// The directory of a new file, where one can be created.
fn directory_of(path: &Path) -> Result<PathBuf, String> {
    let refused = |reason: &str| format!("cannot write {}: {reason}", path.display());
    if path.symlink_metadata().is_ok() {
        return Err(refused("it exists; remove it, or name another file with --output"));
    }
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    file::without_name(parent).map(|_| parent.to_owned()).map_err(|err| refused(&err.to_string()))
}

/// A directory for the pages of a file that goes elsewhere: on a disk, if there is one.
fn scratch() -> PathBuf {
    let disk = std::env::var_os("TMPDIR").map_or_else(|| PathBuf::from("/var/tmp"), PathBuf::from);
    if file::without_name(&disk).is_ok() { disk } else { PathBuf::from("/tmp") }
}

/// The error of a recording, which is not an explanation.
fn cannot(err: Box<dyn Error>) -> Box<dyn Error> {
    match err.downcast_ref::<CellError>() {
        Some(err @ CellError::Trace(_)) => err.to_string().replacen("cannot explain", "cannot capture", 1).into(),
        _ => err,
    }
}

/// Records until the time is over, the program has ended, or a stop is requested.
fn record(asked: &CaptureArguments, directory: &Path, stop: &Stop) -> Result<(Recording, String), Box<dyn Error>> {
    let cpus = sched::affinity(0)?;
    let mut recording = Recording::begin(directory)?;
    let settings = Launch { cpus, policy: Policy::OTHER, timer_slack: punctual_rt::Settings::KERNEL_SLACK };
    let mut program = match &asked.command[..] {
        [] => None,
        words => Some(WatchedProgram::start(words, &settings)?),
    };
    program.iter().for_each(WatchedProgram::proceed);
    let time = asked.duration;
    note(format_args!("recording all threads for {time}; Ctrl-C ends it"));
    let target = if io::stderr().is_terminal() { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
    let style = ProgressStyle::with_template("  {wide_msg}").unwrap_or_else(|_| ProgressStyle::default_bar());
    let bar = ProgressBar::with_draw_target(None, target).with_style(style);
    let began = Instant::now();
    let ends = began.checked_add(Duration::from_nanos(time.ns()));
    loop {
        let tick = Instant::now() + POLL_INTERVAL;
        stop.wait_until(ends.map_or(tick, |ends| tick.min(ends)));
        let has_ended = program.as_mut().is_some_and(WatchedProgram::has_ended);
        let bytes = recording.drain()?;
        bar.set_message(format!("{} of {time}, {}", seconds(began), punctual_report::size(bytes)));
        if bytes >= asked.most.0 {
            bar.suspend(|| {
                note(format_args!("recording ended early: --most {} is reached", punctual_report::size(asked.most.0)))
            });
            break;
        }
        if has_ended || stop.is_requested() || ends.is_some_and(|ends| Instant::now() >= ends) {
            break;
        }
    }
    let took = seconds(began);
    recording.stop()?;
    bar.finish_and_clear();
    if let Some(failed) = program.as_ref().filter(|program| program.has_failed()).map(WatchedProgram::ended_early) {
        note(failed);
    }
    let lost = match (recording.gaps, recording.lost) {
        (0, _) => "no events lost".to_owned(),
        (gaps, 0) => format!("events lost in {}", things(gaps, "gap")),
        (gaps, lost) => format!("at least {} lost in {}", things(lost, "event"), things(gaps, "gap")),
    };
    let cpus = things(recording.n_cpus() as u64, "CPU");
    Ok((recording, format!("{took} on {cpus}, {lost}")))
}

/// Time since `began`.
fn seconds(began: Instant) -> String {
    duration(began.elapsed().as_nanos() as f64)
}

/// Arguments for another machine, which writes to stdout.
fn words_there(asked: &CaptureArguments) -> Vec<String> {
    let CaptureArguments { duration, most, command, .. } = asked;
    let (time, most) = (duration.to_string(), format!("{}B", most.0));
    let mut words =
        ["capture", "--until-eof", "--output", "-", "--for", &time, "--most", &most].map(str::to_owned).to_vec();
    if !command.is_empty() {
        words.push("--".to_owned());
        words.extend_from_slice(command);
    }
    words
}

/// Lets `write` fill stdout, or a new file that is to be at `path`.
fn filled(
    path: Option<&Path>,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<Option<Replacement>, String> {
    let fill = |out: &mut dyn Write| {
        let mut out = BufWriter::with_capacity(BUFFER, out);
        write(&mut out).and_then(|()| out.flush())
    };
    let Some(path) = path else {
        return fill(&mut io::stdout().lock()).map(|()| None).map_err(|err| format!("cannot write to stdout: {err}"));
    };
    let mut file = Replacement::new(path, UNFINISHED).map_err(unwritten(path))?;
    fill(&mut file).map_err(unwritten(path))?;
    Ok(Some(file))
}

/// As [`filled`], by a file of at most `limit` bytes that another machine sends after the lines that a login shell may
/// print there.
fn received(from: &mut dyn Read, path: Option<&Path>, limit: u64) -> Result<Option<Replacement>, String> {
    let mut from = BufReader::new(from);
    let mut begin = Vec::new();
    let found = from.by_ref().take(MOST_BEFORE).read_until(FIRST, &mut begin);
    if found.is_err() || begin.last() != Some(&FIRST) {
        return Err("cannot capture: no trace has come".to_owned());
    }
    let mut file = Read::chain(&[FIRST][..], from).take(limit.saturating_add(1));
    filled(path, |out| match io::copy(&mut file, out)? {
        bytes if bytes <= limit => Ok(()),
        _ => {
            let (limit, margin) = (punctual_report::size(limit), punctual_report::size(MARGIN));
            Err(io::Error::other(format!("more than {limit} came, which is --most and {margin}; recording discarded")))
        }
    })
}

/// Gives the file its name and tells the next command.
fn finish(path: Option<&Path>, file: Option<Replacement>, summary: &str) -> Outcome {
    match path.zip(file) {
        None => note(format_args!("recorded {summary}")),
        Some((path, mut file)) => {
            file.commit().map_err(unwritten(path))?;
            let size = punctual_report::size(path.metadata().map_or(0, |file| file.len()));
            let shown = path.display().to_string();
            note(format_args!("{shown}: {size}, {summary}; next: punctual watch --from {}", shell_word(&shown)));
        }
    }
    Ok(0)
}

fn unwritten(path: &Path) -> impl Fn(io::Error) -> String {
    move |err| format!("cannot write {}: {err}", path.display())
}

#[cfg(test)]
mod tests {
    use super::*;
    use punctual_host::testing::Scratch;

    #[test]
    fn a_file_from_another_machine_has_a_limit() {
        let scratch = Scratch::make();
        let path = scratch.path("trace.dat");
        let received = |bytes: u64| {
            let mut from = Read::chain(&b"Welcome\n\x17"[..], io::repeat(b'x').take(bytes));
            received(&mut from, Some(&path), 1000)
                .and_then(|file| file.unwrap().commit().map_err(|err| err.to_string()))
        };
        let names = || std::fs::read_dir(scratch.path("")).unwrap().count();
        let before = names();
        for endless in [1000, u64::MAX] {
            let refused = received(endless).unwrap_err();
            let reason = "more than 1 kB came, which is --most and 512 MB; recording discarded";
            assert_eq!(refused, format!("cannot write {}: {reason}", path.display()));
            assert_eq!(names(), before, "nothing is left");
        }
        received(999).unwrap();
        assert_eq!(path.metadata().unwrap().len(), 1000);
    }
}
