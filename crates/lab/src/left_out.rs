//! Programs for boards, which can be guests and start none.

/// Whether this program starts guests. What follows the test is left out by the compiler otherwise.
pub const STARTS_GUESTS: bool = cfg!(feature = "guests");

/// Why it starts none.
pub fn left_out() -> String {
    punctual_model::left_out("the lab", "guests")
}
