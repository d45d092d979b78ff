//! Late and missing answers: how they are counted, and their effect on requirements.

use crate::program::{ProgramOutput, inconclusive, is_installed, kill_and_wait, machine, punctual, skip_unless};
use serde_json::Value;
use std::collections::VecDeque;
use std::io::{BufRead, BufReader};
use std::net::{SocketAddr, UdpSocket};
use std::process::{Command, Stdio};
use std::thread::JoinHandle;

/// A responder of the test that answers every tenth trigger when it has got five more, or never; the others at once.
struct Responder {
    address: SocketAddr,
    thread: Option<JoinHandle<()>>,
}

/// A datagram that ends a responder.
const END: &[u8] = b"end";

impl Responder {
    fn new(answers_the_tenth: bool) -> Responder {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = socket.local_addr().unwrap();
        let answer = move || {
            let mut held: VecDeque<(u64, [u8; 24], SocketAddr)> = VecDeque::new();
            let mut triggers = 0;
            loop {
                let mut bytes = [0; 24];
                let (length, from) = socket.recv_from(&mut bytes).unwrap();
                match length {
                    24 => triggers += 1,
                    _ if bytes.starts_with(END) => break,
                    _ => continue,
                }
                bytes[..8].copy_from_slice(b"punct A1");
                while let Some((_, bytes, from)) = held.pop_front_if(|(number, ..)| *number + 5 <= triggers) {
                    socket.send_to(&bytes, from).unwrap();
                }
                if triggers % 10 != 0 {
                    socket.send_to(&bytes, from).unwrap();
                } else if answers_the_tenth {
                    held.push_back((triggers, bytes, from));
                }
            }
        };
        Responder { address, thread: Some(std::thread::spawn(answer)) }
    }

    /// Output of a measurement of 100 triggers, one every 20 ms.
    fn measured(&self, options: &str) -> ProgramOutput {
        let address = self.address;
        punctual(&format!(
            "measure response --to udp:{address} --period 20ms --warm-up 100ms --duration 2s {options} --wait --format json"
        ))
    }
}

impl Drop for Responder {
    fn drop(&mut self) {
        UdpSocket::bind("127.0.0.1:0").unwrap().send_to(END, self.address).unwrap();
        self.thread.take().unwrap().join().unwrap();
    }
}

/// The summary of the only cell, and its findings.
fn summary(said: &ProgramOutput) -> (Value, String) {
    let json = said.json();
    crate::pure::schema::assert_conforms("show", &json);
    (json["cells"][0]["summary"].clone(), json["cells"][0]["findings"].to_string())
}

/// Asserts that every trigger has a sample, was never answered, or was not sent. Returns whether there are so many
/// samples that a tenth trigger and the five after it are among their triggers; prints that there are not.
#[track_caller]
fn are_counted_and_enough(seen: &Value) -> bool {
    let count = |key: &str| seen[key].as_u64().unwrap();
    let response = |key: &str| seen["response"][key].as_u64().unwrap();
    assert_eq!(count("samples") + count("missed"), 100, "{seen:#}");
    assert_eq!(response("lost") + response("unsent"), count("missed"), "{seen:#}");
    let are_enough = count("samples") >= 25;
    if !are_enough {
        inconclusive("the machine gave no time to most triggers");
    }
    are_enough
}

#[test]
fn late_answers_count_with_their_whole_delay_and_fail_a_requirement() {
    let _machine = machine();
    let responder = Responder::new(true);
    let said = responder.measured("--require max=30ms");
    let (seen, findings) = summary(&said);
    if !are_counted_and_enough(&seen) {
        return;
    }
    assert_eq!(said.status, 2, "{said:?}");
    let ns = |value: &Value| value.as_f64().unwrap();
    // Of five triggers, one may follow a late one at once, and the late one may be sent at the end of its period.
    let late_ns = 60e6;
    assert!(ns(&seen["max_ns"]) >= late_ns, "{seen:#}");
    assert!(seen["response"]["late"].as_u64() > Some(0), "{seen:#}");
    assert!(ns(&seen["mean_ns"]) >= late_ns / ns(&seen["samples"]), "{seen:#}");
    assert!(findings.contains("late answers: ") && !findings.contains("woke"), "{findings}");
    let said = responder.measured("--require p99=30ms");
    if are_counted_and_enough(&summary(&said).0) {
        assert!(said.status == 2 || said.status == 3, "one in ten is later: {said:?}");
    }
}

#[test]
fn answers_that_never_come_are_at_least_as_late_as_the_timeout() {
    let _machine = machine();
    let responder = Responder::new(false);
    for (require, statuses) in [("max=30ms", [2, 2]), ("p99=30ms", [2, 3]), ("max=1h", [3, 3]), ("p99=1h", [3, 3])] {
        let said = responder.measured(&format!("--require {require}"));
        let (seen, findings) = summary(&said);
        if !are_counted_and_enough(&seen) {
            continue;
        }
        assert!(seen["response"]["lost"].as_u64() > Some(0), "{seen:#}");
        assert!(statuses.contains(&said.status), "{require}: {said:?}");
        assert_eq!(seen["max_is_lower_bound"], true, "{seen:#}");
        assert!(seen["max_ns"].as_u64() >= Some(1_000_000_000), "{seen:#}");
        assert!(findings.contains("missing answers: "), "{findings}");
    }
}

/// Python program that prints the name of a terminal and echoes each byte, every tenth one when it has got five more.
const LATE_BYTES: &str = "import os,tty\n\
    a,x=os.openpty()\n\
    tty.setraw(x)\n\
    print(os.ttyname(x),flush=True)\n\
    held,n=[],0\n\
    while True:\n\
    \x20 for byte in os.read(a,64):\n\
    \x20   n+=1\n\
    \x20   while held and held[0][0]+5<=n: os.write(a,bytes([held.pop(0)[1]]))\n\
    \x20   if n%10==0: held.append((n,byte))\n\
    \x20   else: os.write(a,bytes([byte]))\n";

#[test]
fn late_bytes_of_a_serial_line_count_with_their_whole_delay() {
    skip_unless!(is_installed("python3", "python3-minimal"));
    let _machine = machine();
    let mut other = Command::new("python3");
    let mut other = other.args(["-c", LATE_BYTES]).stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
    let mut name = String::new();
    BufReader::new(other.stdout.as_mut().unwrap()).read_line(&mut name).unwrap();
    let said = punctual(&format!(
        "measure response --to serial:{} --period 10ms --warm-up 100ms --duration 1s --require max=20ms --wait --format json",
        name.trim()
    ));
    kill_and_wait(&mut other);
    let (seen, _) = summary(&said);
    if are_counted_and_enough(&seen) {
        assert_eq!(said.status, 2, "{said:?}");
        assert!(seen["max_ns"].as_u64() >= Some(30_000_000), "{seen:#}");
        assert!(seen["response"]["late"].as_u64() > Some(0), "{seen:#}");
    }
}
