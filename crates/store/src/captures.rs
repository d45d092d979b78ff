//! Captures: files with the events that the explanations of a run are made from.

use super::writer::stem;
use super::{StoreError, Writer, file_of};
use punctual_host::file;
use punctual_model::{CaptureFile, Entry, Explain, Explanation};
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// Largest capture that is read, bytes.
pub const MOST_CAPTURE_BYTES: u64 = 64 << 20;

/// The captures directory of a run, which may not exist. `named` is the run's directory or its file.
pub(super) fn captures_dir(named: &Path) -> PathBuf {
    file_of(named).with_file_name("captures")
}

/// The content of one of the [`captures`], by its name. Only its own checksum tells whether it is damaged. Errors: if
/// there is none of this name, it is too large, or cannot be read.
pub fn read_capture(named: &Path, name: &str) -> Result<Vec<u8>, StoreError> {
    let path = kept_in(named).join(name);
    let read = || {
        if !CaptureFile::is_name(name) {
            return Err(io::Error::other("a name that leads elsewhere"));
        }
        let mut content = Vec::new();
        file::open_without_link(&path)?.take(MOST_CAPTURE_BYTES + 1).read_to_end(&mut content)?;
        if content.len() as u64 > MOST_CAPTURE_BYTES {
            return Err(io::Error::other(format!("larger than {} MiB", MOST_CAPTURE_BYTES >> 20)));
        }
        Ok(content)
    };
    read().map_err(StoreError::io("read", &path))
}

/// The names of all captures of a measurement, or of all measurements, in their order.
pub(super) fn names_in(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.retain(|name| CaptureFile::is_name(name));
    names.sort_unstable();
    names
}

/// The names of all captures of a run, in the order of its measurements; those in another directory, which may be a
/// copy of some.
pub fn captures(named: &Path) -> Vec<String> {
    names_in(&kept_in(named))
}

fn kept_in(named: &Path) -> PathBuf {
    if super::is_run(named) { captures_dir(named) } else { named.to_owned() }
}

impl Writer {
    /// Writes the captures that came with a measurement to files, and sets their names. So many are kept that each of
    /// the `all` measurements of the run gets its share; others are left out. Errors: on a write error, such as a full
    /// disk.
    pub(super) fn captures(&self, entry: &mut Entry, all: usize) -> Result<(), StoreError> {
        let Some(explained) = entry.record.explained.as_mut().filter(|explained| !explained.captures.is_empty()) else {
            return Ok(());
        };
        let dir = super::own_directory(captures_dir(self.dir()))?;
        let used: u64 = names_in(&dir)
            .iter()
            .filter_map(|name| fs::symlink_metadata(dir.join(name)).ok())
            .map(|file| file.len())
            .sum();
        let share = Explain::CAPTURE_BYTES.saturating_mul(self.kept() + 1) / all.max(self.kept() + 1);
        let mut left = share.saturating_sub(usize::try_from(used).unwrap_or(usize::MAX));
        for file in std::mem::take(&mut explained.captures) {
            let content = file.content().filter(|content| content.len() <= left);
            let name = content.map(|content| {
                left -= content.len();
                let name = format!("{}-{}", stem(&entry.planned), file.name);
                let path = dir.join(&name);
                file::replace(&path, &content).map_err(StoreError::io("write", &path)).map(|()| name)
            });
            let name = name.transpose()?;
            let is_here = |one: &&mut Explanation| one.capture.as_ref() == Some(&file.name);
            explained.worst.iter_mut().filter(is_here).for_each(|one| one.capture.clone_from(&name));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use punctual_analysis::testing::RunBuilder;
    use punctual_host::testing::Scratch;
    use punctual_model::{ExplainRecord, Span};

    /// A measurement with spikes of these latencies, latest first, each with a capture of so many bytes.
    fn with_captures(mut entry: Entry, spikes: &[(u64, usize)]) -> Entry {
        let name = |latency: &u64| format!("spike-cpu0-cycle{latency}.dat.zst");
        entry.record.explained = Some(ExplainRecord {
            worst: spikes
                .iter()
                .map(|(latency, _)| Explanation {
                    latency: Span(*latency),
                    capture: Some(name(latency)),
                    ..Explanation::default()
                })
                .collect(),
            captures: spikes.iter().map(|(latency, n)| CaptureFile::new(&name(latency), &vec![7; *n])).collect(),
            ..ExplainRecord::default()
        });
        entry
    }

    fn kept(entry: &Entry) -> Vec<Option<&str>> {
        entry.record.explained.as_ref().unwrap().worst.iter().map(|one| one.capture.as_deref()).collect()
    }

    /// A run of two measurements with its writer.
    fn a_run(dir: &Path) -> (Writer, Vec<Entry>) {
        let mut run = RunBuilder::new();
        run.cell("none", "other");
        run.header.plan.repetitions = 2;
        [0, 1].into_iter().for_each(|block| {
            run.measure(block, 0, |_, _| 5_000);
        });
        (crate::create(dir, &run.header).unwrap(), run.entries)
    }

    #[test]
    fn each_measurement_gets_its_share_and_the_latest_spikes_come_first() {
        const HALF: usize = Explain::CAPTURE_BYTES / 2;
        let scratch = Scratch::make();
        let dir = scratch.path("run");
        let (mut writer, entries) = a_run(&dir);
        let mut first = with_captures(entries[0].clone(), &[(900, HALF - 10), (800, 11), (700, 10)]);
        writer.entry_of(&mut first, 2).unwrap();
        let name = |latency: u64| format!("b00-c00-spike-cpu0-cycle{latency}.dat.zst");
        assert_eq!(kept(&first), [Some(&*name(900)), None, Some(&*name(700))]);
        let mut second = with_captures(entries[1].clone(), &[(600, HALF + 1), (500, HALF)]);
        writer.entry_of(&mut second, 2).unwrap();
        assert_eq!(kept(&second), [None, Some("b01-c00-spike-cpu0-cycle500.dat.zst")]);
        let read = crate::read(&dir).unwrap();
        assert_eq!(read.entries, [first, second]);
        assert_eq!(captures(&dir), [name(700), name(900), "b01-c00-spike-cpu0-cycle500.dat.zst".to_owned()]);
        assert_eq!(read_capture(&dir, &name(700)).unwrap(), [7; 10]);
        assert!(read_capture(&dir, "../run.jsonl").is_err());
    }

    #[test]
    fn no_capture_is_written_through_a_link() {
        let scratch = Scratch::make();
        let (dir, other) = (scratch.path("run"), scratch.path("other"));
        let (mut writer, entries) = a_run(&dir);
        fs::create_dir(&other).unwrap();
        std::os::unix::fs::symlink(&other, dir.join("captures")).unwrap();
        let refused = writer.entry_of(&mut with_captures(entries[0].clone(), &[(9, 9)]), 2).unwrap_err().to_string();
        assert!(refused.contains("found a link"), "{refused}");
        assert_eq!(fs::read_dir(other).unwrap().count(), 0);
    }
}
