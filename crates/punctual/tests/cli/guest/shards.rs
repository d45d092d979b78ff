//! Shards of guests in virtual time: a run made apart has the same bits.

use crate::guest::vm::{in_virtual_time, kernel};
use crate::life::shards::{lines, merge};
use crate::program::{Scratch, Start, entries, run};
use std::os::unix::process::ExitStatusExt;

/// A plan of guests: cells of two kernels in so many phases.
pub(crate) fn virtual_plan(scratch: &Scratch, phases: u32, duration: &str) -> Option<String> {
    let kernel = kernel()?;
    let text = format!(
        "repetitions = {phases}\nduration = \"{duration}\"\nwarm_up = \"20ms\"\n[axes]\n\
         kernel = [\"{kernel} preempt=full\", \"{kernel} preempt=none\"]\nload = [\"none\"]\npolicy = [\"fifo:90\"]\n\
         period = [\"1ms\"]\n",
        kernel = kernel.display()
    );
    Some(scratch.file("plan.toml", text).display().to_string())
}

#[test]
fn vm_shards_in_virtual_time_merge_to_the_same_bits_as_one_run() {
    let scratch = Scratch::new("shards-virtual");
    let Some(plan) = virtual_plan(&scratch, 3, "50ms") else { return };
    let begun = |arguments: &str, name: &str| {
        let arguments = format!("run {arguments} --wait --out {}", scratch.path(name).display());
        (in_virtual_time(&scratch, &arguments), scratch.path(name))
    };
    let made = |arguments: &str, name: &str| {
        let (mut command, out) = begun(arguments, name);
        run(&mut command).expect_success();
        out
    };
    let alone = made(&format!("{plan} --shard 1/1"), "alone");
    // A shard is killed while it measures, and resumed.
    let (mut command, killed) = begun(&format!("{plan} --shard 2/4"), "2of4");
    let ended = command.env("PUNCTUAL_FAIL_AT", "kill:record-kept").start_silent().wait().unwrap();
    assert_eq!((ended.signal(), entries(&killed).len()), (Some(libc::SIGKILL), 1));
    made("--resume", "2of4");
    let others = ["1/4", "3/4", "4/4"].map(|one| made(&format!("{plan} --shard {one}"), &one.replace('/', "of")));
    assert_eq!([&others[0], &killed, &others[1]].map(|dir| entries(dir).len()), [2, 2, 1]);
    let out = scratch.path("whole");
    merge(&[&others[2], &killed, &others[0], &others[1]], &out, "").expect_success();
    assert_eq!(lines(&out), lines(&alone), "to the bit");
}
