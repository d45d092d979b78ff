//! Guests and downloads of kernels that a killed process or a full disk has left half made.

use crate::program::machine;
use crate::pure::lab_kernels::system;
use crate::session::play;

#[test]
fn what_is_left_of_guests_and_downloads_is_removed_and_nothing_planted_is_used() {
    let _machine = machine();
    play(|scratch, _| system(scratch));
}
