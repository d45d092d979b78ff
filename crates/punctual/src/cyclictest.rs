//! `punctual cyclictest`: the options and the output of cyclictest (rt-tests), measured by our own loop.
//!
//! What it accepts, and where it differs on purpose, is in `docs/cyclictest.md`. It runs in this one process, so that it takes
//! no more CPU time for a wake-up than the original, and takes no lock of the machine: several may run side by side.

mod command_line;
mod engine;
mod follow;
mod help;
mod histogram;
mod json;
mod known;
mod layout;
mod machine;
mod options;
mod signals;
mod tally;
mod text;
mod typed;
mod values;
mod words;

use crate::TOOL;
use crate::host::{self, HostFs};
pub(crate) use command_line::asked_there;
use engine::Done;
use options::{Asked, Options};
use rt::sys;
use std::error::Error;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::time::SystemTime;

/// What a run came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Conclusion {
    /// It ended as asked, or help was shown.
    Measured,
    /// A latency was above `-b`.
    Broke,
}

impl Conclusion {
    /// As the process ends, and as the JSON says: 0, or 2 as for a violated requirement. The original says 0 for both.
    pub(crate) fn exit_status(self) -> u8 {
        match self {
            Conclusion::Measured => 0,
            Conclusion::Broke => 2,
        }
    }
}

/// Where a run prints.
pub(crate) struct Console<'a> {
    /// The result.
    pub(crate) out: &'a mut dyn Write,
    /// Notes and the status.
    pub(crate) err: &'a mut dyn Write,
}

impl Console<'_> {
    /// Prints at once, whole lines.
    fn print(&mut self, text: &str) -> io::Result<()> {
        if text.is_empty() {
            return Ok(());
        }
        self.out.write_all(text.as_bytes())?;
        self.out.flush()
    }

    /// Nobody reading it is no reason to stop.
    fn say(&mut self, text: &str) {
        let _ = self.err.write_all(text.as_bytes());
    }
}

/// Does what `words`, the command line without the program's name, ask for. `command_line` is all of it, for the JSON;
/// `compat` the layout that the environment asks for.
///
/// # Errors
/// One line: what cannot be done, and what to do.
pub(crate) fn run(
    words: &[String],
    command_line: &str,
    compat: Option<&str>,
    console: &mut Console<'_>,
) -> Result<Conclusion, Box<dyn Error>> {
    let usable = sys::sched::affinity(0)?;
    let options = match options::read(words, &usable, compat)? {
        Asked::Help => {
            console.print(help::HELP)?;
            return Ok(Conclusion::Measured);
        }
        Asked::Version => {
            console.print(&format!("{TOOL} (cyclictest)\n"))?;
            return Ok(Conclusion::Measured);
        }
        Asked::Measure(options) => options,
    };
    // Before measuring: a result that cannot be kept is not worth waiting for.
    let json = options.json.as_deref().map(|path| Sink::open("--json", path, true)).transpose()?;
    let histfile = options.histogram.as_ref().and_then(|histogram| histogram.file.as_deref());
    let histfile = histfile.map(|path| Sink::open("--histfile", path, false)).transpose()?;

    machine::lock_memory(&options)?;
    let mut notes = options.notes.clone();
    let dma_latency = machine::hold_dma_latency(&options, &mut notes)?;
    if options.resolution {
        notes.extend(machine::resolution(options.method, options.verbose));
    }
    notes.iter().for_each(|note| console.say(&format!("{note}\n")));
    let (cpus, threads) = if options.verbose {
        (machine::about_cpus(&options), machine::about_threads(&options))
    } else {
        (String::new(), String::new())
    };
    console.print(&format!("{cpus}{}{threads}", machine::dma_line(&options, dma_latency.as_ref())))?;

    let started = SystemTime::now();
    let done = engine::run(&options, &usable, console)?;
    let conclusion = if done.broke.is_some() { Conclusion::Broke } else { Conclusion::Measured };
    if let Some(json) = json {
        let run = json::Run {
            command_line,
            layout: options.layout,
            started,
            ended: SystemTime::now(),
            exit_status: conclusion.exit_status(),
            host: &host::snapshot(&HostFs::here()),
            nanoseconds: options.nanoseconds,
            method: &options.method.to_string(),
            broke: done.broke,
        };
        json.write(&json::json(&run, &done.shown)?, console)?;
    }
    let (to_file, to_stdout) = result(&options, &done);
    if let Some(histfile) = histfile {
        histfile.write(&to_file, console)?;
    }
    console.print(&to_stdout)?;
    Ok(conclusion)
}

/// The result as text: what goes to the histogram's own file, if there is one, and what to stdout.
fn result(options: &Options, done: &Done) -> (String, String) {
    let shown = &done.shown;
    let (mut to_file, mut text) = (String::new(), String::new());
    match &options.histogram {
        None => {
            if options.quiet {
                text += &text::statuses(shown, options.nanoseconds);
            }
            text += &text::truth(shown);
        }
        Some(histogram) => {
            let table = histogram::histogram(shown, histogram.rows, histogram.of_all, options.layout);
            let place = if histogram.file.is_some() { &mut to_file } else { &mut text };
            *place += &table;
        }
    }
    if options.break_above.is_some() {
        text += &text::break_lines(shown, done.broke);
    }
    if let Some(step) = done.clock_was_set {
        text += &text::row("Clock Was Set By us", 1, [step.0 / 1000]);
    }
    (to_file, text)
}

/// A file that a result goes to.
#[derive(Debug)]
struct Sink {
    option: &'static str,
    path: String,
    /// `None`: stdout.
    file: Option<File>,
}

impl Sink {
    /// Opens `path` without touching what is in it, so that a run that fails leaves the last result.
    fn open(option: &'static str, path: &str, may_be_stdout: bool) -> Result<Sink, String> {
        let open = || OpenOptions::new().write(true).create(true).truncate(false).open(path);
        let file = if may_be_stdout && path == "-" { None } else { Some(open()) };
        let file = file.transpose().map_err(|err| format!("{option} {path}: {err}"))?;
        Ok(Sink { option, path: path.to_owned(), file })
    }

    fn write(self, text: &str, console: &mut Console<'_>) -> Result<(), String> {
        let Sink { option, path, file } = self;
        let written = match file {
            None => console.print(text),
            // A device or a pipe cannot be cut, and need not be.
            Some(mut file) => {
                if file.metadata().is_ok_and(|found| found.is_file()) {
                    file.set_len(0).and_then(|()| file.write_all(text.as_bytes()))
                } else {
                    file.write_all(text.as_bytes())
                }
            }
        };
        written.map_err(|err| format!("{option} {path}: {err}"))
    }
}
