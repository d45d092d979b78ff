//! Decoding of ring buffer records into the events of an analysis.

use super::format::{Field, Format};
use super::pages::{PageError, PageLayout, page_head, read_page};
use punctual_analysis::explain::{Context, CpuEvents, Event, Trace, What};

/// Directory of the processor's own interrupts, each traced by a pair of events, where they exist (x86).
pub const VECTORS: &str = "irq_vectors";
/// Suffixes of their names.
pub const BEGIN: &str = "_entry";
/// As [`BEGIN`].
pub const END: &str = "_exit";

/// Beginning of the directories of probes, and of their names: the number of their mark follows.
const PROBES: &str = "punctual_";
/// As [`PROBES`].
pub const PROBE: &str = "mark";

/// Bytes of a thread's name (`TASK_COMM_LEN`).
const NAME_BYTES: usize = 16;

/// The fields of one kind of event.
#[derive(Debug, Clone)]
enum Kind {
    Switch {
        prev: Field,
        prev_name: Field,
        prev_priority: Field,
        prev_state: Field,
        next: Field,
        next_name: Field,
        next_priority: Field,
    },
    Waking {
        pid: Field,
    },
    Wakeup {
        pid: Field,
    },
    Migrate {
        pid: Field,
        cpu: Field,
    },
    TimerStart {
        timer: Field,
        function: Option<Field>,
        expires: Field,
        soft: Field,
    },
    TimerExpire {
        timer: Field,
        function: Option<Field>,
        now: Option<Field>,
    },
    WheelExpire {
        function: Field,
    },
    Inherit {
        pid: Field,
        priority: Field,
    },
    InterruptEntry {
        number: Field,
        name: Field,
    },
    InterruptExit {
        number: Field,
    },
    SoftirqEntry {
        number: Field,
    },
    SoftirqExit {
        number: Field,
    },
    SoftirqRaise {
        number: Field,
    },
    Packet {
        buffer: Field,
        device: Field,
        is_queued: bool,
    },
    Vector {
        index: u8,
        begins: bool,
    },
    Nmi {
        length: Field,
    },
    Idle {
        state: Field,
    },
    Work {
        function: Field,
    },
    PageFault,
    SysEnter {
        number: Field,
        arguments: Field,
    },
    SysExit {
        number: Field,
        result: Field,
    },
    Ran {
        pid: Field,
        runtime: Field,
    },
    Exit,
    Stack {
        size: Field,
        callers: Field,
    },
    Print {
        text: Option<Field>,
    },
    Probe {
        mark: u16,
    },
}

/// Decoder for the pages of one kernel.
#[derive(Debug, Clone)]
pub struct Decoder {
    pub(super) layout: PageLayout,
    /// Indexed by the ID at the start of each event.
    kinds: Vec<Option<Kind>>,
    vectors: Vec<String>,
    /// Functions of the timers whose starts are events; empty: all.
    timer_functions: Vec<u64>,
    /// Whether wakeups are events, too: what follows a waking, on the CPU of the woken thread.
    takes_wakeups: bool,
}

/// Bytes of the fields that every event begins with (`struct trace_entry`).
const COMMON_BYTES: usize = 8;

/// Counts of the content of pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ReadCounts {
    /// Events, including those that are not decoded.
    pub events: u64,
    /// Damaged pages.
    pub damaged: u64,
    /// Whether the first page is damaged.
    pub begins_damaged: bool,
    /// Whether the last page is damaged: events before the next one are missing.
    pub ends_damaged: bool,
}

impl Decoder {
    /// Creates a decoder for the events with these paths and formats, in pages of this layout.
    pub(super) fn new(layout: PageLayout, formats: &[(String, Format)]) -> Decoder {
        let (kinds, vectors, timer_functions) = Default::default();
        let mut decoder = Decoder { layout, kinds, vectors, timer_functions, takes_wakeups: false };
        for (path, format) in formats {
            let kind = decoder.kind(path, format);
            let id = usize::from(format.id);
            if decoder.kinds.len() <= id {
                decoder.kinds.resize(id + 1, None);
            }
            if let Some(slot) = decoder.kinds.get_mut(id) {
                *slot = kind;
            }
        }
        decoder
    }

    /// Passes over the starts of timers with other functions than these; with none, over no start.
    pub fn only_timers_of(&mut self, functions: Vec<u64>) {
        self.timer_functions = functions;
    }

    /// Takes wakeups for wakings, in traces without these.
    pub(super) fn take_wakeups(&mut self) {
        self.takes_wakeups = true;
    }

