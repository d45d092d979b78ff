//! Names that several modules of the stick share.

/// Word of the kernel's command line, which init gets in its environment: the identity of the stick.
pub(super) const STICK: &str = "PUNCTUAL_STICK";

/// The same for the place of the running kernel in the menu, from 0 on.
pub(super) const KERNEL: &str = "PUNCTUAL_STICK_KERNEL";

/// File of the initramfs with the names of all kernels, in the order of the menu.
pub(super) const KERNELS: &str = "kernels";

/// File of the second partition in which GRUB finds the kernel to boot once.
pub(super) const ENVIRONMENT: &str = "punctual.env";

/// Words of every kernel's command line. Errors of drivers, as of a stick that is pulled out, would hide the menu; a
/// panic is shown all the same. A kernel that panics restarts the machine, so that the others have their turn.
pub(super) const ARGUMENTS: &str = "quiet loglevel=3 panic=20 console=ttyS0,115200 console=tty0";

/// Files of the first partition, with the files of packages that they are copies of. shim starts `grubx64.efi`, which
/// is beside it.
pub(super) const EFI_FILES: [(&str, &str); 2] = [
    ("EFI/BOOT/BOOTX64.EFI", "usr/lib/shim/shimx64.efi.signed"),
    ("EFI/BOOT/grubx64.efi", "usr/lib/grub/x86_64-efi-signed/grubx64.efi.signed"),
];

/// Files of packages for BIOS: modules, and the code of the first sector.
pub(super) const BIOS_MODULES: &str = "usr/lib/grub/i386-pc";
pub(super) const BIOS_SECTOR: &str = "usr/lib/grub/i386-pc/boot.img";
