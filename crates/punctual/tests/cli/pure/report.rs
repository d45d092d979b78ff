//! `punctual report` of imported measurements, and what it refuses.

#[test]
fn old_data_get_a_page_of_their_own_and_beside_each_other() {
    crate::session::play(|_, _| {});
}
