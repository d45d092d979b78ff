//! Plans with target, logger and host on other machines: network namespaces through `exec:`, and a real sshd.

use crate::program::{
    PROGRAM, ProgramOutput, Scratch, Start, a_cpu, command, entries, finish, inconclusive, is_installed, is_root,
    machine, machine_and_scratch, run, running, set_mode, skip_unless, sshd_with_keys,
};
use crate::real::response::{ANSWERS, HOST, LOGGER, Network, TARGET};
use crate::session::play;
use punctual_model::Record;
use punctual_sys::process;
use punctual_sys::testing::comes_true;
use std::io::{BufRead, BufReader};
use std::net::{TcpListener, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// A plan of one block with these `roles` and `axes`.
pub(crate) fn plan(scratch: &Scratch, roles: &str, axes: &str, duration: &str) -> PathBuf {
    with_period(scratch, roles, axes, duration, "1ms")
}

/// Such a plan for a campaign that is ended. Ten answers are awaited before a target is silent: for 10 s, in which each
/// process has its turn.
fn endless(scratch: &Scratch, roles: &str, axes: &str) -> PathBuf {
    with_period(scratch, roles, axes, "1h", "1s")
}

fn with_period(scratch: &Scratch, roles: &str, axes: &str, duration: &str, period: &str) -> PathBuf {
    let head = format!("repetitions = 1\nduration = \"{duration}\"\nwarm_up = \"100ms\"\ncpus = \"{}\"\n", a_cpu());
    let axes = format!("[axes]\nperiod = [\"{period}\"]\n{axes}\n");
    let plan = scratch.file("plan.toml", format!("{head}[roles]\n{roles}\n{axes}"));
    set_mode(&plan, 0o644);
    plan
}

pub(crate) fn records(run: &Path) -> Vec<Record> {
    entries(run).into_iter().map(|entry| entry.record).collect()
}

/// A search path that begins with `first`.
fn path_with(first: &Path) -> String {
    format!("{}:{}", first.display(), std::env::var("PATH").unwrap())
}

/// IDs of the processes of this program that run the command `what` with `word` in an argument.
pub(crate) fn doing(what: &str, word: &str) -> Vec<u32> {
    let is_it = |pid: &u32| {
        let text = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let words: Vec<_> = text.split(|byte| *byte == 0).map(String::from_utf8_lossy).collect();
        words.get(1).is_some_and(|second| second == what) && words.iter().any(|other| other.contains(word))
    };
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).filter(is_it).collect()
}

/// The last line on stderr of a failed campaign.
#[track_caller]
fn last_line(said: &ProgramOutput) -> &str {
    assert_eq!(said.status, 1, "{said:?}");
    said.last_line()
}

fn piped(mut command: Command) -> Command {
    command.stdin(Stdio::piped());
    command
}

/// Waits until the campaign measures; returns the process ID of the cell.
#[track_caller]
fn until_it_measures(campaign: &mut Child) -> u32 {
    until_it_does(campaign, "cell", "--progress")
}

/// Waits for the process of the campaign that runs the command `what` with `word` in an argument; returns its ID.
#[track_caller]
fn until_it_does(campaign: &mut Child, what: &str, word: &str) -> u32 {
    let mut found = None;
    comes_true(|| {
        let ours = running();
        found = doing(what, word).into_iter().find(|pid| ours.contains(pid));
        found.is_some() || campaign.try_wait().unwrap().is_some()
    });
    found.unwrap_or_else(|| panic!("no {what} {word}: {:?}", campaign.try_wait()))
}

/// Waits for the failure line of the cell and terminates the campaign, which would repeat the cell.
#[track_caller]
fn expect_another_try(campaign: &mut Child, begin: &str) {
    let (mut said, mut lines) =
        (Vec::new(), BufReader::new(campaign.stderr.take().unwrap()).lines().map_while(Result::ok));
    let mut is_it = |line: String| {
        let is_it = line.strip_prefix("punctual: ").is_some_and(|rest| rest.starts_with(begin))
            && line.ends_with("; retried at the end");
        said.push(line);
        is_it
    };
    let is_said = lines.any(&mut is_it);
    assert!(is_said, "nothing says: {begin}: {said:#?}");
    process::signal(campaign.id(), libc::SIGTERM).unwrap();
    lines.for_each(drop);
}

