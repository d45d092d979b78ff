//! Rust text divided into code, comments and string literals, as far as the rules need it.

/// One Rust file, divided.
pub(super) struct Source {
    /// The text with every character of comments and literals replaced by a space; line numbers are preserved.
    pub(super) code: String,
    /// String literals with the line of their opening quote, escapes unchanged.
    pub(super) strings: Vec<(usize, String)>,
}

/// Whether `c` can be part of an identifier.
pub(super) fn is_word(c: char) -> bool {
    c == '_' || c.is_alphanumeric()
}

/// Divides a text that rustc accepts; the result is approximate for other texts.
pub(super) fn divide(text: &str) -> Source {
    let chars: Vec<char> = text.chars().collect();
    let mut source = Source { code: String::with_capacity(text.len()), strings: Vec::new() };
    let (mut at, mut line) = (0, 1);
    while at < chars.len() {
        let after_word = at > 0 && is_word(chars[at - 1]);
        let end = match chars[at] {
            '/' if chars.get(at + 1) == Some(&'/') => find(&chars, at, |rest| rest[0] == '\n'),
            '/' if chars.get(at + 1) == Some(&'*') => block_comment_end(&chars, at),
            '"' => quoted_end(&chars, at),
            '\'' if is_char(&chars[at..]) => quoted_end(&chars, at),
            'r' | 'b' | 'c' if !after_word => raw_string_end(&chars, at).unwrap_or(at),
            _ => at,
        };
        if end == at {
            source.code.push(chars[at]);
            line += usize::from(chars[at] == '\n');
            at += 1;
            continue;
        }
        let piece: String = chars[at..end].iter().collect();
        if let (false, Some(open), Some(close)) = (piece.starts_with(['/', '\'']), piece.find('"'), piece.rfind('"')) {
            source.strings.push((line, piece.get(open + 1..close).unwrap_or_default().to_owned()));
        }
        source.code.extend(piece.chars().map(|c| if c == '\n' { '\n' } else { ' ' }));
        line += piece.matches('\n').count();
        at = end;
    }
    source
}

/// The first index from `at` at which `stop` holds for the rest, or the end.
fn find(chars: &[char], at: usize, stop: impl Fn(&[char]) -> bool) -> usize {
    (at..chars.len()).find(|&idx| stop(&chars[idx..])).unwrap_or(chars.len())
}

fn block_comment_end(chars: &[char], start: usize) -> usize {
    let (mut at, mut depth) = (start, 0_usize);
    while at < chars.len() {
        let step = match (chars[at], chars.get(at + 1)) {
            ('/', Some('*')) => {
                depth += 1;
                2
            }
            ('*', Some('/')) => {
                depth -= 1;
                2
            }
            _ => 1,
        };
        at += step;
        if depth == 0 {
            break;
        }
    }
    at.min(chars.len())
}

/// Index after the quote that closes the one at `start`.
fn quoted_end(chars: &[char], start: usize) -> usize {
    let mut at = start + 1;
    while at < chars.len() && chars[at] != chars[start] {
        at += if chars[at] == '\\' { 2 } else { 1 };
    }
    (at + 1).min(chars.len())
}

/// Whether a `'` opens a character literal; otherwise it is a lifetime.
fn is_char(rest: &[char]) -> bool {
    rest.get(1) == Some(&'\\') || rest.get(2) == Some(&'\'')
}

/// The end of `r"..."`, `r#"..."#`, `br"..."` and the like; `None` when no raw string starts here.
fn raw_string_end(chars: &[char], start: usize) -> Option<usize> {
    let r = if chars[start] == 'r' { start } else { start + 1 };
    let quote = find(chars, r + 1, |rest| rest[0] != '#');
    if chars.get(r) != Some(&'r') || chars.get(quote) != Some(&'"') {
        return None;
    }
    let n_hashes = quote - r - 1;
    let closes =
        |rest: &[char]| rest[0] == '"' && rest.len() > n_hashes && rest[1..=n_hashes].iter().all(|c| *c == '#');
    Some((find(chars, quote + 1, closes) + 1 + n_hashes).min(chars.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_literals_are_blanked() {
        for (text, code, strings) in [
            ("a // b\nc", "a     \nc", vec![]),
            ("a /* b /* c */ d\n*/ e", "a               \n   e", vec![]),
            (r#"f("x // y") // z"#, "f(        )     ", vec![(1, "x // y")]),
            (r#""a\"b" c"#, "       c", vec![(1, r#"a\"b"#)]),
            ("r#\"a\"b\"# c", "         c", vec![(1, "a\"b")]),
            ("br\"a\\\" c", "       c", vec![(1, "a\\")]),
            ("'\"' 'a 'b' '\\'' x", "    'a          x", vec![]),
            ("\n\n\"two\nlines\" r#type", "\n\n    \n       r#type", vec![(3, "two\nlines")]),
            ("br'x' for", "br    for", vec![]),
        ] {
            let source = divide(text);
            let found: Vec<(usize, &str)> = source.strings.iter().map(|(line, s)| (*line, s.as_str())).collect();
            assert_eq!((source.code.as_str(), found), (code, strings), "{text}");
        }
    }
}
