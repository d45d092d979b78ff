//! The execution between a due time and its wake-up, from QEMU's log: one line for each instruction.

use super::super::qemu::{Limits, Qemu, QemuError};
use super::Symbols;
use super::calls::{Calls, Instruction};
use punctual_model::{DelayKind, Film, Piece};
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::Path;

/// Longest latency of a film, ns: its log has 100 bytes for each.
pub(super) const LONGEST_NS: u64 = 5_000_000;
/// The timer expires less than so many instructions after the due time: those between the reading of the clock and the
/// programming of the timer, and its steps (16 ns).
const LATEST_EXPIRY: usize = 300;
/// LVT entry of the local APIC's timer, as QEMU's trace event names it (hw/i386/apic_internal.h, `APIC_LVT_TIMER`).
const TIMER_EVENT: &str = "apic_local_deliver vector 0 ";

/// Entry of the timer's interrupt (arch/x86/include/asm/idtentry.h).
const TIMER_INTERRUPT: &str = "asm_sysvec_apic_timer_interrupt";
/// Functions that call the scheduler if another thread shall run (kernel/sched/core.c).
const RESCHEDULES: [&str; 3] = ["__cond_resched", "preempt_schedule_common", "preempt_schedule_irq"];
/// Function that changes to the stack of another thread (arch/x86/entry/entry_64.S).
const SWITCH: &str = "__switch_to_asm";

/// Turns the execution of instructions one by one on or off, and with it what is noted of each. Errors: if this QEMU
/// cannot.
pub(super) fn step_singly(qemu: &mut Qemu, on: bool, limits: Limits<'_>) -> Result<(), QemuError> {
    let (switch, notes) = if on { ("on", "in_asm,nochain") } else { ("off", "none") };
    // Before they are executed one by one: each is noted once, at its first execution.
    let notes = qemu.monitor(&format!("log {notes}"), limits)?;
    // The first name is that of QEMU 8.1 and later.
    let single = qemu.monitor(&format!("one-insn-per-tb {switch}"), limits)?;
    let single = if single.is_empty() { single } else { qemu.monitor(&format!("singlestep {switch}"), limits)? };
    let event = qemu.monitor(&format!("trace-event apic_local_deliver {switch}"), limits)?;
    possible([notes, single, event])
}

/// Turns QEMU's log of a guest with single steps on or off. Errors: if this QEMU cannot log.
pub(super) fn log(qemu: &mut Qemu, on: bool, limits: Limits<'_>) -> Result<(), QemuError> {
    possible([qemu.monitor(if on { "log exec,in_asm,nochain" } else { "log none" }, limits)?])
}

fn possible<const N: usize>(said: [String; N]) -> Result<(), QemuError> {
    let refused = |said| Err(QemuError::Refused(format!("this QEMU cannot log execution: {said}")));
    said.into_iter().find(|said| !said.is_empty()).map_or(Ok(()), refused)
}

/// The log as far as it was read.
#[derive(Default)]
struct Log {
    /// Instructions by their addresses, `None` for those without note.
    known: HashMap<u64, Option<Instruction>>,
    /// Address of each instruction, in order.
    executed: Vec<u64>,
    /// The function of each, once all were read.
    functions: Vec<Option<usize>>,
    /// Number of instructions before each expiry of the timer.
    expiries: Vec<usize>,
}

impl Log {
    fn take(&mut self, line: &str) {
        if let Some(rest) = line.strip_prefix("Trace ") {
            let address = rest.split('/').nth(1).and_then(|text| u64::from_str_radix(text, 16).ok());
            self.executed.extend(address);
        } else if line.starts_with("Stopped execution") {
            // The instruction announced last was not executed.
            self.executed.pop();
        } else if line.contains(TIMER_EVENT) {
            self.expiries.push(self.executed.len());
        } else if let Some((address, rest)) = line.strip_prefix("0x").and_then(|line| line.split_once(':'))
            && let Ok(address) = u64::from_str_radix(address, 16)
        {
            let _ = self.known.insert(address, Instruction::of(rest));
        }
    }

