//! Runs that were recorded before conditions and tasks had their own types: one of each kind of task.

use punctual_model::{Entry, Header, Task};
use serde_json::Value;

#[test]
fn records_of_every_task_are_read_and_mean_the_same() {
    let tasks = ["clock_nanosleep:realtime", "sleep:c", "response:udp:127.0.0.1:47123", "cost:syscall"];
    let texts = [
        include_str!("records/cyclic.jsonl"),
        include_str!("records/sleep.jsonl"),
        include_str!("records/response.jsonl"),
        include_str!("records/cost.jsonl"),
    ];
    for (task, text) in tasks.into_iter().zip(texts) {
        let (header, entry) = text.split_once('\n').unwrap();
        let read: Header = serde_json::from_str(header).unwrap();
        let task: Task = task.parse().unwrap();
        assert_eq!(read.cells[0].task, task);
        assert_eq!(meaning(serde_json::to_value(&read).unwrap()), meaning(serde_json::from_str(header).unwrap()));
        let read: Entry = serde_json::from_str(entry).unwrap();
        assert_eq!(read.record.cell_id, read.record.cell.id());
        assert_eq!(read.record.cell.task, task);
        let written = serde_json::to_value(serde_json::from_str::<Entry>(entry).unwrap()).unwrap();
        assert_eq!(meaning(written), meaning(serde_json::from_str(entry).unwrap()));
    }
}

#[test]
fn what_is_not_known_is_refused() {
    let text = include_str!("records/cyclic.jsonl").lines().next().unwrap();
    for (key, unknown) in [("\"lock_memory\":", "\"lock\":"), ("\"timer_slack_ns\":", "\"slack_ns\":")] {
        let other = text.replace(key, unknown);
        assert!(other != text && serde_json::from_str::<Header>(&other).is_err(), "{key}");
    }
}

/// The word of today for one of format 1: a key, or the value of a key.
fn renamed<'a>(key: &str, word: &'a str) -> &'a str {
    match (key, word) {
        ("" | "phase", "handler") => "interrupt_to_wakeup",
        ("" | "phase", "queue") => "wakeup_to_switch",
        ("phase", "return") => "switch_to_user",
        ("cause", "away") => "link_and_target",
        ("cause", "ordinary") => "usual_wake_up",
        ("cause", "steal") => "cpu_stalled",
        ("name", "the wake-up itself") => "usual wake-up",
        _ => word,
    }
}

/// The value in the words of today, without what may be omitted: `tracers` of `false`, and facts that were added since,
/// if not known.
fn meaning(value: Value) -> Value {
    let may_be_omitted = |key: &str, value: &Value| match key {
        "tracers" => *value == Value::Bool(false),
        "counter_hz" | "floor" | "energy_aware" | "tsc_has_adjust" | "suspendable" | "cache_groups" => value.is_null(),
        "ext_server_runtime_us" => value.as_array().is_some_and(Vec::is_empty),
        _ => false,
    };
    match value {
        Value::Object(fields) => {
            let fields = fields.into_iter().map(|(key, value)| match value {
                Value::String(word) => (key.clone(), Value::String(renamed(&key, &word).to_owned())),
                value => (renamed("", &key).to_owned(), meaning(value)),
            });
            Value::Object(fields.filter(|(key, value)| !may_be_omitted(key, value)).collect())
        }
        Value::Array(items) => items.into_iter().map(meaning).collect(),
        // Of a list of owners.
        Value::String(word) => Value::String(renamed("name", &word).to_owned()),
        other => other,
    }
}
