//! Typed reading of TOML values.

use crate::is_plain;
use std::fmt::{Display, Write};
use std::str::FromStr;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// An error and its byte offset.
pub(super) type Located<T> = Result<T, (usize, String)>;

/// Parses the text of a document.
pub(super) fn document(text: &str) -> Located<Spanned<DeTable<'_>>> {
    DeTable::parse(text).map_err(|err| {
        let message = err.message().replace('\n', ", ");
        (err.span().map_or(0, |span| span.start), format!("invalid TOML: {message}"))
    })
}

pub(super) fn table<'a, 'i>(value: &'a Spanned<DeValue<'i>>) -> Located<&'a DeTable<'i>> {
    match value.get_ref() {
        DeValue::Table(table) => Ok(table),
        other => Err((value.span().start, format!("expected a table, found {}", kind(other)))),
    }
}

pub(super) fn boolean(value: &Spanned<DeValue<'_>>) -> Located<bool> {
    match value.get_ref() {
        DeValue::Boolean(yes) => Ok(*yes),
        other => Err((value.span().start, format!("expected true or false, found {}", kind(other)))),
    }
}

/// A text that is a word or a list of words, without control characters, so that it prints on one line.
pub(super) fn string<'a>(value: &'a Spanned<DeValue<'_>>) -> Located<&'a str> {
    let unplain = || (value.span().start, "control characters are not allowed; write it on one line".to_owned());
    Some(any_text(value)?).filter(|text| text.chars().all(is_plain)).ok_or_else(unplain)
}

pub(super) fn any_text<'a>(value: &'a Spanned<DeValue<'_>>) -> Located<&'a str> {
    match value.get_ref() {
        DeValue::String(text) => Ok(text),
        other => Err((value.span().start, format!("expected text in quotes, found {}", kind(other)))),
    }
}

pub(super) fn parsed<T: FromStr<Err: Display>>(value: &Spanned<DeValue<'_>>) -> Located<T> {
    string(value)?.parse().map_err(|err: T::Err| (value.span().start, err.to_string()))
}

/// One value as text, or a list of them.
pub(super) fn texts<T: FromStr<Err: Display>>(value: &Spanned<DeValue<'_>>) -> Located<Vec<T>> {
    match value.get_ref() {
        DeValue::Array(values) => values.iter().map(parsed).collect(),
        _ => Ok(vec![parsed(value)?]),
    }
}

pub(super) fn integer<T>(value: &Spanned<DeValue<'_>>, range: std::ops::RangeInclusive<T>) -> Located<T>
where
    T: TryFrom<u64> + PartialOrd + Display,
{
    let number = match value.get_ref() {
        DeValue::Integer(n) => u64::from_str_radix(n.as_str(), n.radix()).ok(),
        _ => None,
    };
    number.and_then(|n| T::try_from(n).ok()).filter(|n| range.contains(n)).ok_or_else(|| {
        (value.span().start, format!("expected a whole number from {} to {}", range.start(), range.end()))
    })
}

/// The kind of a TOML value, for messages.
pub(super) fn kind(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "text",
        DeValue::Integer(_) | DeValue::Float(_) => "a number",
        DeValue::Boolean(_) => "true or false",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    }
}

/// A basic string of TOML 1.0.
pub(super) fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            '\n' => quoted.push_str("\\n"),
            '\t' => quoted.push_str("\\t"),
            c if c.is_control() => {
                let _ = write!(quoted, "\\u{:04X}", u32::from(c));
            }
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}
