//! Places of a file where the kernel can put probes: functions by name, and the static probes of `sys/sdt.h`.

use crate::budget::Budget;
use crate::elf::{Elf, integer, text};
use crate::module::symbols;
use std::fs::File;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Most places of one mark: overloads, and the copies of inlined or generic functions.
const MOST_PLACES: usize = 32;
/// Most static probes of a file.
const MOST_NOTES: usize = 1 << 16;
/// Type of their notes, and the name of its owner.
const NOTE_KIND: u64 = 3;
const NOTE_OWNER: &[u8] = b"stapsdt\0";
const NOTES: &str = ".note.stapsdt";
/// Names that are offered instead of one that is not there.
const MOST_OFFERED: usize = 5;

/// Where the kernel puts a probe.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ProbePlace {
    /// Offset of the instruction in the file.
    pub offset: u64,
    /// Offset of the counter that tells the program that it is traced; `None` where the probe has none.
    pub counter: Option<u64>,
}

/// Reason why a file has no such place.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoPlace {
    /// It is not an executable or library of this machine.
    #[error("not an ELF file of this machine; name the executable or library: FILE")]
    Kind,
    /// It has no names of functions.
    #[error("no symbols: stripped, and no debug file of the same build ID; keep them (no -s, no strip)")]
    Stripped,
    /// It has no static probes.
    #[error("no USDT probes (section .note.stapsdt)")]
    NoProbes,
    /// The name is not there.
    #[error("not found{0}")]
    Unknown(String),
    /// It is there too often.
    #[error("{0} places, at most {MOST_PLACES}")]
    TooMany(usize),
    /// It is not in a part of the file that is mapped.
    #[error("damaged file")]
    Damaged,
}

fn open(file: File) -> Result<Elf, NoPlace> {
    let budget = Rc::new(Budget::new(Arc::new(AtomicBool::new(false))));
    Elf::open(&Arc::new(file), &budget).ok_or(NoPlace::Kind)
}

/// The beginnings of the functions of this name: as in the table of symbols, or demangled, with or without its
/// arguments. Errors: why there is none.
pub fn functions(file: File, name: &str) -> Result<Vec<ProbePlace>, NoPlace> {
    let elf = open(file)?;
    let (symbols, has_all) = symbols(&elf);
    let is_it = |raw: &str| raw == name || is_demangled(raw, name);
    let mut found: Vec<u64> = symbols.all().filter(|(raw, _)| is_it(raw)).map(|(_, address)| address).collect();
    found.sort_unstable();
    found.dedup();
    if found.is_empty() && !has_all {
        return Err(NoPlace::Stripped);
    }
    let similar = || similar(symbols.all().map(|(raw, _)| raw), last_part(name));
    places(&elf, found.into_iter().map(|address| (address, None)).collect(), similar)
}

/// The places of a static probe. Errors: why there is none.
pub fn static_probes(file: File, provider: &str, name: &str) -> Result<Vec<ProbePlace>, NoPlace> {
    let elf = open(file)?;
    let notes = elf.data(NOTES).ok_or(NoPlace::NoProbes)?;
    let base = elf.section(".stapsdt.base").map(|section| section.address);
    let all = probes(&notes, usize::from(elf.address_bytes()), base);
    let mut found: Vec<_> = all
        .iter()
        .filter(|one| (&*one.provider, &*one.name) == (provider, name))
        .map(|one| (one.address, Some(one.counter).filter(|counter| *counter != 0)))
        .collect();
    found.sort_unstable();
    found.dedup();
    places(&elf, found, || similar(all.iter().map(|one| format!("{}:{}", one.provider, one.name)), ""))
}

fn places(
    elf: &Elf,
    found: Vec<(u64, Option<u64>)>,
    similar: impl FnOnce() -> String,
) -> Result<Vec<ProbePlace>, NoPlace> {
    match found.len() {
        0 => return Err(NoPlace::Unknown(similar())),
        1..=MOST_PLACES => {}
        n => return Err(NoPlace::TooMany(n)),
    }
    let place = |(address, counter): (u64, Option<u64>)| {
        let counter = counter.map(|counter| elf.offset_of(counter).ok_or(NoPlace::Damaged)).transpose()?;
        Ok(ProbePlace { offset: elf.offset_of(address).ok_or(NoPlace::Damaged)?, counter })
    };
    found.into_iter().map(place).collect()
}

/// Whether a symbol is this name, mangled.
fn is_demangled(raw: &str, name: &str) -> bool {
    // Mangled names contain the parts of a name as they are.
    if !(raw.starts_with("_Z") || raw.starts_with("_R")) || !raw.contains(last_part(name)) {
        return false;
    }
    let whole = addr2line::demangle_auto(raw.into(), None);
    // A hash of the compiler (Rust), or arguments (C++), end it.
    let bare = whole.rsplit_once("::h").filter(|(_, hash)| hash.len() == 16).map_or(&*whole, |(bare, _)| bare);
    bare == name || bare.strip_prefix(name).is_some_and(|rest| rest.starts_with('('))
}

/// The last part of a name, without arguments.
fn last_part(name: &str) -> &str {
    let name = name.split(['(', '<']).next().unwrap_or_default();
    name.rsplit("::").next().unwrap_or_default()
}

/// A hint at names that contain this part.
fn similar<T: AsRef<str>>(names: impl Iterator<Item = T>, part: &str) -> String {
    let mut found: Vec<String> = Vec::new();
    for name in names.filter(|name| name.as_ref().contains(part)) {
        let name = crate::module::plain(&addr2line::demangle_auto(name.as_ref().into(), None));
        if !found.contains(&name) {
            found.push(name);
        }
        if found.len() >= MOST_OFFERED {
            break;
        }
    }
    if found.is_empty() { String::new() } else { format!("; there are {}", found.join(", ")) }
}

