//! The command that runs at spikes, on this machine: again once it has ended, while spikes go on.

use crate::life::on_spike::{explained_spikes, may_trace, two_cpus};
use crate::program::machine_and_scratch;
use crate::series::{Round, series};

#[test]
#[ignore = "host: runs of a command within a time"]
fn root_the_spike_command_runs_again_and_passes_over_spikes_meanwhile() {
    let Some((cpu, _)) = two_cpus().filter(|_| may_trace()) else { return };
    let (_machine, scratch) = machine_and_scratch("on-spike-again");
    let mut n = 0;
    series("spike command again", || {
        n += 1;
        let told = explained_spikes(cpu, &scratch.path(&format!("spikes-{n}"))).on_spike.unwrap();
        Round::right_if(told.runs >= 2 && told.skipped > 0, || format!("{told:?}"))
    });
}
