//! What can be typed after `measure response`, after `respond`, and after `supervise`, which runs a role.

use super::{EXIT_STATUS, Format, OneCell};
use clap::Args;
use model::{Link, Load, Policy, Span};

#[derive(Debug, Args)]
#[command(after_help = EXIT_STATUS)]
pub(in crate::cli) struct ResponseArguments {
    /// Link to what answers: udp:HOST:PORT, serial:/dev/ttyX,BAUD, serial-loop:/dev/ttyX, gpio:CHIP/IN,OUT,
    /// gpio-loop:CHIP/IN,OUT, parport:/dev/parportN
    #[arg(long, value_name = "LINK")]
    pub(in crate::cli) to: Link,
    #[command(flatten)]
    pub(in crate::cli) cell: OneCell,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct RespondArguments {
    /// Link to answer on: udp:HOST:PORT, an address of this machine; serial:/dev/ttyX,BAUD; gpio:CHIP/IN,OUT;
    /// parport:/dev/parportN; uio:/dev/uioN
    #[arg(long, value_name = "LINK")]
    pub(in crate::cli) on: Link,
    /// The machine to answer, and no other [default: the first that sends a trigger]
    #[arg(long, value_name = "HOST")]
    pub(in crate::cli) peer: Option<String>,
    /// How the thread is scheduled: other, other:nice=N, batch, idle, fifo:PRIORITY, rr:PRIORITY
    #[arg(long, default_value = "other")]
    pub(in crate::cli) policy: Policy,
    /// CPU that it runs on [default: the last that may be used]
    #[arg(long, value_name = "CPU")]
    pub(in crate::cli) cpu: Option<u32>,
    /// Background work on this machine meanwhile, as for `measure`
    #[arg(long, default_value = "none")]
    pub(in crate::cli) load: Load,
    /// End when no trigger has come for so long, once one has
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub(in crate::cli) until_silent: Option<Span>,
    /// Let ping flood another machine
    #[arg(long)]
    pub(in crate::cli) yes: bool,
    /// How long it answers [default: until Ctrl-C]
    #[arg(long = "for", value_name = "TIME", allow_hyphen_values = true)]
    pub(in crate::cli) duration: Option<Span>,
    /// Form of the result on stdout
    #[arg(long, value_enum, default_value = "text")]
    pub(in crate::cli) format: Format,
    /// Process that it ends with
    #[arg(long, value_name = "PID", hide = true)]
    pub(in crate::cli) parent: Option<u32>,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct SuperviseArguments {
    /// End it after so long, too
    #[arg(long = "for", value_name = "TIME")]
    pub(in crate::cli) at_most: Option<Span>,
    /// What the command reads on its stdin
    #[arg(long, value_name = "TEXT")]
    pub(in crate::cli) input: Option<String>,
    /// The command and its arguments
    #[arg(required = true, last = true)]
    pub(in crate::cli) command: Vec<String>,
}
