//! The log of the boots of a run, in a separate file of its directory.

use super::{StoreError, Writer};
use punctual_host::file;
use punctual_model::BootLine;
use std::io::{self, Read};
use std::path::Path;

const FILE: &str = "boots.jsonl";
/// Size limit, bytes: thousands of boots.
const MAX_BYTES: u64 = 8 << 20;

impl Writer {
    /// Adds a line to the log of boots; it is synced to disk when this returns. Errors: if it cannot be written.
    pub fn boot(&self, new: &BootLine) -> Result<(), StoreError> {
        let path = self.dir().join(FILE);
        let written = super::line(new).and_then(|line| {
            let mut all = text_in(self.dir()).into_bytes();
            all.extend(line);
            file::replace(&path, &all)
        });
        written.map_err(StoreError::io("write", &path))
    }

    /// The log of boots, in the order of time; lines that cannot be read are left out.
    pub fn boots(&self) -> Vec<BootLine> {
        text_in(self.dir()).lines().filter_map(|line| punctual_model::json::boot(line.as_bytes()).ok()).collect()
    }
}

fn text_in(dir: &Path) -> String {
    let mut text = String::new();
    let read = |file: std::fs::File| -> io::Result<usize> { file.take(MAX_BYTES).read_to_string(&mut text) };
    // Without the file there was no boot yet.
    let _ = file::open(&dir.join(FILE)).and_then(read);
    text
}
