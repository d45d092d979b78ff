//! Latency of responses over links: between network namespaces, over terminals, and refused links.

use crate::program::{
    MARK, PROGRAM, ProgramOutput, Start, a_cpu, due_times, finish, inconclusive, is_installed, is_root, kill_and_wait,
    machine, mark, punctual, run, running, skip_unless,
};
use crate::real::explain::instances;
use crate::session::play;
use punctual_model::{ExplainRecord, Explanation, TargetRecord};
use punctual_sys::testing::comes_true;
use serde_json::Value;
use std::io::{BufRead, BufReader, Read};
use std::net::UdpSocket;
use std::process::{Child, Command, Stdio};

/// Three machines on one network, which is in the namespace of the host.
pub(crate) struct Network {
    pub(crate) names: [String; 3],
}

/// Index of a machine in the network.
pub(crate) const HOST: usize = 0;
pub(crate) const TARGET: usize = 1;
pub(crate) const LOGGER: usize = 2;

/// Address on which the target responds.
pub(crate) const ANSWERS: &str = "udp:10.213.7.2:4000";

impl Network {
    /// Makes the network; prints why and returns `None` where this machine has no network namespaces, veth pairs or
    /// bridges, or does not let a program run in them.
    pub(crate) fn new(name: &str) -> Option<Network> {
        let names = ["host", "target", "logger"].map(|role| format!("pt-{name}-{role}-{}", std::process::id()));
        let network = Network { names };
        match network.connect() {
            Ok(()) => Some(network),
            Err(reason) => {
                eprintln!("skipped: needs network namespaces with a bridge: {reason}");
                None
            }
        }
    }

    fn connect(&self) -> Result<(), String> {
        for name in &self.names {
            ip(&["netns", "add", name])?;
            ip(&["-n", name, "link", "set", "lo", "up"])?;
            ip(&["netns", "exec", name, "true"])?;
        }
        let host = &self.names[HOST];
        ip(&["-n", host, "link", "add", "br0", "type", "bridge"])?;
        ip(&["-n", host, "addr", "add", "10.213.7.1/24", "dev", "br0"])?;
        ip(&["-n", host, "link", "set", "br0", "up"])?;
        for (number, name) in self.names.iter().enumerate().skip(1) {
            let port = format!("port{number}");
            ip(&["-n", host, "link", "add", &port, "type", "veth", "peer", "name", "eth0", "netns", name])?;
            ip(&["-n", host, "link", "set", &port, "master", "br0"])?;
            ip(&["-n", host, "link", "set", &port, "up"])?;
            ip(&["-n", name, "addr", "add", &format!("10.213.7.{}/24", number + 1), "dev", "eth0"])?;
            ip(&["-n", name, "link", "set", "eth0", "up"])?;
        }
        Ok(())
    }

    /// A program on one of the machines.
    pub(crate) fn on(&self, machine: usize, program: &str, arguments: &str) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.names[machine], program]).args(arguments.split_whitespace());
        command.stdin(Stdio::null()).env(MARK, mark());
        command.current_dir(crate::program::DIRECTORY);
        command
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        for name in &self.names {
            let _ = Command::new("ip").args(["netns", "del", name]).output();
        }
    }
}

/// Runs ip(8); the error is its message.
fn ip(arguments: &[&str]) -> Result<(), String> {
    let said = run(Command::new("ip").args(arguments));
    if said.status == 0 { Ok(()) } else { Err(format!("ip {}: {}", arguments.join(" "), said.stderr.trim())) }
}

fn signal(child: &Child, name: &str) {
    assert!(Command::new("kill").args([name, &child.id().to_string()]).status().unwrap().success());
}

/// Starts a responder and waits until it is ready.
fn responder(mut command: Command) -> Child {
    let mut child = command.start_piped();
    let mut line = String::new();
    // The responder prints nothing else until it exits, so this reader loses no line.
    BufReader::new(child.stderr.as_mut().unwrap()).read_line(&mut line).unwrap();
    assert!(line.starts_with("answering on "), "{line}");
    child
}

/// Waits for the first progress line of a measurement.
fn wait_until_measuring(child: &mut Child) {
    let (mut said, mut byte) = (String::new(), [0]);
    // Byte by byte: a later reader gets the rest.
    while child.stderr.as_mut().unwrap().read(&mut byte).unwrap() > 0 {
        said.push(byte[0].into());
        if said.ends_with('\n') && said.contains(" max ") {
            return;
        }
    }
    panic!("{said}");
}

