//! Ready plans, `--set` and `--dry-run`: nothing is measured here.

#[test]
fn ready_plans_are_run_without_files_and_dry_runs_change_nothing() {
    crate::session::play(|_, _| {});
}
