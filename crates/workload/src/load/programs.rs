//! Loads that are outside programs.

use super::workers::Workers;
use punctual_model::{Program, ProgramRecord, Tool};
use punctual_sys::{mount, process, storage};
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Seek};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;

/// Largest stderr output of a program that is kept, bytes.
const STDERR_BYTES: u64 = 64 * 1024;
/// The most characters of it that are repeated.
const MAX_QUOTED_CHARS: usize = 200;

/// An installed program, and its arguments.
#[derive(Debug)]
pub(super) struct InstalledProgram {
    /// Path and version, for the record of the load.
    pub(super) record: ProgramRecord,
    tool: Tool,
    arguments: Vec<OsString>,
    /// Its stderr, shared by all its runs.
    said: File,
}

/// Whether the program gets a private working directory, because it may leave files there. A command of the user runs
/// in the working directory of the user.
pub(super) fn has_directory(tool: Tool) -> bool {
    matches!(tool, Tool::StressNg | Tool::Fio)
}

/// The path and the arguments of a program. Errors: one line of text: the package of a program that is not installed,
/// or a missing file.
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
        return Err("ping -f needs root (ping(8)); run as root, or use load udp".to_owned());
    }
    let words = program.arguments.split_whitespace().map(OsString::from);
    let arguments = match program.tool {
        Tool::StressNg | Tool::Hackbench => words.collect(),
        // Without output for each packet, and as fast as answers arrive (ping(8)).
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

/// Prepares a program for its start. Errors: as [`look_up`], or when memory runs out.
pub(super) fn find(program: &Program) -> Result<InstalledProgram, String> {
    let (path, arguments) = look_up(program)?;
    let said = storage::bounded_memory_file("load-said", STDERR_BYTES)
        .map_err(|err| format!("cannot allocate memory: {err}"))?;
    let version = version(program.tool, &path);
    let record = ProgramRecord { path: path.display().to_string(), version };
    Ok(InstalledProgram { record, tool: program.tool, arguments, said })
}

/// Timeout of the version of a program, which takes milliseconds.
const VERSION_TIMEOUT: Duration = Duration::from_secs(20);

/// The first line of a program's version output.
fn version(tool: Tool, path: &Path) -> Option<String> {
    let option = match tool {
        Tool::StressNg | Tool::Fio => "--version",
        Tool::Ping => "-V",
        // hackbench has no option for its version, but its help begins with it.
        Tool::Hackbench => "--help",
        Tool::Command => return None,
    };
    let output = punctual_host::output_of(Command::new(path).arg(option).stdin(Stdio::null()), VERSION_TIMEOUT).ok()?;
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

/// Replaces this process by the program; returns only when that fails.
fn become_program(program: &InstalledProgram, directory: Option<&Path>) -> io::Result<()> {
    let path = Path::new(&program.record.path);
    let mut command = Command::new(path);
    // The name in the program's own error messages.
    command.arg0(path.file_name().unwrap_or(path.as_os_str()));
    command.args(&program.arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(program.said.try_clone()?);
    command.env(punctual_host::MARK, super::own_name(std::os::unix::process::parent_id()));
    if let Some(directory) = directory {
        command.current_dir(directory);
    }
    if program.tool != Tool::Command {
        // The IPC namespace removes leftovers of the program. Without the permission, only its own cleanup does.
        let _ = mount::unshare_ipc();
    }
    Err(command.exec())
}

/// Handles the end of the program, and kills all processes that it has left. Errors: one line of text: the failure,
/// with its first line on stderr.
pub(super) fn ended(workers: &mut Workers<'_>, program: &InstalledProgram, status: ExitStatus) -> Result<(), String> {
    workers.kill_all();
    let said = program.said();
    if status.success() {
        workers.count_run();
        return Ok(());
    }
    let name = Path::new(&program.record.path).file_name().unwrap_or_default().display();
    let said = said.unwrap_or_else(|| "no message; try it by hand".to_owned());
    Err(format!("{name} exited ({status}): {said}"))
}

/// Starts the program again. Errors: as [`start`].
pub(super) fn restart(workers: &mut Workers<'_>, program: &InstalledProgram) -> Result<(), String> {
    let directory = workers.directory;
    workers.fork_again(|| become_program(program, directory))
}

impl InstalledProgram {
    /// The first line on stderr since the last call, except information messages.
    fn said(&self) -> Option<String> {
        let text = punctual_host::written(&self.said).ok()?;
        (&self.said).rewind().ok()?;
        let text = String::from_utf8_lossy(&text);
        // Like "stress-ng: info:  [123] dispatching hogs: 1 cpu".
        let line = text.lines().map(str::trim).find(|line| !line.is_empty() && !line.contains(": info: "))?;
        Some(line.chars().filter(|c| punctual_model::is_plain(*c)).take(MAX_QUOTED_CHARS).collect())
    }
}
