//! SHA-256 of what is fetched and sent.

use sha2::{Digest, Sha256};
use std::fmt::Write;
use std::io::{self, Read};

/// SHA-256 of everything that `content` returns, 64 hexadecimal digits, as sha256sum(1) prints it.
pub fn sha256(mut content: impl Read) -> io::Result<String> {
    let mut digest = Sha256::new();
    let mut part = vec![0; 1 << 16];
    loop {
        match content.read(&mut part)? {
            0 => break,
            bytes => digest.update(part.get(..bytes).unwrap_or_default()),
        }
    }
    Ok(digest.finalize().iter().fold(String::with_capacity(64), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Examples of FIPS 180-2: one block, two blocks, a million letters.
    #[test]
    fn sums_are_those_of_the_standard() {
        let sum = |content: &[u8]| sha256(content).unwrap();
        assert_eq!(sum(b"abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        assert_eq!(
            sum(b"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"
        );
        let million = vec![b'a'; 1_000_000];
        assert_eq!(sum(&million), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
    }
}
