//! Watched threads of other programs: a row for each, what they waited for, and the chain.

use super::Section;
use super::latencies::latency_or_dash;
use crate::table::{Column, Field, Table, dash, share};
use punctual_analysis::wording::{count, duration, things};
use punctual_analysis::{
    CellSummary, ChainSummary, PacketStage, PacketSummary, RunSummary, StageSummary, WatchSpread, WatchSummary,
    WatchedSummary,
};
use punctual_model::{Level, NamedTime, Order, OtherThread, Releases, Span, ThreadState, ThrottledTime, TimeAccount};
use std::cmp::Reverse;

/// A watched thread and the name of its cell.
type Row<'a> = (&'a str, &'a WatchedSummary);

/// Threads without activations that are listed one by one.
const MOST_OTHERS: usize = 5;
/// Calls without data up to which a thread does not poll.
const MOST_EMPTY: u64 = 100;
/// Names of a list that are shown.
const NAMED: usize = 3;

/// A row for each watched thread, and sentences on what each waits for.
pub(crate) fn of(summary: &RunSummary) -> Option<Section> {
    let cells: Vec<(&CellSummary, &WatchSummary)> =
        summary.cells.iter().filter_map(|cell| Some((cell, cell.watch.as_ref()?))).collect();
    let rows: Vec<Row<'_>> =
        cells.iter().flat_map(|(cell, watch)| watch.threads.iter().map(|thread| (&*cell.name, thread))).collect();
    if cells.iter().all(|(_, watch)| watch.threads.is_empty() && watch.others.is_empty()) {
        return None;
    }
    let several = summary.cells.len() > 1;
    let sentences = cells.iter().flat_map(|(cell, watch)| {
        let prefix = if several { format!("{}: ", cell.name) } else { String::new() };
        let of_thread = |thread| format!("{prefix}{}", sentence(thread));
        let listed = watch.others.len().min(MOST_OTHERS);
        let others = watch.others[..listed].iter().map(|one| format!("{prefix}{}", without_activations(one)));
        let unlisted = watch.inactive.max(watch.others.len() as u64) - listed as u64;
        let rest = (unlisted > 0).then(|| {
            format!(
                "{} no activations: never waited twice in one call.",
                if unlisted == 1 {
                    "1 more thread has".to_owned()
                } else {
                    format!("{} more threads have", count(unlisted))
                }
            )
        });
        let none = watch.threads.is_empty().then(|| format!("{prefix}No watched thread has activations."));
        none.into_iter().chain(watch.threads.iter().map(of_thread)).chain(others).chain(rest).collect::<Vec<_>>()
    });
    Some(Section {
        title: "Watched threads",
        table: (!rows.is_empty()).then(|| table(several, &rows)),
        sentences: sentences.collect(),
        notes: if rows.is_empty() { Vec::new() } else { notes(&rows, crate::unit(summary)) },
    })
}

/// The same of threads without a cell.
pub(crate) fn of_threads(threads: &[WatchedSummary]) -> Section {
    let rows: Vec<Row<'_>> = threads.iter().map(|thread| ("", thread)).collect();
    Section {
        title: "Watched threads",
        table: Some(table(false, &rows)),
        sentences: threads.iter().map(sentence).collect(),
        notes: notes(&rows, "us unless marked"),
    }
}

