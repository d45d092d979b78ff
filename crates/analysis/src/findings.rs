//! Findings: doubts and causes as values that travel with the numbers.
//!
//! A finding is defined next to its detector with `finding!`, and listed in `kinds!`.

/// Defines a finding: its fields, its importance, its sentence, which has the fields as variables, and the examples
/// that the documents quote.
macro_rules! finding {
    (
        $(#[$doc:meta])* pub struct $kind:ident { $($(#[$about:meta])* pub $field:ident: $type:ty,)* },
        importance = $importance:literal,
        $sentence:expr,
        [$($example:expr),+ $(,)?]
    ) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, serde::Serialize)]
        #[derive(schemars::JsonSchema)]
        #[schemars(inline)]
        pub struct $kind { $($(#[$about])* pub $field: $type,)* }

        impl $kind {
            pub(super) const IMPORTANCE: u8 = $importance;

            #[cfg(test)]
            pub(super) fn examples() -> Vec<Finding> {
                vec![$($example.into()),+]
            }
        }

        impl std::fmt::Display for $kind {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                let $kind { $($field),* } = self;
                std::fmt::Display::fmt(&$sentence, f)
            }
        }
    };
}

mod answers;
mod cell;
mod coincidence;
mod cost;
mod fair_scheduling;
mod floor;
mod imported;
mod instrument;
mod kernels;
mod load;
mod machine;
mod refused;
mod run;
mod settings;
mod stalls;
mod steadiness;
mod throttling;
mod uncertainty;
mod unfit;
mod watched;

use crate::summary::cell::CellSummary;
use crate::summary::pool::Pool;
use crate::wording;
use punctual_model::{Entry, Header, Order};
use serde::Serialize;
use std::fmt;

pub(crate) use fair_scheduling::Realtime;
pub use imported::ImportedFinding;
pub(crate) use imported::of_imported;
pub use run::{progress as run_progress, skipped};
pub use steadiness::{Changed, Drifted};
pub use throttling::Limiter;
pub use watched::of_threads as of_watched_threads;
pub(crate) use watched::unfinished;

/// Lists all findings, in the order of the schema.
macro_rules! kinds {
    ($($file:ident::$kind:ident),* $(,)?) => {
        $(pub use $file::$kind;)*

        /// A caveat to know before trusting a number, with the numbers behind it.
        ///
        /// `Display` is one plain sentence of at most about 160 characters: the fact, its size, and the remedy.
        #[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
        #[serde(tag = "kind", rename_all = "snake_case")]
        #[expect(missing_docs, reason = "each variant is described where its struct is")]
        pub enum Finding {
            $($kind($kind)),*
        }

        impl Finding {
            /// Importance, 0 to 9: 0 invalidates the numbers, 9 is context.
            pub fn importance(&self) -> u8 {
                match self {
                    $(Finding::$kind(_) => $kind::IMPORTANCE),*
                }
            }
        }

        impl fmt::Display for Finding {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self {
                    $(Finding::$kind(finding) => finding.fmt(f)),*
                }
            }
        }

        /// Examples of all findings.
        #[cfg(test)]
        pub(crate) fn examples() -> Vec<Finding> {
            [$($kind::examples()),*].into_iter().flatten().collect()
        }

        $(impl From<$kind> for Finding {
            fn from(finding: $kind) -> Finding {
                Finding::$kind(finding)
            }
        })*
    };
}

