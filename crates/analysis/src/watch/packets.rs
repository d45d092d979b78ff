//! Packets that woke threads: when each arrived, and the context that delivered it.

use crate::events::{Context, CpuEvents, Event, Trace, What, flags};
use punctual_model::interrupt_of_thread;
use std::collections::{BTreeSet, HashMap, VecDeque};

/// The softirq that receives packets (include/linux/interrupt.h).
pub(super) const RECEIVING: Context = Context::Softirq(3);
/// Deliveries of a CPU that are kept: as many as come until a thread's wait is known.
const MOST_DELIVERIES: usize = 1 << 13;
/// Packets in queues that are remembered: some are dropped and never delivered.
const MOST_QUEUED: usize = 1 << 12;
/// Interrupts that are remembered until the softirq that they raise runs.
const MOST_RAISED: usize = 16;
/// CPUs that are kept apart.
const MOST_CPUS: usize = 4096;

/// Context that delivered a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Carrier {
    /// The softirq that followed this interrupt.
    Interrupt(u32),
    /// A thread of the kernel: ksoftirqd, that of an interrupt, or one that polls a device.
    Thread(i32),
    /// The thread that sent it, on its way back from the call.
    Sender(i32),
    /// A softirq that another CPU raised.
    OtherCpu,
    /// Another softirq.
    Softirq,
}

/// A packet that woke a thread. Times are `CLOCK_MONOTONIC`, ns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Packet {
    /// Its device, by index.
    pub(super) device: u16,
    pub(super) carrier: Carrier,
    /// The interrupt of the device that started the poll which found it, if it was the first one of the poll.
    pub(super) interrupt_ns: Option<u64>,
    /// The instant at which it was queued for the softirq, by a device without interrupts.
    queued_ns: Option<u64>,
    /// Start of the softirq that delivered it.
    softirq_ns: Option<u64>,
    /// Its delivery.
    delivered_ns: u64,
}

impl Packet {
    /// The earliest instant at which the kernel shows that it was there.
    pub(super) fn arrived_ns(&self) -> u64 {
        self.interrupt_ns.or(self.queued_ns).unwrap_or(self.delivered_ns)
    }

    /// Start of the softirq, if it is between the arrival and the delivery.
    pub(super) fn softirq_ns(&self) -> Option<u64> {
        let is_known = self.interrupt_ns.is_some() || self.queued_ns.is_some();
        self.softirq_ns.filter(|at| is_known && *at >= self.arrived_ns())
    }
}

/// What woke a thread in a softirq, or in a thread that polls a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Brought {
    /// This packet.
    By(Packet),
    /// Packets were not traced at that time.
    Unknown,
}

/// Cause of a softirq.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Raiser {
    /// Handler of this interrupt, which began at this instant, ns.
    Interrupt(u32, u64),
    /// Another interrupt of the processor: another CPU asks for it.
    OtherCpu,
    Else,
}

/// A handler of an interrupt.
#[derive(Debug, Clone, Copy)]
struct Handler {
    number: u32,
    at_ns: u64,
    has_raised: bool,
}

/// A softirq that receives.
#[derive(Debug)]
struct Run {
    at_ns: u64,
    raisers: Vec<Raiser>,
    /// Devices of the packets since the latest interrupt.
    devices: BTreeSet<u16>,
}

/// A packet that was delivered, up to the end of the softirq in which it was, ns.
#[derive(Debug, Clone, Copy)]
struct Delivery {
    packet: Packet,
    buffer: u64,
    until_ns: u64,
}

/// State of one CPU.
#[derive(Debug, Default)]
struct Cpu {
    /// Time from which on all its events are known, ns.
    known_ns: Option<u64>,
    handler: Option<Handler>,
    /// Causes of the next softirq.
    raisers: Vec<Raiser>,
    run: Option<Run>,
    deliveries: VecDeque<Delivery>,
}

/// The packets of all CPUs.
#[derive(Debug, Default)]
pub(super) struct Packets {
    cpus: Vec<Cpu>,
    /// Packets that wait for a softirq: when they were queued, ns, and by which thread.
    queued: HashMap<u64, (u64, Option<i32>)>,
    /// Interrupts that raised the softirq, with their device where only one is possible.
    interrupts: HashMap<u32, Option<u16>>,
    /// Latest start of each interrupt that has a thread, ns.
    started: HashMap<u32, u64>,
    /// Events of the latest reading, which those of other CPUs may precede.
    pending: Vec<(u32, Event)>,
    /// Names of devices and interrupts.
    pub(super) known: Trace,
}

/// Whether a thread of this name polls network devices.
pub(super) fn polls_devices(name: Option<&String>) -> bool {
    name.is_some_and(|name| name.starts_with("napi/"))
}

