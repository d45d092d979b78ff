//! Files that run the shards of a plan on engines that a laboratory has: Ansible, labgrid, LAVA, Kubernetes, Slurm.
//!
//! Pure text. Every engine runs `punctual run plan.toml --shard I/N` once for each shard, keeps retries and machines
//! apart by its own means, and brings the shards back into `shards/I`, from which `punctual merge` makes one run. The
//! names of files, directories and commands are fixed; what a plan brings along (title, name, text) appears only in
//! comments and in quoted strings. The files are templates in the folders of the engines.

mod quoting;
mod template;

use quoting::{comment, label, yaml, yaml_block};
use std::time::Duration;
use template::filled;

/// Name of the plan in every set of files.
const PLAN: &str = "plan.toml";

/// Time that a shard may take beyond twice its expected duration, s: other campaigns hold the machine meanwhile.
const BUSY_SECONDS: u64 = 600;

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

    /// A template with the values of the job and `more`; a value that is empty stands for `no`.
    fn filled(&self, template: &str, more: &[(&str, &str)]) -> String {
        let yes = |is_so: bool| if is_so { "yes" } else { "" };
        let of_job = [
            ("TITLE", &*comment(&self.title)),
            ("TOOL", punctual_model::TOOL),
            ("SHARDS", &*self.shards.to_string()),
            ("SECONDS", &*self.seconds().to_string()),
            ("CPUS", &*self.cpus.to_string()),
            ("ARCHITECTURES", &*self.architectures.join(", ")),
            ("SEVERAL", yes(self.shards > 1)),
            ("ROOT", yes(self.needs_root)),
            ("VIRTUAL", yes(self.virtual_time)),
        ];
        filled(template, &[&of_job, more].concat())
    }

    /// Shell commands that measure the shard `$shard` and print the run to stdout, a line for each 57 bytes of
    /// compressed text of base64, behind a mark. `program` is the program, `plan` the file, `out` a directory that can
    /// be written, `more` further options.
    fn measuring(&self, program: &str, plan: &str, out: &str, more: &str) -> String {
        let option = self.shard_option("$shard");
        let values = [("PROGRAM", program), ("PLAN", plan), ("OUT", out), ("MORE", more), ("OPTION", &option)];
        self.filled(include_str!("engines/logs/measure.sh"), &values)
    }

    /// A shell script that writes each missing shard from a log, then makes one run of all. `log` is a command that
    /// prints the log of the shard `$shard`.
    fn collector(&self, head: &str, log: &str) -> File {
        let all: String = (1..=self.shards).map(|shard| format!(" shards/{shard}")).collect();
        let values = [("HEAD", head), ("LOG", log), ("ALL", &*all)];
        File::program("collect", self.filled(include_str!("engines/logs/collect"), &values))
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

/// Ansible: a playbook for machines that are reached by ssh, with or without Python; the tasks of a shard, inventory
/// and plan.
///
/// Only `raw` and `script` act on the machines, because boards have no Python; `script` with `cp` in place of an
/// interpreter copies a file. A shard runs detached from its connection, and the controller sleeps for the known
/// duration: a look at a machine is itself a disturbance. What a machine has measured comes as text of base64, so that
/// nothing on it can name files of the controller.
pub fn ansible(job: &Job) -> Vec<File> {
    let (seconds, interval) = (job.seconds(), job.interval());
    let targets: String = job.targets.iter().map(|target| format!("    {}:\n", yaml(target))).collect();
    let values = [
        ("INTERVAL", &*interval.to_string()),
        ("LOOKS", &*(seconds.saturating_add(BUSY_SECONDS) / interval).to_string()),
        ("OPTION", &*job.shard_option("{{ shard }}")),
        ("RUN", if job.shards == 1 { "shards/1" } else { "run" }),
        ("TARGETS", &*targets),
    ];
    vec![
        File::plain("punctual.yml", job.filled(include_str!("engines/ansible/punctual.yml"), &values)),
        File::plain("shard.yml", job.filled(include_str!("engines/ansible/shard.yml"), &values)),
        File::plain("inventory.yml", job.filled(include_str!("engines/ansible/inventory.yml"), &values)),
        job.plan_file(),
    ]
}

/// Kubernetes: an indexed Job, a pod on a node of its own for each shard, with rights and whole CPUs; the image, and
/// the collector.
///
/// Pods have no storage in common, so a run comes back through the log of its pod. The job controller starts a lost or
/// failed index again, at most twice. No two pods are on one node, unless shards do not disturb each other.
pub fn k8s(job: &Job) -> Vec<File> {
    /// The image where none is named.
    const IMAGE: &str = "registry.example/punctual:latest";
    let name = format!("punctual-{}", label(&job.name, 40));
    // The index of a pod begins with 0, that of a shard with 1.
    let measuring = job.measuring("punctual", "/plan/plan.toml", "/tmp/run", " >&2");
    let script = format!("shard=$((JOB_COMPLETION_INDEX + 1))\n{measuring}");
    let nodes = job.targets.iter().map(|target| yaml(target)).collect::<Vec<_>>().join(", ");
    let values = [
        ("NAME", &*name),
        ("ANNOTATION", &*yaml(&job.title)),
        ("PLAN", &*yaml_block(&job.plan, 4)),
        ("IMAGE", &*yaml(job.source.as_deref().unwrap_or(IMAGE))),
        ("SCRIPT", &*yaml_block(&script, 14)),
        ("CPUS", &*yaml(&job.cpus.to_string())),
        ("MEMORY", if job.virtual_time { "2Gi" } else { "512Mi" }),
        ("AFFINITY", if job.virtual_time && job.targets.is_empty() { "" } else { "yes" }),
        ("NODES", &*nodes),
        ("ARCH", job.architectures.first().map_or("x86_64", String::as_str)),
    ];
    let pods = format!(
        "for pod in $(kubectl get pods --selector job-name={name},batch.kubernetes.io/job-completion-index=$((shard - 1)) \
         --field-selector status.phase=Succeeded --output name | head -n 1); do kubectl logs --tail=-1 \"$pod\"; done"
    );
    vec![
        File::plain("job.yaml", job.filled(include_str!("engines/k8s/job.yaml"), &values)),
        File::plain("Containerfile", job.filled(include_str!("engines/k8s/Containerfile"), &values)),
        job.collector("# Writes the shards from the logs of the pods and makes one run of them: ./collect", &pods),
        job.plan_file(),
    ]
}

/// labgrid: a reservation for each shard, which the coordinator queues, and the way to a reserved place.
///
/// The board needs a shell and nothing else: `punctual run --on exec:` sends the program, and keeps records here. The
/// connection is that of `labgrid-client ssh`, so proxies and credentials of the laboratory apply.
pub fn labgrid(job: &Job) -> Vec<File> {
    let names = job.targets.iter().map(|target| format!("name={target}")).collect::<Vec<_>>().join(" ");
    let filters = if names.is_empty() { "punctual=yes" } else { &names };
    let values = [("FILTERS", filters), ("OPTION", &*job.shard_option("$shard"))];
    vec![
        File::program("measure", job.filled(include_str!("engines/labgrid/measure"), &values)),
        File::program("on-place", include_str!("engines/labgrid/on-place")),
        job.plan_file(),
    ]
}

/// LAVA: a job for each shard, whose test definition is inline, and scripts that submit the jobs and read their logs.
///
/// LAVA keeps what a job prints, so a run comes back through the log. Its actions `deploy` and `boot` belong to a
/// laboratory and its devices; they are an example to replace.
pub fn lava(job: &Job) -> Vec<File> {
    let of_shard = |shard| File::plain(&format!("shard-{shard}.yaml"), lava_job(job, shard));
    let mut files: Vec<_> = (1..=job.shards).map(of_shard).collect();
    let head = "# Writes the shards from the logs of finished jobs and makes one run of them: ./collect";
    let log = "lavacli jobs wait \"$(cat shards/$shard/job)\" >&2; lavacli jobs logs --no-follow \"$(cat shards/$shard/job)\"";
    files.push(File::program("submit", job.filled(include_str!("engines/lava/submit"), &[])));
    files.push(job.collector(head, log));
    files.push(job.plan_file());
    files
}

fn lava_job(job: &Job, shard: u32) -> String {
    /// Address of the program, and device type, where none is named.
    const PROGRAM: &str = "https://lab.example/punctual";
    const DEVICE_TYPE: &str = "replace-device-type";
    let target = job.targets.iter().cycle().nth(shard as usize - 1).map_or(DEVICE_TYPE, String::as_str);
    let of = if job.shards == 1 { String::new() } else { format!(", shard {shard} of {}", job.shards) };
    // LAVA limits the name of a job to 200 characters.
    let name: String = comment(&job.title).chars().take(200 - of.chars().count()).chain(of.chars()).collect();
    // Minutes of the test, with as much again for a busy board.
    let minutes = job.seconds().div_ceil(60).saturating_mul(2).saturating_add(5);
    let mut end = "END_OF_PLAN".to_owned();
    while job.plan.lines().any(|line| line == end) {
        end.push('_');
    }
    // The shell commands of the test: plan, program, measurement, and the run as text.
    let of_steps = [
        ("SHARD", &*shard.to_string()),
        ("END", &*end),
        ("PLAN", &*job.plan),
        ("PROGRAM", &*punctual_model::shell_word(job.source.as_deref().unwrap_or(PROGRAM))),
        ("MEASURE", &*job.measuring("./punctual", PLAN, "run", " --format lava")),
    ];
    let steps = job.filled(include_str!("engines/lava/steps.sh"), &of_steps);
    let values = [
        ("NAME", &*yaml(&name)),
        ("DEVICE", &*yaml(target)),
        ("DESCRIPTION", &*yaml(&job.title)),
        ("MINUTES", &*minutes.to_string()),
        ("ALL", &*minutes.saturating_add(30).to_string()),
        ("STEPS", &*yaml_block(&steps, 18)),
    ];
    job.filled(include_str!("engines/lava/shard.yaml"), &values)
}

/// Slurm: a job array on a file system that all nodes share, a task for each shard; the commands that submit it and
/// merge its shards, and the plan.
///
/// A task that is requeued, because its node was lost or its time was up, resumes its shard. Nothing is submitted where
/// no node is up, because such a job waits without an end. A real machine measures one shard at a time, and nothing
/// else runs beside it.
pub fn slurm(job: &Job) -> Vec<File> {
    let partition = job.targets.join(",");
    let among = if partition.is_empty() { String::new() } else { format!(" --partition={partition}") };
    let minutes = job.seconds().saturating_mul(2).saturating_add(BUSY_SECONDS).div_ceil(60);
    let values = [
        ("MINUTES", &*minutes.to_string()),
        ("OPTION", &*job.shard_option("\"$shard\"")),
        ("PARTITION", &*partition),
        ("AMONG", &*among),
    ];
    let program = |name, template| File::program(name, job.filled(template, &values));
    let mut files = vec![
        program("submit", include_str!("engines/slurm/submit")),
        program("job.sh", include_str!("engines/slurm/job.sh")),
    ];
    files.extend((job.shards > 1).then(|| program("collect", include_str!("engines/slurm/collect"))));
    files.push(job.plan_file());
    files
}

#[cfg(test)]
mod tests;
