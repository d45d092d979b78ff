//! Developer commands: `cargo xtask check`, `tidy`, `schema`, `bench`, `simulate`.
#![forbid(unsafe_code)]
#![expect(clippy::print_stdout, reason = "a developer's tool talks to its terminal")]

mod bench;
mod check;
mod fuzz;
mod recipes;
mod schema;
mod simulate;
mod tidy;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

const USAGE: &str = "\
cargo xtask check [--fast]     all checks of CI; --fast: only those that compile nothing
cargo xtask tidy               rules about files: edges, sizes, unsafe, text, documents
cargo xtask schema [--check]   write schema/*.json, or say whether they are up to date
cargo xtask recipes            write the list of crates of the Yocto recipe; `check` compares it
cargo xtask fuzz [NAME] [--for TIME]  parsers of import against mutated files: 10 min each unless told
cargo xtask bench [OPTION...]  this program against the installed cyclictest, in pairs
cargo xtask simulate NAME      how often the statistics are right, on noise whose truth is known; or all;
                               `recorded DIR...`, `known DIR...`: on real runs of one cell, of knobs that act";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let root = root();
    let result = match words.as_slice() {
        ["check"] => check::run(&root, check::Extent::All),
        ["check", "--fast"] => check::run(&root, check::Extent::Fast),
        ["tidy"] => tidy::run(&root),
        ["schema"] => schema::write(&root),
        ["schema", "--check"] => schema::compare(&root),
        ["recipes"] => recipes::write(&root),
        ["fuzz", rest @ ..] => fuzz::run(&root, rest),
        ["bench", rest @ ..] => bench::run(&root, rest),
        ["simulate", rest @ ..] => simulate::run(rest),
        ["help" | "--help" | "-h"] => {
            println!("{USAGE}");
            Ok(())
        }
        other => Err(format!("unknown command `{}`; the commands are\n{USAGE}", other.join(" "))),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            // With stderr closed, the message cannot be reported.
            let _ = writeln!(std::io::stderr(), "xtask: {message}");
            ExitCode::FAILURE
        }
    }
}

/// The directory of the workspace, fixed at compile time, so that the command works from any directory.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask is a member of the workspace").to_path_buf()
}
