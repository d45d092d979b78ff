//! The task of a cell: the thing that is measured.

use crate::words::word::{as_text, words};
use crate::{
    ClockId, CostScope, Instrument, InstrumentError, Link, LinkError, Method, MethodError, ResultTool, Span,
    UnknownWord, Watch, WatchError,
};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

words! {
    /// A language whose ordinary sleep is measured.
    #[derive(Serialize, Deserialize, schemars::JsonSchema)]
    #[serde(try_from = "String", into = "String")]
    Runtime, "runtime" {
        /// C with the system's library.
        C = "c",
        /// Python 3.
        Python3 = "python3",
        /// JavaScript in Node.js.
        Node = "node",
        /// Go.
        Go = "go",
        /// Java.
        Java = "java",
    }
}

as_text!(Runtime, UnknownWord);

/// The thing that is measured in a cell. Its key in plans and records is `method`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(try_from = "String", into = "String")]
pub enum Task {
    /// Wake-up latency of a thread that waits for due times, one a period.
    Cyclic(Method),
    /// Wake-up latency of a language's ordinary sleep, in a program of its own.
    Sleep(Runtime),
    /// Response time to an interrupt. The trigger is sent, or comes from a device, once a period.
    Response(Link),
    /// Costs of the kernel's operations.
    Cost(CostScope),
    /// Latencies that an outside program measures and reports.
    Program(Box<Instrument>),
    /// Wake-up latencies that Xenomai's driver `timerbench` measures in the kernel and reports.
    Timerbench(CobaltContext),
    /// Activations of threads of another program, seen by the kernel's trace.
    Watch(Box<Watch>),
}

impl Task {
    /// `clock_nanosleep` until an instant on `CLOCK_MONOTONIC`, the most common one.
    pub const CLOCK_NANOSLEEP: Task = Task::Cyclic(Method::CLOCK_NANOSLEEP);

    /// Every task in its typed form: the methods, and the other tasks.
    pub const KNOWN: &[&str] = &[
        "clock_nanosleep[:relative][:CLOCK]",
        "nanosleep",
        "timerfd[:CLOCK]",
        "itimer",
        "posix_timer[:CLOCK]",
        "futex[:CLOCK]",
        "poll",
        "deadline",
        "cobalt[:timerfd]",
        "handoff:KIND",
        "noise[:THRESHOLD]",
        "cobalt:kernel",
        "cobalt:handler",
        "sleep:RUNTIME",
        "response:LINK",
        "cost[:GROUP]",
        "program:RESULT:COMMAND",
        "watch:COMMAND",
    ];

    /// Whether latencies are measured, not costs.
    pub fn has_latencies(&self) -> bool {
        !matches!(self, Task::Cost(_))
    }

    /// The wait method; `None` where no thread waits for due times.
    pub fn method(&self) -> Option<Method> {
        if let Task::Cyclic(method) = self { Some(*method) } else { None }
    }

    /// Whether gaps of a thread that never waits are measured.
    pub fn is_noise(&self) -> bool {
        matches!(self, Task::Cyclic(Method::Noise { .. }))
    }

    /// The language whose sleep is measured, if any.
    pub fn runtime(&self) -> Option<Runtime> {
        if let Task::Sleep(runtime) = self { Some(*runtime) } else { None }
    }

    /// The link whose answers are measured, if any.
    pub fn link(&self) -> Option<Link> {
        if let Task::Response(link) = self { Some(*link) } else { None }
    }

    /// The outside program that measures, if any.
    pub fn instrument(&self) -> Option<&Instrument> {
        if let Task::Program(instrument) = self { Some(instrument) } else { None }
    }

    /// The threads that are watched, if any.
    pub fn watch(&self) -> Option<&Watch> {
        if let Task::Watch(watch) = self { Some(watch) } else { None }
    }

    /// The context in which Xenomai's driver measures, if it does.
    pub fn cobalt_context(&self) -> Option<CobaltContext> {
        if let Task::Timerbench(context) = self { Some(*context) } else { None }
    }

    /// Whether something else measures, a program or a driver, so that only its result is known.
    pub fn is_reported(&self) -> bool {
        self.instrument().is_some() || self.cobalt_context().is_some()
    }