fn kill(pid: u32) {
    process::signal(pid, libc::SIGKILL).unwrap();
}

/// The `[roles]` of a plan for the machines of a network.
pub(crate) fn three(network: &Network) -> String {
    let site = |role: usize| format!("exec:ip netns exec {}", network.names[role]);
    format!("target = \"{}\"\nhost = \"{}\"\n", site(TARGET), site(HOST))
}

pub(crate) fn can_flood() -> bool {
    is_root() && is_installed("ip", "iproute2") && is_installed("ping", "iputils-ping")
}

#[test]
fn root_the_load_runs_on_target_and_host_and_one_record_tells_of_all() {
    skip_unless!(can_flood());
    let Some(network) = Network::new("roles") else { return };
    let (_machine, scratch) = machine_and_scratch("roles");
    let axes = format!(
        "load = [\"none\", \"pipe+ping:10.213.7.2\"]\npolicy = [\"fifo:80\"]\nmethod = [\"response:{ANSWERS}\"]"
    );
    let plan = plan(&scratch, &three(&network), &axes, "1500ms");
    let out = scratch.path("run");
    let asked = format!("run {} --wait --out {}", plan.display(), out.display());
    // The machine is only a namespace away, but the user has to confirm it.
    run(&mut network.on(LOGGER, PROGRAM, &asked)).expect_error(
        "ping:10.213.7.2 would flood 10.213.7.2, which is not this machine; use ping:127.0.0.1, or add --yes if you are permitted to",
    );
    let said = run(&mut network.on(LOGGER, PROGRAM, &format!("{asked} --yes"))).expect_success();
    let site = format!("exec:ip netns exec {}", network.names[TARGET]);
    assert!(said.stderr.contains(&format!("plan.toml reaches its target as root: {site}\n")), "{said:?}");
    let measured = said.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(measured.contains(&format!("Measured is the target ({site}): ")), "{said:?}");
    let records = records(&out);
    assert_eq!(records.len(), 2);
    for record in &records {
        let (thread, response) = (&record.threads[0], record.response.as_ref().unwrap());
        assert!(thread.is_consistent(), "{thread:?}");
        let target = response.target.as_ref().unwrap();
        // A flooded network may lose some.
        assert!(target.triggers + thread.never_answered() >= response.triggers, "{response:?} {thread:?}");
        assert_eq!(target.answered, target.triggers - target.too_soon);
        assert_eq!(target.host.as_ref().unwrap().kernel_release, record.host_before.kernel_release);
        assert_eq!(target.achieved.policy, record.cell.policy);
        assert_eq!(record.cell_id, record.cell.id());
        assert!(!record.cell.conditions.roles.is_empty());
        // The loads that ran, in the order of the cell.
        let ran: Vec<_> = record.loads.iter().map(|load| load.load.clone()).collect();
        let asked: Vec<_> = record.cell.load.parts().iter().map(ToString::to_string).collect();
        assert_eq!(ran, asked);
        let on_target: Vec<_> = target.loads.iter().map(|load| load.load.as_str()).collect();
        assert_eq!(on_target, if ran.is_empty() { vec![] } else { vec!["pipe"] });
        assert!(record.loads.iter().all(|load| load.failure.is_none()), "{:?}", record.loads);
        if thread.recorded == 0 || record.loads.iter().any(punctual_model::LoadRecord::did_nothing) {
            inconclusive("the machine gave no time to the cell");
        }
    }
    assert!(comes_true(|| running().is_empty()), "no orphans: {:?}", running());
    let json = crate::program::punctual(&format!("show {} --format json", out.display())).json();
    crate::pure::schema::assert_conforms("show", &json);
    let answered = records[1].response.as_ref().unwrap().target.as_ref().unwrap().answered;
    assert_eq!(json["cells"][1]["summary"]["response"]["target"]["answered"], answered, "{json:#}");
}

