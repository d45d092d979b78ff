//! Captures: files with the events that explanations are made from.

use crate::words::word::words;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde::{Deserialize, Serialize};

words! {
    /// The late wake-ups whose events are kept.
    #[derive(Default)]
    json Captures, "captures" {
        /// None.
        None = "none",
        /// Those whose explanations are kept.
        #[default]
        Spikes = "spikes",
        /// All that are explained.
        All = "all",
    }
}

impl Captures {
    /// Whether it is the default.
    pub(crate) fn is_default(&self) -> bool {
        *self == Captures::default()
    }
}

/// A capture as part of a record, until it is a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct CaptureFile {
    /// Its name, like `spike-cpu1-cycle77.dat.zst`.
    pub name: String,
    /// Its content, base64.
    base64: String,
}

impl CaptureFile {
    /// Suffix of their names: a file of trace-cmd, compressed by zstd.
    pub const SUFFIX: &str = ".dat.zst";

    /// A file of this content.
    pub fn new(name: &str, content: &[u8]) -> CaptureFile {
        CaptureFile { name: name.to_owned(), base64: BASE64_STANDARD.encode(content) }
    }

    /// Whether a file may be called so: the name leads nowhere else.
    pub fn is_name(name: &str) -> bool {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.');
        name.chars().all(is_plain) && !name.starts_with('.') && name.ends_with(CaptureFile::SUFFIX) && name.len() < 200
    }

    /// Its content; `None` if it is not base64, or has another name than a capture.
    pub fn content(&self) -> Option<Vec<u8>> {
        BASE64_STANDARD.decode(&self.base64).ok().filter(|_| CaptureFile::is_name(&self.name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_has_its_content_unless_its_name_leads_elsewhere() {
        let content = |name: &str| CaptureFile::new(name, b"\x28\xb5\0").content();
        assert_eq!(content("spike-cpu1-cycle-7.dat.zst").as_deref(), Some(&b"\x28\xb5\0"[..]));
        for name in ["..", "../x", "/x", "a/b", ".x", "a\n", "a b", &"x".repeat(200), ""] {
            assert_eq!(content(&format!("{name}.dat.zst")), None, "{name}");
        }
        assert_eq!(content("x"), None);
        assert_eq!(CaptureFile { name: "x.dat.zst".to_owned(), base64: "?".to_owned() }.content(), None);
    }
}
