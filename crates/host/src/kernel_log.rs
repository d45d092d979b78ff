//! The kernel's log, as far as it is kept and readable.

use super::HostFs;
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::os::unix::fs::OpenOptionsExt;

/// Messages of the log, the oldest first; none where it may not be read (`dmesg_restrict`).
pub(super) fn messages(fs: &HostFs) -> Vec<String> {
    /// Longer than any record of the log (CONSOLE_EXT_LOG_MAX, kernel/printk).
    const RECORD: usize = 8192;
    /// Upper bound of the number of records.
    const MAX_RECORDS: usize = 1 << 20;
    let path = fs.root.join("dev/kmsg");
    let Ok(mut log) = File::options().read(true).custom_flags(libc::O_NONBLOCK).open(path) else { return Vec::new() };
    let (mut text, mut record) = (Vec::new(), [0; RECORD]);
    for _ in 0..MAX_RECORDS {
        match log.read(&mut record) {
            Ok(1..) if text.len() > MAX_RECORDS << 6 => break,
            Ok(n @ 1..) => text.extend_from_slice(record.get(..n).unwrap_or_default()),
            // EPIPE: the next record was overwritten before it was read.
            Err(err) if matches!(err.kind(), ErrorKind::BrokenPipe | ErrorKind::Interrupted) => {}
            _ => break,
        }
    }
    of_records(&String::from_utf8_lossy(&text))
}

/// The messages of records, each `PRIORITY,NUMBER,TIME,FLAGS;MESSAGE` and lines of properties behind a blank
/// (Documentation/ABI/testing/dev-kmsg).
fn of_records(text: &str) -> Vec<String> {
    let records = text.lines().filter(|line| !line.starts_with(' '));
    records.filter_map(|line| line.split_once(';')).map(|(_, message)| message.to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_what_follows_the_numbers() {
        let text = "6,160,424069,-;pci_root PNP0A03:00: host bridge; ok\n SUBSYSTEM=acpi\n DEVICE=+acpi:PNP0A03:00\n\
                    6,339,5140900,-;Dynamic Preempt: full\nnot a record\n";
        assert_eq!(of_records(text), ["pci_root PNP0A03:00: host bridge; ok", "Dynamic Preempt: full"]);
        assert_eq!(messages(&HostFs { root: "/does-not-exist".into() }), Vec::<String>::new());
    }
}
