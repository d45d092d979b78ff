//! Packets in hand-made events of the kernel: what woke a thread, and what did not.

use super::*;
use crate::watch::script::{ME, OTHER, Script};
use crate::watch::{Settings, WatchedThreads};
use punctual_model::PacketReleases;
use syscalls::Sysno;

const ETH: u16 = 0;
const BRIDGE: u16 = 1;
const IRQ: u32 = 38;
const NAPI: i32 = 7;
const IRQ_THREAD: i32 = 8;
const KSOFTIRQD: i32 = 9;
const SOFT: u8 = flags::SOFTIRQ;
const HARD: u8 = flags::HARDIRQ;

/// Events of the kernel, by CPU.
#[derive(Clone, Default)]
struct Net(Vec<(u32, Event)>);

impl Net {
    fn on(mut self, cpu: u32, at_ns: u64, pid: i32, flags: u8, what: What) -> Net {
        self.0.push((cpu, Event { at_ns, pid, flags, what }));
        self
    }

    /// An interrupt of 300 ns.
    fn interrupt(self, cpu: u32, at_ns: u64, number: u32, raises: bool) -> Net {
        let context = Context::Interrupt(number);
        let mut net = self.on(cpu, at_ns, 0, HARD, What::Enter(context));
        if raises {
            net = net.on(cpu, at_ns + 100, 0, HARD, What::Raise(RECEIVING));
        }
        net.on(cpu, at_ns + 300, 0, HARD, What::Leave(context))
    }

    fn softirq(self, cpu: u32, at_ns: u64, pid: i32) -> Net {
        self.on(cpu, at_ns, pid, SOFT, What::Enter(RECEIVING))
    }

    fn end(self, cpu: u32, at_ns: u64) -> Net {
        self.on(cpu, at_ns, 0, SOFT, What::Leave(RECEIVING))
    }

    fn packet(self, cpu: u32, at_ns: u64, pid: i32, flags: u8, (buffer, device): (u64, u16)) -> Net {
        self.on(cpu, at_ns, pid, flags, What::Packet { buffer, device, is_queued: false })
    }

    fn queued(self, cpu: u32, at_ns: u64, pid: i32, flags: u8, (buffer, device): (u64, u16)) -> Net {
        self.on(cpu, at_ns, pid, flags, What::Packet { buffer, device, is_queued: true })
    }

    fn cpus(&self) -> [CpuEvents; 2] {
        let of = |cpu: u32| self.0.iter().filter(move |(on, _)| *on == cpu).map(|(_, event)| *event).collect();
        [0, 1].map(|cpu| CpuEvents { events: of(cpu), ..CpuEvents::default() })
    }

    fn packets(&self) -> Packets {
        let mut packets = Packets::default();
        packets.begin(2, 100);
        packets.take(&self.cpus(), u64::MAX, &names());
        packets
    }

    /// What woke a thread at `at_ns` of CPU 0 in a softirq.
    fn brought(&self, at_ns: u64) -> Option<Brought> {
        brought(&self.packets(), 0, (at_ns, 0, SOFT))
    }
}

fn brought(packets: &Packets, cpu: u32, (at_ns, pid, flags): (u64, i32, u8)) -> Option<Brought> {
    packets.brought(cpu, &Event { at_ns, pid, flags, what: What::Waking { pid: ME } }, &names())
}

fn names() -> HashMap<i32, String> {
    let all = [(NAPI, "napi/eth0-8193"), (IRQ_THREAD, "irq/38-eth0"), (KSOFTIRQD, "ksoftirqd/0"), (OTHER, "sender")];
    all.map(|(pid, name)| (pid, name.to_owned())).into()
}

/// A packet of these times; 0: unknown.
fn by(device: u16, carrier: Carrier, [interrupt, queued, softirq, delivered_ns]: [u64; 4]) -> Option<Brought> {
    let [interrupt_ns, queued_ns, softirq_ns] = [interrupt, queued, softirq].map(|at| Some(at).filter(|at| *at > 0));
    Some(Brought::By(Packet { device, carrier, interrupt_ns, queued_ns, softirq_ns, delivered_ns }))
}

/// An interrupt of the device at 1 us, whose softirq runs from 2 us to 9 us on top of any thread.
fn of_interrupt(packets: impl Fn(Net) -> Net) -> Net {
    packets(Net::default().interrupt(0, 1_000, IRQ, true).softirq(0, 2_000, OTHER)).end(0, 9_000)
}

