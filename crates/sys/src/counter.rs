//! The processor's counter of time, read without a system call: the cheapest clock of a measured thread.

use punctual_model::ClockId;

/// A counter that only grows, at a constant rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counter {
    /// A register of the processor: the time stamp counter of x86, `CNTVCT_EL0` of 64-bit Arm.
    Register,
    /// `CLOCK_MONOTONIC`, ns, through the vDSO.
    Clock,
}

/// Clock sources of the kernel that read the register themselves (arch/x86/kernel/tsc.c, kvmclock.c,
/// drivers/clocksource/hyperv_timer.c, arm_arch_timer.c).
const SOURCES: [&str; 4] = ["tsc", "kvm-clock", "hyperv_clocksource_tsc_page", "arch_sys_counter"];

impl Counter {
    /// The register, if the kernel keeps time by it (`clock_source`) and the processor promises a constant rate in all
    /// power states; the clock otherwise.
    pub fn best(clock_source: Option<&str>) -> Counter {
        let is_source = clock_source.is_some_and(|source| SOURCES.contains(&source));
        if is_source && has_constant_rate() { Counter::Register } else { Counter::Clock }
    }

    /// Name in records.
    pub fn name(self) -> &'static str {
        match self {
            Counter::Register if cfg!(target_arch = "x86_64") => "tsc",
            Counter::Register => "cntvct_el0",
            Counter::Clock => "clock_gettime",
        }
    }

    /// The current count. The processor may execute it some instructions early or late.
    #[inline]
    pub fn read(self) -> u64 {
        match self {
            #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
            Counter::Register => register(),
            _ => super::clock::now(ClockId::Monotonic).0,
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[inline]
fn register() -> u64 {
    // SAFETY: every x86-64 processor has the instruction, and `has_constant_rate` is asked before; Linux permits it to
    // programs unless they asked for the contrary (PR_SET_TSC).
    unsafe { std::arch::x86_64::_rdtsc() }
}

#[cfg(target_arch = "aarch64")]
#[inline]
fn register() -> u64 {
    let count: u64;
    // SAFETY: the instruction reads a register, and has no other effect; Linux lets programs read it.
    unsafe { std::arch::asm!("mrs {}, cntvct_el0", out(reg) count, options(nomem, nostack, preserves_flags)) };
    count
}

/// Invariant TSC: leaf 8000_0007h, EDX bit 8 (Intel SDM volume 3, 18.17.1). The architecture of Arm promises it.
fn has_constant_rate() -> bool {
    #[cfg(target_arch = "x86_64")]
    {
        const POWER: u32 = 0x8000_0007;
        let leaf = std::arch::x86_64::__cpuid;
        leaf(0x8000_0000).eax >= POWER && leaf(POWER).edx & (1 << 8) != 0
    }
    #[cfg(not(target_arch = "x86_64"))]
    cfg!(target_arch = "aarch64")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_register_is_read_only_where_the_kernel_keeps_time_by_it() {
        for source in [None, Some("hpet"), Some("acpi_pm"), Some("jiffies"), Some("")] {
            assert_eq!(Counter::best(source), Counter::Clock);
        }
        let counter = Counter::best(Some("tsc"));
        assert_eq!(counter == Counter::Register, has_constant_rate());
        let (earlier, later) = (counter.read(), counter.read());
        assert!(later >= earlier && later > 0, "{earlier} {later}");
    }
}