kinds!(
    cell::Allocations,
    cell::Lost,
    cell::NotSeen,
    cell::ModeSwitches,
    cell::UnknownModeSwitches,
    cell::EarlyByGravity,
    machine::HostChanged,
    machine::BaselineDiffers,
    load::LoadFailed,
    load::LoadFell,
    load::LoadDidNothing,
    instrument::ProgramDiffers,
    instrument::BeyondHistogram,
    instrument::FoldedHistogram,
    kernels::LoadRatesDiffer,
    settings::SettingLost,
    run::Interrupted,
    run::Stopped,
    cell::OnSpikeFailed,
    run::NotAllCellsDone,
    run::MeasurementsFailed,
    run::Skipped,
    stalls::Starved,
    stalls::StarvedOfCpu,
    stalls::Missed,
    answers::LateAnswers,
    answers::NeverAnswered,
    answers::NotSent,
    answers::AnswersLeftOut,
    stalls::Drift,
    stalls::ClockSet,
    stalls::OriginUncertain,
    fair_scheduling::TakesTurns,
    stalls::MissStorms,
    uncertainty::ByBlock,
    steadiness::LatencyChanged,
    steadiness::LatencyDrifts,
    steadiness::LatencyInWaves,
    steadiness::RegularSpikes,
    steadiness::OwnPopulation,
    steadiness::TailLimit,
    floor::BelowFloor,
    throttling::MaxIsThrottleQuantum,
    throttling::RtThrottling,
    throttling::FairServer,
    instrument::ProgramTellsLess,
    settings::TimerSlack,
    kernels::KernelsNotAlike,
    machine::VirtualTime,
    machine::EmulatedTime,
    machine::GuestTime,
    machine::VirtualMachine,
    machine::Container,
    cell::PageFaults,
    coincidence::Steal,
    coincidence::Coincidence,
    cell::Early,
    uncertainty::FewSamples,
    uncertainty::FewSlices,
    uncertainty::Dependent,
    machine::NotRealtimeKernel,
    machine::Governor,
    machine::ClockSource,
    unfit::Spinning,
    unfit::OnOneCpu,
    unfit::FaultsUnlocked,
    unfit::HighestPriority,
    unfit::SlackOfWait,
    watched::ActivityLost,
    watched::DataWaited,
    watched::PacketsHeldBack,
    refused::CallRefused,
    watched::SettingsChanged,
    watched::Several,
    watched::ThreadsPooled,
    watched::RelativeSleep,
    watched::NoPeriod,
    watched::ProgramEnded,
    watched::NotFinished,
    watched::ThreadsUnseen,
    cost::OperationsSkipped,
    cost::FrequencyChanged,
    settings::MemoryUnlocked,
    settings::DmaLatencyLeft,
    run::VisibilityFloor,
);

impl Finding {
    /// A few words for a finding that is the same in every run on this machine, or that follows from the measured time
    /// alone. `None` for a finding about this run.
    pub fn brief(&self) -> Option<String> {
        let percent = |runtime_us: u64, period_us: u64| format!("{:.3}", runtime_us as f64 * 100.0 / period_us as f64);
        let share = |runtime_us, period_us| {
            format!("{} %", percent(runtime_us, period_us).trim_end_matches('0').trim_end_matches('.'))
        };
        Some(match self {
            Finding::VirtualMachine(_) => "virtual machine".to_owned(),
            Finding::Container(Container { container }) => format!("container ({container})"),
            Finding::NotRealtimeKernel(NotRealtimeKernel { preemption }) => preemption.name().to_owned(),
            Finding::FairServer(FairServer { runtime_us, period_us }) => {
                format!("fair server {}", share(*runtime_us, *period_us))
            }
            Finding::RtThrottling(RtThrottling { runtime_us, period_us }) => {
                format!("RT throttling {}", share(*runtime_us, *period_us))
            }
            Finding::Governor(Governor { governors }) => format!("governor {}", governors.join(" ")),
            Finding::ClockSource(ClockSource { clock_source }) => format!("clock source {clock_source}"),
            Finding::TimerSlack(TimerSlack { slack_ns }) => {
                format!("timer slack {}", wording::duration(*slack_ns as f64))
            }
            Finding::DmaLatencyLeft(_) => "idle states not limited".to_owned(),
            Finding::VisibilityFloor(VisibilityFloor { floor_ns, .. }) => {
                format!("events rarer than one in {} may be missed", wording::duration(*floor_ns as f64))
            }
            _ => return None,
        })
    }
}

/// The finding if `holds`.
fn when(holds: bool, finding: impl Into<Finding>) -> Option<Finding> {
    holds.then(|| finding.into())
}

/// Findings about the run as a whole, most important first.
pub(crate) fn of_run(header: &Header, entries: &[Entry], cells: &[CellSummary]) -> Vec<Finding> {
    let mut findings = run::findings(header, entries, cells);
    findings.extend(machine::findings(header, entries));
    findings.extend(kernels::findings(header, entries));
    let hosts = entries.iter().flat_map(|entry| [&*entry.record.host_before, &*entry.record.host_after]);
    let spinning = [&header.host].into_iter().chain(hosts).flat_map(|host| &host.tasks.spinning);
    let watched = cells.iter().filter_map(|cell| cell.watch.as_ref()).flat_map(|watch| &watch.threads);
    findings.extend(unfit::of_others(spinning, &watched.map(|thread| thread.tid).collect()));
    findings.order_by_key(Finding::importance);
    findings
}

/// Findings about one cell of the run, most important first.
pub(crate) fn of_cell(
    header: &Header,
    pool: &Pool<'_>,
    summary: &CellSummary,
    realtime: &Realtime<'_>,
) -> Vec<Finding> {
    let mut findings = cell::findings(header, pool, summary);
    findings.extend(instrument::findings(pool, summary));
    findings.extend(watched::findings(&header.host, summary));
    findings.extend(unfit::of_measured(pool));
    findings.extend(floor::finding(header, pool));
    findings.extend(fair_scheduling::finding(&header.host, pool, summary, realtime));
    findings.order_by_key(Finding::importance);
    findings
}
