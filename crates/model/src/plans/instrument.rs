//! An outside program that is the instrument of a cell: how it is run, and how its result is read.

use crate::words::word::as_text;
use crate::{GuestFile, Span, SpanError, UnknownWord};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// An outside program whose result is that of the cell.
///
/// Its text form is `program:RESULT[,KEY=VALUE]...:COMMAND`, like
/// `program:cyclictest,timeout=2min:cyclictest -q -D 60`.
///
/// Invariant of a parsed one: the command has at least one word, no path has a blank, comma or colon, and paths of
/// files are absolute.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[schemars(with = "String")]
#[serde(try_from = "String", into = "String")]
pub struct Instrument {
    /// The command line: words as in a shell, but no shell runs them, with names in braces
    /// ([`Cell::words_of`](crate::Cell::words_of)).
    pub command: String,
    /// Format of its result.
    pub read: ResultFormat,
    /// Name of the file that it writes its result to, in its private working directory; `None`: stdout.
    pub output: Option<String>,
    /// Files that a guest needs besides the program itself and the libraries that both are linked with.
    pub files: Vec<String>,
    /// Longest time from its start to its end; `None`: a minute more than the cell.
    pub timeout: Option<Span>,
    /// Whether SIGINT ends it after the duration of the cell, because it has no option for that.
    pub is_interrupted: bool,
}

/// Format of the result of an outside program.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ResultFormat {
    /// The program that defined it.
    pub tool: ResultTool,
    /// Kind of latency, in the words of the program, where a result has several: `irq`, `thread`, `user`.
    pub kind: Option<String>,
}

/// Programs whose results are understood.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ResultTool {
    /// cyclictest of rt-tests: text, histogram or JSON.
    Cyclictest,
    /// `results.json` or `samples.raw` of jitterdebugger.
    Jitterdebugger,
    /// Histograms of rtla timerlat and osnoise.
    Rtla,
    /// oslat of rt-tests.
    Oslat,
    /// Xenomai's latency: lines, or its file for gnuplot.
    XenomaiLatency,
    /// EVL's latmus: lines, or its file for gnuplot.
    Latmus,
    /// A table of latencies and numbers of samples; each further column is a thread. In microseconds.
    TableUs,
    /// The same, in nanoseconds.
    TableNs,
}

impl ResultFormat {
    /// The format without the kind of latency, as typed.
    pub fn tool_name(&self) -> &'static str {
        ResultTool::ALL.iter().find(|(tool, _)| *tool == self.tool).map_or("", |(_, name)| name)
    }
}

impl ResultTool {
    /// Every format in its typed form.
    pub const KNOWN: &[&str] =
        &["cyclictest", "jitterdebugger", "rtla[/KIND]", "oslat", "xenomai-latency", "latmus", "table-us", "table-ns"];
    const ALL: [(ResultTool, &str); 8] = [
        (ResultTool::Cyclictest, "cyclictest"),
        (ResultTool::Jitterdebugger, "jitterdebugger"),
        (ResultTool::Rtla, "rtla"),
        (ResultTool::Oslat, "oslat"),
        (ResultTool::XenomaiLatency, "xenomai-latency"),
        (ResultTool::Latmus, "latmus"),
        (ResultTool::TableUs, "table-us"),
        (ResultTool::TableNs, "table-ns"),
    ];
}

/// Parse error of a program as an instrument.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InstrumentError {
    /// Unknown format.
    #[error(transparent)]
    Unknown(#[from] UnknownWord),
    /// Missing parts.
    #[error(
        "invalid method `program{0}`: expected program:RESULT:COMMAND, like program:cyclictest:cyclictest -q -D 60"
    )]
    Form(String),
    /// A malformed command.
    #[error("invalid command `{0}`: expected one line of words, with both quotation marks of a pair")]
    Command(String),
    /// An unknown name in braces.
    #[error("invalid command: {0}")]
    Name(UnknownWord),
    /// A malformed path.
    #[error("invalid {0} `{1}`: expected an absolute path without blanks, commas and colons")]
    Path(&'static str, String),
    /// A malformed file name.
    #[error("invalid output `{0}`: expected the name of a file in the program's own directory, like result.json")]
    Output(String),
    /// A malformed timeout.
    #[error("invalid timeout: {0}")]
    Timeout(SpanError),
    /// An unknown signal.
    #[error("invalid stop `{0}`: expected SIGINT, which ends the program after the duration of the cell")]
    Stop(String),
    /// The same key twice.
    #[error("duplicate key `{0}`; give each once")]
    Twice(String),
}

