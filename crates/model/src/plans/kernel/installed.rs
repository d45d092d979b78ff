//! Kernels that are installed on this machine, and measured after it was booted with them.

use super::{GUEST_WORDS, KernelError};
use crate::GuestThreads;
use std::fmt;

/// A kernel that is installed on this machine.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct InstalledKernel {
    /// Its release, as `uname -r` prints it; a file name without blanks. In a plan [`InstalledKernel::CURRENT`], too.
    pub release: String,
    /// Arguments that are added to its command line, one blank between two; may be empty.
    pub arguments: String,
}

/// Characters besides letters and digits. Arguments are written into commands and into the configuration of boot
/// loaders, where others have a meaning.
const OF_RELEASE: &str = "._+~-";
const OF_ARGUMENTS: &str = "._+~-,:=/@%";

impl InstalledKernel {
    /// What its text begins with.
    pub const PREFIX: &str = "installed:";
    /// The release of the kernel under which the run begins.
    pub const CURRENT: &str = "current";

    /// Parses what follows the prefix: the release, and the words after it. Errors: an invalid release or
    /// argument.
    pub(super) fn parse(release: &str, words: &str) -> Result<InstalledKernel, KernelError> {
        let is_release = release.starts_with(|c: char| c.is_ascii_digit()) && has_only(release, OF_RELEASE);
        if !is_release && release != InstalledKernel::CURRENT {
            return Err(KernelError::Release(release.to_owned()));
        }
        InstalledKernel::check_arguments(words)?;
        let arguments = words.split_whitespace().collect::<Vec<_>>().join(" ");
        Ok(InstalledKernel { release: release.to_owned(), arguments })
    }

    /// Rejects words that a boot loader or the kernel would not take as they are. Errors: the first of them.
    pub fn check_arguments(words: &str) -> Result<(), KernelError> {
        let is_valid = |word: &&str| {
            let is_of_guests = GUEST_WORDS.iter().any(|prefix| word.starts_with(prefix))
                || GuestThreads::default().take(word).is_ok_and(|taken| taken);
            !is_of_guests && has_only(word, OF_ARGUMENTS)
        };
        let invalid = words.split_whitespace().find(|word| !is_valid(word));
        invalid.map_or(Ok(()), |word| Err(KernelError::Argument(word.to_owned())))
    }
}

fn has_only(text: &str, others: &str) -> bool {
    text.chars().all(|c| c.is_ascii_alphanumeric() || others.contains(c))
}

impl fmt::Display for InstalledKernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let InstalledKernel { release, arguments } = self;
        let blank = if arguments.is_empty() { "" } else { " " };
        f.pad(&format!("{}{release}{blank}{arguments}", InstalledKernel::PREFIX))
    }
}
