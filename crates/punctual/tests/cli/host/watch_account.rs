//! Peers with known shares of a CPU, as those that a watched thread waited for.

use crate::program::{machine_and_scratch, skip_unless};
use crate::real::watch_account::{accounted, program};
use crate::series::{Round, series};
use crate::servo::may_watch;

/// The peers of the program with their share of the wait, percent.
const PEERS: [(&str, f64); 4] = [("peer-40", 53.3), ("peer-20", 26.7), ("peer-10", 13.3), ("peer-5", 6.7)];

#[test]
#[ignore = "host: shares of what takes the CPU"]
fn root_peers_with_known_shares_are_named_in_order() {
    skip_unless!(may_watch());
    let (_machine, scratch) = machine_and_scratch("watch-peers");
    let program = program(&scratch);
    series("the four peers that a thread waits for, in order and within 5 points", || {
        let Some((account, ..)) = accounted(&scratch, &program, 2000, true) else {
            return Round::Nothing("the program did nothing, or events were lost".to_owned());
        };
        let waited = account.waiting_for_cpu.ns() as f64;
        let share = |name: &str| {
            let named = account.waited_for.iter().find(|one| one.name.starts_with(&format!("{name} ")));
            named.map_or(0.0, |one| one.total.ns() as f64 * 100.0 / waited)
        };
        let names: Vec<&str> = account.waited_for.iter().filter_map(|one| one.name.split(' ').next()).collect();
        let peers: Vec<&str> = names.into_iter().filter(|name| name.starts_with("peer-")).collect();
        let is_near = PEERS.iter().all(|(name, percent)| (share(name) - percent).abs() <= 5.0);
        Round::right_if(is_near && peers.iter().eq(PEERS.iter().map(|(name, _)| name)), || format!("{account:?}"))
    });
}
