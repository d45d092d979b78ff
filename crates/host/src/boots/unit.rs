//! A unit of systemd that goes on with a run after a boot.

use super::common::{NoBoot, write};
use crate::{HostFs, THIS_PROGRAM, file};
use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};

const UNIT: &str = "etc/systemd/system/punctual-resume.service";
const WANTED: &str = "etc/systemd/system/multi-user.target.wants/punctual-resume.service";
/// A copy of this program: another user must not choose what root starts.
const PROGRAM: &str = "var/lib/punctual/punctual";

/// The unit of a run. It stays until the run is complete or given up, so that a machine that went down goes on.
#[derive(Debug)]
pub struct ResumeUnit<'a> {
    /// The directory of the run, absolute.
    pub run: &'a Path,
    /// Words of this program that go on with it.
    pub words: &'a [String],
}

impl ResumeUnit<'_> {
    /// Writes the unit, and has it started with the system. Errors: if the system has no systemd, a name has characters
    /// that units cannot hold, or a file cannot be written.
    pub fn install(&self, fs: &HostFs) -> Result<(), NoBoot> {
        if !fs.root.join("run/systemd/system").is_dir() {
            return Err(NoBoot::Failed("this system has no systemd, which would go on after a boot".to_owned()));
        }
        let text = self.text()?;
        copy_program(&fs.root.join(PROGRAM))?;
        punctual_sys::fail::point("boot-program-copied");
        write(&fs.root.join(UNIT), text.as_bytes())?;
        punctual_sys::fail::point("boot-unit-written");
        let link = fs.root.join(WANTED);
        let directory = link.parent().unwrap_or(&link);
        let made = std::fs::create_dir_all(directory).and_then(|()| match link.symlink_metadata() {
            Ok(_) => Ok(()),
            Err(_) => symlink(Path::new("/").join(UNIT), &link),
        });
        made.and_then(|()| crate::file::sync_directory_of(&link)).map_err(|err| NoBoot::Io(link, err))
    }

    fn text(&self) -> Result<String, NoBoot> {
        let run = self.run.to_str().filter(|text| !text.contains(['"', '\\', '%', '$', '\n']));
        let run = run.ok_or_else(|| {
            NoBoot::Failed(format!("{}: a unit of systemd cannot hold this name; move it", self.run.display()))
        })?;
        let words: String = self.words.iter().map(|word| format!(" \"{word}\"")).collect();
        // Services that start with the system have ended by then. Exit status 2: a limit is violated; 3: undecided.
        Ok(format!(
            "# Removed at the end of the run, and by `punctual recover`.\n\
             [Unit]\nDescription=punctual goes on with a run over boots\nAfter=multi-user.target\n\
             ConditionPathExists={run}\n\n\
             [Service]\nType=exec\nExecStartPre=/bin/sleep 30\n\
             ExecStart=/{PROGRAM}{words}\nSuccessExitStatus=2 3\n\
             StandardOutput=journal+console\nStandardError=journal+console\nTimeoutStartSec=infinity\n"
        ))
    }
}

fn copy_program(path: &Path) -> Result<(), NoBoot> {
    let error = |err| NoBoot::Io(path.to_owned(), err);
    let directory = path.parent().unwrap_or(path);
    let found = fs::create_dir_all(directory).and_then(|()| fs::symlink_metadata(directory)).map_err(error)?;
    if !found.is_dir() || found.uid() != 0 || found.mode() & 0o022 != 0 {
        return Err(NoBoot::Failed(format!("{}: another user can write to it; remove it", directory.display())));
    }
    fs::read(THIS_PROGRAM).and_then(|program| file::replace_program(path, &program)).map_err(error)
}

/// Removes unit, link and program; returns those that were there.
pub(super) fn remove(fs: &HostFs) -> Result<Vec<PathBuf>, NoBoot> {
    let there = [WANTED, UNIT, PROGRAM].map(|path| fs.root.join(path)).into_iter();
    let there: Vec<PathBuf> = there.filter(|path| path.symlink_metadata().is_ok()).collect();
    for path in &there {
        write(path, b"")?;
        punctual_sys::fail::point("boot-file-removed");
    }
    Ok(there)
}
