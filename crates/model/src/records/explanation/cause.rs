//! Causes of late wake-ups, the evidence for them, and places in the code of watched programs.

use crate::words::word::words;
use serde::{Deserialize, Serialize};

words! {
    /// Cause of a delay of a wake-up.
    json Cause {
        /// The CPU itself was stopped: by a hypervisor, or by the firmware (SMI).
        #[serde(alias = "steal")]
        CpuStalled = "CPU stalled",
        /// Interrupts were off.
        #[serde(alias = "irqs_off")]
        InterruptsOff = "interrupts off",
        /// Kernel code that may not be preempted ran, although the thread was to be switched in.
        #[serde(alias = "non_preemptible")]
        NotPreemptible = "not preemptible",
        /// A softirq ran.
        Softirq = "softirq",
        /// An interrupt was handled.
        Interrupt = "interrupt",
        /// A thread of higher priority ran.
        HigherPriority = "higher priority",
        /// A thread of the same real-time priority ran first.
        EqualPriority = "equal priority",
        /// The scheduler throttled the thread: real-time throttling, the fair server, a control group's limit, or the
        /// runtime of SCHED_DEADLINE.
        Throttling = "throttling",
        /// The priority of the thread had been lowered from outside, and others ran first.
        Demoted = "demoted",
        /// The fair scheduler let other threads run first.
        FairScheduling = "fair scheduling",
        /// Timer slack allowed the kernel to let the timer expire later.
        TimerSlack = "timer slack",
        /// The CPU was in an idle state with a long exit.
        IdleExit = "idle exit",
        /// The thread's memory was not resident.
        PageFault = "page fault",
        /// The thread was stopped (SIGSTOP, a debugger, a frozen control group).
        Stopped = "stopped",
        /// The thread itself was still running at its due time.
        OwnOverrun = "own overrun",
        /// The answer was in transit or not yet sent: the link and the peer.
        #[serde(alias = "away")]
        LinkAndTarget = "link and target",
        /// In a guest: its vCPU was ready to run, and another thread of the host had the CPU.
        #[serde(alias = "vcpu_waiting")]
        VcpuOffTheCpu = "vCPU off the CPU",
        /// In a guest: its vCPU slept, and the emulator, which was to wake it, waited for a CPU of the host.
        #[serde(alias = "emulator_waiting")]
        EmulatorOffTheCpu = "emulator off the CPU",
        /// In a guest: its vCPU ran on the host, so that the guest itself was late; its own trace says no more.
        #[serde(alias = "guest")]
        InsideTheGuest = "inside the guest",
        /// In a guest: the emulator itself was at work.
        Emulation = "emulation",
        /// In a guest: it was stopped on the host, by a signal, a debugger or over QMP.
        GuestStopped = "guest stopped",
        /// In an activation: it ran longer than usual, in its own code.
        #[serde(alias = "long_run")]
        RanLonger = "ran longer",
        /// In an activation: another thread held a lock.
        Lock = "lock",
        /// In an activation: another thread held a lock of the kernel, like that of a file or of the memory map.
        KernelLock = "kernel lock",
        /// In an activation: a thread of lower priority held a lock, and others ran instead of it.
        PriorityInversion = "priority inversion",
        /// In an activation: it waited for a disk.
        #[serde(alias = "storage")]
        Disk = "disk",
        /// In an activation: it got memory from the kernel or gave some back.
        #[serde(alias = "memory")]
        MemoryAllocation = "memory allocation",
        /// In an activation: it waited in a system call, or worked there longer than usual.
        SystemCall = "system call",
        /// In an activation: it was moved to another CPU.
        Migration = "migration",
        /// In an activation: it ran, as long as usual.
        UsualRun = "usual run",
        /// In a gap: the way into the kernel and back, around an interrupt or a switch.
        KernelEntry = "kernel entry",
        /// In a gap without an event: the firmware, which counted its interrupts meanwhile (SMI).
        Firmware = "firmware",
        /// In a gap without an event: the hypervisor, or what is below it, did not run the CPU of this machine.
        Hypervisor = "hypervisor",
        /// What every wake-up costs.
        #[serde(alias = "ordinary")]
        UsualWakeUp = "usual wake-up",
        /// No event shows the cause.
        Unknown = "unknown",
    }
}

words! {
    /// Evidence for a cause, strongest first.
    json Evidence {
        /// Events show it.
        Direct = "direct",
        /// The only sound interpretation of incomplete events.
        Inferred = "inferred",
        /// Two causes would leave the same trace.
        #[serde(alias = "two_readings")]
        Ambiguous = "ambiguous",
        /// Events are missing.
        #[serde(alias = "cannot_tell")]
        Undetermined = "undetermined",
    }
}

impl Evidence {
    /// Position in [`Evidence::ALL`].
    pub fn index(self) -> usize {
        self as usize
    }
}

/// One frame of a stack. Names come from files of the watched program and may contain anything that is printable.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, schemars::JsonSchema)]
pub struct CodeFrame {
    /// Function; `null` without symbols.
    pub function: Option<String>,
    /// Source file, as the compiler or interpreter recorded it; `null` without debug information.
    pub file: Option<String>,
    /// Line in it; `null` without debug information.
    pub line: Option<u32>,
    /// Name of the mapped file, without its directory, like `libc.so.6`, or of another mapping, like `[vdso]`; of code
    /// that was made at run time its map, like `perf-4711.map`; of Python the file of the interpreter.
    pub object: String,
    /// Address of the instruction as in that file, as `objdump -d` and `addr2line` have it; `null` where no file tells.
    pub address: Option<u64>,
}

/// What made the kernel, or this program, take a sample of a stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum SampledAt {
    /// The thread left the CPU.
    Switch,
    /// A page fault.
    Fault,
    /// A time on the CPU was over.
    Clock,
    /// This program read the frames of an interpreter while the thread slept.
    Asleep,
    /// The same while it ran or waited for a CPU.
    Running,
}

/// The place in the code of a share of a late activation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct CodePlace {
    /// The innermost frame of the program itself; of those, one with a line, if any has one.
    pub at: CodeFrame,
    /// Number of samples with this function.
    pub samples: u32,
    /// Number of samples in the share: one for each sleep, and one for a quarter of a millisecond of running, or for a
    /// millisecond of running Python.
    pub of: u32,
    /// Stack of one of these samples, innermost frame first: up to [`CodePlace::FRAMES`].
    pub stack: Vec<CodeFrame>,
}

impl CodePlace {
    /// The most frames that are kept of one stack.
    pub const FRAMES: usize = 16;
}
