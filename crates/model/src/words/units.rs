//! Times and durations: newtypes where code computes, text with a unit where users type.

use serde::de::{Deserializer, Error};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// An instant on `CLOCK_MONOTONIC`, in nanoseconds. Comparable only within one boot.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(transparent)]
pub struct MonoTime(pub u64);

impl MonoTime {
    /// `self - earlier`, exact for any two instants of one boot.
    pub fn since(self, earlier: MonoTime) -> Nanos {
        Nanos(self.0.wrapping_sub(earlier.0).cast_signed())
    }

    /// The instant `span` later; stops at the end of the clock (584 years).
    pub fn plus(self, span: Span) -> MonoTime {
        MonoTime(self.0.saturating_add(span.0))
    }
}

/// An instant on the clock that a measured thread waits by ([`crate::ClockId`]), in ns since that clock's origin.
/// Comparable only with instants of the same clock and boot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct ClockTime(pub u64);

impl ClockTime {
    /// `self - earlier`, exact for any two instants less than 292 years apart.
    pub fn since(self, earlier: ClockTime) -> Nanos {
        Nanos(self.0.wrapping_sub(earlier.0).cast_signed())
    }

    /// The instant `span` later; stops at the end of the clock.
    pub fn plus(self, span: Span) -> ClockTime {
        ClockTime(self.0.saturating_add(span.0))
    }
}

/// A signed time difference in nanoseconds: negative means "early".
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(transparent)]
pub struct Nanos(pub i64);

/// A length of time in nanoseconds, never negative. Typed with a unit: `500us`, `1ms`, `1.5s`, `2min`, `8h`, `1h30m`.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(transparent)]
pub struct Span(pub u64);

/// Parse error of a [`Span`] or a [`Period`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SpanError {
    /// No number, or something other than a number before the unit.
    #[error("invalid duration `{0}`: expected a number and a unit, like 500us, 1ms, 10s, 5min, 8h")]
    Malformed(String),
    /// A number without a unit. The unit is never guessed, because a wrong guess is a wrong measurement.
    #[error("invalid duration `{0}`: expected a unit, as in {0}us, {0}ms, {0}s, {0}min or {0}h")]
    NoUnit(String),
    /// A negative length.
    #[error("invalid duration `{0}`: expected 0 or more")]
    Negative(String),
    /// Longer than [`Span::MAX`].
    #[error("invalid duration `{0}`: expected at most 366d")]
    TooLong(String),
    /// A frequency whose period is not a whole number of nanoseconds.
    #[error(
        "invalid period `{0}`: expected a frequency with a period of whole nanoseconds, like 1kHz, or a time like 1ms"
    )]
    Frequency(String),
    /// A [`Period`] outside its range.
    #[error("invalid period `{0}`: expected 10us to 100s")]
    Period(String),
}

/// Units as typed, longest factor first so that printing finds the largest that divides.
const UNITS: [(&str, u64); 7] = [
    ("d", 86_400_000_000_000),
    ("h", 3_600_000_000_000),
    ("min", 60_000_000_000),
    ("s", 1_000_000_000),
    ("ms", 1_000_000),
    ("us", 1_000),
    ("ns", 1),
];

/// Other spellings of units: `m` as in `1h30m`, and the micro sign and the Greek letter in `µs`.
const SPELLINGS: [(&str, &str); 3] = [("m", "min"), ("\u{b5}s", "us"), ("\u{3bc}s", "us")];

/// Frequencies that a period may be given as, in Hz.
const FREQUENCIES: [(&str, u64); 3] = [("mhz", 1_000_000), ("khz", 1_000), ("hz", 1)];

impl Span {
    /// One second.
    pub const SECOND: Span = Span(1_000_000_000);
    /// The longest duration: 366 days, far inside the signed range of a latency.
    pub const MAX: Span = Span(366 * 86_400_000_000_000);

    /// The value in nanoseconds.
    pub fn ns(self) -> u64 {
        self.0
    }

    /// The value in seconds, for statistics and reports; not for clocks.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }
}

impl FromStr for Span {
    type Err = SpanError;

    fn from_str(text: &str) -> Result<Self, SpanError> {
        let malformed = || SpanError::Malformed(text.to_owned());
        let trimmed = text.trim();
        if let Some(rest) = trimmed.strip_prefix('-') {
            let is_span = rest.starts_with(|c: char| c.is_ascii_digit());
            return Err(if is_span { SpanError::Negative(text.to_owned()) } else { malformed() });
        }
        if !trimmed.is_empty() && trimmed.chars().all(is_of_number) {
            return Err(if trimmed == "0" { malformed() } else { SpanError::NoUnit(text.to_owned()) });
        }
        let ns = sum_of_parts(trimmed).ok_or_else(malformed)?;
        let ns = u64::try_from(ns).ok().filter(|ns| *ns <= Span::MAX.0);
        ns.map(Span).ok_or_else(|| SpanError::TooLong(text.to_owned()))
    }
}

