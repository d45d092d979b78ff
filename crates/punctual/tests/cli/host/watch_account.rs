//! Peers with known shares of a CPU, as those that a watched thread waited for.

use crate::program::{command, machine_and_scratch, run, skip_unless};
use crate::real::watch::watched;
use crate::real::watch_account::{accounted, program};
use crate::series::{Round, series};
use crate::servo::{group_with_quota, may_watch};

/// Whether a time is within 1 % of that of the scheduler, ns, which may lack `lacking` of it.
fn is_near(ours: u64, theirs: u64, lacking: u64) -> bool {
    (theirs - theirs / 100..=theirs + theirs / 100 + lacking).contains(&ours)
}

/// The peers of the program with their shares of what all of them take, percent.
const PEERS: [(&str, f64); 4] = [("peer-40", 53.3), ("peer-20", 26.7), ("peer-10", 13.3), ("peer-5", 6.7)];

#[test]
#[ignore = "host: shares of what takes the CPU"]
fn root_peers_with_known_shares_are_named_in_order_and_times_are_those_of_schedstat() {
    skip_unless!(may_watch());
    let (_machine, scratch) = machine_and_scratch("watch-peers");
    let program = program(&scratch);
    series("the four peers that a thread waits for, in order and within 5 points, its times within 1 %", || {
        let Some((account, _, [first, last])) = accounted(&scratch, &program, 2000, true) else {
            return Round::Nothing("the program did nothing, or events were lost".to_owned());
        };
        let (ran, waited) = (last[2] - first[2], last[3] - first[3]);
        // What is before the first reading and after the last one, and interrupts, which some kernels leave out.
        let beyond = account.total().ns().saturating_sub(last[0] - first[1]);
        let interrupts = account.interrupts.as_ref().map_or(0, |one| one.total.ns());
        let is_wait_near = is_near(account.waiting_for_cpu.ns(), waited, beyond);
        if !is_wait_near || !is_near(account.running.ns(), ran, beyond + interrupts) {
            return Round::Wrong(format!("ran {ran} ns, waited {waited} ns: {account:?}"));
        }
        let named =
            account.waited_for.iter().map(|one| (one.name.split(' ').next().unwrap_or(""), one.total.ns() as f64));
        let peers: Vec<(&str, f64)> = named.filter(|(name, _)| name.starts_with("peer-")).collect();
        let all: f64 = peers.iter().map(|(_, ns)| ns).sum();
        let is_right = |((name, ns), (peer, percent)): (&(&str, f64), (&str, f64))| {
            *name == peer && (ns * 100.0 / all - percent).abs() <= 5.0
        };
        let are_right = peers.len() == PEERS.len() && peers.iter().zip(PEERS).all(is_right);
        Round::right_if(are_right, || format!("{peers:?}"))
    });
}

#[test]
#[ignore = "host: time in which a quota is used up"]
fn root_a_thread_of_a_group_that_has_used_up_its_quota_is_throttled_as_long_as_the_group_counts() {
    skip_unless!(may_watch());
    let Some(group) = group_with_quota() else { return };
    let (_machine, scratch) = machine_and_scratch("watch-throttled");
    let out = scratch.path("run");
    // More than the quota of a fifth of a CPU, in one thread.
    let script = "echo $$ > \"$0\"/cgroup.procs; exec timeout 20 sh -c 'while :; do for i in 1 2 3 4 5 6 7 8 9; do \
                  for j in 1 2 3 4 5 6 7 8 9; do for k in 1 2 3 4 5 6 7 8 9; do :; done; done; done; sleep 0.001; done'";
    series("the throttled time of a thread in a group", || {
        let _ = std::fs::remove_dir_all(&out);
        let options = format!("watch --for 3s --warm-up 1s --thread sh --no-explain --wait --out {}", out.display());
        run(command(&options).args(["--", "sh", "-c", script]).arg(&group.0)).expect_success();
        let (_, watch) = watched(&out);
        let busiest = watch.threads.iter().filter_map(|one| one.account.as_ref()).max_by_key(|one| one.running);
        let Some(account) = busiest else { return Round::Nothing("no activations".to_owned()) };
        let Some(throttled) = account.throttled else { return Round::Nothing("unknown".to_owned()) };
        let (least, most, waited) = (throttled.at_least, throttled.at_most, account.waiting_for_cpu);
        // Without the quota it would have waited for other threads only.
        let is_told = least <= most && most <= waited && most.ns() * 2 > waited.ns();
        Round::right_if(is_told, || format!("{least:?} to {most:?} of {waited:?}"))
    });
}
