//! The scheduling policy inherited from the caller: `chrt`, `nice`, systemd's `CPUSchedulingPolicy=`.

use crate::program::{a_cpu, is_root, machine_and_scratch, run, skip_unless, wrapped};

/// Callers, each as the words of a command. `-d` is 1 ms in each 10 ms; such a thread cannot create another.
const CALLERS: [&[&str]; 7] = [
    &["chrt", "-f", "50"],
    &["chrt", "-f", "99"],
    &["chrt", "-r", "99"],
    &["chrt", "-b", "0"],
    &["chrt", "-i", "0"],
    &["chrt", "-d", "--sched-runtime", "1000000", "--sched-deadline", "10000000", "--sched-period", "10000000", "0"],
    &["nice", "-n", "5"],
];

#[test]
fn root_cyclictest_ignores_the_policy_of_its_caller() {
    skip_unless!(is_root());
    let (_machine, scratch) = machine_and_scratch("inherited-cyclictest");
    for caller in CALLERS {
        for (options, policy) in [("-p 80", "fifo:80"), ("", "other"), ("--policy=batch", "batch")] {
            let said = run(&mut wrapped(&scratch, caller, &format!("cyclictest -q -l 20 -t1 {options}")));
            let line = format!("# Policies: {policy}\n");
            assert!(said.status == 0 && said.stdout.contains(&line), "{caller:?} {options}: {said:?}");
        }
    }
}

#[test]
fn root_measuring_does_not_depend_on_the_callers_policy() {
    skip_unless!(is_root());
    let (_machine, scratch) = machine_and_scratch("inherited-measure");
    for caller in CALLERS {
        let words = format!(
            "measure --wait --cpus {} --duration 100ms --policy other --timer-slack 20us --format json",
            a_cpu()
        );
        let said = run(&mut wrapped(&scratch, caller, &words));
        assert_eq!(said.status, 0, "{caller:?}: {said:?}");
        assert_eq!(said.json()["cells"][0]["cell"]["timer_slack_ns"], 20_000, "{caller:?}");
    }
}
