//! A language for a guest: its sleep program, made on this machine, with everything that it needs to run.

use super::find::find;
use super::launch::command;
use super::make::{COMPILE_TIMEOUT, SleepProgram, make};
use super::{Installed, RuntimeError, telling_line};
use punctual_host::GUEST_VARIABLE;
use punctual_model::{GuestFile, Runtime};
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Stdio;

/// Directory of the program in a guest.
const PLACE: &str = "/opt/punctual-sleep";
/// File in it with the path of the implementation and the command, one word a line.
const COMMAND: &str = "command";

/// Prints the file of each module that the program imports at its start.
const MODULES: &str = "import os, platform, sys, time; import encodings.ascii, encodings.latin_1, encodings.idna; \
     platform.python_implementation(), platform.python_version(); \
     print('\\n'.join(sorted({m.__file__ for m in list(sys.modules.values()) if getattr(m, '__file__', None)})))";

/// A language's files for guests. Dropping it removes those that were made for them.
#[derive(Debug)]
pub struct ForGuests {
    /// Files and directories, with their places in the guest.
    pub files: Vec<GuestFile>,
    _program: SleepProgram,
}

/// Makes the program of a language, and finds the files that it needs. Errors: when the language is not installed, its
/// program cannot be made, or its files cannot be found.
pub fn for_guests(runtime: Runtime) -> Result<ForGuests, RuntimeError> {
    let installed = find(runtime)?;
    let program = make(&installed)?;
    let directory = program.directory().to_owned();
    let there = |name: &str| format!("{PLACE}/{name}");
    let own = |name: &str| file(&directory.join(name), &there(name));
    let interpreter = file(&installed.program, &installed.program.display().to_string());
    let (words, mut files) = match runtime {
        Runtime::C | Runtime::Go => (vec![there("sleep")], vec![own("sleep")]),
        Runtime::Node => (vec![interpreter.to.clone(), there("sleep.js")], vec![interpreter, own("sleep.js")]),
        Runtime::Python3 => {
            let modules = modules(&installed)?;
            let all = modules.iter().map(|path| file(path, &path.display().to_string()));
            let files = [interpreter.clone(), own("sleep.py")].into_iter().chain(all).collect();
            (vec![interpreter.to, there("sleep.py")], files)
        }
        Runtime::Java => {
            linked(&installed, &directory.join("java"))?;
            let words = vec![there("java/bin/java"), "-cp".to_owned(), PLACE.to_owned(), "Sleep".to_owned()];
            (words, vec![own("java"), own("Sleep.class")])
        }
    };
    let lines: Vec<String> = std::iter::once(installed.program.display().to_string()).chain(words).collect();
    let path = directory.join(COMMAND);
    let kept = std::fs::write(&path, lines.join("\n"));
    kept.map_err(|source| RuntimeError::Keep { runtime, path: path.clone(), source })?;
    files.push(own(COMMAND));
    Ok(ForGuests { files, _program: program })
}

/// The program of a language, ready to start, and the path of the implementation: in a guest the one that was carried
/// in, else one that is made now. Errors: when the language is not installed, or its program cannot be made.
pub fn ready(runtime: Runtime) -> Result<(PathBuf, SleepProgram), RuntimeError> {
    let carried = std::env::var_os(GUEST_VARIABLE).and_then(|_| carried(runtime));
    carried.map_or_else(|| find(runtime).and_then(|installed| Ok((installed.program.clone(), make(&installed)?))), Ok)
}

fn carried(runtime: Runtime) -> Option<(PathBuf, SleepProgram)> {
    let text = std::fs::read_to_string(Path::new(PLACE).join(COMMAND)).ok()?;
    let mut lines = text.lines();
    let (implementation, first) = (lines.next()?, lines.next()?);
    let command = (first.into(), lines.map(OsString::from).collect());
    Some((implementation.into(), SleepProgram::at(runtime, command)))
}

fn file(from: &Path, to: &str) -> GuestFile {
    GuestFile { from: from.display().to_string(), to: to.to_owned() }
}

/// The files of the modules that Python needs, and those that it looks for at its start.
fn modules(python: &Installed) -> Result<BTreeSet<PathBuf>, RuntimeError> {
    let printed = output(python, &python.program, &["-c", MODULES])?;
    Ok(printed.lines().map(PathBuf::from).filter(|path| path.is_file()).collect())
}

/// Links a Java that has its base module only, in the new directory `to`: the whole one is too large for a guest.
fn linked(java: &Installed, to: &Path) -> Result<(), RuntimeError> {
    let jlink = java.program.with_file_name("jlink");
    if !jlink.is_file() {
        let missing = "`jlink`".to_owned();
        return Err(RuntimeError::NotInstalled { runtime: java.runtime, missing, packages: "default-jdk-headless" });
    }
    let to = to.display().to_string();
    let arguments = ["--add-modules", "java.base", "--strip-debug", "--no-header-files", "--no-man-pages", "--output"];
    output(java, &jlink, &[&arguments[..], &[&to]].concat()).map(drop)
}

/// What a program of the language prints.
fn output(installed: &Installed, program: &Path, arguments: &[&str]) -> Result<String, RuntimeError> {
    let refused = |said| RuntimeError::Compile { runtime: installed.runtime, compiler: program.to_owned(), said };
    let ended = punctual_host::output_of(command(None, program).args(arguments).stdin(Stdio::null()), COMPILE_TIMEOUT);
    let ended = ended.map_err(|err| refused(err.to_string()))?;
    if !ended.status.success() {
        return Err(refused(telling_line(&String::from_utf8_lossy(&ended.stderr), ended.status)));
    }
    Ok(String::from_utf8_lossy(&ended.stdout).into_owned())
}
