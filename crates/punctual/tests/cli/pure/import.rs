//! `punctual import`: what is imported is like a run, and files that it refuses.

use crate::program::{ProgramOutput, punctual};
use crate::session::play;
use std::path::Path;

pub(crate) fn import(file: &Path, words: &str) -> ProgramOutput {
    let name = file.file_name().unwrap().to_str().unwrap();
    let kept = file.with_file_name(format!("of-{name}"));
    punctual(&format!("import {} --out {} {words}", file.display(), kept.display()))
}

#[test]
fn what_is_imported_is_like_a_run_and_the_rest_is_named_with_its_reason() {
    play(|_, _| {});
}
