//! Shards that come back through the logs of an engine: a run is compressed text of base64 behind a mark.

use super::Job;

/// Shell commands that measure the shard `$shard` and print the run to stdout, a line for each 57 bytes, behind the
/// mark. `program` is the program, `plan` the file, `out` a directory that can be written, `more` further options.
pub(super) fn measuring(job: &Job, program: &str, plan: &str, out: &str, more: &str) -> String {
    let option = job.shard_option("$shard");
    format!(
        "{program} run {plan}{option} --wait --out {out}{more}\n\
         status=$?\n\
         # 2 and 3 are verdicts on the limits of the plan.\n\
         case $status in 0|2|3) ;; *) exit $status;; esac\n\
         gzip -c {out}/run.jsonl | base64 | sed \"s/^/punctual-shard-$shard /\"\n"
    )
}

/// A shell script that writes each missing shard from a log, then makes one run of all. `log` is a command that prints
/// the log of the shard `$shard`.
pub(super) fn collector(job: &Job, head: &str, log: &str) -> String {
    let n = job.shards;
    let merge = if n == 1 {
        "echo \"punctual show $PWD/shards/1\"\n".to_owned()
    } else {
        let shards = (1..=n).map(|shard| format!(" shards/{shard}")).collect::<String>();
        format!("\"${{PUNCTUAL:-punctual}}\" merge{shards} --out run\necho \"punctual show $PWD/run\"\n")
    };
    format!(
        "#!/bin/sh\n{head}set -eu\ncd \"$(dirname \"$0\")\"\n{LOCK}missing=''\nshard=0\n\
         while [ \"$shard\" -lt {n} ]; do\n  shard=$((shard + 1))\n  [ ! -e shards/$shard/run.jsonl ] || continue\n  \
         mkdir -p shards/$shard\n  \
         if {{ {log}; }} | sed -n \"s/^.*punctual-shard-$shard \\([A-Za-z0-9+\\/=]*\\).*/\\1/p\" | base64 -d 2>/dev/null |\n    \
         gzip -dc >shards/$shard/new 2>/dev/null && [ -s shards/$shard/new ]; then\n    \
         mv shards/$shard/new shards/$shard/run.jsonl\n  else\n    rm -f shards/$shard/new\n    \
         missing=\"$missing $shard\"\n  fi\ndone\n\
         if [ -n \"$missing\" ]; then echo \"collect: no complete log of the shards$missing\" >&2; exit 1; fi\n{merge}"
    )
}

/// One collector at a time.
const LOCK: &str = "exec 9>.lock\nflock 9\n";
