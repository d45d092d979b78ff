//! Latency of responses over links: between network namespaces, over terminals, and refused links.

use crate::explain::instances;
use crate::program::{
    MARK, PROGRAM, ProgramOutput, Start, a_cpu, comes_true, finish, is_installed, is_root, kill_and_wait, machine,
    mark, punctual, run, running, skip_unless,
};
use model::{ExplainRecord, Explanation, Phase, TargetRecord};
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
    pub(crate) fn new(name: &str) -> Network {
        let names = ["host", "target", "logger"].map(|role| format!("pt-{name}-{role}-{}", std::process::id()));
        let network = Network { names };
        for name in &network.names {
            ip(&["netns", "add", name]);
            ip(&["-n", name, "link", "set", "lo", "up"]);
        }
        let host = &network.names[HOST];
        ip(&["-n", host, "link", "add", "br0", "type", "bridge"]);
        ip(&["-n", host, "addr", "add", "10.213.7.1/24", "dev", "br0"]);
        ip(&["-n", host, "link", "set", "br0", "up"]);
        for (number, name) in network.names.iter().enumerate().skip(1) {
            let port = format!("port{number}");
            ip(&["-n", host, "link", "add", &port, "type", "veth", "peer", "name", "eth0", "netns", name]);
            ip(&["-n", host, "link", "set", &port, "master", "br0"]);
            ip(&["-n", host, "link", "set", &port, "up"]);
            ip(&["-n", name, "addr", "add", &format!("10.213.7.{}/24", number + 1), "dev", "eth0"]);
            ip(&["-n", name, "link", "set", "eth0", "up"]);
        }
        network
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

#[track_caller]
fn ip(arguments: &[&str]) {
    let output = Command::new("ip").args(arguments).output().unwrap();
    assert!(output.status.success(), "ip {arguments:?}: {output:?}");
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
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    crate::schema::assert_conforms("respond", &json);
    serde_json::from_value(json).unwrap()
}

/// The summary of the only cell of a successful measurement.
fn summary(said: &ProgramOutput) -> serde_json::Value {
    assert_eq!(said.status, 0, "{said:?}");
    let json = said.json();
    crate::schema::assert_conforms("show", &json);
    json["cells"][0]["summary"].clone()
}

#[test]
fn root_a_flooded_target_answers_a_logger_and_each_may_be_killed() {
    skip_unless!(is_root() && is_installed("ip", "iproute2") && is_installed("ping", "iputils-ping"));
    let _machine = machine();
    let network = Network::new("three");
    let respond = || {
        let arguments = format!("respond --on {ANSWERS} --policy fifo:80 --cpu {} --format json", a_cpu());
        responder(network.on(TARGET, PROGRAM, &arguments))
    };
    let measure = |duration: &str| {
        let asked =
            format!("measure response --to {ANSWERS} --policy fifo:80 --duration {duration} --wait --format json");
        network.on(LOGGER, PROGRAM, &asked)
    };
    let target = respond();
    let stranger = "bash -c".split(' ').chain(["echo hello >/dev/udp/10.213.7.2/4000"]).collect::<Vec<_>>();
    let mut command = network.on(HOST, stranger[0], "");
    assert!(command.args(&stranger[1..]).status().unwrap().success());

    // The flood starts with the measurement, which may first wait for another one.
    let mut logger = measure("3s").start_piped();
    wait_until_measuring(&mut logger);
    let mut flood = network.on(HOST, "ping", "-q -f 10.213.7.2").stdout(Stdio::null()).spawn().unwrap();
    let seen = summary(&finish(logger));
    let count = |key: &str| seen[key].as_u64().unwrap();
    let response = |key: &str| seen["response"][key].as_u64().unwrap();
    assert_eq!(count("samples") + count("missed") + count("lost"), 3000, "{seen:#}");
    assert!(count("samples") > 1500, "{seen:#}");
    assert_eq!(response("lost") + response("unsent"), count("missed"), "{seen:#}");
    assert_eq!((response("foreign"), response("duplicate")), (0, 0));
    assert!(seen["response"]["own"]["p50_ns"].as_u64() > Some(0), "{seen:#}");
    // Each part belongs to an answer, and no part exceeds the longest answer.
    for (part, name) in seen["response"]["parts"].as_array().unwrap().iter().zip(["sending", "away", "waking"]) {
        assert_eq!(part["name"], name);
        assert!(part["n"].as_u64() <= Some(count("samples")) && part["n"].as_u64() > Some(500), "{seen:#}");
        assert!(part["max_ns"].as_i64() <= seen["max_ns"].as_i64(), "{seen:#}");
    }

    // The host that floods is killed.
    let mut logger = measure("2s").start_piped();
    wait_until_measuring(&mut logger);
    kill_and_wait(&mut flood);
    assert_eq!(finish(logger).status, 0, "the logger does not depend on it");

    // The logger is killed: the target waits for the next one.
    let mut logger = measure("1min").stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    wait_until_measuring(&mut logger);
    kill_and_wait(&mut logger);
    assert!(comes_true(|| running().len() == 1), "only the target stays: {:?}", running());
    assert!(summary(&run(&mut measure("200ms")))["samples"].as_u64() > Some(100));
    let record = ended(target);
    assert!(record.triggers > 1000 && record.answered == record.triggers - record.too_soon, "{record:?}");
    assert_eq!((record.foreign, record.own.n), (1, record.answered), "{record:?}");
    assert_eq!(record.achieved.policy.to_string(), "fifo:80");
    assert!(record.achieved.memory_locked_bytes > 0, "{record:?}");

    // The target is killed.
    let mut target = respond();
    let mut logger = measure("1min").start_piped();
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

#[test]
fn bytes_of_a_serial_line_are_answered() {
    skip_unless!(is_installed("python3", "python3-minimal"));
    let _machine = machine();
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
    let count = |key: &str| seen[key].as_u64().unwrap();
    assert_eq!(count("samples") + count("missed"), 100, "{seen:#}");
    assert!(count("samples") > 50 && record.triggers >= 110, "{seen:#} {record:?}");
    assert_eq!(seen["response"]["own"], serde_json::Value::Null, "nothing can be sent to oneself there");
    assert_eq!(record.line_errors, None, "a terminal counts none");
}

#[test]
fn root_late_answers_are_divided_and_the_way_is_told_from_this_machine() {
    skip_unless!(instances().is_some());
    let _machine = machine();
    let free = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let target = responder(crate::program::command(&format!("respond --on udp:{free} --cpu 0 --format json")));
    let seen = summary(&punctual(&format!(
        "explain response:udp:{free} --cpus 0 --policy fifo:80 --period 2ms --above 1us --keep 50 --duration 2s --wait \
         --format json"
    )));
    ended(target);
    let explained: ExplainRecord = serde_json::from_value(seen["explained"].clone()).unwrap();
    assert!(explained.explained >= 20, "{} of {}", explained.explained, explained.spikes);
    assert!(explained.worst.iter().all(Explanation::is_complete), "{:#?}", explained.worst);
    // Most triggers are sent and answered by a softirq of the responder on this machine, before the logger, which
    // precedes it on their CPU, sleeps.
    let has = |one: &&Explanation, phase| one.phases.iter().any(|length| length.phase == phase);
    let whole = explained.worst.iter().filter(|one| has(one, Phase::Sending) && has(one, Phase::Away)).count();
    assert!(whole * 10 >= explained.worst.len() * 8, "{whole} of {}: {:#?}", explained.worst.len(), explained.worst[0]);
    let [stages] = &explained.answers[..] else { panic!("{:?}", explained.answers) };
    let n = seen["samples"].as_u64().unwrap() + seen["missed"].as_u64().unwrap();
    // A snapshot of the trace sees no events. Late answers have stages as well.
    assert!(stages.handler.n * 2 > n && stages.handler.n == stages.queue.n && stages.handler.n <= n, "{n} {stages:?}");
    assert!(stages.handler.min_ns > Some(0), "{stages:?}");
    assert_eq!(
        (&seen["stages"]["irq"], seen["stages"]["handler"]["samples"].as_u64()),
        (&Value::Null, Some(stages.handler.n))
    );
}

#[test]
fn links_that_cannot_be_used_are_refused_by_name() {
    let _machine = machine();
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let link = format!("udp:{}", silent.local_addr().unwrap());
    let last = |said: &ProgramOutput| said.last_line().to_owned();
    for (arguments, expected) in [
        (
            format!("measure response --to {link} --duration 1s --wait"),
            format!("{link}: timeout: no answer within 3s; is `punctual respond --on {link}` running on the peer?"),
        ),
        (
            format!("frontier response:{link} --cpus 0 --duration 100ms --wait"),
            format!(
                "a trial of 10ms: {link}: timeout: no answer within 3s; is `punctual respond --on {link}` running on the peer?"
            ),
        ),
        (
            "measure response --to uio --duration 1s --wait".to_owned(),
            "response:uio needs a lab guest in virtual time; name a kernel like debian:6.1, or another link".to_owned(),
        ),
        (
            "measure response --to serial:/dev/null --duration 1s --wait".to_owned(),
            "serial:/dev/null: expected a serial port that supports the speed: Inappropriate ioctl for device (os error 25)".to_owned(),
        ),
        (
            "measure response --to serial:/dev/nothing --duration 1s --wait".to_owned(),
            "serial:/dev/nothing: cannot open it: No such file or directory (os error 2)".to_owned(),
        ),
        (format!("respond --on {link}"), format!("{link}: cannot listen: Address already in use (os error 98)")),
        (
            "respond --on uio".to_owned(),
            "uio needs no responder; measure it with: punctual measure response --to uio".to_owned(),
        ),
        (
            "respond --on udp:127.0.0.1:4001 --for 0s".to_owned(),
            "--for: invalid duration `0s`: expected a positive duration, like 10s".to_owned(),
        ),
        (
            "respond --on serial:/dev/null --peer 10.0.0.1".to_owned(),
            "serial:/dev/null: a serial line has one peer; leave --peer out".to_owned(),
        ),
        (
            "respond --on udp:127.0.0.1:4001 --policy deadline:1ms/2ms/2ms".to_owned(),
            "unsupported: deadline:1ms/2ms/2ms for a responder, which has no period; use another policy".to_owned(),
        ),
    ] {
        let said = punctual(&arguments);
        assert_eq!((said.status, last(&said)), (1, format!("punctual: {expected}")), "{arguments}: {said:?}");
        assert_eq!(said.stdout, "", "{arguments}");
    }
}
