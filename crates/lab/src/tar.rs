//! Extraction of regular files from a tar stream (pax(1): ustar, with GNU and pax long names).
//!
//! They are read into memory and never created on disk, so links, devices, modes and owners of an archive have no
//! effect.

use std::io::{self, Read};

/// Reason why the requested files cannot be extracted.
#[derive(Debug)]
pub(super) enum TarError {
    /// A requested file is a link, a device, or another special file.
    NotRegular(String),
    /// A requested file has more bytes than allowed.
    TooLarge(String, u64),
    /// The stream cannot be read, or is not an archive.
    Io(io::Error),
}

impl From<io::Error> for TarError {
    fn from(err: io::Error) -> TarError {
        TarError::Io(err)
    }
}

const BLOCK: usize = 512;
/// Length limit of names, bytes.
const LONGEST_NAME: u64 = 1 << 16;

/// Reads the files for which `at_most` returns a size limit in bytes, by names without a leading `./`, the first of
/// each name, and at most `in_all` bytes of them. Consumes `stream`. Errors: if one of them is not a regular file or is
/// too large, or the archive cannot be read.
pub(super) fn read(
    stream: &mut impl Read,
    at_most: &dyn Fn(&str) -> Option<u64>,
    in_all: u64,
) -> Result<Vec<(String, Vec<u8>)>, TarError> {
    let mut files: Vec<(String, Vec<u8>)> = Vec::new();
    let mut left = in_all;
    let mut long_name = None;
    loop {
        let mut header = [0; BLOCK];
        stream.read_exact(&mut header)?;
        if header == [0; BLOCK] {
            io::copy(stream, &mut io::sink())?;
            return Ok(files);
        }
        let bytes = number(&header[124..136]).ok_or_else(damaged)?;
        let name = match header[156] {
            // The name of the next entry: GNU's, or pax's among other properties.
            kind @ (b'L' | b'x') => {
                let text = content(stream, bytes, LONGEST_NAME)?.ok_or_else(damaged)?;
                let name = if kind == b'L' { Some(text_of(&text)) } else { pax_path(&text) };
                long_name = name.or(long_name);
                continue;
            }
            _ => long_name.take().unwrap_or_else(|| short_name(&header)),
        };
        let name = name.strip_prefix("./").unwrap_or(&name).to_owned();
        let is_regular = matches!(header[156], b'0' | 0);
        match at_most(&name) {
            Some(_) if !is_regular => return Err(TarError::NotRegular(name)),
            Some(at_most) if files.iter().all(|(known, _)| *known != name) => {
                // Also empty ones, with long names.
                let cost = bytes.min(at_most).max(LONGEST_NAME);
                left = left.checked_sub(cost).ok_or_else(|| TarError::TooLarge("what is needed".to_owned(), in_all))?;
                let Some(content) = content(stream, bytes, at_most)? else {
                    return Err(TarError::TooLarge(name, at_most));
                };
                files.push((name, content));
            }
            _ => skip(stream, padded(bytes)?)?,
        }
    }
}

/// The content of an entry; consumes its padding, too. `None` when it has more than `at_most` bytes.
fn content(stream: &mut impl Read, bytes: u64, at_most: u64) -> io::Result<Option<Vec<u8>>> {
    if bytes > at_most {
        return Ok(None);
    }
    let mut content = Vec::new();
    stream.take(bytes).read_to_end(&mut content)?;
    if (content.len() as u64) < bytes {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    skip(stream, padded(bytes)? - bytes)?;
    Ok(Some(content))
}

fn skip(stream: &mut impl Read, bytes: u64) -> io::Result<()> {
    let skipped = io::copy(&mut stream.take(bytes), &mut io::sink())?;
    if skipped == bytes { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
}

/// The size rounded up to whole blocks.
fn padded(bytes: u64) -> io::Result<u64> {
    bytes.checked_next_multiple_of(BLOCK as u64).ok_or_else(damaged)
}

fn damaged() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "damaged archive")
}

/// The name in a header; POSIX headers have a prefix field for directories.
fn short_name(header: &[u8; BLOCK]) -> String {
    let name = text_of(&header[..100]);
    let directories = text_of(&header[345..500]);
    let is_posix = header[257..263] == *b"ustar\0";
    if is_posix && !directories.is_empty() { format!("{directories}/{name}") } else { name }
}

fn text_of(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes.split(|byte| *byte == 0).next().unwrap_or_default()).into_owned()
}

/// Octal digits, or a binary number that begins with 0x80.
fn number(field: &[u8]) -> Option<u64> {
    if let Some((0x80, rest)) = field.split_first() {
        let (high, low) = rest.split_at(rest.len() - 8);
        return high.iter().all(|byte| *byte == 0).then(|| u64::from_be_bytes(low.try_into().unwrap_or_default()));
    }
    let text = text_of(field);
    u64::from_str_radix(text.trim(), 8).ok()
}

