//! Descriptions of all loads, their known disturbances and costs: for `punctual load --list`.

use punctual_model::AboutLoad;

const fn about(load: &'static str, does: &'static str, disturbs: &'static str, costs: &'static str) -> AboutLoad {
    AboutLoad { load, does, disturbs, costs }
}

/// All loads, in the order of `punctual_model::Load::KNOWN`. Latencies in it were measured on Debian's 6.1 in a
/// deterministic virtual machine of one CPU: a kernel without preemption / fully preemptible / `PREEMPT_RT`.
pub const CATALOGUE: &[AboutLoad] = &[
    about("none", "no load; other activity of the machine continues", "nothing", "nothing"),
    about(
        "cpu[:PERCENT]",
        "a process on each CPU computes, for the given share of its time or all of it",
        "normal threads, which take turns with it; idle states and frequency, which stay up",
        "1 process a CPU",
    ),
    about(
        "messaging[:groups=N]",
        "hackbench's pattern: in each group 20 processes send 100 bytes at a time to each of 20 others",
        "the run queue: a normal thread is one of hundreds; a real-time one hardly notices",
        "40 processes a group; 10 groups, or one for each CPU where there are more",
    ),
    about(
        "pipe",
        "a byte through a pipe to another process and back",
        "little more than a context switch does: 9 / 9 / 8 us",
        "2 processes a CPU",
    ),
    about(
        "mmap",
        "map 4 MiB, touch every page, unmap",
        "page tables are freed in long stretches: 480 / 150 / 9 us",
        "1 process and 4 MiB a CPU",
    ),
    about(
        "fork",
        "fork a process that exits at once",
        "copying page tables, RCU callbacks of ended processes: 29 / 11 / 9 us",
        "1 process a CPU, and one at a time of each",
    ),
    about(
        "exec",
        "fork a process that executes this program, which exits at once",
        "mapping and unmapping a program: 55 / 21 / 9 us; its mean tells all preemption models apart",
        "1 process a CPU, and one at a time of each",
    ),
    about(
        "tcp",
        "stream blocks of 64 KiB to another process through the loopback device",
        "network receive in soft interrupts: 58 / 20 / 9 us; its mean tells all preemption models apart",
        "2 processes a CPU",
    ),
    about(
        "udp",
        "send datagrams of 1400 bytes to another process through the loopback device",
        "network receive in soft interrupts, a packet at a time: 14 / 10 / 9 us",
        "2 processes a CPU",
    ),
    about(
        "disk[:DIR]",
        "write a file of 1 MiB, read it, sync it, remove it; in /var/tmp by default",
        "block device interrupts, kernel threads of the file system, RCU callbacks in bursts of up to 2 ms",
        "1 process and 1 MiB a CPU; refused when that is more than a tenth of what is free",
    ),
    about(
        "files[:DIR]",
        "create 100 empty files, look at each, remove them; in /var/tmp by default",
        "the directory cache and its RCU callbacks, the journal of the file system",
        "1 process a CPU, 100 empty files each",
    ),
    about(
        "sync",
        "write all dirty pages to disk (sync), 1 ms after the previous time",
        "pages of all programs are written in bursts; block device interrupts",
        "1 process a CPU",
    ),
    about(
        "memory",
        "write to 64 MiB in random order",
        "caches and TLB: every other program runs slower, the kernel's paths too",
        "1 process and 64 MiB a CPU; refused when that is more than half of what is free",
    ),
    about(
        "timers",
        "keep 1000 timers that all expire at the same instants, 10 ms apart",
        "one interrupt that handles all of them: 760 / 760 / 6 us",
        "1 process a CPU",
    ),
    about("signals", "send a signal to itself and handle it", "little: 9 / 8 / 7 us", "1 process a CPU"),
    about(
        "proc",
        "read the state, the memory map and the limits of every process",
        "walks of memory maps: 500 / 340 / 8 us",
        "1 process a CPU",
    ),
    about(
        "interrupts",
        "request timer interrupts as often as user space can",
        "the running thread is interrupted some 50 000 times a second on each CPU",
        "1 process a CPU",
    ),
    about(
        "light",
        "read all processes twice a second, as a system monitor does, and ten times a second in the first two seconds",
        "as `proc`, but less often",
        "1 process a CPU, a few percent of it",
    ),
    about(
        "cost[:DIR]",
        "carry out the operations of `measure cost`, a millisecond of each in turn; its files are in /var/tmp by default",
        "a little of everything: what a machine that does ordinary work does",
        "1 process a CPU, up to 15 more for a millisecond, 32 MiB each",
    ),
    about("high", "cpu+disk: every CPU computes, and files are written", "as both", "as both"),
    about("half", "cpu:50: every CPU computes for half of its time", "as cpu", "as cpu"),
    about("low", "light: a system monitor", "as light", "as light"),
    about(
        "stress-ng[:ARGS]",
        "stress-ng, which has hundreds of stressors, with these arguments or `--cpu 0 --vm 1`",
        "what its stressors do",
        "what its arguments say; its files go to a directory of its own",
    ),
    about(
        "hackbench:ARGS",
        "hackbench (rt-tests) with these arguments, started again whenever it ends",
        "as messaging",
        "what its arguments say",
    ),
    about(
        "ping:HOST",
        "flood a host with echo requests; without --yes only this machine",
        "network interrupts here and there",
        "1 process",
    ),
    about(
        "fio:FILE",
        "the jobs of a fio file, started again whenever they end",
        "what its jobs do",
        "what its jobs say; relative files go to a directory of its own",
    ),
    about("cmd:COMMAND", "a command for the shell, started again whenever it ends", "what it does", "what it takes"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_load_is_in_it_in_the_same_order() {
        let listed: Vec<_> = CATALOGUE.iter().map(|about| about.load).collect();
        assert_eq!(listed, punctual_model::Load::KNOWN);
    }

    #[test]
    fn presets_are_what_is_said_of_them() {
        for about in CATALOGUE {
            let Ok(load) = about.load.parse::<punctual_model::Load>() else { continue };
            if load.definition() != load.label() {
                assert!(about.does.starts_with(&format!("{}:", load.definition())), "{}", about.load);
            }
        }
    }
}
