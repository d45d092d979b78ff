//! Loads that are programs of somebody else.

use super::workers::Workers;
use model::{Program, ProgramRecord, Tool};
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read, Seek};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use sys::{mount, process, storage};

/// What a program may say on stderr before it is not heard any more, bytes.
const SAID_BYTES: u64 = 64 * 1024;
/// The most characters of it that are repeated.
const REPEATED: usize = 200;

/// A program that is installed, and how it is started.
#[derive(Debug)]
pub(super) struct InstalledProgram {
    /// For the record.
    pub(super) record: ProgramRecord,
    tool: Tool,
    arguments: Vec<OsString>,
    /// What it says on stderr, shared by all its runs.
    said: File,
}

/// Whether the program gets a directory of its own to work in, because it may leave files there. A command of the user's
/// works where the user is.
pub(super) fn has_directory(tool: Tool) -> bool {
    matches!(tool, Tool::StressNg | Tool::Fio)
}

/// Where a program is, and how it is told what to do.
///
/// # Errors
/// One line: it is not installed and which package has it, or a file that it needs is missing.
pub(super) fn look_up(program: &Program) -> Result<(PathBuf, Vec<OsString>), String> {
    let command = program.tool.command();
    let package = match program.tool {
        Tool::StressNg => "stress-ng",
        Tool::Hackbench => "rt-tests",
        Tool::Ping => "iputils-ping",
        Tool::Fio => "fio",
        Tool::Command => "dash",
    };
    let path =
        on_path(command).ok_or_else(|| format!("{command} is not installed; on Debian: apt-get install {package}"))?;
    if program.tool == Tool::Ping && process::user_id() != 0 {
        return Err("ping floods for root only (ping(8)); run as root, or ask for load udp".to_owned());
    }
    let words = program.arguments.split_whitespace().map(OsString::from);
    let arguments = match program.tool {
        Tool::StressNg | Tool::Hackbench => words.collect(),
        // Without output for each packet, and as fast as answers come (ping(8)).
        Tool::Ping => ["-q", "-f"].map(OsString::from).into_iter().chain(words).collect(),
        Tool::Fio => {
            let file = PathBuf::from(&program.arguments);
            let file = file.canonicalize().map_err(|err| format!("{}: {err}", file.display()))?;
            vec![file.into_os_string()]
        }
        Tool::Command => vec!["-c".into(), program.arguments.clone().into()],
    };
    Ok((path, arguments))
}

/// Makes a program ready to be started.
///
/// # Errors
/// As [`look_up`], or when there is no memory.
pub(super) fn find(program: &Program) -> Result<InstalledProgram, String> {
    let (path, arguments) = look_up(program)?;
    let said = storage::bounded_memory_file("load-said", SAID_BYTES).map_err(|err| format!("no memory: {err}"))?;
    let version = version(program.tool, &path);
    let record = ProgramRecord { path: path.display().to_string(), version };
    Ok(InstalledProgram { record, tool: program.tool, arguments, said })
}

/// The first line that a program says of its version.
fn version(tool: Tool, path: &Path) -> Option<String> {
    let option = match tool {
        Tool::StressNg | Tool::Fio => "--version",
        Tool::Ping => "-V",
        // It has no option for that, but its help begins so.
        Tool::Hackbench => "--help",
        Tool::Command => return None,
    };
    let output = Command::new(path).arg(option).stdin(Stdio::null()).output().ok()?;
    let text = String::from_utf8_lossy(if output.stdout.is_empty() { &output.stderr } else { &output.stdout });
    let line = text.lines().map(str::trim).find(|line| line.contains(|c: char| c.is_ascii_digit()))?;
    Some(line.to_owned())
}

fn on_path(command: &str) -> Option<PathBuf> {
    let directories = std::env::var_os("PATH")?;
    std::env::split_paths(&directories).map(|directory| directory.join(command)).find(|path| path.is_file())
}

/// Starts the program as the only worker.
pub(super) fn start(workers: &mut Workers<'_>, program: &InstalledProgram) -> Result<(), String> {
    let directory = workers.directory;
    workers.fork(None, |_| become_program(program, directory))
}

/// Replaces this process; returns only when that fails.
fn become_program(program: &InstalledProgram, directory: Option<&Path>) -> io::Result<()> {
    let path = Path::new(&program.record.path);
    let mut command = Command::new(path);
    // What it calls itself when it complains.
    command.arg0(path.file_name().unwrap_or(path.as_os_str()));
    command.args(&program.arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(program.said.try_clone()?);
    command.env(host::MARK, super::own_name(std::os::unix::process::parent_id()));
    if let Some(directory) = directory {
        command.current_dir(directory);
    }
    if program.tool != Tool::Command {
        // What it has no time to remove goes with it. Who may not do that has to rely on its tidying up.
        let _ = mount::unshare_ipc();
    }
    Err(command.exec())
}

/// The program has ended, and what it has left running is ended, too.
///
/// # Errors
/// One line: how it failed, with what it said.
pub(super) fn ended(workers: &mut Workers<'_>, program: &InstalledProgram, status: ExitStatus) -> Result<(), String> {
    workers.kill_all();
    let said = program.said();
    if status.success() {
        workers.count_run();
        return Ok(());
    }
    let name = Path::new(&program.record.path).file_name().unwrap_or_default().display();
    let said = said.unwrap_or_else(|| "it said nothing; try it by hand".to_owned());
    Err(format!("{name} ended ({status}): {said}"))
}

/// Starts the program again.
///
/// # Errors
/// As [`start`].
pub(super) fn restart(workers: &mut Workers<'_>, program: &InstalledProgram) -> Result<(), String> {
    let directory = workers.directory;
    workers.fork_again(|| become_program(program, directory))
}

impl InstalledProgram {
    /// The first line that it said on stderr since this was last asked, other than how it goes.
    fn said(&self) -> Option<String> {
        let mut file = &self.said;
        let length = file.stream_position().ok()?;
        file.rewind().ok()?;
        let mut text = Vec::new();
        file.take(length).read_to_end(&mut text).ok()?;
        let mut file = &self.said;
        file.rewind().ok()?;
        let text = String::from_utf8_lossy(&text);
        // stress-ng: "stress-ng: info:  [123] dispatching hogs: 1 cpu".
        let line = text.lines().map(str::trim).find(|line| !line.is_empty() && !line.contains(": info: "))?;
        Some(line.chars().filter(|c| model::is_plain(*c)).take(REPEATED).collect())
    }
}
