//! One mapped file: how to unwind its frames, and the functions and lines at its addresses.

use crate::Place;
use crate::budget::Budget;
use crate::elf::Elf;
use crate::registers::{RETURN, Registers, STACK};
use crate::sample::RawSample;
use crate::symbols::Symbols;
use gimli::{
    BaseAddresses, CfaRule, EhFrame, EhFrameHdr, EndianArcSlice, LittleEndian, ParsedEhFrameHdr, Register,
    RegisterRule, SectionId, UnwindContext, UnwindSection,
};
use std::cell::{OnceCell, RefCell};
use std::fs::File;
use std::rc::Rc;
use std::sync::Arc;

/// Bytes of a file.
type Bytes = EndianArcSlice<LittleEndian>;
/// Longest name that is kept, characters.
const MOST_CHARACTERS: usize = 200;
/// Most functions that are inlined into one.
const MOST_INLINED: usize = 16;
/// Deepest nesting of entries of debug information: addr2line calls itself for each inlined function in another one.
const MOST_DEPTH: isize = 500;
/// Largest `.eh_frame` that is searched from its beginning, where no index is there: bytes.
const MOST_WITHOUT_INDEX: u64 = 1 << 20;

/// A mapped file.
pub(crate) struct Module {
    elf: Elf,
    unwinding: Option<Unwinding>,
    /// Read when the first name is needed.
    names: OnceCell<Names>,
}

impl std::fmt::Debug for Module {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Module").field("elf", &self.elf).finish_non_exhaustive()
    }
}

/// The tables that tell the caller of each address.
struct Unwinding {
    frames: EhFrame<Bytes>,
    index: Option<ParsedEhFrameHdr<Bytes>>,
    bases: BaseAddresses,
    context: RefCell<UnwindContext<usize>>,
}

/// Functions and lines.
struct Names {
    symbols: Symbols,
    lines: Option<addr2line::Context<Bytes>>,
}

fn bytes(data: Arc<[u8]>) -> Bytes {
    Bytes::new(data, LittleEndian)
}

impl Module {
    /// Reads the headers of a file; `None` unless it is an ELF file of this machine.
    pub(crate) fn open(file: &Arc<File>, budget: &Rc<Budget>) -> Option<Module> {
        budget.open_file()?;
        let elf = Elf::open(file, budget)?;
        let unwinding = Unwinding::of(&elf);
        Some(Module { elf, unwinding, names: OnceCell::new() })
    }

    /// The address, without relocation, of a byte of the file.
    pub(crate) fn address_of(&self, offset: u64) -> Option<u64> {
        self.elf.address_of(offset)
    }

    /// Replaces the registers by those of the caller; `None` where nothing tells them, or none called.
    pub(crate) fn step(&self, address: u64, registers: &mut Registers, sample: &RawSample) -> Option<()> {
        self.unwinding.as_ref()?.step(address, registers, sample)
    }

    /// Functions at an address, innermost first; at least one, possibly without a name.
    pub(crate) fn places(&self, address: u64) -> Vec<Place> {
        let names = self.names.get_or_init(|| Names::of(&self.elf));
        let mut places = names.lines.as_ref().map_or_else(Vec::new, |lines| inlined(lines, address));
        if places.is_empty() {
            places.push((None, None, None));
        }
        if let Some((function, ..)) = places.last_mut().filter(|(function, ..)| function.is_none()) {
            let name = names.symbols.name(address);
            *function = name.map(|name| plain(&addr2line::demangle_auto(name.into(), None)));
        }
        places
    }
}

/// Only what can be printed, and not too much of it.
pub(crate) fn plain(name: &str) -> String {
    name.chars().filter(|c| punctual_model::is_plain(*c)).take(MOST_CHARACTERS).collect()
}

/// Functions at an address with their lines, innermost first.
fn inlined(lines: &addr2line::Context<Bytes>, address: u64) -> Vec<Place> {
    let mut places = Vec::new();
    let Ok(mut frames) = lines.find_frames(address).skip_all_loads() else { return places };
    while let Ok(Some(frame)) = frames.next() {
        let name = frame.function.as_ref().and_then(|name| name.demangle().ok().map(|name| plain(&name)));
        let file = frame.location.as_ref().and_then(|at| at.file.map(plain));
        let line = frame.location.as_ref().and_then(|at| at.line).filter(|line| *line > 0);
        places.push((name.filter(|name| !name.is_empty()), file, line));
        if places.len() >= MOST_INLINED {
            break;
        }
    }
    places
}

