//! Outside programs that are loads.

use super::LoadError;
use crate::words::word::words;
use std::fmt;

/// An outside program and its arguments.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Program {
    /// The program.
    pub tool: Tool,
    /// The arguments as typed; never empty. Separated by blanks, except for [`Tool::Command`], which a shell parses.
    pub arguments: String,
}

words! {
    /// Known programs. One that exits with status 0 is started again, ten times a second at most.
    Tool {
        /// `stress-ng ARGUMENTS`
        StressNg = "stress-ng",
        /// `hackbench ARGUMENTS` (rt-tests)
        Hackbench = "hackbench",
        /// `ping -f HOST`
        Ping = "ping",
        /// `fio FILE`
        Fio = "fio",
        /// A command for the shell.
        Command = "cmd",
    }
}

impl Tool {
    /// Arguments of `stress-ng` alone: a CPU stressor on each CPU, and one that maps and touches memory.
    pub const STRESS_NG_DEFAULT: &str = "--cpu 0 --vm 1";

    /// The executable.
    pub fn command(self) -> &'static str {
        match self {
            Tool::Command => "sh",
            other => other.name(),
        }
    }

    /// Example arguments, as help shows them.
    fn arguments(self) -> &'static str {
        match self {
            Tool::StressNg => "stress-ng:--vm 1",
            Tool::Hackbench => "hackbench:-g 10",
            Tool::Ping => "ping:127.0.0.1",
            Tool::Fio => "fio:job.fio",
            Tool::Command => "cmd:make -j4",
        }
    }
}

impl Program {
    /// Parses a program and its arguments; `None` when `word` is not a program.
    pub(super) fn parse(word: &str, arguments: Option<&str>) -> Option<Result<Program, LoadError>> {
        let tool = Tool::ALL.into_iter().find(|tool| tool.name() == word)?;
        if tool == Tool::Hackbench && arguments.is_none() {
            return Some(Err(LoadError::Hackbench));
        }
        let default = if tool == Tool::StressNg { Tool::STRESS_NG_DEFAULT } else { "" };
        let arguments = arguments.unwrap_or(default).trim();
        // One line, so that arguments do not break tables and messages.
        let is_one_line = !arguments.is_empty() && !arguments.contains(char::is_control);
        let host = tool != Tool::Ping || !arguments.contains(char::is_whitespace) && !arguments.starts_with('-');
        let program = Program { tool, arguments: arguments.to_owned() };
        Some((is_one_line && host).then_some(program).ok_or(LoadError::Arguments(word.to_owned(), tool.arguments())))
    }
}

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.tool.name(), self.arguments)
    }
}
