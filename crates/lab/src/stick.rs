//! A stick: a disk image from which a PC boots into this program, on kernels of the lab.
//!
//! GRUB is its boot loader, because one menu serves BIOS and UEFI, and because Debian signs it: where Secure Boot is
//! on, shim starts the signed GRUB, and that the signed kernel. The first partition holds what boots, the second one
//! the results; both are FAT, which firmware and any machine read.

mod boot_loader;
mod choices;
mod fit;
mod init;
mod layout;
mod make;
mod names;
mod terminals;
mod tools;
mod tour;
mod tour_file;
mod volume;

pub use init::{is_stick, run as run_stick};
pub use make::make as make_stick;
