//! The account of a watched thread beside what the scheduler has counted of it between the same two instants.

use super::watch::watched;
use crate::program::{Scratch, a_cpu, command, inconclusive, machine_and_scratch, run, skip_unless};
use crate::servo::{compiled_from, did_nothing, may_watch};
use punctual_model::TimeAccount;
use std::path::Path;

/// Time, ns, by which the clock of the scheduler and that of the trace may differ at a switch.
pub(crate) const A_SWITCH_NS: u64 = 2_000;

/// What the program has logged at its beginning and at its end, ns: the clock before and after, run time and wait.
pub(crate) type Logged = [[u64; 4]; 2];

pub(crate) fn program(scratch: &Scratch) -> std::path::PathBuf {
    compiled_from(scratch, "account", include_str!("../../watched/account.c"), &[])
}

/// The account of the program's `victim`, which runs for so many milliseconds beside peers (of policy FIFO), the number
/// of its activations, and its log; `None`: it did nothing, or events were lost.
pub(crate) fn accounted(
    scratch: &Scratch,
    program: &Path,
    ms: u32,
    is_fifo: bool,
) -> Option<(TimeAccount, u64, Logged)> {
    let (log, out) = (scratch.path("log"), scratch.path("run"));
    let _ = std::fs::remove_dir_all(&out);
    let options = format!("watch --for 1h --warm-up 0s --thread victim --no-explain --wait --out {}", out.display());
    let numbers = [a_cpu().to_string(), ms.to_string(), u8::from(is_fifo).to_string()];
    let said = run(command(&options).arg("--").arg(program).arg(&log).args(numbers));
    if did_nothing(&said) {
        return None;
    }
    said.expect_success();
    let (_, watch) = watched(&out);
    let [victim]: [_; 1] = watch.threads.try_into().unwrap();
    let text = std::fs::read_to_string(log).unwrap();
    let line = |line: &str| {
        let numbers: Vec<u64> = line.split(' ').map(|word| word.parse().unwrap()).collect();
        <[u64; 4]>::try_from(numbers).unwrap()
    };
    let lines: Vec<[u64; 4]> = text.lines().map(line).collect();
    let account = victim.account.filter(|_| watch.gaps == 0)?;
    Some((account, victim.activations, Logged::try_from(lines).unwrap()))
}

#[test]
fn root_the_account_of_a_thread_is_what_the_scheduler_counts() {
    skip_unless!(may_watch());
    let (_machine, scratch) = machine_and_scratch("watch-account");
    let Some((account, n, [first, last])) = accounted(&scratch, &program(&scratch), 1000, false) else {
        return inconclusive("the program did nothing, or events were lost");
    };
    let all_ns = account.total().ns();
    let asleep = account.asleep_for.clone().unwrap();
    let asleep = [asleep.on_purpose, asleep.locks, asleep.memory, asleep.uninterruptible, asleep.stopped]
        .into_iter()
        .chain([asleep.others, asleep.unknown]);
    assert_eq!(asleep.map(|part| part.ns()).sum::<u64>(), account.asleep.ns(), "{account:#?}");
    assert!(account.interrupts.as_ref().is_some_and(|one| one.total <= account.running), "{account:#?}");
    let named: u64 = account.waited_for.iter().map(|one| one.total.ns()).sum();
    assert!(named <= account.waiting_for_cpu.ns(), "{account:#?}");
    // The account begins before the first reading and ends after the last one.
    let beyond_ns = all_ns.saturating_sub(last[0] - first[1]);
    let unknown_ns = account.unknown.unwrap().ns();
    let slack_ns = |counted_ns: u64| {
        counted_ns / 100 + 2 * A_SWITCH_NS * (n + account.waited_for.iter().map(|one| one.n).sum::<u64>())
    };
    let waited_ns = last[3] - first[3];
    let least_ns = waited_ns.saturating_sub(slack_ns(waited_ns) + unknown_ns);
    let most_ns = waited_ns + slack_ns(waited_ns) + beyond_ns;
    let waiting = least_ns..=most_ns;
    assert!(waiting.contains(&account.waiting_for_cpu.ns()), "{waited_ns} {waiting:?} {beyond_ns} {account:#?}");
    // The scheduler may leave out interrupts, and what a hypervisor takes.
    let ran_ns = last[2] - first[2];
    let least_ns = ran_ns.saturating_sub(slack_ns(ran_ns) + unknown_ns);
    assert!(account.running.ns() >= least_ns, "{ran_ns} {least_ns} {account:#?}");
    if beyond_ns + unknown_ns > waited_ns / 100 {
        inconclusive(&format!(
            "{beyond_ns} ns outside of the readings, {unknown_ns} ns unknown, {waited_ns} ns waited"
        ));
    }
}
