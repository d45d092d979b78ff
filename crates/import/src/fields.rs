//! Parsers for numbers, times and options in the notation of these tools.

use super::error::{ParseError, cut};
use punctual_model::{Period, Span};
use std::str::FromStr;

/// Lines with their number from 1, without blanks at their ends.
pub(super) fn numbered(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.lines().enumerate().map(|(i, text)| (i + 1, text.trim()))
}

pub(super) fn number<T: FromStr>(word: &str, line: usize, what: &str) -> Result<T, ParseError> {
    word.trim().parse().map_err(|_| ParseError::at(line, format!("invalid {what} `{}`", shortened(word.trim()))))
}

/// Converts `value` units of `unit_ns` to ns.
pub(super) fn ns(value: i64, unit_ns: u64) -> Result<i64, String> {
    let ns = i64::try_from(unit_ns).ok().and_then(|unit| value.checked_mul(unit));
    let is_sane = |ns: &i64| ns.unsigned_abs() <= Span::MAX.ns();
    ns.filter(is_sane).ok_or_else(|| format!("invalid latency {value}: longer than a year"))
}

/// Parses a latency in microseconds with decimals; returns ns.
pub(super) fn us(word: &str, line: usize) -> Result<i64, ParseError> {
    decimal(word, 1_000, line)
}

/// Parses a latency of `unit_ns` with decimals; returns ns.
pub(super) fn decimal(word: &str, unit_ns: u64, line: usize) -> Result<i64, ParseError> {
    let value: f64 = number(word, line, "latency")?;
    rounded(value * unit_ns as f64).ok_or_else(|| {
        ParseError::at(line, format!("invalid latency `{}`: longer than a year", shortened(word.trim())))
    })
}

/// A latency in whole ns; `None` beyond a year.
pub(super) fn rounded(ns: f64) -> Option<i64> {
    #[expect(clippy::cast_possible_truncation, reason = "rounded and below 2^55")]
    let whole = |ns: f64| ns.round() as i64;
    Some(ns).filter(|ns| ns.abs() <= Span::MAX.ns() as f64).map(whole)
}

/// A period in microseconds; `None` outside the range of [`Period`].
pub(super) fn period_us(us: u64) -> Option<Period> {
    Period::try_from(Span(us.checked_mul(1_000)?)).ok()
}

/// Parses `HH:MM:SS`; hours may have any number of digits.
pub(super) fn clock(word: &str) -> Option<Span> {
    let mut parts = word.trim().splitn(3, ':').map(|part| part.parse::<u64>().ok());
    let (hours, minutes, seconds) = (parts.next()??, parts.next()??, parts.next()??);
    seconds_span(hours.checked_mul(3_600)?.checked_add(minutes.checked_mul(60)?)?.checked_add(seconds)?)
}

/// A number of seconds as a span; `None` beyond a year.
pub(super) fn seconds_span(seconds: u64) -> Option<Span> {
    seconds.checked_mul(Span::SECOND.ns()).map(Span).filter(|span| *span <= Span::MAX)
}

/// The value of an option in a command line: `-i100`, `-i 100`, `--interval=100`.
pub(super) fn option<'a>(command_line: &'a str, short: &str, long: &str) -> Option<&'a str> {
    let mut words = command_line.split_whitespace();
    while let Some(word) = words.next() {
        if word == short || word == long {
            return words.next();
        }
        let attached = word.strip_prefix(long).and_then(|rest| rest.strip_prefix('='));
        let of_short = word.strip_prefix(short).filter(|_| !word.starts_with("--"));
        if let Some(value) = attached.or(of_short) {
            return Some(value);
        }
    }
    None
}

/// A word shortened and without control characters, for error messages.
pub(super) fn shortened(word: &str) -> String {
    cut(word, 40)
}