/// A static probe of a file.
#[derive(Debug, PartialEq, Eq)]
struct StaticProbe {
    provider: String,
    name: String,
    address: u64,
    /// Address of its counter; 0: none.
    counter: u64,
}

/// The probes of a section of notes, with addresses of so many bytes; `base` is the address that their addresses refer
/// to.
fn probes(notes: &[u8], address_bytes: usize, base: Option<u64>) -> Vec<StaticProbe> {
    let mut all = Vec::new();
    let mut rest = notes;
    while let Some((probe, after)) = note(rest, address_bytes, base) {
        all.extend(probe);
        rest = after;
        if all.len() >= MOST_NOTES {
            break;
        }
    }
    all
}

/// The first note, if it is that of a probe, and what is behind it; `None` at the end, or where it is damaged.
fn note(notes: &[u8], address_bytes: usize, base: Option<u64>) -> Option<(Option<StaticProbe>, &[u8])> {
    let size = |at: usize| usize::try_from(integer(notes, at, 4)?).ok();
    let (owner_bytes, bytes, kind) = (size(0)?, size(4)?, integer(notes, 8, 4)?);
    let owner_end = 12_usize.checked_add(owner_bytes)?;
    let from = owner_end.checked_next_multiple_of(4)?;
    let content = notes.get(from..from.checked_add(bytes)?)?;
    let is_probe = kind == NOTE_KIND && notes.get(12..owner_end)? == NOTE_OWNER;
    let probe = || {
        let word = |index: usize| integer(content, index * address_bytes, address_bytes);
        // The base moves with the addresses where the file was relocated after linking.
        let moved = |address: u64, linked: u64| address.wrapping_add(base.unwrap_or(linked)).wrapping_sub(linked);
        let (address, linked, counter) = (word(0)?, word(1)?, word(2)?);
        let provider = text(content, 3 * address_bytes as u64)?;
        let name = text(content, (3 * address_bytes + provider.len() + 1) as u64)?;
        let owned = |text: &[u8]| String::from_utf8_lossy(text).into_owned();
        let counter = if counter == 0 { 0 } else { moved(counter, linked) };
        Some(StaticProbe { provider: owned(provider), name: owned(name), address: moved(address, linked), counter })
    };
    let end = from.checked_add(bytes)?.checked_next_multiple_of(4)?;
    Some((is_probe.then(probe).flatten(), notes.get(end..).unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(address: u64, counter: u64, names: &[u8]) -> Vec<u8> {
        let mut content: Vec<u8> = [address, 0x1000, counter].iter().flat_map(|word| word.to_le_bytes()).collect();
        content.extend(names);
        let mut note: Vec<u8> =
            [8, u32::try_from(content.len()).unwrap(), 3].iter().flat_map(|word| word.to_le_bytes()).collect();
        note.extend(NOTE_OWNER);
        note.extend(content);
        note.resize(note.len().next_multiple_of(4), 0);
        note
    }

    #[test]
    fn probes_are_read_as_far_as_they_are_whole() {
        let one = |address: u64, counter: u64| StaticProbe {
            provider: "servo".to_owned(),
            name: "solve".to_owned(),
            address,
            counter,
        };
        let names = b"servo\0solve\0-4@%eax\0";
        let mut notes = written(0x2000, 0, names);
        notes.extend(written(0x3000, 0x5000, names));
        assert_eq!(probes(&notes, 8, None), [one(0x2000, 0), one(0x3000, 0x5000)]);
        assert_eq!(probes(&notes, 8, Some(0x1100)), [one(0x2100, 0), one(0x3100, 0x5100)], "relocated");
        let first = written(0x2000, 0, names).len();
        for end in 0..notes.len() {
            let expected = usize::from(end >= first - 4 || end >= first);
            assert!(probes(&notes[..end], 8, None).len() <= expected.max(1), "{end}");
        }
        assert_eq!(probes(&written(0x2000, 0, b"no end"), 8, None), []);
        assert_eq!(probes(&[0xff; 64], 8, None), []);
        let mut foreign = written(0x2000, 0, names);
        foreign[12] = b'x';
        foreign.extend(written(0x3000, 0, names));
        assert_eq!(probes(&foreign, 8, None), [one(0x3000, 0)]);
    }

    #[test]
    fn mangled_names_are_known_with_their_arguments_or_without() {
        for (raw, name, is_it) in [
            ("_ZN3Arm5solveEd", "Arm::solve", true),
            ("_ZN3Arm5solveEd", "Arm::solve(double)", true),
            ("_ZN3Arm5solveEd", "solve", false),
            ("_ZN3Arm6solvedEd", "Arm::solve", false),
            ("_ZN5servo5solve17h0123456789abcdefE", "servo::solve", true),
            ("solve", "solve", false),
        ] {
            assert_eq!(is_demangled(raw, name), is_it, "{raw} {name}");
        }
    }

    #[test]
    fn a_file_that_has_no_such_place_says_why() {
        let own = || File::open("/proc/self/exe").unwrap();
        let script = || File::open(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml")).unwrap();
        assert_eq!(functions(script(), "main"), Err(NoPlace::Kind));
        assert_eq!(static_probes(own(), "a", "b"), Err(NoPlace::NoProbes));
        let Err(NoPlace::Unknown(said)) = functions(own(), "is_no_function_at_all") else { panic!() };
        assert_eq!(said, "");
        let here = "punctual_code::probe::is_demangled";
        assert_eq!(functions(own(), here).unwrap().len(), 1);
    }
}
