//! Files of outside instruments on another machine: sent before the first cell, removed with the campaign.

use flate2::Compression;
use flate2::read::{GzDecoder, GzEncoder};
use punctual_host::{PrivateDirectory, file};
use punctual_model::Plan;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::OpenOptions;
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Most bytes of a file.
const MAX_BYTES: u64 = 64 << 20;

/// A file, as sent.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct SentFile {
    /// Its name, without a directory.
    name: String,
    /// SHA-256 of its content, hexadecimal.
    sha256: String,
    /// Its content, compressed by gzip, hexadecimal.
    gzip: String,
}

/// Paths of the files of all instruments of `plan` by their names. Errors: one line: two files have the same name.
pub(crate) fn of_plan(plan: &Plan) -> Result<BTreeMap<String, PathBuf>, String> {
    let mut found: BTreeMap<String, PathBuf> = BTreeMap::new();
    for path in plan.axes.task.iter().filter_map(|task| task.instrument()).flat_map(|it| &it.files) {
        let path = Path::new(path);
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        match found.get(&name) {
            Some(other) if other != path => {
                return Err(format!(
                    "files: {} and {} have the same name on the other machine; rename one",
                    other.display(),
                    path.display()
                ));
            }
            _ => drop(found.insert(name, path.to_owned())),
        }
    }
    Ok(found)
}

/// Reads a file to send it. Errors: one line: it cannot be read, or is too large.
pub(super) fn read(name: &str, path: &Path) -> Result<SentFile, String> {
    let failed = |err| format!("files: {}: {err}", path.display());
    let (_, content) = file::read_named(path, MAX_BYTES).map_err(failed)?;
    let mut gzip = Vec::new();
    GzEncoder::new(&content[..], Compression::default()).read_to_end(&mut gzip).map_err(failed)?;
    let sha256 = punctual_host::sha256(&content[..]).map_err(failed)?;
    Ok(SentFile { name: name.to_owned(), sha256, gzip: hexadecimal(&gzip) })
}

/// The directory of received files. Dropping it removes them.
#[derive(Debug)]
pub(crate) struct ReceivedFiles(PrivateDirectory);

impl ReceivedFiles {
    /// A directory beside this program, if that was sent, because programs may be executed there; else among temporary
    /// files. Errors: one line: none can be created.
    pub(crate) fn new() -> Result<ReceivedFiles, String> {
        let program = std::env::current_exe().ok();
        let of_program = program
            .as_deref()
            .and_then(Path::parent)
            .filter(|parent| parent.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"punctual-")));
        let parent = of_program.map_or_else(std::env::temp_dir, Path::to_owned);
        let directory = PrivateDirectory::new(&parent, &punctual_host::named("punctual-program", std::process::id()));
        directory.map(ReceivedFiles).map_err(|err| format!("no directory for files in {}: {err}", parent.display()))
    }

    /// The directory.
    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    /// Writes a file. Errors: one line: it is not what was sent, or cannot be written.
    pub(crate) fn take(&self, sent: &SentFile) -> Result<(), String> {
        let name = &sent.name;
        if name.is_empty() || name.contains(['/', '\0']) || [".", ".."].contains(&name.as_str()) {
            return Err(format!("invalid file name `{name}`: expected one without directories"));
        }
        let gzip = bytes(&sent.gzip).ok_or_else(|| format!("{name} is damaged"))?;
        let mut content = Vec::new();
        let failed = |err| format!("{name}: {err}");
        GzDecoder::new(&gzip[..]).take(MAX_BYTES + 1).read_to_end(&mut content).map_err(failed)?;
        if punctual_host::sha256(&content[..]).map_err(failed)? != sent.sha256 {
            return Err(format!("{name} is not what was sent (another SHA-256)"));
        }
        let mut file =
            OpenOptions::new().write(true).create_new(true).mode(0o700).open(self.path().join(name)).map_err(failed)?;
        file.write_all(&content).map_err(failed)
    }
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn bytes(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: &u8| char::from(*byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    let bytes = pairs.iter().map(|[high, low]| Some(digit(high)? << 4 | digit(low)?)).collect::<Option<Vec<u8>>>();
    bytes.filter(|_| rest.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_received_is_what_was_sent() {
        let parent = PrivateDirectory::new(&std::env::temp_dir(), "punctual-files-test").unwrap();
        let original = parent.path().join("tool");
        std::fs::write(&original, [0_u8, 255, 7].repeat(1000)).unwrap();
        let sent = read("tool", &original).unwrap();
        let received = ReceivedFiles::new().unwrap();
        received.take(&sent).unwrap();
        let copy = received.path().join("tool");
        assert_eq!(std::fs::read(&copy).unwrap(), std::fs::read(&original).unwrap());
        assert!(received.take(&sent).unwrap_err().contains("File exists"), "nothing is replaced");
        let path = received.path().to_owned();
        drop(received);
        assert!(!path.exists());
    }

    #[test]
    fn what_is_not_a_file_of_ours_is_refused() {
        let received = ReceivedFiles::new().unwrap();
        let sent =
            |name: &str, gzip: &str| SentFile { name: name.to_owned(), sha256: "x".to_owned(), gzip: gzip.to_owned() };
        for name in ["", ".", "..", "../x", "/etc/passwd", "a/b", "a\0b"] {
            assert!(received.take(&sent(name, "")).unwrap_err().starts_with("invalid file name"), "{name:?}");
        }
        for (gzip, expected) in [("0", "tool is damaged"), ("zz", "tool is damaged"), ("00", "tool: ")] {
            assert!(received.take(&sent("tool", gzip)).unwrap_err().starts_with(expected), "{gzip}");
        }
        let mut gzip = Vec::new();
        GzEncoder::new(&b"x"[..], Compression::default()).read_to_end(&mut gzip).unwrap();
        let refused = received.take(&sent("tool", &hexadecimal(&gzip))).unwrap_err();
        assert_eq!(refused, "tool is not what was sent (another SHA-256)");
        assert_eq!(std::fs::read_dir(received.path()).unwrap().count(), 0);
    }

    #[test]
    fn files_of_one_name_are_refused() {
        let plan = |files: &str| {
            let text = format!(
                "[axes]\nmethod = [{{ program = \"a\", read = \"cyclictest\", files = {files} }}]\npolicy = [\"other\"]\n"
            );
            of_plan(&Plan::parse(&text).unwrap())
        };
        assert_eq!(plan("[\"/a/x\", \"/a/y\", \"/a/x\"]").unwrap().len(), 2);
        let refused = plan("[\"/a/x\", \"/b/x\"]").unwrap_err();
        assert_eq!(refused, "files: /a/x and /b/x have the same name on the other machine; rename one");
    }
}