#[test]
fn root_a_killed_role_ends_its_cell_and_is_named() {
    skip_unless!(can_flood());
    let Some(network) = Network::new("killed") else { return };
    let (_machine, scratch) = machine_and_scratch("roles-killed");
    let load = "pipe+ping:10.213.7.2";
    let axes = format!("load = [\"{load}\"]\npolicy = [\"fifo:80\"]\nmethod = [\"response:{ANSWERS}\"]");
    let plan = endless(&scratch, &three(&network), &axes);
    let path = path_with(Path::new(PROGRAM).parent().unwrap());
    let [host, target, _] = network.names.each_ref().map(|name| format!("exec:ip netns exec {name}"));
    for (number, (what, word, expected)) in [
        ("respond", ANSWERS, Some(format!("target {target}: respond was killed by signal 9"))),
        ("supervise-role", ANSWERS, Some(format!("target {target}: exited (signal: 9 (SIGKILL)) without a message"))),
        ("load", "ping", Some(format!("host {host}: load was killed by signal 9"))),
        ("supervise-role", "ping", Some(format!("host {host}: exited (signal: 9 (SIGKILL)) without a message"))),
        (
            "cell",
            "--progress",
            Some("the measuring process exited early (signal: 9 (SIGKILL)); this cell is not recorded".to_owned()),
        ),
        ("run", "plan.toml", None),
    ]
    .into_iter()
    .enumerate()
    {
        let out = scratch.path(&format!("run{number}"));
        let mut command =
            network.on(LOGGER, PROGRAM, &format!("run {} --yes --wait --out {}", plan.display(), out.display()));
        command.env("PATH", &path);
        let mut campaign = command.start_piped();
        until_it_measures(&mut campaign);
        kill(until_it_does(&mut campaign, what, word));
        if let Some(expected) = expected {
            expect_another_try(&mut campaign, &format!("{load}/fifo:80, block 1: {expected}; retried"));
        }
        campaign.wait().unwrap();
        assert!(comes_true(|| running().is_empty()), "{what}: no orphans: {:?}", running());
    }
}

#[test]
fn root_another_machine_logs_and_can_be_interrupted() {
    skip_unless!(can_flood());
    let Some(network) = Network::new("logged") else { return };
    let (_machine, scratch) = machine_and_scratch("roles-logger");
    let site = |role: usize| format!("exec:ip netns exec {}", network.names[role]);
    let roles = format!("target = \"{}\"\nlogger = \"{}\"\n", site(TARGET), site(LOGGER));
    let axes = format!("load = [\"none\"]\npolicy = [\"fifo:80\"]\nmethod = [\"response:{ANSWERS}\"]");
    let path = path_with(Path::new(PROGRAM).parent().unwrap());
    let campaign = |plan: &Path, out: &str| {
        let mut command = command(&format!("run {} --wait --out {}", plan.display(), scratch.path(out).display()));
        command.env("PATH", &path);
        command
    };
    run(&mut campaign(&plan(&scratch, &roles, &axes, "1s"), "run")).expect_success();
    let [record] = &records(&scratch.path("run"))[..] else { panic!("one record") };
    assert!(record.threads[0].is_consistent() && record.response.as_ref().unwrap().target.is_some());
    assert_eq!(record.cell.conditions.roles.logger.as_ref().unwrap().to_string(), site(LOGGER));

    let endless = endless(&scratch, &roles, &axes);
    let mut interrupted = campaign(&endless, "interrupted").start_piped();
    until_it_measures(&mut interrupted);
    process::signal(interrupted.id(), libc::SIGINT).unwrap();
    let said = finish(interrupted);
    assert_eq!(said.status, 130, "{said:?}");
    let line = said.last_line();
    assert!(line.starts_with("punctual: interrupted after 0 of 1 measurements; continue with: "), "{line}");
    assert!(comes_true(|| running().is_empty()), "no orphans: {:?}", running());

    let mut killed = campaign(&endless, "killed").start_piped();
    kill(until_it_measures(&mut killed));
    let expected = format!("none/fifo:80, block 1: logger {}: cell was killed by signal 9; retried", site(LOGGER));
    expect_another_try(&mut killed, &expected);
    killed.wait().unwrap();
    assert!(comes_true(|| running().is_empty()), "no orphans: {:?}", running());
}