/// What the columns are.
fn notes(rows: &[Row<'_>], unit: &str) -> Vec<String> {
    let is_known = |part: fn(&WatchedSummary) -> &WatchSpread| rows.iter().any(|(_, one)| part(one).max_ns > Some(0));
    let mut notes = vec![format!(
        "p50 / max in {unit}. Latency: from the release until the program runs; run: on the CPU; response: from the \
         release to the next wait."
    )];
    if is_known(|one| &one.preempted) || is_known(|one| &one.blocked) {
        notes.push("Preempted: to run and not running, within an activation; slept: waiting within one.".to_owned());
    }
    notes
}

/// What a thread without activations did.
fn without_activations(one: &OtherThread) -> String {
    let policy = one.policy.map(|policy| format!(" ({policy})")).unwrap_or_default();
    let [ran, waited, counted] = [one.ran, one.waited, one.counted].map(|span| duration(span.ns() as f64));
    let at_end =
        if one.state == ThreadState::Ended { ", and ended".to_owned() } else { format!("; {} at the end", one.state) };
    let polls = one.empty_polls.filter(|n| *n > MOST_EMPTY).map_or_else(String::new, |n| {
        format!("; {} for data found none: it polls, and has no wake-up", things(n, "call"))
    });
    format!(
        "{}{policy} has no activations, as it never waited twice in one call: of {counted} it ran {ran} and waited \
         {waited} for a CPU{polls}{at_end}.",
        one.name
    )
}

/// The columns: the first one only where there are several cells.
fn fields<'a>() -> [Field<Row<'a>>; 12] {
    [
        (Column::text("cell"), |(cell, _)| (*cell).to_owned()),
        (Column::text("thread"), |(_, one)| one.name.clone()),
        (Column::text("policy").spare(6), |(_, one)| one.policy.map_or_else(dash, |policy| policy.to_string())),
        (Column::figure("period").spare(7), |(_, one)| {
            one.period.map_or_else(dash, |found| duration(found.period.ns() as f64))
        }),
        (Column::figure("activations"), |(_, one)| count(one.activations)),
        (Column::figure("late"), |(_, one)| one.late.map_or_else(dash, count)),
        (Column::figure("latency").spare(5), |(_, one)| p50_and_max(&one.latency)),
        (Column::figure("jitter").spare(0), |(_, one)| p50_and_max(&one.jitter)),
        (Column::figure("run").spare(4), |(_, one)| p50_and_max(&one.run)),
        (Column::figure("preempted").spare(2), |(_, one)| p50_and_max(&one.preempted)),
        (Column::figure("slept").spare(3), |(_, one)| p50_and_max(&one.blocked)),
        (Column::figure("response"), |(_, one)| {
            let p50_ns = one.response.at(Level::P50).value_ns();
            match one.open_ns() {
                Some(open_ns) => format!("{} / >{}", latency_or_dash(p50_ns), latency_or_dash(Some(open_ns))),
                None => p50_and_max(&WatchSpread { p50_ns, p99_ns: None, max_ns: one.response_max_ns }),
            }
        }),
    ]
}

fn table(several: bool, rows: &[Row<'_>]) -> Table {
    let fields = fields();
    Table::of(&fields[usize::from(!several)..], rows)
}

/// `5.0 / 33`; `-` where nothing is known, or nothing took time.
fn p50_and_max(spread: &WatchSpread) -> String {
    match (spread.p50_ns, spread.max_ns) {
        (_, None | Some(0)) => dash(),
        (p50_ns, max_ns) => format!("{} / {}", latency_or_dash(p50_ns), latency_or_dash(max_ns)),
    }
}

/// What a thread waits for, and what it met within its activations.
fn sentence(thread: &WatchedSummary) -> String {
    let mut parts = vec![match thread.wait.as_str() {
        "" => format!("{} never waited", thread.name),
        wait if thread.activations == 0 => format!("{} waits in {wait}", thread.name),
        wait => format!("{} waits in {wait}: {}", thread.name, released(thread)),
    }];
    parts.extend(thread.packets.iter().flat_map(by_packets));
    if let Some(found) = thread.period {
        let how = if found.is_given { "given" } else { "found" };
        parts.push(format!(
            "period {} ({how}; {:.0} % of the intervals follow it)",
            duration(found.period.ns() as f64),
            found.regular * 100.0
        ));
    }
    if !thread.blocked_in.is_empty() {
        parts.push(format!("slept in {}", named(&thread.blocked_in)));
    }
    let accounted = thread.account.as_ref().and_then(|one| account(one, Deadline::of(thread)));
    let is_named = accounted.is_some() && thread.account.as_ref().is_some_and(|account| !account.waited_for.is_empty());
    if !thread.preempted_by.is_empty() && !is_named {
        parts.push(format!("gave way to {}", named(&thread.preempted_by)));
    }
    parts.extend(accounted);
    for (n, what) in [(thread.page_faults, "page fault"), (thread.migrations, "change of CPU")] {
        if n > 0 {
            // The plural of the latter is not formed by an s at its end.
            parts.push(if n == 1 { format!("1 {what}") } else { format!("{} {}", count(n), plural(what)) });
        }
    }
    if let Some(ended) = &thread.ended {
        parts.push(ended.clone());
    }
    format!("{}.", parts.join("; "))
}

/// Place of throttling among the colors of the page.
const THROTTLED: u8 = 10;

/// A part of the account of a thread.
pub(crate) struct Part<'a> {
    /// Whether it is time that the thread neither needed nor chose.
    is_lost: bool,
    /// Its place among the colors of the page.
    color: u8,
    /// What the thread did; `{}` is for how long.
    said: &'static str,
    /// The same without a time.
    pub(crate) name: &'static str,
    /// Its time, ns.
    pub(crate) ns: u64,
    by: Vec<&'a NamedTime>,
    /// Part of it in which the thread may have been throttled, ns.
    maybe_throttled_ns: u64,
}

