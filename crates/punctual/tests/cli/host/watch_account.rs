//! Peers with known shares of a CPU, as those that a watched thread waited for.

use crate::program::{machine_and_scratch, skip_unless};
use crate::real::watch_account::{accounted, program};
use crate::series::{Round, series};
use crate::servo::may_watch;

/// The peers of the program with their shares of what all of them take, percent.
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
