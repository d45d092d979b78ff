//! Classification of received events, and an exchange of both ends.

use super::*;
use crate::LinkCounts;
use crate::link::Target;
use crate::methods::tests::{run as run_by, wait_of};
use crate::{LinkEnd, LogReader, LoopResult, sample_log};
use punctual_model::{MonoTime, Period};
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

const PEER: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 9);
const OTHER: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2)), 9);

fn socket() -> UdpSocket {
    UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap()
}

/// A logger that gives up after `peer_timeout` ns without an answer, its counters, and the log of given-up triggers.
fn logger(peer_timeout: u64, peer: SocketAddr) -> (Logger, Arc<LinkCounts>, LogReader) {
    let counts = Arc::<LinkCounts>::default();
    let (log, given_up) = sample_log(1000);
    let logger = Logger {
        line: Line::Udp { socket: socket(), peer: Some(peer) },
        session: 7,
        first: 0,
        tries: 0,
        peer_timeout: Span(peer_timeout),
        remembered: 64,
        parts: None,
        unanswered: Some(log),
        counts: Arc::clone(&counts),
    };
    (logger, counts, given_up)
}

/// A logger of a serial line.
fn of_bytes() -> LoggerWait {
    let line = Line::Serial(std::fs::File::open("/dev/null").unwrap());
    LoggerWait::new(Logger { line, ..logger(100, PEER).0 }).unwrap()
}

/// Records trigger `number` as sent.
fn sent(wait: &LoggerWait, number: u64) {
    wait.triggers.send(Trigger { number, index: number - 1, is_open: true, ..Trigger::default() });
}

/// The outcome of a classification: the number of the answered trigger.
fn judged(answer: Answer) -> Result<u64, &'static str> {
    match answer {
        Answer::To(trigger) => Ok(trigger.number),
        Answer::Duplicate => Err("duplicate"),
        Answer::Foreign => Err("foreign"),
    }
}

fn target(peer: Option<SocketAddr>, min_interval_ns: u64) -> (TargetWait, Arc<LinkCounts>) {
    let counts = Arc::<LinkCounts>::default();
    let line = Line::Udp { socket: socket(), peer };
    (TargetWait::new(Target { line, min_interval_ns, waking: None, counts: Arc::clone(&counts) }), counts)
}

fn answer(session: u64, number: u64) -> Message {
    Message { is_answer: true, session, number }
}

#[test]
fn an_answer_counts_for_its_own_trigger_and_duplicates_are_not_late() {
    const DUPLICATE: Result<u64, &str> = Err("duplicate");
    const FOREIGN: Result<u64, &str> = Err("foreign");
    let wait = LoggerWait::new(logger(100, PEER).0).unwrap();
    // 98 was answered, 99 was not, 100 is waited for.
    (97..=100).for_each(|number| sent(&wait, number));
    (97..=98).for_each(|number| wait.triggers.answer(number));
    for (message, from, expected) in [
        (answer(7, 100), PEER, Ok(100)),
        (answer(7, 100), OTHER, FOREIGN),
        (answer(8, 100), PEER, FOREIGN),
        (Message { is_answer: false, ..answer(7, 100) }, PEER, FOREIGN),
        (answer(7, 101), PEER, FOREIGN),
        (answer(7, 98), PEER, DUPLICATE),
        (answer(7, 99), PEER, Ok(99)),
        (answer(7, 99), PEER, DUPLICATE),
        (answer(7, 1), PEER, DUPLICATE),
    ] {
        let found = judged(wait.judge(LineEvent::Message(message, from, None)));
        found.iter().for_each(|number| wait.triggers.answer(*number));
        assert_eq!(found, expected, "{message:?}");
    }
    // After 63 more triggers, 101 is still known to be open; after one more it is given up.
    (101..=164).for_each(|number| sent(&wait, number));
    let event = |number| judged(wait.judge(LineEvent::Message(answer(7, number), PEER, None)));
    assert_eq!(event(101), Ok(101));
    let given_up = wait.triggers.send(Trigger { number: 165, is_open: true, ..Trigger::default() });
    assert_eq!((given_up.map(|trigger| trigger.number), event(101)), (Some(101), DUPLICATE));
}