impl Part<'_> {
    /// Its class on the page.
    pub(crate) fn class(&self) -> String {
        match self.color {
            7 => "w7 open".to_owned(),
            9 => "phase".to_owned(),
            THROTTLED => "w4 open".to_owned(),
            color => format!("w{color}"),
        }
    }
}

/// The parts of an account, those that are lost first, the longest of them first. Their sum is all of it.
pub(crate) fn parts<'a>(account: &'a TimeAccount) -> Vec<Part<'a>> {
    let interrupts = account.interrupts.as_ref();
    let interrupted = interrupts.map_or(0, |one| one.total.ns());
    let named = interrupts.map_or(&[][..], |one| &one.by);
    let ran = account.running.ns().saturating_sub(interrupted);
    let part = |color, said, name, ns, by: &'a [NamedTime]| Part {
        is_lost: color < 7 || color == THROTTLED,
        color,
        said,
        name,
        ns,
        by: by.iter().collect(),
        maybe_throttled_ns: 0,
    };
    let ThrottledTime { at_least, at_most } = account.throttled.unwrap_or_default();
    let waiting = account.waiting_for_cpu.ns().saturating_sub(at_least.ns());
    let mut waiting = part(0, "waited {} for a CPU", "waiting for a CPU", waiting, &account.waited_for);
    waiting.by.retain(|one| at_least == Span(0) || one.name != "idle");
    waiting.maybe_throttled_ns = at_most.ns().saturating_sub(at_least.ns());
    let mut all = vec![
        waiting,
        part(THROTTLED, "was throttled for {}", "throttled", at_least.ns(), &[]),
        part(6, "handled interrupts for {}", "interrupts", interrupted, named),
        part(8, "ran {}", "running", ran, &[]),
        part(7, "is unknown for {}", "unknown", account.unknown.map_or(0, Span::ns), &[]),
    ];
    all.extend(account.asleep_for.as_ref().map_or_else(
        || vec![part(9, "slept {}", "asleep", account.asleep.ns(), &[])],
        |one| {
            vec![
                part(1, "waited {} for locks", "locks", one.locks.ns(), &one.locks_of),
                part(2, "slept {} uninterruptibly", "uninterruptible sleep", one.uninterruptible.ns(), &[]),
                part(3, "waited {} for memory", "memory", one.memory.ns(), &[]),
                part(4, "waited {} for others", "others", one.others.ns(), &[]),
                part(5, "was stopped for {}", "stopped", one.stopped.ns(), &[]),
                part(9, "slept {} on purpose", "asleep on purpose", one.on_purpose.ns(), &[]),
                part(7, "slept {} for unknown reasons", "asleep, unknown", one.unknown.ns(), &[]),
            ]
        },
    ));
    all.order_by_key(|part| (Reverse(part.is_lost), Reverse(part.ns)));
    all
}

