//! Layout of a stick: boot code, then two partitions of an MBR.

/// Sector of the first partition: 1 MiB, as all partitioning tools have it; GRUB for BIOS is before it.
pub(super) const FIRST_SECTOR: u64 = 2048;
/// Size of the second partition, MiB: an hour of measurements and its page take about 3.
const RESULTS_MIB: u64 = 256;
/// The least size of a FAT32 file system with clusters of one sector, 65 525 of them (FAT specification), with room.
const LEAST_MIB: u64 = 64;
/// Room for the structures of the file system beside its files, MiB.
const SPARE_MIB: u64 = 8;
const SECTORS_OF_MIB: u64 = (1 << 20) / 512;

/// Offset of the disk signature in the first sector, which is the identity of a stick.
const SIGNATURE: usize = 440;
const TABLE: usize = 446;

/// A partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Partition {
    pub(super) first_sector: u64,
    pub(super) sectors: u64,
}

impl Partition {
    /// Offset of its first byte.
    pub(super) fn offset(self) -> u64 {
        self.first_sector * 512
    }

    /// Offset behind its last byte.
    pub(super) fn end(self) -> u64 {
        (self.first_sector + self.sectors) * 512
    }
}

/// The partitions of a stick whose boot files have so many bytes.
pub(super) fn partitions(boot_bytes: u64) -> [Partition; 2] {
    let boot_mib = (boot_bytes.div_ceil(1 << 20) + SPARE_MIB).max(LEAST_MIB);
    let boot = Partition { first_sector: FIRST_SECTOR, sectors: boot_mib * SECTORS_OF_MIB };
    let results = Partition { first_sector: boot.first_sector + boot.sectors, sectors: RESULTS_MIB * SECTORS_OF_MIB };
    [boot, results]
}

/// Adds the identity and the partition table to the first sector, `code`. Firmware finds the EFI files by the type of
/// the first partition, and some BIOS boot only from a disk with an active one.
pub(super) fn add_table(code: &mut [u8], identity: u32, [boot, results]: [Partition; 2]) {
    const EFI_SYSTEM: u8 = 0xef;
    const FAT32: u8 = 0x0c;
    /// A place that the old form, cylinder, head and sector, cannot express.
    const BEYOND: [u8; 3] = [0xfe, 0xff, 0xff];
    let number = |number: u64| u32::try_from(number).unwrap_or(u32::MAX).to_le_bytes();
    let entry = |status, kind, of: Partition| {
        let [start, sectors] = [of.first_sector, of.sectors].map(number);
        [&[status][..], &BEYOND, &[kind], &BEYOND, &start, &sectors].concat()
    };
    let mut table = [entry(0x80, EFI_SYSTEM, boot), entry(0, FAT32, results)].concat();
    table.resize(64, 0);
    table.extend([0x55, 0xaa]);
    code[SIGNATURE..SIGNATURE + 4].copy_from_slice(&identity.to_le_bytes());
    code[SIGNATURE + 4..TABLE].fill(0);
    code[TABLE..TABLE + table.len()].copy_from_slice(&table);
}

/// The identity of a disk with this first sector, as the command line has it; `None` if it has no partition table.
pub(super) fn identity_of(sector: &[u8]) -> Option<String> {
    let has_table = sector.get(510..512) == Some(&[0x55, 0xaa]);
    let bytes = sector.get(SIGNATURE..SIGNATURE + 4)?.try_into().ok()?;
    has_table.then(|| text_of(u32::from_le_bytes(bytes)))
}

/// An identity as text: 8 hexadecimal digits.
pub(super) fn text_of(identity: u32) -> String {
    format!("{identity:08x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn partitions_follow_each_other_and_hold_their_files() {
        for (bytes, mib) in [(0, 64), (56 << 20, 64), ((56 << 20) + 1, 65), (200 << 20, 208)] {
            let [boot, results] = partitions(bytes);
            assert_eq!((boot.offset(), boot.sectors), (1 << 20, mib * 2048), "{bytes}");
            assert_eq!(results.offset(), boot.end());
            assert_eq!(results.end() - results.offset(), 256 << 20);
        }
    }

    #[test]
    fn the_table_is_after_the_code_and_names_the_disk() {
        let mut sector = vec![7; 512];
        add_table(&mut sector, 0x1234_abcd, partitions(0));
        assert!(sector[..440].iter().all(|byte| *byte == 7));
        assert_eq!(identity_of(&sector).as_deref(), Some("1234abcd"));
        assert_eq!((sector[446], sector[450], sector[462], sector[466]), (0x80, 0xef, 0, 0x0c));
        assert_eq!(sector[454..458], 2048_u32.to_le_bytes());
        assert_eq!(sector[478..], [vec![0; 32], vec![0x55, 0xaa]].concat());
        sector[511] = 0;
        assert_eq!(identity_of(&sector), None);
        assert_eq!(identity_of(&[]), None);
    }
}
