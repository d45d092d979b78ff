//! What guests cannot do, or not with these settings, is one line.

#[test]
fn settings_of_threads_and_domains_are_taken_over_or_named() {
    crate::session::play(|_, _| {});
}
