//! The next boot of this machine: with an installed kernel, once, without a change of what it boots by default.

mod common;
mod grub;
mod kexec;
mod unit;
mod way;

pub use common::NoBoot;
pub use unit::ResumeUnit;
pub use way::{
    BootWay, boot_next, changeable_by_others, forget_boots, installed_kernels, is_lost_by_a_boot, other_users,
    restart_system, way_to_boot,
};

#[cfg(test)]
mod tests;
