//! The scripts of `punctual export slurm`, with programs in the place of a cluster.

#[test]
fn the_scripts_report_what_is_missing_and_resume_what_is_there() {
    crate::session::play(|_, _| {});
}
