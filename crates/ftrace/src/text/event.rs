//! Events in ftrace's text, as the kernel prints them, and as trace-cmd does where that differs.

use super::line::Line;
use crate::decode::{BEGIN, END};
use punctual_analysis::explain::{Context, Trace, What};
use punctual_analysis::watch::WAKING_TIMERS;
use std::str::FromStr;

/// Most functions, and most interrupt vectors.
const MOST_FUNCTIONS: usize = 1 << 16;
const MOST_VECTORS: usize = 256;
/// Letters of states with their bits. Kernels differ in `X`, `x`, `P` and `W`: never states of a runnable thread.
const STATES: [(char, u32); 11] = [
    ('S', 0x01),
    ('D', 0x02),
    ('T', 0x04),
    ('t', 0x08),
    ('X', 0x10),
    ('Z', 0x20),
    ('P', 0x40),
    ('x', 0x40),
    ('I', 0x80),
    ('W', 0x80),
    // Preempted.
    ('+', 0x100),
];

/// What is known from all lines so far.
#[derive(Debug, Default)]
pub(super) struct Known {
    /// Names of interrupt vectors.
    pub(super) vectors: Vec<String>,
    /// Names of functions. Their addresses are not shown; the index stands for it.
    functions: Vec<String>,
    /// Whether there are wakings, so that wakeups, which follow them, say nothing.
    has_wakings: bool,
}

impl Known {
    /// The name of a function by what [`Known::address`] returned.
    pub(super) fn function(&self, address: u64) -> Option<String> {
        self.functions.get(usize::try_from(address).ok()?.checked_sub(1)?).cloned()
    }

    /// A number for the name of a function, like `hrtimer_wakeup/0x0` or `tick_nohz_handler+0x0/0x120`.
    fn address(&mut self, name: &str) -> Option<u64> {
        index(&mut self.functions, bare(name), MOST_FUNCTIONS).map(|index| index as u64 + 1)
    }

    /// The event of a line; `None` of other kinds. Names of threads and interrupts are added to `trace`.
    pub(super) fn what(&mut self, line: &Line<'_>, trace: &mut Trace) -> Option<What> {
        let text = line.fields;
        self.has_wakings |= line.event == "sched_waking";
        Some(match line.event {
            "sched_switch" => switch(text, trace)?,
            "sched_wakeup" if self.has_wakings => return None,
            "sched_waking" | "sched_wakeup" => match text.rsplit_once(" pid=") {
                Some((name, rest)) => {
                    let pid = rest.split(' ').next()?.parse().ok()?;
                    note(trace, pid, name.strip_prefix("comm=")?);
                    What::Waking { pid }
                }
                // `name:17 [120] CPU:000`
                None => {
                    let (name, pid) = text.rsplit_once(" [")?.0.rsplit_once(':')?;
                    let pid = pid.parse().ok()?;
                    note(trace, pid, name);
                    What::Waking { pid }
                }
            },
            "sched_migrate_task" => What::Migrate { pid: number(text, "pid=")?, cpu: number(text, "dest_cpu=")? },
            "sched_pi_setprio" => What::Inherit { pid: number(text, "pid=")?, priority: number(text, "newprio=")? },
            "sched_stat_runtime" => What::Ran { pid: number(text, "pid=")?, ran_ns: number(text, "runtime=")? },
            "sched_process_exit" => What::Exit,
            "hrtimer_start" => {
                if !WAKING_TIMERS.contains(&bare(value(text, "function=")?)) {
                    return None;
                }
                let (expires_ns, soft_ns) = (number(text, "expires=")?, number(text, "softexpires=")?);
                What::TimerStart { timer: hex(value(text, "hrtimer=")?)?, expires_ns, soft_ns }
            }
            "hrtimer_expire_entry" => {
                let function = value(text, "function=").and_then(|name| self.address(name));
                trace.timer_functions.extend(function);
                What::TimerExpire { timer: hex(value(text, "hrtimer=")?)?, function }
            }
            "timer_expire_entry" => {
                let function = self.address(value(text, "function=")?)?;
                trace.timer_functions.insert(function);
                What::WheelExpire { function }
            }
            "workqueue_execute_start" => What::Work { function: self.address(text.rsplit_once("function ")?.1)? },
            "irq_handler_entry" => {
                let number = number(text, "irq=")?;
                let name = text.split_once("name=").map_or("", |(_, name)| name);
                trace.interrupts.entry(number).or_insert_with(|| name.to_owned());
                What::Enter(Context::Interrupt(number))
            }
            "irq_handler_exit" => What::Leave(Context::Interrupt(number(text, "irq=")?)),
            "softirq_entry" => What::Enter(Context::Softirq(number(text, "vec=")?)),
            "softirq_exit" => What::Leave(Context::Softirq(number(text, "vec=")?)),
            "nmi_handler" => {
                let length = text.split_once("delta_ns:")?.1.trim_start();
                What::Nmi { length_ns: length.split(' ').next()?.parse().ok()? }
            }
            // PWR_EVENT_EXIT (include/trace/events/power.h), all ones, when the CPU leaves the idle state.
            "cpu_idle" => What::Idle { state: number(text, "state=").filter(|state| *state != u32::MAX) },
            "page_fault_user" => What::PageFault,
            "sys_enter" => {
                let (number, arguments) = text.strip_prefix("NR ")?.split_once(" (")?;
                let mut arguments = arguments.trim_end_matches(')').split(", ").map(hex);
                let mut argument = || arguments.next().flatten();
                What::SysEnter { number: number.parse().ok()?, arguments: [argument()?, argument()?, argument()?] }
            }
            "sys_exit" => {
                let (number, result) = text.strip_prefix("NR ")?.split_once(" = ")?;
                What::SysExit { number: number.parse().ok()?, result: result.parse().ok()? }
            }
            "tracing_mark_write" => What::Pass(trace.marks.of_text(text)?),
            "print" => What::Pass(trace.marks.of_text(text.split_once(": ")?.1)?),
            // Interrupts of the processor itself.
            name if text.starts_with("vector=") => {
                let (name, begins) = match name.strip_suffix(BEGIN) {
                    Some(name) => (name, true),
                    None => (name.strip_suffix(END)?, false),
                };
                let context = Context::Vector(u8::try_from(index(&mut self.vectors, name, MOST_VECTORS)?).ok()?);
                if begins { What::Enter(context) } else { What::Leave(context) }
            }
            _ => return None,
        })
    }
}

