//! Merging of shards: one run of the measurements that several machines made.
//!
//! Lines are copied and not written anew, so the merged run holds the same bytes as the shards. Every line is checked
//! first, without keeping its record in memory; then the lines are copied in the order of the plan.

mod belonging;
mod output;
mod part;

pub use part::Part;

use super::StoreError;
use super::reader::Damage;
use belonging::{Guests, why_apart};
use output::Output;
use part::Place;
use punctual_model::{Failed, Header, KeptFilm, Order, Planned, Shard};
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// Limit of the measurements of a merged run: a year of measurements takes a second each at least, 32 million.
const MAX_MEASUREMENTS: usize = 32_000_000;

/// Result of a merge.
#[derive(Debug)]
pub struct Merged {
    /// Number of measurements in the merged run.
    pub made: usize,
    /// Number of measurements of the whole run.
    pub all: usize,
    /// The shards that lack measurements; empty where the number of shards is unknown.
    pub incomplete: Vec<ShardProgress>,
    /// Measurements whose every attempt failed.
    pub failed: Vec<Failed>,
    /// Unreadable lines of the shards.
    pub damage: Vec<Damage>,
    /// Differences between the machines of the shards, accepted by the caller; and samples that are missing.
    pub notes: Vec<String>,
    /// Whether the run was written; not if it held all of it before.
    pub is_changed: bool,
}

/// A shard that lacks measurements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShardProgress {
    /// The shard.
    pub shard: Shard,
    /// Number of its measurements in the merged run.
    pub made: usize,
    /// Number of its measurements.
    pub all: usize,
}

/// Reason why shards cannot be merged; nothing was written.
#[derive(Debug, thiserror::Error)]
pub enum MergeError {
    /// A run cannot be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Two parts do not belong to one run.
    #[error("cannot merge {a} and {b}: {reason}", a = a.display(), b = b.display())]
    Apart {
        /// A part.
        a: PathBuf,
        /// The other part.
        b: PathBuf,
        /// Reason.
        reason: String,
    },
    /// A part is not as a run of this program writes it.
    #[error("cannot merge {path}: {reason}", path = path.display())]
    Invalid {
        /// The part.
        path: PathBuf,
        /// Reason.
        reason: String,
    },
    /// The run cannot be written there.
    #[error("cannot merge into {path}: {reason}", path = path.display())]
    Out {
        /// The directory.
        path: PathBuf,
        /// Reason and remedy.
        reason: String,
    },
}

/// Merges the `parts` into the run in directory `out`, which may hold a part of it already. Shards of machines that
/// differ are merged only if `force` is set.
///
/// The result is the same for every order of the parts, and merging again changes nothing. The run is replaced when it
/// is complete: a crash leaves the previous one. Errors: if the parts do not belong to one run, or a file cannot be
/// read or written.
pub fn merge(parts: Vec<Part>, out: &Path, force: bool) -> Result<Merged, MergeError> {
    let (output, before) = Output::open(out)?;
    let has_before = before.is_some();
    // The run that is there comes first: equal lines are then found to be there.
    let mut parts: Vec<Part> = before.into_iter().chain(parts).collect();
    let mut notes = Vec::new();
    for (a, b) in pairs_with_first(&parts) {
        if let Some(reason) = why_apart(&a.header, &b.header, force, &mut notes) {
            return Err(apart(a, b, reason));
        }
    }
    let shard = one_number_of_shards(&parts)?;
    let Some(first) = parts.first() else { return Err(StoreError::NoRun(out.to_owned()).into()) };
    let all = first.header.cells.len().saturating_mul(usize::try_from(first.header.plan.repetitions).unwrap_or(0));
    if all > MAX_MEASUREMENTS {
        let reason = format!("{all} measurements are more than a year of them");
        return Err(MergeError::Invalid { path: first.dir.clone(), reason });
    }
    let order = Header { shard: None, ..first.header.clone() }.measurements();

    let mut found: HashMap<Planned, (usize, Place)> = HashMap::new();
    let mut guests = Guests::default();
    let mut damage = Vec::new();
    for index in 0..parts.len() {
        let Some(part) = parts.get_mut(index) else { break };
        let scan = part.scan(&order)?;
        damage.extend(scan.damage);
        for (place, guest) in scan.places {
            if let Some((other, reason)) = guest.and_then(|guest| guests.why_apart(index, &place.planned, guest)) {
                return Err(apart(&parts[other], &parts[index], reason));
            }
            match found.get(&place.planned) {
                Some((_, same)) if same.hash == place.hash => {}
                Some((other, _)) => {
                    let reason = both_hold(&parts[index].header, &place.planned);
                    return Err(apart(&parts[*other], &parts[index], reason));
                }
                None => drop(found.insert(place.planned, (index, place))),
            }
        }
    }

    let mut failed: Vec<Failed> = parts.iter().flat_map(|part| part.header.failed.iter().cloned()).collect();
    failed.retain(|failed| !found.contains_key(&failed.planned));
    failed.order_by_key(|failed| failed.planned);
    failed.dedup_by_key(|failed| failed.planned);
    let header = merged_header(&parts);
    let incomplete = shard.map(|shard| incomplete(shard, &header, &order, &found)).unwrap_or_default();
    let lines: Vec<(usize, Place)> = order.iter().filter_map(|planned| found.get(planned).copied()).collect();
    let is_new = |(index, _): &(usize, Place)| !has_before || *index > 0;
    let is_changed = lines.iter().any(is_new) || !has_before || parts[0].header_without_failures() != header;
    if is_changed {
        notes.extend(output.write(&header, &parts, &lines, has_before)?);
    }
    if is_changed || parts[0].header.failed != failed {
        super::failed::keep(out, &failed)?;
    }
    let mut films: Vec<KeptFilm> = parts.iter().flat_map(|part| super::films::of_directory(&part.dir)).collect();
    if !films.is_empty() {
        films.order_by_key(super::films::wake_up);
        super::films::write(out, films)?;
    }
    Ok(Merged { made: lines.len(), all, incomplete, failed, damage, notes, is_changed })
}

