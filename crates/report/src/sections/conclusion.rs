//! Sufficiency of a run that ends once its numbers are precise enough.

use punctual_analysis::enough::Shortfall;

/// Result of a run that ends once its numbers are precise enough.
pub(crate) fn enough(shortfalls: &[Shortfall]) -> String {
    const SHOWN: usize = 2;
    let shown: Vec<String> = shortfalls.iter().take(SHOWN).map(ToString::to_string).collect();
    match shortfalls.len().saturating_sub(SHOWN) {
        _ if shown.is_empty() => "Enough: every number asked for is as sure as it has to be.".to_owned(),
        0 => format!("Not enough: {}.", shown.join("; ")),
        more => format!("Not enough: {}; and {more} more.", shown.join("; ")),
    }
}