    /// Passes over system calls, whose numbers may have other names.
    pub(super) fn without_calls(&mut self) {
        for kind in &mut self.kinds {
            if matches!(kind, Some(Kind::SysEnter { .. } | Kind::SysExit { .. })) {
                *kind = None;
            }
        }
    }

    /// Bytes of a page.
    pub fn page_bytes(&self) -> usize {
        self.layout.page_bytes
    }

    /// Whether page faults are among the events.
    pub fn sees_page_faults(&self) -> bool {
        self.kinds.iter().flatten().any(|kind| matches!(kind, Kind::PageFault))
    }

    /// Whether interrupts and softirqs are among the events.
    pub fn sees_interrupts(&self) -> bool {
        let sees = |is_it: fn(&Kind) -> bool| self.kinds.iter().flatten().any(is_it);
        sees(|kind| matches!(kind, Kind::InterruptEntry { .. }))
            && sees(|kind| matches!(kind, Kind::SoftirqEntry { .. }))
    }

    fn kind(&mut self, path: &str, format: &Format) -> Option<Kind> {
        let field = |name: &str| format.field(name);
        let (system, event) = path.split_once('/')?;
        if system == VECTORS {
            return self.vector(event);
        }
        if system.starts_with(PROBES) {
            let mark = event.strip_prefix(PROBE)?.split('_').next()?.parse().ok()?;
            return Some(Kind::Probe { mark });
        }
        Some(match event {
            "sched_switch" => Kind::Switch {
                prev: field("prev_pid")?,
                prev_name: field("prev_comm")?,
                prev_priority: field("prev_prio")?,
                prev_state: field("prev_state")?,
                next: field("next_pid")?,
                next_name: field("next_comm")?,
                next_priority: field("next_prio")?,
            },
            "sched_waking" => Kind::Waking { pid: field("pid")? },
            "sched_wakeup" => Kind::Wakeup { pid: field("pid")? },
            "sched_migrate_task" => Kind::Migrate { pid: field("pid")?, cpu: field("dest_cpu")? },
            "hrtimer_start" => {
                let (timer, function) = (field("hrtimer")?, field("function"));
                Kind::TimerStart { timer, function, expires: field("expires")?, soft: field("softexpires")? }
            }
            "hrtimer_expire_entry" => {
                Kind::TimerExpire { timer: field("hrtimer")?, function: field("function"), now: field("now") }
            }
            "timer_expire_entry" => Kind::WheelExpire { function: field("function")? },
            "sched_pi_setprio" => Kind::Inherit { pid: field("pid")?, priority: field("newprio")? },
            "irq_handler_entry" => Kind::InterruptEntry { number: field("irq")?, name: field("name")? },
            "irq_handler_exit" => Kind::InterruptExit { number: field("irq")? },
            "softirq_entry" => Kind::SoftirqEntry { number: field("vec")? },
            "softirq_exit" => Kind::SoftirqExit { number: field("vec")? },
            "softirq_raise" => Kind::SoftirqRaise { number: field("vec")? },
            "netif_rx" | "netif_receive_skb" => {
                Kind::Packet { buffer: field("skbaddr")?, device: field("name")?, is_queued: event == "netif_rx" }
            }
            "nmi_handler" => Kind::Nmi { length: field("delta_ns")? },
            "cpu_idle" => Kind::Idle { state: field("state")? },
            "workqueue_execute_start" => Kind::Work { function: field("function")? },
            "page_fault_user" => Kind::PageFault,
            "sys_enter" => Kind::SysEnter { number: field("id")?, arguments: field("args")? },
            "sys_exit" => Kind::SysExit { number: field("id")?, result: field("ret")? },
            "sched_stat_runtime" => Kind::Ran { pid: field("pid")?, runtime: field("runtime")? },
            "sched_process_exit" => Kind::Exit,
            "kernel_stack" => Kind::Stack { size: field("size")?, callers: field("caller")? },
            "print" => Kind::Print { text: field("buf") },
            _ => return None,
        })
    }

    /// The interrupt vector that an event of [`VECTORS`] begins or ends.
    fn vector(&mut self, event: &str) -> Option<Kind> {
        let (name, begins) = match event.strip_suffix(BEGIN) {
            Some(name) => (name, true),
            None => (event.strip_suffix(END)?, false),
        };
        let known = self.vectors.iter().position(|known| known == name);
        let index = known.unwrap_or_else(|| {
            self.vectors.push(name.to_owned());
            self.vectors.len() - 1
        });
        Some(Kind::Vector { index: u8::try_from(index).ok()?, begins })
    }

