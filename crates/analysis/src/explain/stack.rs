//! Evaluation of kernel stacks: code that an interrupt hit, and functions in which a thread released the CPU.

use super::Symbols;
use super::event::{CpuEvents, Trace, What};

/// Code that the interrupt hit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Hit {
    /// A program in user mode, where interrupts are on.
    User,
    /// Kernel code in a function that turns interrupts on; the functions, innermost first.
    TurnsOn(String),
    /// Kernel code that only moves or checks bytes, with interrupts on.
    Plain(String),
    /// Other kernel code, which may have turned interrupts on itself (`sti` is inlined).
    Kernel(String),
}

/// Prefixes of the entry code of interrupts (arch/*/entry). The functions below it were interrupted.
const ENTRIES: [&str; 6] =
    ["asm_sysvec_", "asm_common_interrupt", "el1h_64_irq", "el0t_64_irq", "handle_exception", "ret_from_exception"];
/// Functions that turn interrupts on. A pending interrupt arrives at the next instruction. Blanks separate
/// them.
const TURN_ON: &str = "_raw_spin_unlock_irq _raw_read_unlock_irq _raw_write_unlock_irq local_irq irq_restore \
     irq_enable __local_bh_enable_ip finish_task_switch raw_spin_rq_unlock __do_softirq handle_softirqs do_idle \
     default_idle acpi_idle exit_to_user syscall_exit pv_native irqentry kmem_cache slab put_cpu_partial \
     mod_memcg";
/// Functions that do not turn interrupts on: written in assembly, or pure arithmetic.
const PLAIN: [&str; 14] = [
    "clear_page", "copy_page", "copy_mc", "copy_user", "__copy_user", "rep_movs", "rep_stos", "__clear_user", "memcpy",
    "memset", "memmove", "memcmp", "csum_partial", "crc32",
];
/// Number of functions shown of a stack.
const SHOWN: usize = 3;

/// Stack recorded with an event of `cpu` at `at_ns`.
pub(super) fn stack_at(trace: &Trace, cpu: &CpuEvents, at_ns: u64, symbols: Symbols<'_>) -> Option<Vec<String>> {
    // It directly follows the event that triggered it.
    let events = cpu.events.get(cpu.from(at_ns)..)?;
    let index = events.iter().skip(1).take(2).find_map(|event| match event.what {
        What::Stack(index) => Some(index),
        _ => None,
    })?;
    names(trace, index, symbols)
}

/// The functions of a stack, innermost first; `?` for those without a name.
pub(super) fn names(trace: &Trace, index: u32, symbols: Symbols<'_>) -> Option<Vec<String>> {
    let stack = trace.stacks.get(usize::try_from(index).ok()?)?;
    Some(stack.iter().map(|address| symbols(*address).unwrap_or_else(|| "?".to_owned())).collect())
}

/// Whether a function belongs to the scheduler or to the tracing of it, which come first in the stack of a switch.
pub(super) fn is_scheduler(name: &str) -> bool {
    name.contains("schedule") || name.contains("trace") || name == "?"
}

/// Code hit by the interrupt that woke a thread at `at_ns`.
pub(super) fn interrupted(trace: &Trace, cpu: &CpuEvents, at_ns: u64, symbols: Symbols<'_>) -> Option<Hit> {
    let stack = stack_at(trace, cpu, at_ns, symbols)?;
    let is_entry = |name: &String| ENTRIES.iter().any(|entry| name.starts_with(entry));
    let entry = stack.iter().rposition(is_entry)?;
    let below = stack.get(entry + 1..).unwrap_or_default();
    let Some(first) = below.first() else { return Some(Hit::User) };
    let words = path(below);
    Some(match () {
        () if TURN_ON.split(' ').any(|name| first.contains(name)) => Hit::TurnsOn(words),
        () if PLAIN.iter().any(|name| first.contains(name)) => Hit::Plain(words),
        () => Hit::Kernel(words),
    })
}

/// Functions in which the previous thread released the CPU at the switch at `at_ns`.
pub(super) fn let_go(trace: &Trace, cpu: &CpuEvents, at_ns: u64, symbols: Symbols<'_>) -> Option<String> {
    let stack = stack_at(trace, cpu, at_ns, symbols)?;
    let rest: Vec<_> = stack.into_iter().skip_while(|name| is_scheduler(name)).collect();
    (!rest.is_empty()).then(|| path(&rest))
}

/// The innermost functions, each followed by `<` and its caller.
fn path(stack: &[String]) -> String {
    stack.iter().take(SHOWN).map(String::as_str).collect::<Vec<_>>().join(" < ")
}
