//! `cargo xtask specification`: the promises of `docs/specification.toml` as a page.

use std::path::Path;

/// The promises, their tests and results.
pub(crate) const PATH: &str = "docs/specification.toml";

/// Prints the promises of each section, each with its tests and below it what was measured last.
pub(crate) fn print(root: &Path) -> Result<(), String> {
    let text = std::fs::read_to_string(root.join(PATH)).map_err(|err| format!("cannot read {PATH}: {err}"))?;
    print!("# Specification\n\n{}", page(&text));
    Ok(())
}

/// Comments are text, their headings begin with `##`. The file has each value on a line of its own and escapes nothing.
fn page(text: &str) -> String {
    let (mut page, mut promise) = (String::new(), "");
    for line in text.lines() {
        if line.starts_with("##") {
            page += &format!("\n{line}\n\n");
        } else if let Some(text) = line.strip_prefix("# ") {
            page += &format!("{text}\n");
        } else if let Some(value) = line.strip_prefix("promise = ") {
            promise = unquoted(value);
            if page.lines().last().is_some_and(|line| !line.is_empty() && !line.trim_start().starts_with('*')) {
                page.push('\n');
            }
        } else if let Some(value) = line.strip_prefix("test = ") {
            page += &format!("* {promise}: {}\n", unquoted(value));
        } else if let Some(value) = line.strip_prefix("    ") {
            page += &format!("  * {}\n", unquoted(value));
        }
    }
    page
}

/// A string of TOML without the quotes around it.
pub(crate) fn unquoted(value: &str) -> &str {
    value.trim_end_matches(',').trim_matches(['"', '\''])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_promise_has_its_tests_and_results() {
        let text = "## T\n\n# Text.\n\n[[promise]]\npromise = \"a\"\ntest = '`b`'\nmeasured = [\n    \"1: 2\",\n    '\"3\"',\n]\n";
        assert_eq!(page(text), "\n## T\n\nText.\n\n* a: `b`\n  * 1: 2\n  * 3\n");
    }
}
