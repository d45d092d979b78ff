//! Where the program of an instrument is: installed, carried into a guest, or sent by a campaign on another machine.

use super::InstrumentError;
use punctual_model::{GuestFile, Instrument};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Directory of the program in a guest.
const PLACE: &str = "/opt/punctual-program";

/// Files that a guest needs to run the program: the program, and what the plan names besides. Errors: when it is not
/// installed on this machine.
pub fn for_guests(instrument: &Instrument) -> Result<Vec<GuestFile>, InstrumentError> {
    let words = instrument.command_words();
    let program = program_for_guests(words.first().map_or("", String::as_str))?;
    Ok(std::iter::once(program).chain(instrument.guest_files()).collect())
}

/// The file that a guest needs to start `program` of this machine. Errors: when it is not installed on this machine.
pub fn program_for_guests(program: &str) -> Result<GuestFile, InstrumentError> {
    let found = find(program)?;
    let name = found.file_name().unwrap_or_default().to_string_lossy();
    Ok(GuestFile { from: found.display().to_string(), to: format!("{PLACE}/{name}") })
}

/// Directory of the files that a campaign on another machine has sent, for the processes of its cells.
const SENT_FILES: &str = "PUNCTUAL_FILES";
/// The same in the process that has received them; without a value until the first has come.
static SENT: OnceLock<PathBuf> = OnceLock::new();
static EXPECTS_FILES: AtomicBool = AtomicBool::new(false);

/// From now on a program that its plan names among its files counts as installed: another machine will send it.
pub fn expect_sent_files() {
    EXPECTS_FILES.store(true, Relaxed);
}

/// Makes `directory` the first place of programs and libraries for the cells of this process.
pub fn use_sent_files(directory: &Path) {
    SENT.get_or_init(|| directory.to_owned());
}

/// The variable that a process of a cell needs to find sent files; `None` without any.
pub fn variable_of_sent_files() -> Option<(&'static str, &'static Path)> {
    Some((SENT_FILES, SENT.get()?.as_path()))
}

pub(super) fn sent_files() -> Option<PathBuf> {
    std::env::var_os(SENT_FILES).map(PathBuf::from)
}

/// Looks for the program of `instrument`, which another machine may still send. Errors: as [`find`].
pub fn find_or_expect(instrument: &Instrument) -> Result<(), InstrumentError> {
    let words = instrument.command_words();
    let program = words.first().map_or("", String::as_str);
    let name = Path::new(program).file_name();
    let is_sent = instrument.files.iter().any(|file| name.is_some() && Path::new(file).file_name() == name);
    if EXPECTS_FILES.load(Relaxed) && is_sent { Ok(()) } else { find(program).map(drop) }
}

/// Path of a program: among the files that were sent, in the place of a guest, then in PATH unless it has a slash.
/// Errors: when there is no such program.
pub fn find(program: &str) -> Result<PathBuf, InstrumentError> {
    let of_guest = || std::env::var_os(punctual_host::GUEST_VARIABLE).map(|_| PathBuf::from(PLACE));
    let carried = sent_files().or_else(of_guest).zip(Path::new(program).file_name());
    let carried = carried.map(|(directory, name)| directory.join(name)).filter(|path| path.is_file());
    let found = if carried.is_some() {
        carried
    } else if program.contains('/') {
        Some(PathBuf::from(program)).filter(|path| path.is_file())
    } else {
        let directories = std::env::var_os("PATH").unwrap_or_default();
        std::env::split_paths(&directories).map(|directory| directory.join(program)).find(|path| path.is_file())
    };
    found.ok_or_else(|| InstrumentError::NotInstalled(program.to_owned()))
}
