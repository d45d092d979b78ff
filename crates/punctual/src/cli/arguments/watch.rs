//! Arguments of `punctual watch`.

use super::explain::{Above, CapturesArgument, above};
use super::load::LoadArguments;
use super::{Common, EXIT_STATUS, Keep, heading};
use clap::Args;
use punctual_model::{Mark, Period, Policy, Span, Watch, WatchError, WatchTarget};
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(after_help = EXIT_STATUS)]
pub(in crate::cli) struct WatchArguments {
    /// The run for --again
    #[arg(value_name = "RUN")]
    pub(in crate::cli) run: Option<PathBuf>,
    /// Program to start and watch, with its arguments
    #[arg(value_name = "COMMAND", last = true, conflicts_with_all = ["pid", "cgroup", "unit"])]
    pub(in crate::cli) command: Vec<String>,
    /// Watch nothing: explain the kept late activations of a run, or of one capture, by the rules of this version
    #[arg(long, help_heading = heading::SPIKES)]
    pub(in crate::cli) again: bool,
    /// Watch nothing: judge the threads of a recorded trace, like trace.dat: all that look periodic, or --thread
    #[arg(long, value_name = "FILE", help_heading = heading::SPIKES)]
    pub(in crate::cli) from: Option<PathBuf>,
    /// Watch a running process
    #[arg(long, conflicts_with_all = ["cgroup", "unit"])]
    pub(in crate::cli) pid: Option<u32>,
    /// Watch the processes of a control group, e.g. /robot
    #[arg(long, value_name = "PATH", conflicts_with = "unit")]
    pub(in crate::cli) cgroup: Option<String>,
    /// Watch the processes of a systemd unit
    #[arg(long)]
    pub(in crate::cli) unit: Option<String>,
    /// Only threads of this name; * and ? are wildcards
    #[arg(long, value_name = "NAME")]
    pub(in crate::cli) thread: Option<String>,
    /// Period of each thread; auto finds it
    #[arg(long, value_name = "TIME", value_parser = period, default_value = "auto", allow_hyphen_values = true)]
    pub(in crate::cli) period: FoundOr<Period>,
    /// Deadline, counted from the release [default: period]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub(in crate::cli) deadline: Option<Span>,
    /// Watch for this time
    #[arg(long = "for", alias = "duration", value_name = "TIME", default_value = "10s", allow_hyphen_values = true)]
    pub(in crate::cli) duration: Span,
    /// Threads that wake each other, e.g. sensor,controller,actuator: end-to-end latency, and where it was spent
    #[arg(long, value_name = "NAMES", value_delimiter = ',', help_heading = heading::TIMING)]
    pub(in crate::cli) chain: Vec<String>,
    /// Metric: response (from the release to the end), or latency (until the program runs)
    #[arg(long, value_name = "METRIC", default_value = "response", help_heading = heading::TIMING)]
    pub(in crate::cli) sample: String,
    /// System call in which the threads wait for their next activation, e.g. futex [default: found]
    #[arg(long, value_name = "CALL", help_heading = heading::TIMING)]
    pub(in crate::cli) wait_in: Option<String>,
    /// Cut activations into phases where the program writes to trace_marker (marker, marker:TEXT), calls a function
    /// (function:NAME, function:FILE:NAME) or passes a probe (usdt:PROVIDER:NAME, usdt:FILE:PROVIDER:NAME); repeatable
    #[arg(long = "mark", value_name = "MARK", help_heading = heading::TIMING)]
    pub(in crate::cli) marks: Vec<Mark>,
    /// Activations that begin in this time are not recorded
    #[arg(long, value_name = "TIME", default_value = "200ms", allow_hyphen_values = true, help_heading = heading::TIMING)]
    pub(in crate::cli) warm_up: Span,
    /// Policy of the started program
    #[arg(long, default_value = "other")]
    pub(in crate::cli) policy: Policy,
    #[command(flatten)]
    pub(in crate::cli) load: LoadArguments,
    /// Response time above which an activation is explained; auto: the deadline, or 2 x the usual one
    #[arg(long, value_name = "TIME", default_value = "auto", value_parser = above, allow_hyphen_values = true, help_heading = heading::SPIKES)]
    pub(in crate::cli) above: Above,
    /// Keep the worst N (raises --above)
    #[arg(long = "keep", value_name = "N", default_value = "20", value_parser = clap::value_parser!(u32).range(1..=1000), help_heading = heading::SPIKES)]
    pub(in crate::cli) most: u32,
    /// Trace the watched threads only: late activations stay unexplained
    #[arg(long, help_heading = heading::SPIKES)]
    pub(in crate::cli) no_explain: bool,
    /// Name the line of code where a late activation waited or ran: samples the stacks of up to 32 threads; costs some
    /// microseconds at each sleep
    #[arg(long, help_heading = heading::SPIKES, conflicts_with = "no_explain")]
    pub(in crate::cli) stacks: bool,
    #[command(flatten)]
    pub(in crate::cli) captures: CapturesArgument,
    /// Shell command to run at each late activation, with the explanation as JSON on its stdin
    #[arg(long, value_name = "COMMAND", help_heading = heading::SPIKES, conflicts_with = "no_explain")]
    pub(in crate::cli) on_spike: Option<String>,
    /// Show all kept late activations, not only the worst three, and every finding
    #[arg(long, help_heading = heading::OUTPUT)]
    pub(in crate::cli) all: bool,
    /// Write each kept late activation into this directory: .json for Perfetto, .dat for KernelShark and trace-cmd
    #[arg(long, value_name = "DIR", help_heading = heading::OUTPUT, conflicts_with = "no_explain")]
    pub(in crate::cli) export: Option<PathBuf>,
    /// Keep every activation in this new Parquet file
    #[arg(long, value_name = "FILE", help_heading = heading::OUTPUT)]
    pub(in crate::cli) record: Option<PathBuf>,
    #[command(flatten)]
    pub(in crate::cli) keep: Keep,
    #[command(flatten)]
    pub(in crate::cli) common: Common,
}

