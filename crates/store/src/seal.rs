//! Checksums of lines, which also detect damage that is still valid JSON.
//!
//! The last member of a line's object is `xxh3`: the XXH3-64 hash (seed 0) of all bytes of the line before its comma,
//! 16 hexadecimal digits. Lines without a checksum, of programs that wrote none, are accepted.

use twox_hash::XxHash3_64;

/// Text before the digits.
const KEY: &[u8] = br#","xxh3":""#;
/// Text after the digits.
const END: &[u8] = br#""}"#;
const DIGITS: usize = 16;

/// Result of a checksum verification.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Seal {
    /// The line has no checksum.
    Absent,
    /// The checksum matches.
    Holds,
    /// The checksum does not match.
    Broken,
}

/// Serializes a JSON object with its checksum and a line feed.
pub(super) fn sealed(mut object: Vec<u8>) -> Vec<u8> {
    object.pop();
    let hash = XxHash3_64::oneshot(&object);
    object.extend_from_slice(KEY);
    object.extend_from_slice(format!("{hash:0DIGITS$x}").as_bytes());
    object.extend_from_slice(END);
    object.push(b'\n');
    object
}

/// The hash of a line, to recognize it.
pub(super) fn hash(line: &[u8]) -> u64 {
    XxHash3_64::oneshot(line)
}

/// Verifies the checksum of a line.
pub(super) fn check(line: &[u8]) -> Seal {
    let line = line.trim_ascii_end();
    let Some(at) = line.len().checked_sub(KEY.len() + DIGITS + END.len()) else { return Seal::Absent };
    let (object, seal) = line.split_at(at);
    let digits = seal.strip_prefix(KEY).and_then(|rest| rest.strip_suffix(END));
    match digits {
        None => Seal::Absent,
        Some(digits) if digits == format!("{:0DIGITS$x}", XxHash3_64::oneshot(object)).as_bytes() => Seal::Holds,
        Some(_) => Seal::Broken,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_still_json_and_any_bit_of_it_breaks_its_seal() {
        let line = sealed(br#"{"a":1,"b":"x"}"#.to_vec());
        assert_eq!(String::from_utf8_lossy(&line), "{\"a\":1,\"b\":\"x\",\"xxh3\":\"2fb88656879475b5\"}\n");
        assert!(serde_json::from_slice::<serde_json::Value>(&line).is_ok());
        assert_eq!((check(&line), check(&line[..line.len() - 1])), (Seal::Holds, Seal::Holds));
        for bit in 0..(line.len() - 1) * 8 {
            let mut damaged = line.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            // Damage of the text around the digits makes it a line without a checksum, with intact data.
            let in_frame = bit / 8 >= line.len() - 28 && !(line.len() - 19..line.len() - 3).contains(&(bit / 8));
            assert_eq!(check(&damaged), if in_frame { Seal::Absent } else { Seal::Broken }, "bit {bit}");
        }
        for line in [&b""[..], b"{}", b"{\"a\":1}\n", b"\n"] {
            assert_eq!(check(line), Seal::Absent);
        }
    }
}
