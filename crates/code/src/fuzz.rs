//! Damaged ELF files, for as long as `cargo xtask fuzz` requests: none panics, and each is finished with.

use crate::budget::Budget;
use crate::module::Module;
use crate::registers::Registers;
use crate::sample::RawSample;
use proptest::prelude::Rng;
use proptest::test_runner::{RngAlgorithm, TestRng};
use punctual_host::testing::Scratch;
use punctual_sys::testing::{fuzz_runs, fuzz_seed, is_overflow};
use std::fs::File;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::process::Command;
use std::rc::Rc;
use std::sync::Arc;

const SOURCE: &str = "\
    static inline __attribute__((always_inline)) int inner(int x) { return x * 3; }\n\
    __attribute__((noinline)) int middle(int x) { volatile char room[300]; room[x & 255] = 1; return inner(x) + room[3]; }\n\
    int main(int argc, char **argv) { (void)argv; return middle(argc) & 1; }\n";

/// A small program with debug information; `None` without a compiler.
fn program(directory: &Scratch, options: &[&str]) -> Option<Vec<u8>> {
    let (source, program) = (directory.path("small.c"), directory.path("small"));
    std::fs::write(&source, SOURCE).unwrap();
    let compiled = Command::new("cc").args(["-O1", "-g"]).args(options).arg("-o").arg(&program).arg(&source).status();
    if !compiled.is_ok_and(|status| status.success()) {
        println!("skipped: no C compiler (package gcc)");
        return None;
    }
    Some(std::fs::read(program).unwrap())
}

fn open(directory: &Scratch, bytes: &[u8]) -> Option<Module> {
    let path = directory.path("damaged");
    std::fs::write(&path, bytes).unwrap();
    let file = || File::open(&path).unwrap();
    let _ = (crate::functions(file(), "middle"), crate::static_probes(file(), "small", "middle"));
    Module::open(&Arc::new(File::open(path).unwrap()), &Rc::new(Budget::new(Arc::default())))
}

/// Looks up addresses all over a file, and steps from them.
fn visit(module: &Module) -> usize {
    let stack: Vec<u8> = (0..=255).cycle().take(1024).collect();
    let sample = RawSample {
        event: 0,
        at_ns: 0,
        registers: Registers::of_sample(&[0x1000; 64]),
        stack: stack.into_boxed_slice(),
    };
    let mut named = 0;
    for address in (0..0x4000).step_by(7) {
        let Some(at) = module.address_of(address) else { continue };
        named += module.places(at).iter().filter(|(name, ..)| name.is_some()).count();
        let mut registers = sample.registers.clone();
        let _ = module.step(at, &mut registers, &sample);
    }
    named
}

#[test]
fn functions_lines_and_inlined_ones_are_named() {
    let directory = Scratch::make();
    for options in [&[][..], &["-gz=zlib"], &["-gdwarf-4"]] {
        let Some(bytes) = program(&directory, options) else { return };
        let module = open(&directory, &bytes).unwrap();
        let mut all = Vec::new();
        for at in (0..0x4000).filter_map(|address| module.address_of(address)) {
            all.extend(module.places(at));
        }
        for (function, line) in [("inner", 1), ("middle", 2), ("main", 3)] {
            let is_it = |(name, file, found): &crate::Place| {
                name.as_deref() == Some(function)
                    && file.as_ref().is_some_and(|file| file.ends_with("small.c"))
                    && *found == Some(line)
            };
            assert!(all.iter().any(is_it), "{options:?}: {function}:{line} in {all:?}");
        }
    }
    let Some(bytes) = program(&directory, &["-s"]) else { return };
    let module = open(&directory, &bytes).unwrap();
    let of_main = |one: &crate::Place| one.0.as_deref() == Some("main") || one.2.is_some();
    let stripped: Vec<_> =
        (0..0x4000).filter_map(|at| module.address_of(at)).flat_map(|at| module.places(at)).collect();
    assert!(!stripped.iter().any(of_main), "{stripped:?}");
}

