//! The language of comments, messages and documents: words to avoid, and the width of comments.

use super::Violation;
use super::tree::Tree;

/// Characters of a comment line, indent included; code has the same width (rustfmt.toml).
const MAX_WIDTH: usize = 120;

/// This file holds the words that it looks for.
const SELF: &str = "xtask/src/tidy/words.rs";

/// A word or phrase to avoid, the reason, and the replacement.
struct Avoided {
    words: &'static str,
    reason: &'static str,
    instead: &'static str,
}

const fn avoid(words: &'static str, reason: &'static str, instead: &'static str) -> Avoided {
    Avoided { words, reason, instead }
}

/// In comments and documents.
const IN_PROSE: &[Avoided] = &[
    avoid("whoever", PERSON, NAME_IT),
    avoid("whosoever", PERSON, NAME_IT),
    avoid("nobody", PERSON, NAME_IT),
    avoid("somebody", PERSON, NAME_IT),
    avoid("goes home", PERSON, "write exits, returns or is joined"),
    avoid("hired", PERSON, "write forked, spawned or started"),
    avoid("patience", FIELD, "write timeout"),
    avoid("manners", FIELD, "write grace period or shutdown"),
    avoid("colour", SPELLING, "write color"),
    avoid("behaviour", SPELLING, "write behavior"),
    avoid("optimise", SPELLING, "write optimize"),
    avoid("optimised", SPELLING, "write optimized"),
    avoid("initialise", SPELLING, "write initialize"),
    avoid("initialised", SPELLING, "write initialized"),
    avoid("neighbour", SPELLING, "write neighbor"),
    avoid("favour", SPELLING, "write favor"),
];

/// In string literals: messages of the program.
const IN_MESSAGES: &[Avoided] = &[
    avoid("is no", INVERTED, INVALID),
    avoid("are no", INVERTED, INVALID),
    avoid("takes none", INVERTED, INVALID),
    avoid("takes no", INVERTED, INVALID),
    avoid("has no such", INVERTED, INVALID),
    avoid("nobody", PERSON, NAME_IT),
    avoid("somebody", PERSON, NAME_IT),
    avoid("whoever", PERSON, NAME_IT),
    avoid("patience", FIELD, "write timeout"),
];

const PERSON: &str = "a process or a device is not a person";
const FIELD: &str = "the field has a term for it";
const INVERTED: &str = "an error names the wrong value and the expected form";
const SPELLING: &str = "the spelling is American";
const NAME_IT: &str = "name the process, thread, user or machine";
const INVALID: &str = "write invalid X `value`: expected FORM, or unsupported: ..., or cannot VERB OBJECT: REASON";

/// Checks the words of comments, documents and messages.
pub(super) fn avoided(tree: &Tree) -> Vec<Violation> {
    let mut found = Vec::new();
    for file in [".rs", ".md"].iter().flat_map(|end| tree.files(end)).filter(|file| file.path != SELF) {
        let is_rust = file.path.ends_with(".rs");
        let (mut is_block, mut is_test) = (false, file.is_test());
        for (index, line) in file.text.lines().enumerate() {
            is_test |= line.trim() == "#[cfg(test)]";
            // Output and code that a document quotes.
            is_block ^= !is_rust && line.trim_start().starts_with("```");
            let (text, words) = match (is_rust, line.trim_start().starts_with("//")) {
                (false, _) if is_block => continue,
                (false, _) | (true, true) => (without_code(line), IN_PROSE),
                (true, false) if is_test => continue,
                (true, false) => (literals(line), IN_MESSAGES),
            };
            for Avoided { words, reason, instead } in words.iter().filter(|avoided| has_phrase(&text, avoided.words)) {
                found.push(Violation::new(&file.path, index + 1, format!("`{words}`: {reason}"), *instead));
            }
        }
    }
    found
}

/// Checks the width of comment lines, which rustfmt leaves alone.
pub(super) fn width(tree: &Tree) -> Vec<Violation> {
    let mut found = Vec::new();
    for file in tree.files(".rs") {
        for (index, line) in file.text.lines().enumerate() {
            let n = line.chars().count();
            let comment = line.trim_start();
            // Quoted output, four blanks after the slashes, stays as it is.
            let is_quoted = comment.trim_start_matches(['/', '!']).starts_with("     ");
            if n > MAX_WIDTH && comment.starts_with("//") && !comment.contains("://") && !is_quoted {
                let what = format!("a comment of {n} characters");
                found.push(Violation::new(&file.path, index + 1, what, format!("wrap it at {MAX_WIDTH}")));
            }
        }
    }
    found
}

/// Checks that texts of the program, in `crates/*/src`, plans and studies, do not point to pages of docs/, which no
/// package installs.
pub(super) fn pointers(tree: &Tree) -> Vec<Violation> {
    let mut found = Vec::new();
    let is_text = |path: &str| {
        path.starts_with("crates/") && path.contains("/src/")
            || ["plans/", "studies/"].iter().any(|dir| path.starts_with(dir))
    };
    for file in [".rs", ".txt", ".toml"].iter().flat_map(|end| tree.files(end)).filter(|file| is_text(&file.path)) {
        let mut is_test = file.is_test();
        for (number, line) in file.lines() {
            is_test |= line.trim() == "#[cfg(test)]";
            let code = line.split(" // ").next().unwrap_or_default();
            let is_pointer = code.contains("docs/") && code.contains(".md") && !code.contains("include_str!");
            if is_pointer && !is_test && !line.trim_start().starts_with("//") {
                let what = "a text points to a page of docs/, which is not installed";
                found.push(Violation::new(&file.path, number, what, "write punctual help guide NAME"));
            }
        }
    }
    found
}

