//! Programs of a plan of another user run only with consent, and so does a flood of another machine.

use crate::program::{machine, set_mode};
use crate::session::play;

/// A plan of one short cell that runs a command.
const PLAN: &str = "repetitions = 1\nduration = \"100ms\"\n[loads]\nquiet = \"cmd:sleep 60\"\n\
                    [axes]\nload = [\"quiet\"]\npolicy = [\"other\"]\n";

#[test]
fn what_a_plan_of_others_would_do_needs_yes() {
    let _machine = machine();
    play(|scratch, _| {
        // Only its owner may write it, whatever the umask.
        set_mode(scratch.dir(), 0o755);
        set_mode(scratch.file("plan.toml", PLAN), 0o644);
    });
}
