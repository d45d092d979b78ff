//! Words and plain data of punctual: units, policy, CPU set, plan, cell, record.
//!
//! Everything here is a value: no I/O, no clock, no host facts that were not handed in. The same words are used in
//! code, on the command line, in JSON and in reports (GLOSSARY.md).
#![forbid(unsafe_code)]

mod cell;
mod cpuset;
mod histogram;
mod host;
mod kernel;
mod load;
mod method;
mod plan;
mod policy;
mod prepare;
mod progress;
mod record;
mod run;
mod schedule;
mod study;
mod units;
mod word;

pub use cell::{Cell, CellId};
pub use cpuset::{CpuSet, CpuSetError};
pub use histogram::{Bucket, Histogram};
pub use host::{Host, Preemption};
pub use kernel::Kernel;
pub use load::{FileLoad, KernelLoad, Load, LoadCpus, LoadError, LoadPart, NamedLoads, Percent, Program, Tool};
pub use method::{ClockId, Method, MethodError, Runtime};
pub use plan::{Axes, Plan, PlanError, Point, Requirement};
pub use policy::{DeadlineBudget, Nice, Policy, PolicyError, RtPriority};
pub use prepare::{CpusAway, Prepare, PrepareError};
pub use progress::{Bin, Progress, Spike, ThreadProgress};
pub use record::{
    Achieved, Censored, ClockStep, Ended, Episode, Episodes, LoadFailure, LoadRecord, LoadSecond, MachineSecond,
    PreparedSetting, ProgramRecord, RECORD_FORMAT, Record, RuntimeRecord, Second, Slice, ThreadRecord, Usage, Worst,
};
pub use run::{Entry, Header, Planned, RUN_FORMAT, Skipped};
pub use schedule::{Cycle, Schedule};
pub use study::Study;
pub use units::{ClockTime, MonoTime, Nanos, Period, Span, SpanError};
pub use word::UnknownWord;
