//! Dates in files: milliseconds since 1970, up to the last one with a year of four digits.

use serde::de::{Deserialize, Deserializer, Error};

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
