//! The conditions of a measurement: settings that are equal in every cell of a plan.

use crate::{CpuSet, Explain, Mark, Percent, Policy, Prepare, Roles, Span, Task};
use serde::{Deserialize, Serialize};

/// Settings of every cell of a plan, apart from its point in the matrix.
///
/// A plan holds them as requested, a cell only as far as they apply to it ([`Conditions::that_apply`]).
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Conditions {
    /// Warm-up time, ns: its cycles run but are not recorded.
    #[serde(rename = "warm_up_ns")]
    pub warm_up: Span,
    /// Timer slack, ns, of the measured threads. `null`: the kernel's default for the policy (50 us for normal
    /// policies, none for real-time ones), `PR_SET_TIMERSLACK(2const)`.
    #[serde(rename = "timer_slack_ns")]
    pub timer_slack: Option<Span>,
    /// First due time, ns after a full second of the method's clock. `null`: as soon as possible.
    #[serde(rename = "align_ns", default)]
    pub align: Option<Span>,
    /// Offset, ns, between the due times of one CPU and the next. `null`: due times of all CPUs coincide.
    #[serde(rename = "distance_ns", default)]
    pub distance: Option<Span>,
    /// Difference, ns, between the periods of one measured CPU's thread and the next one's: the thread on the n-th CPU,
    /// from 0, has the period of the cell plus n times this. `null`: all threads have the period of the cell.
    #[serde(rename = "period_step_ns", default, skip_serializing_if = "Option::is_none")]
    pub period_step: Option<Span>,
    /// Value, us, held in `/dev/cpu_dma_latency` during the measurement. `null`: not set.
    pub cpu_dma_latency_us: Option<u32>,
    /// Scheduling policy of the load. `null`: `other` at nice 0.
    #[serde(default)]
    pub load_policy: Option<Policy>,
    /// Minimum rate of the load, percent of its rate at the start; below it the cell is an error. `null`: a load that
    /// ends or falls behind is recorded as such, and is a finding.
    #[serde(rename = "load_must_hold_percent", default)]
    pub load_must_hold: Option<Percent>,
    /// Settings of the machine that are changed for the length of the cell.
    #[serde(default)]
    pub prepare: Prepare,
    /// Options of explaining late wake-ups by a kernel trace during the cell. `null`: no trace.
    #[serde(default)]
    pub explain: Option<Explain>,
    /// Latency, ns, above which a wake-up ends the cell for all its threads. `null`: no limit.
    #[serde(rename = "stop_above_ns", default)]
    pub stop_above: Option<Span>,
    /// Shell command that runs at a spike, outside the measured CPUs, with the spike as JSON on its stdin
    /// ([`Explanation`]). A spike is an explained wake-up or, without explanations, the wake-up that ends the cell.
    /// `null`: none.
    ///
    /// [`Explanation`]: crate::Explanation
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_spike: Option<String>,
    /// Places that watched threads pass, which cut their activations into phases.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub marks: Vec<Mark>,
    /// Whether the kernel's tracers `timerlat`, `osnoise` and `hwlat` run after the cell, under the same load.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub tracers: bool,
    /// Machines of a measurement of response times over a link.
    #[serde(default, skip_serializing_if = "Roles::is_empty")]
    pub roles: Roles,
}

impl Conditions {
    /// The conditions that apply to a cell of `task` and `policy`. A cell without a load has no conditions of the load.
    pub fn that_apply(&self, task: &Task, policy: Policy, is_loaded: bool) -> Conditions {
        let all = if task.has_latencies() { self.clone() } else { self.of_costs() };
        Conditions {
            // Programs, drivers and loops without waits warm up by themselves.
            warm_up: if task.runtime().is_some() || task.is_reported() || task.is_noise() {
                Span(0)
            } else {
                all.warm_up
            },
            timer_slack: all.timer_slack.filter(|_| !policy.is_realtime() && !task.is_noise()),
            load_policy: all.load_policy.filter(|_| is_loaded),
            load_must_hold: all.load_must_hold.filter(|_| is_loaded),
            ..all
        }
    }

    /// The conditions that apply where no thread waits for due times.
    fn of_costs(&self) -> Conditions {
        let Conditions { cpu_dma_latency_us, load_policy, load_must_hold, ref prepare, ref roles, .. } = *self;
        let (prepare, roles) = (prepare.clone(), roles.clone());
        Conditions { cpu_dma_latency_us, load_policy, load_must_hold, prepare, roles, ..Conditions::default() }
    }

    /// Text form of the conditions that were added after the first version, in a fixed order, with the CPUs of the
    /// load. It is part of a cell's identity; unset conditions are omitted, so that a new condition does not change
    /// existing identities.
    pub(crate) fn canonical_text(&self, load_cpus: Option<&CpuSet>) -> String {
        let Conditions {
            align, distance, period_step, load_policy, load_must_hold, prepare, explain, stop_above, ..
        } = self;
        let prepare = Some(prepare).filter(|prepare| !prepare.is_empty());
        let roles = Some(&self.roles).filter(|roles| !roles.is_empty());
        let marks: Vec<String> = self.marks.iter().map(Mark::to_string).collect();
        let words = [
            align.map(|offset| format!(" align {offset}")),
            distance.map(|distance| format!(" distance {distance}")),
            period_step.map(|step| format!(" period step {step}")),
            load_cpus.map(|cpus| format!(" load on {cpus}")),
            load_policy.map(|policy| format!(" load as {policy}")),
            load_must_hold.map(|share| format!(" load holds {}", share.get())),
            prepare.map(|prepare| format!(" prepare {prepare}")),
            explain.as_ref().map(|asked| format!(" explain {asked}")),
            stop_above.map(|above| format!(" stop above {above}")),
            self.on_spike.as_ref().map(|command| format!(" on spike {command}")),
            (!self.marks.is_empty()).then(|| format!(" marks {}", marks.join(", "))),
            self.tracers.then(|| " tracers".to_owned()),
            roles.map(|roles| format!(" {roles}")),
        ];
        words.into_iter().flatten().collect()
    }
}