fn both_hold(header: &Header, planned: &Planned) -> String {
    let (block, cell) = (planned.block + 1, cell_name(header, planned));
    format!("both hold block {block} of {cell}, with different results; name one of them")
}

/// The first part with each other.
fn pairs_with_first(parts: &[Part]) -> impl Iterator<Item = (&Part, &Part)> {
    parts.first().into_iter().flat_map(|first| parts.iter().skip(1).map(move |other| (first, other)))
}

fn apart(a: &Part, b: &Part, reason: String) -> MergeError {
    MergeError::Apart { a: a.dir.clone(), b: b.dir.clone(), reason }
}

fn cell_name(header: &Header, planned: &Planned) -> String {
    punctual_analysis::cell_names(&header.cells).into_iter().nth(planned.cell_index).unwrap_or_default()
}

/// A shard of those that the parts are; `None` if none of them is a shard. Errors: if the run was divided in two ways:
/// its shards would not name what is missing.
fn one_number_of_shards(parts: &[Part]) -> Result<Option<Shard>, MergeError> {
    let mut shards = parts.iter().filter_map(|part| Some((part, part.header.shard?)));
    let Some((first, shard)) = shards.next() else { return Ok(None) };
    match shards.find(|(_, other)| other.of() != shard.of()) {
        Some((part, other)) => Err(apart(first, part, format!("they are the shards {shard} and {other}"))),
        None => Ok(Some(shard)),
    }
}

/// The header of the merged run: that of the part that began first. This does not depend on the order of the parts.
fn merged_header(parts: &[Part]) -> Header {
    let began = |part: &&Part| (part.header.started_unix_ms, serde_json::to_vec(&part.header.host).unwrap_or_default());
    let first = parts.iter().min_by_key(began).expect("parts are not empty");
    Header { shard: None, ..first.header_without_failures() }
}

/// The shards that lack measurements.
fn incomplete(
    shard: Shard,
    header: &Header,
    order: &[Planned],
    found: &HashMap<Planned, (usize, Place)>,
) -> Vec<ShardProgress> {
    let (n_cells, is_virtual) = (header.cells.len(), header.is_virtual());
    let mut progress: Vec<_> = shard.all().map(|shard| ShardProgress { shard, made: 0, all: 0 }).collect();
    for planned in order {
        if let Some(one) = progress.get_mut(shard.index_of(planned, n_cells, is_virtual)) {
            one.all += 1;
            one.made += usize::from(found.contains_key(planned));
        }
    }
    progress.retain(|one| one.made < one.all);
    progress
}

#[cfg(test)]
mod tests;
