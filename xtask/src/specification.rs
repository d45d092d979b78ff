//! `cargo xtask specification`: the promises of SPECIFICATION.md, each with what was measured last.

use std::collections::BTreeMap;
use std::path::Path;

/// The results of the promises.
pub(crate) const RESULTS: &str = "docs/measured.toml";

/// Prints the specification with the results below each promise.
pub(crate) fn print(root: &Path) -> Result<(), String> {
    let read =
        |name: &str| std::fs::read_to_string(root.join(name)).map_err(|err| format!("cannot read {name}: {err}"));
    let text = read(RESULTS)?;
    let results = results(&text);
    for line in read("SPECIFICATION.md")?.lines() {
        println!("{line}");
        let promise = line.strip_prefix("* ").and_then(|line| line.rsplit_once(": ")).map(|(promise, _)| promise);
        for result in promise.and_then(|promise| results.get(promise)).into_iter().flat_map(|(_, results)| results) {
            println!("  * {result}");
        }
    }
    Ok(())
}

/// Each promise with the number of its line and its results.
pub(crate) fn results(text: &str) -> BTreeMap<&str, (usize, Vec<&str>)> {
    let mut results = BTreeMap::<_, (usize, Vec<_>)>::new();
    let mut promise = "";
    for (index, line) in text.lines().enumerate() {
        if let Some(value) = line.strip_prefix("promise = ") {
            promise = unquoted(value);
            results.insert(promise, (index + 1, Vec::new()));
        } else if let (Some(value), Some((_, of))) = (line.strip_prefix("    "), results.get_mut(promise)) {
            of.push(unquoted(value));
        }
    }
    results
}

/// A string of TOML without the quotes around it; the file escapes nothing.
fn unquoted(value: &str) -> &str {
    value.trim_end_matches(',').trim_matches(['"', '\''])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_promise_has_its_results() {
        let text = "# T\n\n[[measured]]\npromise = \"a\"\nresults = [\n    \"1: 2\",\n    '\"3\"',\n]\n";
        assert_eq!(results(text), BTreeMap::from([("a", (4, vec!["1: 2", "3"]))]));
    }
}
