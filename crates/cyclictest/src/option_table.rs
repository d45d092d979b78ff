//! The options of cyclictest, and our own.

use super::getopt::{
    ArgumentKind::{self, MaybeValue, Nothing, Value},
    OptionSpec,
};

/// Identifier of an option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Id {
    Affinity,
    Aligned,
    BreakTrace,
    Clock,
    Compat,
    Debug,
    DefaultSystem,
    Distance,
    Duration,
    Help,
    Histfile,
    HistOfAll,
    Histogram,
    Interval,
    Json,
    Laptop,
    Latency,
    LockAll,
    Loops,
    MainAffinity,
    Nanoseconds,
    NoOperation,
    Numa,
    Oscilloscope,
    Policy,
    PosixTimers,
    Priority,
    PrioSpread,
    Quiet,
    RefreshOnMax,
    Relative,
    Resolution,
    SecAligned,
    Smp,
    System,
    Threads,
    TraceMark,
    Smi,
    Unbuffered,
    Verbose,
    Version,
    /// Option of cyclictest that is not supported here, with advice.
    Refused(&'static str),
}

const fn option(id: Id, short: Option<char>, long: &'static str, takes: ArgumentKind) -> OptionSpec<Id> {
    OptionSpec { id, short, long, takes, in_full: false }
}

const fn ours(id: Id, long: &'static str, takes: ArgumentKind) -> OptionSpec<Id> {
    legacy(id, None, long, takes)
}

const fn legacy(id: Id, short: Option<char>, long: &'static str, takes: ArgumentKind) -> OptionSpec<Id> {
    OptionSpec { id, short, long, takes, in_full: true }
}

/// Advice for options that enable a tracer.
const TRACER: &str = "it enables a kernel tracer, which changes latency; start one with trace-cmd(1)";

/// Options of cyclictest 2.4 to 2.10, of older releases (0.83 to 1.10), and our own.
pub(super) const OPTIONS: &[OptionSpec<Id>] = &[
    option(Id::Affinity, Some('a'), "affinity", MaybeValue),
    option(Id::Aligned, Some('A'), "aligned", MaybeValue),
    option(Id::BreakTrace, Some('b'), "breaktrace", Value),
    option(Id::Clock, Some('c'), "clock", Value),
    option(Id::DefaultSystem, None, "default-system", Nothing),
    option(Id::Distance, Some('d'), "distance", Value),
    option(Id::Duration, Some('D'), "duration", Value),
    option(Id::Refused("read the status with SIGUSR1 instead"), Some('F'), "fifo", Value),
    option(Id::Histogram, Some('h'), "histogram", Value),
    option(Id::HistOfAll, Some('H'), "histofall", Value),
    option(Id::Histfile, None, "histfile", Value),
    option(Id::Interval, Some('i'), "interval", Value),
    option(Id::Json, None, "json", Value),
    option(Id::Laptop, None, "laptop", Nothing),
    option(Id::Latency, None, "latency", Value),
    option(Id::Loops, Some('l'), "loops", Value),
    option(Id::MainAffinity, None, "mainaffinity", Value),
    option(Id::LockAll, Some('m'), "mlockall", Nothing),
    option(Id::RefreshOnMax, Some('M'), "refresh_on_max", Nothing),
    legacy(Id::NoOperation, Some('n'), "nanosleep", Nothing),
    legacy(Id::NoOperation, None, "notrace", Nothing),
    legacy(Id::Numa, Some('U'), "numa", Nothing),
    legacy(Id::Policy, Some('y'), "", Value),
    legacy(Id::Latency, Some('e'), "", Value),
    legacy(Id::PrioSpread, Some('Q'), "", Nothing),
    legacy(Id::Debug, Some('X'), "", Nothing),
    legacy(Id::Refused(TRACER), Some('B'), "preemptirqs", Nothing),
    legacy(Id::Refused(TRACER), Some('C'), "context", Nothing),
    legacy(Id::Refused(TRACER), Some('E'), "event", Value),
    legacy(Id::Refused(TRACER), Some('f'), "ftrace", Nothing),
    legacy(Id::Refused(TRACER), Some('I'), "irqsoff", Nothing),
    legacy(Id::Refused(TRACER), Some('O'), "traceopt", Value),
    legacy(Id::Refused(TRACER), Some('P'), "preemptoff", Nothing),
    legacy(Id::Refused(TRACER), Some('T'), "tracer", Value),
    legacy(Id::Refused(TRACER), Some('w'), "wakeup", Nothing),
    legacy(Id::Refused(TRACER), Some('W'), "wakeuprt", Nothing),
    legacy(Id::Refused("`-H` has a column for all threads"), Some('g'), "of_max", Value),
    option(Id::Nanoseconds, Some('N'), "nsecs", Nothing),
    option(Id::Oscilloscope, Some('o'), "oscope", Value),
    option(Id::Priority, Some('p'), "priority", Value),
    option(Id::Policy, None, "policy", Value),
    option(Id::PrioSpread, None, "priospread", Nothing),
    option(Id::Quiet, Some('q'), "quiet", Nothing),
    option(Id::Relative, Some('r'), "relative", Nothing),
    option(Id::Resolution, Some('R'), "resolution", Nothing),
    option(Id::SecAligned, None, "secaligned", MaybeValue),
    option(Id::System, Some('s'), "system", Nothing),
    option(Id::Smp, Some('S'), "smp", Nothing),
    option(Id::Refused("`-v` prints every value, with its cycle"), None, "spike", Value),
    option(Id::Refused("`-v` prints every value, with its cycle"), None, "spike-nodes", Value),
    option(Id::Smi, None, "smi", Nothing),
    option(Id::Refused("--latency limits idle states by their exit latency"), None, "deepest-idle-state", Value),
    option(Id::Threads, Some('t'), "threads", MaybeValue),
    option(Id::TraceMark, None, "tracemark", Nothing),
    option(Id::Unbuffered, Some('u'), "unbuffered", Nothing),
    option(Id::Verbose, Some('v'), "verbose", Nothing),
    option(Id::Debug, None, "dbg_cyclictest", Nothing),
    option(Id::PosixTimers, Some('x'), "posix_timers", Nothing),
    option(Id::Help, Some('?'), "help", Nothing),
    ours(Id::Compat, "compat", Value),
    ours(Id::Version, "version", Nothing),
];
