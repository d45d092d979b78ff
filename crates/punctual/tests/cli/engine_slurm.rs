//! The job array of `punctual export slurm`, on a real cluster of three nodes on this machine, of which one is lost.

use crate::program::{
    MARK, PROGRAM, ProgramOutput, Scratch, Start, command, is_installed, is_root, machine_and_scratch, mark, punctual,
    run, skip_unless,
};
use crate::shards::{lines, virtual_plan};
use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Environment variable of the processes of a node, set before those of jobs have Slurm's own.
const NODE: &str = "PUNCTUAL_TEST_NODE";

/// A cluster with its own keys, ports and directories; dropping it ends its daemons.
struct Cluster<'a> {
    scratch: &'a Scratch,
    daemons: Vec<Child>,
}

impl<'a> Cluster<'a> {
    /// Starts munged and slurmctld; the nodes are down.
    fn start(scratch: &'a Scratch) -> Cluster<'a> {
        let dir = scratch.path("slurm");
        for name in ["state", "spool"] {
            fs::create_dir_all(dir.join(name)).unwrap();
        }
        let hostname = fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
        let ports = free_ports(4);
        let (hostname, dir_text) = (hostname.trim(), dir.display());
        // The documentation of slurm.conf: several slurmd on one host need a port each and %n in their paths.
        let mut conf = format!(
            "ClusterName=punctual\nSlurmctldHost={hostname}(127.0.0.1)\nSlurmctldPort={}\nSlurmUser=root\n\
             AuthType=auth/munge\nCredType=cred/munge\nAuthInfo=socket={dir_text}/munge.socket,cred_expire=5\n\
             StateSaveLocation={dir_text}/state\nSlurmctldPidFile={dir_text}/slurmctld.pid\n\
             SlurmctldLogFile={dir_text}/slurmctld.log\nSlurmdSpoolDir={dir_text}/spool/%n\n\
             SlurmdPidFile={dir_text}/slurmd-%n.pid\nSlurmdLogFile={dir_text}/slurmd-%n.log\n\
             ProctrackType=proctrack/linuxproc\nTaskPlugin=task/none\nSelectType=select/cons_tres\n\
             SelectTypeParameters=CR_CPU\nMpiDefault=none\nReturnToService=2\nSlurmdParameters=config_overrides\n\
             SlurmdTimeout=15\nJobAcctGatherType=jobacct_gather/none\n\
             AccountingStorageType=accounting_storage/none\nPartitionName=all Nodes=ALL Default=YES State=UP\n",
            ports[0]
        );
        for (node, port) in ports.iter().enumerate().skip(1) {
            conf += &format!("NodeName=n{node} NodeHostname=localhost NodeAddr=127.0.0.1 Port={port} CPUs=2\n");
        }
        fs::write(dir.join("slurm.conf"), conf).unwrap();
        let version = if Path::new("/sys/fs/cgroup/cgroup.controllers").exists() { "v2" } else { "v1" };
        fs::write(dir.join("cgroup.conf"), format!("CgroupPlugin=cgroup/{version}\n")).unwrap();
        let key = scratch.file("slurm/munge.key", [7; 128]);
        fs::set_permissions(key, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
        let mut cluster = Cluster { scratch, daemons: Vec::new() };
        let mut munged = cluster.tool("munged");
        munged.args(["--foreground", "--force"]);
        for (option, name) in [
            ("key-file", "munge.key"),
            ("socket", "munge.socket"),
            ("pid-file", "munge.pid"),
            ("log-file", "munge.log"),
            ("seed-file", "munge.seed"),
        ] {
            munged.arg(format!("--{option}={dir_text}/{name}"));
        }
        cluster.daemons.push(munged.start_silent());
        assert!(becomes_true(60, || dir.join("munge.socket").exists()), "munged: {}", cluster.log("munge.log"));
        let mut slurmctld = cluster.tool("slurmctld");
        cluster.daemons.push(slurmctld.arg("-D").start_silent());
        assert!(becomes_true(60, || cluster.ask("sinfo", &[]).is_some()), "{}", cluster.log("slurmctld.log"));
        cluster
    }

    fn start_nodes(&mut self) {
        for node in ["n1", "n2", "n3"] {
            let mut slurmd = self.tool("slurmd");
            self.daemons.push(slurmd.args(["-D", "-N", node]).env(NODE, node).start_silent());
        }
        let idle = || self.ask("sinfo", &["--noheader", "--responding", "--states=idle", "--format=%D"]);
        let all_are = || idle().is_some_and(|said| said.trim() == "3");
        assert!(becomes_true(60, all_are), "{} {}", self.log("slurmctld.log"), self.log("slurmd-n1.log"));
    }

    /// A program of Slurm or a script, for this cluster.
    fn tool(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        command.env("SLURM_CONF", self.scratch.path("slurm/slurm.conf")).env(MARK, mark()).stdin(Stdio::null());
        command
    }

    /// The output of a client; `None` if it fails.
    fn ask(&self, program: &str, arguments: &[&str]) -> Option<String> {
        let said = run(self.tool(program).args(arguments));
        (said.status == 0).then_some(said.stdout)
    }

    fn log(&self, name: &str) -> String {
        fs::read_to_string(self.scratch.path("slurm").join(name)).unwrap_or_default()
    }

    /// Running tasks: the index in the array, and the node.
    fn tasks(&self) -> Vec<(u32, String)> {
        let said = self.ask("squeue", &["--noheader", "--states=running", "--format=%K %N"]).unwrap_or_default();
        let task = |line: &str| {
            let (index, node) = line.trim().split_once(' ')?;
            Some((index.parse().ok()?, node.to_owned()))
        };
        said.lines().filter_map(task).collect()
    }

    fn is_empty(&self) -> bool {
        self.ask("squeue", &["--noheader"]).is_some_and(|said| said.trim().is_empty())
    }
}

impl Drop for Cluster<'_> {
    fn drop(&mut self) {
        ["n1", "n2", "n3"].into_iter().for_each(lose);
        self.daemons.iter_mut().rev().for_each(|daemon| {
            let _ = daemon.kill();
            let _ = daemon.wait();
        });
    }
}

/// Ports that were free a moment ago.
fn free_ports(n: usize) -> Vec<u16> {
    let listeners: Vec<_> = (0..n).map(|_| TcpListener::bind("127.0.0.1:0").unwrap()).collect();
    listeners.iter().map(|listener| listener.local_addr().unwrap().port()).collect()
}

/// Kills everything on a node, as a loss of power does: its daemons cannot report the end of a job.
fn lose(node: &str) {
    let comm = |pid: u32| fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    let parent = |pid: u32| -> Option<u32> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        stat.rsplit(") ").next()?.split(' ').nth(1)?.parse().ok()
    };
    let processes = of_node(node);
    // The daemon of a job overwrites its environment with its title.
    let daemons = processes.iter().filter_map(|pid| parent(*pid)).filter(|pid| comm(*pid).starts_with("slurmstepd"));
    let all: Vec<u32> = daemons.chain(processes.iter().copied()).collect();
    all.into_iter().for_each(|pid| drop(sys::process::signal(pid, libc::SIGKILL)));
}