#[test]
fn a_byte_is_the_end_of_a_number() {
    let wait = of_bytes();
    (100..=256).for_each(|number| sent(&wait, number));
    (100..=254).for_each(|number| wait.triggers.answer(number));
    let event = [0, 255, 254, 192, 191, 100, 99].map(|byte| judged(wait.judge(LineEvent::Byte(byte))));
    let duplicate = Err("duplicate");
    let foreign = Err("foreign");
    assert_eq!(event, [Ok(256), Ok(255), duplicate, duplicate, foreign, foreign, foreign]);
}

#[test]
fn a_trigger_that_an_answer_could_not_be_told_from_is_waited_for() {
    let wait = of_bytes();
    let schedule = Schedule { first_due: ClockTime(0), period: Period::try_from(Span(1_000_000)).unwrap() };
    (1..=256).for_each(|number| sent(&wait, number));
    let until = |number: u64| wait.held_until(&schedule, schedule.cycle(number - 1), ClockTime(0)).0;
    assert_eq!((until(257), until(258)), (Logger::LATE_ANSWER_TIMEOUT.ns(), Logger::LATE_ANSWER_TIMEOUT.ns()));
    wait.triggers.answer(2);
    assert_eq!(
        (until(257), until(258), until(259)),
        (0, 0, Logger::LATE_ANSWER_TIMEOUT.ns()),
        "the first was overtaken"
    );
}

#[test]
fn a_target_answers_its_peer_once_and_nobody_else() {
    let (target, counts) = target(None, 0);
    let trigger = |session, number| Message { is_answer: false, session, number };
    let accept = |message, from| target.accept(LineEvent::Message(message, from, None), ClockTime(1)).is_some();
    assert!(!accept(answer(1, 1), PEER), "what is no trigger gets none");
    assert!(accept(trigger(1, 1), PEER));
    assert!(!accept(trigger(1, 1), PEER) && !accept(trigger(1, 0), PEER));
    assert!(!accept(trigger(2, 1), OTHER), "the first to ask is the peer");
    assert!(accept(trigger(1, 5), SocketAddr::new(PEER.ip(), 10)), "from another port");
    assert!(accept(trigger(2, 1), PEER), "another session begins anew");
    assert!(target.accept(LineEvent::Foreign, ClockTime(1)).is_none());
    let counted = [&counts.triggers, &counts.duplicate, &counts.foreign, &counts.missed, &counts.too_soon];
    assert_eq!(counted.map(|counter| counter.load(Relaxed)), [3, 2, 3, 3, 0]);
}

#[test]
fn answers_are_limited_in_the_long_run() {
    let (target, counts) = target(Some(PEER), 1000);
    let mut number = 0;
    let mut answered = |times: u64, now: u64| {
        let once = |_: &u64| {
            number += 1;
            let message = Message { is_answer: false, session: 1, number };
            target.accept(LineEvent::Message(message, PEER, None), ClockTime(now)).is_some()
        };
        (0..times).filter(once).count()
    };
    assert_eq!(answered(100, 1_000_000), 33, "one, and a burst");
    assert_eq!(answered(10, 1_002_000), 2, "then one for each gap");
    assert_eq!(answered(10, 2_000_000), 10);
    assert_eq!(counts.too_soon.load(Relaxed), 67 + 8);
}

/// 20 triggers of 5 ms; returns the samples.
fn run(end: LinkEnd) -> (Vec<(u64, i64)>, Result<LoopResult, i32>) {
    let period = Period::try_from(Span(5_000_000)).unwrap();
    let waiting = wait_of(punctual_model::Method::CLOCK_NANOSLEEP, period, Some(end));
    run_by(&waiting, ClockId::Monotonic, period, Span(20_000_000))
}

