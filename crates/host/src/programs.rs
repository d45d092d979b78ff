//! Programs of this version for other architectures.

use super::{THIS_PROGRAM, file};
use punctual_model::Architecture;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Environment variable with a directory of programs of other architectures.
pub const BINARIES_VARIABLE: &str = "PUNCTUAL_BINARIES";

/// Version mark in the file of each program. A program of another architecture cannot be run for its version.
#[used]
static VERSION_MARK: &[u8] = concat!("\0punctual program ", env!("CARGO_PKG_VERSION"), "\0").as_bytes();

/// Size limit of a program, bytes: with debug information it has some hundred MiB.
const LARGEST: u64 = 1 << 30;

/// Kind of a program: the ending of its file name, and its class and machine in the header of ELF files (linux/elf.h,
/// linux/elf-em.h).
#[derive(Debug, Clone, Copy)]
struct Kind {
    name: &'static str,
    elf_class: u8,
    elf_machine: u16,
}

impl Kind {
    /// 32-bit Arm, which runs no lab.
    const ARM: Kind = Kind { name: "arm", elf_class: 1, elf_machine: 40 };

    fn of(architecture: Architecture) -> Kind {
        Kind { name: architecture.name(), elf_class: 2, elf_machine: architecture.elf_machine() }
    }
}

/// The program of this version for `architecture`: this one, or `punctual-ARCHITECTURE` in `$PUNCTUAL_BINARIES`, beside
/// this program, or in `../lib/punctual`. A file of another version or architecture is an error, and no later one is
/// tried. Errors: one line with the files looked for, or the file and the reason, and the remedy.
pub fn program_of(architecture: Architecture) -> Result<PathBuf, String> {
    own_or_found(Kind::of(architecture))
}

/// The program of this version for a machine that `uname -m` calls `machine`; `None` if it is built for none such.
/// Errors: as [`program_of`].
pub fn program_for(machine: &str) -> Option<Result<PathBuf, String>> {
    let kind = match machine {
        "armv7l" | "armv8l" => Kind::ARM,
        _ => Kind::of(Architecture::ALL.into_iter().find(|architecture| architecture.name() == machine)?),
    };
    Some(own_or_found(kind))
}

fn own_or_found(kind: Kind) -> Result<PathBuf, String> {
    if std::env::consts::ARCH == kind.name {
        return Ok(PathBuf::from(THIS_PROGRAM));
    }
    let set = std::env::var_os(BINARIES_VARIABLE).filter(|value| !value.is_empty()).map(PathBuf::from);
    let here = std::fs::read_link(THIS_PROGRAM).ok().and_then(|path| path.parent().map(Path::to_owned));
    find(kind, set.as_deref(), here.as_deref())
}

fn find(kind: Kind, set: Option<&Path>, here: Option<&Path>) -> Result<PathBuf, String> {
    let name = format!("punctual-{}", kind.name);
    let places = [set.map(Path::to_owned), here.map(Path::to_owned), here.map(|here| here.join("../lib/punctual"))];
    let files: Vec<_> = places.into_iter().flatten().map(|place| place.join(&name)).collect();
    let Some(found) = files.iter().find(|path| path.exists()) else {
        return Err(format!(
            "found no {name}, this program for {}; copy it beside this one, or name its directory: {BINARIES_VARIABLE}=DIR; \
             in the source, make others builds it there",
            kind.name
        ));
    };
    let failed = |reason: &str| format!("{}: {reason}", found.display());
    let mut content = Vec::new();
    let read = file::open(found).and_then(|file| file.take(LARGEST).read_to_end(&mut content));
    read.map_err(|err| failed(&err.to_string()))?;
    match why_unusable(&content, kind) {
        Some(reason) => Err(failed(reason)),
        None => Ok(found.clone()),
    }
}