/// Where the time of a thread went, in parts of a second, those that are at least 1 % of it; `None` if nothing that it
/// lost is, or nothing is known. What it lost is also a share of its deadline, if it has a period.
fn account(account: &TimeAccount, deadline: Option<Deadline>) -> Option<String> {
    let all = account.total().ns() as f64;
    let per_second = |ns: f64| duration(ns / all * 1e9);
    let mut parts = parts(account);
    parts.retain(|part| part.ns as f64 > 0.01 * all);
    let said = |part: &Part<'_>| {
        let ns = part.ns as f64;
        let mut by: Vec<String> =
            deadline.filter(|_| part.is_lost).map(|deadline| deadline.said(ns / all)).into_iter().collect();
        let maybe_ns = part.maybe_throttled_ns as f64;
        by.extend((maybe_ns > 0.01 * all).then(|| format!("up to {} of it throttled", per_second(maybe_ns))));
        let named = part.by.get(..part.by.len().min(NAMED)).unwrap_or_default();
        by.extend(named.iter().map(|one| format!("{} {}", one.name, per_second(one.total.ns() as f64))));
        let others = ns - named.iter().map(|one| one.total.ns() as f64).sum::<f64>();
        by.extend((!named.is_empty() && others > ns * 0.01).then(|| format!("others {}", per_second(others))));
        let by = if by.is_empty() { String::new() } else { format!(" ({})", by.join(", ")) };
        format!("{}{by}", part.said.replace("{}", &per_second(ns)))
    };
    let all: Vec<String> = parts.iter().map(said).collect();
    let (last, rest) = all.split_last().filter(|_| parts.iter().any(|part| part.is_lost))?;
    Some(format!("of each second it {}{}{last}", rest.join(", "), if rest.is_empty() { "" } else { " and " }))
}

/// The deadline of a periodic thread.
#[derive(Debug, Clone, Copy)]
struct Deadline {
    period: Span,
    deadline: Span,
}

impl Deadline {
    fn of(thread: &WatchedSummary) -> Option<Deadline> {
        let period = thread.period?.period.span();
        Some(Deadline { period, deadline: thread.deadline.unwrap_or(period) })
    }

    /// A share of the time as one of the deadline, which is so much of each period.
    fn said(self, share: f64) -> String {
        let Deadline { period, deadline } = self;
        let percent = share * 100.0 * period.ns() as f64 / deadline.ns().max(1) as f64;
        format!("{percent:.0} % of its {}", if period == deadline { "period" } else { "deadline" })
    }
}

fn plural(what: &str) -> String {
    match what.split_once(' ') {
        Some(("change", rest)) => format!("changes {rest}"),
        _ => format!("{what}s"),
    }
}

/// What released the activations of a thread.
fn released(thread: &WatchedSummary) -> String {
    let Releases { timer, thread: by_thread, interrupt, immediate } = thread.releases;
    let wakers: Vec<&str> = thread.wakers.iter().take(NAMED).map(|waker| waker.name.as_str()).collect();
    let by_thread_name = if wakers.is_empty() { "other threads".to_owned() } else { wakers.join(", ") };
    let by_packets = thread.packets.as_ref().map_or(0, |packets| packets.n);
    let devices: Vec<&str> = thread.packets.iter().flat_map(|packets| &packets.devices).map(|one| &*one.name).collect();
    let kinds = [
        (timer, "released by its timer".to_owned()),
        (by_packets, format!("released by packets of {}", devices.join(", "))),
        (by_thread, format!("woken by {by_thread_name}")),
        (interrupt.saturating_sub(by_packets), "woken by an interrupt".to_owned()),
        (immediate, "without sleeping, as data was already there".to_owned()),
    ];
    let n_kinds = kinds.iter().filter(|(n, _)| *n > 0).count();
    let text =
        |(n, how): &(u64, String)| if n_kinds > 1 { format!("{how} ({})", things(*n, "time")) } else { how.clone() };
    kinds.iter().filter(|(n, _)| *n > 0).map(text).collect::<Vec<_>>().join(", ")
}

/// The stages of the activations that packets released.
fn by_packets(packets: &PacketSummary) -> Vec<String> {
    let us = |ns: Option<i64>| ns.map_or_else(dash, |ns| duration(ns as f64));
    let known = packets.stages.iter().filter(|stage| stage.n > 0);
    let stage = |PacketStage { stage, n, length, .. }: &PacketStage| {
        let of = if *n == packets.n { String::new() } else { format!(", {}", things(*n, "time")) };
        format!("{stage} {} (p99 {}{of})", us(length.p50_ns), us(length.p99_ns))
    };
    let carriers: Vec<&str> = packets.carriers.iter().take(NAMED).map(|one| one.name.as_str()).collect();
    let mut all = Vec::new();
    if packets.n > 0 {
        let stages: Vec<String> = known.map(stage).collect();
        all.push(format!("packets delivered by {}: {}", carriers.join(", "), stages.join(", ")));
    }
    if packets.unknown > 0 {
        all.push(format!("woken {} by a softirq while packets were not traced", things(packets.unknown, "time")));
    }
    all
}

