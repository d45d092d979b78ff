//! Reasons for which two parts do not belong to one run.

use punctual_analysis::comparability;
use punctual_model::{Header, Planned, Record};
use serde_json::Value;
use std::collections::HashMap;

/// Reason why the parts with these headers cannot be merged; `None` if they can. With `force`, differences of their
/// machines are notes only.
pub(super) fn why_apart(a: &Header, b: &Header, force: bool, notes: &mut Vec<String>) -> Option<String> {
    let differ = |what: &str, a: &str, b: &str| Some(format!("they differ in {what} ({a} and {b})"));
    if a.format != b.format || a.tool != b.tool {
        return differ("the version that measured", &a.tool, &b.tool);
    }
    if a.plan != b.plan {
        let keys = differing_keys(a, b);
        return Some(format!("they are parts of different plans, which differ in {}", keys.join(", ")));
    }
    if a.seed != b.seed {
        return differ("the seed of the order", &a.seed.to_string(), &b.seed.to_string());
    }
    if a.samples != b.samples {
        return Some("only one of them keeps samples".to_owned());
    }
    if a.cells != b.cells {
        return Some(other_cells(a, b));
    }
    // Virtual time does not depend on the machine.
    if a.is_virtual() {
        return None;
    }
    let differences = comparability::since(a, &b.host);
    let named = differences.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    match () {
        () if differences.is_empty() => None,
        () if force => {
            notes.push(format!("merged although the machines differ: {named}"));
            None
        }
        () => Some(format!("their machines differ: {named}; --force merges them anyway")),
    }
}

/// Keys of the plans that differ; those of the axes for themselves.
fn differing_keys(a: &Header, b: &Header) -> Vec<String> {
    let [a, b] = [a, b].map(|header| serde_json::to_value(&header.plan).unwrap_or_default());
    let mut keys = Vec::new();
    for (key, value) in a.as_object().into_iter().flatten() {
        let other = b.get(key).unwrap_or(&Value::Null);
        match (value, other) {
            _ if value == other => {}
            (Value::Object(members), Value::Object(_)) if key == "axes" => {
                let differs = |(name, member): &(&String, &Value)| other.get(name.as_str()) != Some(*member);
                keys.extend(members.iter().filter(differs).map(|(name, _)| format!("{key}.{name}")));
            }
            _ => keys.push(key.clone()),
        }
    }
    keys
}

/// Reason why one plan has other cells on the other machine.
fn other_cells(a: &Header, b: &Header) -> String {
    for (one, other) in [(a, b), (b, a)] {
        let missing = other.skipped.iter().find(|skipped| one.cells.contains(&skipped.cell));
        if let Some(skipped) = missing {
            let reason = &skipped.reason;
            return format!("one of them could not measure {}: {reason}", skipped.cell.label());
        }
    }
    match comparability::of_runs(a, b).first() {
        Some(difference) => format!("their cells differ in {difference}"),
        None => "their cells differ".to_owned(),
    }
}

/// Everything besides the cell that a result in virtual time depends on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Guest {
    kernel: String,
    kernel_hash: String,
    /// Hash of the initramfs, with this program.
    initramfs_hash: String,
    qemu: String,
    machine: String,
}

impl Guest {
    pub(super) fn of(record: Record) -> Option<Guest> {
        let lab = record.lab?;
        let (kernel_hash, initramfs_hash) = (lab.kernel_hash, lab.initramfs_hash);
        Some(Guest { kernel: lab.kernel, kernel_hash, initramfs_hash, qemu: lab.qemu, machine: lab.machine })
    }
}

/// The guests of each cell, with the part in which they were seen first.
#[derive(Debug, Default)]
pub(super) struct Guests(HashMap<usize, (usize, Guest)>, Option<(usize, String)>);

impl Guests {
    /// The part, and the difference, whose guest of the same cell is another one than this of part `index`. All guests
    /// are those of one version of QEMU.
    pub(super) fn why_apart(&mut self, index: usize, planned: &Planned, guest: Guest) -> Option<(usize, String)> {
        let differ = |what: &str, a: &str, b: &str| format!("their guests differ in {what} ({a} and {b})");
        let (other, qemu) = self.1.get_or_insert_with(|| (index, guest.qemu.clone()));
        if *qemu != guest.qemu {
            return Some((*other, differ("QEMU", qemu, &guest.qemu)));
        }
        let (other, first) = self.0.entry(planned.cell_index).or_insert_with(|| (index, guest.clone()));
        let what = [
            ("kernel", &first.kernel, &guest.kernel),
            ("the content of the kernel", &first.kernel_hash, &guest.kernel_hash),
            ("machine", &first.machine, &guest.machine),
            ("initramfs, which holds punctual itself", &first.initramfs_hash, &guest.initramfs_hash),
        ];
        let different = what.into_iter().find(|(_, a, b)| a != b);
        different.map(|(what, a, b)| (*other, differ(what, a, b)))
    }
}