fn is_of_number(c: char) -> bool {
    c.is_ascii_digit() || c == '.'
}

/// The sum of `1h30m` in ns: numbers with units, the larger unit first; `None` for any other text.
fn sum_of_parts(text: &str) -> Option<u128> {
    let (mut rest, mut sum, mut larger) = (text, 0u128, u64::MAX);
    loop {
        let (number, after) = rest.split_at(rest.find(|c| !is_of_number(c))?);
        let (unit, next) = after.split_at(after.find(is_of_number).unwrap_or(after.len()));
        let unit = unit.trim();
        let unit = SPELLINGS.iter().find(|(spelling, _)| *spelling == unit).map_or(unit, |(_, unit)| unit);
        let factor = UNITS.iter().find(|(name, factor)| *name == unit && *factor < larger)?.1;
        sum = sum.saturating_add(scaled(number, factor)?);
        if next.is_empty() {
            return Some(sum);
        }
        (rest, larger) = (next, factor);
    }
}

/// `number * factor` in integers. `None` when `number` is not a decimal number or is finer than a nanosecond.
fn scaled(number: &str, factor: u64) -> Option<u128> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    if whole.is_empty() || fraction.is_empty() || fraction.contains('.') || fraction.len() > 18 {
        return None;
    }
    let digits = u32::try_from(fraction.len()).ok()?;
    let part = fraction.parse::<u128>().ok()? * u128::from(factor);
    let scale = 10u128.pow(digits);
    let whole = if whole.len() > 20 { u128::from(u64::MAX) } else { whole.parse::<u128>().ok()? };
    (part % scale == 0).then(|| whole.saturating_mul(u128::from(factor)) + part / scale)
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (unit, factor) =
            UNITS.iter().find(|(_, factor)| self.0.is_multiple_of(*factor) && self.0 > 0).unwrap_or(&UNITS[3]);
        write!(f, "{}{unit}", self.0 / factor)
    }
}

/// The period of a cyclic thread: 10 us to 100 s.
///
/// The lower limit is where a wake-up costs as much as the period on common machines: with a shorter period a FIFO
/// thread would occupy its CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(try_from = "Span", into = "Span")]
pub struct Period(Span);

impl Period {
    /// The shortest period.
    pub const MIN: Span = Span(10_000);
    /// The same as a period.
    pub const SHORTEST: Period = Period(Period::MIN);
    /// The longest period.
    pub const MAX: Span = Span(100_000_000_000);

    /// The value in nanoseconds, never 0.
    pub fn ns(self) -> u64 {
        self.0.0
    }

    /// The value as a length of time.
    pub fn span(self) -> Span {
        self.0
    }

    /// The number of periods that fill `span`, rounded up.
    pub fn cycles_in(self, span: Span) -> u64 {
        span.0.div_ceil(self.0.0)
    }
}

impl TryFrom<Span> for Period {
    type Error = SpanError;

    fn try_from(span: Span) -> Result<Self, SpanError> {
        let in_range = (Period::MIN..=Period::MAX).contains(&span);
        if in_range { Ok(Period(span)) } else { Err(SpanError::Period(span.to_string())) }
    }
}

impl From<Period> for Span {
    fn from(period: Period) -> Span {
        period.0
    }
}

impl FromStr for Period {
    type Err = SpanError;

    /// Parses a time like `1ms`, or a frequency like `1kHz`.
    fn from_str(text: &str) -> Result<Self, SpanError> {
        match period_of_frequency(text).unwrap_or_else(|| text.parse::<Span>()) {
            Ok(span) => Period::try_from(span).map_err(|_| SpanError::Period(text.to_owned())),
            Err(SpanError::Negative(_)) => Err(SpanError::Period(text.to_owned())),
            Err(SpanError::Malformed(_)) if text.trim() == "0" => Err(SpanError::Period(text.to_owned())),
            Err(err) => Err(err),
        }
    }
}

/// One period of `1kHz`; `None` when the text is not a frequency.
fn period_of_frequency(text: &str) -> Option<Result<Span, SpanError>> {
    let lower = text.trim().to_ascii_lowercase();
    let (number, hertz) = FREQUENCIES.iter().find_map(|(unit, hertz)| Some((lower.strip_suffix(unit)?, hertz)))?;
    // In nHz, so that 0.5Hz and 44.1kHz are whole numbers.
    let nanohertz = scaled(number.trim_end(), hertz * 1_000_000_000).filter(|nanohertz| *nanohertz > 0);
    const NS_TIMES_NANOHERTZ: u128 = 1_000_000_000_000_000_000;
    let ns = nanohertz.filter(|nanohertz| NS_TIMES_NANOHERTZ.is_multiple_of(*nanohertz));
    let ns = ns.and_then(|nanohertz| u64::try_from(NS_TIMES_NANOHERTZ / nanohertz).ok());
    Some(ns.map(Span).ok_or_else(|| SpanError::Frequency(text.to_owned())))
}

