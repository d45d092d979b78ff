//! What was measured: records and runs, explanations, progress, results of other tools.

pub(crate) mod boots;
pub(crate) mod delay;
pub(crate) mod explanation;
pub(crate) mod imported;
pub(crate) mod progress;
pub(crate) mod promise;
pub(crate) mod record;
pub(crate) mod run;

pub use boots::{BootEvent, BootLine, BootStep, BootSteps, RunningKernel};
pub use delay::{Delay, DelayKind, Film, Frame, KeptFilm, LongestDelays, Piece, Witness, WitnessError, without_module};
pub use explanation::{
    AnswerStages, CaptureFile, Captures, Cause, CauseTotal, ClockMark, ClockTie, CodeFrame, CodePlace, Evidence,
    Explain, ExplainRecord, Explanation, GuestStop, GuestTids, HostLanes, HostPiece, HostState, IrqLatency, MarkTime,
    NotCovered, Owner, OwnerTotal, Phase, PhaseLength, SampledAt, Segment, Share,
};
pub use imported::{
    Beyond, ImportHeader, Imported, ImportedLoad, ImportedLoadError, ImportedThread, Source, StatedConditions,
};
pub use progress::{Bin, LoadProgress, Measured, Progress, Spike, ThreadProgress};
pub use promise::{Claim, ClaimCases, ControlCases, Promise, PromiseVerdict};
pub use record::{
    Achieved, AllBatches, AnswerParts, CallLimit, Censored, ChainRecord, ChainStage, ClockStep, CobaltRecord,
    CostRecord, CountedName, Ended, Episode, Episodes, FoundPeriod, GuestThread, HostSideRecord, HwlatGaps,
    HwlatRecord, InstrumentRecord, InstrumentThread, InterruptTime, LabRecord, Ledger, LoadFailure, LoadRecord,
    LoadSecond, MachineSecond, NamedTime, NoiseRecord, OnSpikeRecord, OpenActivation, OpenKind, OperationRecord,
    OsnoiseRecord, OtherThread, OwnExchange, PacketReleases, PhaseKind, PhaseRecord, PreparedSetting, ProgramRecord,
    RECORD_FORMAT, Record, RefusedCall, Releases, ResponseRecord, RuntimeRecord, Second, SettingChange,
    SkippedOperation, SleepTime, StartPlace, SwitchReason, TRACERS, TargetRecord, ThreadRecord, ThreadState,
    ThrottledTime, TimeAccount, TimerlatRecord, TracersRecord, Usage, WatchRecord, WatchedThread, Worst,
};
pub use run::{Entry, Failed, Header, Planned, RUN_FORMAT, Recovered, Recovery, Skipped};
