//! Marks of watched programs: the files in which they are, and the probes there.

use super::targets::Targets;
use crate::CellError;
use crate::trace::Instance;
use punctual_code::{NoPlace, ProbePlace};
use punctual_host::{file, mapped_code};
use punctual_model::Mark;
use punctual_workload::instrument;
use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Directories of libraries besides those in `LD_LIBRARY_PATH`, each also with that of the architecture.
const LIBRARIES: [&str; 5] = ["/usr/local/lib", "/lib", "/usr/lib", "/lib64", "/usr/lib64"];

/// Adds the events of the marks to a trace. `program` is the one that the cell starts. Errors: one line, when a mark is
/// nowhere, or the kernel cannot trace it.
pub(super) fn add(
    instance: &mut Instance,
    marks: &[Mark],
    program: Option<&str>,
    targets: &Targets,
) -> Result<(), CellError> {
    for (index, mark) in marks.iter().enumerate() {
        let impossible = |why: String| CellError::Impossible(format!("cannot place mark `{mark}`: {why}"));
        let find = |file: &Option<String>| {
            let found = files(file.as_deref(), program, targets);
            found.map_err(|err| impossible(format!("{}: {err}", file.as_deref().or(program).unwrap_or("the program"))))
        };
        match mark {
            Mark::Marker(_) => instance.take_markers()?,
            Mark::Function { file, name } => {
                let places = |file| punctual_code::functions(file, name);
                add_all(instance, index, &find(file)?, places, impossible)?;
            }
            Mark::Usdt { file, provider, name } => {
                let places = |file| punctual_code::static_probes(file, provider, name);
                add_all(instance, index, &find(file)?, places, impossible)?;
            }
        }
    }
    Ok(())
}

/// Adds the probes of a mark in all files that have it. Errors: when none has.
fn add_all(
    instance: &mut Instance,
    mark: usize,
    files: &[File],
    places: impl Fn(File) -> Result<Vec<ProbePlace>, NoPlace>,
    impossible: impl Fn(String) -> CellError,
) -> Result<(), CellError> {
    let (mut why, mut is_somewhere) = (None, false);
    for file in files {
        match file.try_clone().map(&places).map_err(|err| impossible(err.to_string()))? {
            Ok(places) => {
                instance.add_probes(mark, file, &places)?;
                is_somewhere = true;
            }
            Err(err) => why = Some(err),
        }
    }
    match why {
        Some(why) if !is_somewhere => Err(impossible(why.to_string())),
        _ => Ok(()),
    }
}

/// The files of this name: those that the watched processes have mapped, or else where programs and libraries are. No
/// name stands for the program itself.
fn files(name: Option<&str>, program: Option<&str>, targets: &Targets) -> io::Result<Vec<File>> {
    let is_program = |name: &str| program.is_some_and(|program| Path::new(program).file_name() == Some(name.as_ref()));
    let path = match (name, program) {
        (None, None) => None,
        (Some(name), _) if name.contains('/') => Some(PathBuf::from(name)),
        (None, Some(program)) => Some(program_file(program)?),
        (Some(name), Some(program)) if is_program(name) => Some(program_file(program)?),
        (Some(name), _) => {
            let mapped = of_processes(targets, Some(name));
            if !mapped.is_empty() {
                return Ok(mapped);
            }
            Some(library(name).map_or_else(|| program_file(name), Ok)?)
        }
    };
    match path {
        Some(path) => Ok(vec![file::open(&path)?]),
        None => Some(of_processes(targets, None)).filter(|all| !all.is_empty()).ok_or(io::ErrorKind::NotFound.into()),
    }
}

fn program_file(name: &str) -> io::Result<PathBuf> {
    instrument::find(name).map_err(|_| io::ErrorKind::NotFound.into())
}

fn library(name: &str) -> Option<PathBuf> {
    let given = std::env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
    let architecture = format!("{}-linux-gnu", std::env::consts::ARCH);
    let known = LIBRARIES
        .iter()
        .flat_map(|directory| [Path::new(directory).to_owned(), Path::new(directory).join(&architecture)]);
    std::env::split_paths(&given).chain(known).map(|directory| directory.join(name)).find(|path| path.is_file())
}

/// The executables of the watched processes, or the files of a name that they have mapped, each once.
fn of_processes(targets: &Targets, name: Option<&str>) -> Vec<File> {
    let mut processes: Vec<u32> = targets.tids.iter().filter_map(|tid| punctual_host::process_of(*tid)).collect();
    processes.sort_unstable();
    processes.dedup();
    let files_of = |pid: u32| -> Vec<((u64, u64), Arc<File>)> {
        let Some(name) = name else {
            return punctual_host::executable_of(pid).map(|(id, file)| (id, Arc::new(file))).into_iter().collect();
        };
        let mapped = mapped_code(pid, &[]).into_iter().filter(|one| one.name == name);
        mapped.filter_map(|one| Some((one.id, one.file?))).collect()
    };
    let files: BTreeMap<_, _> = processes.into_iter().flat_map(files_of).collect();
    files.into_values().filter_map(|file| file.try_clone().ok()).collect()
}
