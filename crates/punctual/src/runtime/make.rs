//! Our program in each language, written to a directory of its own and compiled where that is usual.

use super::find::javac;
use super::{Installed, RuntimeError, launch, telling_line};
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
    /// What is started, and its first arguments; the program's own follow.
    pub(super) command: (OsString, Vec<OsString>),
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
    let command: (OsString, Vec<OsString>) = match runtime {
        Runtime::C => {
            compile(runtime, program, |cc| cc.args(["-O2", "-o"]).arg(&binary).arg(&file))?;
            (binary.into(), Vec::new())
        }
        Runtime::Go => {
            let build = |cache: Option<&Path>| {
                compile(runtime, program, |go| {
                    cache.map(|cache| go.env("GOCACHE", cache));
                    // The user's module settings are for the user's modules.
                    go.env("GO111MODULE", "off").env("GOWORK", "off").args(["build", "-o"]).arg(&binary).arg(&file)
                })
            };
            match build(None) {
                // There is no home, or it is somebody else's. Without what it has kept, Go takes a while.
                Err(RuntimeError::Compile { said, .. }) if said.contains("build cache") => {
                    build(Some(&directory.0.join("cache")))?;
                }
                built => built?,
            }
            (binary.into(), Vec::new())
        }
        Runtime::Java => {
            // Compiled once: `java Sleep.java` would compile in every process, on the measured CPU, under its policy.
            compile(runtime, &javac(installed), |javac| javac.arg("-d").arg(&directory.0).arg(&file))?;
            (program.into(), vec!["-cp".into(), directory.0.clone().into(), "Sleep".into()])
        }
        Runtime::Python3 | Runtime::Node => (program.into(), vec![file.into()]),
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
    let said = arguments(launch::command(None, compiler).stdin(Stdio::null())).output();
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
mod tests {
    use super::*;

    #[test]
    fn a_directory_is_private_new_and_gone_afterwards() {
        use std::os::unix::fs::PermissionsExt;
        let directories = [0, 1].map(|_| PrivateDirectory::new(&std::env::temp_dir()).unwrap());
        let paths = directories.each_ref().map(|directory| directory.0.clone());
        assert_ne!(paths[0], paths[1]);
        std::fs::write(paths[0].join("sleep.c"), "x").unwrap();
        assert_eq!(paths[0].metadata().unwrap().permissions().mode() & 0o777, 0o700);
        drop(directories);
        assert!(paths.iter().all(|path| !path.exists()), "{paths:?}");
        assert!(PrivateDirectory::new(Path::new("/nowhere")).is_err());
    }
}
