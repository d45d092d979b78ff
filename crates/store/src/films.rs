//! Films of late wake-ups of a run, in a separate file of its directory.

use super::StoreError;
use super::seal::{self, Seal};
use punctual_host::file;
use punctual_model::{Entry, KeptFilm};
use std::io::Read;
use std::path::Path;

pub(super) const FILE: &str = "films.jsonl";
/// Size limit, bytes.
const MAX_BYTES: usize = 64 << 20;
/// The most films of a run: those made last.
const MOST: usize = 20;

/// Keeps a film with its run, in the place of an earlier one of the same wake-up. Errors: if it cannot be written.
pub fn keep_film(named: &Path, film: KeptFilm) -> Result<(), StoreError> {
    let path = super::file_of(named);
    let dir = path.parent().unwrap_or(named);
    let mut films = of_directory(dir);
    films.push(film);
    write(dir, films)
}

/// Writes films to a run directory, in the place of all others. Errors: if they cannot be written.
pub(super) fn write(dir: &Path, mut films: Vec<KeptFilm>) -> Result<(), StoreError> {
    let path = dir.join(FILE);
    let (mut lines, mut bytes) = (Vec::new(), 0);
    while let Some(film) = films.pop().filter(|_| lines.len() < MOST) {
        films.retain(|other| wake_up(other) != wake_up(&film));
        let line = super::line(&film).map_err(StoreError::io("write", &path))?;
        bytes += line.len();
        if bytes > MAX_BYTES {
            break;
        }
        lines.push(line);
    }
    lines.reverse();
    file::replace(&path, &lines.concat()).map_err(StoreError::io("write", &path))
}

/// What a film shows.
pub(super) fn wake_up(film: &KeptFilm) -> (u32, usize, u64) {
    (film.planned.block, film.planned.cell_index, film.cycle)
}

/// The films in a run directory that can be read.
pub(super) fn of_directory(dir: &Path) -> Vec<KeptFilm> {
    let mut text = Vec::new();
    // A film that is missing or damaged can be made again.
    let _ = file::open(&dir.join(FILE)).and_then(|file| file.take(MAX_BYTES as u64).read_to_end(&mut text));
    let intact = text.split_inclusive(|byte| *byte == b'\n').filter(|line| seal::check(line) == Seal::Holds);
    intact.filter_map(|line| punctual_model::json::kept_film(line).ok()).take(MOST).collect()
}

/// The films in a run directory that show wake-ups of these measurements.
pub(super) fn of_run(dir: &Path, entries: &[Entry]) -> Vec<KeptFilm> {
    let mut films = of_directory(dir);
    films.retain(|KeptFilm { planned, cycle, film }| {
        let entry = entries.iter().find(|entry| entry.planned == *planned);
        let mut worst = entry.into_iter().flat_map(|entry| &entry.record.threads).flat_map(|thread| &thread.worst);
        worst.any(|worst| worst.cycle == *cycle && u64::try_from(worst.latency_ns) == Ok(film.instructions()))
    });
    films
}

#[cfg(test)]
mod tests {
    use super::*;
    use punctual_analysis::testing::RunBuilder;
    use punctual_host::testing::Scratch;
    use punctual_model::{Film, Piece, Planned, Worst};
    use std::fs;
    use std::sync::Arc;

    fn film(planned: Planned, cycle: u64, instructions: u64) -> KeptFilm {
        let pieces = vec![Piece { function: "f".into(), from: 0, instructions, depth: 0 }];
        KeptFilm { planned, cycle, film: Arc::new(Film { pieces, ..Film::default() }) }
    }

    #[test]
    fn films_of_wake_ups_of_the_run_are_kept_once_each() {
        let scratch = Scratch::make();
        let mut run = RunBuilder::new();
        run.cell("none", "other").measure(0, 0, |_, _| 5_000);
        let mut entries = run.entries;
        let planned = entries[0].planned;
        entries[0].record.threads[0].worst =
            [(900, 7), (800, 8)].map(|(latency_ns, cycle)| Worst { latency_ns, cycle }).to_vec();
        let kept = || of_run(scratch.dir(), &entries).iter().map(|film| film.cycle).collect::<Vec<_>>();
        // An earlier film of the same, one of another latency, and one of no wake-up.
        for (cycle, instructions) in [(8, 800), (7, 1), (8, 801), (9, 900), (7, 900), (8, 800)] {
            keep_film(scratch.dir(), film(planned, cycle, instructions)).unwrap();
        }
        assert_eq!((kept(), of_directory(scratch.dir()).len()), (vec![7, 8], 3));
        let path = scratch.path(FILE);
        let text = fs::read_to_string(&path).unwrap();
        fs::write(&path, text.replace("[[0,900,0]]", "[[0,900,1]]")).unwrap();
        assert_eq!(kept(), [8], "a damaged line");
        (0..30).for_each(|cycle| keep_film(scratch.dir(), film(planned, cycle, 1)).unwrap());
        assert_eq!(
            of_directory(scratch.dir()).iter().map(|film| film.cycle).collect::<Vec<_>>(),
            (10..30).collect::<Vec<_>>()
        );
    }
}
