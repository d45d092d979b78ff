//! Our program in each language, written to a directory of its own and compiled where that is usual.

use super::find::javac;
use super::{Installed, RuntimeError, telling_line};
use model::Runtime;
use std::ffi::OsString;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The file and its text.
fn source(runtime: Runtime) -> (&'static str, &'static str) {
    match runtime {
        Runtime::C => ("sleep.c", include_str!("programs/sleep.c")),
        Runtime::Python3 => ("sleep.py", include_str!("programs/sleep.py")),
        Runtime::Node => ("sleep.js", include_str!("programs/sleep.js")),
        Runtime::Go => ("sleep.go", include_str!("programs/sleep.go")),
        Runtime::Java => ("Sleep.java", include_str!("programs/Sleep.java")),
    }
}

/// A program of ours that can be started. Dropping it removes its files.
#[derive(Debug)]
pub(crate) struct Made {
    /// The language.
    pub(crate) runtime: Runtime,
    /// What is started, before the program's own arguments.
    pub(super) command: Vec<OsString>,
    /// Held for its drop.
    _directory: PrivateDirectory,
}

/// Writes the program, and compiles it if the language is a compiled one.
///
/// # Errors
/// When there is no place to write to, or the compiler refuses.
pub(crate) fn make(installed: &Installed) -> Result<Made, RuntimeError> {
    let Installed { runtime, program } = installed;
    let runtime = *runtime;
    let keep = |path: &Path, source| RuntimeError::Keep { runtime, path: path.to_owned(), source };
    let temporary = std::env::temp_dir();
    let directory = PrivateDirectory::new(&temporary).map_err(|source| keep(&temporary, source))?;
    let (name, text) = source(runtime);
    let file = directory.0.join(name);
    std::fs::write(&file, text).map_err(|source| keep(&file, source))?;
    let binary = directory.0.join("sleep");
    let words = |words: &[&dyn AsRef<std::ffi::OsStr>]| words.iter().map(|word| word.as_ref().to_owned()).collect();
    let command: Vec<OsString> = match runtime {
        Runtime::C => {
            compile(runtime, program, |cc| cc.args(["-O2", "-o"]).arg(&binary).arg(&file))?;
            words(&[&binary])
        }
        Runtime::Go => {
            let cache = directory.0.join("cache");
            compile(runtime, program, |go| {
                // The user's module settings are for the user's modules. Without a home, Go knows no place for its cache.
                if std::env::var_os("HOME").or(std::env::var_os("GOCACHE")).is_none() {
                    go.env("GOCACHE", cache);
                }
                go.env("GO111MODULE", "off").env("GOWORK", "off").args(["build", "-o"]).arg(&binary).arg(&file)
            })?;
            words(&[&binary])
        }
        Runtime::Java => {
            // Compiled once: `java Sleep.java` would compile in every process, on the measured CPU, under its policy.
            compile(runtime, &javac(installed), |javac| javac.arg("-d").arg(&directory.0).arg(&file))?;
            words(&[program, &"-cp", &directory.0, &"Sleep"])
        }
        Runtime::Python3 | Runtime::Node => words(&[program, &file]),
    };
    Ok(Made { runtime, command, _directory: directory })
}

/// Runs `compiler` with what `arguments` adds.
fn compile(
    runtime: Runtime,
    compiler: &Path,
    arguments: impl FnOnce(&mut Command) -> &mut Command,
) -> Result<(), RuntimeError> {
    let refused = |said| RuntimeError::Compile { runtime, compiler: compiler.to_owned(), said };
    let said = arguments(Command::new(compiler).stdin(Stdio::null())).output();
    let said = said.map_err(|err| refused(err.to_string()))?;
    if said.status.success() {
        return Ok(());
    }
    Err(refused(telling_line(&String::from_utf8_lossy(&said.stderr), said.status)))
}

/// A directory that nobody else may write to, with what is in it removed on drop.
#[derive(Debug)]
pub(super) struct PrivateDirectory(pub(super) PathBuf);

impl PrivateDirectory {
    fn new(parent: &Path) -> io::Result<PrivateDirectory> {
        let mut attempt = 0_u32;
        loop {
            let path = parent.join(format!("punctual-sleep-{}-{attempt}", std::process::id()));
            match std::fs::DirBuilder::new().mode(0o700).create(&path) {
                Ok(()) => return Ok(PrivateDirectory(path)),
                // Left behind by a process of the same id that was killed, or put there by somebody.
                Err(err) if err.kind() == io::ErrorKind::AlreadyExists && attempt < 100 => attempt += 1,
                Err(err) => return Err(err),
            }
        }
    }
}

impl Drop for PrivateDirectory {
    fn drop(&mut self) {
        // What cannot be removed is a few kilobytes in the directory for temporary files.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_macros, reason = "a test says on stderr that it is skipped")]
mod tests {
    use super::super::find;
    use super::*;

    #[test]
    fn every_installed_language_can_be_made_and_leaves_nothing() {
        for runtime in Runtime::KNOWN.iter().map(|text| text.parse::<Runtime>().unwrap()) {
            let installed = match find(runtime) {
                Ok(installed) => installed,
                Err(err) => {
                    eprintln!("skipped: {err}");
                    continue;
                }
            };
            let made = make(&installed).unwrap();
            let directory = made._directory.0.clone();
            assert!(directory.is_dir() && !made.command.is_empty());
            drop(made);
            assert!(!directory.exists(), "{runtime}");
        }
    }

    #[test]
    fn a_compiler_that_refuses_is_quoted() {
        let refused =
            compile(Runtime::C, Path::new("/bin/sh"), |sh| sh.args(["-c", "echo x: fatal error: y >&2; exit 1"]));
        let message = "/bin/sh cannot compile the program for c: x: fatal error: y";
        assert_eq!(refused.unwrap_err().to_string(), message);
    }
}
