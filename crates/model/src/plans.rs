//! What is asked for: plans, their axes and conditions, and cells.

pub(crate) mod cell;
pub(crate) mod conditions;
pub(crate) mod guest_threads;
pub(crate) mod handoff;
pub(crate) mod instrument;
pub(crate) mod kernel;
pub(crate) mod link;
pub(crate) mod load;
pub(crate) mod mark;
pub(crate) mod method;
pub(crate) mod plan;
pub(crate) mod policy;
pub(crate) mod prepare;
pub(crate) mod roles;
pub(crate) mod selector;
pub(crate) mod shard;
pub(crate) mod task;
pub(crate) mod watch;

pub use cell::{Cell, CellId, check_endless};
pub use conditions::Conditions;
pub use guest_threads::{GuestThreadKind, GuestThreadSettings, GuestThreads, GuestThreadsError};
pub use handoff::{CpuPlace, Handoff, HandoffError, HandoffKind, WakerCpu};
pub use instrument::{Instrument, InstrumentError, ResultFormat, ResultTool};
pub use kernel::{Flavour, GuestFile, InstalledKernel, Kernel, KernelError, KernelSource, LabClock, LabKernel};
pub use link::{Link, LinkError, Pins, Place};
pub use load::{
    AboutLoad, FileLoad, KernelLoad, Load, LoadCpus, LoadError, LoadPart, NamedLoads, Percent, Program, Tool,
};
pub use mark::{Mark, MarkError};
pub use method::{ClockId, Method, MethodError};
pub use plan::{Axes, ChangedPlanError, Knob, Plan, PlanError, Point, Requirement, Setting, Until};
pub use policy::{DeadlineBudget, Nice, Policy, PolicyError, RtPriority};
pub use prepare::{CpusAway, Prepare, PrepareError};
pub use roles::{Roles, Shares, Site, SiteError};
pub use selector::Selector;
pub use shard::{Shard, ShardError};
pub use task::{CobaltContext, Runtime, Task, TaskError};
pub use watch::{Watch, WatchError, WatchSample, WatchTarget};
