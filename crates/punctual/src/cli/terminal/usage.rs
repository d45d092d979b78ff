//! Mistakes on the command line, each as one line that says what to do.

mod cyclictest_options;

use super::{note, output};
use crate::cli::arguments::{command, page, screen};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, Command, Error};
use punctual_model::{CpuSet, Load, Policy, Span, nearest};
use std::ffi::OsString;
use std::process::ExitCode;

/// Commands that take the options of a cell, and those where users of cyclictest try them.
const LIKE_CYCLICTEST: &[&str] = &["", "run", "measure", "explain"];

/// Words for commands that other programs use.
const OTHER_WORDS: &[(&str, &str)] = &[
    ("version", "write `punctual --version`"),
    ("diff", "write `punctual compare`"),
    ("view", "write `punctual show`"),
    ("trace", "write `punctual explain`"),
    ("stress", "write `punctual load`"),
    ("bench", "write `punctual measure cost`"),
    ("latency", "write `punctual measure`"),
    ("plot", "write `punctual report --format gnuplot`"),
    ("graph", "write `punctual report`"),
    ("stop", "Ctrl-C stops a measurement; after a kill: `punctual recover`"),
    ("kill", "Ctrl-C stops a measurement; after a kill: `punctual recover`"),
];

/// Options of other programs, and what to do instead; VALUE is the value as typed.
const OTHER_OPTIONS: &[(&str, &str)] = &[
    ("prio", "--policy fifo:VALUE"),
    ("rtprio", "--policy fifo:VALUE"),
    ("sched", "--policy VALUE"),
    ("core", "--cpus VALUE"),
    ("cores", "--cpus VALUE"),
    ("time", "--duration VALUE"),
    ("runtime", "--duration VALUE"),
    ("html", "`punctual report`"),
    ("fix", "the commands that `punctual doctor` prints; `punctual tune` tests settings"),
];

/// Shows help as help, and any mistake as one line with this exit status.
pub(in crate::cli) fn report(err: &Error, words: &[OsString], status: u8) -> ExitCode {
    let typed = Typed::new(words);
    let histogram = (err.kind() == ErrorKind::DisplayHelp).then(|| typed.histogram()).flatten();
    if !err.use_stderr() && histogram.is_none() {
        // `--help` and `--version`. A closed pipe is not an error.
        let _ = match err.kind() {
            ErrorKind::DisplayHelp if typed.rest.iter().any(|word| word == "--help") => {
                output::write(page(typed.command()).as_bytes())
            }
            ErrorKind::DisplayHelp => output::write(screen(typed.command()).as_bytes()),
            _ => output::write(format!("{}\n", err.to_string().trim_end()).as_bytes()),
        };
        return ExitCode::SUCCESS;
    }
    note(format_args!("punctual: {}", histogram.unwrap_or_else(|| typed.line(err))));
    ExitCode::from(status)
}

/// The error for a word that is no command below `command`.
pub(in crate::cli) fn unknown_command(command: &Command, word: &str) -> String {
    let known = command.get_subcommands().filter(|below| !below.is_hide_set()).map(Command::get_name);
    let hint = match OTHER_WORDS.iter().find(|(other, _)| *other == word) {
        Some((_, hint)) => format!("{hint}; "),
        None => nearest(word, known).map(|near| format!("did you mean `{near}`? ")).unwrap_or_default(),
    };
    format!("unknown command `{word}` ({hint}see `{} --help`)", command.get_bin_name().unwrap_or("punctual"))
}

/// A command line that has a mistake.
struct Typed {
    root: Command,
    /// Words after `punctual` that name the command.
    path: String,
    /// Words after these.
    rest: Vec<String>,
}

impl Typed {
    fn new(words: &[OsString]) -> Typed {
        let mut root = command();
        root.build();
        let mut rest: Vec<_> = words.iter().skip(1).map(|word| word.to_string_lossy().into_owned()).collect();
        let (mut found, mut path) = (&root, Vec::new());
        while let Some(below) = rest.first().and_then(|word| found.find_subcommand(word)) {
            found = below;
            path.push(rest.remove(0));
        }
        let path = path.join(" ");
        Typed { root, path, rest }
    }

    fn command(&self) -> &Command {
        let words = self.path.split_whitespace();
        words.fold(&self.root, |found, word| found.find_subcommand(word).unwrap_or(found))
    }