    /// Name of the program or driver that measures, if [`Task::is_reported`].
    pub fn reporter(&self) -> Option<String> {
        self.instrument()
            .map(Instrument::name)
            .or_else(|| self.cobalt_context().map(|_| CobaltContext::DRIVER.to_owned()))
    }

    /// Label for tables: the word as typed, without the options of another program.
    pub fn label(&self) -> String {
        match self {
            Task::Program(instrument) => instrument.name(),
            Task::Watch(watch) => format!("watch {}", watch.name()),
            _ => self.to_string(),
        }
    }

    /// Whether Cobalt schedules the measured threads: they wait by its system calls, or answer its interrupts.
    pub fn is_of_cobalt(&self) -> bool {
        self.waits_by_cobalt() || self.link() == Some(Link::Oob)
    }

    /// Whether Cobalt's timers wake the measured threads.
    fn waits_by_cobalt(&self) -> bool {
        matches!(self.method(), Some(Method::Cobalt { .. }))
    }

    /// Whether latencies are smaller by the gravity of a co-kernel: of our own threads, of Xenomai's driver, or by a
    /// program of Xenomai or EVL.
    pub fn feels_gravity(&self) -> bool {
        let of_program = |it: &Instrument| matches!(it.read.tool, ResultTool::XenomaiLatency | ResultTool::Latmus);
        self.waits_by_cobalt() || self.cobalt_context().is_some() || self.instrument().is_some_and(of_program)
    }

    /// Whether waits are for a length of time, so that there are no due times on a grid.
    pub fn is_relative(&self) -> bool {
        self.runtime().is_some() || self.method().is_some_and(Method::is_relative)
    }

    /// Whether a late wake-up misses the due times before it. Not with relative waits, and not where each trigger has
    /// an answer of its own, independent of a late one before it.
    pub fn misses_when_late(&self) -> bool {
        let is_answered_one_by_one =
            self.link().is_some_and(|link| !matches!(link, Link::Gpio(_) | Link::GpioLoop(_) | Link::Parport(_)));
        !self.is_relative() && !is_answered_one_by_one && !self.is_reported() && self.watch().is_none()
    }

    /// The clock of its due times.
    pub fn clock(&self) -> ClockId {
        self.method().map_or(ClockId::Monotonic, Method::clock)
    }

    /// Whether timer slack delays its wake-ups.
    pub fn has_timer_slack(&self) -> bool {
        self.runtime().is_some() || self.instrument().is_some() || self.method().is_some_and(Method::has_timer_slack)
    }

    /// Whether it measures in processes of their own: one for each CPU, a language's program, or an outside one.
    pub fn is_in_other_processes(&self) -> bool {
        self.runtime().is_some() || self.instrument().is_some() || self.method().is_some_and(Method::is_one_a_process)
    }
}

/// Parse error of a task.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TaskError {
    /// Unknown task or runtime.
    #[error(transparent)]
    Unknown(#[from] UnknownWord),
    /// An option that a method does not have.
    #[error(transparent)]
    Method(MethodError),
    /// `sleep` alone.
    #[error("invalid method `sleep`: expected a language, like sleep:python3 (known: c python3 node go java)")]
    NoRuntime,
    /// `response` alone.
    #[error("invalid method `response`: expected a link, like response:uio or response:udp:HOST:PORT")]
    NoLink,
    /// A malformed link.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// A malformed outside program.
    #[error(transparent)]
    Instrument(#[from] InstrumentError),
    /// Malformed watched threads.
    #[error(transparent)]
    Watch(#[from] WatchError),
}

impl FromStr for Task {
    type Err = TaskError;

    fn from_str(text: &str) -> Result<Self, TaskError> {
        let (word, of_what) = text.split_once(':').map_or((text, None), |(word, of_what)| (word, Some(of_what)));
        Ok(match word {
            "sleep" => Task::Sleep(of_what.ok_or(TaskError::NoRuntime)?.parse()?),
            "response" => Task::Response(of_what.ok_or(TaskError::NoLink)?.parse()?),
            "program" => Task::Program(Box::new(of_what.unwrap_or_default().parse()?)),
            _ if word.split(',').next() == Some("watch") => Task::Watch(Box::new(text.parse()?)),
            "cobalt" if let Some(context) = of_what.filter(|what| *what != "timerfd") => {
                Task::Timerbench(context.parse()?)
            }
            "cost" => Task::Cost(of_what.map_or(Ok(CostScope::All), str::parse)?),
            _ => Task::Cyclic(text.parse().map_err(|err| match err {
                MethodError::Unknown(_) => UnknownWord::new("method", text, Task::KNOWN).into(),
                err => TaskError::Method(err),
            })?),
        })
    }
}

impl fmt::Display for Task {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Task::Cyclic(method) => method.fmt(f),
            Task::Sleep(runtime) => f.pad(&format!("sleep:{runtime}")),
            Task::Response(link) => f.pad(&format!("response:{link}")),
            Task::Program(instrument) => f.pad(&instrument.to_string()),
            Task::Watch(watch) => f.pad(&watch.to_string()),
            Task::Timerbench(context) => f.pad(&format!("cobalt:{context}")),
            Task::Cost(CostScope::All) => f.pad("cost"),
            Task::Cost(scope) => f.pad(&format!("cost:{scope}")),
        }
    }
}

