//! Where fields are in the structures of CPython: a table by version, or the offsets that the interpreter publishes.
//!
//! `offsetof` of the headers of 3.8.18, 3.9.18, 3.10.13, 3.11.7 and 3.12.1, with Py_BUILD_CORE, on 64-bit machines;
//! they do not change within a version. From 3.13 on `_PyRuntime` begins with them (`_Py_DebugOffsets`).

/// Largest offset within the structures of the runtime and of an interpreter, and within all others, bytes.
const FARTHEST: u64 = 1 << 20;
const FAR: u64 = 1024;

/// How an object tells the lines of its code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lines {
    /// `co_lnotab`: pairs of differences, up to 3.9. Frames are objects, with an offset in bytes.
    Lnotab,
    /// `co_linetable` of 3.10: pairs with ranges without a line. Frames are objects, with a number of an instruction.
    Pairs,
    /// `co_linetable` from 3.11 on (Objects/locations.md). Frames are on a stack, with an address.
    Locations,
}

/// Offsets in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Layout {
    pub(super) minor: u8,
    pub(super) lines: Lines,
    /// Of the runtime: the first interpreter; of that: the next one, and its first thread.
    pub(super) interpreters: u64,
    pub(super) next_interpreter: u64,
    pub(super) threads: u64,
    /// Of a thread: the next one, its interpreter, its identity, and its frame or (3.11, 3.12) what has it.
    pub(super) next_thread: u64,
    pub(super) interpreter: u64,
    pub(super) id: u64,
    pub(super) frame: u64,
    /// The frame in `_PyCFrame`.
    pub(super) in_c_frame: Option<u64>,
    /// Of a frame: its caller, its code, its instruction, and whether C owns it.
    pub(super) previous: u64,
    pub(super) code: u64,
    pub(super) instruction: u64,
    pub(super) owner: Option<u64>,
    /// Of code: its first line, texts, table of lines, and instructions or (up to 3.10) the object that has them.
    pub(super) first_line: u64,
    pub(super) filename: u64,
    pub(super) name: u64,
    pub(super) table: u64,
    pub(super) instructions: u64,
    /// Size of a text before its ASCII characters; others have 2 words more, or (up to 3.11) 3.
    pub(super) ascii: u64,
    pub(super) other: u64,
}

const OF_3_8: Layout = Layout {
    minor: 8,
    lines: Lines::Lnotab,
    interpreters: 32,
    next_interpreter: 0,
    threads: 8,
    next_thread: 8,
    interpreter: 16,
    id: 176,
    frame: 24,
    in_c_frame: None,
    previous: 24,
    code: 32,
    instruction: 104,
    owner: None,
    first_line: 40,
    filename: 104,
    name: 112,
    table: 120,
    instructions: 48,
    ascii: 48,
    other: 72,
};
const OF_3_11: Layout = Layout {
    minor: 11,
    lines: Lines::Locations,
    interpreters: 40,
    threads: 16,
    id: 160,
    frame: 56,
    in_c_frame: Some(8),
    code: 32,
    previous: 48,
    instruction: 56,
    owner: Some(69),
    first_line: 72,
    filename: 112,
    name: 120,
    table: 136,
    instructions: 184,
    ..OF_3_8
};
const TABLE: [Layout; 5] = [
    OF_3_8,
    Layout { minor: 9, ..OF_3_8 },
    Layout { minor: 10, lines: Lines::Pairs, instruction: 96, ..OF_3_8 },
    OF_3_11,
    Layout {
        minor: 12,
        threads: 72,
        id: 144,
        in_c_frame: Some(0),
        code: 0,
        previous: 8,
        owner: Some(70),
        first_line: 68,
        instructions: 192,
        ascii: 40,
        other: 56,
        ..OF_3_11
    },
];

/// Bytes of `_Py_DebugOffsets` that are read.
pub(super) const PUBLISHED_BYTES: usize = 81 * 8;

/// Words of `_Py_DebugOffsets` of a version.
struct Published {
    minor: u8,
    /// interpreters_head, next and threads_head of an interpreter; next, interp, native_thread_id and current_frame of
    /// a thread; previous, executable, instr_ptr and owner of a frame; firstlineno, filename, name, linetable and
    /// co_code_adaptive of code; asciiobject_size.
    words: [usize; 17],
    /// Other words with a known value: ob_type, ob_sval, state and length of a text.
    fixed: [(usize, u64); 4],
}

const PUBLISHED: [Published; 2] = [
    Published {
        minor: 13,
        words: [5, 8, 9, 21, 22, 25, 23, 29, 30, 31, 33, 39, 35, 36, 38, 43, 70],
        fixed: [(45, 8), (66, 32), (68, 32), (69, 16)],
    },
    Published {
        minor: 14,
        words: [5, 8, 9, 24, 25, 28, 26, 32, 33, 34, 36, 44, 40, 41, 43, 48, 80],
        fixed: [(51, 8), (76, 32), (78, 32), (79, 16)],
    },
];

