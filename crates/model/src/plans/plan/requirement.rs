//! Limits on the latency of a machine.

use crate::{Level, Span, SpanError, UnknownWord};
use serde::{Deserialize, Serialize};
use std::collections::HashSet;

/// Limits on the latency of every cell; `None` where nothing is required.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Requirement {
    /// Latency limit of every wake-up. It is also the deadline by which misses are counted.
    #[serde(rename = "max_ns")]
    pub max: Option<Span>,
    /// 99 % of the wake-ups no later than this.
    #[serde(rename = "p99_ns")]
    pub p99: Option<Span>,
    /// 99.9 % of the wake-ups no later than this.
    #[serde(rename = "p999_ns")]
    pub p999: Option<Span>,
    /// 99.99 % of the wake-ups no later than this.
    #[serde(rename = "p9999_ns", default, skip_serializing_if = "Option::is_none")]
    pub p9999: Option<Span>,
    /// 99.999 % of the wake-ups no later than this.
    #[serde(rename = "p99999_ns", default, skip_serializing_if = "Option::is_none")]
    pub p99999: Option<Span>,
    /// 99.9999 % of the wake-ups no later than this.
    #[serde(rename = "p999999_ns", default, skip_serializing_if = "Option::is_none")]
    pub p999999: Option<Span>,
    /// Maximum rate of episodes of missed deadlines (the `max`, else the period), per hour.
    pub misses_per_hour: Option<f64>,
    /// Largest share of the time of a watched thread in which it may wait for a CPU, percent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting_percent: Option<f64>,
}

