//! Facts about what is far away: machines, kernels, operations, studies, the monitor.

pub(crate) mod architecture;
pub(crate) mod cost;
pub(crate) mod floor;
pub(crate) mod host;
pub(crate) mod kernel_config;
pub(crate) mod monitor;
pub(crate) mod study;

pub use architecture::Architecture;
pub use cost::{COST_OPERATIONS, CostGroup, CostOperation, CostScope};
pub use floor::{Floor, Layer, LayerTotal};
pub use host::{
    Cache, Clocks, CoKernel, Cobalt, CrowdedCpu, Evl, FrequencyPolicy, Gravity, Host, IdleState, Interrupts, IrqGroup,
    KernelFacts, Memory, MemoryNode, ModeSwitches, NetworkDevice, OnCpus, Permissions, Pipeline, Platform, Power,
    Preemption, Processors, RealtimeTask, Scheduling, SpinningTask, SwitchingThread, Tasks, ThermalZone,
    interrupt_of_thread,
};
pub use kernel_config::{
    ConfigGroup, ConfigSummary, KernelConfig, KernelConfigError, LARGEST_CONFIG, ListedKernel, ListedKernels,
};
pub use monitor::{
    GapReason, LatencyBuckets, MONITOR_FORMAT, MonitorGap, MonitorLine, MonitorSpike, MonitorStart, MonitorStatus,
    MonitorTotals, MonitorWindow, MonitoredCpu,
};
pub use study::{
    Statistic, Study, StudyAxis, StudyBeyond, StudyCells, StudyConclusion, StudyDefinition, StudyKernel, StudyTable,
    StudyWay, stands_for,
};
