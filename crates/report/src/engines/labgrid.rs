//! The engine labgrid: a reservation for each shard, which the coordinator queues.
//!
//! The board needs a shell and nothing else: `punctual run --on exec:` sends the program, and keeps records here. The
//! connection is that of `labgrid-client ssh`, so proxies and credentials of the laboratory apply.

use super::quoting::comment;
use super::text::filled;
use super::{File, Job};

/// The files of a job: the script that measures, and the way to a reserved place.
pub fn files(job: &Job) -> Vec<File> {
    let targets = if job.targets.is_empty() { "punctual=yes".to_owned() } else { names(&job.targets) };
    let title = comment(&job.title);
    let (shards, seconds) = (job.shards.to_string(), job.seconds().to_string());
    let values = [
        ("TITLE", &*title),
        ("TOOL", model::TOOL),
        ("SHARDS", &*shards),
        ("SECONDS", &*seconds),
        ("FILTERS", &*targets),
        ("OPTION", &*job.shard_option("$shard")),
        ("MERGE", if job.shards == 1 { ONE } else { MERGE }),
    ];
    vec![
        File::program("measure", filled(RUN, &values)),
        File::program("on-place", filled(ON_PLACE, &values)),
        job.plan_file(),
    ]
}

/// A filter for each place.
fn names(targets: &[String]) -> String {
    targets.iter().map(|target| format!("name={target}")).collect::<Vec<_>>().join(" ")
}

const RUN: &str = r#"#!/bin/sh
# <<TITLE>>
#
#   ./measure
#
# Measures plan.toml in <<SHARDS>> shards on places of labgrid, each for about <<SECONDS>> s. Written by <<TOOL>>.
# The coordinator (LG_COORDINATOR) queues a reservation for each shard; shards whose filter matches several places are
# measured at the same time. A place that is lost costs its shard: the same command again measures what is missing.
# A place needs a NetworkService, and its board a POSIX shell. Tag places: labgrid-client -p NAME set-tags punctual=yes
set -u
cd "$(dirname "$0")" || exit 1
filters='<<FILTERS>>'
shards=<<SHARDS>>
punctual=${PUNCTUAL:-punctual}

exec 9>.lock
flock -n 9 || { echo "run: already running in $PWD" >&2; exit 1; }
for program in labgrid-client "$punctual"; do
  command -v "$program" >/dev/null || { echo "run: $program is not in PATH" >&2; exit 1; }
done
mkdir -p shards

stopped='' child='' pids=''

# attend COMMAND...: runs it to its end and returns its status; a signal to this script ends it.
attend() {
  "$@" & child=$!
  [ -z "$stopped" ] || kill "$child"
  while :; do
    wait "$child"
    status=$?
    # A signal ends `wait` before the child has ended.
    kill -0 "$child" 2>/dev/null || break
  done
  child=''
  return "$status"
}

# measure SHARD FILTER: reserves a place, measures there and releases it. It runs in a process of its own.
measure() {
  shard=$1 pids='' locked=''
  LG_TOKEN=$(labgrid-client reserve --shell "$2" | sed -n 's/^export LG_TOKEN=//p')
  [ -n "$LG_TOKEN" ] || { echo "run: shard $shard: no reservation for $2" >&2; exit 1; }
  export LG_TOKEN
  trap '[ -z "$locked" ] || labgrid-client -p + unlock >/dev/null; labgrid-client cancel-reservation >/dev/null 2>&1' EXIT
  trap 'stopped=yes; [ -z "$child" ] || kill "$child" 2>/dev/null' INT TERM HUP
  attend labgrid-client wait >/dev/null && [ -z "$stopped" ] && labgrid-client -p + lock >/dev/null || exit 1
  locked=yes
  rm -rf "shards/$shard.new"
  attend "$punctual" run plan.toml<<OPTION>> --wait --on exec:./on-place --out "shards/$shard.new" >"shards/$shard.log" 2>&1
  status=$?
  # 2 and 3 are verdicts on the limits of the plan.
  case $status in 0|2|3) mv "shards/$shard.new" "shards/$shard";; *) tail -n 1 "shards/$shard.log" >&2; exit 1;; esac
}

shard=0
trap 'stopped=yes; kill $pids 2>/dev/null' INT TERM HUP
while [ "$shard" -lt "$shards" ]; do
  for filter in $filters; do
    shard=$((shard + 1))
    [ "$shard" -le "$shards" ] && [ ! -e "shards/$shard" ] || continue
    measure "$shard" "$filter" &
    pids="$pids $!"
  done
done
for pid in $pids; do
  while kill -0 "$pid" 2>/dev/null; do wait "$pid"; done
done
[ -z "$stopped" ] || exit 130

missing='' all='' shard=0
while [ "$shard" -lt "$shards" ]; do
  shard=$((shard + 1))
  all="$all shards/$shard"
  [ -e "shards/$shard" ] || missing="$missing $shard"
done
[ -z "$missing" ] || { echo "measure: shards missing:$missing; the same command again measures them" >&2; exit 1; }
<<MERGE>>"#;

const MERGE: &str = r#"if [ ! -e run/run.jsonl ]; then
  # shellcheck disable=SC2086 # a list of words
  "$punctual" merge $all --out run || exit 1
fi
echo "punctual show $PWD/run"
"#;

const ONE: &str = "echo \"punctual show $PWD/shards/1\"\n";

const ON_PLACE: &str = r#"#!/bin/sh
# on-place COMMAND...: runs it on the place that is reserved by $LG_TOKEN. ssh joins the words, so they are quoted. The
# line begins with a blank, so that it is no option.
line=''
for word do
  line="$line '$(printf '%s_' "$word" | sed "s/'/'\\\\''/g")"
  line="${line%_}'"
done
exec labgrid-client -p + ssh "$line"
"#;
