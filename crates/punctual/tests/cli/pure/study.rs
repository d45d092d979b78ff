//! Published studies: listed and shown.

#[test]
fn studies_are_listed_shown_and_resumed_by_name() {
    crate::session::play(|_, _| {});
}
