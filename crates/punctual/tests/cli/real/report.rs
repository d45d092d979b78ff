//! What a run leaves: its page, and the records from which the page and every report are made again.

use crate::program::machine;

#[test]
fn a_run_leaves_its_page_and_report_makes_it_again() {
    let _machine = machine();
    crate::session::play(|_, _| {});
}
