//! Registers of a sample by their numbers in DWARF, for each architecture.

/// Registers that are sampled: bits of `enum perf_event_*_regs`, arch/*/include/uapi/asm/perf_regs.h. Other
/// architectures have none.
pub const PERF_REGISTERS: u64 = if cfg!(target_arch = "x86_64") {
    // Segments and flags are left out.
    0xff_01ff
} else if cfg!(target_arch = "aarch64") {
    0x1_ffff_ffff
} else if cfg!(target_arch = "riscv64") {
    0xffff_ffff
} else if cfg!(target_arch = "arm") {
    0xffff
} else {
    0
};

/// Number in DWARF of the stack pointer, the return address and the frame pointer.
pub(crate) const STACK: usize = numbers().0;
pub(crate) const RETURN: usize = numbers().1;
pub(crate) const FRAME: usize = numbers().2;

const fn numbers() -> (usize, usize, usize) {
    if cfg!(target_arch = "x86_64") {
        (7, 16, 6)
    } else if cfg!(target_arch = "aarch64") {
        (31, 30, 29)
    } else if cfg!(target_arch = "riscv64") {
        (2, 1, 8)
    } else {
        (13, 14, 11)
    }
}

/// Sampled registers in the order of perf, as their numbers in DWARF; `None`: the program counter.
fn number(bit: usize) -> Option<usize> {
    const X86_64: [usize; 8] = [0, 3, 2, 1, 4, 5, 6, 7];
    if cfg!(target_arch = "x86_64") {
        // AX BX CX DX SI DI BP SP IP, then R8 to R15 from bit 16 on.
        return if bit < 8 { X86_64.get(bit).copied() } else { bit.checked_sub(8).filter(|_| bit >= 16) };
    }
    let counter = if cfg!(target_arch = "aarch64") {
        32
    } else if cfg!(target_arch = "riscv64") {
        0
    } else {
        15
    };
    Some(bit).filter(|bit| *bit != counter)
}

/// Registers of a thread.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Registers {
    /// Address of the instruction.
    pub counter: u64,
    /// By their numbers in DWARF; `None`: unknown.
    pub(crate) values: [Option<u64>; 32],
}

impl Registers {
    /// Registers of a sample: a value for each bit of [`PERF_REGISTERS`].
    pub fn of_sample(values: &[u64]) -> Registers {
        let mut registers = Registers::default();
        let bits = (0..64_usize).filter(|bit| PERF_REGISTERS >> bit & 1 == 1);
        for (bit, value) in bits.zip(values) {
            match number(bit) {
                Some(number) => registers.set(number, Some(*value)),
                None => registers.counter = *value,
            }
        }
        registers
    }

    pub(crate) fn get(&self, number: usize) -> Option<u64> {
        self.values.get(number).copied().flatten()
    }

    pub(crate) fn set(&mut self, number: usize, value: Option<u64>) {
        if let Some(known) = self.values.get_mut(number) {
            *known = value;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_sampled_register_has_its_own_number() {
        let n = PERF_REGISTERS.count_ones() as usize;
        let values: Vec<u64> = (1000..).take(n).collect();
        let registers = Registers::of_sample(&values);
        let mut found: Vec<u64> = registers.values.iter().flatten().copied().chain([registers.counter]).collect();
        found.sort_unstable();
        assert_eq!(found, values);
        if cfg!(target_arch = "x86_64") {
            // AX, BX, CX, DX; BP, SP, IP; R8.
            let numbers = [0, 3, 2, 1, 6, 7, 8].map(|number| registers.get(number));
            assert_eq!(numbers, [1000, 1001, 1002, 1003, 1006, 1007, 1009].map(Some));
            assert_eq!(registers.counter, 1008);
        }
    }
}
