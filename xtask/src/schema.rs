//! The JSON schemas of what users and other programs read: a record and a cell.

use std::fs;
use std::path::Path;

/// Every committed schema: its file below the root, and what it must hold now.
fn schemas() -> Result<[(&'static str, String); 2], String> {
    Ok([
        ("schema/record.schema.json", text(&schemars::schema_for!(model::Record))?),
        ("schema/cell.schema.json", text(&schemars::schema_for!(model::Cell))?),
    ])
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