/// Answers triggers until `is_over`, but no fifth one, and the one before it after two more have come. Returns the
/// numbers that it answered, and how long it held each, ns.
fn echo(socket: &UdpSocket, is_over: &AtomicBool) -> Vec<(u64, i64)> {
    let (mut answered, mut bytes) = (Vec::new(), [0; 64]);
    let mut answer = |trigger: &Message, from: SocketAddr, came: MonoTime| {
        let held = punctual_sys::clock::monotonic().since(came).0;
        socket.send_to(&Message { is_answer: true, ..*trigger }.bytes(), from).unwrap();
        answered.push((trigger.number, held));
    };
    let mut held: Option<(u64, Message, MonoTime)> = None;
    loop {
        let (len, from) = socket.recv_from(&mut bytes).unwrap();
        let came = punctual_sys::clock::monotonic();
        if is_over.load(Relaxed) {
            return answered;
        }
        let trigger = Message::read(&bytes[..len]).unwrap();
        match trigger.number % 5 {
            0 => {}
            4 => held = Some((trigger.number + 2, trigger, came)),
            _ => answer(&trigger, from, came),
        }
        if let Some((_, trigger, came)) = held.take_if(|(at, ..)| trigger.number >= *at || trigger.number == 20) {
            answer(&trigger, from, came);
        }
    }
}

#[test]
fn late_answers_count_with_their_delay_and_missing_ones_with_the_wait() {
    let socket = socket();
    let address = socket.local_addr().unwrap();
    let is_over = Arc::new(AtomicBool::new(false));
    let echo = std::thread::spawn({
        let is_over = Arc::clone(&is_over);
        move || echo(&socket, &is_over)
    });
    let (logger, counts, mut given_up) = logger(u64::MAX, address);
    let (mut samples, ended) = run(LinkEnd::Logger(logger));
    is_over.store(true, Relaxed);
    // It waits for one more.
    UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().send_to(b"", address).unwrap();
    let answered: BTreeMap<u64, i64> = echo.join().unwrap().into_iter().collect();
    ended.unwrap();
    let mut never = Vec::new();
    given_up.drain(|sample| never.push((sample.cycle + 1, sample.latency.0)));
    samples.sort_unstable();
    // On a busy machine the logger may send fewer; each trigger sent is in one of both, once.
    let sent = counts.triggers.load(Relaxed);
    assert_eq!(samples.len() + never.len(), usize::try_from(sent).unwrap(), "{samples:?} {never:?}");
    assert!(samples.windows(2).all(|pair| pair[0].0 < pair[1].0), "{samples:?}");
    // Only what was answered has a latency, of at least the time for which the answer was held.
    let is_of_an_answer = |(cycle, latency): &(u64, i64)| answered.get(&(cycle + 1)).is_some_and(|held| latency > held);
    assert!(samples.iter().all(is_of_an_answer), "{samples:?} {answered:?}");
    assert!(samples.iter().all(|(cycle, _)| !never.iter().any(|(number, _)| *number == cycle + 1)), "{never:?}");
    assert!(never.iter().all(|(_, waited)| *waited >= Logger::LATE_ANSWER_TIMEOUT.ns().cast_signed()), "{never:?}");
    // Held until two more had come; the last one is answered immediately after it.
    let late: Vec<_> = samples.iter().filter(|(cycle, _)| (cycle + 1) % 5 == 4 && *cycle < 15).collect();
    let counted = counts.late.load(Relaxed);
    assert!(counted >= late.len() as u64, "{counted} {late:?}");
    assert!(counts.settled.load(Relaxed) <= 19);
    // Each exchange with itself has a timeout.
    let own = [0, 1, 2].map(|place| counts.own_ns[place].load(Relaxed));
    assert!(own.is_sorted() && (own[0] > 0) == (counts.own_exchanges.load(Relaxed) > 0), "{own:?}");
    if late.is_empty() || own[0] == 0 {
        println!("inconclusive: {sent} of 20 triggers were sent, {} answered late, own {own:?}", late.len());
    }
}

#[test]
fn a_peer_that_never_answers_ends_it_after_the_timeout() {
    let silent = socket();
    let (logger, counts, _) = logger(3, silent.local_addr().unwrap());
    let (samples, ended) = run(LinkEnd::Logger(logger));
    // A busy machine may leave no time to send as many as required.
    let sent = counts.triggers.load(Relaxed);
    let over = if sent < Logger::MIN_CONSECUTIVE_TIMEOUTS { None } else { Some(libc::ETIMEDOUT) };
    assert_eq!((samples, ended.err()), (Vec::new(), over), "{sent} sent");
    assert!(sent <= Logger::MIN_CONSECUTIVE_TIMEOUTS);
}
