//! LAVA: a job for each shard, whose test definition is inline, and scripts that submit the jobs and read their logs.
//!
//! LAVA keeps what a job prints, so a run comes back through the log. Its actions `deploy` and `boot` belong to a
//! laboratory and its devices; they are an example to replace.

use super::logs;
use super::quoting::{comment, yaml, yaml_block};
use super::text::filled;
use super::{File, Job};

/// Address of the program where none is named.
const PROGRAM: &str = "https://lab.example/punctual";

/// Device type where none is named.
const DEVICE_TYPE: &str = "replace-device-type";

/// The files of a job: a job of LAVA for each shard, and two scripts.
pub fn files(job: &Job) -> Vec<File> {
    let of_shard = |shard: u32| File::plain(&format!("shard-{shard}.yaml"), lava_job(job, shard));
    let mut files: Vec<_> = (1..=job.shards).map(of_shard).collect();
    let head = "# Writes the shards from the logs of finished jobs and makes one run of them: ./collect\n";
    let log = "lavacli jobs wait \"$(cat shards/$shard/job)\" >&2; lavacli jobs logs --no-follow \"$(cat shards/$shard/job)\"";
    files.push(File::program("submit", filled(SUBMIT, &[("SHARDS", &*job.shards.to_string())])));
    files.push(File::program("collect", logs::collector(job, head, log)));
    files.push(job.plan_file());
    files
}

fn lava_job(job: &Job, shard: u32) -> String {
    let target = match &job.targets[..] {
        [] => DEVICE_TYPE,
        targets => targets.get((shard as usize - 1) % targets.len()).map_or(DEVICE_TYPE, String::as_str),
    };
    let of = if job.shards == 1 { String::new() } else { format!(", shard {shard} of {}", job.shards) };
    // Minutes of the test, with as much again for a busy board.
    let minutes = job.seconds().div_ceil(60).saturating_mul(2).saturating_add(5);
    let values = [
        ("TITLE", &*comment(&job.title)),
        ("TOOL", model::TOOL),
        ("NAME", &*yaml(&job_name(&job.title, &of))),
        ("DEVICE", &*yaml(target)),
        ("DESCRIPTION", &*yaml(&job.title)),
        ("MINUTES", &*minutes.to_string()),
        ("ALL", &*minutes.saturating_add(30).to_string()),
        ("STEPS", &*yaml_block(&steps(job, shard), 18)),
    ];
    filled(JOB, &values)
}

/// The name of a job, which LAVA limits to 200 characters.
fn job_name(title: &str, of: &str) -> String {
    let most = 200 - of.chars().count();
    comment(title).chars().take(most).chain(of.chars()).collect()
}

/// The shell commands of the test: plan, program, measurement, and the run as text.
fn steps(job: &Job, shard: u32) -> String {
    let mut end = "END_OF_PLAN".to_owned();
    while job.plan.lines().any(|line| line == end) {
        end.push('_');
    }
    let program = job.source.as_deref().unwrap_or(PROGRAM);
    let measuring = logs::measuring(job, "./punctual", "plan.toml", "run", " --format lava");
    format!(
        "shard={shard}\ncd \"$(mktemp -d)\"\ncat >plan.toml <<'{end}'\n{}{end}\nwget -q -O punctual {}\nchmod 755 punctual\n\
         (\n{}) && result=pass || result=fail\nlava-test-case measured --result $result\n",
        job.plan,
        model::shell_word(program),
        measuring,
    )
}

const JOB: &str = r#"# <<TITLE>>
# Written by <<TOOL>>. `./submit` submits all jobs, `./collect` makes one run of their logs.
job_name: <<NAME>>
device_type: <<DEVICE>>
visibility: public
priority: medium
timeouts:
  job:
    minutes: <<ALL>>
  action:
    minutes: <<ALL>>
  connection:
    minutes: 5

actions:
  # An example: replace deploy and boot by those of your devices.
  - deploy:
      timeout:
        minutes: 15
      to: tftp
      kernel:
        url: https://lab.example/Image
        type: image
      dtb:
        url: https://lab.example/board.dtb
      nfsrootfs:
        url: https://lab.example/rootfs.tar.xz
        compression: xz
  - boot:
      timeout:
        minutes: 10
      method: u-boot
      commands: nfs
      auto_login:
        login_prompt: "login:"
        username: root
      prompts:
        - "root@"
  - test:
      timeout:
        minutes: <<MINUTES>>
      definitions:
        - from: inline
          name: punctual
          path: inline/punctual.yaml
          repository:
            metadata:
              format: Lava-Test Test Definition 1.0
              name: punctual
              description: <<DESCRIPTION>>
            run:
              steps:
                - <<STEPS>>
"#;

const SUBMIT: &str = r#"#!/bin/sh
# Submits a job for each shard that is missing: ./submit [options of lavacli]. Again, it replaces failed jobs.
set -eu
cd "$(dirname "$0")"
exec 9>.lock
flock 9
shard=0
while [ "$shard" -lt <<SHARDS>> ]; do
  shard=$((shard + 1))
  [ ! -e "shards/$shard/run.jsonl" ] || continue
  mkdir -p "shards/$shard"
  lavacli "$@" jobs submit "shard-$shard.yaml" >"shards/$shard/job.new"
  mv "shards/$shard/job.new" "shards/$shard/job"
  echo "shard $shard: job $(cat "shards/$shard/job")"
done
"#;
