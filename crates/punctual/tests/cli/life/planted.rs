//! Run directories of other users: links, pipes and devices in place of files are neither followed nor waited for.

use crate::program::machine;
use crate::session::play;
use punctual_analysis::testing::RunBuilder;

#[test]
fn what_is_planted_in_a_directory_is_neither_followed_nor_waited_for() {
    let _machine = machine();
    let mut run = RunBuilder::new();
    run.cell("none", "other").measure(0, 0, |_, _| 5_000);
    play(|scratch, _| drop(scratch.run("made", &run)));
}