/// A connection that breaks silently leaves stdin open.
#[test]
fn a_supervised_command_ends_with_stdin_or_at_the_timeout() {
    let _machine = machine();
    for (asked, closes) in [
        ("supervise-role --for 1s -- load light --format json", false),
        ("supervise-role -- load light --format json", true),
    ] {
        let mut supervisor = piped(command(asked)).start_piped();
        let stdin = supervisor.stdin.take().unwrap();
        let mut line = String::new();
        BufReader::new(supervisor.stderr.as_mut().unwrap()).read_line(&mut line).unwrap();
        let is_over = line.is_empty() || line.contains("load was killed by signal 15");
        if is_over && !closes {
            inconclusive("its second was over before the load worked");
            finish(supervisor);
            continue;
        }
        assert_eq!(line, "load light works; Ctrl-C ends it\n");
        let held = Some(stdin).filter(|_| !closes);
        let said = finish(supervisor);
        assert!(said.status == 0 && said.stderr.is_empty(), "{asked}: {said:?}");
        assert!(said.json()["loads"].is_array());
        assert!(comes_true(|| running().is_empty()), "no orphans: {:?}", running());
        drop(held);
    }
}

#[test]
fn a_supervised_command_that_ends_before_it_reads_says_why_itself() {
    let input = " ".repeat(100_000);
    let said = run(command("supervise-role").args(["--input", &input, "--", "cell", "--frobnicate"]));
    assert_eq!(said.status, 1, "{said:?}");
    assert!(said.stderr.contains("--frobnicate") && !said.stderr.contains("cannot write"), "{said:?}");
}

#[test]
fn a_role_that_does_not_end_is_said_to_be_killed_for_that() {
    let _machine = machine();
    let free = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let mut supervisor = piped(command(&format!("supervise-role -- respond --on udp:{free}"))).start_piped();
    let mut line = String::new();
    BufReader::new(supervisor.stderr.as_mut().unwrap()).read_line(&mut line).unwrap();
    assert!(line.starts_with("answering on "), "{line}");
    let [held] = doing("respond", &free)[..] else { panic!("{:?}", doing("respond", &free)) };
    process::signal(held, libc::SIGSTOP).unwrap();
    drop(supervisor.stdin.take());
    assert_eq!(last_line(&finish(supervisor)), "punctual: timeout: respond still running 15 s after SIGTERM; killed");
    assert!(comes_true(|| running().is_empty()), "no orphans: {:?}", running());
}

/// Writes an executable shell script.
pub(crate) fn executable(scratch: &Scratch, name: &str, text: &str) {
    scratch.executable(name, format!("#!/bin/sh\n{text}\n"));
}

#[test]
fn roles_that_cannot_be_had_are_one_line() {
    let _machine = machine();
    let free = || UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    play(|scratch, _| drop(scratch.file("link", format!("udp:{}", free()))));
}

/// An OpenSSH server on the loopback device, killed when dropped.
struct Sshd(Child);

impl Sshd {
    /// Starts the server with keys in `scratch`, where `ssh` reaches it as `board`.
    fn start(scratch: &Scratch) -> Option<Sshd> {
        let sshd = sshd_with_keys(scratch)?;
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let dir = scratch.dir().display();
        let config = format!(
            "Port {port}\nListenAddress 127.0.0.1\nHostKey {dir}/host\nAuthorizedKeysFile {dir}/key.pub\nStrictModes no\n\
             UsePAM no\nPidFile none\nPermitRootLogin yes\nPasswordAuthentication no\n"
        );
        let config = scratch.file("sshd_config", config);
        let user = String::from_utf8(Command::new("id").arg("-un").output().unwrap().stdout).unwrap();
        scratch.file(
            "config",
            format!(
                "Host board\nHostName 127.0.0.1\nPort {port}\nUser {user}IdentityFile {dir}/key\nIdentitiesOnly yes\n\
                 UserKnownHostsFile {dir}/known\nStrictHostKeyChecking no\nLogLevel ERROR\n"
            ),
        );
        executable(scratch, "ssh", "exec /usr/bin/ssh -F \"$(dirname \"$0\")/config\" \"$@\"");
        let child = Command::new(sshd).args(["-D", "-f"]).arg(config).stdin(Stdio::null()).spawn().unwrap();
        let sshd = Sshd(child);
        assert!(comes_true(|| std::net::TcpStream::connect(("127.0.0.1", port)).is_ok()), "sshd listens");
        Some(sshd)
    }

