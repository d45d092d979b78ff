//! Developer commands: `cargo xtask check`, `tidy`, `schema`, `bench`, `simulate`.
#![forbid(unsafe_code)]
#![expect(clippy::print_stdout, reason = "a developer's tool talks to its terminal")]

mod bench;
mod check;
mod fuzz;
mod recipes;
mod results;
mod schema;
mod simulate;
mod specification;
mod tidy;
mod usage;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

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
        ["results", file] => results::print(Path::new(file)),
        ["specification"] => specification::print(&root),
        ["help" | "--help" | "-h"] => usage::print(),
        other => Err(format!("unknown command `{}`; the commands are\n{}", other.join(" "), usage::USAGE)),
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
