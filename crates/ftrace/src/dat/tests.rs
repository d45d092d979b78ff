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
        machine: Some(Machine {
            kernel: "6.1.0-rt".to_owned(),
            hypervisor: Some("kvm".to_owned()),
            ..Machine::default()
        }),
        ..DatHead::default()
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
fn a_file_is_written_from_sources_that_are_read_to_their_length() {
    let pages = [Vec::new(), page_of_all_kinds(1_000), page_of_all_kinds(2_000)];
    let whole = head().file(&[("", &pages[..2]), ("x", &pages)]);
    let endless = |pages: &[u8]| (pages.len() as u64, Cursor::new([pages, &[7; 5000]].concat()));
    let sources = |cpus: &[Vec<u8>]| cpus.iter().map(|pages| endless(pages)).collect::<Vec<_>>();
    let mut written = Vec::new();
    head().write(&mut written, vec![("", sources(&pages[..2])), ("x", sources(&pages))]).unwrap();
    assert!(written == whole);
    let short = vec![("", vec![(4097, &pages[1][..])])];
    assert_eq!(head().write(&mut Vec::new(), short).unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    let mut small = [0; 10_000];
    let full = head().write(&mut &mut small[..], vec![("", sources(&pages))]).unwrap_err();
    assert_eq!(full.kind(), io::ErrorKind::WriteZero);
}

#[test]
fn the_machine_of_a_file_is_checked() {
    let known = serde_json::to_string(&head().machine).unwrap();
    let long = known.replace("6.1.0-rt", &"6".repeat(5000));
    let with = |text: &str| {
        let file = head().file(&[("", &[])]);
        let option = |text: &str| [&OPTION_MACHINE.to_ne_bytes()[..], &number_32(text.len()), text.as_bytes()].concat();
        let option_at = file.windows(known.len() + 6).position(|part| part == option(&known)).unwrap();
        let (before, rest) = (&file[..option_at], &file[option_at + known.len() + 6..]);
        DatFile::open(Cursor::new([before, &option(text), rest].concat())).map(|file| file.head.machine)
    };
    let more = known.replacen('{', "{\"of_a_later_version\":[1],", 1);
    for text in [&known, &more] {
        assert_eq!(with(text).unwrap(), head().machine);
    }
    for text in ["", "{", "[]", "null", &known[1..], &known.replace("false", "7"), "\u{0}\u{1}", &long] {
        assert_eq!(with(text).unwrap_err().to_string(), "damaged: the description of its machine", "{text:.80}");
    }
    assert_eq!(DatFile::open(Cursor::new(DatHead::default().file(&[("", &[])]))).unwrap().head.machine, None);
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
        (with(10, b'9'), "unsupported: version 9 of trace.dat; known are 6 and 7"),
        (with(12, u8::from(cfg!(target_endian = "little"))), "-endian numbers"),
        (with(13, 7), "damaged: a machine with words"),
        (with(18, b'x'), "damaged: no layout of pages"),
        (with(37, 0xff), "damaged: its head is too long"),
        (whole[..40].to_vec(), "damaged: it ends too early"),
        (whole[..whole.len() - 1].to_vec(), "damaged: content beyond its end"),
    ] {
        assert!(error(&file).contains(said), "{} has no {said}", error(&file));
    }
}

#[test]
fn pages_that_take_more_memory_than_the_file_are_refused() {
    let pages = [page_of_all_kinds(1_000), [page_of_all_kinds(2_000), page_of_all_kinds(9_000)].concat()];
    let buffers: [(&str, &[Vec<u8>]); 1] = [("", &pages)];
    for mut file in [head().file(&buffers), in_sections(&head(), "none", None, &buffers)] {
        let whole = (0_u64, file.len() as u64);
        let place = |(at, bytes): (u64, u64)| [at.to_ne_bytes(), bytes.to_ne_bytes()].concat();
        for pages in &pages {
            let find = |what: &[u8]| file.windows(what.len()).position(|part| part == what).unwrap();
            let at = find(&place((find(pages) as u64, pages.len() as u64)));
            file[at..at + 16].copy_from_slice(&place(whole));
        }
        assert_eq!(DatFile::open(Cursor::new(file)).unwrap_err().to_string(), "damaged: pages that overlap");
    }
    let mut read = DatFile::open(Cursor::new(in_sections(&head(), "zlib", Some(zlib), &buffers))).unwrap();
    let mut left = 3 * 4096 - 1;
    assert_eq!(read.pages_within(0, 0, &mut left).unwrap(), pages[0]);
    assert_eq!(read.pages_within(0, 1, &mut left).unwrap_err().to_string(), "damaged: too many pages");
}

