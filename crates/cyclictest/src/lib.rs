//! `punctual cyclictest`: a drop-in for cyclictest (rt-tests) with the same options and output.
//!
//! Supported options and deliberate differences are listed in `docs/cyclictest.md`. It runs in one process, so that a
//! wake-up takes no more CPU time than in the original, and takes no machine lock: several may run side by side.
#![forbid(unsafe_code)]

mod command_line;
mod engine;
mod getopt;
mod histogram;
mod json;
mod machine;
mod option_table;
mod option_values;
mod options;
mod oslat;
mod output;
mod parsed;
mod signals;
mod tally;
mod text;
mod thread_progress;

pub use command_line::asked_there;
use engine::RunResult;
use options::{Invocation, Options};
pub use oslat::run as oslat;
pub use output::Console;
use output::Sink;
use punctual_host::HostFs;
use punctual_model::TOOL;
use std::error::Error;
use std::time::SystemTime;

/// Invocation of the program, apart from its options.
#[derive(Debug, Clone, Default)]
pub struct Call {
    /// The whole command line, for the JSON.
    pub command_line: String,
    /// Whether the program was invoked under the name cyclictest.
    pub is_drop_in: bool,
    /// Layout requested by [`COMPAT`].
    pub compat: Option<String>,
    /// Exit status requested by [`BREAK_STATUS`].
    pub break_status: Option<String>,
}

/// Environment variable: the version of cyclictest whose layout is printed.
pub const COMPAT: &str = "PUNCTUAL_CYCLICTEST_COMPAT";
/// Environment variable: the exit status after a latency above `-b`.
pub const BREAK_STATUS: &str = "PUNCTUAL_CYCLICTEST_BREAK_STATUS";

impl Call {
    /// Returns the exit status, and the JSON's `return_code`, after a latency above `-b`: 2, as for a violated
    /// requirement. Callers of cyclictest treat every status but 0 as a failed run (yardstick, crucible, Linaro's
    /// parser of `return_code`), so under its name it is 0, as in the original.
    fn status_of_break(&self) -> Result<u8, String> {
        let default = if self.is_drop_in { 0 } else { 2 };
        self.break_status.as_deref().map_or(Ok(default), |text| option_values::break_status(BREAK_STATUS, text))
    }
}

/// Runs with `words`, the command line without the program's name; returns the exit status. Errors: one line: reason
/// and advice.
pub fn run(words: &[String], call: &Call, console: &mut Console<'_>) -> Result<u8, Box<dyn Error>> {
    let usable = punctual_sys::sched::affinity(0)?;
    let status_of_break = call.status_of_break()?;
    let options = match options::read(words, &usable, call.compat.as_deref())? {
        Invocation::Help => {
            console.print(include_str!("help.txt"))?;
            return Ok(0);
        }
        Invocation::Version => {
            console.print(&format!("{TOOL} (cyclictest)\n"))?;
            return Ok(0);
        }
        Invocation::Measure(options) => options,
    };
    // Opened before the measurement: an output file that cannot be written is an early error.
    let json = options.json.as_deref().map(|path| Sink::open("--json", path, true)).transpose()?;
    let histfile = options.histogram.as_ref().and_then(|histogram| histogram.file.as_deref());
    let histfile = histfile.map(|path| Sink::open("--histfile", path, false)).transpose()?;

    if options.lock_memory {
        machine::lock_memory().map_err(|err| format!("-m: {err}"))?;
    }
    let mut notes = options.notes.clone();
    let dma_latency = machine::hold_dma_latency(&options, &mut notes)?;
    if options.resolution {
        notes.extend(machine::resolution(options.method, options.verbose));
    }
    notes.extend(options.threads.first().into_iter().flat_map(|thread| machine::unfit(thread.policy)));
    notes.iter().for_each(|note| console.say(&format!("{note}\n")));
    let (cpus, threads) = if options.verbose {
        (machine::about_cpus(&options), machine::about_threads(&options))
    } else {
        (String::new(), String::new())
    };
    console.print(&format!("{cpus}{}{threads}", machine::dma_line(&options, dma_latency.as_ref())))?;

    let started = SystemTime::now();
    let done = engine::run(&options, &usable, console)?;
    let status = if done.broke.is_some() { status_of_break } else { 0 };
    if let Some(json) = json {
        let header = json::Header {
            command_line: &call.command_line,
            layout: options.layout,
            started,
            ended: SystemTime::now(),
            exit_status: status,
            host: &punctual_host::snapshot(&HostFs::here()),
        };
        let method = options.method.to_string();
        let run = json::Run { nanoseconds: options.nanoseconds, method: &method, broke: done.broke };
        json.write(&json::json(&header, &run, &done.shown)?, console)?;
    }
    let (to_file, to_stdout) = result(&options, &done);
    if let Some(histfile) = histfile {
        histfile.write(&to_file, console)?;
    }
    console.print(&to_stdout)?;
    Ok(status)
}

/// The result as text: the part for the histogram file, if there is one, and the part for stdout.
fn result(options: &Options, done: &RunResult) -> (String, String) {
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