#[test]
fn the_last_packet_before_the_waking_in_its_softirq_is_the_one() {
    let one = |net: Net| net.packet(0, 3_000, OTHER, SOFT, (1, ETH));
    let first = by(ETH, Carrier::Interrupt(IRQ), [1_000, 0, 2_000, 3_000]);
    for (at_ns, expected) in [(2_500, None), (3_000, first), (9_000, first), (9_001, None)] {
        assert_eq!(of_interrupt(one).brought(at_ns), expected, "{at_ns}");
    }
    // The next one of the poll has come at an unknown time after the interrupt, in the same buffer, too.
    for buffer in [1, 2] {
        let two = of_interrupt(|net| one(net).packet(0, 5_000, OTHER, SOFT, (buffer, ETH)));
        let second = by(ETH, Carrier::Interrupt(IRQ), [0, 0, 2_000, 5_000]);
        assert_eq!((two.brought(4_000), two.brought(6_000)), (first, second));
    }
    // A bridge passes it on.
    assert_eq!(of_interrupt(|net| one(net).packet(0, 3_500, OTHER, SOFT, (1, BRIDGE))).brought(4_000), first);
}

#[test]
fn what_no_packet_does_is_none() {
    let net = of_interrupt(|net| net.packet(0, 3_000, OTHER, SOFT, (1, ETH)));
    let packets = net.packets();
    // A thread that writes to a socket of the same machine, and an interrupt within the softirq.
    for waking in [(4_000, OTHER, 0), (4_000, OTHER, HARD), (4_000, OTHER, HARD | SOFT), (4_000, NAPI, 0)] {
        assert_eq!(brought(&packets, 0, waking), None, "{waking:?}");
    }
    // Another CPU, and a softirq without packets, as at the end of a transmission.
    assert_eq!(brought(&packets, 1, (4_000, 0, SOFT)), None);
    assert_eq!(of_interrupt(|net| net).brought(4_000), None);
    // A thread that passes a packet to the kernel outside of a softirq, as those of a tunnel do.
    assert_eq!(brought(&Net::default().packet(0, 3_000, OTHER, 0, (1, ETH)).packets(), 0, (3_100, OTHER, 0)), None);
}

#[test]
fn each_context_that_delivers_a_packet_is_told_apart() {
    let packet = (1, ETH);
    let raise = What::Raise(RECEIVING);
    let in_softirq = |net: Net, pid| net.softirq(0, 6_000, pid).packet(0, 7_000, pid, SOFT, packet).end(0, 9_000);
    let start = Net::default;
    let handled = start().interrupt(0, 1_000, IRQ, false);
    for (net, carrier, times) in [
        // The loopback device: in the call that sends, or on top of another thread.
        (start().queued(0, 1_000, OTHER, 0, packet), Carrier::Sender(OTHER), [0, 1_000, 6_000, 7_000]),
        (start().queued(1, 1_000, ME, 0, packet), Carrier::Softirq, [0, 1_000, 6_000, 7_000]),
        (start().queued(0, 1_000, OTHER, SOFT, packet), Carrier::Softirq, [0, 1_000, 6_000, 7_000]),
        // An interrupt of the processor itself: another CPU has polled the device.
        (start().on(0, 1_000, 0, HARD, raise), Carrier::OtherCpu, [0, 0, 6_000, 7_000]),
        // Nothing is known.
        (start(), Carrier::Softirq, [0, 0, 6_000, 7_000]),
    ] {
        assert_eq!(in_softirq(net, OTHER).brought(8_000), by(ETH, carrier, times), "{carrier:?}");
    }
    for (net, pid) in [
        (start().interrupt(0, 1_000, IRQ, true), KSOFTIRQD),
        (handled.clone().on(0, 5_000, IRQ_THREAD, 0, raise), IRQ_THREAD),
    ] {
        let expected = by(ETH, Carrier::Thread(pid), [1_000, 0, 6_000, 7_000]);
        assert_eq!(in_softirq(net, pid).brought(8_000), expected, "{pid}");
    }
    let polled = handled.packet(0, 7_000, NAPI, 0, packet).packets();
    let expected = by(ETH, Carrier::Thread(NAPI), [0, 0, 0, 7_000]);
    assert_eq!(brought(&polled, 0, (7_100, NAPI, 0)), expected);
    assert_eq!(brought(&polled, 0, (7_100, 0, SOFT)), None);
}

