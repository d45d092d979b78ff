//! The stages of activations that packets released, as distributions.

use super::activation::{Activation, Release};
use super::packets::{Brought, Carrier};
use punctual_model::{CountedName, PacketReleases};
use std::collections::BTreeMap;

/// Most devices and carriers that are counted.
const MOST_NAMES: usize = 64;

/// Counts of the activations of one thread that packets released.
#[derive(Debug, Clone, Default)]
pub(super) struct PacketStages {
    record: PacketReleases,
    devices: BTreeMap<u16, u64>,
    carriers: BTreeMap<Carrier, u64>,
}

impl PacketStages {
    pub(super) fn take(&mut self, one: &Activation) {
        let Some((woken_ns, brought)) = one.brought else { return };
        let Brought::By(packet) = brought else {
            // A timer may expire in a softirq, too.
            self.record.unknown += u64::from(one.release == Release::Interrupt);
            return;
        };
        if self.devices.len() < MOST_NAMES || self.devices.contains_key(&packet.device) {
            *self.devices.entry(packet.device).or_default() += 1;
        }
        if self.carriers.len() < MOST_NAMES || self.carriers.contains_key(&packet.carrier) {
            *self.carriers.entry(packet.carrier).or_default() += 1;
        }
        let record = &mut self.record;
        let between = |from: u64, to: u64| i64::try_from(to.saturating_sub(from)).unwrap_or(i64::MAX);
        let arrived_ns = packet.arrived_ns();
        if let Some(softirq_ns) = packet.softirq_ns() {
            let first = match packet.interrupt_ns {
                Some(_) => &mut record.interrupt_to_softirq,
                None => &mut record.queue_to_softirq,
            };
            first.get_or_insert_default().record(between(arrived_ns, softirq_ns));
            record.softirq_to_wakeup.get_or_insert_default().record(between(softirq_ns, woken_ns));
        } else {
            record.packet_to_wakeup.get_or_insert_default().record(between(arrived_ns, woken_ns));
        }
        record.wakeup_to_running.record(between(woken_ns, one.user_ns));
        record.arrival_to_running.record(between(arrived_ns, one.user_ns));
    }

    /// The record, with these names; `None` if no softirq released an activation.
    pub(super) fn result(
        self,
        device: impl Fn(u16) -> String,
        carrier: impl Fn(Carrier) -> String,
        most: usize,
    ) -> Option<PacketReleases> {
        let is_any = self.record.unknown > 0 || self.record.arrival_to_running.n > 0;
        let devices = CountedName::most_frequent(self.devices.into_iter().map(|(index, n)| (device(index), n)), most);
        let carriers = CountedName::most_frequent(self.carriers.into_iter().map(|(one, n)| (carrier(one), n)), most);
        is_any.then_some(PacketReleases { devices, carriers, ..self.record })
    }
}
