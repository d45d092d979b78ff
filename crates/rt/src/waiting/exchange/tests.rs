//! What is made of what comes, and an exchange of both ends.

use super::*;
use crate::LinkCounts;
use crate::waiting::{Waiting, tests::run as run_by};
use crate::{Ended, LinkEnd};
use model::Period;
use std::sync::Arc;

const PEER: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 9);
const OTHER: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2)), 9);

fn socket() -> UdpSocket {
    UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap()
}

fn asking(patience: u64, peer: SocketAddr) -> (Asking, Arc<LinkCounts>) {
    let counts = Arc::<LinkCounts>::default();
    let line = Line::Udp { socket: socket(), peer: Some(peer) };
    (
        Asking::new(Logger {
            line,
            session: 7,
            first: 0,
            tries: 0,
            patience,
            parts: None,
            counts: Arc::clone(&counts),
        })
        .unwrap(),
        counts,
    )
}

fn answering(peer: Option<SocketAddr>, least_gap_ns: u64) -> (Answering, Arc<LinkCounts>) {
    let counts = Arc::<LinkCounts>::default();
    let line = Line::Udp { socket: socket(), peer };
    (Answering::new(Target { line, least_gap_ns, waking: None, counts: Arc::clone(&counts) }), counts)
}

fn answer(session: u64, number: u64) -> Message {
    Message { is_answer: true, session, number }
}

#[test]
fn an_answer_is_for_its_trigger_and_late_ones_are_told_from_duplicates() {
    let (asking, _) = asking(100, PEER);
    // 98 was answered, 99 was not, 100 is waited for.
    asking.go_on(98, true);
    asking.go_on(99, true);
    asking.go_on(100, false);
    let heard = |message, from| asking.judge(Heard::Message(message, from, None));
    for (message, from, expected) in [
        (answer(7, 100), PEER, Answer::Present),
        (answer(7, 100), OTHER, Answer::Foreign),
        (answer(8, 100), PEER, Answer::Foreign),
        (Message { is_answer: false, ..answer(7, 100) }, PEER, Answer::Foreign),
        (answer(7, 101), PEER, Answer::Foreign),
        (answer(7, 98), PEER, Answer::Duplicate),
        (answer(7, 99), PEER, Answer::Late),
        (answer(7, 99), PEER, Answer::Duplicate),
        (answer(7, 1), PEER, Answer::Duplicate),
    ] {
        assert_eq!(heard(message, from), expected, "{message:?}");
    }
    // 64 triggers later it is still known that 100 had none, and one later it is forgotten.
    asking.go_on(101, false);
    (102..=164).for_each(|number| asking.go_on(number, true));
    assert_eq!(heard(answer(7, 100), PEER), Answer::Late);
    asking.go_on(165, false);
    asking.go_on(165 + 65, false);
    assert_eq!(heard(answer(7, 165), PEER), Answer::Duplicate, "not remembered");
}

#[test]
fn a_byte_is_the_end_of_a_number() {
    let (asking, _) = asking(100, PEER);
    asking.go_on(255, true);
    asking.go_on(256, false);
    let heard = [0, 255, 255, 254, 100].map(|byte| asking.judge(Heard::Byte(byte)));
    assert_eq!(heard, [Answer::Present, Answer::Late, Answer::Duplicate, Answer::Duplicate, Answer::Foreign]);
}

#[test]
fn a_target_answers_its_peer_once_and_nobody_else() {
    let (answering, counts) = answering(None, 0);
    let trigger = |session, number| Message { is_answer: false, session, number };
    let accept = |message, from| answering.accept(Heard::Message(message, from, None), ClockTime(1)).is_some();
    assert!(!accept(answer(1, 1), PEER), "what is no trigger gets none");
    assert!(accept(trigger(1, 1), PEER));
    assert!(!accept(trigger(1, 1), PEER) && !accept(trigger(1, 0), PEER));
    assert!(!accept(trigger(2, 1), OTHER), "the first to ask is the peer");
    assert!(accept(trigger(1, 5), SocketAddr::new(PEER.ip(), 10)), "from another port");
    assert!(accept(trigger(2, 1), PEER), "another session begins anew");
    assert!(answering.accept(Heard::Foreign, ClockTime(1)).is_none());
    let counted = [&counts.triggers, &counts.duplicate, &counts.foreign, &counts.missed, &counts.too_soon];
    assert_eq!(counted.map(|counter| counter.load(Relaxed)), [3, 2, 3, 3, 0]);
}

#[test]
fn answers_are_limited_in_the_long_run() {
    let (answering, counts) = answering(Some(PEER), 1000);
    let mut number = 0;
    let mut answered = |times: u64, now: u64| {
        let once = |_: &u64| {
            number += 1;
            let message = Message { is_answer: false, session: 1, number };
            answering.accept(Heard::Message(message, PEER, None), ClockTime(now)).is_some()
        };
        (0..times).filter(once).count()
    };
    assert_eq!(answered(100, 1_000_000), 33, "one, and a burst");
    assert_eq!(answered(10, 1_002_000), 2, "then one for each gap");
    assert_eq!(answered(10, 2_000_000), 10);
    assert_eq!(counts.too_soon.load(Relaxed), 67 + 8);
}

/// 20 triggers of 2 ms; returns the samples.
fn run(asking: LinkEnd) -> (Vec<(u64, i64)>, Result<Ended, i32>) {
    let period = Period::try_from(Span(2_000_000)).unwrap();
    let waiting = Waiting::by("response:udp:x:1".parse().unwrap(), period, Some(asking)).unwrap();
    run_by(&waiting, ClockId::Monotonic, period, Span(20_000_000))
}

#[test]
fn each_trigger_is_answered_or_missed() {
    let socket = socket();
    let address = socket.local_addr().unwrap();
    // Answers all but every fifth trigger, and some of those that it does not a period later.
    let echo = std::thread::spawn(move || {
        let mut bytes = [0; 64];
        let mut held = None;
        loop {
            let (len, from) = socket.recv_from(&mut bytes).unwrap();
            let trigger = Message::read(&bytes[..len]).unwrap();
            if let Some(message) = held.take() {
                socket.send_to(&Message::bytes(&message), from).unwrap();
            }
            let reply = Message { is_answer: true, ..trigger };
            if trigger.number.is_multiple_of(5) {
                held = Some(reply)
            } else {
                socket.send_to(&reply.bytes(), from).unwrap();
            }
            if trigger.number == 20 {
                return;
            }
        }
    });
    let (asking, counts) = asking(100, address);
    let (samples, ended) = run(LinkEnd::Logger(asking.logger));
    echo.join().unwrap();
    ended.unwrap();
    // On a busy machine more may be missed; none that was not answered may be there.
    assert!(samples.iter().all(|(cycle, latency)| (cycle + 1) % 5 != 0 && *latency > 0), "{samples:?}");
    assert!(samples.windows(2).all(|pair| pair[0].0 < pair[1].0), "{samples:?}");
    let late = counts.late.load(Relaxed);
    assert!(late >= 3 && late + samples.len() as u64 <= 19, "{late} {samples:?}");
    assert_eq!(counts.triggers.load(Relaxed), 20);
    assert!(counts.own_exchanges.load(Relaxed) > 0 && counts.own_ns[0].load(Relaxed) > 0);
}

#[test]
fn nobody_there_ends_it_after_some_patience() {
    let silent = socket();
    let (asking, _) = asking(3, silent.local_addr().unwrap());
    let (samples, ended) = run(LinkEnd::Logger(asking.logger));
    assert_eq!((samples, ended), (Vec::new(), Err(libc::ETIMEDOUT)));
}