/// The record of a responder that is terminated with SIGTERM.
fn ended(mut child: Child) -> TargetRecord {
    signal(&child, "-TERM");
    let mut text = String::new();
    child.stdout.take().unwrap().read_to_string(&mut text).unwrap();
    assert!(child.wait().unwrap().success(), "{text}");
    let json: Value = serde_json::from_str(&text).unwrap();
    crate::pure::schema::assert_conforms("respond", &json);
    serde_json::from_value(json).unwrap()
}

/// The summary of the only cell of a successful measurement.
fn summary(said: &ProgramOutput) -> Value {
    assert_eq!(said.status, 0, "{said:?}");
    let json = said.json();
    crate::pure::schema::assert_conforms("show", &json);
    json["cells"][0]["summary"].clone()
}

/// A responder on the target.
fn respond(network: &Network) -> Child {
    let arguments = format!("respond --on {ANSWERS} --policy fifo:80 --cpu {} --format json", a_cpu());
    responder(network.on(TARGET, PROGRAM, &arguments))
}

/// A measurement of its answers by the logger.
fn measure(network: &Network, duration: &str) -> Command {
    let asked = format!("measure response --to {ANSWERS} --policy fifo:80 --duration {duration} --wait --format json");
    network.on(LOGGER, PROGRAM, &asked)
}

/// The summary of a measurement of 3000 answers during which the host begins to flood the target; the flood goes on.
fn flooded(network: &Network) -> (Value, Child) {
    let mut logger = measure(network, "3s").start_piped();
    wait_until_measuring(&mut logger);
    let flood = network.on(HOST, "ping", "-q -f 10.213.7.2").stdout(Stdio::null()).spawn().unwrap();
    (summary(&finish(logger)), flood)
}

/// The answers and parts of answers in a summary under a flood.
pub(crate) fn answered_under_flood(network: &Network) -> (u64, Vec<u64>) {
    let target = respond(network);
    let (seen, mut flood) = flooded(network);
    kill_and_wait(&mut flood);
    ended(target);
    let parts = seen["response"]["parts"].as_array().map_or(&[][..], Vec::as_slice);
    (seen["samples"].as_u64().unwrap(), parts.iter().map(|part| part["n"].as_u64().unwrap()).collect())
}

#[test]
fn root_a_flooded_target_answers_a_logger_and_each_may_be_killed() {
    skip_unless!(is_root() && is_installed("ip", "iproute2") && is_installed("ping", "iputils-ping"));
    let Some(network) = Network::new("three") else { return };
    let _machine = machine();
    let target = respond(&network);
    let stranger = ["-c", "echo hello >/dev/udp/10.213.7.2/4000"];
    assert!(network.on(HOST, "bash", "").args(stranger).status().unwrap().success());

    let (seen, mut flood) = flooded(&network);
    let count = |key: &str| seen[key].as_u64().unwrap();
    let response = |key: &str| seen["response"][key].as_u64().unwrap();
    assert_eq!(count("samples") + count("missed") + count("lost"), 3000, "{seen:#}");
    assert_eq!(response("lost") + response("unsent"), count("missed"), "{seen:#}");
    assert_eq!((response("foreign"), response("duplicate")), (0, 0));
    assert!(seen["response"]["own"]["p50_ns"].as_u64() > Some(0), "{seen:#}");
    // Each part belongs to an answer, and no part exceeds the longest answer.
    let parts = seen["response"]["parts"].as_array().map_or(&[][..], Vec::as_slice);
    if parts.is_empty() {
        inconclusive("no answer came in the time of the cell");
    }
    for (part, name) in parts.iter().zip(["sending", "away", "waking"]) {
        assert_eq!(part["name"], name);
        assert!(part["n"].as_u64() <= Some(count("samples")), "{seen:#}");
        assert!(part["max_ns"].as_i64() <= seen["max_ns"].as_i64(), "{seen:#}");
    }

    // The host that floods is killed.
    let mut logger = measure(&network, "2s").start_piped();
    wait_until_measuring(&mut logger);
    kill_and_wait(&mut flood);
    assert_eq!(finish(logger).status, 0, "the logger does not depend on it");

    // The logger is killed: the target waits for the next one.
    let mut logger = measure(&network, "1h").stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    wait_until_measuring(&mut logger);
    kill_and_wait(&mut logger);
    assert!(comes_true(|| running().len() == 1), "only the target stays: {:?}", running());
    let next = summary(&run(&mut measure(&network, "200ms")));
    assert_eq!(due_times(&next), 200, "{next:#}");
    let record = ended(target);
    assert_eq!(record.answered, record.triggers - record.too_soon, "{record:?}");
    assert!(record.triggers >= count("samples") + next["samples"].as_u64().unwrap(), "{record:?}");
    assert_eq!((record.foreign, record.own.n), (1, record.answered), "{record:?}");
    assert_eq!(record.achieved.policy.to_string(), "fifo:80");
    assert!(record.achieved.memory_locked_bytes > 0, "{record:?}");

    // The target is killed.
    let mut target = respond(&network);
    let mut logger = measure(&network, "1h").start_piped();
    wait_until_measuring(&mut logger);
    kill_and_wait(&mut target);
    let said = finish(logger);
    let silent = "has stopped answering: no answer to any trigger of the last 3s";
    assert_eq!((said.status, said.last_line()), (1, format!("punctual: {ANSWERS} {silent}").as_str()));
    assert!(said.stdout.is_empty());
    assert!(comes_true(|| running().is_empty()), "no orphans: {:?}", running());
}