/// Compresses a part of a file.
pub(crate) type Pack = fn(&[u8]) -> Vec<u8>;

/// The same file in version 7, its sections changed by `pack`; `compression` is its name.
pub(crate) fn in_sections(
    head: &DatHead,
    compression: &str,
    pack: Option<Pack>,
    buffers: &[(&str, &[Vec<u8>])],
) -> Vec<u8> {
    let mut bytes = [MAGIC, b"7\0"].concat();
    bytes.extend([u8::from(cfg!(target_endian = "big")), 8]);
    bytes.extend(number_32(4096));
    bytes.extend(format!("{compression}\x001.0\0").bytes());
    let first = bytes.len();
    bytes.extend([0; 8]);
    let part = |content: &[u8]| match pack {
        None => content.to_vec(),
        Some(pack) => {
            let packed = pack(content);
            [&number_32(packed.len())[..], &number_32(content.len()), &packed].concat()
        }
    };
    let section = |bytes: &mut Vec<u8>, id: u16, content: &[u8]| {
        let at = bytes.len() as u64;
        bytes.extend(id.to_ne_bytes());
        bytes.extend(u16::from(pack.is_some()).to_ne_bytes());
        bytes.extend(number_32(0));
        bytes.extend((content.len() as u64).to_ne_bytes());
        bytes.extend(content);
        at
    };
    let mut texts: [Vec<u8>; 3] = Default::default();
    texts[0].extend(b"header_page\0");
    text_64(&mut texts[0], &head.layouts.page);
    texts[0].extend(b"header_event\0");
    text_64(&mut texts[0], &head.layouts.event);
    let own: Vec<_> = head.layouts.formats.iter().filter(|(path, _)| path.starts_with("ftrace/")).collect();
    texts[1].extend(number_32(own.len()));
    own.iter().for_each(|(_, text)| text_64(&mut texts[1], text));
    let others: Vec<_> = head.layouts.formats.iter().filter(|(path, _)| !path.starts_with("ftrace/")).collect();
    texts[2].extend(number_32(others.len()));
    for (path, text) in others {
        texts[2].extend(path.split('/').next().unwrap().bytes());
        texts[2].push(0);
        texts[2].extend(number_32(1));
        text_64(&mut texts[2], text);
    }
    let functions: String = head.functions.iter().map(|(at, name)| format!("{at:x} T {name}\n")).collect();
    let functions = [&number_32(functions.len())[..], functions.as_bytes()].concat();
    let mut names = Vec::new();
    text_64(&mut names, &head.names.iter().map(|(pid, name)| format!("{pid} {name}\n")).collect::<String>());
    let mut options: Vec<(u16, Vec<u8>)> = Vec::new();
    for (id, content) in [16, 17, 18].into_iter().zip(&texts).chain([(19, &functions), (21, &names)]) {
        options.push((id, section(&mut bytes, id, &part(content)).to_ne_bytes().to_vec()));
    }
    for (name, pages) in buffers {
        let mut value = section(&mut bytes, 3, b"").to_ne_bytes().to_vec();
        value.extend(format!("{name}\0mono\0").bytes());
        value.extend(number_32(4096));
        value.extend(number_32(pages.len()));
        for (cpu, pages) in pages.iter().enumerate() {
            let data = match pack {
                None => pages.clone(),
                Some(_) => {
                    let chunks = pages.chunks(4096).flat_map(part).collect::<Vec<u8>>();
                    [&number_32(pages.len() / 4096)[..], &chunks].concat()
                }
            };
            value.extend(number_32(cpu));
            value.extend((bytes.len() as u64).to_ne_bytes());
            value.extend((data.len() as u64).to_ne_bytes());
            bytes.extend(data);
        }
        options.push((3, value));
    }
    options.push((OPTION_OWN, head.own.clone()));
    options.extend(head.machine.iter().map(|machine| (OPTION_MACHINE, serde_json::to_vec(machine).unwrap())));
    // Two sections of options, the first with all but the last.
    let list = |options: &[(u16, Vec<u8>)], next: u64| {
        let mut all = Vec::new();
        for (id, value) in options.iter().chain([&(0, next.to_ne_bytes().to_vec())]) {
            all.extend(id.to_ne_bytes());
            all.extend(number_32(value.len()));
            all.extend(value);
        }
        part(&all)
    };
    let last = section(&mut bytes, 0, &list(&options[options.len() - 1..], 0));
    let begin = section(&mut bytes, 0, &list(&options[..options.len() - 1], last));
    bytes[first..first + 8].copy_from_slice(&begin.to_ne_bytes());
    bytes
}

