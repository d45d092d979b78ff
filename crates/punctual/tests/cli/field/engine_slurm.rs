//! The job array of `punctual export slurm`, on a real cluster of three nodes on this machine, of which one is lost.

use crate::guest::shards::virtual_plan;
use crate::life::shards::lines;
use crate::program::{
    MARK, PROGRAM, Scratch, Start, command, is_installed, is_root, machine_and_scratch, mark, run, skip_unless,
};
use punctual_sys::testing::{comes_true, running, variable_of};
use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// Exports the plan to the directory `job`.
fn export(scratch: &Scratch, plan: &str, shards: u32) -> PathBuf {
    let job = scratch.path("job 1");
    let mut export = command(&format!("export slurm {plan} --shards {shards}"));
    run(export.arg("--out").arg(&job)).expect_success();
    job
}

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
        assert!(comes_true(|| dir.join("munge.socket").exists()), "munged: {}", cluster.log("munge.log"));
        let mut slurmctld = cluster.tool("slurmctld");
        cluster.daemons.push(slurmctld.arg("-D").start_silent());
        assert!(comes_true(|| cluster.ask("sinfo", &[]).is_some()), "{}", cluster.log("slurmctld.log"));
        cluster
    }

    fn start_nodes(&mut self) {
        for node in ["n1", "n2", "n3"] {
            let mut slurmd = self.tool("slurmd");
            self.daemons.push(slurmd.args(["-D", "-N", node]).env(NODE, node).start_silent());
        }
        let idle = || self.ask("sinfo", &["--noheader", "--responding", "--states=idle", "--format=%D"]);
        let all_are = || idle().is_some_and(|said| said.trim() == "3");
        assert!(comes_true(all_are), "{} {}", self.log("slurmctld.log"), self.log("slurmd-n1.log"));
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
    all.into_iter().for_each(|pid| drop(punctual_sys::process::signal(pid, libc::SIGKILL)));
}

/// Processes of this test on a node: its daemon, and the jobs with all that they started.
fn of_node(node: &str) -> Vec<u32> {
    let is_there =
        |pid: &u32| [NODE, "SLURMD_NODENAME"].iter().any(|name| variable_of(*pid, name).as_deref() == Some(node));
    running().into_iter().filter(is_there).collect()
}

#[test]
#[ignore = "field: Slurm"]
fn vm_a_cluster_that_loses_a_node_gives_the_same_bits_as_one_machine() {
    skip_unless!(is_root());
    for (program, package) in
        [("munged", "munge"), ("slurmctld", "slurmctld"), ("slurmd", "slurmd"), ("sbatch", "slurm-client")]
    {
        skip_unless!(is_installed(program, package));
    }
    let (_machine, scratch) = machine_and_scratch("slurm");
    let Some(plan) = virtual_plan(&scratch, 6, "300ms") else { return };
    let job = export(&scratch, &plan, 4);
    // Each node is a machine with its own lock. The first task stops when it has made its first measurement.
    let dir = scratch.dir().display();
    let program = scratch.executable(
        "on-node",
        format!(
            "#!/bin/sh\nif mkdir {dir}/first 2>/dev/null; then\n\
             echo \"$SLURM_ARRAY_TASK_ID $SLURMD_NODENAME\" >{dir}/first/task\n\
             export PUNCTUAL_FAIL_AT=stop:record-kept\nfi\n\
             PUNCTUAL_LOCK={dir}/lock-$SLURMD_NODENAME exec {PROGRAM} \"$@\"\n"
        ),
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
    // Of three measurements of its shard one is made.
    let made = |index: u32| {
        let file = job.join(format!("shards/{index}/run.jsonl"));
        fs::read_to_string(file).map_or(0, |text| text.lines().count().saturating_sub(1))
    };
    let logs = || -> String {
        (1..=4).map(|n| fs::read_to_string(job.join(format!("logs/{n}.log"))).unwrap_or_default()).collect()
    };
    let first = || fs::read_to_string(scratch.path("first/task")).unwrap_or_default();
    assert!(comes_true(|| first().ends_with('\n')), "{} {}", logs(), cluster.log("slurmctld.log"));
    let (index, node) = first().trim().split_once(' ').map(|(a, b)| (a.parse().unwrap(), b.to_owned())).unwrap();
    assert!(comes_true(|| made(index) == 1), "{} {}", logs(), cluster.log("slurmctld.log"));
    let is_gone = || {
        lose(&node);
        of_node(&node).is_empty()
    };
    assert!(comes_true(is_gone), "{:?}", of_node(&node));
    assert_eq!(made(index), 1, "the shard was not complete");
    assert!(comes_true(|| cluster.is_empty()), "{} {}", logs(), cluster.log("slurmctld.log"));

    let log = fs::read_to_string(job.join(format!("logs/{index}.log"))).unwrap();
    assert!(log.contains(" already done"), "resumed on another node: {log}");
    let said = run(cluster.tool(job.join("collect")).env("PUNCTUAL", PROGRAM)).expect_success();
    assert_eq!(said.stdout, "run: 12 of 12 measurements\n");
    assert_eq!(lines(&job.join("run")), lines(&alone), "to the bit");

    // What is complete is not measured again.
    let before = fs::read(job.join(format!("shards/{index}/run.jsonl"))).unwrap();
    submit(&cluster).expect_success();
    assert!(comes_true(|| cluster.is_empty()), "{}", logs());
    assert_eq!(fs::read(job.join(format!("shards/{index}/run.jsonl"))).unwrap(), before);
}
