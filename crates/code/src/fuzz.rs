//! Damaged ELF files, for as long as `cargo xtask fuzz` requests: none panics, and each is finished with.

use crate::module::Module;
use crate::registers::Registers;
use crate::sample::RawSample;
use proptest::prelude::Rng;
use proptest::test_runner::{RngAlgorithm, TestRng};
use std::fs::File;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use sys::testing::{fuzz_runs, fuzz_seed, is_overflow};

const SOURCE: &str = "\
    static inline __attribute__((always_inline)) int inner(int x) { return x * 3; }\n\
    __attribute__((noinline)) int middle(int x) { volatile char room[300]; room[x & 255] = 1; return inner(x) + room[3]; }\n\
    int main(int argc, char **argv) { (void)argv; return middle(argc) & 1; }\n";

/// A directory that is removed at the end.
struct Directory(PathBuf);

impl Directory {
    fn make() -> Directory {
        let path = std::env::temp_dir().join(format!(
            "punctual-code-{}-{:?}",
            std::process::id(),
            std::thread::current().id()
        ));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir(&path).unwrap();
        Directory(path)
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A small program with debug information; `None` without a compiler.
fn program(directory: &Directory, options: &[&str]) -> Option<Vec<u8>> {
    let (source, program) = (directory.0.join("small.c"), directory.0.join("small"));
    std::fs::write(&source, SOURCE).unwrap();
    let compiled = Command::new("cc").args(["-O1", "-g"]).args(options).arg("-o").arg(&program).arg(&source).status();
    if !compiled.is_ok_and(|status| status.success()) {
        println!("skipped: no C compiler (package gcc)");
        return None;
    }
    Some(std::fs::read(program).unwrap())
}

fn open(directory: &Directory, bytes: &[u8]) -> Option<Module> {
    let path = directory.0.join("damaged");
    std::fs::write(&path, bytes).unwrap();
    Module::open(&Arc::new(File::open(path).unwrap()))
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
    let directory = Directory::make();
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

#[test]
fn fuzz_elf() {
    let directory = Directory::make();
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