as_text!(Task, TaskError);

words! {
    /// Context of Cobalt in which its driver `timerbench` measures.
    #[derive(Serialize, Deserialize, schemars::JsonSchema)]
    #[serde(try_from = "String", into = "String")]
    CobaltContext, "context of Cobalt" {
        /// A task of the kernel that sleeps until each due time.
        Kernel = "kernel",
        /// The handler of a timer, in the interrupt.
        Handler = "handler",
    }
}

impl CobaltContext {
    /// Name of the driver, and of its kernel task.
    pub const DRIVER: &str = "timerbench";

    /// Valid periods. The driver counts in batches of a second; and its handler, which loops while the next due time is
    /// past, never returns when a period is shorter than one turn of it.
    pub const PERIODS: std::ops::RangeInclusive<Span> = Span(20_000)..=Span::SECOND;
}

as_text!(CobaltContext, UnknownWord);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_print_as_they_are_typed() {
        for text in [
            "clock_nanosleep:relative:tai",
            "sleep:c",
            "sleep:python3",
            "sleep:node",
            "sleep:go",
            "sleep:java",
            "response:uio",
            "response:udp:192.0.2.7:4000",
            "cost",
            "cost:total",
            "cost:syscall",
            "cost:switch/2p_0k",
            "program:cyclictest,timeout=2min:cyclictest -D 60 -q",
            "cobalt",
            "cobalt:timerfd",
            "cobalt:kernel",
            "cobalt:handler",
            "watch,thread=control:./servo -v",
        ] {
            assert_eq!(text.parse::<Task>().map(|task| task.to_string()), Ok(text.to_owned()));
        }
        assert_eq!("clock_nanosleep:monotonic".parse(), Ok(Task::CLOCK_NANOSLEEP));
    }

    #[test]
    fn cobalt_schedules_waits_by_it_and_answers_out_of_band() {
        for (text, of_cobalt, gravity) in [
            ("cobalt", true, true),
            ("cobalt:timerfd", true, true),
            ("cobalt:handler", false, true),
            ("response:oob", true, false),
            ("response:uio", false, false),
            ("clock_nanosleep", false, false),
        ] {
            let task: Task = text.parse().unwrap();
            assert_eq!((task.is_of_cobalt(), task.feels_gravity()), (of_cobalt, gravity), "{text}");
        }
    }

    #[test]
    fn a_wrong_task_is_one_line() {
        for (text, message) in [
            ("poll:", "invalid option `` for method poll: expected no option"),
            (
                "sleep",
                "invalid method `sleep`: expected a language, like sleep:python3 (known: c python3 node go java)",
            ),
            ("response", "invalid method `response`: expected a link, like response:uio or response:udp:HOST:PORT"),
            ("response:udp:x", "invalid link `udp:x`: expected udp:HOST:PORT"),
            ("cobalt:kernal", "unknown context of Cobalt `kernal` (did you mean `kernel`? known: kernel handler)"),
            ("sleep:pyton3", "unknown runtime `pyton3` (did you mean `python3`? known: c python3 node go java)"),
        ] {
            assert_eq!(text.parse::<Task>().map_err(|err| err.to_string()), Err(message.to_owned()));
        }
        let TaskError::Unknown(unknown) = "costs".parse::<Task>().unwrap_err() else { panic!("unknown") };
        assert_eq!(unknown.nearest().as_deref(), Some("cost"));
        assert_eq!(&Task::KNOWN[..Method::KNOWN.len()], Method::KNOWN);
    }
}