    /// Where to read on.
    fn see(&self) -> String {
        format!("see `{} --help`", self.command().get_bin_name().unwrap_or("punctual"))
    }

    /// The first form in which the command is written.
    fn synopsis(&self) -> String {
        let usage = self.command().clone().render_usage().to_string();
        usage.lines().next().unwrap_or_default().trim_start_matches("Usage: ").to_owned()
    }

    /// The answer to `-h 400`, which is help to clap and a histogram to users of cyclictest.
    fn histogram(&self) -> Option<String> {
        let is_number = |word: &String| !word.is_empty() && word.chars().all(|c| c.is_ascii_digit());
        let at = self.rest.iter().position(|word| word.starts_with("-h") && !word.starts_with("--"))?;
        let attached = self.rest[at][2..].to_owned();
        let is_histogram = is_number(&attached) || attached.is_empty() && self.rest.get(at + 1).is_some_and(is_number);
        is_histogram.then(|| self.habit("-h")).flatten()
    }

    /// The answer to an option of cyclictest.
    fn habit(&self, option: &str) -> Option<String> {
        let is_known = |name: &str| has_option(self.command(), name);
        let is_answered = LIKE_CYCLICTEST.contains(&self.path.as_str());
        is_answered.then(|| cyclictest_options::answer(option, &self.path, &self.rest, is_known)).flatten()
    }

    fn line(&self, err: &Error) -> String {
        let context = |kind| match err.get(kind) {
            Some(ContextValue::String(text)) => Some(text.clone()),
            Some(ContextValue::Strings(texts)) => Some(texts.join(", ")),
            _ => None,
        };
        let argument = context(ContextKind::InvalidArg).unwrap_or_default();
        let value = context(ContextKind::InvalidValue).unwrap_or_default();
        // `--period <TIME>` is typed as `--period`.
        let option = argument.split(' ').next().unwrap_or_default().trim_matches(['[', ']', '<', '>', '.']);
        let see = self.see();
        match err.kind() {
            ErrorKind::ValueValidation => {
                let reason = std::error::Error::source(err).map(ToString::to_string).unwrap_or_default();
                let misplaced = (option == "METHOD").then(|| misplaced(&value)).flatten();
                misplaced.unwrap_or_else(|| format!("{option}: {reason}"))
            }
            ErrorKind::InvalidValue if value.is_empty() => format!("{option} needs a value; {see}"),
            ErrorKind::InvalidValue => {
                let valid = context(ContextKind::ValidValue).unwrap_or_default();
                format!("{option}: unknown value `{value}` (known: {valid})")
            }
            ErrorKind::UnknownArgument => self.unknown_argument(option),
            ErrorKind::InvalidSubcommand => {
                unknown_command(self.command(), &context(ContextKind::InvalidSubcommand).unwrap_or_default())
            }
            // A second word where one method can stand.
            ErrorKind::ArgumentConflict if argument.is_empty() => {
                self.unknown_argument(&context(ContextKind::InvalidSubcommand).unwrap_or_default())
            }
            ErrorKind::ArgumentConflict => {
                let other = context(ContextKind::PriorArg).unwrap_or_default();
                format!("{option} cannot be combined with {other}")
            }
            ErrorKind::MissingRequiredArgument => {
                format!("{argument} is missing: {}; {see}", self.synopsis())
            }
            ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand | ErrorKind::MissingSubcommand => {
                format!("a command is missing: {}; {see}", self.synopsis())
            }
            _ => {
                let text = err.to_string();
                let first = text.lines().next().unwrap_or_default();
                format!("{}; {see}", first.strip_prefix("error: ").unwrap_or(first))
            }
        }
    }

