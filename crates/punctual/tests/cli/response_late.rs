//! Late and missing answers: how they are counted, and their effect on requirements.

use crate::program::{ProgramOutput, is_installed, kill_and_wait, machine, punctual, skip_unless};
use serde_json::Value;
use std::collections::VecDeque;
use std::io::{BufRead, BufReader};
use std::net::{SocketAddr, UdpSocket};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Delay of every tenth answer; the others are immediate.
const LATE: Duration = Duration::from_millis(50);

/// A responder of the test that answers every tenth trigger after `LATE`, or never.
struct Responder {
    address: SocketAddr,
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Responder {
    fn new(answers_the_tenth: bool) -> Responder {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let (address, is_over) = (socket.local_addr().unwrap(), Arc::new(AtomicBool::new(false)));
        socket.set_read_timeout(Some(Duration::from_millis(1))).unwrap();
        let ends = Arc::clone(&is_over);
        let answer = move || {
            let mut held: VecDeque<(Instant, [u8; 24], SocketAddr)> = VecDeque::new();
            while !ends.load(Relaxed) {
                let mut bytes = [0; 24];
                if let Ok((24, from)) = socket.recv_from(&mut bytes) {
                    bytes[..8].copy_from_slice(b"punct A1");
                    let number = u64::from_be_bytes(bytes[16..].try_into().unwrap());
                    if number % 10 != 9 {
                        socket.send_to(&bytes, from).unwrap();
                    } else if answers_the_tenth {
                        held.push_back((Instant::now() + LATE, bytes, from));
                    }
                }
                while let Some((_, bytes, from)) = held.pop_front_if(|(at, ..)| *at <= Instant::now()) {
                    socket.send_to(&bytes, from).unwrap();
                }
            }
        };
        Responder { address, is_over, thread: Some(std::thread::spawn(answer)) }
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
        self.is_over.store(true, Relaxed);
        self.thread.take().unwrap().join().unwrap();
    }
}

/// The summary of the only cell, and its findings.
fn summary(said: &ProgramOutput) -> (Value, String) {
    let json = said.json();
    crate::schema::assert_conforms("show", &json);
    (json["cells"][0]["summary"].clone(), json["cells"][0]["findings"].to_string())
}

/// Asserts that every trigger has a sample, was never answered, or was not sent.
#[track_caller]
fn assert_all_are_counted(seen: &Value) {
    let count = |key: &str| seen[key].as_u64().unwrap();
    let response = |key: &str| seen["response"][key].as_u64().unwrap();
    assert_eq!(count("samples") + count("missed"), 100, "{seen:#}");
    assert_eq!(response("lost") + response("unsent"), count("missed"), "{seen:#}");
}

#[test]
fn late_answers_count_with_their_whole_delay_and_fail_a_requirement() {
    let _machine = machine();
    let responder = Responder::new(true);
    let said = responder.measured("--require max=30ms");
    assert_eq!(said.status, 2, "{said:?}");
    let (seen, findings) = summary(&said);
    assert_all_are_counted(&seen);
    let ns = |value: &Value| value.as_f64().unwrap();
    let late_ns = LATE.as_nanos() as f64;
    assert!(ns(&seen["max_ns"]) >= late_ns, "{seen:#}");
    // Ten of a hundred if all were sent; at least five late answers enter the mean.
    let (late, samples) = (ns(&seen["response"]["late"]), ns(&seen["samples"]));
    assert!(late >= 5.0 && ns(&seen["mean_ns"]) >= late_ns * 5.0 / samples, "{seen:#}");
    // A busy machine may prevent the last answers.
    assert!(seen["response"]["lost"].as_u64() < seen["response"]["late"].as_u64(), "{seen:#}");
    assert!(findings.contains("late answers: ") && !findings.contains("woke"), "{findings}");
    let status = responder.measured("--require p99=30ms").status;
    assert!(status == 2 || status == 3, "one in ten is later: {status}");
}

#[test]
fn answers_that_never_come_are_at_least_as_late_as_the_timeout() {
    let _machine = machine();
    let responder = Responder::new(false);
    for (require, statuses) in [("max=30ms", [2, 2]), ("p99=30ms", [2, 3]), ("max=1h", [3, 3]), ("p99=1h", [3, 3])] {
        let said = responder.measured(&format!("--require {require}"));
        let (seen, findings) = summary(&said);
        assert_all_are_counted(&seen);
        assert!(seen["response"]["lost"].as_u64() >= Some(5), "{seen:#}");
        assert!(statuses.contains(&said.status), "{require}: {said:?}");
        assert_eq!(seen["max_is_lower_bound"], true, "{seen:#}");
        assert!(seen["max_ns"].as_u64() >= Some(1_000_000_000), "{seen:#}");
        assert!(findings.contains("missing answers: "), "{findings}");
    }
}

/// Python program that prints the name of a terminal and echoes each byte, every tenth one 50 ms late.
const LATE_BYTES: &str = "import os,select,sys,time,tty\n\
    a,x=os.openpty()\n\
    tty.setraw(x)\n\
    print(os.ttyname(x),flush=True)\n\
    held=[]\n\
    while True:\n\
    \x20 wait=max(0,held[0][0]-time.monotonic()) if held else None\n\
    \x20 if select.select([a],[],[],wait)[0]:\n\
    \x20   for byte in os.read(a,64):\n\
    \x20     if byte%10==9: held.append((time.monotonic()+.05,byte))\n\
    \x20     else: os.write(a,bytes([byte]))\n\
    \x20 while held and held[0][0]<=time.monotonic(): os.write(a,bytes([held.pop(0)[1]]))\n";

#[test]
fn late_bytes_of_a_serial_line_count_with_their_whole_delay() {
    skip_unless!(is_installed("python3", "python3-minimal"));
    let _machine = machine();
    let mut other = Command::new("python3");
    let mut other = other.args(["-c", LATE_BYTES]).stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
    let mut name = String::new();
    BufReader::new(other.stdout.as_mut().unwrap()).read_line(&mut name).unwrap();
    let said = punctual(&format!(
        "measure response --to serial:{} --period 10ms --warm-up 100ms --duration 1s --require max=30ms --wait --format json",
        name.trim()
    ));
    kill_and_wait(&mut other);
    assert_eq!(said.status, 2, "{said:?}");
    let (seen, _) = summary(&said);
    assert_all_are_counted(&seen);
    assert!(seen["max_ns"].as_u64() >= Some(50_000_000), "{seen:#}");
    assert!(seen["response"]["late"].as_u64() >= Some(5), "{seen:#}");
    // A busy machine may prevent the last answers.
    assert!(seen["response"]["lost"].as_u64() < seen["response"]["late"].as_u64(), "{seen:#}");
}
