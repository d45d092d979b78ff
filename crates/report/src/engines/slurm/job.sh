#!/bin/sh
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
<<!VIRTUAL>>
#SBATCH --exclusive
<<.>>
<<?PARTITION>>
#SBATCH --partition=<<PARTITION>>
<<.>>

set -eu
cd "$SLURM_SUBMIT_DIR"
machine=$(uname -m)
case $machine in arm*) machine=arm ;; esac
program=${PUNCTUAL:-./bin/punctual-$machine}
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