    /// Distances from `expiry` back to where what delays the wake-up may begin, in ascending order: where the
    /// interrupted function was entered, and after the last instruction that disabled interrupts, of a program, of a
    /// function that calls the scheduler if needed, or of an entry of interrupts.
    fn beginnings(&self, expiry: usize, symbols: &Symbols) -> Vec<u64> {
        let before = self.functions.get(..expiry).unwrap_or_default();
        let mut kinds = self.executed.iter().take(expiry).map(|address| self.kind(*address));
        let last = |is_it: &dyn Fn(&str) -> bool| before.iter().rposition(|of| is_it(symbols.name(*of)));
        let ends = [
            before.iter().rposition(|function| Some(function) != before.last()),
            kinds.rposition(|kind| kind == Some(Instruction::DisablesInterrupts)),
            before.iter().rposition(Option::is_none),
            last(&|name| RESCHEDULES.contains(&name)),
            last(&super::calls::is_entry),
        ];
        let mut distances: Vec<u64> = ends.into_iter().flatten().map(|at| (expiry - at - 1) as u64).collect();
        distances.sort_unstable();
        distances.dedup();
        distances
    }

    fn kind(&self, address: u64) -> Option<Instruction> {
        self.known.get(&address).copied().flatten()
    }

    /// Indices of the instructions of programs that read the clock.
    fn readings(&self) -> impl DoubleEndedIterator<Item = usize> {
        let is_reading =
            |address: &u64| *address < super::symbols::KERNEL && self.kind(*address) == Some(Instruction::ReadsClock);
        self.executed.iter().enumerate().filter(move |(_, address)| is_reading(address)).map(|(at, _)| at)
    }

    /// Number of instructions before the expiry of the timer for a due time at `from`.
    fn own_expiry(&self, from: usize) -> Option<usize> {
        self.expiries.iter().copied().find(|at| (from..from + LATEST_EXPIRY).contains(at))
    }

    /// Instruction from which calls before a due time are followed: in each log the same, wherever it begins.
    fn calls_from(&self, from: usize) -> usize {
        self.expiries.iter().rev().filter(|at| **at < from).nth(1).copied().unwrap_or(0)
    }

    /// The instructions at the due time and at the reading of the clock after it. Errors: if there are none.
    fn ends(&self, latency_ns: u64, wake: Wake) -> Result<[usize; 2], String> {
        let due = |woke: usize| usize::try_from(latency_ns).ok().and_then(|latency| woke.checked_sub(latency));
        let missing = || format!("no expiry of the timer {latency_ns} instructions before the wake-up in QEMU's log");
        match wake {
            Wake::Last => {
                let woke = self.readings().next_back().ok_or("no reading of the clock in QEMU's log")?;
                let before = |from: &usize| self.expiries.iter().any(|at| *at < *from + LATEST_EXPIRY);
                due(woke).filter(before).map(|from| [from, woke]).ok_or_else(missing)
            }
            Wake::First => {
                let is_whole = |from: &usize| self.own_expiry(*from).is_some() && self.calls_from(*from) > 0;
                let ends = |woke| due(woke).filter(is_whole).map(|from| [from, woke]);
                self.readings().find_map(ends).ok_or_else(missing)
            }
        }
    }
}

/// The reading of the clock at which a film ends.
#[derive(Debug, Clone, Copy)]
pub(super) enum Wake {
    /// The last one.
    Last,
    /// The first one with this latency after its own expiry of the timer.
    First,
}

/// A film, and guesses from what was executed before it.
pub(super) struct Footage {
    pub(super) film: Film,
    /// How much earlier what delays the wake-up may begin, ns, in ascending order.
    pub(super) beginnings_ns: Vec<u64>,
}

