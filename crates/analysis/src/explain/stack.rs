//! What a stack of the kernel says: what an interrupt hit, and where a thread let go of the CPU.

use super::Symbols;
use super::event::{CpuEvents, Trace, What};

/// What the interrupt hit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Hit {
    /// A program in user mode, where interrupts are on.
    User,
    /// The kernel, in a function that turns interrupts on again; the functions, innermost first.
    TurnsOn(String),
    /// The kernel, in code that only moves or checks bytes: interrupts were on there.
    Plain(String),
    /// The kernel, in another function, which may have turned interrupts on itself (`sti` is inlined).
    Kernel(String),
}

/// Where the entry code of an interrupt begins (arch/*/entry). What lies below was interrupted.
const ENTRIES: [&str; 6] =
    ["asm_sysvec_", "asm_common_interrupt", "el1h_64_irq", "el0t_64_irq", "handle_exception", "ret_from_exception"];
/// Functions that turn interrupts on: the first instruction after it is where a pending interrupt lands.
const TURN_ON: [&str; 22] = [
    "_raw_spin_unlock_irq",
    "_raw_read_unlock_irq",
    "_raw_write_unlock_irq",
    "local_irq",
    "irq_restore",
    "irq_enable",
    "__local_bh_enable_ip",
    "finish_task_switch",
    "raw_spin_rq_unlock",
    "__do_softirq",
    "handle_softirqs",
    "do_idle",
    "default_idle",
    "acpi_idle",
    "exit_to_user",
    "syscall_exit",
    "pv_native",
    "irqentry",
    "kmem_cache",
    "slab",
    "put_cpu_partial",
    "mod_memcg",
];
/// Functions that turn nothing on: written in assembly, or pure arithmetic.
const PLAIN: [&str; 14] = [
    "clear_page", "copy_page", "copy_mc", "copy_user", "__copy_user", "rep_movs", "rep_stos", "__clear_user", "memcpy",
    "memset", "memmove", "memcmp", "csum_partial", "crc32",
];
/// Functions shown of a stack.
const SHOWN: usize = 3;

/// The stack that was recorded with an event of `cpu` at `at_ns`.
fn stack_at(trace: &Trace, cpu: &CpuEvents, at_ns: u64, symbols: Symbols<'_>) -> Option<Vec<String>> {
    // It comes right behind the event that triggers it.
    let events = cpu.events.get(cpu.from(at_ns)..)?;
    let index = events.iter().skip(1).take(2).find_map(|event| match event.what {
        What::Stack(index) => Some(index),
        _ => None,
    })?;
    let stack = trace.stacks.get(usize::try_from(index).ok()?)?;
    Some(stack.iter().map(|address| symbols(*address).unwrap_or_else(|| "?".to_owned())).collect())
}

/// What the interrupt hit in which a thread was woken at `at_ns`.
pub(super) fn interrupted(trace: &Trace, cpu: &CpuEvents, at_ns: u64, symbols: Symbols<'_>) -> Option<Hit> {
    let stack = stack_at(trace, cpu, at_ns, symbols)?;
    let is_entry = |name: &String| ENTRIES.iter().any(|entry| name.starts_with(entry));
    let entry = stack.iter().rposition(is_entry)?;
    let below = stack.get(entry + 1..).unwrap_or_default();
    let Some(first) = below.first() else { return Some(Hit::User) };
    let words = path(below);
    Some(match () {
        () if TURN_ON.iter().any(|name| first.contains(name)) => Hit::TurnsOn(words),
        () if PLAIN.iter().any(|name| first.contains(name)) => Hit::Plain(words),
        () => Hit::Kernel(words),
    })
}

/// Where the thread before let go of the CPU when another was switched in at `at_ns`.
pub(super) fn let_go(trace: &Trace, cpu: &CpuEvents, at_ns: u64, symbols: Symbols<'_>) -> Option<String> {
    let stack = stack_at(trace, cpu, at_ns, symbols)?;
    let is_scheduler = |name: &&String| name.contains("schedule") || name.contains("trace") || name.as_str() == "?";
    let rest: Vec<_> = stack.iter().skip_while(is_scheduler).cloned().collect();
    (!rest.is_empty()).then(|| path(&rest))
}

/// The innermost functions, callers behind `<`.
fn path(stack: &[String]) -> String {
    stack.iter().take(SHOWN).map(String::as_str).collect::<Vec<_>>().join(" < ")
}
