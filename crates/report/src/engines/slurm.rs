//! Slurm: a job array on a file system that all nodes share, a task for each shard.
//!
//! A task that is requeued, because its node was lost or its time was up, resumes its shard. Nothing is submitted where
//! no node is up, because such a job waits without an end.

use super::quoting::comment;
use super::text::filled;
use super::{File, Job};

/// Time that a task may take beyond twice its expected duration, s: other campaigns hold the machine meanwhile.
const PATIENCE: u64 = 600;

/// The files of a job: the array, the commands that submit it and merge its shards, and the plan.
pub fn files(job: &Job) -> Vec<File> {
    let partitions = job.targets.join(",");
    let minutes = job.seconds().saturating_mul(2).saturating_add(PATIENCE).div_ceil(60);
    let of = |option: &str, end: &str| match partitions.is_empty() {
        true => String::new(),
        false => format!("{option}={partitions}{end}"),
    };
    let values = [
        ("TITLE", &*comment(&job.title)),
        ("TOOL", model::TOOL),
        ("SHARDS", &*job.shards.to_string()),
        ("SECONDS", &*job.seconds().to_string()),
        ("MINUTES", &*minutes.to_string()),
        ("CPUS", &*job.cpus.to_string()),
        ("OPTION", &*job.shard_option("\"$shard\"")),
        ("ARCHITECTURES", &*job.architectures.join(", ")),
        ("NODE", if job.virtual_time { "" } else { EXCLUSIVE }),
        ("ROOT", if job.needs_root { ROOT } else { "" }),
        ("MERGE", if job.shards == 1 { "" } else { "\n#   ./collect          # when the queue is empty" }),
        ("PARTITION", &*of("#SBATCH --partition", "\n")),
        ("AMONG", &*of(" --partition", "")),
        ("PROGRAM", PROGRAM),
    ];
    let mut files =
        vec![File::program("submit", filled(SUBMIT, &values)), File::program("job.sh", filled(JOB, &values))];
    files.extend((job.shards > 1).then(|| File::program("collect", filled(COLLECT, &values))));
    files.push(job.plan_file());
    files
}

/// Sets `program` to that of this machine.
const PROGRAM: &str = r#"machine=$(uname -m)
case $machine in arm*) machine=arm ;; esac
program=${PUNCTUAL:-./bin/punctual-$machine}"#;

/// A real machine measures one shard at a time, and nothing else runs beside it.
const EXCLUSIVE: &str = "#SBATCH --exclusive\n";

const ROOT: &str = r#"
# The plan needs real-time priorities and locked memory: submit as root, or permit both to the user on the nodes
# (limits.conf) and where the job is submitted, because Slurm passes the limits on (PropagateResourceLimits)."#;

const SUBMIT: &str = r#"#!/bin/sh
# <<TITLE>>
#
#   ./submit
#   squeue --me<<MERGE>>
#
# Submits job.sh: plan.toml in <<SHARDS>> shards, each for about <<SECONDS>> s. Written by <<TOOL>>.
# Again, it resumes the shards that are not complete. This directory has to be on a file system that the nodes share.
# Programs are in bin/punctual-ARCHITECTURE: <<ARCHITECTURES>>.<<ROOT>>
set -eu
cd "$(dirname "$0")"
say() { echo "submit: $*" >&2; }
command -v sbatch >/dev/null || { say "no sbatch here: submit on a machine of the cluster"; exit 1; }
nodes=$(sinfo --noheader --responding --states=idle,mixed,allocated --format=%N<<AMONG>>) ||
    { say "no answer from Slurm; nothing was submitted"; exit 1; }
if [ -z "$nodes" ]; then
    say "no node is up, the job would wait without an end; nothing was submitted"
    sinfo --long --Node<<AMONG>> >&2
    exit 1
fi
mkdir -p shards logs
exec sbatch "$@" job.sh
"#;

const JOB: &str = r#"#!/bin/sh
# <<TITLE>>
#
# A task for each shard; ./submit submits them. Written by <<TOOL>>.
#SBATCH --job-name=punctual
#SBATCH --array=1-<<SHARDS>>
#SBATCH --nodes=1
#SBATCH --ntasks=1
#SBATCH --cpus-per-task=<<CPUS>>
#SBATCH --time=<<MINUTES>>
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --output=logs/%a.log
<<NODE>><<PARTITION>>
set -eu
cd "$SLURM_SUBMIT_DIR"
<<PROGRAM>>
shard=$SLURM_ARRAY_TASK_ID
out=shards/$shard
status=0
# A task that was requeued resumes what it had begun. The machine is locked while it measures: --wait waits for others.
if [ -e "$out/run.jsonl" ]; then
    "$program" run --resume --wait --out "$out" || status=$?
else
    "$program" run plan.toml<<OPTION>> --wait --out "$out" || status=$?
fi
# 2 and 3 are verdicts on the limits of the plan.
case $status in 2 | 3) status=0 ;; esac
exit "$status"
"#;

const COLLECT: &str = r#"#!/bin/sh
# Makes one run of the shards; again, it adds those that were missing. Written by <<TOOL>>.
set -eu
cd "$(dirname "$0")"
<<PROGRAM>>
exec "$program" merge "$@" shards/* --out run
"#;