#[test]
fn two_devices_on_one_cpu_are_told_apart_once_each_was_alone() {
    let alone = |net: Net, at: u64, irq: u32, device: u16| {
        let net = net.interrupt(0, at, irq, true).softirq(0, at + 1_000, OTHER);
        net.packet(0, at + 2_000, OTHER, SOFT, (1, device)).end(0, at + 3_000)
    };
    let both = |net: Net| {
        let net = net.interrupt(0, 50_000, 40, true).interrupt(0, 51_000, 41, true).softirq(0, 52_000, OTHER);
        let net = net.packet(0, 53_000, OTHER, SOFT, (5, 1)).packet(0, 54_000, OTHER, SOFT, (6, 0));
        net.end(0, 55_000).packets()
    };
    let unknown = both(Net::default());
    assert_eq!(brought(&unknown, 0, (53_500, 0, SOFT)), by(1, Carrier::Softirq, [0, 0, 52_000, 53_000]));
    let known = both(alone(alone(Net::default(), 10_000, 40, 0), 20_000, 41, 1));
    let second = by(1, Carrier::Interrupt(41), [51_000, 0, 52_000, 53_000]);
    assert_eq!(brought(&known, 0, (53_500, 0, SOFT)), second);
    assert_eq!(brought(&known, 0, (54_500, 0, SOFT)), by(0, Carrier::Interrupt(40), [50_000, 0, 52_000, 54_000]));
    // The softirq goes on with a device whose interrupt comes meanwhile and does not raise it again.
    let goes_on = alone(Net::default(), 10_000, 41, 1).interrupt(0, 30_000, 40, true).softirq(0, 31_000, OTHER);
    let goes_on = goes_on.packet(0, 32_000, OTHER, SOFT, (5, 0)).interrupt(0, 33_000, 41, false);
    let goes_on = goes_on.packet(0, 34_000, OTHER, SOFT, (6, 1)).end(0, 35_000);
    assert_eq!(goes_on.brought(34_500), by(1, Carrier::Interrupt(41), [33_000, 0, 31_000, 34_000]));
}

#[test]
fn two_devices_on_two_cpus_do_not_mix_in_whatever_order_they_are_read() {
    let on = |net: Net, cpu: u32, at: u64| {
        let net = net.interrupt(cpu, at, 40 + cpu, true).softirq(cpu, at + 500, OTHER);
        net.packet(cpu, at + 1_000, OTHER, SOFT, (1, u16::try_from(cpu).unwrap())).end(cpu, at + 5_000)
    };
    let packets = on(on(Net::default(), 1, 1_200), 0, 1_000).packets();
    for (cpu, at) in [(0, 1_000), (1, 1_200)] {
        let expected = by(u16::try_from(cpu).unwrap(), Carrier::Interrupt(40 + cpu), [at, 0, at + 500, at + 1_000]);
        assert_eq!(brought(&packets, cpu, (3_000, 0, SOFT)), expected);
    }
    // Queued on CPU 1, delivered on CPU 0: an event after the reading of a CPU waits for those of others before it.
    let queued = Net::default().queued(1, 1_000, ME, 0, (1, ETH)).cpus();
    let delivered = Net::default().softirq(0, 2_000, OTHER).packet(0, 3_000, OTHER, SOFT, (1, ETH)).cpus();
    let mut packets = Packets::default();
    packets.begin(2, 100);
    packets.take(&delivered, 900, &names());
    packets.take(&queued, u64::MAX, &names());
    assert_eq!(brought(&packets, 0, (4_000, 0, SOFT)), by(ETH, Carrier::Softirq, [0, 1_000, 2_000, 3_000]));
}

#[test]
fn nothing_is_claimed_of_times_that_are_not_traced() {
    let net = of_interrupt(|net| net.packet(0, 3_000, OTHER, SOFT, (1, ETH)));
    assert_eq!(brought(&Packets::default(), 0, (4_000, 0, SOFT)), Some(Brought::Unknown));
    assert_eq!(net.brought(99), Some(Brought::Unknown));
    let mut ended = net.packets();
    ended.end();
    assert_eq!(brought(&ended, 0, (4_000, 0, SOFT)), Some(Brought::Unknown));
    for (lost_ns, is_cut) in [(vec![2_500], false), (vec![], true)] {
        let mut cpus = net.cpus();
        (cpus[0].lost_ns, cpus[0].is_cut) = (lost_ns, is_cut);
        let mut packets = Packets::default();
        packets.begin(2, 100);
        packets.take(&cpus, u64::MAX, &names());
        let before = if is_cut { 999 } else { 2_400 };
        assert_eq!(brought(&packets, 0, (before, 0, SOFT)), Some(Brought::Unknown));
        let of_softirq = by(ETH, Carrier::Interrupt(IRQ), [1_000, 0, 2_000, 3_000]);
        let expected = if is_cut { of_softirq } else { Some(Brought::Unknown) };
        assert_eq!(brought(&packets, 0, (4_000, 0, SOFT)), expected);
    }
}