/// Keys of the text form and of a plan's table, besides `program` and `read`.
const KEYS: &[&str] = &["timeout", "output", "files", "stop"];

/// Names that a command may have in braces.
const NAMES: &[&str] =
    &["cpus", "cpu", "n_cpus", "policy", "priority", "period_us", "period_ns", "duration_s", "cycles"];

impl Instrument {
    /// A program with default settings. Errors: when the command is malformed.
    pub fn new(read: ResultFormat, command: &str) -> Result<Instrument, InstrumentError> {
        let command = command.trim();
        let malformed = || InstrumentError::Command(command.to_owned());
        let words = shlex::split(command).filter(|_| !command.contains(char::is_control)).ok_or_else(malformed)?;
        words.first().filter(|program| !program.is_empty()).ok_or_else(malformed)?;
        for name in words.iter().flat_map(|word| names(word)) {
            if !NAMES.contains(&name) {
                return Err(InstrumentError::Name(UnknownWord::new("name", name, NAMES)));
            }
        }
        let command = command.to_owned();
        Ok(Instrument { command, read, output: None, files: Vec::new(), timeout: None, is_interrupted: false })
    }

    /// Sets one key of the text form; a list has its items separated by `+`. Errors: when the key is unknown or its
    /// value malformed.
    pub fn set(&mut self, key: &str, value: &str) -> Result<(), InstrumentError> {
        let path = |name: &'static str, text: &str| {
            let is_plain =
                text.starts_with('/') && !text.contains([',', ':', '+']) && !text.contains(char::is_whitespace);
            is_plain.then(|| text.to_owned()).ok_or_else(|| InstrumentError::Path(name, text.to_owned()))
        };
        let file_name = |text: &str| {
            let is_name = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
            let is_plain = !text.is_empty() && !text.starts_with('.') && text.chars().all(is_name);
            is_plain.then(|| text.to_owned()).ok_or_else(|| InstrumentError::Output(text.to_owned()))
        };
        let is_set = match key {
            "timeout" => self.timeout.replace(value.parse().map_err(InstrumentError::Timeout)?).is_some(),
            "output" => self.output.replace(file_name(value)?).is_some(),
            "files" => {
                let files = value.split('+').map(|file| path("file", file)).collect::<Result<_, _>>()?;
                !std::mem::replace(&mut self.files, files).is_empty()
            }
            "stop" if value == "SIGINT" => std::mem::replace(&mut self.is_interrupted, true),
            "stop" => return Err(InstrumentError::Stop(value.to_owned())),
            other => return Err(UnknownWord::new("key", other, KEYS).into()),
        };
        if is_set { Err(InstrumentError::Twice(key.to_owned())) } else { Ok(()) }
    }

    /// The command line with `value` in place of each name in braces; its first word is the program.
    pub(crate) fn words_with(&self, value: impl Fn(&str) -> String) -> Vec<String> {
        let filled = |word: String| {
            names(&word).fold(word.clone(), |word, name| word.replace(&format!("{{{name}}}"), &value(name)))
        };
        self.command_words().into_iter().map(filled).collect()
    }

    /// The words of the command as typed.
    pub fn command_words(&self) -> Vec<String> {
        shlex::split(&self.command).unwrap_or_default()
    }

    /// Name of the program, without its directory.
    pub fn name(&self) -> String {
        let program = self.command_words().into_iter().next().unwrap_or_default();
        program.rsplit('/').next().unwrap_or_default().to_owned()
    }

    /// The extra files, each at the same place in a guest.
    pub fn guest_files(&self) -> Vec<GuestFile> {
        self.files.iter().map(|path| GuestFile { from: path.clone(), to: path.clone() }).collect()
    }
}

/// The names in braces in a word. Braces that hold anything else, as in `awk '{print $1}'`, are left alone.
fn names(word: &str) -> impl Iterator<Item = &str> {
    let is_name = |text: &&str| !text.is_empty() && text.chars().all(|c| c.is_ascii_lowercase() || c == '_');
    word.split('{').skip(1).filter_map(|rest| rest.split_once('}').map(|(name, _)| name)).filter(is_name)
}

