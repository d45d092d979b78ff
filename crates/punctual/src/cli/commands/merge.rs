//! `punctual merge`: makes one run of the shards that several machines measured.

use super::consent::Origin;
use crate::cli::arguments::MergeArguments;
use crate::cli::terminal::{Outcome, note, output};
use punctual_analysis::wording::things;
use punctual_model::{Failed, shell_word};
use punctual_store::{Merged, Part};
use std::error::Error;
use std::fs::File;
use std::path::Path;

/// Exit status of a run that lacks measurements: its verdict is not known yet.
const INCOMPLETE: u8 = 3;

pub(super) fn merge(arguments: &MergeArguments) -> Outcome {
    let MergeArguments { shards, out, force, yes } = arguments;
    let mut parts = Vec::new();
    for dir in shards {
        match Part::open(dir)? {
            Some(part) => {
                permit(dir, &part, *yes)?;
                parts.push(part);
            }
            None => note(format_args!("punctual: {}: no measurement was begun there", dir.display())),
        }
    }
    if parts.is_empty() {
        return Err("cannot merge: no shard has a measurement".into());
    }
    let merged = punctual_store::merge(parts, out, *force)?;
    merged.damage.iter().for_each(|damage| note(format_args!("punctual: {damage}")));
    merged.notes.iter().for_each(|line| note(format_args!("punctual: {line}")));
    merged.failed.iter().for_each(|failed| note(format_args!("punctual: {}", failure(failed))));
    let dir = out.display().to_string();
    let unchanged = if merged.is_changed { "" } else { ", unchanged" };
    let (made, all) = (merged.made, merged.all);
    output::write(format!("{dir}: {made} of {}{unchanged}\n", things(all as u64, "measurement")).as_bytes())?;
    if made == all {
        note(format_args!("show it with: punctual show {}", shell_word(&dir)));
        return Ok(0);
    }
    note(missing(&merged));
    Ok(INCOMPLETE)
}

/// Refuses a shard that another user may have written or placed there, unless `yes`.
fn permit(dir: &Path, part: &Part, yes: bool) -> Result<(), Box<dyn Error>> {
    Origin::of(part.path(), part.file())?.permit_copy(yes)?;
    // Another user with write permission on the directory can replace the file.
    let opened = File::open(dir)?;
    Origin::of(dir, &opened)?.permit_copy(yes)?;
    Ok(())
}

fn failure(Failed { planned, reason }: &Failed) -> String {
    format!("failed: cell {} in block {}: {reason}", planned.cell_index + 1, planned.block + 1)
}

/// The measurements that are missing, by shards where those are known.
fn missing(merged: &Merged) -> String {
    const SHOWN: usize = 8;
    let missing = things((merged.all - merged.made) as u64, "measurement");
    let shards: Vec<_> =
        merged.incomplete.iter().map(|one| format!("{} ({} of {})", one.shard, one.made, one.all)).collect();
    let more = shards.len().checked_sub(SHOWN).filter(|more| *more > 0).map(|more| format!(" and {more} more"));
    match shards.len() {
        0 => format!("missing: {missing}"),
        n => {
            let shown = shards[..n.min(SHOWN)].join(", ");
            format!("missing: {missing}, of shard {shown}{}; make them, then merge again", more.unwrap_or_default())
        }
    }
}