/// A program whose sections of debug information are 60 MiB of compressed zeros each.
fn bomb() -> Vec<u8> {
    const BYTES: u64 = 60 << 20;
    let names =
        ["", ".names", ".debug_info", ".debug_abbrev", ".debug_line", ".debug_str", ".debug_ranges", ".eh_frame"];
    let table: String = names.iter().flat_map(|name| [name, "\0"]).collect();
    let mut packed: Vec<u8> = [1, BYTES, 1].iter().flat_map(|field: &u64| field.to_le_bytes()).collect();
    let zeros = std::io::Read::take(std::io::repeat(0), BYTES);
    std::io::copy(&mut flate2::read::ZlibEncoder::new(zeros, flate2::Compression::fast()), &mut packed).unwrap();
    let mut file = program_header(64 + u64::try_from(table.len() + packed.len()).unwrap(), names.len());
    file.extend_from_slice(table.as_bytes());
    file.extend_from_slice(&packed);
    for (index, name) in names.iter().enumerate() {
        let at = names[..index].iter().map(|name| name.len() + 1).sum::<usize>();
        let (flags, offset, bytes) = match *name {
            ".names" => (0, 64, table.len()),
            _ => (1 << 11, 64 + table.len(), packed.len()),
        };
        let kind = u64::from(index > 0) << 32 | u64::try_from(at).unwrap();
        let fields = [kind, flags, 0, offset as u64, bytes as u64, 0, 1, 0];
        file.extend(fields.iter().flat_map(|field| field.to_le_bytes()));
    }
    file
}

/// The header of an ELF file of this machine with `n` sections whose headers are at `at`.
fn program_header(at: u64, n: usize) -> Vec<u8> {
    let own = std::fs::read(punctual_host::THIS_PROGRAM).unwrap();
    let mut header = own[..64].to_vec();
    header[32..40].fill(0);
    header[40..48].copy_from_slice(&at.to_le_bytes());
    for (field, value) in [(56, 0), (58, 64), (60, n), (62, 1)] {
        header[field..field + 2].copy_from_slice(&u16::try_from(value).unwrap().to_le_bytes());
    }
    header
}

#[test]
fn sections_that_unpack_to_gigabytes_take_little_memory() {
    if cfg!(not(target_pointer_width = "64")) || !punctual_sys::testing::runs_alone() {
        return;
    }
    let (directory, bomb, budget) = (Scratch::make(), bomb(), Rc::new(Budget::new(Arc::default())));
    assert!(bomb.len() < 1 << 20);
    let modules: Vec<Module> = (0..12)
        .map(|n| {
            let path = directory.path(&n.to_string());
            std::fs::write(&path, &bomb).unwrap();
            let module = Module::open(&Arc::new(File::open(path).unwrap()), &budget).unwrap();
            assert_eq!(module.places(0x1000), [(None, None, None)]);
            module
        })
        .collect();
    let peak_kib = punctual_host::testing::peak_memory_kib().unwrap();
    assert!(peak_kib < 200 << 10, "{} modules: {peak_kib} KiB", modules.len());
}

#[test]
fn fuzz_elf() {
    let directory = Scratch::make();
    let Some(whole) = program(&directory, &[]) else { return };
    let mut random = TestRng::from_seed(RngAlgorithm::XorShift, &[fuzz_seed().to_le_bytes(); 2].concat());
    let mut number = |below: usize| usize::try_from(random.next_u64() % below as u64).unwrap();
    let (mut n, mut opened, mut named) = (0, 0, 0);
    for run in fuzz_runs(300) {
        let mut bytes = whole.clone();
        match run % 4 {
            0 => bytes.truncate(number(whole.len())),
            // A few bytes anywhere; many; or those of the tables of headers, which are at both ends.
            kind => {
                for _ in 0..if kind == 2 { 64 } else { 4 } {
                    let at =
                        if kind == 3 { (number(2000) + whole.len() - 1950) % whole.len() } else { number(whole.len()) };
                    bytes[at] = [0, 1, 0x7f, 0x80, 0xff, u8::try_from(number(256)).unwrap()][number(6)];
                }
            }
        }
        let tried = AssertUnwindSafe(|| open(&directory, &bytes).map(|module| visit(&module)));
        match catch_unwind(tried) {
            Ok(None) => {}
            Ok(Some(names)) => (opened, named) = (opened + 1, named + usize::from(names > 0)),
            // Of an absurd size in gimli: a release build wraps, and finds nothing there.
            Err(panic) if is_overflow(&*panic) => {}
            Err(panic) => resume_unwind(panic),
        }
        n += 1;
    }
    assert!(opened > n / 3 && named > n / 4, "of {n}: {opened} opened, {named} named");
}
