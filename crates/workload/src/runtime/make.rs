//! The sleep program in each language, written to a private directory and compiled where necessary.

use super::find::javac;
use super::{Installed, RuntimeError, launch, telling_line};
use punctual_host::PrivateDirectory;
use punctual_model::Runtime;
use std::ffi::OsString;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

/// Timeout of a compiler or another tool of a language; javac takes some seconds.
pub(super) const COMPILE_TIMEOUT: Duration = Duration::from_secs(600);

/// The name and the text of the source file.
fn source(runtime: Runtime) -> (&'static str, &'static str) {
    match runtime {
        Runtime::C => ("sleep.c", include_str!("programs/sleep.c")),
        Runtime::Python3 => ("sleep.py", include_str!("programs/sleep.py")),
        Runtime::Node => ("sleep.js", include_str!("programs/sleep.js")),
        Runtime::Go => ("sleep.go", include_str!("programs/sleep.go")),
        Runtime::Java => ("Sleep.java", include_str!("programs/Sleep.java")),
    }
}

/// A sleep program that can be started. Dropping it removes its files.
#[derive(Debug)]
pub struct SleepProgram {
    /// The language.
    pub(crate) runtime: Runtime,
    /// The command, and its first arguments; those of the program follow.
    pub(super) command: (OsString, Vec<OsString>),
    /// Removes the files when dropped; `None` in a guest, which ends with them.
    directory: Option<PrivateDirectory>,
}

impl SleepProgram {
    /// A program that is there already.
    pub(super) fn at(runtime: Runtime, command: (OsString, Vec<OsString>)) -> SleepProgram {
        SleepProgram { runtime, command, directory: None }
    }

    /// The directory of its files.
    pub(super) fn directory(&self) -> &Path {
        self.directory.as_ref().map_or(Path::new("/"), PrivateDirectory::path)
    }
}

/// Writes the program, and compiles it for a compiled language. Errors: when no file can be written, or the compiler
/// fails.
pub(super) fn make(installed: &Installed) -> Result<SleepProgram, RuntimeError> {
    let Installed { runtime, program } = installed;
    let runtime = *runtime;
    let keep = |path: &Path, source| RuntimeError::Keep { runtime, path: path.to_owned(), source };
    let temporary = std::env::temp_dir();
    let directory = PrivateDirectory::new(&temporary, &punctual_host::named("punctual-sleep", std::process::id()))
        .map_err(|source| keep(&temporary, source))?;
    let (name, text) = source(runtime);
    let file = directory.path().join(name);
    std::fs::write(&file, text).map_err(|source| keep(&file, source))?;
    let binary = directory.path().join("sleep");
    let command: (OsString, Vec<OsString>) = match runtime {
        Runtime::C => {
            compile(runtime, program, |cc| cc.args(["-O2", "-o"]).arg(&binary).arg(&file))?;
            (binary.into(), Vec::new())
        }
        Runtime::Go => {
            let build = |cache: Option<&Path>| {
                compile(runtime, program, |go| {
                    cache.map(|cache| go.env("GOCACHE", cache));
                    // The user's module settings do not apply to this program.
                    go.env("GO111MODULE", "off").env("GOWORK", "off");
                    // The same program from any directory: in virtual time, a guest would see the difference.
                    go.args(["build", "-trimpath", "-ldflags=-buildid=", "-o"]).arg(&binary).arg(&file)
                })
            };
            match build(None) {
                // No home directory, or that of another user. Without its build cache, Go takes a while.
                Err(RuntimeError::Compile { said, .. }) if said.contains("build cache") => {
                    build(Some(&directory.path().join("cache")))?;
                }
                built => built?,
            }
            (binary.into(), Vec::new())
        }
        Runtime::Java => {
            // Compiled once: `java Sleep.java` would compile in every process, on the measured CPU, under its policy.
            compile(runtime, &javac(installed), |javac| javac.arg("-d").arg(directory.path()).arg(&file))?;
            (program.into(), vec!["-cp".into(), directory.path().into(), "Sleep".into()])
        }
        Runtime::Python3 | Runtime::Node => (program.into(), vec![file.into()]),
    };
    Ok(SleepProgram { runtime, command, directory: Some(directory) })
}

/// Runs `compiler` with the arguments that `arguments` adds.
fn compile(
    runtime: Runtime,
    compiler: &Path,
    arguments: impl FnOnce(&mut Command) -> &mut Command,
) -> Result<(), RuntimeError> {
    let refused = |said| RuntimeError::Compile { runtime, compiler: compiler.to_owned(), said };
    let said =
        punctual_host::output_of(arguments(launch::command(None, compiler).stdin(Stdio::null())), COMPILE_TIMEOUT);
    let said = said.map_err(|err| refused(err.to_string()))?;
    if said.status.success() {
        return Ok(());
    }
    Err(refused(telling_line(&String::from_utf8_lossy(&said.stderr), said.status)))
}
