//! Calls and interrupts in a log of instructions, and what each instruction delays.

use super::Symbols;
use punctual_model::DelayKind;

/// An instruction that changes the callers, or reads the clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Instruction {
    Call,
    Return,
    InterruptReturn,
    ReadsClock,
    DisablesInterrupts,
}

impl Instruction {
    /// Reads a disassembled line after its address.
    pub(super) fn of(line: &str) -> Option<Instruction> {
        let mnemonic =
            line.split_whitespace().find(|word| word.len() != 2 || !word.bytes().all(|b| b.is_ascii_hexdigit()));
        match mnemonic? {
            "call" | "callq" | "lcall" | "lcallq" => Some(Instruction::Call),
            "ret" | "retq" => Some(Instruction::Return),
            "iretq" | "iret" | "sysretq" | "sysret" => Some(Instruction::InterruptReturn),
            "rdtsc" | "rdtscp" => Some(Instruction::ReadsClock),
            "cli" => Some(Instruction::DisablesInterrupts),
            _ => None,
        }
    }
}

/// Functions entered and not left.
#[derive(Debug, Default)]
pub(super) struct Calls {
    stack: Vec<Option<usize>>,
    before: Option<Instruction>,
    softirqs: usize,
    interrupts: usize,
}

/// Functions that call another one by a return (arch/x86/lib/retpoline.S).
const INDIRECT: &str = "__x86_indirect_thunk";

/// Entries of interrupts (arch/x86/entry/entry_64.S).
pub(super) fn is_entry(name: &str) -> bool {
    name.starts_with("asm_sysvec_") || name == "asm_common_interrupt"
}

/// Functions that carry out softirqs (kernel/softirq.c).
fn is_softirq(name: &str) -> bool {
    matches!(name, "__do_softirq" | "handle_softirqs")
}

impl Calls {
    /// Takes the next instruction, in this function. Whether another stretch begins.
    pub(super) fn step(&mut self, function: Option<usize>, symbols: &Symbols, kind: Option<Instruction>) -> bool {
        let before = std::mem::replace(&mut self.before, kind);
        let is_same = self.stack.last() == Some(&function);
        let name = |function: &Option<usize>| symbols.name(*function);
        match before {
            // Functions of programs have no names.
            _ if is_same && function.is_none() => return false,
            Some(Instruction::Call) => self.stack.push(function),
            _ if is_same => return false,
            Some(Instruction::Return | Instruction::InterruptReturn) => {
                let place = self.stack.iter().rposition(|caller| *caller == function);
                if let Some(place) = place {
                    self.stack.truncate(place + 1);
                } else if is_entry(symbols.name(function)) {
                    self.stack.push(function);
                } else if self.stack.last().is_some_and(|top| name(top).starts_with(INDIRECT)) {
                    // It returns to what is called.
                    while self.stack.last().is_some_and(|top| name(top).starts_with(INDIRECT)) {
                        self.stack.pop();
                    }
                    self.stack.push(function);
                } else {
                    // An unknown caller: of a program, or of another thread after a switch.
                    self.stack = vec![function];
                }
            }
            _ if is_entry(symbols.name(function)) => self.stack.push(function),
            // A jump to another function ends the present one.
            _ => {
                self.stack.pop();
                self.stack.push(function);
            }
        }
        let count = |is: fn(&str) -> bool| self.stack.iter().filter(|function| is(symbols.name(**function))).count();
        (self.softirqs, self.interrupts) = (count(is_softirq), count(is_entry));
        true
    }

    /// The functions entered and not left, outermost first.
    pub(super) fn stack(&self) -> &[Option<usize>] {
        &self.stack
    }

    pub(super) fn depth(&self) -> usize {
        self.stack.len().saturating_sub(1)
    }

    /// What the present instruction delays a wake-up by.
    pub(super) fn kind(&self) -> DelayKind {
        match () {
            () if self.softirqs > 0 => DelayKind::Softirq,
            () if self.interrupts > 0 => DelayKind::Interrupt,
            () => DelayKind::PreemptionOff,
        }
    }
}