/// The columns of these stages.
fn packet_fields<'a>() -> [Field<&'a PacketStage>; 6] {
    [
        (Column::text("stage"), |stage| stage.stage.clone()),
        (Column::figure("activations"), |stage| count(stage.n)),
        (Column::figure("p50"), |stage| latency_or_dash(stage.length.p50_ns)),
        (Column::figure("p99"), |stage| latency_or_dash(stage.length.p99_ns)),
        (Column::figure("max"), |stage| latency_or_dash(stage.length.max_ns)),
        (Column::figure("share"), |stage| share(stage.share)),
    ]
}

/// The same as a table, of which the page has one for each thread.
pub(crate) fn packet_stages(packets: &PacketSummary) -> Table {
    let known: Vec<_> = packets.stages.iter().filter(|stage| stage.n > 0).collect();
    Table::of(&packet_fields(), &known)
}

/// `fsync 12 times, 3.1 ms at most; read(5) pipe ...`.
fn named(times: &[NamedTime]) -> String {
    let one = |time: &NamedTime| {
        format!("{} ({}, {} at most)", time.name, things(time.n, "time"), duration(time.longest.ns() as f64))
    };
    let mut all: Vec<String> = times.iter().take(NAMED).map(one).collect();
    if times.len() > NAMED {
        all.push(format!("{} more", times.len() - NAMED));
    }
    all.join(", ")
}

/// A stage of a chain, and the name of its cell.
type Stage<'a> = (&'a str, &'a StageSummary);

/// The columns of stages: the first one only where there are several cells.
fn stage_fields<'a>() -> [Field<Stage<'a>>; 7] {
    [
        (Column::text("cell"), |(name, _)| (*name).to_owned()),
        (Column::text("chain"), |(_, stage)| stage.thread.clone()),
        (Column::text("stage"), |(_, stage)| if stage.is_wake_up { "wake-up" } else { "work" }.to_owned()),
        (Column::figure("p50"), |(_, stage)| latency_or_dash(stage.length.p50_ns)),
        (Column::figure("p99"), |(_, stage)| latency_or_dash(stage.length.p99_ns)),
        (Column::figure("max"), |(_, stage)| latency_or_dash(stage.length.max_ns)),
        (Column::figure("share"), |(_, stage)| share(stage.share)),
    ]
}

/// The chains of a run: a row for each stage.
pub(crate) fn chains(summary: &RunSummary) -> Option<Section> {
    let chain = |cell: &CellSummary| cell.watch.as_ref()?.chain.clone().map(|chain| (cell.name.clone(), chain));
    let chains: Vec<_> = summary.cells.iter().filter_map(chain).collect();
    if chains.is_empty() {
        return None;
    }
    let several = summary.cells.len() > 1;
    Some(of_chains(&chains, several, crate::unit(summary)))
}

