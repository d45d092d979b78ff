//! JSON of files that may come from another user, read without terminal control characters.

use punctual_model::{is_plain, plain};
use serde::de::Error;
use serde_json::Value;
use std::borrow::Cow;

/// A parser of `punctual_model::json`.
pub(super) type Parse<T> = fn(&[u8]) -> serde_json::Result<T>;

/// Parts of a run that `--resume` carries out again: control characters in them are an error and not replaced.
const STRICT_PARTS: [&str; 3] = ["plan", "cells", "cell"];

/// Reads a value from one line. Its texts are displayed on one line: characters that move a cursor or begin another
/// line are replaced. Errors: if it is not such a value, or has a control character in a text of its plan.
pub(super) fn from_str<T>(line: &str, parse: Parse<T>) -> serde_json::Result<T> {
    // ASCII without escapes needs no replacement: this is the case for nearly all lines.
    let is_clean = line.is_ascii() && !line.contains('\\');
    if is_clean {
        return parse(line.as_bytes());
    }
    let mut value: Value = serde_json::from_slice(line.as_bytes())?;
    let text = if clean(&mut value, false)? { Cow::Owned(value.to_string()) } else { Cow::Borrowed(line) };
    parse(text.as_bytes())
}

/// Cleans all texts below `value`. Returns whether one was changed.
fn clean(value: &mut Value, is_carried_out: bool) -> serde_json::Result<bool> {
    match value {
        Value::String(text) if text.chars().all(is_plain) => Ok(false),
        Value::String(text) if is_carried_out => {
            Err(serde_json::Error::custom(format_args!("a control character in `{}`", plain(text))))
        }
        Value::String(text) => {
            *text = plain(text).into_owned();
            Ok(true)
        }
        Value::Array(items) => items.iter_mut().try_fold(false, |any, item| Ok(clean(item, is_carried_out)? || any)),
        Value::Object(members) => {
            let mut is_changed = false;
            for (key, member) in members.iter_mut() {
                let is_carried_out = is_carried_out || STRICT_PARTS.contains(&key.as_str());
                match key.as_str() {
                    // A shell script may have several lines; it is displayed only as one line.
                    "on_spike" if is_carried_out && member.is_string() => {}
                    "title" => is_changed |= clean(member, false)?,
                    _ => is_changed |= clean(member, is_carried_out)?,
                }
            }
            if members.keys().any(|key| !key.chars().all(is_plain)) {
                let old = std::mem::take(members);
                *members = old.into_iter().map(|(key, member)| (plain(&key).into_owned(), member)).collect();
                is_changed = true;
            }
            Ok(is_changed)
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => Ok(false),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn facts_are_cleaned_and_what_is_carried_out_is_refused_or_kept() {
        let read = |value: Value| {
            from_str::<Value>(&value.to_string(), |text| serde_json::from_slice(text)).map_err(|err| err.to_string())
        };
        assert_eq!(
            read(
                json!({"host": {"hostname": "a\n<LAVA\x1b[2J", "x\ny": ["\u{202e}"]}, "n": 1, "quoted": "a \"b\" \\"})
            ),
            Ok(
                json!({"host": {"hostname": "a <LAVA\u{fffd}[2J", "x y": ["\u{fffd}"]}, "n": 1, "quoted": "a \"b\" \\"})
            )
        );
        let plan = json!({"plan": {"title": "a\nb", "on_spike": "first\nsecond"}, "cells": [{"load": "cmd:\u{b5}"}]});
        assert_eq!(
            read(plan),
            Ok(json!({"plan": {"title": "a b", "on_spike": "first\nsecond"}, "cells": [{"load": "cmd:\u{b5}"}]}))
        );
        for carried_out in [
            json!({"plan": {"axes": {"load": ["disk:/a\nb"]}}}),
            json!({"cells": [{"load": "disk:/a\nb"}]}),
            json!({"record": {"cell": {"kernel": "disk:/a\nb"}}}),
        ] {
            assert_eq!(read(carried_out), Err("a control character in `disk:/a b`".to_owned()));
        }
    }
}