/// Reads the log of a wake-up with this latency. Errors: if the timer did not expire so many instructions before the
/// reading of the clock.
pub(super) fn read(path: &Path, latency_ns: u64, wake: Wake, symbols: &Symbols) -> Result<Footage, String> {
    let failed = |err: io::Error| format!("cannot read QEMU's log: {err}");
    let mut log = Log::default();
    for line in BufReader::new(File::open(path).map_err(failed)?).lines() {
        log.take(&line.map_err(failed)?);
    }
    let mut of_address = HashMap::new();
    let function = |address: &u64| *of_address.entry(*address).or_insert_with(|| symbols.index(*address));
    log.functions = log.executed.iter().map(function).collect();
    let [from, woke] = log.ends(latency_ns, wake)?;
    if log.executed.get(from..woke).into_iter().flatten().any(|address| !log.known.contains_key(address)) {
        return Err("instructions without their names in QEMU's log".to_owned());
    }
    // Without an expiry of its own, the due time was while an earlier interrupt of the timer was handled.
    let own = log.own_expiry(from);
    let (expiry, is_taken) = (own.unwrap_or(from), own.is_none());
    let film = film(&log, [from, expiry, woke], is_taken, symbols);
    let beginnings_ns = log.beginnings(expiry, symbols);
    Ok(Footage { film, beginnings_ns })
}

/// The film of the instructions from a due time to the wake-up.
fn film(log: &Log, [from, expiry, woke]: [usize; 3], mut is_taken: bool, symbols: &Symbols) -> Film {
    let mut film = Film::default();
    let mut calls = Calls::default();
    let mut last = None;
    let first_switch = log.functions.iter().skip(from).position(|of| symbols.name(*of) == SWITCH);
    let all = log.executed.iter().zip(&log.functions).enumerate().take(woke).skip(log.calls_from(from));
    for (at, (address, &function)) in all {
        let is_new = calls.step(function, symbols, log.kind(*address));
        let Some(since) = at.checked_sub(from) else { continue };
        let name = symbols.name(function);
        if film.path.is_empty() && at >= expiry && !is_helper(name) {
            // An interrupt that is taken at once interrupts the function before.
            let is_entered = name == TIMER_INTERRUPT && at == expiry && calls.depth() > 0;
            let path = calls.stack().iter().map(|function| symbols.name(*function).to_owned());
            film.path = path.take(calls.depth() + usize::from(!is_entered)).collect();
            film.begins = film.path.last().cloned().unwrap_or_default();
        }
        is_taken |= at >= expiry && name == TIMER_INTERRUPT;
        let kind = match () {
            () if at < expiry => DelayKind::Other,
            () if !is_taken => DelayKind::InterruptsOff,
            () if first_switch.is_some_and(|switch| since >= switch) => DelayKind::Other,
            () => calls.kind(),
        };
        film.kinds[kind as usize] += 1;
        match film.pieces.last_mut() {
            Some(piece) if !is_new && last == Some(function) => piece.instructions += 1,
            _ => film.pieces.push(Piece {
                function: name.into(),
                from: since as u64,
                instructions: 1,
                depth: calls.depth(),
            }),
        }
        last = Some(function);
    }
    film
}

/// Whether a function only takes or releases a lock for its caller.
fn is_helper(name: &str) -> bool {
    name.starts_with("_raw_")
        || name.starts_with("__raw_")
        || name.contains("spin_lock")
        || name.starts_with("preempt_")
}

#[cfg(test)]
mod tests {
    use super::*;

    const KERNEL: u64 = 0xffff_ffff_8100_0000;

    fn symbols() -> Symbols {
        let names = ["load", "irqs_off m", TIMER_INTERRUPT, "handler", "__do_softirq", "schedule", SWITCH, "wake"];
        let lines: Vec<_> = (0..).zip(names).map(|(n, name)| format!("{:x} t {name}", KERNEL + 16 * n)).collect();
        Symbols::parse(&format!("0 0\n{}", lines.join("\n"))).unwrap()
    }

