//! Files that run the shards of a plan on engines that a laboratory has: Ansible, labgrid, LAVA, Kubernetes, Slurm.
//!
//! Pure text. Every engine runs `punctual run plan.toml --shard I/N` once for each shard, keeps retries and machines
//! apart by its own means, and brings the shards back into `shards/I`, from which `punctual merge` makes one run. The
//! names of files, directories and commands are fixed; what a plan brings along (title, name, text) appears only in
//! comments and in quoted strings.

pub mod ansible;
pub mod k8s;
pub mod labgrid;
pub mod lava;
mod logs;
mod quoting;
pub mod slurm;
mod text;

use std::time::Duration;

/// Name of the plan in every set of files.
const PLAN: &str = "plan.toml";

/// The shards of a plan, and what an engine needs to know of them.
#[derive(Debug, Clone)]
pub struct Job {
    /// Name of the plan: the stem of its file, any text.
    pub name: String,
    /// Title of the plan, any text.
    pub title: String,
    /// The plan in TOML, with the seed of its order, so that all shards are of one order.
    pub plan: String,
    /// Number of shards, 1 or more.
    pub shards: u32,
    /// Expected duration of each shard.
    pub duration: Duration,
    /// Whether cells need root, or its capabilities.
    pub needs_root: bool,
    /// Whether all cells are in virtual time, so that shards do not disturb each other.
    pub virtual_time: bool,
    /// CPUs that a shard needs, the measured ones and one more.
    pub cpus: u32,
    /// Architectures of the programs that are beside the files, as `uname -m` names them.
    pub architectures: Vec<String>,
    /// Machines, device types or nodes as the engine names them; empty if the user fills them in.
    pub targets: Vec<String>,
    /// Container image, or address of the program to download, as the engine takes it; `None` if the user fills it in.
    pub source: Option<String>,
}

/// A file of a set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    /// Path below the directory of the set.
    pub name: String,
    /// The content.
    pub text: String,
    /// Whether it is a program.
    pub executable: bool,
}

impl File {
    /// A file that is read.
    fn plain(name: &str, text: impl Into<String>) -> File {
        File { name: name.to_owned(), text: text.into(), executable: false }
    }

    /// A file that is run.
    fn program(name: &str, text: impl Into<String>) -> File {
        File { executable: true, ..File::plain(name, text) }
    }
}

impl Job {
    fn plan_file(&self) -> File {
        File::plain(PLAN, &*self.plan)
    }

    /// The options of `punctual run` for a shard, `shard` being its number in the language of the engine.
    fn shard_option(&self, shard: &str) -> String {
        if self.shards == 1 { String::new() } else { format!(" --shard {shard}/{}", self.shards) }
    }

    /// Expected duration of a shard in whole seconds, at least 1.
    fn seconds(&self) -> u64 {
        self.duration.as_millis().div_ceil(1000).clamp(1, u128::from(u64::MAX)).try_into().unwrap_or(u64::MAX)
    }

    /// Interval of the looks at a shard that takes longer than expected, s: a tenth of the duration, up to a minute.
    fn interval(&self) -> u64 {
        (self.seconds() / 10).clamp(2, 60)
    }
}

#[cfg(test)]
mod tests;