impl FromStr for ResultFormat {
    type Err = UnknownWord;

    fn from_str(text: &str) -> Result<Self, UnknownWord> {
        let (tool, kind) = text.split_once('/').map_or((text, None), |(tool, kind)| (tool, Some(kind)));
        let found = ResultTool::ALL.iter().find(|(_, name)| *name == tool);
        let is_plain = kind.is_none_or(|kind| {
            !kind.is_empty() && kind.chars().all(|c| c.is_ascii_alphanumeric() || "-_ ".contains(c))
        });
        let tool = found.filter(|_| is_plain).map(|(tool, _)| *tool);
        let unknown = || UnknownWord::new("format of a result", text, ResultTool::KNOWN);
        Ok(ResultFormat { tool: tool.ok_or_else(unknown)?, kind: kind.map(str::to_owned) })
    }
}

impl fmt::Display for ResultFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.tool_name())?;
        self.kind.as_ref().map_or(Ok(()), |kind| write!(f, "/{kind}"))
    }
}

impl FromStr for Instrument {
    type Err = InstrumentError;

    fn from_str(text: &str) -> Result<Self, InstrumentError> {
        let form =
            || InstrumentError::Form(text.strip_prefix("program").map_or_else(|| format!(":{text}"), str::to_owned));
        let (head, command) = text.strip_prefix("program:").unwrap_or(text).split_once(':').ok_or_else(form)?;
        let mut parts = head.split(',');
        let mut instrument = Instrument::new(parts.next().unwrap_or_default().parse()?, command)?;
        for part in parts {
            let (key, value) = part.split_once('=').ok_or_else(form)?;
            instrument.set(key, value)?;
        }
        Ok(instrument)
    }
}

impl fmt::Display for Instrument {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Instrument { command, read, output, files, timeout, is_interrupted } = self;
        write!(f, "program:{read}")?;
        timeout.map_or(Ok(()), |timeout| write!(f, ",timeout={timeout}"))?;
        output.as_ref().map_or(Ok(()), |path| write!(f, ",output={path}"))?;
        if !files.is_empty() {
            write!(f, ",files={}", files.join("+"))?;
        }
        if *is_interrupted {
            f.write_str(",stop=SIGINT")?;
        }
        write!(f, ":{command}")
    }
}

as_text!(Instrument, InstrumentError);

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str) -> String {
        text.parse::<Instrument>().unwrap_err().to_string()
    }

    #[test]
    fn programs_print_as_they_are_typed() {
        for text in [
            "program:cyclictest:cyclictest -q -D 60 --histogram 400",
            "program:xenomai-latency,timeout=2min,output=out.txt,files=/lib/a+/lib/b:latency -t0 -g '/tmp/o ut'",
            "program:rtla/thread,stop=SIGINT:rtla timerlat hist -c {cpus}",
            "program:table-us:sh -c 'echo 1:2, 3'",
        ] {
            assert_eq!(text.parse::<Instrument>().map(|one| one.to_string()), Ok(text.to_owned()));
        }
    }

    #[test]
    fn a_wrong_program_is_one_line() {
        for (text, message) in [
            ("program:cyclictest", "invalid method `program:cyclictest`"),
            ("program:cyclictest:", "invalid command ``"),
            ("program:cyclictest:'x", "invalid command `'x`"),
            ("program:cyclictest:a\nb", "invalid command `a\nb`"),
            ("program:cyclic:x", "unknown format of a result `cyclic` (did you mean `cyclictest`?"),
            ("program:rtla/:x", "unknown format of a result `rtla/`"),
            ("program:oslat,timeout=x:o", "invalid timeout: "),
            ("program:oslat,output=../x:o", "invalid output `../x`: expected the name of a file"),
            ("program:oslat,files=x:o", "invalid file `x`: expected an absolute path"),
            ("program:oslat,stop=SIGKILL:o", "invalid stop `SIGKILL`"),
            ("program:oslat,stop=SIGINT,stop=SIGINT:o", "duplicate key `stop`"),
            ("program:oslat,time=1s:o", "unknown key `time`"),
            ("program:oslat:o -D {duration}", "invalid command: unknown name `duration`"),
        ] {
            assert!(error(text).starts_with(message), "{text}: {}", error(text));
        }
    }
}