    /// An empty trace for this many CPUs.
    pub fn begin(&self, n_cpus: usize) -> Trace {
        Trace { cpus: vec![CpuEvents::default(); n_cpus], vectors: self.vectors.clone(), ..Trace::default() }
    }

    /// Adds the pages of one CPU to `trace`, oldest first. A damaged page is counted, and decoding continues with the
    /// next.
    pub fn read(&self, trace: &mut Trace, cpu: usize, pages: &[u8]) -> ReadCounts {
        let mut counted = ReadCounts::default();
        let Some(mut events) = trace.cpus.get_mut(cpu).map(std::mem::take) else { return counted };
        let mut names = Names::default();
        for (index, page) in pages.chunks(self.layout.page_bytes).enumerate() {
            let head = read_page(page, &self.layout, |at_ns, data| {
                counted.events += 1;
                if let Some(event) = self.event(at_ns, data, trace, &mut names) {
                    events.events.push(event);
                }
            });
            match head {
                // Events overwritten before the oldest page leave no gap in the trace.
                Ok(head) if head.lost && index == 0 => events.is_cut = true,
                Ok(head) if head.lost || counted.ends_damaged => events.lost_ns.push(head.time_ns),
                Ok(_) => {}
                Err(PageError::Short(_) | PageError::Record(_)) => {
                    counted.damaged += 1;
                    events.is_cut |= events.events.is_empty();
                    counted.begins_damaged |= index == 0;
                }
            }
            counted.ends_damaged = head.is_err();
        }
        if counted.ends_damaged {
            events.lost_ns.extend(events.events.last().map(|event| event.at_ns));
        }
        // Events are in time order, unless a page is damaged.
        Event::sort(&mut events.events);
        if let Some(slot) = trace.cpus.get_mut(cpu) {
            *slot = events;
        }
        counted
    }

    /// Passes the starts and expiries of timers in these pages to `take`, and ignores all else. Returns the number of
    /// pages before which events were overwritten.
    pub fn timers(&self, pages: &[u8], mut take: impl FnMut(Event)) -> u64 {
        let mut overwritten = 0;
        let mut nothing = (Trace::default(), Names::default());
        let is_timer = |data: &[u8]| {
            let id = data.first_chunk::<2>().map(|id| usize::from(u16::from_ne_bytes(*id)));
            let kind = id.and_then(|id| self.kinds.get(id)?.as_ref());
            matches!(kind, Some(Kind::TimerStart { .. } | Kind::TimerExpire { .. }))
        };
        for page in pages.chunks(self.layout.page_bytes) {
            // Damaged pages are counted where the whole trace is read.
            let head = read_page(page, &self.layout, |at_ns, data| {
                let event = is_timer(data).then(|| self.event(at_ns, data, &mut nothing.0, &mut nothing.1));
                event.flatten().into_iter().for_each(&mut take);
            });
            overwritten += u64::from(head.is_ok_and(|head| head.lost));
        }
        overwritten
    }

    /// Passes each expiry of a timer in these pages to `take`: its time by the clock of the trace, and the one shortly
    /// before by the clock of the timer, ns.
    pub(super) fn expiries(&self, pages: &[u8], mut take: impl FnMut(u64, u64)) {
        for page in pages.chunks(self.layout.page_bytes) {
            // Damaged pages are counted where the whole trace is read.
            let _ = read_page(page, &self.layout, |at_ns, data| {
                self.expiry(data).into_iter().for_each(|now_ns| take(at_ns, now_ns));
            });
        }
    }

    /// The time by the clock of the timer, ns, if this data is that of an expiry.
    pub(super) fn expiry(&self, data: &[u8]) -> Option<u64> {
        let id = data.first_chunk::<2>().map(|id| usize::from(u16::from_ne_bytes(*id)))?;
        match self.kinds.get(id)?.as_ref()? {
            Kind::TimerExpire { now: Some(now), .. } => long(data, *now),
            _ => None,
        }
    }

    /// Number of these pages before which events were lost, and of these events as far as the kernel has counted them.
    pub fn lost(&self, pages: &[u8]) -> (u64, u64) {
        let heads = pages.chunks(self.layout.page_bytes).filter_map(|page| Some(page_head(page, &self.layout).ok()?.0));
        heads.filter(|head| head.lost).fold((0, 0), |(n, events), head| (n + 1, events + head.lost_count.unwrap_or(0)))
    }