/// The file with what was stripped: symbols, lines or both.
fn separate(elf: &Elf) -> Option<Elf> {
    let id = elf.build_id()?;
    let file = punctual_host::debug_file(&id)?;
    elf.other(file).filter(|found| found.build_id().as_ref() == Some(&id))
}

fn symbols_of(elf: &Elf, separate: Option<&Elf>) -> Symbols {
    let own = Symbols::of(elf);
    match separate {
        Some(separate) if elf.section(".symtab").is_none() => {
            Some(Symbols::of(separate)).filter(|found| !found.is_empty()).unwrap_or(own)
        }
        _ => own,
    }
}

/// The functions of a file, and whether they are all, not only those for linking.
pub(crate) fn symbols(elf: &Elf) -> (Symbols, bool) {
    let separate = separate(elf);
    (symbols_of(elf, separate.as_ref()), elf.section(".symtab").is_some() || separate.is_some())
}

impl Names {
    fn of(elf: &Elf) -> Names {
        let separate = separate(elf);
        let has_lines = |elf: &&Elf| elf.section(".debug_info").is_some();
        let with_lines = Some(elf).filter(has_lines).or(separate.as_ref().filter(has_lines));
        Names { symbols: symbols_of(elf, separate.as_ref()), lines: with_lines.and_then(lines_of) }
    }
}

/// Whether functions and lines need this section: not those of variables, types and macros.
fn is_needed(id: SectionId) -> bool {
    use SectionId::{
        DebugAbbrev, DebugAddr, DebugAranges, DebugInfo, DebugLine, DebugLineStr, DebugRanges, DebugRngLists, DebugStr,
        DebugStrOffsets,
    };
    matches!(id, DebugInfo | DebugAbbrev | DebugLine | DebugStr | DebugLineStr | DebugStrOffsets)
        || matches!(id, DebugAranges | DebugRanges | DebugRngLists | DebugAddr)
}

/// Lines of a file with debug information.
fn lines_of(elf: &Elf) -> Option<addr2line::Context<Bytes>> {
    let load = |id: SectionId| {
        let data = is_needed(id).then(|| elf.data(id.name())).flatten();
        let data = data.filter(|data| id != SectionId::DebugLine || elf.budget().take_lines(data.len()).is_some());
        Ok::<_, gimli::Error>(bytes(data.unwrap_or_default()))
    };
    let mut dwarf = gimli::Dwarf::load(load).ok()?;
    // Many units may have the same abbreviations, which then are parsed once.
    dwarf.populate_abbreviations_cache(gimli::AbbreviationsCacheStrategy::Duplicates);
    let is_shallow = is_shallow(&dwarf, elf.budget()).unwrap_or(false);
    is_shallow.then(|| addr2line::Context::from_dwarf(dwarf).ok()).flatten()
}

/// Whether no entry is deeper than [`MOST_DEPTH`]; entries behind a damaged one of their unit are never read.
fn is_shallow(dwarf: &gimli::Dwarf<Bytes>, budget: &Budget) -> gimli::Result<bool> {
    let of_unit = |unit: gimli::UnitHeader<Bytes>| -> gimli::Result<bool> {
        let abbreviations = dwarf.abbreviations(&unit)?;
        let mut entries = unit.entries_raw(&abbreviations, None)?;
        while !entries.is_empty() {
            let is_deep = entries.next_depth() > MOST_DEPTH;
            match entries.read_abbreviation()? {
                Some(_) if is_deep => return Ok(false),
                Some(abbreviation) => entries.skip_attributes(abbreviation.attributes())?,
                None => {}
            }
        }
        Ok(true)
    };
    let mut units = dwarf.units();
    while let Some(unit) = units.next()? {
        if !budget.is_open() || !of_unit(unit).unwrap_or(true) {
            return Ok(false);
        }
    }
    Ok(true)
}