impl Packets {
    /// Takes the events of all CPUs; those before `until_ns` are complete. `names` are those of threads.
    pub(super) fn take(&mut self, cpus: &[CpuEvents], until_ns: u64, names: &HashMap<i32, String>) {
        self.cpus.resize_with(cpus.len().min(MOST_CPUS), Cpu::default);
        for (cpu, events) in (0..).zip(cpus.iter().take(MOST_CPUS)) {
            let cut_ns = events.events.first().filter(|_| events.is_cut).map(|first| first.at_ns);
            if let Some(lost_ns) = events.lost_ns.iter().copied().chain(cut_ns).max() {
                self.lose(cpu, lost_ns);
            }
            let known_ns = self.cpus.get(cpu as usize).and_then(|cpu| cpu.known_ns).unwrap_or(0);
            let known = events.events.iter().filter(|event| event.at_ns >= known_ns);
            self.pending.extend(known.map(|event| (cpu, *event)));
        }
        Event::sort_of_cpus(&mut self.pending);
        let settled = self.pending.partition_point(|(_, event)| event.at_ns < until_ns);
        let events: Vec<(u32, Event)> = self.pending.drain(..settled).collect();
        events.iter().for_each(|(cpu, event)| self.follow(*cpu, event, names));
    }

    /// Sets the start of the trace, ns.
    pub(super) fn begin(&mut self, n_cpus: usize, at_ns: u64) {
        self.cpus.resize_with(n_cpus.min(MOST_CPUS), Cpu::default);
        self.cpus.iter_mut().for_each(|cpu| cpu.known_ns = Some(at_ns));
    }

    /// Ends the trace: nothing is known of later packets.
    pub(super) fn end(&mut self) {
        *self = Packets { known: std::mem::take(&mut self.known), ..Packets::default() };
    }

    /// Forgets a CPU, because events before this instant were lost.
    fn lose(&mut self, cpu: u32, lost_ns: u64) {
        self.pending.retain(|(of, event)| *of != cpu || event.at_ns >= lost_ns);
        self.queued.clear();
        if let Some(cpu) = self.cpus.get_mut(cpu as usize) {
            *cpu = Cpu { known_ns: Some(lost_ns), ..Cpu::default() };
        }
    }

    fn follow(&mut self, number: u32, event: &Event, names: &HashMap<i32, String>) {
        let Some(cpu) = self.cpus.get_mut(number as usize) else { return };
        let at_ns = event.at_ns;
        match event.what {
            What::Enter(Context::Interrupt(number)) => {
                cpu.handler = Some(Handler { number, at_ns, has_raised: false });
                if self.started.len() < MOST_QUEUED || self.started.contains_key(&number) {
                    self.started.insert(number, at_ns);
                }
            }
            What::Leave(Context::Interrupt(_)) => {
                // A softirq that polls takes further devices without being raised again.
                if let (Some(handler), Some(run)) = (cpu.handler.take(), &mut cpu.run)
                    && let Some(device) = self.interrupts.get(&handler.number)
                    && !handler.has_raised
                    && run.raisers.len() < MOST_RAISED
                {
                    run.raisers.push(Raiser::Interrupt(handler.number, handler.at_ns));
                    run.devices.retain(|known| Some(*known) != *device);
                }
            }
            What::Raise(RECEIVING) => self.raise(number, event, names.get(&event.pid)),
            What::Enter(RECEIVING) => {
                let raisers = std::mem::take(&mut cpu.raisers);
                cpu.run = Some(Run { at_ns, raisers, devices: BTreeSet::new() });
            }
            What::Leave(RECEIVING) => {
                let Some(run) = cpu.run.take() else {
                    // Its beginning is not among the events, so neither are its packets.
                    cpu.known_ns = Some(at_ns + 1);
                    return;
                };
                let of_run = |one: &&mut Delivery| one.packet.delivered_ns >= run.at_ns;
                cpu.deliveries.iter_mut().rev().take_while(of_run).for_each(|one| one.until_ns = at_ns);
            }
            What::Packet { buffer, is_queued: true, .. } => {
                if self.queued.len() >= MOST_QUEUED {
                    self.queued.clear();
                }
                let is_thread = event.flags & (flags::HARDIRQ | flags::SOFTIRQ) == 0;
                self.queued.insert(buffer, (at_ns, is_thread.then_some(event.pid)));
            }
            What::Packet { buffer, device, is_queued: false } => {
                self.deliver(number, event, (buffer, device), names);
            }
            _ => {}
        }
    }

    fn raise(&mut self, cpu: u32, event: &Event, name: Option<&String>) {
        let Some(cpu) = self.cpus.get_mut(cpu as usize) else { return };
        let is_hard = event.flags & flags::HARDIRQ != 0;
        let of_thread = name.and_then(|name| interrupt_of_thread(name)).filter(|_| !is_hard);
        let started = of_thread.and_then(|number| Some((number, *self.started.get(&number)?)));
        let handled = cpu.handler.as_mut().filter(|_| is_hard).map(|handler| {
            handler.has_raised = true;
            (handler.number, handler.at_ns)
        });
        let raiser = match handled.or(started) {
            Some((number, at_ns)) => {
                self.interrupts.entry(number).or_default();
                Raiser::Interrupt(number, at_ns)
            }
            None if is_hard => Raiser::OtherCpu,
            None => Raiser::Else,
        };
        if cpu.raisers.len() < MOST_RAISED {
            cpu.raisers.push(raiser);
        }
    }

