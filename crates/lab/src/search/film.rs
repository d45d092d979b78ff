//! The execution between a due time and its wake-up, from QEMU's log: one line for each instruction.

use super::super::LabError;
use super::super::qemu::{Limits, Qemu, QemuError};
use super::Symbols;
use super::calls::{Calls, Instruction};
use punctual_model::{DelayKind, Film, Piece};
use std::collections::HashMap;
use std::fs::File;
use std::io::{BufRead, BufReader};
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
/// Function that changes to the stack of another thread (arch/x86/entry/entry_64.S).
const SWITCH: &str = "__switch_to_asm";

/// Turns QEMU's log on in a paused guest. Errors: if this QEMU cannot log.
pub(super) fn log(qemu: &mut Qemu, limits: Limits<'_>) -> Result<(), QemuError> {
    // The first name is that of QEMU 8.1 and later.
    let single = qemu.monitor("one-insn-per-tb on", limits)?;
    let single = if single.is_empty() { single } else { qemu.monitor("singlestep on", limits)? };
    let event = qemu.monitor("trace-event apic_local_deliver on", limits)?;
    let log = qemu.monitor("log exec,in_asm,nochain", limits)?;
    match [single, event, log].into_iter().find(|said| !said.is_empty()) {
        Some(said) => Err(QemuError::Refused(format!("this QEMU cannot log execution: {said}"))),
        None => Ok(()),
    }
}

/// The log as far as it was read.
#[derive(Default)]
struct Log {
    /// Instructions of note by their addresses.
    known: HashMap<u64, Instruction>,
    /// Address of each instruction, in order.
    executed: Vec<u64>,
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
            && let (Ok(address), Some(kind)) = (u64::from_str_radix(address, 16), Instruction::of(rest))
        {
            let _ = self.known.insert(address, kind);
        }
    }

    /// Index after the last instruction before `expiry` that disabled interrupts; of another kind, of the first
    /// instruction of the function that was executed.
    fn began(&self, expiry: usize, kind: DelayKind, symbols: &Symbols) -> Option<usize> {
        let before = self.executed.get(..expiry)?;
        let last = symbols.index(*before.last()?);
        let is_before = |address: &u64| match kind {
            DelayKind::InterruptsOff => self.known.get(address) == Some(&Instruction::DisablesInterrupts),
            _ => symbols.index(*address) != last,
        };
        before.iter().rposition(is_before).map(|at| at + 1)
    }

    /// Index of the last instruction of a program that read the clock.
    fn last_reading(&self) -> Option<usize> {
        let is_reading = |address: &u64| {
            *address < super::symbols::KERNEL && self.known.get(address) == Some(&Instruction::ReadsClock)
        };
        self.executed.iter().rposition(is_reading)
    }
}

/// A film, and a guess from what was executed before it.
pub(super) struct Footage {
    pub(super) film: Film,
    /// How much earlier what delays the wake-up probably begins, ns.
    pub(super) began_ns: u64,
}

/// Reads the log of a wake-up with this latency. Errors: if the timer did not expire so many instructions before the
/// reading of the clock.
pub(super) fn read(path: &Path, latency_ns: u64, symbols: &Symbols) -> Result<Footage, LabError> {
    let failed = |reason: String| LabError::file(path, reason);
    let mut log = Log::default();
    for line in BufReader::new(File::open(path).map_err(|err| failed(err.to_string()))?).lines() {
        log.take(&line.map_err(|err| failed(err.to_string()))?);
    }
    let woke = log.last_reading().ok_or_else(|| failed("no reading of the clock in QEMU's log".to_owned()))?;
    let from = usize::try_from(latency_ns).ok().and_then(|latency| woke.checked_sub(latency));
    let before = |from: &usize| log.expiries.iter().any(|at| *at < *from + LATEST_EXPIRY);
    let from = from.filter(before).ok_or_else(|| {
        failed(format!("no expiry of the timer {latency_ns} instructions before the wake-up in QEMU's log"))
    })?;
    // Without an expiry of its own, the due time was while an earlier interrupt of the timer was handled.
    let own = log.expiries.iter().copied().find(|at| (from..from + LATEST_EXPIRY).contains(at));
    let (expiry, is_taken) = (own.unwrap_or(from), own.is_none());
    let film = film(&log, [from, expiry, woke], is_taken, symbols);
    let began_ns = log.began(expiry, film.kind(), symbols).map_or(0, |began| (expiry - began) as u64);
    Ok(Footage { film, began_ns })
}

/// The film of the instructions from a due time to the wake-up.
fn film(log: &Log, [from, expiry, woke]: [usize; 3], mut is_taken: bool, symbols: &Symbols) -> Film {
    let mut film = Film::default();
    let mut calls = Calls::default();
    let (mut begins, mut last) = (None, None);
    let is_switch = |address: &u64| symbols.name(symbols.index(*address)) == SWITCH;
    let first_switch = log.executed.iter().skip(from).position(is_switch).map_or(woke, |at| from + at);
    for (at, address) in log.executed.iter().enumerate().take(woke) {
        let function = symbols.index(*address);
        let is_new = calls.step(function, symbols, log.known.get(address).copied());
        let Some(since) = at.checked_sub(from) else { continue };
        let name = symbols.name(function);
        if begins.is_none() && at >= expiry && !is_helper(name) {
            // An interrupt that is taken at once interrupts the instruction before.
            let interrupted = at.checked_sub(1).and_then(|before| log.executed.get(before));
            let interrupted = interrupted.filter(|_| name == TIMER_INTERRUPT && at == expiry);
            begins = Some(symbols.name(interrupted.map_or(function, |before| symbols.index(*before))).to_owned());
        }
        is_taken |= at >= expiry && name == TIMER_INTERRUPT;
        let kind = match () {
            () if at < expiry => DelayKind::Other,
            () if !is_taken => DelayKind::InterruptsOff,
            () if at >= first_switch => DelayKind::Other,
            () => calls.kind(),
        };
        film.kinds[kind as usize] += 1;
        match film.pieces.last_mut() {
            Some(piece) if !is_new && last == Some(function) => piece.instructions += 1,
            _ => film.pieces.push(Piece {
                function: name.to_owned(),
                from: since as u64,
                instructions: 1,
                depth: calls.depth(),
            }),
        }
        last = Some(function);
    }
    film.begins = begins.unwrap_or_default();
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
        let lines: Vec<_> = (0..).zip(names).map(|(n, name)| format!("{:x} {name}", KERNEL + 16 * n)).collect();
        Symbols::parse(&lines.join("\n"))
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
        let Footage { film, began_ns } = read(&path, 14, &symbols()).unwrap();
        assert_eq!(began_ns, 2, "where the interrupted function was entered");
        let pieces: Vec<_> = film
            .pieces
            .iter()
            .map(|piece| (piece.function.as_str(), piece.from, piece.instructions, piece.depth))
            .collect();
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
        assert_eq!((film.instructions(), film.kind()), (14, DelayKind::Interrupt));
        let Footage { film, .. } = read(&path, 13, &symbols()).unwrap();
        assert_eq!((film.instructions(), film.kinds[0]), (13, 0), "an interrupt of an earlier due time is handled");
        let err = read(&path, 315, &symbols()).err().unwrap().to_string();
        assert!(err.ends_with("no reading of the clock") || err.contains("no expiry of the timer 315"), "{err}");
    }
}
