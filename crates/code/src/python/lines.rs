//! Lines of Python's code, from the tables of its versions.

use super::layout::Lines;

/// The line of the instruction at a byte of the code; `None` where the table has none, or is damaged.
pub(super) fn line(lines: Lines, table: &[u8], first: u32, at: i64) -> Option<u32> {
    // Before its first instruction, as CPython says it.
    if at < 0 {
        return Some(first).filter(|line| *line > 0);
    }
    let line = match lines {
        Lines::Lnotab => by_differences(table, first.into(), at),
        Lines::Pairs => by_pairs(table, first.into(), at)?,
        Lines::Locations => by_locations(table, first.into(), at)?,
    };
    u32::try_from(line).ok().filter(|line| *line > 0)
}

/// Objects/lnotab_notes.txt of 3.9: differences of the address and of the line.
fn by_differences(table: &[u8], first: i64, at: i64) -> i64 {
    let (mut line, mut address) = (first, 0_i64);
    for pair in table.chunks_exact(2) {
        address += i64::from(pair[0]);
        if address > at {
            break;
        }
        line += i64::from(pair[1].cast_signed());
    }
    line
}

/// Objects/lnotab_notes.txt of 3.10: lengths of ranges, and differences of the line before them; -128: no line.
fn by_pairs(table: &[u8], first: i64, at: i64) -> Option<i64> {
    let (mut line, mut end) = (first, 0_i64);
    for pair in table.chunks_exact(2) {
        let difference = pair[1].cast_signed();
        let is_line = difference != i8::MIN;
        line += if is_line { difference.into() } else { 0 };
        end += i64::from(pair[0]);
        if at < end {
            return Some(line).filter(|_| is_line);
        }
    }
    None
}

/// Objects/locations.md: for each entry a kind with a length, and a difference of the line.
fn by_locations(table: &[u8], first: i64, at: i64) -> Option<i64> {
    let (mut line, mut end) = (first, 0_i64);
    let mut bytes = table.iter().copied().peekable();
    while let Some(head) = bytes.next() {
        if head & 0x80 == 0 {
            return None;
        }
        end += i64::from((head & 7) + 1) * 2;
        let kind = head >> 3 & 15;
        line += match kind {
            10..=12 => i64::from(kind) - 10,
            13 | 14 => signed(&mut bytes)?,
            _ => 0,
        };
        if at < end {
            return Some(line).filter(|_| kind != 15);
        }
        // Columns: the bytes to the next entry.
        while bytes.next_if(|byte| byte & 0x80 == 0).is_some() {}
    }
    None
}

/// A number of groups of six bits, the lowest first, whose lowest bit is its sign.
fn signed(bytes: &mut impl Iterator<Item = u8>) -> Option<i64> {
    let (mut value, mut shift) = (0_i64, 0);
    loop {
        let byte = bytes.next()?;
        value |= i64::from(byte & 63) << shift;
        if byte & 64 == 0 {
            break;
        }
        shift += 6;
        if shift > 30 {
            return None;
        }
    }
    Some(if value & 1 == 1 { -(value >> 1) } else { value >> 1 })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::python::layout::Layout;
    use proptest::prelude::*;

    /// What the interpreters say of one function: `co_lines()`, before 3.10 `dis.findlinestarts()`; line 0 is none.
    const SAID: &str = include_str!("lines.txt");

    #[test]
    fn lines_are_those_that_the_interpreter_says() {
        let mut versions = Vec::new();
        for row in SAID.lines() {
            let words: Vec<&str> = row.split(' ').collect();
            let [minor, first, table, ranges @ ..] = &words[..] else { panic!("{row}") };
            let minor: u8 = minor.parse().unwrap();
            let lines = Layout::of(minor).map_or(Lines::Locations, |layout| layout.lines);
            let table: Vec<u8> = table
                .as_bytes()
                .chunks(2)
                .map(|two| u8::from_str_radix(std::str::from_utf8(two).unwrap(), 16).unwrap())
                .collect();
            let first = first.parse().unwrap();
            let mut at = 0;
            for range in ranges {
                let (end, expected) = range.split_once(':').unwrap();
                let (end, expected): (i64, u32) = (end.parse().unwrap(), expected.parse().unwrap());
                for at in at..end {
                    assert_eq!(
                        line(lines, &table, first, at),
                        Some(expected).filter(|line| *line > 0),
                        "3.{minor}: {at}"
                    );
                }
                at = end;
            }
            assert_eq!(line(lines, &table, first, -2), Some(first));
            assert!(at > 100 && (lines == Lines::Lnotab || line(lines, &table, first, at).is_none()), "3.{minor}");
            versions.push(minor);
        }
        assert_eq!(versions, [8, 9, 10, 11, 12, 13, 14]);
    }

    proptest! {
        #[test]
        fn no_table_is_trusted(table in prop::collection::vec(any::<u8>(), 0..64), first: u32, at in -4..1000_i64) {
            for lines in [Lines::Lnotab, Lines::Pairs, Lines::Locations] {
                let _ = line(lines, &table, first, at);
            }
        }
    }
}