    fn deliver(&mut self, cpu: u32, event: &Event, (buffer, device): (u64, u16), names: &HashMap<i32, String>) {
        let queued = self.queued.remove(&buffer);
        let Some(cpu) = self.cpus.get_mut(cpu as usize) else { return };
        let name = names.get(&event.pid);
        let is_softirq = event.flags & flags::SOFTIRQ != 0;
        let polling = polls_devices(name).then_some(Carrier::Thread(event.pid)).filter(|_| !is_softirq);
        let run = cpu.run.as_mut().filter(|_| is_softirq);
        if run.is_none() && polling.is_none() {
            return;
        }
        let since_ns = run.as_ref().map_or(event.at_ns, |run| run.at_ns);
        // A bridge and the like pass on what their device received.
        let is_passed_on = |last: &&Delivery| {
            last.buffer == buffer && last.packet.device != device && last.packet.delivered_ns >= since_ns
        };
        if queued.is_none() && cpu.deliveries.back().filter(is_passed_on).is_some() {
            return;
        }
        let found = run.as_ref().filter(|_| queued.is_none()).and_then(|run| run.interrupt(device, &self.interrupts));
        let is_first = run.is_some_and(|run| run.devices.insert(device));
        if let Some((number, true, _)) = found.filter(|_| is_first) {
            self.interrupts.entry(number).and_modify(|known| *known = known.or(Some(device)));
        }
        let run = cpu.run.as_ref().filter(|_| is_softirq);
        let is_kernel = |name: &String| name.starts_with("ksoftirqd/") || interrupt_of_thread(name).is_some();
        let carrier = match (queued, found) {
            _ if let Some(polling) = polling => polling,
            _ if name.is_some_and(is_kernel) => Carrier::Thread(event.pid),
            (Some((_, Some(sender))), _) if sender == event.pid => Carrier::Sender(sender),
            (None, Some((number, ..))) => Carrier::Interrupt(number),
            (None, None) if run.is_some_and(|run| run.raisers.contains(&Raiser::OtherCpu)) => Carrier::OtherCpu,
            _ => Carrier::Softirq,
        };
        let packet = Packet {
            device,
            carrier,
            interrupt_ns: found.filter(|_| is_first).map(|(.., at_ns)| at_ns),
            queued_ns: queued.map(|(at_ns, _)| at_ns),
            softirq_ns: run.map(|run| run.at_ns),
            delivered_ns: event.at_ns,
        };
        if cpu.deliveries.len() >= MOST_DELIVERIES {
            cpu.known_ns = cpu.deliveries.pop_front().map(|first| first.packet.delivered_ns);
        }
        cpu.deliveries.push_back(Delivery { packet, buffer, until_ns: u64::MAX });
    }

    /// The packet that woke a thread by this event of a CPU; `None` if none did.
    pub(super) fn brought(&self, cpu: u32, waking: &Event, names: &HashMap<i32, String>) -> Option<Brought> {
        let is_softirq = waking.flags & (flags::HARDIRQ | flags::SOFTIRQ) == flags::SOFTIRQ;
        let is_thread = waking.flags & flags::HARDIRQ == 0 && polls_devices(names.get(&waking.pid));
        if !is_softirq && !is_thread {
            return None;
        }
        let Some(cpu) = self.cpus.get(cpu as usize) else { return Some(Brought::Unknown) };
        if cpu.known_ns.is_none_or(|known_ns| known_ns > waking.at_ns) {
            return Some(Brought::Unknown);
        }
        let after = cpu.deliveries.partition_point(|one| one.packet.delivered_ns <= waking.at_ns);
        let last = cpu.deliveries.get(after.checked_sub(1)?)?;
        let is_same = match is_softirq {
            true => last.packet.softirq_ns.is_some(),
            false => last.packet.carrier == Carrier::Thread(waking.pid),
        };
        (is_same && waking.at_ns <= last.until_ns).then_some(Brought::By(last.packet))
    }
}

impl Run {
    /// The interrupt that started the poll of a device, whether it is the only cause of the softirq, and its start, ns.
    fn interrupt(&self, device: u16, known: &HashMap<u32, Option<u16>>) -> Option<(u32, bool, u64)> {
        let of = |raiser: &Raiser| match raiser {
            Raiser::Interrupt(number, at_ns) => Some((*number, *at_ns)),
            _ => None,
        };
        let all: Option<BTreeSet<u32>> = self.raisers.iter().map(|raiser| Some(of(raiser)?.0)).collect();
        let is_only = all.is_some_and(|numbers| numbers.len() == 1);
        let is_its = |number: u32| is_only || known.get(&number).copied().flatten() == Some(device);
        let mut its = self.raisers.iter().rev().filter_map(of).filter(|(number, _)| is_its(*number));
        let (number, at_ns) = its.next()?;
        its.all(|(other, _)| other == number).then_some((number, is_only, at_ns))
    }
}

#[cfg(test)]
mod tests;
