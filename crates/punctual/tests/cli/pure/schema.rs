//! JSON against the committed schemas, by the part of JSON Schema (draft 2020-12) that they use.

use crate::program::read_json;
use serde_json::{Map, Value};
use std::path::Path;

/// Asserts that `document` conforms to the schema `name`.
#[track_caller]
pub(crate) fn assert_conforms(name: &str, document: &Value) {
    let schema = read(&format!("{name}.schema.json"));
    if let Err(why) = check(&schema, &schema, document, "") {
        panic!("{name}: {why}");
    }
}

fn read(file: &str) -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../schema").join(file);
    read_json(path)
}

/// Checks `value` against `schema`; the error has the place and the reason.
fn check(root: &Value, schema: &Value, value: &Value, at: &str) -> Result<(), String> {
    let Some(rules) = schema.as_object() else {
        return if schema == &Value::Bool(true) { Ok(()) } else { Err(format!("{at}: nothing is allowed here")) };
    };
    rules.iter().try_for_each(|(keyword, rule)| keyword_holds(root, rules, keyword, rule, value, at))
}

fn keyword_holds(
    root: &Value,
    rules: &Map<String, Value>,
    keyword: &str,
    rule: &Value,
    value: &Value,
    at: &str,
) -> Result<(), String> {
    let wrong = |what: &str| Err(format!("{at}: {value} {what} {rule}"));
    let matching = |schemas: &Value| {
        let results = schemas.as_array().unwrap().iter().map(|schema| check(root, schema, value, at));
        results.collect::<Vec<_>>()
    };
    match keyword {
        "$schema" | "$defs" | "title" | "description" | "default" | "format" => Ok(()),
        "$ref" => {
            let (file, pointer) = rule.as_str().and_then(|text| text.split_once('#')).unwrap();
            let other = (!file.is_empty()).then(|| read(file));
            let root = other.as_ref().unwrap_or(root);
            check(root, root.pointer(pointer).expect(pointer), value, at)
        }
        "type" => {
            let types = rule.as_array().cloned().unwrap_or_else(|| vec![rule.clone()]);
            if types.iter().any(|name| is_of(name.as_str().unwrap(), value)) { Ok(()) } else { wrong("is no") }
        }
        "enum" if rule.as_array().unwrap().contains(value) => Ok(()),
        "const" if rule == value => Ok(()),
        "enum" | "const" => wrong("is not of"),
        "minimum" if value.as_f64().is_none_or(|number| number >= rule.as_f64().unwrap()) => Ok(()),
        "maximum" if value.as_f64().is_none_or(|number| number <= rule.as_f64().unwrap()) => Ok(()),
        "minItems" if value.as_array().is_none_or(|items| items.len() as u64 >= rule.as_u64().unwrap()) => Ok(()),
        "maxItems" if value.as_array().is_none_or(|items| items.len() as u64 <= rule.as_u64().unwrap()) => Ok(()),
        "minimum" | "maximum" | "minItems" | "maxItems" => wrong(&format!("is beyond {keyword}")),
        "anyOf" | "oneOf" => {
            let results = matching(rule);
            let fitting = results.iter().filter(|result| result.is_ok()).count();
            if fitting == 1 || keyword == "anyOf" && fitting > 1 {
                return Ok(());
            }
            let reasons: Vec<_> = results.into_iter().filter_map(Result::err).collect();
            Err(format!("{at}: {fitting} of {keyword} fit: {}", reasons.join("; ")))
        }
        "required" => {
            let lacks = |key: &&Value| value.as_object().is_some_and(|o| !o.contains_key(key.as_str().unwrap()));
            rule.as_array().unwrap().iter().find(lacks).map_or(Ok(()), |key| Err(format!("{at}: {key} is missing")))
        }
        "properties" => value.as_object().into_iter().flatten().try_for_each(|(key, value)| {
            rule.get(key).map_or(Ok(()), |schema| check(root, schema, value, &format!("{at}/{key}")))
        }),
        "additionalProperties" => value.as_object().into_iter().flatten().try_for_each(|(key, value)| {
            let is_named = rules.get("properties").is_some_and(|named| named.get(key).is_some());
            if is_named { Ok(()) } else { check(root, rule, value, &format!("{at}/{key}")) }
        }),
        "prefixItems" => (value.as_array().into_iter().flatten().zip(rule.as_array().unwrap()).enumerate())
            .try_for_each(|(i, (item, schema))| check(root, schema, item, &format!("{at}/{i}"))),
        "items" => (value.as_array().into_iter().flatten().enumerate())
            .try_for_each(|(i, item)| check(root, rule, item, &format!("{at}/{i}"))),
        other => panic!("the check does not know `{other}`; teach it"),
    }
}

fn is_of(name: &str, value: &Value) -> bool {
    match name {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "number" => value.is_number(),
        "integer" => value.is_u64() || value.is_i64(),
        other => panic!("unknown type {other}"),
    }
}

#[test]
fn the_golden_run_is_what_its_schema_says() {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../report/tests/golden/run.json");
    let mut run: Value = read_json(golden);
    assert_conforms("show", &run);
    // The check can fail.
    for pointer in ["/cells/0/summary/samples", "/verdict/kind", "/run/findings"] {
        let before = std::mem::replace(run.pointer_mut(pointer).unwrap(), Value::Bool(true));
        let schema = std::panic::catch_unwind(|| assert_conforms("show", &run));
        assert!(schema.is_err(), "{pointer}");
        *run.pointer_mut(pointer).unwrap() = before;
    }
    run["cells"][0]["summary"].as_object_mut().unwrap().remove("p99_ns");
    assert!(std::panic::catch_unwind(|| assert_conforms("show", &run)).is_err(), "a key that is missing");
}
