//! Limits on the structure of XML input that keep parsing linear.
//!
//! The parser compares each attribute of an element with all others, and copies the namespaces in scope for each
//! element that declares one.

use super::ParseError;
use roxmltree::Document;

/// Limit of attributes of an element; those of rteval and libvirt have up to 10.
const MAX_ATTRIBUTES: usize = 64;
/// Limit of nested elements; those of rteval and libvirt are 8 deep.
const MAX_DEPTH: usize = 64;

/// Limit of namespace declarations in a document; rteval has none, libvirt one.
const MAX_NAMESPACES: usize = 64;

/// Parses a document of this shape. Document types, and with them entities, are refused.
pub(super) fn document(text: &str) -> Result<Document<'_>, ParseError> {
    check_shape(text)?;
    Document::parse(text).map_err(|err| {
        let line = usize::try_from(err.pos().row).unwrap_or(0);
        ParseError::at(line, format!("invalid XML: {}", err.to_string().split(" at ").next().unwrap_or_default()))
    })
}

/// Rejects too many attributes or namespaces, and elements nested too deeply. Malformed XML is left to the parser.
fn check_shape(text: &str) -> Result<(), ParseError> {
    let (mut at, mut depth, mut namespaces) = (0, 0_usize, 0);
    while let Some(found) = text[at..].find('<') {
        let start = at + found;
        let rest = &text[start..];
        let skipped = [("<!--", "-->"), ("<![CDATA[", "]]>"), ("<?", "?>"), ("<!", ">")];
        if let Some((open, close)) = skipped.iter().find(|(open, _)| rest.starts_with(open)) {
            let Some(end) = rest[open.len()..].find(close) else { return Ok(()) };
            at = start + open.len() + end + close.len();
            continue;
        }
        let Some(tag) = Tag::of(rest) else { return Ok(()) };
        let too = |what: String| {
            let line = text[..start].bytes().filter(|byte| *byte == b'\n').count() + 1;
            Err(ParseError::at(line, what))
        };
        if tag.attributes > MAX_ATTRIBUTES {
            return too(format!("an element with more than {MAX_ATTRIBUTES} attributes"));
        }
        namespaces += usize::from(tag.has_namespace);
        if namespaces > MAX_NAMESPACES {
            return too(format!("more than {MAX_NAMESPACES} elements with namespaces"));
        }
        depth = if tag.closes { depth.saturating_sub(1) } else { depth + usize::from(!tag.is_empty) };
        if depth > MAX_DEPTH {
            return too(format!("elements nested more than {MAX_DEPTH} deep"));
        }
        at = start + tag.length;
    }
    Ok(())
}

/// A tag, from `<` to `>`.
#[derive(Debug)]
struct Tag {
    length: usize,
    attributes: usize,
    /// Whether the tag seems to declare a namespace.
    has_namespace: bool,
    closes: bool,
    is_empty: bool,
}

impl Tag {
    /// Parses the tag at the start of `text`; `None` if it is not terminated.
    fn of(text: &str) -> Option<Tag> {
        let mut attributes = 0;
        let mut quote = None;
        for (at, byte) in text.bytes().enumerate() {
            match (quote, byte) {
                (Some(open), _) if byte == open => quote = None,
                (None, b'"' | b'\'') => quote = Some(byte),
                (None, b'=') => attributes += 1,
                (None, b'>') => {
                    let tag = &text[..at];
                    return Some(Tag {
                        length: at + 1,
                        attributes,
                        has_namespace: attributes > 0 && tag.contains("xmlns"),
                        closes: tag.starts_with("</"),
                        is_empty: tag.ends_with('/'),
                    });
                }
                _ => {}
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_shapes_that_cost_more_than_their_length_are_refused() {
        let attributes = |n: usize| -> String {
            (0..n).fold("<rteval>\n<a".to_owned(), |all, i| format!("{all} b{i}='>'")) + "/></rteval>"
        };
        let nested = |n: usize| "<a>".repeat(n) + &"</a>".repeat(n);
        let quoted = "<a b='<!--'/>\n<!-- <c xmlns=1> -->\n<![CDATA[<d xmlns=1>]]><?e xmlns=1?>".to_owned();
        let siblings = "<a><b/></a>".repeat(1_000);
        for (text, refused) in [
            (String::new(), None),
            (attributes(64), None),
            (attributes(65), Some((2, "an element with more than 64 attributes"))),
            (nested(64), None),
            (nested(65), Some((1, "elements nested more than 64 deep"))),
            (quoted, None),
            (siblings, None),
            ("<a xmlns:b='c'/>".repeat(64), None),
            ("<a xmlns:b='c'/>\n".repeat(65), Some((65, "more than 64 elements with namespaces"))),
            ("<a b='".to_owned(), None),
            ("<!-- ".to_owned(), None),
        ] {
            let refused = refused.map_or(Ok(()), |(line, reason)| Err(ParseError::at(line, reason)));
            assert_eq!(check_shape(&text), refused, "{}", text.chars().take(50).collect::<String>());
        }
    }
}
