//! The vocabulary and plain data of punctual: units, policy, CPU set, plan, cell, record.
//!
//! Everything here is a value: no I/O, no clock, and no host facts but those passed in. The same words are used in
//! code, on the command line, in JSON and in reports (GLOSSARY.md).
#![forbid(unsafe_code)]

mod architecture;
mod cell;
mod conditions;
mod cost;
mod cpuset;
mod date;
mod explanation;
mod guest_threads;
mod hash;
mod histogram;
mod host;
mod imported;
mod instrument;
mod kernel;
mod kernel_config;
mod lab_clock;
mod level;
mod link;
mod listed_kernel;
mod load;
mod method;
mod monitor;
mod order;
mod plain;
mod plan;
mod planned;
mod policy;
mod prepare;
mod progress;
mod random;
mod record;
mod recovered;
mod roles;
mod run;
mod schedule;
mod selector;
mod shard;
mod slice;
mod study;
mod task;
mod timerbench;
mod units;
mod watch;
mod word;

pub use architecture::Architecture;
pub use cell::{Cell, CellId};
pub use conditions::Conditions;
pub use cost::{COST_OPERATIONS, CostGroup, CostOperation, CostScope};
pub use cpuset::{CpuSet, CpuSetError};
pub use date::LAST_UNIX_MS;
pub use explanation::{
    AnswerStages, CaptureFile, Captures, Cause, CauseTotal, ClockMark, ClockTie, CodeFrame, CodePlace, Evidence,
    Explain, ExplainRecord, Explanation, GuestStop, HostLanes, HostPiece, HostState, IrqLatency, NotCovered, Owner,
    OwnerTotal, Phase, PhaseLength, SampledAt, Segment, Share,
};
pub use guest_threads::{GuestThreadKind, GuestThreadSettings, GuestThreads, GuestThreadsError};
pub use hash::fnv1a;
pub use histogram::{Bucket, Histogram};
pub use host::{
    Cache, Clocks, CoKernel, Cobalt, Evl, FrequencyPolicy, Gravity, Host, IdleState, Interrupts, IrqGroup, KernelFacts,
    Memory, MemoryNode, ModeSwitches, OnCpus, Permissions, Pipeline, Platform, Power, Preemption, Processors,
    RealtimeTask, Scheduling, SwitchingThread, Tasks, ThermalZone,
};
pub use imported::{
    Beyond, ImportHeader, Imported, ImportedLoad, ImportedLoadError, ImportedThread, Source, StatedConditions,
};
pub use instrument::{Instrument, InstrumentError, ResultFormat, ResultTool};
pub use kernel::{Flavour, GuestFile, Kernel, KernelError, KernelSource, LabKernel};
pub use kernel_config::{ConfigGroup, ConfigSummary, KernelConfig, KernelConfigError, LARGEST_CONFIG};
pub use lab_clock::LabClock;
pub use level::Level;
pub use link::{Link, LinkError, Pins, Place};
pub use listed_kernel::{ListedKernel, ListedKernels};
pub use load::{
    AboutLoad, FileLoad, KernelLoad, Load, LoadCpus, LoadError, LoadPart, NamedLoads, Percent, Program, Tool,
};
pub use method::{ClockId, Method, MethodError};
pub use monitor::{
    GapReason, LatencyBuckets, MONITOR_FORMAT, MonitorGap, MonitorLine, MonitorSpike, MonitorStart, MonitorStatus,
    MonitorTotals, MonitorWindow, MonitoredCpu,
};
pub use order::planned_order;
pub use plain::{is_plain, plain, shell_word};
pub use plan::{Axes, ChangedPlanError, Knob, Plan, PlanError, Point, Requirement, Setting, Until};
pub use planned::Planned;
pub use policy::{DeadlineBudget, Nice, Policy, PolicyError, RtPriority};
pub use prepare::{CpusAway, Prepare, PrepareError};
pub use progress::{Bin, LoadProgress, Measured, Progress, Spike, ThreadProgress};
pub use random::SplitMix64;
pub use record::{
    Achieved, AllBatches, AnswerParts, Censored, ChainRecord, ChainStage, ClockStep, CobaltRecord, CostRecord,
    CountedName, Ended, Episode, Episodes, FoundPeriod, GuestThread, HostSideRecord, InstrumentRecord,
    InstrumentThread, LabRecord, Ledger, LoadFailure, LoadRecord, LoadSecond, MachineSecond, NamedTime, OnSpikeRecord,
    OpenActivation, OpenKind, OperationRecord, OsnoiseRecord, OtherThread, OwnExchange, PreparedSetting, ProgramRecord,
    RECORD_FORMAT, Record, RefusedPolicy, Releases, ResponseRecord, RuntimeRecord, Second, SettingChange,
    SkippedOperation, SwitchReason, TargetRecord, ThreadRecord, ThreadState, TimerlatRecord, TracersRecord, Usage,
    WatchRecord, WatchedThread, Worst,
};
pub use recovered::{Recovered, Recovery};
pub use roles::{Roles, Shares, Site, SiteError};
pub use run::{Entry, Failed, Header, RUN_FORMAT, Skipped};
pub use schedule::{Cycle, Schedule};
pub use selector::Selector;
pub use shard::{Shard, ShardError};
pub use slice::Slice;
pub use study::{
    Statistic, Study, StudyAxis, StudyBeyond, StudyCells, StudyConclusion, StudyDefinition, StudyKernel, StudyTable,
    StudyWay, stands_for,
};
pub use task::{Runtime, Task, TaskError};
pub use timerbench::CobaltContext;
pub use units::{ClockTime, MonoTime, Nanos, Period, Span, SpanError};
pub use watch::{Watch, WatchError, WatchSample, WatchTarget};
pub use word::{UnknownWord, nearest};

/// Name and version of the program, as records keep them.
pub const TOOL: &str = concat!("punctual ", env!("CARGO_PKG_VERSION"));
