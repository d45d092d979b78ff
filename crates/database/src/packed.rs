//! Histograms as bytes: for each bucket with samples its distance from the one before and its count, as LEB128 numbers.

use punctual_model::Histogram;

/// First byte: the version of this form.
const FORM: u8 = 1;

/// The buckets of a histogram as bytes.
pub(crate) fn packed(histogram: &Histogram) -> Vec<u8> {
    let mut bytes = vec![FORM];
    let mut before = 0;
    for bucket in histogram.buckets() {
        number(&mut bytes, bucket.lower_ns - before);
        number(&mut bytes, bucket.count);
        before = bucket.lower_ns;
    }
    bytes
}

/// The lowest latency, ns, and the count of each bucket; `None` if the bytes are not such.
pub(crate) fn unpacked(bytes: &[u8]) -> Option<Vec<(u64, u64)>> {
    let (form, mut rest) = bytes.split_first()?;
    if *form != FORM {
        return None;
    }
    let (mut buckets, mut lower) = (Vec::new(), 0_u64);
    while !rest.is_empty() {
        lower = lower.checked_add(read(&mut rest)?)?;
        buckets.push((lower, read(&mut rest)?));
    }
    Some(buckets)
}

fn number(bytes: &mut Vec<u8>, mut n: u64) {
    loop {
        let low = u8::try_from(n & 0x7f).unwrap_or(0);
        n >>= 7;
        if n == 0 {
            return bytes.push(low);
        }
        bytes.push(low | 0x80);
    }
}

fn read(bytes: &mut &[u8]) -> Option<u64> {
    let mut n = 0_u64;
    for shift in (0..u64::BITS).step_by(7) {
        let (first, rest) = bytes.split_first()?;
        *bytes = rest;
        let part = u64::from(first & 0x7f);
        n |= part.checked_shl(shift).filter(|shifted| shifted >> shift == part)?;
        if first & 0x80 == 0 {
            return Some(n);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_survive_packing() {
        let histogram = Histogram::of(&[-5, 0, 7, 7, 300, 5_000, 5_001, 1_000_000_000, i64::MAX]);
        let expected: Vec<_> = histogram.buckets().map(|bucket| (bucket.lower_ns, bucket.count)).collect();
        assert_eq!(unpacked(&packed(&histogram)), Some(expected));
        assert_eq!(unpacked(&packed(&Histogram::default())), Some(Vec::new()));
    }

    #[test]
    fn other_bytes_are_refused() {
        let mut large = vec![FORM];
        large.extend([0xff; 9]);
        large.extend([0x7f, 1]);
        for bytes in [&[][..], &[2, 1, 1], &[FORM, 1], &[FORM, 0x80], &large] {
            assert_eq!(unpacked(bytes), None, "{bytes:?}");
        }
    }
}
