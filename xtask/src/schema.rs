//! The JSON schemas of what users and other programs read.

use std::fs;
use std::path::Path;

/// Every committed schema: its file below the root, and what it must hold now.
fn schemas() -> Result<[(&'static str, String); 14], String> {
    Ok([
        ("schema/record.schema.json", text(&schemars::schema_for!(model::Record))?),
        ("schema/cell.schema.json", text(&schemars::schema_for!(model::Cell))?),
        ("schema/show.schema.json", text(&written::<analysis::RunDocument<'static>>())?),
        ("schema/imported.schema.json", text(&written::<analysis::ImportedDocument<'static>>())?),
        ("schema/compare.schema.json", text(&written::<analysis::comparison::ComparisonDocument<'static>>())?),
        ("schema/doctor.schema.json", text(&written::<analysis::doctor::DoctorDocument<'static>>())?),
        ("schema/list.schema.json", text(&written::<analysis::List>())?),
        ("schema/load.schema.json", text(&written::<analysis::LoadDocument<'static>>())?),
        ("schema/respond.schema.json", text(&written::<model::TargetRecord>())?),
        ("schema/loads.schema.json", text(&written::<Vec<model::AboutLoad>>())?),
        ("schema/recover.schema.json", text(&written::<model::Recovery>())?),
        ("schema/lab-list.schema.json", text(&written::<model::ListedKernels<'static>>())?),
        ("schema/lab-check.schema.json", text(&written::<analysis::LabCheckDocument<'static, serde_json::Value>>())?),
        ("schema/frontier.schema.json", text(&written::<analysis::frontier::FrontierDocument<'static>>())?),
    ])
}

/// The schema of what is only ever written: every key is there, `null` where nothing is known.
fn written<T: schemars::JsonSchema>() -> schemars::Schema {
    schemars::generate::SchemaSettings::draft2020_12().for_serialize().into_generator().into_root_schema_for::<T>()
}

fn text(schema: &schemars::Schema) -> Result<String, String> {
    let json = serde_json::to_string_pretty(schema).map_err(|err| format!("schema as JSON: {err}"))?;
    Ok(json + "\n")
}

/// Writes the schemas.
pub(crate) fn write(root: &Path) -> Result<(), String> {
    for (path, wanted) in schemas()? {
        let file = root.join(path);
        let parent = file.parent().expect("a schema lies in a directory");
        fs::create_dir_all(parent).map_err(|err| format!("{}: {err}", parent.display()))?;
        fs::write(&file, wanted).map_err(|err| format!("{}: {err}", file.display()))?;
    }
    Ok(())
}

/// Says which schemas no longer match the types.
pub(crate) fn compare(root: &Path) -> Result<(), String> {
    let stale: Vec<&str> = schemas()?
        .iter()
        .filter(|(path, wanted)| fs::read_to_string(root.join(path)).ok().as_ref() != Some(wanted))
        .map(|(path, _)| *path)
        .collect();
    if stale.is_empty() {
        return Ok(());
    }
    Err(format!("{} does not match the types; run `cargo xtask schema` and review the difference", stale.join(", ")))
}
