//! The commands, for people.

pub(crate) const USAGE: &str = "\
cargo xtask check [--fast]     all checks of CI; --fast: only those that compile nothing
cargo xtask tidy               rules about files: edges, sizes, unsafe, text, documents
cargo xtask schema [--check]   write schema/*.json, or say whether they are up to date
cargo xtask results FILE       times of layers, slowest tests, what was skipped: of a run by cargo-nextest
cargo xtask specification      the promises with what was measured last
cargo xtask recipes            write the list of crates of the Yocto recipe; `check` compares it
cargo xtask fuzz [NAME] [--for TIME]  parsers of import against mutated files: 10 min each unless told
cargo xtask bench [OPTION...]  this program against the installed cyclictest, in pairs
cargo xtask simulate NAME      how often the statistics are right, on noise whose truth is known; or all;
                               `recorded DIR...`, `known DIR...`: on real runs of one cell, of knobs that act";

pub(crate) fn print() -> Result<(), String> {
    println!("{USAGE}");
    Ok(())
}
