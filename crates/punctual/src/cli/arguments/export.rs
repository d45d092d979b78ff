//! Arguments of `punctual export`.

use super::heading;
use clap::{Args, Subcommand, ValueEnum};
use punctual_model::Setting;
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(in crate::cli) struct ExportArguments {
    #[command(subcommand)]
    pub(in crate::cli) command: Option<ExportCommand>,
    /// Engine that runs the plan
    #[arg(value_enum, required = true)]
    pub(in crate::cli) engine: Option<Engine>,
    /// Ready plan (`punctual plan list`) or TOML file with a `/` or .toml
    #[arg(required = true)]
    pub(in crate::cli) plan: Option<PathBuf>,
    /// Parts of the run, each of them measured by one machine
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(in crate::cli) shards: u32,
    /// New directory of the files [default: PLAN-ENGINE]
    #[arg(long, value_name = "DIR")]
    pub(in crate::cli) out: Option<PathBuf>,
    /// Host (ansible), place (labgrid), device type (lava), node (k8s) or partition (slurm); repeat for several
    #[arg(long, value_name = "NAME", value_parser = target)]
    pub(in crate::cli) target: Vec<String>,
    /// Container image (k8s), or address of the static program (lava)
    #[arg(long, value_name = "IMAGE|URL", value_parser = source, help_heading = heading::OUTPUT)]
    pub(in crate::cli) from: Option<String>,
    /// Replace the values of an axis or key, like policy=other,fifo:80
    #[arg(long, value_name = "KEY=VALUE")]
    pub(in crate::cli) set: Vec<Setting>,
    /// Blocks: passes over all cells [default: the plan's]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000), help_heading = heading::EXTENT)]
    pub(in crate::cli) repetitions: Option<u32>,
    /// Seed of the order of the cells in each block [default: the plan's, or drawn]
    #[arg(long, value_name = "N", help_heading = heading::EXTENT)]
    pub(in crate::cli) seed: Option<u64>,
    /// Trust a plan owned by another user (its commands and system settings)
    #[arg(long, help_heading = heading::MACHINE)]
    pub(in crate::cli) yes: bool,
}

/// Exports of what was measured.
#[derive(Debug, Subcommand)]
pub(in crate::cli) enum ExportCommand {
    /// Write all kept spikes of a run as one file for Perfetto
    Perfetto(PerfettoArguments),
}

#[derive(Debug, Args)]
pub(in crate::cli) struct PerfettoArguments {
    /// Directory of a run [default: the latest below runs/]
    #[arg(value_name = "RUN")]
    pub(in crate::cli) run: Option<PathBuf>,
    /// File to write [default: perfetto.json in the run's directory]
    #[arg(short, long, value_name = "FILE")]
    pub(in crate::cli) output: Option<PathBuf>,
}

/// What runs the shards of a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum Engine {
    /// A playbook for machines with ssh
    Ansible,
    /// Reservations of places, and the boards by ssh
    Labgrid,
    /// Jobs with a test definition
    Lava,
    /// An indexed Job
    K8s,
    /// A job array on a shared file system
    Slurm,
}

impl Engine {
    /// The word of the command line.
    pub(in crate::cli) fn name(self) -> &'static str {
        match self {
            Engine::Ansible => "ansible",
            Engine::Labgrid => "labgrid",
            Engine::Lava => "lava",
            Engine::K8s => "k8s",
            Engine::Slurm => "slurm",
        }
    }

    /// Whether its files need programs for the machines beside them.
    pub(in crate::cli) fn takes_programs(self) -> bool {
        matches!(self, Engine::Ansible | Engine::K8s | Engine::Slurm)
    }
}

/// Reads the name of a machine, a word that is literal in every file.
fn target(text: &str) -> Result<String, String> {
    let is_literal = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    match text.chars().next() {
        Some(first) if first.is_ascii_alphanumeric() && text.len() <= 63 && text.chars().all(is_literal) => {
            Ok(text.to_owned())
        }
        _ => Err("expected at most 63 letters, digits, `.`, `_` and `-`, a letter or digit first".to_owned()),
    }
}

/// Reads the name of an image or an address, without characters that a shell would act upon.
fn source(text: &str) -> Result<String, String> {
    let is_literal = |c: char| c.is_ascii_alphanumeric() || "._-/:@%+~=?,".contains(c);
    if !text.is_empty() && !text.starts_with('-') && text.len() <= 1000 && text.chars().all(is_literal) {
        return Ok(text.to_owned());
    }
    Err("expected an image like registry.example/punctual:1, or an address like https://lab.example/punctual"
        .to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_machines_are_literal() {
        for good in ["board1", "192.0.2.1", "qemu-arm64_2"] {
            assert_eq!(target(good).as_deref(), Ok(good));
        }
        for bad in ["", "-x", "a b", "a\nb", "{{x}}", "a:b", "$x", "a'b", &"x".repeat(64)] {
            assert!(target(bad).is_err(), "{bad}");
        }
        for good in ["registry.example:5000/a/punctual@sha256:ab", "https://lab.example/punctual?x=1,2"] {
            assert_eq!(source(good).as_deref(), Ok(good));
        }
        for bad in ["", "-x", "a b", "$(id)", "a'b", "a\"b", "a;b", "a&b"] {
            assert!(source(bad).is_err(), "{bad}");
        }
    }
}
