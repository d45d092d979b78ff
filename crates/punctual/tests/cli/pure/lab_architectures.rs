//! Guests of other architectures: what they need, and where their kernels come from.

use crate::program::{is_installed, skip_unless};
use crate::pure::lab_kernels::system;
use crate::session::play;

#[test]
fn guests_of_other_architectures_have_what_they_need_or_are_refused() {
    if cfg!(not(target_arch = "x86_64")) {
        eprintln!("skipped: they are of another architecture on x86-64 only");
        return;
    }
    skip_unless!(is_installed("dpkg-deb", "dpkg"));
    play(|scratch, _| {
        system(scratch);
        for (name, magic) in [("arm64", b"ARM\x64"), ("riscv64", b"RSC\x05")] {
            let mut image = vec![0; 0x1000];
            image[0x38..0x3c].copy_from_slice(magic);
            scratch.file(name, image);
        }
    });
}