/// The path among pax properties, each `LENGTH KEY=VALUE` and a line feed.
fn pax_path(properties: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(properties);
    let path = text.lines().find_map(|line| line.split_once(' ')?.1.strip_prefix("path="));
    path.map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use punctual_host::testing::Scratch;
    use std::fs;
    use std::process::Command;

    /// Archive that tar(1) makes after `script` has run in a new directory.
    fn made(script: &str, format: &str) -> Vec<u8> {
        let directory = Scratch::make();
        let script = format!("mkdir -p d/boot && cd d && {script} && tar --format={format} -cf ../tar .");
        assert!(Command::new("sh").args(["-c", &script]).current_dir(directory.dir()).status().unwrap().success());
        fs::read(directory.path("tar")).unwrap()
    }

    fn boot(name: &str) -> Option<u64> {
        name.starts_with("boot/vmlinuz").then_some(1000)
    }

    #[test]
    fn wanted_files_are_read_whatever_the_format() {
        let long = format!("{}/{}", "d".repeat(120), "n".repeat(120));
        let script = format!(
            "printf 12345 > boot/vmlinuz-1 && head -c 512 /dev/zero > boot/config-1 && \
             mkdir -p boot/vmlinuz/{0} && printf x > boot/vmlinuz/{long}",
            "d".repeat(120)
        );
        let files_only = |name: &str| boot(name).filter(|_| !name.ends_with('/'));
        for format in ["gnu", "posix"] {
            let mut files = read(&mut &made(&script, format)[..], &files_only, 1 << 20).unwrap();
            files.sort();
            let expected =
                [("boot/vmlinuz-1".to_owned(), b"12345".to_vec()), (format!("boot/vmlinuz/{long}"), b"x".to_vec())];
            assert_eq!(files, expected, "{format}");
        }
    }

    #[test]
    fn names_are_read_once_and_all_files_have_a_limit() {
        let whole = made("touch boot/vmlinuz-1 && printf x > boot/vmlinuz-2", "gnu");
        let end = whole.chunks(BLOCK).position(|block| *block == [0; BLOCK]).unwrap() * BLOCK;
        let twice = [&whole[..end], &whole[..]].concat();
        assert_eq!(read(&mut &twice[..], &boot, 2 * LONGEST_NAME).unwrap().len(), 2);
        let refused = read(&mut &whole[..], &boot, 2 * LONGEST_NAME - 1);
        assert!(matches!(refused, Err(TarError::TooLarge(..))), "{refused:?}");
    }

    #[test]
    fn what_is_no_plain_file_or_too_large_is_named_and_never_made() {
        for script in [
            "ln -s /etc/shadow boot/vmlinuz-1",
            "mkfifo boot/vmlinuz-1",
            "touch boot/a boot/vmlinuz-1 && ln -f boot/a boot/vmlinuz-1",
        ] {
            let refused = read(&mut &made(script, "gnu")[..], &boot, 1 << 20);
            let is_linked = script.contains("touch");
            match refused {
                Err(TarError::NotRegular(name)) => assert_eq!(name, "boot/vmlinuz-1"),
                // Of two hard links the first one in the archive is the file itself; the directory order decides.
                Ok(files) if is_linked => assert_eq!(files.len(), 1),
                other => panic!("{script}: {other:?}"),
            }
        }
        let large = made("head -c 1001 /dev/zero > boot/vmlinuz-1", "gnu");
        let refused = read(&mut &large[..], &boot, 1 << 20);
        assert!(matches!(refused, Err(TarError::TooLarge(name, 1000)) if name == "boot/vmlinuz-1"));
        let mut claimed = large;
        let header = claimed.chunks(BLOCK).position(|block| block.starts_with(b"./boot/vmlinuz-1\0")).unwrap();
        claimed[header * BLOCK + 124..][..11].copy_from_slice(b"77777777777");
        assert!(matches!(read(&mut &claimed[..], &boot, 1 << 20), Err(TarError::TooLarge(..))));
    }

    #[test]
    fn a_truncated_or_damaged_archive_is_an_error_or_less_and_never_a_panic() {
        let whole = made("printf 12345 > boot/vmlinuz-1", "posix");
        for cut in (0..1024).step_by(7) {
            assert!(read(&mut &whole[..cut], &boot, 1 << 20).is_err(), "{cut}");
        }
        for at in 0..2048.min(whole.len()) {
            for byte in [0, 0x7f, 0x80, 0xff, b'7'] {
                let mut changed = whole.clone();
                changed[at] = byte;
                let _ = read(&mut &changed[..], &boot, 1 << 20);
            }
        }
    }
}