#[test]
fn memory_is_bounded_and_what_is_dropped_is_unknown() {
    let mut net = Net::default().softirq(0, 1_000, OTHER);
    let n = u64::try_from(MOST_DELIVERIES + MOST_QUEUED).unwrap();
    for i in 0..n {
        net = net.queued(1, 2_000 + i * 10, ME, 0, (n + i, ETH));
        net = net.packet(0, 2_005 + i * 10, OTHER, SOFT, (i, ETH));
    }
    let packets = net.packets();
    assert!(packets.queued.len() <= MOST_QUEUED && packets.cpus[0].deliveries.len() == MOST_DELIVERIES);
    assert_eq!(brought(&packets, 0, (2_006, 0, SOFT)), Some(Brought::Unknown));
    assert!(matches!(brought(&packets, 0, (3_000 + n * 10, 0, SOFT)), Some(Brought::By(_))));
}

/// A thread that waits in recvfrom(2) for packets of the loopback device, one each 2 ms: woken 3 us after the softirq
/// begins, which does 2 us after the packet is queued. Of each eight, one is a message of a thread.
fn receiver(net_until: u64) -> PacketReleases {
    let (mut script, mut net) = (Script::new().switch_on(1, 50_000, OTHER, 0), Net::default());
    let mut messages = 0;
    for cycle in 1..=200 {
        let at = cycle * Script::PERIOD_NS;
        script = script.enter(at - 900_000, Sysno::recvfrom, [3, 0, 0]).sleep(at - 899_000, 0);
        if cycle % 8 == 0 {
            messages += 1;
            script = script.woken_by(1, at + 5_000);
        } else {
            script = script.on(1, at + 5_000, SOFT, What::Waking { pid: ME });
            net = net.queued(1, at, OTHER, 0, (cycle, ETH)).softirq(1, at + 2_000, OTHER);
            net = net.packet(1, at + 3_000, OTHER, SOFT, (cycle, ETH)).end(1, at + 6_000);
        }
        script = script.switch(at + 9_000, ME, 0).exit(at + 11_000, Sysno::recvfrom, 8);
    }
    let until_ns = 202 * Script::PERIOD_NS;
    let mut threads = WatchedThreads::new(Settings { until_ns, ..Settings::default() }, &[]);
    threads.names = names();
    threads.packets_begin(2, net_until);
    let mut trace = Trace { cpus: net.cpus().to_vec(), devices: vec!["lo".to_owned()], ..Trace::default() };
    threads.packets(u64::MAX, &mut trace);
    threads.take(&script.events());
    assert_eq!(threads.may_wait_for_packets().collect::<Vec<_>>(), [ME]);
    threads.undecided().into_iter().for_each(|pid| drop(threads.settle(pid)));
    let thread = threads.finish(until_ns, |_| true, |_| false).0.remove(0).thread;
    let packets = thread.packets.unwrap();
    // The last activation is not over.
    assert_eq!((thread.activations, thread.releases.thread), (199, messages - 1));
    assert_eq!(packets.arrival_to_running.n + packets.unknown, thread.releases.interrupt);
    packets
}

#[test]
fn the_latency_of_an_activation_begins_at_its_packet_and_the_stages_add_up() {
    let packets = receiver(100);
    assert_eq!((packets.unknown, packets.arrival_to_running.n), (0, 175));
    assert_eq!((packets.interrupt_to_softirq.as_ref(), packets.packet_to_wakeup.as_ref()), (None, None));
    let sums = packets.stages().map(|(_, stage)| stage.map_or(0, |stage| stage.sum_ns));
    assert_eq!(sums, [0, 2_000, 3_000, 0, 6_000].map(|each| each * 175));
    assert_eq!(packets.arrival_to_running.sum_ns, sums.iter().sum());
    assert_eq!((&*packets.devices[0].name, &*packets.carriers[0].name), ("lo", "the call of sender"));
    // Before their trace begins, they are unknown.
    let late = receiver(100 * Script::PERIOD_NS);
    assert_eq!((late.unknown, late.arrival_to_running.n), (87, 88));
}
