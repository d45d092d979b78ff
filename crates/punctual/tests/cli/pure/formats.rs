//! Every format of a run; their content is tested next to their code, against golden files.

use crate::program::{Scratch, UNPRIVILEGED, is_root, run, set_mode, skip_unless, wrapped};
use crate::session::play;
use punctual_analysis::testing::RunBuilder;

/// A run of one block of 200 ms that keeps its limit, begun so many hours after another one.
fn a_run(hours: u64, policies: &[&str]) -> RunBuilder {
    let mut run = RunBuilder::new();
    for policy in policies {
        run.cell("none", policy);
    }
    run.header.started_unix_ms += hours * 3_600_000;
    run.header.plan.title = "punctual run".to_owned();
    run.header.cells.iter_mut().for_each(|cell| cell.duration = "200ms".parse().unwrap());
    run.require("max=10s");
    for cell in 0..policies.len() {
        run.measure(0, cell, |_, cycle| 50_000 + i64::try_from(cycle % 100).unwrap());
    }
    run
}

#[test]
fn runs_are_shown_in_every_format_and_listed() {
    play(|scratch, _| {
        scratch.run("run", &a_run(0, &["other", "other:nice=5"]));
        scratch.run("cut", &a_run(1, &["other"]));
    });
}

#[test]
fn root_a_directory_that_cannot_be_looked_into_is_named() {
    skip_unless!(is_root());
    let scratch = Scratch::new("list-closed");
    let closed = scratch.path("runs/closed");
    std::fs::create_dir_all(&closed).unwrap();
    set_mode(&closed, 0o700);
    let listed = run(&mut wrapped(&scratch, UNPRIVILEGED, "list runs"));
    assert_eq!((listed.status, listed.stdout.as_str()), (0, "no runs below runs\n"));
    assert_eq!(listed.stderr, "punctual: cannot read runs/closed: Permission denied (os error 13)\n");
}
