//! Arguments of a load: beside a measurement, and of `punctual load`.

use super::Format;
use super::heading;
use clap::Args;
use punctual_model::{Axes, Conditions, CpuSet, Load, LoadCpus, Percent, Plan, Policy, Span};

/// Background load, and how it runs.
#[derive(Debug, Clone, Args)]
pub(in crate::cli) struct LoadArguments {
    /// Background load, e.g. messaging
    #[arg(long, default_value = "none")]
    pub(in crate::cli) load: Load,
    /// CPUs of the load: all, measured, others (those not measured), or a list like 0-3
    #[arg(long, value_name = "CPUS", default_value = "all", allow_hyphen_values = true, help_heading = heading::LOAD)]
    pub(in crate::cli) load_cpus: LoadCpus,
    /// Scheduling policy of the load [default: other]
    #[arg(long, value_name = "POLICY", help_heading = heading::LOAD)]
    pub(in crate::cli) load_policy: Option<Policy>,
    /// Fail if the load ends, stalls, or falls below this share of its initial rate, 50 % if none is given
    #[arg(long, value_name = "PERCENT", num_args = 0..=1, require_equals = true, default_missing_value = "50", value_parser = percent, help_heading = heading::LOAD)]
    pub(in crate::cli) load_must_hold: Option<Percent>,
}

impl LoadArguments {
    /// Puts them into a plan.
    pub(in crate::cli) fn ask(self, plan: Plan) -> Plan {
        let LoadArguments { load, load_cpus, load_policy, load_must_hold } = self;
        let axes = Axes { load: vec![load], ..plan.axes };
        Plan { axes, load_cpus, conditions: Conditions { load_policy, load_must_hold, ..plan.conditions }, ..plan }
    }
}

#[derive(Debug, Args)]
pub(in crate::cli) struct LoadCommandArguments {
    /// Load, e.g. messaging, cpu:50, disk+pipe, stress-ng [default: list all]
    pub(in crate::cli) load: Option<Load>,
    /// Describe each load: what it does, disturbs and costs
    #[arg(long, conflicts_with_all = ["load", "duration", "cpus", "policy"])]
    pub(in crate::cli) list: bool,
    /// Running time [default: until Ctrl-C]
    #[arg(long = "for", alias = "duration", value_name = "TIME", allow_hyphen_values = true, requires = "load")]
    pub(in crate::cli) duration: Option<Span>,
    /// CPUs of the load, e.g. 0-3,5 [default: all usable ones]
    #[arg(long, value_name = "LIST", allow_hyphen_values = true, requires = "load")]
    pub(in crate::cli) cpus: Option<CpuSet>,
    /// Scheduling policy; a real-time one needs --for
    #[arg(long, default_value = "other", requires = "load")]
    pub(in crate::cli) policy: Policy,
    /// Allow `ping -f` to other hosts
    #[arg(long)]
    pub(in crate::cli) yes: bool,
    /// Output format
    #[arg(long, value_enum, default_value = "text")]
    pub(in crate::cli) format: Format,
    /// Process that it ends with
    #[arg(long, value_name = "PID", hide = true)]
    pub(in crate::cli) parent: Option<u32>,
}

fn percent(text: &str) -> Result<Percent, String> {
    let percent = text.strip_suffix('%').unwrap_or(text).parse().ok().and_then(Percent::new);
    percent.ok_or_else(|| format!("invalid percentage `{text}`: expected 1 to 100"))
}