/// Error in a limit.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum RequirementError {
    /// Unknown limit.
    #[error(transparent)]
    Unknown(#[from] UnknownWord),
    /// Not a duration.
    #[error(transparent)]
    Span(#[from] SpanError),
    /// A limit of 0, which cannot be met.
    #[error("invalid limit `{0} = {1}`: expected more than 0")]
    Zero(String, String),
    /// Not a rate.
    #[error("invalid misses_per_hour `{0}`: expected a number above 0, like 1 or 0.01")]
    Rate(String),
    /// Not a share.
    #[error("invalid waiting `{0}`: expected a percentage above 0 and below 100, like 2%")]
    Share(String),
    /// The same limit twice.
    #[error("duplicate limit `{0}`; give each limit once")]
    Twice(String),
    /// Not `key=value`.
    #[error("invalid requirement `{0}`: expected LIMIT=VALUE, like max=1ms or p99.9=200us")]
    NoValue(String),
}

impl Requirement {
    /// Every limit in its typed form.
    pub const KNOWN: &[&str] = &["max", "p99", "p99.9", "p99.99", "p99.999", "p99.9999", "misses_per_hour", "waiting"];

    /// Whether it is a limit, in any of its spellings.
    pub(super) fn is_known(key: &str) -> bool {
        Requirement::KNOWN.contains(&name(key))
    }

    /// Whether nothing is required.
    pub fn is_empty(&self) -> bool {
        *self == Requirement::default()
    }

    /// The limit of a quantile; `None` for the median, which has none.
    fn quantile(&mut self, level: Level) -> Option<&mut Option<Span>> {
        Some(match level {
            Level::P50 => return None,
            Level::P99 => &mut self.p99,
            Level::P999 => &mut self.p999,
            Level::P9999 => &mut self.p9999,
            Level::P99999 => &mut self.p99999,
            Level::P999999 => &mut self.p999999,
        })
    }

    /// The limits of quantiles, ascending.
    pub fn quantiles(&self) -> impl Iterator<Item = (Level, Span)> {
        let mut limits = *self;
        Level::ALL.into_iter().filter_map(move |level| Some((level, (*limits.quantile(level)?)?)))
    }

    /// The latency limits by their names, the maximum first.
    pub fn limits(&self) -> impl Iterator<Item = (&'static str, Span)> {
        self.max.map(|max| ("max", max)).into_iter().chain(self.quantiles().map(|(level, limit)| (level.name(), limit)))
    }

    /// Sets one limit from its text forms. Errors: if `key` is not a limit or `value` is invalid.
    pub fn set(&mut self, key: &str, value: &str) -> Result<(), RequirementError> {
        if key == "misses_per_hour" {
            let rate = value.parse().ok().filter(|rate: &f64| rate.is_finite() && *rate > 0.0);
            self.misses_per_hour = Some(rate.ok_or_else(|| RequirementError::Rate(value.to_owned()))?);
            return Ok(());
        }
        if key == "waiting" {
            let percent = value.strip_suffix('%').and_then(|number| number.trim_end().parse().ok());
            let percent = percent.filter(|percent: &f64| 0.0 < *percent && *percent < 100.0);
            self.waiting_percent = Some(percent.ok_or_else(|| RequirementError::Share(value.to_owned()))?);
            return Ok(());
        }
        let name = name(key);
        let limit =
            if name == "max" { Some(&mut self.max) } else { name.parse().ok().and_then(|level| self.quantile(level)) };
        let limit = limit.ok_or_else(|| UnknownWord::new("requirement", key, Requirement::KNOWN))?;
        let span: Span = value.parse()?;
        if span == Span(0) {
            return Err(RequirementError::Zero(name.to_owned(), value.to_owned()));
        }
        *limit = Some(span);
        Ok(())
    }

    /// Sets limits from text like `max=1ms,p999=200us`, or `max<1ms`, `max<=1ms`, which shells require in quotes. In
    /// every form, a latency equal to its limit meets it. Errors: as [`Requirement::set`], and if a part is not
    /// `key=value`.
    pub fn set_all(&mut self, text: &str) -> Result<(), RequirementError> {
        let mut seen = HashSet::new();
        for part in text.split(',') {
            let at = part.find(['<', '=']).ok_or_else(|| RequirementError::NoValue(part.to_owned()))?;
            let (key, value) = part.split_at(at);
            let value = ["<=", "<", "="].iter().find_map(|sign| value.strip_prefix(sign)).unwrap_or(value);
            self.set(key.trim(), value.trim())?;
            if !seen.insert(name(key.trim())) {
                return Err(RequirementError::Twice(key.trim().to_owned()));
            }
        }
        Ok(())
    }
}

/// The name of a limit. A quantile may also be typed as in JSON: `p999` is `p99.9`. Of response times it may have its
/// name before it: `response_p99.9`.
fn name(key: &str) -> &str {
    let key = key.strip_prefix("response_").unwrap_or(key);
    if let Ok(level) = key.parse::<Level>() { level.name() } else { key }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_read_and_impossible_ones_refused() {
        let mut require = Requirement::default();
        assert!(require.is_empty());
        require.set_all("max=1ms, p999=200us,misses_per_hour=0.5").unwrap();
        let mut higher = Requirement::default();
        higher.set_all("p99999=2ms,p9999=1ms,p99.9999=3ms").unwrap();
        let limits: Vec<_> = higher.limits().collect();
        let ms = |ms: u64| Span(ms * 1_000_000);
        assert_eq!(limits, [("p99.99", ms(1)), ("p99.999", ms(2)), ("p99.9999", ms(3))]);
        assert_eq!(require.max, Some(Span(1_000_000)));
        assert_eq!((require.p999, require.misses_per_hour), (Some(Span(200_000)), Some(0.5)));
        let mut signs = Requirement::default();
        signs.set_all("max<1ms,p999 <= 200us,misses_per_hour<0.5").unwrap();
        assert_eq!(signs, require);
        signs.set_all("waiting<=2.5%").unwrap();
        assert_eq!(signs, Requirement { waiting_percent: Some(2.5), ..require });
        for (text, message) in [
            ("max<max=1ms", "invalid duration `max=1ms`: expected a number and a unit, like 500us, 1ms, 10s, 5min, 8h"),
            ("max", "invalid requirement `max`: expected LIMIT=VALUE, like max=1ms or p99.9=200us"),
            ("max=1ms,max=2ms", "duplicate limit `max`; give each limit once"),
            ("max=0s", "invalid limit `max = 0s`: expected more than 0"),
            ("max=1", "invalid duration `1`: expected a unit, as in 1us, 1ms, 1s, 1min or 1h"),
            ("misses_per_hour=0", "invalid misses_per_hour `0`: expected a number above 0, like 1 or 0.01"),
            ("misses_per_hour=nan", "invalid misses_per_hour `nan`: expected a number above 0, like 1 or 0.01"),
            ("waiting=2", "invalid waiting `2`: expected a percentage above 0 and below 100, like 2%"),
            ("waiting=100%", "invalid waiting `100%`: expected a percentage above 0 and below 100, like 2%"),
            (
                "p98=1ms",
                "unknown requirement `p98` (did you mean `p99`? known: max p99 p99.9 p99.99 p99.999 p99.9999 misses_per_hour \
                 waiting)",
            ),
            ("p99.9=1ms,p999=1ms", "duplicate limit `p999`; give each limit once"),
            ("response_max=1ms,max=1ms", "duplicate limit `max`; give each limit once"),
        ] {
            assert_eq!(Requirement::default().set_all(text).map_err(|e| e.to_string()), Err(message.to_owned()));
        }
    }
}