    /// The option to write in place of one with this name: a format, one that begins so, or one of another program.
    fn other_option(&self, name: &str) -> Option<String> {
        let command = self.command();
        let formats = command.get_arguments().find(|arg| arg.get_id() == "format").map(Arg::get_possible_values);
        if formats.is_some_and(|formats| formats.iter().any(|format| format.get_name() == name)) {
            return Some(format!("--format {name}"));
        }
        let typed = self.rest.iter().position(|word| word.trim_start_matches("--").split('=').next() == Some(name))?;
        let attached = self.rest[typed].split_once('=').map(|(_, value)| value);
        let next = self.rest.get(typed + 1).map(String::as_str).filter(|word| !word.starts_with('-'));
        if let Some((_, write)) = OTHER_OPTIONS.iter().find(|(other, _)| *other == name) {
            let is_own = |long: &str| has_option(command, long.split(' ').next().unwrap_or(long));
            let write = write.replace("VALUE", attached.or(next).unwrap_or("VALUE"));
            return write.strip_prefix("--").is_none_or(is_own).then_some(write);
        }
        let longs = command.get_arguments().filter(|arg| !arg.is_hide_set());
        let longs = longs.filter(|arg| arg.get_long().is_some_and(|long| name.len() > 2 && long.starts_with(name)));
        let longer: Vec<_> = longs.collect();
        // `--cpu` is `--cpus` rather than `--cpu-dma-latency`.
        let is_plural = |arg: &&&Arg| arg.get_long().is_some_and(|long| long.len() == name.len() + 1);
        let arg = longer.iter().find(is_plural).or(longer.first().filter(|_| longer.len() == 1))?;
        let takes = arg.get_num_args().is_some_and(|n| n.takes_values());
        let value = attached.or(next).filter(|_| takes).map(|value| format!(" {value}")).unwrap_or_default();
        Some(format!("--{}{value}", arg.get_long()?))
    }

    /// The answer to an option, or a word, that the command does not take.
    fn unknown_argument(&self, option: &str) -> String {
        if let Some(answer) = self.habit(option) {
            return answer;
        }
        let see = self.see();
        let Some(name) = option.strip_prefix("--") else {
            let method = self.command().get_positionals().any(|arg| arg.get_id() == "task" || arg.get_id() == "what");
            let misplaced = method.then(|| misplaced(option)).flatten();
            let program = (self.path == "watch").then(|| self.rest.join(" "));
            let watched =
                program.map(|words| format!("a program to watch comes after `--`: punctual watch -- {words}"));
            let hint = misplaced.or(watched.map(|hint| format!("unknown argument `{option}`: {hint}")));
            return hint.unwrap_or_else(|| format!("unknown argument `{option}` ({see})"));
        };
        if let Some(write) = self.other_option(name) {
            let verb = if write.starts_with("the ") { "run" } else { "write" };
            return format!("unknown argument `{option}`: {verb} {write}");
        }
        let elsewhere: Vec<_> = self.root.get_subcommands().filter(|other| !other.is_hide_set()).collect();
        let elsewhere = elsewhere.iter().filter(|other| has_option(other, name)).take(3);
        let elsewhere: Vec<_> = elsewhere.map(|other| format!("`punctual {}`", other.get_name())).collect();
        if !elsewhere.is_empty() {
            return format!("unknown argument `{option}` (an option of {}; {see})", elsewhere.join(", "));
        }
        let own = self.command().get_arguments().filter(|arg| !arg.is_hide_set()).filter_map(|arg| arg.get_long());
        let near = nearest(name, own).map(|near| format!("did you mean `--{near}`? "));
        format!("unknown argument `{option}` ({}{see})", near.unwrap_or_default())
    }
}

fn has_option(command: &Command, name: &str) -> bool {
    command.get_arguments().any(|arg| arg.get_long() == Some(name) && !arg.is_hide_set())
}

/// The option for a value that stands in the place of a method.
fn misplaced(value: &str) -> Option<String> {
    let (is, write) = if value.parse::<Policy>().is_ok() {
        ("a policy", "--policy")
    } else if value.parse::<Span>().is_ok() {
        ("a time", "--duration")
    } else if value.parse::<Load>().is_ok() {
        ("a load", "--load")
    } else if value.parse::<CpuSet>().is_ok() {
        ("a list of CPUs", "--cpus")
    } else if value.ends_with(".toml") {
        return Some(format!("`{value}` is a plan: write `punctual run {value}`"));
    } else if value == "help" {
        return Some("write `punctual help measure`".to_owned());
    } else {
        return None;
    };
    Some(format!("`{value}` is {is}: write {write} {value}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_definition_is_sound() {
        command().debug_assert();
    }

    #[test]
    fn help_is_not_a_histogram_of_cyclictest() {
        for (typed, is_histogram) in
            [("measure -h 400", true), ("measure -h", false), ("measure --help", false), ("doctor -h 400", false)]
        {
            let words: Vec<_> = ["punctual"].into_iter().chain(typed.split(' ')).map(OsString::from).collect();
            assert_eq!(Typed::new(&words).histogram().is_some(), is_histogram, "{typed}");
        }
    }
}
