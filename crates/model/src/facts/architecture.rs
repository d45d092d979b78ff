//! Architectures of lab guests.

use crate::words::word::words;

words! {
    /// Architecture of a kernel and of the programs of its guests.
    Architecture {
        /// 64-bit x86.
        X86_64 = "x86_64",
        /// 64-bit Arm, little-endian.
        Aarch64 = "aarch64",
        /// 64-bit RISC-V.
        Riscv64 = "riscv64",
    }
}

impl Architecture {
    /// The architecture that this program was built for; `None` if the lab has no guests of it.
    pub const OWN: Option<Architecture> = if cfg!(target_arch = "x86_64") {
        Some(Architecture::X86_64)
    } else if cfg!(target_arch = "aarch64") {
        Some(Architecture::Aarch64)
    } else if cfg!(target_arch = "riscv64") {
        Some(Architecture::Riscv64)
    } else {
        None
    };

    /// Debian's name, which ends the names of its kernel packages.
    pub fn debian(self) -> &'static str {
        match self {
            Architecture::X86_64 => "amd64",
            Architecture::Aarch64 => "arm64",
            Architecture::Riscv64 => "riscv64",
        }
    }

    /// Number in the header of ELF files: `EM_X86_64`, `EM_AARCH64`, `EM_RISCV` (linux/elf-em.h).
    pub fn elf_machine(self) -> u16 {
        match self {
            Architecture::X86_64 => 62,
            Architecture::Aarch64 => 183,
            Architecture::Riscv64 => 243,
        }
    }
}