/// Reason why a file is not the program of this version of a kind.
fn why_unusable(content: &[u8], kind: Kind) -> Option<&'static str> {
    const LITTLE_ENDIAN: u8 = 1;
    let header = [0x7f, b'E', b'L', b'F', kind.elf_class, LITTLE_ENDIAN];
    let machine = content.get(0x12..0x14).map(|bytes| u16::from_le_bytes([bytes[0], bytes[1]]));
    let is_of_it = content.starts_with(&header) && machine == Some(kind.elf_machine);
    match () {
        () if !is_of_it => Some("a program of another architecture; build it for this one (cargo build --target)"),
        () if !contains(content, VERSION_MARK) => Some("another version than this program; build both from one source"),
        () => None,
    }
}

/// Whether `content` contains `mark`, which begins with a zero byte followed by another one.
fn contains(content: &[u8], mark: &[u8]) -> bool {
    let second = mark.get(1).copied().unwrap_or_default();
    let mut at = 0;
    while let Some(found) = content.get(at..).and_then(|rest| rest.iter().position(|byte| *byte == second)) {
        let start = at + found;
        if start > 0 && content[start - 1..].starts_with(mark) {
            return true;
        }
        at = start + 1;
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Scratch;

    /// A file with the header of an ELF program.
    fn program(class: u8, machine: u16, rest: &[u8]) -> Vec<u8> {
        let mut file = vec![0x7f, b'E', b'L', b'F', class, 1];
        file.resize(0x12, 0);
        file.extend(machine.to_le_bytes());
        file.extend_from_slice(rest);
        file
    }

    #[test]
    fn a_program_is_looked_for_in_order_and_must_be_of_this_version() {
        let other = Architecture::ALL.into_iter().find(|one| Architecture::OWN != Some(*one)).unwrap();
        let scratch = Scratch::make();
        let name = format!("punctual-{}", other.name());
        let [set, here] = ["set", "bin"].map(|name| scratch.path(name));
        std::fs::create_dir_all(&here).unwrap();
        let find = || {
            find(Kind::of(other), Some(&set), Some(&here))
                .map_err(|err| err.replace(&scratch.dir().display().to_string(), ""))
        };
        let message = find().unwrap_err();
        assert!(
            message.starts_with(&format!("found no {name}")) && message.contains("PUNCTUAL_BINARIES=DIR"),
            "{message}"
        );
        let good = program(2, other.elf_machine(), VERSION_MARK);
        for place in ["lib/punctual", "bin", "set"] {
            scratch.file(&format!("{place}/{name}"), &good);
            assert!(find().unwrap().canonicalize().unwrap().ends_with(format!("{place}/{name}")), "{place}");
        }
        for (content, expected) in [
            (program(2, 3, VERSION_MARK), "a program of another architecture"),
            (program(1, other.elf_machine(), VERSION_MARK), "a program of another architecture"),
            (b"#!/bin/sh\n".to_vec(), "a program of another architecture"),
            (Vec::new(), "a program of another architecture"),
            (program(2, other.elf_machine(), b"\0punctual program 0.0.1\0"), "another version"),
            (program(2, other.elf_machine(), &VERSION_MARK[..VERSION_MARK.len() - 1]), "another version"),
        ] {
            scratch.file(&format!("set/{name}"), content);
            let message = find().unwrap_err();
            assert!(message.starts_with(&format!("/set/{name}: {expected}")), "{message}");
        }
        assert_eq!(program_of(Architecture::OWN.unwrap_or(other)).is_ok(), Architecture::OWN.is_some());
    }

    #[test]
    fn a_machine_is_called_as_uname_calls_it() {
        let own = Ok(PathBuf::from(THIS_PROGRAM));
        assert!(Architecture::OWN.is_none_or(|own_one| program_for(own_one.name()) == Some(own)));
        for unknown in ["s390x", "i686", "armv6l", "", "arm"] {
            assert_eq!(program_for(unknown), None, "{unknown}");
        }
        let scratch = Scratch::make();
        scratch.file("punctual-arm", program(1, 40, VERSION_MARK));
        let found = find(Kind::ARM, Some(scratch.dir()), None);
        assert!(found.unwrap().ends_with("punctual-arm"));
    }
}
