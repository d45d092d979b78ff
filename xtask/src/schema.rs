//! The JSON schemas of all data for users and other programs.

use punctual_report::json;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// The directory of the schemas.
const PLACE: &str = "schema";

/// Name of the file of definitions that several schemas of output share.
const COMMON: &str = "common.schema.json";

/// Name of the schema of records, which are input as well; definitions that it shares are kept there.
const RECORD: &str = "record.schema.json";

type Schemas = BTreeMap<&'static str, Value>;

/// Every committed schema, by file name.
fn schemas() -> Schemas {
    let mut schemas = Schemas::from(
        [
            (RECORD, schemars::schema_for!(punctual_model::Record)),
            ("cell.schema.json", schemars::schema_for!(punctual_model::Cell)),
            ("show.schema.json", written::<json::RunDocument<'static>>()),
            ("imported.schema.json", written::<json::ImportedDocument<'static>>()),
            (
                "compare.schema.json",
                written::<json::ComparisonDocument<'static, punctual_analysis::comparison::Comparison>>(),
            ),
            ("doctor.schema.json", written::<json::DoctorDocument<'static>>()),
            ("plan-list.schema.json", written::<json::ReadyPlans>()),
            ("dry-run.schema.json", written::<json::DryRun<'static>>()),
            ("list.schema.json", written::<json::List>()),
            ("load.schema.json", written::<json::LoadDocument<'static>>()),
            ("respond.schema.json", written::<punctual_model::TargetRecord>()),
            ("loads.schema.json", written::<Vec<punctual_model::AboutLoad>>()),
            ("recover.schema.json", written::<punctual_model::Recovery>()),
            ("lab-list.schema.json", written::<punctual_model::ListedKernels<'static>>()),
            ("lab-check.schema.json", written::<json::LabCheckDocument<'static, Value>>()),
            ("lab-check-config.schema.json", written::<json::ConfigCheckDocument<'static>>()),
            ("lab-worst.schema.json", written::<punctual_model::LongestDelays>()),
            ("study-list.schema.json", written::<punctual_report::study::StudyList>()),
            ("study.schema.json", written::<punctual_report::study::StudyReport>()),
            ("monitor.schema.json", written::<punctual_report::MonitorDocument>()),
            ("tune.schema.json", written::<punctual_report::TuneDocument<'static>>()),
            ("history.schema.json", written::<punctual_report::HistoryDocument<'static>>()),
            ("store-query.schema.json", written::<punctual_report::Rows>()),
            ("again.schema.json", written::<punctual_report::AgainDocument>()),
            ("recorded.schema.json", written::<punctual_report::RecordedDocument>()),
            ("verify.schema.json", written::<punctual_report::VerifyDocument<'static>>()),
            ("frontier.schema.json", written::<json::FrontierDocument<'static>>()),
        ]
        .map(|(name, schema)| (name, schema.to_value())),
    );
    share(&mut schemas);
    schemas
}

/// Moves each definition that several schemas have in common to one of them, to which the others refer.
fn share(schemas: &mut Schemas) {
    // Two definitions of one name are equal when all definitions that they refer to are also equal.
    let mut users: BTreeMap<(String, String), Vec<&'static str>> = BTreeMap::new();
    for (file, schema) in &*schemas {
        for name in definitions(schema).keys() {
            users.entry((name.clone(), expanded(schema, name))).or_default().push(file);
        }
    }
    let home =
        |schema: &Value, file: &'static str, name: &str| match users.get(&(name.to_owned(), expanded(schema, name))) {
            Some(files) if files.contains(&RECORD) => RECORD,
            Some(files) if files.len() > 1 => COMMON,
            _ => file,
        };
    let mut common = Map::new();
    let mut shared = Schemas::new();
    for (file, schema) in &*schemas {
        let relocated = |value: &Value, here: &str| {
            let mut value = value.clone();
            each_reference(&mut value, &mut |name| match home(schema, file, name) {
                there if there == here => format!("{DEFINITIONS}{name}"),
                there => format!("{there}{DEFINITIONS}{name}"),
            });
            value
        };
        let mut root = schema.clone();
        let own = root.as_object_mut().and_then(|root| root.remove("$defs"));
        let mut root = relocated(&root, file);
        let mut kept = Map::new();
        for (name, definition) in own.as_ref().and_then(Value::as_object).into_iter().flatten() {
            match home(schema, file, name) {
                there if there == *file => drop(kept.insert(name.clone(), relocated(definition, file))),
                COMMON => {
                    let before = common.insert(name.clone(), relocated(definition, COMMON));
                    let is_alike = before.is_none_or(|before| Some(&before) == common.get(name));
                    assert!(is_alike, "two definitions called {name} are shared; give one of the types another name");
                }
                _ => {}
            }
        }
        if let Some(root) = root.as_object_mut().filter(|_| !kept.is_empty()) {
            root.insert("$defs".to_owned(), Value::Object(kept));
        }
        shared.insert(file, root);
    }
    let about = "Definitions that the schemas of what punctual writes share.";
    let dialect = "https://json-schema.org/draft/2020-12/schema";
    shared.insert(COMMON, json!({ "$schema": dialect, "description": about, "$defs": common }));
    *schemas = shared;
}

const DEFINITIONS: &str = "#/$defs/";

fn definitions(schema: &Value) -> Map<String, Value> {
    schema.get("$defs").and_then(Value::as_object).cloned().unwrap_or_default()
}

/// A definition with all those that it refers to, each once, as canonical text.
fn expanded(schema: &Value, name: &str) -> String {
    let all = definitions(schema);
    let (mut text, mut open, mut seen) = (String::new(), vec![name.to_owned()], BTreeSet::new());
    while let Some(name) = open.pop() {
        if seen.insert(name.clone()) {
            let mut definition = all.get(&name).cloned().unwrap_or_default();
            text += &format!("{name}: {definition}\n");
            each_reference(&mut definition, &mut |name| {
                open.push(name.to_owned());
                String::new()
            });
        }
    }
    text
}

/// Replaces each reference by the result of `change` for the name of its definition.
fn each_reference(value: &mut Value, change: &mut dyn FnMut(&str) -> String) {
    match value {
        Value::Object(members) => {
            for (key, member) in members {
                let name = member.as_str().filter(|_| key == "$ref").and_then(|text| text.strip_prefix(DEFINITIONS));
                match name.map(&mut *change) {
                    Some(reference) => *member = Value::String(reference),
                    None => each_reference(member, change),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| each_reference(item, change)),
        _ => {}
    }
}

/// The schema of an output-only type: every key is present, `null` where the value is unknown.
fn written<T: schemars::JsonSchema>() -> schemars::Schema {
    schemars::generate::SchemaSettings::draft2020_12().for_serialize().into_generator().into_root_schema_for::<T>()
}

fn text(schema: &Value) -> Result<String, String> {
    let json = serde_json::to_string_pretty(schema).map_err(|err| format!("schema as JSON: {err}"))?;
    Ok(json + "\n")
}

/// Writes the schemas.
pub(crate) fn write(root: &Path) -> Result<(), String> {
    let place = root.join(PLACE);
    fs::create_dir_all(&place).map_err(|err| format!("{}: {err}", place.display()))?;
    for (name, wanted) in schemas() {
        let file = place.join(name);
        fs::write(&file, text(&wanted)?).map_err(|err| format!("{}: {err}", file.display()))?;
    }
    Ok(())
}

/// Reports schemas that do not match the types.
pub(crate) fn compare(root: &Path) -> Result<(), String> {
    let mut stale = Vec::new();
    for (name, wanted) in schemas() {
        if fs::read_to_string(root.join(PLACE).join(name)).ok() != Some(text(&wanted)?) {
            stale.push(format!("{PLACE}/{name}"));
        }
    }
    if stale.is_empty() {
        return Ok(());
    }
    Err(format!("{} does not match the types; run `cargo xtask schema` and review the difference", stale.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A schema with its references resolved, so that two schemas can be compared wherever definitions are stored.
    fn resolved(schemas: &Schemas, file: &str, value: &Value) -> Value {
        match value {
            Value::Object(members) => match members.get("$ref").and_then(Value::as_str) {
                Some(reference) => {
                    let (there, pointer) = reference.split_once('#').unwrap();
                    let there = if there.is_empty() { file } else { there };
                    resolved(schemas, there, schemas[there].pointer(pointer).unwrap())
                }
                None => {
                    let members = members.iter().filter(|(key, _)| *key != "$defs");
                    members.map(|(key, member)| (key.clone(), resolved(schemas, file, member))).collect()
                }
            },
            Value::Array(items) => items.iter().map(|item| resolved(schemas, file, item)).collect(),
            other => other.clone(),
        }
    }

    #[test]
    fn shared_definitions_mean_what_they_meant() {
        let point = |kind: &str| json!({ "type": kind });
        let line = json!({ "properties": { "from": { "$ref": "#/$defs/Point" } } });
        let schema = |root: &str, kind: &str| json!({ "$ref": format!("#/$defs/{root}"), "$defs": { "Line": line, "Point": point(kind) } });
        let before = Schemas::from([
            (RECORD, schema("Line", "integer")),
            ("a", schema("Line", "integer")),
            ("b", schema("Line", "number")),
            ("c", schema("Point", "number")),
            ("d", json!({ "$ref": "#/$defs/Point", "$defs": { "Point": point("string") } })),
        ]);
        let mut after = before.clone();
        share(&mut after);
        for file in before.keys() {
            assert_eq!(resolved(&after, file, &after[file]), resolved(&before, file, &before[file]), "{file}");
        }
        assert_eq!(after["a"], json!({ "$ref": "record.schema.json#/$defs/Line" }));
        assert_eq!(after["c"], json!({ "$ref": "common.schema.json#/$defs/Point" }));
        assert_eq!(after["d"], before["d"]);
        assert_eq!(definitions(&after[COMMON]).len(), 2);
    }
}