    /// The event in this data, and what it says besides; `None` of a kind that is not decoded.
    #[inline]
    pub(super) fn event(&self, at_ns: u64, data: &[u8], trace: &mut Trace, names: &mut Names) -> Option<Event> {
        let (head, _) = data.split_first_chunk::<COMMON_BYTES>()?;
        let [id_0, id_1, flags, _, pid @ ..] = *head;
        let kind = self.kinds.get(usize::from(u16::from_ne_bytes([id_0, id_1])))?.as_ref()?;
        let what = self.what(kind, (at_ns, data), trace, names)?;
        // Those of probes are not set: they are where the kernel counts no preemption.
        let flags = if matches!(kind, Kind::Probe { .. }) { 0 } else { flags };
        Some(Event { at_ns, pid: i32::from_ne_bytes(pid), flags, what })
    }

    #[inline]
    fn what(&self, kind: &Kind, at: (u64, &[u8]), trace: &mut Trace, names: &mut Names) -> Option<What> {
        let (at_ns, data) = at;
        Some(match kind {
            Kind::Switch { prev, prev_name, prev_priority, prev_state, next, next_name, next_priority } => {
                let (prev, next) = (int(data, *prev)?, int(data, *next)?);
                names.note(trace, prev, at_ns, data, *prev_name);
                names.note(trace, next, at_ns, data, *next_name);
                What::Switch {
                    prev,
                    prev_priority: int(data, *prev_priority)?,
                    // A long, of which the low 32 bits count.
                    prev_state: u32::try_from(long(data, *prev_state)? & 0xffff_ffff).ok()?,
                    next,
                    next_priority: int(data, *next_priority)?,
                }
            }
            Kind::Wakeup { .. } if !self.takes_wakeups => return None,
            Kind::Waking { pid } | Kind::Wakeup { pid } => What::Waking { pid: int(data, *pid)? },
            Kind::Migrate { pid, cpu } => {
                What::Migrate { pid: int(data, *pid)?, cpu: u32::try_from(int(data, *cpu)?).ok()? }
            }
            Kind::TimerStart { function: Some(function), .. }
                if !self.timer_functions.is_empty() && !self.timer_functions.contains(&long(data, *function)?) =>
            {
                return None;
            }
            Kind::TimerStart { timer, expires, soft, .. } => What::TimerStart {
                timer: long(data, *timer)?,
                expires_ns: long(data, *expires)?.cast_signed(),
                soft_ns: long(data, *soft)?.cast_signed(),
            },
            Kind::TimerExpire { timer, function, .. } => {
                let function = function.and_then(|function| long(data, function));
                function.into_iter().for_each(|function| names.note_function(trace, function));
                What::TimerExpire { timer: long(data, *timer)?, function }
            }
            Kind::WheelExpire { function } => {
                let function = long(data, *function)?;
                names.note_function(trace, function);
                What::WheelExpire { function }
            }
            Kind::Inherit { pid, priority } => What::Inherit { pid: int(data, *pid)?, priority: int(data, *priority)? },
            Kind::InterruptEntry { number, name } => {
                let number = int(data, *number)?.cast_unsigned();
                trace.interrupts.entry(number).or_insert_with(|| located(data, *name).unwrap_or_default());
                What::Enter(Context::Interrupt(number))
            }
            Kind::InterruptExit { number } => What::Leave(Context::Interrupt(int(data, *number)?.cast_unsigned())),
            Kind::SoftirqEntry { number } => What::Enter(softirq(data, *number)?),
            Kind::SoftirqExit { number } => What::Leave(softirq(data, *number)?),
            Kind::SoftirqRaise { number } => What::Raise(softirq(data, *number)?),
            Kind::Packet { buffer, device, is_queued } => {
                let device = trace.device(located(data, *device)?)?;
                What::Packet { buffer: long(data, *buffer)?, device, is_queued: *is_queued }
            }
            Kind::Vector { index, begins: true } => What::Enter(Context::Vector(*index)),
            Kind::Vector { index, begins: false } => What::Leave(Context::Vector(*index)),
            Kind::Nmi { length } => What::Nmi { length_ns: long(data, *length)? },
            // PWR_EVENT_EXIT (include/trace/events/power.h), all ones, when the CPU leaves the idle state.
            Kind::Idle { state } => {
                What::Idle { state: Some(int(data, *state)?.cast_unsigned()).filter(|state| *state != u32::MAX) }
            }
            Kind::Work { function } => What::Work { function: long(data, *function)? },
            Kind::PageFault => What::PageFault,
            Kind::SysEnter { number, arguments } => {
                // An array of six words.
                let bytes = arguments.bytes / 6;
                let argument = |index: usize| long(data, Field { at: arguments.at + index * bytes, bytes });
                let arguments = [argument(0)?, argument(1)?, argument(2)?];
                What::SysEnter { number: signed(data, *number)?, arguments }
            }
            Kind::SysExit { number, result } => {
                What::SysExit { number: signed(data, *number)?, result: signed(data, *result)? }
            }
            Kind::Ran { pid, runtime } => What::Ran { pid: int(data, *pid)?, ran_ns: long(data, *runtime)? },
            Kind::Exit => What::Exit,
            Kind::Stack { size, callers } => {
                let size = usize::try_from(int(data, *size)?).ok()?;
                let addresses = data.get(callers.at..)?.chunks_exact(8).take(size);
                let stack = addresses.filter_map(|address| Some(u64::from_ne_bytes(address.try_into().ok()?)));
                let index = u32::try_from(trace.stacks.len()).ok()?;
                trace.stacks.push(stack.collect());
                What::Stack(index)
            }
            Kind::Print { text: written } => {
                let written = written.and_then(|field| data.get(field.at..)).map(text);
                written.and_then(|written| trace.marks.of_text(&written)).map_or(What::Mark, What::Pass)
            }
            Kind::Probe { mark } => What::Pass(trace.marks.of_probe(*mark)?),
        })
    }
}

