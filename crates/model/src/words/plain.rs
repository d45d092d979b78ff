//! Text from other sources made safe to print: characters that act on a terminal or a page are replaced.

use std::borrow::Cow;

/// The replacement of an unsafe character.
const TAKEN_OUT: char = '\u{fffd}';

/// Whether a character prints as itself.
///
/// Control characters move the cursor, change colors and titles (ECMA-48). Bidirectional formatting characters reorder
/// the text after them (Unicode Standard Annex 9, table 4). Line and paragraph separators begin a line.
pub fn is_plain(c: char) -> bool {
    let is_direction =
        matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    !(c.is_control() || is_direction || matches!(c, '\u{2028}' | '\u{2029}'))
}

/// The text on one line, with U+FFFD in place of each unsafe character. Line feeds and tabs become blanks.
pub fn plain(text: &str) -> Cow<'_, str> {
    if text.chars().all(is_plain) {
        return Cow::Borrowed(text);
    }
    let shown = |c| match c {
        '\n' | '\r' | '\t' => ' ',
        c if is_plain(c) => c,
        _ => TAKEN_OUT,
    };
    Cow::Owned(text.chars().map(shown).collect())
}

/// The text as one word of a POSIX shell, quoted where it has to be.
pub fn shell_word(text: &str) -> Cow<'_, str> {
    let is_literal = |c: char| c.is_ascii_alphanumeric() || "_-./:=@%+,".contains(c);
    if !text.is_empty() && text.chars().all(is_literal) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(format!("'{}'", plain(text).replace('\'', r"'\''")))
}

/// FNV-1a, 64 bits (Fowler, Noll, Vo): stable, and not a security boundary.
pub fn fnv1a(text: &str) -> u64 {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    text.bytes().fold(0xcbf2_9ce4_8422_2325, step)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_acts_upon_a_terminal_is_taken_out() {
        for (text, shown) in [
            ("", ""),
            ("gate, 80 \u{b5}s, \u{65e5}\u{672c}", "gate, 80 \u{b5}s, \u{65e5}\u{672c}"),
            ("\x1b]0;title\x07\x1b[2Jx", "\u{fffd}]0;title\u{fffd}\u{fffd}[2Jx"),
            ("a\nb\r\tc", "a b  c"),
            ("\u{9b}2J\x7f\0", "\u{fffd}2J\u{fffd}\u{fffd}"),
            ("\u{202e}txt\u{2066}\u{2069}\u{200f}", "\u{fffd}txt\u{fffd}\u{fffd}\u{fffd}"),
            ("a\u{2028}b\u{85}c", "a\u{fffd}b\u{fffd}c"),
        ] {
            assert_eq!(plain(text), shown, "{text:?}");
        }
    }

    #[test]
    fn words_are_quoted_for_a_shell_where_needed() {
        for (text, word) in [
            ("runs/2026-11-22-040855", "runs/2026-11-22-040855"),
            ("", "''"),
            ("a b", "'a b'"),
            ("it's", r"'it'\''s'"),
            ("$HOME;*~", "'$HOME;*~'"),
            ("a\n\x1b", "'a \u{fffd}'"),
        ] {
            assert_eq!(shell_word(text), word);
        }
    }

    #[test]
    fn known_answers() {
        // From the authors' test vectors (draft-eastlake-fnv).
        assert_eq!(fnv1a(""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(fnv1a("a"), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(fnv1a("foobar"), 0x8594_4171_f739_67e8);
    }
}
