//! Detection of the languages that this machine has.

use super::RuntimeError;
use punctual_model::Runtime;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// An installed language.
#[derive(Debug, Clone)]
pub struct Installed {
    /// The language.
    pub(crate) runtime: Runtime,
    /// Its interpreter or virtual machine; the compiler for compiled languages.
    pub program: PathBuf,
}

/// Detection of a language, by a command that works only with a complete installation.
struct Search {
    command: &'static str,
    arguments: &'static [&'static str],
    /// The Debian packages that provide everything needed.
    packages: &'static str,
    /// The program, parsed from stdout and stderr of the command; `None` for the command itself. Needed where the
    /// command may be a script of a version manager, which starts the real one.
    program: fn(&str, &str) -> Option<PathBuf>,
}

fn search_for(runtime: Runtime) -> Search {
    let itself = |_: &str, _: &str| None;
    let printed = |stdout: &str, _: &str| Some(PathBuf::from(stdout.trim()));
    match runtime {
        Runtime::C => Search { command: "cc", arguments: &["--version"], packages: "gcc libc6-dev", program: itself },
        Runtime::Python3 => Search {
            command: "python3",
            arguments: &["-c", "import sys; print(sys.executable)"],
            packages: "python3",
            program: printed,
        },
        Runtime::Node => {
            Search { command: "node", arguments: &["-p", "process.execPath"], packages: "nodejs", program: printed }
        }
        Runtime::Go => Search { command: "go", arguments: &["version"], packages: "golang-go", program: itself },
        Runtime::Java => Search {
            command: "java",
            arguments: &["-XshowSettings:properties", "-version"],
            packages: "default-jdk-headless",
            program: |_, stderr| {
                let home = stderr.lines().find_map(|line| line.trim().strip_prefix("java.home = "))?;
                Some(Path::new(home).join("bin/java"))
            },
        },
    }
}

/// Timeout of that command. Java takes a second on a small machine.
const FIND_TIMEOUT: Duration = Duration::from_secs(60);

/// Detects a language by running its command once. Errors: when it is not installed, or incomplete, with the Debian
/// packages that provide it.
pub fn find(runtime: Runtime) -> Result<Installed, RuntimeError> {
    let Search { command, arguments, packages, program } = search_for(runtime);
    let missing = |missing: &str| RuntimeError::NotInstalled { runtime, missing: format!("`{missing}`"), packages };
    let path = in_path(command).ok_or_else(|| missing(command))?;
    let said = punctual_host::output_of(Command::new(&path).args(arguments).stdin(Stdio::null()), FIND_TIMEOUT);
    let said = said.ok().filter(|said| said.status.success()).ok_or_else(|| missing(command))?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let program = program(&text(&said.stdout), &text(&said.stderr)).unwrap_or(path);
    if !is_program(&program) {
        return Err(missing(command));
    }
    let found = Installed { runtime, program };
    // A Java that can run programs, but not compile them, is what default-jre installs.
    if runtime == Runtime::Java && !is_program(&javac(&found)) { Err(missing("javac")) } else { Ok(found) }
}

/// The compiler of the same Java: the output of another one may not run on this one.
pub(super) fn javac(java: &Installed) -> PathBuf {
    java.program.with_file_name("javac")
}

/// The first program of this name in `PATH`.
fn in_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|directory| directory.join(name)).find(|path| is_program(path))
}

fn is_program(path: &Path) -> bool {
    path.metadata().is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_language_is_found_complete_or_named_with_its_package() {
        for runtime in Runtime::KNOWN.iter().map(|text| text.parse::<Runtime>().unwrap()) {
            match find(runtime) {
                Ok(found) => assert!(found.program.is_absolute() && is_program(&found.program), "{found:?}"),
                Err(err) => assert!(err.to_string().contains("apt-get install "), "{err}"),
            }
        }
    }

    #[test]
    fn only_files_that_may_be_executed_are_programs() {
        assert!(is_program(Path::new("/bin/sh")));
        assert!(!is_program(Path::new("/bin")), "a directory");
        assert!(!is_program(Path::new("/etc/passwd")), "not executable");
        assert!(!is_program(Path::new("/nowhere")));
    }
}
