//! Activations that packets of a network released, by the stages from the arrival of the packet until its thread runs.

use crate::{CountedName, Histogram};
use serde::{Deserialize, Serialize};

/// Activations of a thread that packets released. The sum of the stages is exactly the whole of each.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct PacketReleases {
    /// Network devices of the packets, most frequent first, up to five.
    pub devices: Vec<CountedName>,
    /// What delivered the packets, as text: the softirq of an interrupt, `ksoftirqd/1`, the call of the thread that
    /// sent them. Most frequent first, up to five.
    pub carriers: Vec<CountedName>,
    /// From the interrupt of the device to the softirq. `null`: none of the packets has a known one, as those of veth
    /// and the loopback device, and all but the first of each poll.
    pub interrupt_to_softirq: Option<Histogram>,
    /// From the queue of a device without interrupts, where the kernel's receive time stamp is, to the softirq.
    pub queue_to_softirq: Option<Histogram>,
    /// From the start of the softirq to the wake-up, after one of these two stages.
    pub softirq_to_wakeup: Option<Histogram>,
    /// From the packet to the wake-up, where neither stage before is known: from its delivery, or from its interrupt or
    /// queue if the softirq ran already.
    pub packet_to_wakeup: Option<Histogram>,
    /// From the wake-up until the program runs.
    pub wakeup_to_running: Histogram,
    /// All stages: from the arrival of the packet, which is the release, until the program runs.
    pub arrival_to_running: Histogram,
    /// Activations that a softirq released while packets were not traced: whether by a packet is unknown.
    pub unknown: u64,
}

impl PacketReleases {
    /// The stages that each activation may have, in the order of time, with their names.
    pub fn stages(&self) -> [(&'static str, Option<&Histogram>); 5] {
        [
            ("interrupt to softirq", self.interrupt_to_softirq.as_ref()),
            ("queue to softirq", self.queue_to_softirq.as_ref()),
            ("softirq to wake-up", self.softirq_to_wakeup.as_ref()),
            ("packet to wake-up", self.packet_to_wakeup.as_ref()),
            ("wake-up to running", Some(&self.wakeup_to_running)),
        ]
    }
}
