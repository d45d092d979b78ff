//! Arguments of `punctual measure response` and `punctual respond`.

use super::{EXIT_STATUS, Format, OneCell};
use clap::Args;
use model::{Link, Load, Policy, Span};

#[derive(Debug, Args)]
#[command(after_help = EXIT_STATUS)]
pub(in crate::cli) struct ResponseArguments {
    /// Link to the responder, e.g. udp:HOST:PORT
    #[arg(long, value_name = "LINK")]
    pub(in crate::cli) to: Link,
    #[command(flatten)]
    pub(in crate::cli) cell: OneCell,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct RespondArguments {
    /// Link to answer on, e.g. udp:HOST:PORT with an address of this machine
    #[arg(long, value_name = "LINK")]
    pub(in crate::cli) on: Link,
    /// Answer only this host [default: the first that sends a trigger]
    #[arg(long, value_name = "HOST")]
    pub(in crate::cli) peer: Option<String>,
    /// Scheduling policy, e.g. fifo:80
    #[arg(long, default_value = "other")]
    pub(in crate::cli) policy: Policy,
    /// CPU to run on [default: the last usable one]
    #[arg(long, value_name = "CPU")]
    pub(in crate::cli) cpu: Option<u32>,
    /// Background load on this machine
    #[arg(long, default_value = "none")]
    pub(in crate::cli) load: Load,
    /// Exit when no trigger has come for this long, after the first
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub(in crate::cli) until_silent: Option<Span>,
    /// Allow `ping -f` to other hosts
    #[arg(long)]
    pub(in crate::cli) yes: bool,
    /// Time to answer [default: until Ctrl-C]
    #[arg(long = "for", value_name = "TIME", allow_hyphen_values = true)]
    pub(in crate::cli) duration: Option<Span>,
    /// Output format
    #[arg(long, value_enum, default_value = "text")]
    pub(in crate::cli) format: Format,
    /// Process that it ends with
    #[arg(long, value_name = "PID", hide = true)]
    pub(in crate::cli) parent: Option<u32>,
}