/// Processes of this test on a node: its daemon, and the jobs with all that they started.
fn of_node(node: &str) -> Vec<u32> {
    let is_there = |path: &Path| {
        let environment = fs::read(path.join("environ")).unwrap_or_default();
        let has = |text: String| environment.split(|byte| *byte == 0).any(|variable| variable == text.as_bytes());
        has(format!("{MARK}={}", mark())) && (has(format!("{NODE}={node}")) || has(format!("SLURMD_NODENAME={node}")))
    };
    let processes = fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path());
    processes.filter(|path| is_there(path)).filter_map(|path| path.file_name()?.to_str()?.parse().ok()).collect()
}

/// Waits until the condition holds, for at most so many seconds.
fn becomes_true(seconds: u64, mut condition: impl FnMut() -> bool) -> bool {
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(seconds) {
        if condition() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(200));
    }
    false
}

/// Exports the plan to the directory `job`.
fn export(scratch: &Scratch, plan: &str, shards: u32) -> PathBuf {
    let job = scratch.path("job 1");
    let mut export = command(&format!("export slurm {plan} --shards {shards}"));
    run(export.arg("--out").arg(&job)).expect_success();
    job
}

#[test]
#[ignore = "long: boots guests on a cluster"]
fn vm_a_cluster_that_loses_a_node_gives_the_same_bits_as_one_machine() {
    skip_unless!(is_root());
    for (program, package) in
        [("munged", "munge"), ("slurmctld", "slurmctld"), ("slurmd", "slurmd"), ("sbatch", "slurm-client")]
    {
        skip_unless!(is_installed(program, package));
    }
    let (_machine, scratch) = machine_and_scratch("slurm");
    let Some(plan) = virtual_plan(&scratch, 6) else { return };
    let job = export(&scratch, &plan, 4);
    // Each node is a machine with its own lock.
    let program = scratch.executable(
        "on-node",
        format!("#!/bin/sh\nPUNCTUAL_LOCK={}/lock-$SLURMD_NODENAME exec {PROGRAM} \"$@\"\n", scratch.dir().display()),
    );
    let mut cluster = Cluster::start(&scratch);
    let submit = |cluster: &Cluster<'_>| run(cluster.tool(job.join("submit")).env("PUNCTUAL", &program));

    let said = submit(&cluster);
    let refusal = "submit: no node is up, the job would wait without an end; nothing was submitted\n";
    assert!(said.status == 1 && said.stderr.starts_with(refusal), "{said:?}");
    assert!(cluster.is_empty());

    cluster.start_nodes();
    let alone = scratch.path("alone");
    let plan = job.join("plan.toml");
    run(command("run --wait").arg(&plan).arg("--out").arg(&alone)).expect_success();

    let said = submit(&cluster).expect_success();
    assert!(said.stdout.starts_with("Submitted batch job "), "{said:?}");
    // The number of measurements of a shard is 3: one is made, and another runs.
    let made = |index: u32| {
        let file = job.join(format!("shards/{index}/run.jsonl"));
        fs::read_to_string(file).map_or(0, |text| text.lines().count().saturating_sub(1))
    };
    let mut lost = None;
    let is_in_the_middle = || {
        lost = cluster.tasks().into_iter().find(|(index, _)| (1..3).contains(&made(*index)));
        lost.is_some()
    };
    let logs = || -> String {
        (1..=4).map(|n| fs::read_to_string(job.join(format!("logs/{n}.log"))).unwrap_or_default()).collect()
    };
    assert!(becomes_true(120, is_in_the_middle), "{} {}", logs(), cluster.log("slurmctld.log"));
    let (index, node) = lost.unwrap();
    let is_gone = || {
        lose(&node);
        of_node(&node).is_empty()
    };
    assert!(becomes_true(30, is_gone), "{:?}", of_node(&node));
    assert!(made(index) < 3, "the shard was not complete");
    assert!(becomes_true(200, || cluster.is_empty()), "{} {}", logs(), cluster.log("slurmctld.log"));

    let log = fs::read_to_string(job.join(format!("logs/{index}.log"))).unwrap();
    assert!(log.contains(" already done"), "resumed on another node: {log}");
    let said = run(cluster.tool(job.join("collect")).env("PUNCTUAL", PROGRAM)).expect_success();
    assert_eq!(said.stdout, "run: 12 of 12 measurements\n");
    assert_eq!(lines(&job.join("run")), lines(&alone), "to the bit");

    // What is complete is not measured again.
    let before = fs::read(job.join(format!("shards/{index}/run.jsonl"))).unwrap();
    submit(&cluster).expect_success();
    assert!(becomes_true(60, || cluster.is_empty()), "{}", logs());
    assert_eq!(fs::read(job.join(format!("shards/{index}/run.jsonl"))).unwrap(), before);
}