/// A value that is given, or found (`None`).
#[derive(Debug, Clone, Copy)]
pub(in crate::cli) struct FoundOr<T>(pub(in crate::cli) Option<T>);

fn period(text: &str) -> Result<FoundOr<Period>, String> {
    if text == "auto" {
        return Ok(FoundOr(None));
    }
    text.parse().map(|period| FoundOr(Some(period))).map_err(|err: punctual_model::SpanError| format!("{err}, or auto"))
}

impl WatchArguments {
    /// The threads that are asked for. Errors: one line, when nothing is asked for or a value is malformed.
    pub(in crate::cli) fn watch(&self) -> Result<Watch, WatchError> {
        let target = match (&self.command[..], self.pid) {
            ([], Some(pid)) => WatchTarget::Pid(pid),
            ([], None) => WatchTarget::Everywhere,
            (words, _) => WatchTarget::Command(
                words.iter().map(|word| punctual_model::shell_word(word)).collect::<Vec<_>>().join(" "),
            ),
        };
        let mut watch = Watch::new(target);
        let texts = [("cgroup", &self.cgroup), ("unit", &self.unit), ("thread", &self.thread), ("wait", &self.wait_in)];
        for (key, value) in texts {
            value.as_ref().map_or(Ok(()), |value| watch.set(key, value))?;
        }
        if !self.chain.is_empty() {
            watch.set("chain", &self.chain.join("+"))?;
        }
        watch.set("sample", &self.sample)?;
        (watch.period, watch.deadline) = (self.period.0, self.deadline);
        if self.from.is_some() && self.thread.is_none() {
            return Ok(watch);
        }
        // Once through its text form, which a run keeps: all of it is checked there.
        watch.to_string().parse()
    }
}
