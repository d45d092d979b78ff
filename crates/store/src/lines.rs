//! Line reader with limits, so that a long run is never in memory twice.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};

/// Length limit of a line, bytes. A second of a CPU takes some 100 bytes: this is a day of 100 CPUs.
const LONGEST: usize = 1 << 30;
/// Bytes read at a time.
const CHUNK: u64 = 1 << 20;

/// A line with its line feed, if it has one; or the reason why it is invalid.
pub(super) type Line = Result<Vec<u8>, &'static str>;

/// The lines of a file.
pub(super) struct Lines {
    file: BufReader<File>,
    longest: usize,
    /// Bytes read.
    position: u64,
}

impl Lines {
    pub(super) fn new(file: File) -> Lines {
        Lines { file: BufReader::new(file), longest: LONGEST, position: 0 }
    }

    /// The next line; `None` at the end.
    pub(super) fn next(&mut self) -> io::Result<Option<Line>> {
        let (mut line, mut flaw) = (Vec::new(), None);
        loop {
            let from = line.len();
            let n = self.file.by_ref().take(CHUNK).read_until(b'\n', &mut line)?;
            self.position += n as u64;
            if n == 0 {
                let is_end = line.is_empty() && flaw.is_none();
                return Ok((!is_end).then(|| flaw.map_or(Ok(line), Err)));
            }
            let is_whole = line.ends_with(b"\n");
            if flaw.is_none() && line[from..].contains(&0) {
                flaw = Some("NUL bytes, as after a power failure");
            } else if flaw.is_none() && line.len() > self.longest {
                flaw = Some("longer than 1 GiB");
            }
            if flaw.is_some() {
                // The rest of the line is skipped.
                line.clear();
            }
            if is_whole {
                return Ok(Some(flaw.map_or(Ok(line), Err)));
            }
        }
    }

    /// Offset of the next line in the file, bytes.
    pub(super) fn position(&self) -> u64 {
        self.position
    }

    /// The next lines, up to some megabytes; empty at the end.
    pub(super) fn batch(&mut self) -> io::Result<Vec<Line>> {
        const BYTES: usize = 2 << 20;
        let (mut lines, mut bytes) = (Vec::new(), 0);
        while bytes < BYTES {
            let Some(line) = self.next()? else { break };
            bytes += line.as_ref().map_or(1, Vec::len);
            lines.push(line);
        }
        Ok(lines)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use punctual_host::testing::Scratch;
    use std::io::Write;

    #[test]
    fn lines_have_an_end_a_length_and_no_nuls() {
        let scratch = Scratch::make();
        let path = scratch.path("lines");
        let chunk = usize::try_from(CHUNK).unwrap();
        let (long, longest) = ("x".repeat(2 * chunk), "y".repeat(2 * chunk - 1));
        let mut file = File::create(&path).unwrap();
        file.write_all(format!("a\n\n{long}\n{longest}\nb\0c\nd\n").as_bytes()).unwrap();
        file.write_all(&vec![0; 3 * chunk]).unwrap();
        drop(file);
        let mut lines = Lines { longest: 2 * chunk, ..Lines::new(File::open(&path).unwrap()) };
        let nuls = Err("NUL bytes, as after a power failure");
        let text = |text: &str| Ok(text.as_bytes().to_vec());
        assert_eq!(lines.next().unwrap(), Some(text("a\n")));
        assert_eq!((lines.position(), lines.next().unwrap()), (2, Some(text("\n"))));
        assert_eq!(lines.next().unwrap(), Some(Err("longer than 1 GiB")));
        assert_eq!(lines.next().unwrap(), Some(text(&(longest + "\n"))));
        assert_eq!(lines.next().unwrap(), Some(nuls.clone()));
        assert_eq!(lines.next().unwrap(), Some(text("d\n")));
        assert_eq!(lines.batch().unwrap(), [nuls]);
        assert_eq!(lines.next().unwrap(), None);
    }
}