    /// IDs of the processes that serve connections.
    fn sessions(&self) -> Vec<u32> {
        let children = Command::new("ps").args(["-o", "pid=", "--ppid", &self.0.id().to_string()]).output().unwrap();
        String::from_utf8(children.stdout).unwrap().split_whitespace().map(|pid| pid.parse().unwrap()).collect()
    }
}

impl Drop for Sshd {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn root_a_target_is_reached_by_ssh_and_does_not_outlive_the_connection() {
    skip_unless!(is_root() && is_installed("ssh", "openssh-client") && is_installed("ps", "procps"));
    let scratch = Scratch::new("roles-ssh");
    let Some(sshd) = Sshd::start(&scratch) else { return };
    let _machine = machine();
    let port = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let link = format!("udp:127.0.0.1:{port}");
    // Blanks and quotes also pass through the remote shell.
    let load = "cmd:echo it\\\\'s \\\"$HOME\\\" >/dev/null; sleep 60";
    let axes = |load: &str| format!("load = [\"{load}\"]\npolicy = [\"other\"]\nmethod = [\"response:{link}\"]");
    let campaign = |plan: &Path, out: &str| {
        let mut command = command(&format!("run {} --wait --out {}", plan.display(), scratch.path(out).display()));
        command.env("PATH", path_with(scratch.dir()));
        command
    };
    // This program is not in the remote PATH and is copied.
    let roles = "target = \"ssh:board\"";
    run(&mut campaign(&plan(&scratch, roles, &axes(load), "1s"), "run")).expect_success();
    let [record] = &records(&scratch.path("run"))[..] else { panic!("one record") };
    let target = record.response.as_ref().unwrap().target.as_ref().unwrap();
    assert!(target.answered == target.triggers - target.too_soon && target.host.is_some(), "{target:?}");
    assert_eq!(target.loads[0].load, "cmd:echo it\\'s \"$HOME\" >/dev/null; sleep 60");
    assert!(target.loads[0].failure.is_none(), "{target:?}");
    let is_over = || doing("respond", &link).is_empty() && doing("supervise-role", &link).is_empty();
    assert!(comes_true(is_over), "nothing stays there");

    let endless = endless(&scratch, roles, &axes("none"));
    for (number, who) in ["campaign", "ssh", "session", "respond"].into_iter().enumerate() {
        let mut campaign = campaign(&endless, &format!("killed{number}")).start_piped();
        until_it_measures(&mut campaign);
        let ours = running();
        match who {
            "campaign" => kill(campaign.id()),
            "ssh" => {
                // Another one keeps the program there.
                let of_role = |pid: &&u32| {
                    let command = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
                    command.starts_with(b"/usr/bin/ssh\0")
                        && String::from_utf8_lossy(&command).contains("supervise-role")
                };
                kill(*ours.iter().find(of_role).unwrap());
            }
            "session" => sshd.sessions().into_iter().for_each(kill),
            _ => kill(doing("respond", &link)[0]),
        }
        let said = match who {
            "campaign" => None,
            "ssh" => Some("exited (signal: 9 (SIGKILL)) without a message"),
            // The message of ssh(1).
            "session" => Some(""),
            _ => Some("respond was killed by signal 9"),
        };
        if let Some(said) = said {
            expect_another_try(&mut campaign, &format!("none/other, block 1: target ssh:board: {said}"));
        }
        campaign.wait().unwrap();
        assert!(comes_true(|| is_over() && running().is_empty()), "{who}: no orphans: {:?}", running());
    }
}