impl Layout {
    /// That of a version which publishes none.
    pub(super) fn of(minor: u8) -> Option<Layout> {
        TABLE.into_iter().find(|one| one.minor == minor)
    }

    /// That which the interpreter publishes at the beginning of `_PyRuntime`; `None` for other versions, and for builds
    /// without the global lock.
    pub(super) fn published(bytes: &[u8]) -> Option<Layout> {
        let word = |at: usize| Some(u64::from_le_bytes(bytes.get(at * 8..at * 8 + 8)?.try_into().ok()?));
        let version = word(1)? >> 16;
        let known = PUBLISHED.iter().find(|one| version == 0x0300 | u64::from(one.minor))?;
        let is_usual = known.fixed.iter().all(|(at, value)| word(*at) == Some(*value));
        if bytes.get(..8)? != b"xdebugpy" || word(2)? != 0 || !is_usual {
            return None;
        }
        let mut values = [0; 17];
        for (index, (value, at)) in values.iter_mut().zip(known.words).enumerate() {
            let most = if index < 3 { FARTHEST } else { FAR };
            *value = word(at).filter(|value| *value <= most)?;
        }
        let [interpreters, next_interpreter, threads, next_thread, interpreter, id, frame, rest @ ..] = values;
        let [previous, code, instruction, owner, first_line, filename, name, table, instructions, ascii] = rest;
        Some(Layout {
            minor: known.minor,
            lines: Lines::Locations,
            interpreters,
            next_interpreter,
            threads,
            next_thread,
            interpreter,
            id,
            frame,
            in_c_frame: None,
            previous,
            code,
            instruction,
            owner: Some(owner),
            first_line,
            filename,
            name,
            table,
            instructions,
            ascii,
            other: ascii + 16,
        })
    }

    /// Bytes of a thread, a frame and a code object up to the last field that is read.
    pub(super) fn thread_bytes(&self) -> u64 {
        length(&[self.next_thread, self.interpreter, self.id, self.frame])
    }

    pub(super) fn frame_bytes(&self) -> u64 {
        length(&[self.previous, self.code, self.instruction, self.owner.unwrap_or(0) & !7])
    }

    pub(super) fn code_bytes(&self) -> u64 {
        length(&[self.first_line, self.filename, self.name, self.table, self.instructions & !7])
    }
}

/// Length of a structure whose words begin at these offsets.
fn length(words: &[u64]) -> u64 {
    words.iter().max().map_or(0, |last| last + 8)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `_Py_DebugOffsets` of Debian's 3.14.10 on x86-64.
    const OF_3_14: [u64; 79] = [
        0x30e_0af0, 0, 316_616, 784, 808, 225_864, 7280, 7272, 7344, 7360, 7408, 7688, 7672, 7680, 16, 7784, 0, 7800,
        7792, 7992, 0, 832, 0, 8, 16, 72, 152, 160, 232, 32, 88, 8, 0, 56, 80, 74, 64, 0, 216, 112, 120, 128, 136, 68,
        52, 96, 104, 208, 0, 16, 8, 416, 24, 88, 168, 40, 32, 16, 40, 24, 16, 200, 24, 40, 32, 48, 32, 40, 24, 16, 32,
        16, 24, 40, 16, 32, 64, 32, 16,
    ];

    fn published(changed: &[(usize, u64)]) -> Option<Layout> {
        let mut words = [&[u64::from_le_bytes(*b"xdebugpy")], &OF_3_14[..], &[40]].concat();
        changed.iter().for_each(|(at, value)| words[*at] = *value);
        Layout::published(&words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>())
    }

    #[test]
    fn offsets_are_those_that_a_known_version_publishes() {
        let found = published(&[]).unwrap();
        let Layout { interpreters, next_interpreter, threads, instruction, table, instructions, .. } = found;
        assert_eq!((found.minor, interpreters, next_interpreter, threads), (14, 808, 7272, 7344));
        assert_eq!((found.next_thread, found.interpreter, found.id, found.frame), (8, 16, 160, 72));
        assert_eq!((found.previous, found.code, instruction, found.owner), (8, 0, 56, Some(74)));
        assert_eq!((table, instructions, found.ascii), (136, 208, 40));
        // Its mark, its version, without the global lock, the type of an object, an offset that is too far.
        for one in [(0, 0), (1, 0x30f_0000), (2, 1), (51, 16), (28, 1025)] {
            assert_eq!(published(&[one]), None, "{one:?}");
        }
    }
}