impl fmt::Display for Period {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// 9999-12-31T23:59:59.999Z: later dates cannot be written in RFC 3339.
pub const LAST_UNIX_MS: u64 = 253_402_300_799_999;

/// Reads `started_unix_ms`.
pub(crate) fn started<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    checked("started_unix_ms", u64::deserialize(deserializer)?)
}

/// Reads `started_unix_ms` that may be absent.
pub(crate) fn started_if_known<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    Option::deserialize(deserializer)?.map(|ms| checked("started_unix_ms", ms)).transpose()
}

/// Reads `ended_unix_ms`.
pub(crate) fn ended<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    checked("ended_unix_ms", u64::deserialize(deserializer)?)
}

/// Reads `imported_unix_ms`.
pub(crate) fn imported<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    checked("imported_unix_ms", u64::deserialize(deserializer)?)
}

fn checked<E: Error>(field: &str, ms: u64) -> Result<u64, E> {
    if ms > LAST_UNIX_MS {
        return Err(E::custom(format_args!("invalid {field} `{ms}`: expected a date up to the year 9999")));
    }
    Ok(ms)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn durations_need_a_unit_and_keep_their_exact_value() {
        let ns = |text: &str| text.parse::<Span>().map(Span::ns);
        for (text, value) in [
            ("0s", 0),
            ("1ns", 1),
            ("500us", 500_000),
            ("1ms", 1_000_000),
            ("1.5s", 1_500_000_000),
            ("0.000001ms", 1),
            ("2min", 120_000_000_000),
            ("8h", 28_800_000_000_000),
            ("366d", Span::MAX.0),
            ("1h30m", 5_400_000_000_000),
            ("1h 30min", 5_400_000_000_000),
            ("1m", 60_000_000_000),
            ("1s500ms", 1_500_000_000),
            ("1d0.5s", 86_400_500_000_000),
            ("50µs", 50_000),
            ("50\u{3bc}s", 50_000),
        ] {
            assert_eq!(ns(text), Ok(value), "{text}");
        }
        let own = str::to_owned;
        assert_eq!(ns("foo"), Err(SpanError::Malformed(own("foo"))));
        assert_eq!(ns(""), Err(SpanError::Malformed(own(""))));
        assert_eq!(ns("1"), Err(SpanError::NoUnit(own("1"))));
        assert_eq!(ns("-5us"), Err(SpanError::Negative(own("-5us"))));
        assert_eq!(ns("367d"), Err(SpanError::TooLong(own("367d"))));
        assert_eq!(ns("99999999999999999999999d"), Err(SpanError::TooLong(own("99999999999999999999999d"))));
        for text in ["1.s", ".5s", "1..5s", "0.1ns", "1 fortnight", "1e3s", "+1s", "1msx", "30m1h", "1h30", "1s1s", "h"]
        {
            assert!(matches!(ns(text), Err(SpanError::Malformed(_))), "{text}");
        }
    }

    #[test]
    fn a_period_is_10_us_to_100_s() {
        for (text, ok) in [("9999ns", false), ("10us", true), ("100s", true), ("100.001s", false), ("0", false)] {
            assert_eq!(text.parse::<Period>().is_ok(), ok, "{text}");
        }
        assert_eq!("-5us".parse::<Period>(), Err(SpanError::Period("-5us".to_owned())));
        assert_eq!("1".parse::<Period>(), Err(SpanError::NoUnit("1".to_owned())));
    }

    #[test]
    fn a_frequency_is_the_period_that_it_has() {
        for (text, ns) in [("1kHz", 1_000_000), ("8 khz", 125_000), ("0.01Hz", Period::MAX.0), ("0.1MHz", 10_000)] {
            assert_eq!(text.parse::<Period>().map(Period::ns), Ok(ns), "{text}");
        }
        for text in ["3kHz", "0Hz", "kHz", "-1kHz"] {
            assert_eq!(text.parse::<Period>(), Err(SpanError::Frequency(text.to_owned())), "{text}");
        }
        assert_eq!("1MHz".parse::<Period>(), Err(SpanError::Period("1MHz".to_owned())));
        assert!("1kHz".parse::<Span>().is_err());
    }

    #[test]
    fn differences_are_signed() {
        assert_eq!(MonoTime(5).since(MonoTime(7)), Nanos(-2));
        assert_eq!(MonoTime(7).since(MonoTime(5)), Nanos(2));
    }

    proptest! {
        #[test]
        fn printed_durations_parse_back(ns in 0..=Span::MAX.0) {
            prop_assert_eq!(Span(ns).to_string().parse::<Span>(), Ok(Span(ns)));
        }
    }
}