/// Threads of which the last name is remembered.
const NAME_SLOTS: usize = 1024;

/// Cache of thread names: most events repeat one that is known.
#[derive(Debug)]
pub(super) struct Names {
    last: Vec<(i32, [u8; NAME_BYTES])>,
    /// The last timer function.
    function: u64,
}

impl Default for Names {
    fn default() -> Self {
        Names { last: vec![(-1, [0; NAME_BYTES]); NAME_SLOTS], function: 0 }
    }
}

impl Names {
    /// Records the function of a timer: there are a handful, and most events repeat the last.
    fn note_function(&mut self, trace: &mut Trace, function: u64) {
        if function != self.function {
            self.function = function;
            trace.timer_functions.insert(function);
        }
    }

    fn note(&mut self, trace: &mut Trace, pid: i32, at_ns: u64, data: &[u8], field: Field) {
        let Some(name) = data.get(field.at..).and_then(|rest| rest.first_chunk::<NAME_BYTES>()) else { return };
        let slot = usize::try_from(pid).ok().map(|pid| pid % NAME_SLOTS).and_then(|slot| self.last.get_mut(slot));
        let Some(slot) = slot else { return };
        if *slot != (pid, *name) {
            *slot = (pid, *name);
            // Thread 0 is the idle thread of every CPU.
            if pid != 0 {
                trace.note_name(pid, at_ns, text(name));
            }
        }
    }
}

fn softirq(data: &[u8], field: Field) -> Option<Context> {
    u8::try_from(int(data, field)?).ok().map(Context::Softirq)
}

/// Reads a number of 4 bytes.
#[inline]
fn int(data: &[u8], field: Field) -> Option<i32> {
    Some(i32::from_ne_bytes(*data.get(field.at..)?.first_chunk()?))
}

/// Reads a number of 8 bytes, or of 4 on a 32-bit kernel.
#[inline]
fn long(data: &[u8], field: Field) -> Option<u64> {
    match field.bytes {
        4 => int(data, field).map(|value| u64::from(value.cast_unsigned())),
        _ => Some(u64::from_ne_bytes(*data.get(field.at..)?.first_chunk()?)),
    }
}

/// Reads a signed number of 8 bytes, or of 4 on a 32-bit kernel.
#[inline]
fn signed(data: &[u8], field: Field) -> Option<i64> {
    match field.bytes {
        4 => int(data, field).map(i64::from),
        _ => long(data, field).map(u64::cast_signed),
    }
}

/// Reads a text whose location is in the field: length in the upper half, offset in the lower (`__data_loc`).
fn located(data: &[u8], field: Field) -> Option<String> {
    let place = int(data, field)?.cast_unsigned();
    let (at, length) = (usize::try_from(place & 0xffff).ok()?, usize::try_from(place >> 16).ok()?);
    Some(text(data.get(at..at.checked_add(length)?)?))
}

/// The text up to its terminating zero, or all of it.
pub(super) fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(bytes.get(..end).unwrap_or_default()).into_owned()
}

#[cfg(test)]
mod tests;