/// These chains, each with the name of its cell.
pub(crate) fn of_chains(chains: &[(String, ChainSummary)], several: bool, unit: &str) -> Section {
    let stages: Vec<Stage<'_>> =
        chains.iter().flat_map(|(name, chain)| chain.stages.iter().map(move |stage| (name.as_str(), stage))).collect();
    let fields = stage_fields();
    let table = Table::of(&fields[usize::from(!several)..], &stages);
    let sentences = chains.iter().map(|(name, chain)| {
        let prefix = if several { format!("{name}: ") } else { String::new() };
        let names = chain.threads.join(" > ");
        let other = match chain.other {
            0 => String::new(),
            other => format!("; {} of the last thread had another cause", things(other, "activation")),
        };
        if chain.n == 0 {
            return format!("{prefix}{names}: the threads never woke each other in this order{other}.");
        }
        let ends = |spread: &WatchSpread| {
            let text = |ns: Option<i64>| ns.map_or_else(dash, |ns| duration(ns as f64));
            format!("p50 {}, p99 {}, max {}", text(spread.p50_ns), text(spread.p99_ns), text(spread.max_ns))
        };
        format!(
            "{prefix}{names}: {}, end to end {}; age of the data when the last thread runs: {}{other}.",
            things(chain.n, "activation"),
            ends(&chain.latency),
            ends(&chain.age)
        )
    });
    Section {
        title: "Chain",
        table: Some(table),
        sentences: sentences.collect(),
        notes: vec![format!("In {unit}; work: until the thread wakes the next one, or ends.")],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use punctual_model::{CountedName, InterruptTime, SleepTime};

    #[test]
    fn stages_of_packets_are_told_with_the_number_of_those_that_have_them() {
        let stage = |stage: &str, n, us: i64| PacketStage {
            stage: stage.to_owned(),
            n,
            length: WatchSpread { p50_ns: Some(us * 1_000), p99_ns: Some(us * 5_000), max_ns: None },
            share: None,
        };
        let carrier = CountedName { name: "interrupt 38 eth0-rx-0".to_owned(), n: 9 };
        let mut packets = PacketSummary {
            n: 9,
            devices: Vec::new(),
            carriers: vec![carrier],
            stages: vec![stage("interrupt to softirq", 7, 3), stage("queue to softirq", 0, 0), stage("x", 9, 2)],
            arrival_to_running: WatchSpread::default(),
            unknown: 0,
        };
        let told = "packets delivered by interrupt 38 eth0-rx-0: interrupt to softirq 3 us (p99 15 us, 7 times), x 2 us (p99 \
                    10 us)";
        assert_eq!(by_packets(&packets), [told]);
        (packets.n, packets.unknown) = (0, 1);
        assert_eq!(by_packets(&packets), ["woken 1 time by a softirq while packets were not traced"]);
    }

    #[test]
    fn an_account_is_in_parts_of_a_second() {
        let named = |name: &str, ms: u64| NamedTime {
            name: name.to_owned(),
            n: 1,
            total: Span(ms * 1_000_000),
            longest: Span(ms * 1_000_000),
        };
        let seconds = |s: u64| Span(s * 1_000_000_000);
        let mut one = TimeAccount {
            running: seconds(1),
            waiting_for_cpu: seconds(3),
            asleep: seconds(6),
            ..TimeAccount::default()
        };
        let said = |one: &TimeAccount| account(one, None).unwrap();
        assert_eq!(said(&one), "of each second it waited 300 ms for a CPU, slept 600 ms and ran 100 ms");
        one.waited_for = vec![named("vr-server (nice 0)", 1_400), named("ik-loop (priority 50)", 1_150)];
        one.interrupts = Some(InterruptTime { total: Span(120_000_000), by: vec![named("softirq NET_RX", 120)] });
        let sleep = SleepTime {
            locks: seconds(1),
            locks_of: vec![named("logger", 1_000)],
            on_purpose: Span(4_910_000_000),
            others: Span(90_000_000),
            ..SleepTime::default()
        };
        one.asleep_for = Some(sleep);
        let rest = "handled interrupts for 12 ms (softirq NET_RX 12 ms), slept 491 ms on purpose and ran 88 ms";
        let waited = "300 ms for a CPU (vr-server (nice 0) 140 ms, ik-loop (priority 50) 115 ms, others 45 ms)";
        assert_eq!(
            said(&one),
            format!("of each second it waited {waited}, waited 100 ms for locks (logger 100 ms), {rest}")
        );
        assert_eq!(parts(&one).iter().map(|part| part.ns).sum::<u64>(), one.total().ns());
        let [period, deadline] = [2_000_000, 500_000].map(Span);
        let text = account(&one, Some(Deadline { period, deadline })).unwrap();
        assert!(text.contains("for locks (40 % of its deadline, logger 100 ms), "), "{text}");
        one.throttled = Some(ThrottledTime { at_least: Span(400_000_000), at_most: Span(1_200_000_000) });
        one.waited_for.push(named("idle", 400));
        let waited = "260 ms for a CPU (up to 80 ms of it throttled, vr-server (nice 0) 140 ms, ik-loop (priority 50) \
                      115 ms, others 5 ms)";
        let text = account(&one, None).unwrap();
        assert!(text.contains(waited) && text.contains("was throttled for 40 ms"), "{text}");
        assert_eq!(parts(&one).iter().map(|part| part.ns).sum::<u64>(), one.total().ns());
        one.throttled = None;
        (one.waiting_for_cpu, one.interrupts, one.asleep_for) = (Span(0), None, None);
        assert_eq!(
            (account(&one, None), account(&TimeAccount::default(), None)),
            (None, None),
            "nothing lost, or known"
        );
    }
}