/// Checks that no text of the program prints a value as `Debug` does: names of variants are not words of the glossary.
pub(super) fn debug(tree: &Tree) -> Vec<Violation> {
    let mut found = Vec::new();
    let is_shipped = |path: &str| path.starts_with("crates/") && !path.contains("/tests") && !path.ends_with("fuzz.rs");
    for file in tree.files(".rs").filter(|file| is_shipped(&file.path) && !file.is_test()) {
        for (line, text) in file.lines().take_while(|(_, text)| text.trim() != "#[cfg(test)]") {
            let is_checked = text.contains("assert") || text.contains("panic!") || text.trim_start().starts_with("//");
            if !is_checked && [":?}", ":#?}"].iter().any(|end| literals(text).contains(end)) {
                found.push(Violation::new(
                    &file.path,
                    line,
                    "a text with `{:?}`",
                    "implement Display, with the words of users",
                ));
            }
        }
    }
    found
}

/// The line without what stands between backticks, in lower case.
fn without_code(line: &str) -> String {
    line.split('`').step_by(2).collect::<Vec<_>>().join("`").to_lowercase()
}

/// The contents of the string literals that begin on this line, in lower case.
fn literals(line: &str) -> String {
    line.split('"').skip(1).step_by(2).collect::<Vec<_>>().join("\"").to_lowercase()
}

/// Whether the text has the phrase as whole words.
fn has_phrase(text: &str, phrase: &str) -> bool {
    let is_letter = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
    text.match_indices(phrase).any(|(at, _)| {
        !is_letter(text[..at].chars().next_back()) && !is_letter(text[at + phrase.len()..].chars().next())
    })
}

#[cfg(test)]
mod tests {
    use super::super::lines;
    use super::*;

    #[test]
    fn texts_print_no_names_of_variants() {
        let line = "let text = format!(\"cannot be compared: {refusal:?}\");\n";
        for (path, text, n) in [
            ("crates/a/src/a.rs", line.to_owned(), 1),
            ("crates/a/src/a.rs", format!("#[cfg(test)]\n{line}"), 0),
            ("crates/a/src/a.rs", format!("// {line}"), 0),
            ("crates/a/src/a.rs", "assert!(is_right, \"{refusal:?}\");\n".to_owned(), 0),
            ("crates/a/tests/a.rs", line.to_owned(), 0),
            ("xtask/src/a.rs", line.to_owned(), 0),
        ] {
            assert_eq!(lines(debug, &[(path, &text)]).len(), n, "{path} {text}");
        }
    }

    #[test]
    fn words_are_avoided_where_they_are_read() {
        let person = "`nobody`: a process or a device is not a person; name the process, thread, user or machine";
        for (path, text, want) in [
            ("a.rs", "//! Files.\n// Nobody reads it.\n", vec![format!("a.rs:2: {person}")]),
            ("a.rs", "let a = \"nobody\"; // nobody\n", vec![format!("a.rs:1: {person}")]),
            ("a.rs", "let nobody = 1;\n/// The user `nobody`.\n", vec![]),
            ("a.rs", "#[cfg(test)]\nmod tests {\n    \"nobody\"\n", vec![]),
            ("a.md", "nobody\n```text\nnobody\n```\n", vec![format!("a.md:1: {person}")]),
            ("a.rs", "\"it is not here, it is nothing\"\n", vec![]),
            ("a.rs", "\"`x` is no link\"\n", vec![format!("a.rs:1: `is no`: {INVERTED}; {INVALID}")]),
        ] {
            assert_eq!(lines(avoided, &[(path, text)]), want, "{text}");
        }
    }

    #[test]
    fn texts_point_to_what_is_installed() {
        let what = "a text points to a page of docs/, which is not installed; write punctual help guide NAME";
        for (path, text, is_found) in [
            ("crates/a/src/b.rs", "const A: &str = \"\\\nsee docs/b.md\";\n", true),
            ("crates/a/src/b.txt", "\nsee docs/b.md\n", true),
            ("plans/b.toml", "\n# docs/b.md\n", true),
            ("crates/a/src/b.rs", "\ninclude_str!(\"../docs/b.md\")\n", false),
            ("crates/a/src/b.rs", "\n/// See docs/b.md\nf(); // docs/b.md\n", false),
            ("crates/a/src/b.rs", "#[cfg(test)]\n\"docs/b.md\"\n", false),
            ("crates/a/tests/b.rs", "\n\"docs/b.md\"\n", false),
            ("xtask/src/b.rs", "\n\"docs/b.md\"\n", false),
        ] {
            let want = if is_found { vec![format!("{path}:2: {what}")] } else { vec![] };
            assert_eq!(lines(pointers, &[(path, text)]), want, "{text}");
        }
    }

    #[test]
    fn comments_have_the_width_of_code() {
        let comment = |n: usize| format!("// {}\n", "x".repeat(n - 3));
        assert_eq!(lines(width, &[("a.rs", &comment(120))]).len(), 0);
        assert_eq!(lines(width, &[("a.rs", &comment(121))]), ["a.rs:1: a comment of 121 characters; wrap it at 120"]);
        assert_eq!(lines(width, &[("a.md", &comment(200))]).len(), 0);
    }
}
