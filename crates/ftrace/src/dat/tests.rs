//! Files that are written and read again; `cell` compares them with trace-cmd.

use super::super::testing::{layouts, page_of_all_kinds};
use super::*;
use std::io::Cursor;

fn head() -> DatHead {
    DatHead {
        layouts: layouts(),
        names: HashMap::from([(7, "a b-[c]".to_owned()), (8, "0123456789abcde".to_owned())]),
        functions: vec![(0xffff_8000, "hrtimer_wakeup".to_owned()), (0xffff_9000, "it_real_fn".to_owned())],
        own: b"{}".to_vec(),
    }
}

/// Formats in the order of a file: those of ftrace first.
fn sorted(mut head: DatHead) -> DatHead {
    head.layouts.formats.sort();
    head
}

#[test]
fn a_file_has_what_was_written() {
    let pages = [page_of_all_kinds(1_000), [page_of_all_kinds(2_000), page_of_all_kinds(9_000)].concat()];
    let own = [Vec::new(), page_of_all_kinds(5_000)];
    for buffers in [&[("", &pages[..])][..], &[("", &pages), ("watched", &own)], &[("", &own[..1]), ("x", &pages)]] {
        let file = head().file(buffers);
        let mut read = DatFile::open(Cursor::new(file)).unwrap();
        assert_eq!(sorted(read.head.clone()), sorted(head()));
        assert_eq!((read.clock.as_str(), read.buffers.len()), ("mono", buffers.len()));
        for (index, (name, pages)) in buffers.iter().enumerate() {
            assert_eq!(read.buffers[index].name, *name);
            for cpu in 0..2 {
                let want = pages.get(cpu).map_or(&[][..], |pages| pages);
                assert_eq!(read.pages(index, cpu).unwrap(), want, "{name} {cpu}");
            }
        }
        assert!(read.pages(9, 0).unwrap().is_empty());
    }
}

#[test]
fn what_is_no_such_file_is_named() {
    let whole = head().file(&[("", &[page_of_all_kinds(1_000)])]);
    let error = |file: &[u8]| DatFile::open(Cursor::new(file)).unwrap_err().to_string();
    let with = |at: usize, byte: u8| {
        let mut file = whole.clone();
        file[at] = byte;
        file
    };
    for (file, said) in [
        (b"".to_vec(), "unknown kind of file: expected trace.dat"),
        (b"punctual".to_vec(), "unknown kind of file"),
        (with(10, b'9'), "unsupported: version 9 of trace.dat"),
        (with(12, u8::from(cfg!(target_endian = "little"))), "-endian numbers"),
        (with(13, 7), "damaged: a machine with words"),
        (with(18, b'x'), "damaged: no layout of pages"),
        (with(37, 0xff), "damaged: its head is too long"),
        (whole[..40].to_vec(), "damaged: it ends too early"),
        (whole[..whole.len() - 1].to_vec(), "damaged: pages beyond its end"),
    ] {
        assert!(error(&file).contains(said), "{} has no {said}", error(&file));
    }
}
