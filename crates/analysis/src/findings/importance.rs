//! Which findings come first.

use super::Finding;

impl Finding {
    /// How much it matters, most important first: 0 spoils the numbers, 9 is context.
    #[must_use]
    pub fn importance(&self) -> u8 {
        match self {
            Finding::Allocations { .. }
            | Finding::Lost { .. }
            | Finding::LoadFailed { .. }
            | Finding::VirtualTime { .. }
            | Finding::EmulatedTime { .. }
            | Finding::GuestTime { .. } => 0,
            Finding::HostChanged { .. }
            | Finding::BaselineDiffers { .. }
            | Finding::SettingLost { .. }
            | Finding::LoadFell { .. }
            | Finding::LoadDidNothing { .. }
            | Finding::ClockSet { .. }
            | Finding::Interrupted { .. }
            | Finding::Stopped { .. }
            | Finding::NotAllCellsDone { .. }
            | Finding::MeasurementsFailed { .. }
            | Finding::Skipped { .. }
            | Finding::OperationsSkipped { .. }
            | Finding::FrequencyChanged { .. } => 1,
            Finding::Starved { .. }
            | Finding::LateAnswers { .. }
            | Finding::NeverAnswered { .. }
            | Finding::NotSent { .. }
            | Finding::AnswersLeftOut { .. }
            | Finding::StarvedOfCpu { .. }
            | Finding::Missed { .. }
            | Finding::TakesTurns { .. } => 2,
            Finding::MissStorms { .. }
            | Finding::MaxIsThrottleQuantum { .. }
            | Finding::LatencyChanged { .. }
            | Finding::LatencyDrifts { .. }
            | Finding::LatencyInWaves { .. }
            | Finding::RegularSpikes { .. }
            | Finding::OwnPopulation { .. } => 3,
            Finding::VirtualMachine { .. }
            | Finding::TimerSlack { .. }
            | Finding::Drift { .. }
            | Finding::OnSpikeFailed { .. } => 4,
            Finding::Coincidence { .. }
            | Finding::Steal { .. }
            | Finding::PageFaults { .. }
            | Finding::Early { .. } => 5,
            Finding::FewSamples { .. }
            | Finding::FewSlices { .. }
            | Finding::ByBlock { .. }
            | Finding::TailLimit { .. } => 6,
            Finding::RtThrottling { .. }
            | Finding::FairServer { .. }
            | Finding::NotRealtimeKernel { .. }
            | Finding::Governor { .. } => 7,
            Finding::ClockSource { .. }
            | Finding::OriginUncertain { .. }
            | Finding::MemoryUnlocked
            | Finding::DmaLatencyLeft => 8,
            Finding::Container { .. } | Finding::Dependent { .. } | Finding::VisibilityFloor { .. } => 9,
        }
    }
}
