//! Recorded traces: judged without a machine, the same everywhere; what cannot be read is one line.

use crate::session::play;
use punctual_ftrace::testing::loop_file;

#[test]
fn a_recorded_trace_has_its_threads_and_why_they_were_late() {
    // A thread with a period of 2 ms.
    play(|scratch, _| drop(scratch.file("trace.dat", loop_file(0))));
}
