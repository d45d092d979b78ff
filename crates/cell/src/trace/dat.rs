//! Files of trace-cmd, version 6: the raw pages, with everything needed to read them elsewhere.
//!
//! Layout: trace-cmd.dat.v6(5). Numbers are in the byte order of this machine, which the head declares.

use std::collections::HashMap;
use std::io::{self, Write};

/// The part that is the same for all files of one kernel.
#[derive(Debug, Clone, Default)]
pub(super) struct Head {
    /// `events/header_page`.
    pub(super) page: String,
    /// `events/header_event`.
    pub(super) event: String,
    /// Format texts of `ftrace/`.
    pub(super) ftrace: Vec<String>,
    /// The other format texts, by system.
    pub(super) systems: Vec<(String, Vec<String>)>,
    /// Bytes of a page.
    pub(super) page_bytes: usize,
}

/// Numbers of the options for the clock and for the number of CPUs.
const OPTION_CLOCK: u16 = 4;
const OPTION_CPUS: u16 = 8;
/// The clock of the traces, as trace-cmd writes it.
const CLOCK: &[u8] = b"[mono]\0";

/// Writes a file: the `pages` of each CPU, the names of threads, and the functions at these addresses.
///
/// # Errors
/// When the file cannot be written.
pub(super) fn write(
    out: &mut impl Write,
    head: &Head,
    pages: &[Vec<u8>],
    names: &HashMap<i32, String>,
    functions: &[(u64, String)],
) -> io::Result<()> {
    let mut bytes: Vec<u8> = b"\x17\x08\x44tracing6\0".to_vec();
    bytes.extend([u8::from(cfg!(target_endian = "big")), 8]);
    bytes.extend(number_32(head.page_bytes));
    bytes.extend(b"header_page\0");
    text_64(&mut bytes, &head.page);
    bytes.extend(b"header_event\0");
    text_64(&mut bytes, &head.event);
    bytes.extend(number_32(head.ftrace.len()));
    head.ftrace.iter().for_each(|format| text_64(&mut bytes, format));
    bytes.extend(number_32(head.systems.len()));
    for (system, formats) in &head.systems {
        bytes.extend(system.as_bytes());
        bytes.push(0);
        bytes.extend(number_32(formats.len()));
        formats.iter().for_each(|format| text_64(&mut bytes, format));
    }
    let functions: String = functions.iter().map(|(address, name)| format!("{address:016x} T {name}\n")).collect();
    bytes.extend(number_32(functions.len()));
    bytes.extend(functions.as_bytes());
    // No printk formats.
    bytes.extend(number_32(0));
    let names: String = names.iter().map(|(pid, name)| format!("{pid} {name}\n")).collect();
    text_64(&mut bytes, &names);
    bytes.extend(number_32(pages.len()));
    bytes.extend(b"options  \0");
    for (option, value) in [(OPTION_CPUS, &number_32(pages.len())[..]), (OPTION_CLOCK, CLOCK)] {
        bytes.extend(option.to_ne_bytes());
        bytes.extend(number_32(value.len()));
        bytes.extend(value);
    }
    bytes.extend(0_u16.to_ne_bytes());
    bytes.extend(b"flyrecord\0");
    // The clock follows the table of CPUs; then come the pages, aligned for each CPU to the page size.
    let after = bytes.len() + pages.len() * 16 + 8 + CLOCK.len();
    let mut at = after.next_multiple_of(head.page_bytes.max(1));
    for of_cpu in pages {
        bytes.extend((at as u64).to_ne_bytes());
        bytes.extend((of_cpu.len() as u64).to_ne_bytes());
        at += of_cpu.len().next_multiple_of(head.page_bytes.max(1));
    }
    bytes.extend((CLOCK.len() as u64).to_ne_bytes());
    bytes.extend(CLOCK);
    for of_cpu in pages {
        bytes.resize(bytes.len().next_multiple_of(head.page_bytes.max(1)), 0);
        bytes.extend(of_cpu);
    }
    out.write_all(&bytes)
}

fn number_32(n: usize) -> [u8; 4] {
    u32::try_from(n).unwrap_or(u32::MAX).to_ne_bytes()
}

/// Appends a text after its length, 64 bits.
fn text_64(bytes: &mut Vec<u8>, text: &str) {
    bytes.extend((text.len() as u64).to_ne_bytes());
    bytes.extend(text.as_bytes());
}