/// Programs of a cluster that does not answer, or has a node: what `submit` and a task do with them.
#[test]
fn the_scripts_report_what_is_missing_and_resume_what_is_there() {
    let scratch = Scratch::new("slurm-scripts");
    let plan = scratch.file("plan.toml", "title = \"a\"\nrepetitions = 4\n").display().to_string();
    let job = export(&scratch, &plan, 2);
    let with = |script: &str, sinfo: Option<&str>| -> ProgramOutput {
        let bin = scratch.path("bin");
        let _ = fs::remove_dir_all(&bin);
        fs::create_dir(&bin).unwrap();
        for tool in ["sh", "dirname", "mkdir", "uname", "cat"] {
            let path = ["/usr/bin", "/bin"].iter().map(|dir| Path::new(dir).join(tool)).find(|path| path.exists());
            std::os::unix::fs::symlink(path.unwrap(), bin.join(tool)).unwrap();
        }
        if let Some(sinfo) = sinfo {
            scratch.executable("bin/sinfo", format!("#!/bin/sh\n{sinfo}\n"));
            scratch.executable("bin/sbatch", "#!/bin/sh\necho \"Submitted $*\"\n");
        }
        let echo = scratch.executable("punctual-echo", "#!/bin/sh\necho \"$@\"\nexit 3\n");
        let mut command = Command::new("sh");
        command.arg(job.join(script)).env("PATH", &bin).env("PUNCTUAL", echo);
        run(command.env("SLURM_SUBMIT_DIR", &job).env("SLURM_ARRAY_TASK_ID", "2"))
    };
    with("submit", None).expect_line(1, "submit: no sbatch here: submit on a machine of the cluster\n");
    with("submit", Some("exit 1")).expect_line(1, "submit: no answer from Slurm; nothing was submitted\n");
    let said = with("submit", Some("case $* in *--noheader*) ;; *) echo 'n1 down*' ;; esac"));
    let refusal = "submit: no node is up, the job would wait without an end; nothing was submitted\nn1 down*\n";
    said.expect_line(1, refusal);
    assert_eq!(with("submit", Some("echo n1")).expect_success().stdout, "Submitted job.sh\n");

    // The exit status 3 is a verdict.
    let task = || with("job.sh", None).expect_success().stdout;
    assert_eq!(task(), "run plan.toml --shard 2/2 --wait --out shards/2\n");
    scratch.file("job 1/shards/2/run.jsonl", "");
    assert_eq!(task(), "run --resume --wait --out shards/2\n");
    assert_eq!(with("collect", None).stdout, "merge shards/2 --out run\n");
    let said = punctual("export slurm quick-look --shards 0 --out x");
    assert_eq!((said.status, said.stderr.lines().count()), (1, 1), "{said:?}");
}

impl ProgramOutput {
    #[track_caller]
    fn expect_line(&self, status: i32, line: &str) {
        assert_eq!((self.status, self.stdout.as_str(), self.stderr.as_str()), (status, "", line));
    }
}
