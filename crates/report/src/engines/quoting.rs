//! Quoting for the languages of the engines' files.

use punctual_model::is_plain;
use std::fmt::Write;

/// A string of YAML 1.1 and 1.2 in double quotes, which is JSON, too.
///
/// Characters that a YAML reader refuses or folds (control characters, line separators, byte order marks) are escaped.
pub(super) fn yaml(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            '\n' => quoted.push_str("\\n"),
            '\t' => quoted.push_str("\\t"),
            c if is_readable(c) => quoted.push(c),
            c => {
                let _ = c.encode_utf16(&mut [0; 2]).iter().try_for_each(|unit| write!(quoted, "\\u{unit:04x}"));
            }
        }
    }
    quoted.push('"');
    quoted
}

/// The text as a value of YAML, indented by `indent` blanks: a literal block where that has the same meaning, which is
/// readable, else in quotes.
pub(super) fn yaml_block(text: &str, indent: usize) -> String {
    let is_literal = text.ends_with('\n')
        && !text.ends_with("\n\n")
        && !text.starts_with([' ', '\n', '\t'])
        && text.chars().all(|c| c == '\n' || is_readable(c));
    if !is_literal {
        return yaml(text);
    }
    let lines =
        text.lines().map(|line| if line.is_empty() { "\n".to_owned() } else { format!("{:indent$}{line}\n", "") });
    format!("|\n{}", lines.collect::<String>().trim_end())
}

/// Whether a character may stand in a YAML document as it is: YAML 1.1, section 5.1, without those beyond 16 bits,
/// which some readers lack.
fn is_readable(c: char) -> bool {
    is_plain(c) && !matches!(c, '\u{feff}' | '\u{fffe}' | '\u{ffff}' | '\u{e000}'..='\u{f8ff}')
}

/// A comment: the text on one line.
pub(super) fn comment(text: &str) -> String {
    punctual_model::plain(text).into_owned()
}

/// The text as a name of Kubernetes (RFC 1123 label): lower-case letters, digits and `-`, at most `most` characters.
/// What cannot be kept becomes `-`; nothing left is `plan`.
pub(super) fn label(text: &str, most: usize) -> String {
    let mut label = String::new();
    for c in text.chars() {
        match c.to_ascii_lowercase() {
            c @ ('a'..='z' | '0'..='9') => label.push(c),
            _ if label.is_empty() || label.ends_with('-') => {}
            _ => label.push('-'),
        }
    }
    label.truncate(most);
    let label = label.trim_matches('-');
    if label.is_empty() { "plan".to_owned() } else { label.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn yaml_strings_are_json() {
        for text in [
            "",
            "a b",
            "it's \"x\"",
            "$HOME `id` \\n",
            "a\nb\tc",
            "{{ x }} {% y %}",
            "\u{85}\u{2028}\u{feff}\u{7f}\0",
            "\u{b5}s",
        ] {
            let quoted = yaml(text);
            assert_eq!(serde_json::from_str::<String>(&quoted).unwrap(), text, "{quoted}");
            assert!(!quoted.contains(['\n', '\u{2028}', '\u{feff}', '\u{85}']), "{quoted}");
        }
    }

    #[test]
    fn a_block_is_literal_only_where_that_means_the_same() {
        assert_eq!(yaml_block("a = 1\n\n[b]\n", 4), "|\n    a = 1\n\n    [b]");
        for text in ["", "no line feed", " indented\n", "two\n\n", "tab\there\n", "a\u{2028}b\n"] {
            assert_eq!(yaml_block(text, 4), yaml(text));
        }
    }

    #[test]
    fn labels_are_labels() {
        for (text, expected) in [
            ("Gate", "gate"),
            ("../a b\n{{c}}", "a-b-c"),
            ("-", "plan"),
            ("\u{e9}", "plan"),
            ("abcdefghij-k", "abcdefghij"),
            ("abcdefghi-jk", "abcdefghi"),
        ] {
            assert_eq!(label(text, 10), expected, "{text}");
        }
    }
}