/// Python program that connects two terminals and prints their names.
const WIRE: &str = "import os,select,tty\n\
    (a,x),(b,y)=os.openpty(),os.openpty()\n\
    for end in (x,y): tty.setraw(end)\n\
    print(os.ttyname(x),os.ttyname(y),flush=True)\n\
    while True:\n  for end in select.select([a,b],[],[])[0]: os.write(b if end==a else a,os.read(end,64))\n";

/// The summary of 100 answers over a serial line, and the record of the target.
pub(crate) fn over_a_serial_line() -> (Value, TargetRecord) {
    let mut wire = Command::new("python3");
    let mut wire = wire.args(["-c", WIRE]).stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
    let mut names = String::new();
    BufReader::new(wire.stdout.as_mut().unwrap()).read_line(&mut names).unwrap();
    let (here, there) = names.trim().split_once(' ').unwrap();
    let target = responder(crate::program::command(&format!("respond --on serial:{there} --format json")));
    let seen = summary(&punctual(&format!(
        "measure response --to serial:{here} --period 10ms --warm-up 100ms --duration 1s --wait --format json"
    )));
    let record = ended(target);
    kill_and_wait(&mut wire);
    (seen, record)
}

#[test]
fn bytes_of_a_serial_line_are_answered() {
    skip_unless!(is_installed("python3", "python3-minimal"));
    let _machine = machine();
    let (seen, record) = over_a_serial_line();
    let count = |key: &str| seen[key].as_u64().unwrap();
    assert_eq!(count("samples") + count("missed"), 100, "{seen:#}");
    assert!(record.triggers >= seen["response"]["triggers"].as_u64().unwrap(), "{seen:#} {record:?}");
    assert_eq!(seen["response"]["own"], Value::Null, "nothing can be sent to oneself there");
    assert_eq!(record.line_errors, None, "a terminal counts none");
}

/// The summary and the explanations of late answers over the loopback device, and what their target has seen.
pub(crate) fn explained_answers() -> (Value, ExplainRecord, TargetRecord) {
    let free = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let target = responder(crate::program::command(&format!("respond --on udp:{free} --cpu 0 --format json")));
    let seen = summary(&punctual(&format!(
        "explain response:udp:{free} --cpus 0 --policy fifo:80 --period 2ms --above 1us --keep 50 --duration 2s --wait \
         --format json"
    )));
    let target = ended(target);
    let explained = serde_json::from_value(seen["explained"].clone()).unwrap();
    (seen, explained, target)
}

#[test]
fn root_late_answers_are_divided_and_their_parts_add_up() {
    skip_unless!(instances().is_some());
    let _machine = machine();
    let (seen, explained, target) = explained_answers();
    assert!(explained.worst.iter().all(Explanation::is_complete), "{:#?}", explained.worst);
    assert_eq!(due_times(&seen), 1000, "{seen:#}");
    if explained.explained == 0 {
        inconclusive("no late answer was explained");
        return;
    }
    let [stages] = &explained.answers[..] else { panic!("{:?}", explained.answers) };
    let (n, triggers) = (stages.interrupt_to_wakeup.n, target.triggers);
    // Also answers to triggers of the warm-up, which may come after it.
    assert!(n == stages.wakeup_to_switch.n && n <= triggers, "{n} of {triggers}: {stages:?}");
    assert!(n == 0 || stages.interrupt_to_wakeup.min_ns > Some(0), "{stages:?}");
    assert_eq!(seen["stages"]["irq"], Value::Null);
    assert_eq!(seen["stages"]["interrupt_to_wakeup"]["samples"].as_u64().unwrap_or(0), n);
}

#[test]
fn links_that_cannot_be_used_are_refused_by_name() {
    let _machine = machine();
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    play(|scratch, _| drop(scratch.file("link", format!("udp:{}", silent.local_addr().unwrap()))));
}
