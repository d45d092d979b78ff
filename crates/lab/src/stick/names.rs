//! Names that the maker of a stick and the program on it share.

/// Word of the kernel's command line, which init gets in its environment: the identity of the stick.
pub(super) const STICK: &str = "PUNCTUAL_STICK";

/// The same for the place of the running kernel in the menu, from 0 on.
pub(super) const KERNEL: &str = "PUNCTUAL_STICK_KERNEL";

/// File of the initramfs with the names of all kernels, in the order of the menu.
pub(super) const KERNELS: &str = "kernels";

/// File of the second partition in which GRUB finds the kernel to boot once.
pub(super) const ENVIRONMENT: &str = "punctual.env";

/// Words of every kernel's command line. A kernel that panics restarts the machine, so that the others have their turn.
pub(super) const ARGUMENTS: &str = "quiet loglevel=4 panic=20 console=ttyS0,115200 console=tty0";