/// `prev_comm=a prev_pid=1 prev_prio=120 prev_state=S ==> next_comm=b next_pid=2 next_prio=19`, without arrow and with
/// the number of the state (`trace-cmd report -R`), or `a:1 [120] S ==> b:2 [19]`. Names may contain any of it.
fn switch(text: &str, trace: &mut Trace) -> Option<What> {
    let raw = text.match_indices(" next_comm=").map(|(at, _)| (at, " "));
    text.match_indices(" ==> ").chain(raw).find_map(|(at, arrow)| {
        let (before, after) = (text.get(..at)?, text.get(at + arrow.len()..)?);
        let (thread, states) = match before.rsplit_once(" prev_state=") {
            Some((thread, states)) => (thread, states),
            None => before.rsplit_once(' ')?,
        };
        let known = |letter: char| STATES.iter().find(|(known, _)| *known == letter).map_or(0, |(_, bit)| *bit);
        let is_number = !states.is_empty() && states.bytes().all(|digit| digit.is_ascii_digit());
        let is_letter = |letter: char| letter == '|' || letter.is_ascii_alphabetic() || letter == '+';
        let is_state = is_number || states.chars().all(is_letter);
        let (prev_name, prev, prev_priority) = thread_of(thread, "prev_").filter(|_| is_state)?;
        let (next_name, next, next_priority) = thread_of(after, "next_")?;
        note(trace, prev, prev_name);
        note(trace, next, next_name);
        let bits = || states.chars().map(known).fold(0, |all, bit| all | bit);
        let prev_state = if is_number { states.parse().ok()? } else { bits() };
        Some(What::Switch { prev, prev_priority, prev_state, next, next_priority })
    })
}

/// Name, ID and priority of a thread: `next_comm=b next_pid=2 next_prio=19` or `b:2 [19]`.
fn thread_of<'a>(text: &'a str, prefix: &str) -> Option<(&'a str, i32, i32)> {
    let named = text.strip_prefix(prefix).and_then(|text| text.strip_prefix("comm="));
    let (name, pid, priority) = match named {
        Some(text) => {
            let (text, priority) = text.rsplit_once("prio=")?;
            let (name, pid) = text.strip_suffix(prefix)?.trim_end().rsplit_once("pid=")?;
            (name.strip_suffix(prefix)?.strip_suffix(' ')?, pid, priority)
        }
        None => {
            let (text, priority) = text.strip_suffix(']')?.rsplit_once(" [")?;
            let (name, pid) = text.rsplit_once(':')?;
            (name, pid, priority)
        }
    };
    Some((name, pid.parse().ok()?, priority.parse().ok()?))
}

fn note(trace: &mut Trace, pid: i32, name: &str) {
    // Thread 0 is the idle thread of every CPU.
    if pid != 0 && name != "<...>" && trace.names.get(&pid).is_none_or(|known| known != name) {
        trace.names.insert(pid, name.to_owned());
    }
}

/// The index of a name, which is added where it is new.
fn index(names: &mut Vec<String>, name: &str, most: usize) -> Option<usize> {
    let known = names.iter().position(|known| known == name);
    known.or_else(|| {
        (names.len() < most).then(|| names.push(name.to_owned()))?;
        Some(names.len() - 1)
    })
}

/// The name of a function without what trace-cmd or the kernel adds.
fn bare(function: &str) -> &str {
    function.split(['+', '/', ' ']).next().unwrap_or(function)
}

fn hex(text: &str) -> Option<u64> {
    u64::from_str_radix(text.strip_prefix("0x").unwrap_or(text), 16).ok()
}

/// The last word that begins with `key`, without it.
fn value<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    text.rsplit(' ').find_map(|word| word.strip_prefix(key))
}

/// The number after `key`.
pub(super) fn number<T: FromStr>(text: &str, key: &str) -> Option<T> {
    value(text, key)?.parse().ok()
}
