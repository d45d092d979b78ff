//! The lab's side of the memory that it shares with guests without I/O ports.

use super::protocol::{SHARED_MARKS, SHARED_MIB, SHARED_RESULT};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Creates the file of the memory, with the job in it. Errors: if the file exists or cannot be written, or the job is
/// too large.
pub(super) fn write(path: &Path, job: &[u8]) -> io::Result<()> {
    let length = u64::try_from(job.len()).map_err(io::Error::other)?.to_le_bytes();
    if length.len() + job.len() > SHARED_MARKS {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    let file = File::create_new(path)?;
    file.set_len(u64::from(SHARED_MIB) << 20)?;
    file.write_all_at(&[&length, job].concat(), 0)
}

/// The result so far. Errors: if the file cannot be read, or the result is not UTF-8.
pub(super) fn read(path: &Path) -> io::Result<String> {
    const CHUNK: usize = 1 << 16;
    let mut file = File::open(path)?;
    file.seek(SeekFrom::Start(SHARED_RESULT as u64))?;
    let (mut result, mut chunk) = (Vec::new(), vec![0; CHUNK]);
    loop {
        let read = file.read(&mut chunk)?;
        let text = chunk[..read].split(|byte| *byte == 0).next().unwrap_or_default();
        result.extend_from_slice(text);
        if text.len() < read || read == 0 {
            return String::from_utf8(result).map_err(io::Error::other);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use punctual_host::testing::Scratch;

    #[test]
    fn a_guest_finds_its_job_and_the_lab_its_result() {
        let scratch = Scratch::make();
        let path = scratch.path("shared");
        write(&path, b"{job}").unwrap();
        let file = File::options().read(true).write(true).open(&path).unwrap();
        assert_eq!(file.metadata().unwrap().len(), u64::from(SHARED_MIB) << 20);
        let mut begin = [0; 14];
        file.read_exact_at(&mut begin, 0).unwrap();
        assert_eq!(&begin, b"\x05\0\0\0\0\0\0\0{job}\0");
        assert_eq!(read(&path).unwrap(), "");
        let large = "x".repeat((1 << 16) + 5);
        for result in ["ready\n\n\n", &large] {
            file.write_all_at(result.as_bytes(), SHARED_RESULT as u64).unwrap();
            assert_eq!(read(&path).unwrap(), result);
        }
        assert!(write(&path, b"").is_err(), "it exists");
        let limit = SHARED_MARKS - 8;
        assert!(write(&scratch.path("full"), &vec![1; limit]).is_ok());
        assert!(write(&scratch.path("more"), &vec![1; limit + 1]).is_err());
    }
}