pub(crate) fn zlib(content: &[u8]) -> Vec<u8> {
    use std::io::Write;
    let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(content).unwrap();
    encoder.finish().unwrap()
}

pub(crate) fn zstd(content: &[u8]) -> Vec<u8> {
    ruzstd::encoding::compress_to_vec(content, ruzstd::encoding::CompressionLevel::Fastest)
}

/// Asserts that a file has the head and these buffers.
#[track_caller]
fn has(file: &[u8], buffers: &[(&str, &[Vec<u8>])]) {
    let mut read = DatFile::open(Cursor::new(file)).unwrap();
    assert_eq!(sorted(read.head.clone()), sorted(head()));
    assert_eq!((read.clock.as_str(), read.buffers.len()), ("mono", buffers.len()));
    for (index, (name, pages)) in buffers.iter().enumerate() {
        assert_eq!(read.buffers[index].name, *name);
        for (cpu, pages) in pages.iter().enumerate() {
            assert!(read.pages(index, cpu).unwrap() == *pages, "{name} {cpu}");
        }
    }
}

#[test]
fn version_7_is_read_whatever_its_compression() {
    let pages = [page_of_all_kinds(1_000), [page_of_all_kinds(2_000), page_of_all_kinds(9_000)].concat()];
    let own = [Vec::new(), page_of_all_kinds(5_000)];
    let buffers: [(&str, &[Vec<u8>]); 2] = [("", &pages), ("watched", &own)];
    has(&in_sections(&head(), "none", None, &buffers), &buffers);
    has(&in_sections(&head(), "zlib", Some(zlib), &buffers), &buffers);
    has(&in_sections(&head(), "zstd", Some(zstd), &buffers), &buffers);
    let error = |file: &[u8]| DatFile::open(Cursor::new(file)).unwrap_err().to_string();
    assert!(error(&in_sections(&head(), "lzma", None, &buffers)).contains("unsupported: compression by lzma"));
    assert_eq!(error(&in_sections(&head(), "zstd", Some(zlib), &buffers)), "damaged: a compressed part");
    assert_eq!(
        error(&in_sections(&head(), "none", Some(zlib), &buffers)),
        "damaged: a compressed part without a compression"
    );
    // A section of options that is its own next one.
    let mut circle = [MAGIC, b"7\0"].concat();
    circle.extend([u8::from(cfg!(target_endian = "big")), 8]);
    circle.extend([&number_32(4096)[..], b"none\0\0"].concat());
    let at = circle.len() as u64 + 8;
    circle.extend([at.to_ne_bytes(), [0; 8]].concat());
    circle.extend(14_u64.to_ne_bytes());
    circle.extend([&0_u16.to_ne_bytes()[..], &number_32(8), &at.to_ne_bytes()].concat());
    assert_eq!(error(&circle), "damaged: too many sections of options");
}

#[test]
#[expect(clippy::disallowed_macros, reason = "read by developers only")]
fn what_trace_cmd_converts_to_version_7_is_read_the_same() {
    let pages = [page_of_all_kinds(1_000), [page_of_all_kinds(2_000), page_of_all_kinds(9_000)].concat()];
    let own = [Vec::new(), page_of_all_kinds(5_000)];
    let buffers: [(&str, &[Vec<u8>]); 2] = [("", &pages), ("watched", &own)];
    let directory = std::env::temp_dir().join(format!("punctual-dat-v7-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let (old, new) = (directory.join("6.dat"), directory.join("7.dat"));
    std::fs::write(&old, head().file(&buffers)).unwrap();
    for compression in ["none", "zstd", "zlib"] {
        let mut command = std::process::Command::new("trace-cmd");
        command
            .args(["convert", "--file-version", "7", "--compression", compression, "-i"])
            .arg(&old)
            .arg("-o")
            .arg(&new);
        let Ok(said) = command.output() else {
            eprintln!("skipped: needs trace-cmd (apt-get install trace-cmd)");
            break;
        };
        // Some are built without one of them.
        if said.status.success() {
            has(&std::fs::read(&new).unwrap(), &buffers);
        } else {
            assert!(String::from_utf8_lossy(&said.stderr).contains("is not supported"), "{said:?}");
        }
    }
    std::fs::remove_dir_all(&directory).unwrap();
}