impl Unwinding {
    fn of(elf: &Elf) -> Option<Unwinding> {
        let section = elf.section(".eh_frame")?;
        let mut bases = BaseAddresses::default().set_eh_frame(section.address);
        if let Some(text) = elf.section(".text") {
            bases = bases.set_text(text.address);
        }
        if let Some(got) = elf.section(".got") {
            bases = bases.set_got(got.address);
        }
        let header = elf.section(".eh_frame_hdr");
        if let Some(header) = header {
            bases = bases.set_eh_frame_hdr(header.address);
        }
        let data = elf.data(".eh_frame")?;
        let is_small = data.len() as u64 <= MOST_WITHOUT_INDEX;
        let mut frames = EhFrame::from(bytes(data));
        frames.set_address_size(elf.address_bytes());
        let index = header
            .and_then(|_| elf.data(".eh_frame_hdr"))
            .and_then(|data| EhFrameHdr::from(bytes(data)).parse(&bases, elf.address_bytes()).ok());
        let index = index.filter(|index| index.table().is_some());
        (index.is_some() || is_small).then(|| Unwinding {
            frames,
            index,
            bases,
            context: RefCell::new(UnwindContext::new()),
        })
    }

    fn step(&self, address: u64, registers: &mut Registers, sample: &RawSample) -> Option<()> {
        let frames = &self.frames;
        let fde = match self.index.as_ref().and_then(ParsedEhFrameHdr::table) {
            Some(table) => table.fde_for_address(frames, &self.bases, address, EhFrame::cie_from_offset),
            None => frames.fde_for_address(&self.bases, address, EhFrame::cie_from_offset),
        };
        let fde = fde.ok()?;
        let mut context = self.context.try_borrow_mut().ok()?;
        let row = fde.unwind_info_for_address(frames, &self.bases, &mut context, address).ok()?;
        let CfaRule::RegisterAndOffset { register, offset } = row.cfa() else { return None };
        let cfa = registers.get(usize::from(register.0))?.wrapping_add_signed(*offset);
        let before = registers.clone();
        for (number, value) in registers.values.iter_mut().enumerate() {
            let number = Register(u16::try_from(number).ok()?);
            *value = match row.register(number) {
                None | Some(RegisterRule::SameValue) => *value,
                Some(RegisterRule::Offset(offset)) => sample.word(cfa.wrapping_add_signed(offset)),
                Some(RegisterRule::ValOffset(offset)) => Some(cfa.wrapping_add_signed(offset)),
                Some(RegisterRule::Register(other)) => before.get(usize::from(other.0)),
                Some(RegisterRule::Constant(value)) => Some(value),
                // Expressions occur in signal handlers and hand-written code: the stack ends there.
                Some(_) => None,
            };
        }
        let back = usize::from(fde.cie().return_address_register().0);
        registers.counter = registers.get(back)?;
        registers.set(STACK, Some(cfa));
        // Where the call pushed it, it belongs to that frame alone.
        if cfg!(target_arch = "x86_64") {
            registers.set(RETURN, None);
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_information_that_is_nested_too_deeply_is_left_out() {
        // A unit, and inlined functions, each in the one before, without attributes.
        let abbreviations = [1, 0x11, 1, 0, 0, 2, 0x1d, 1, 0, 0, 0];
        let with = |depth: usize, end: &[u8]| {
            let entries = [&[1][..], &[2].repeat(depth), end].concat();
            let head =
                [&(u32::try_from(entries.len()).unwrap() + 7).to_le_bytes()[..], &[4, 0, 0, 0, 0, 0, 8]].concat();
            let load = |id: SectionId| {
                let data = match id {
                    SectionId::DebugInfo => [&head[..], &entries].concat(),
                    SectionId::DebugAbbrev => abbreviations.to_vec(),
                    _ => Vec::new(),
                };
                Ok::<_, gimli::Error>(bytes(data.into()))
            };
            is_shallow(&gimli::Dwarf::load(load).unwrap(), &Budget::new(Arc::default()))
        };
        for (depth, end, expected) in [
            (0, &[0][..], Ok(true)),
            (500, &[0; 501], Ok(true)),
            (501, &[0; 502], Ok(false)),
            (501, &[], Ok(false)),
            // Damaged: its abbreviation is not there.
            (500, &[7], Ok(true)),
            (1 << 20, &[], Ok(false)),
        ] {
            assert_eq!(with(depth, end), expected, "{depth} {end:?}");
        }
    }
}