    /// QEMU's log of instructions, each at an offset in one of the functions above; `None`: in a program.
    fn log(executed: &[(Option<u64>, &str)]) -> String {
        let mut text = String::new();
        for (n, (function, mnemonic)) in executed.iter().enumerate() {
            if *mnemonic == "expiry" {
                text += "apic_local_deliver vector 0 delivery mode 0\n";
                continue;
            }
            let address = function.map_or(0x40_0000, |function| KERNEL + 16 * function) + (n as u64 % 16);
            text += &format!("IN: \n0x{address:016x}:  0f 31                    {mnemonic}\n\n");
            text += &format!("Trace 0: 0x7f0000000100 [0000000000000000/{address:016x}/0040c2b3/ff020201] \n");
            if n == 3 {
                // Not executed, and announced again.
                text += &format!("Stopped execution of TB chain before 0x7f0000000100 [{address:016x}] \n");
                text += &format!("Trace 0: 0x7f0000000100 [0000000000000000/{address:016x}/0040c2b3/ff020201] \n");
            }
        }
        text
    }

    #[test]
    fn a_film_is_what_was_executed_between_expiry_and_reading() {
        let scratch = punctual_host::testing::Scratch::make();
        let executed = [
            (None, "nop"),
            (Some(0), "callq"),
            (Some(1), "cli"),
            (Some(1), "nop"),
            (None, "expiry"),
            (Some(1), "nop"),
            (Some(1), "sti"),
            (Some(2), "callq"),
            (Some(3), "rdtsc"),
            (Some(3), "retq"),
            (Some(2), "callq"),
            (Some(4), "nop"),
            (Some(4), "retq"),
            (Some(2), "iretq"),
            (Some(1), "retq"),
            (Some(0), "callq"),
            (Some(5), "callq"),
            (Some(6), "retq"),
            (Some(7), "sysretq"),
            (None, "rdtscp"),
            (None, "nop"),
        ];
        let path = scratch.file("log", log(&executed));
        let Footage { film, beginnings_ns } = read(&path, 14, Wake::Last, &symbols()).unwrap();
        assert_eq!(beginnings_ns, [1, 2, 3], "interrupts off, where the function was entered, a program");
        let pieces: Vec<_> =
            film.pieces.iter().map(|piece| (&*piece.function, piece.from, piece.instructions, piece.depth)).collect();
        let interrupt = TIMER_INTERRUPT;
        assert_eq!(
            pieces,
            [
                ("irqs_off m", 0, 2, 1),
                (interrupt, 2, 1, 2),
                ("handler", 3, 2, 3),
                (interrupt, 5, 1, 2),
                ("__do_softirq", 6, 2, 3),
                (interrupt, 8, 1, 2),
                ("irqs_off m", 9, 1, 1),
                ("load", 10, 1, 0),
                ("schedule", 11, 1, 1),
                (SWITCH, 12, 1, 2),
                ("wake", 13, 1, 0),
            ]
        );
        assert_eq!((film.kinds, film.begins.as_str()), ([2, 3, 2, 5, 2], "irqs_off m"));
        assert_eq!(film.path, ["load", "irqs_off m"]);
        assert_eq!((film.instructions(), film.kind()), (14, DelayKind::Interrupt));
        let Footage { film, .. } = read(&path, 13, Wake::Last, &symbols()).unwrap();
        assert_eq!((film.instructions(), film.kinds[0]), (13, 0), "an interrupt of an earlier due time is handled");
        let first = |path, latency| read(path, latency, Wake::First, &symbols()).map(|footage| footage.film);
        assert!(first(&path, 14).is_err(), "calls before it may be unknown");
        let executed = [&[(None, "nop"), (None, "expiry"), (None, "expiry")][..], &executed].concat();
        let longer = scratch.file("longer", log(&executed));
        assert_eq!(first(&longer, 14).unwrap().instructions(), 14);
        assert!(first(&longer, 13).is_err(), "its expiry was before its due time");
        let err = read(&path, 315, Wake::Last, &symbols()).err().unwrap();
        assert!(err.ends_with("no reading of the clock") || err.contains("no expiry of the timer 315"), "{err}");
    }
}
