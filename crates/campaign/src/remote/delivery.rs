//! This program on other machines: sent once a campaign, unless the same version is installed there.
//!
//! What is sent is the program for the architecture of that machine, without symbols, compressed if it can be
//! decompressed there, and checked by its SHA-256. It stays for as long as the connection that has brought it: a shell
//! there waits for the end of its stdin and then removes the file.

use super::connection::{Connection, Event};
use super::transport;
use flate2::Compression;
use flate2::write::GzEncoder;
use punctual_model::{Site, TOOL};
use std::collections::BTreeMap;
use std::env::consts::ARCH;
use std::io::Write;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Shell script for the other machine, whose `$1` is this version. It prints lines that begin with [`ANSWER`]:
/// `has`, or `lacks` with architecture, decompressor and installed version, and later `at` with the file. It reads the
/// number of bytes and the sum in a line, then the bytes.
///
/// The directory must permit programs: an empty file is a program without a command, unless it may not be executed. The
/// script is one line without `!`, which csh(1) would expand.
const SCRIPT: &str = "v=$(punctual --version 2>/dev/null); \
    if [ \"$v\" = \"$1\" ]; then echo punctual-role has; exit; fi; \
    z=cat; command -v gunzip >/dev/null 2>&1 && z=gunzip; \
    echo \"punctual-role lacks $(uname -m) $z $v\"; \
    read -r bytes sum || exit 1; \
    for p in \"${TMPDIR:-/tmp}\" /var/tmp /dev/shm /run \"$HOME\"; do \
    [ \"$p\" ] && d=$(mktemp -d \"$p/punctual-XXXXXX\" 2>/dev/null) || continue; \
    f=$d/punctual; : >\"$f\"; chmod 700 \"$f\"; \"$f\" 2>/dev/null && break; rm -rf \"$d\"; d=; done; \
    [ \"$d\" ] || { echo \"no directory for a program (tried ${TMPDIR:-/tmp}, /var/tmp, /dev/shm, /run, $HOME)\" >&2; exit 1; }; \
    trap 'rm -rf \"$d\"' 0; trap 'exit 1' 1 2 15; \
    head -c \"$bytes\" | $z >\"$f\"; \
    s=$(sha256sum <\"$f\") || exit 1; \
    [ \"${s%% *}\" = \"$sum\" ] || { echo \"$f is not what was sent (another SHA-256)\" >&2; exit 1; }; \
    echo \"punctual-role at $f\"; cat >/dev/null";

/// Begin of the answers of the script.
const ANSWER: &str = "punctual-role ";

/// The program on the other machines of a campaign.
#[derive(Debug, Default)]
pub(crate) struct Deliveries {
    by_site: BTreeMap<Site, Delivery>,
}

/// This program on one machine.
#[derive(Debug)]
struct Delivery {
    /// Its name or path there.
    program: String,
    /// The connection that keeps it there; `None` if it is installed.
    kept_by: Option<Connection>,
}

impl Deliveries {
    /// The command that runs this program with `arguments` at `site`; sends the program first if it is not there.
    /// `name` begins the errors. Errors: one line: the program cannot be had there; also if `is_stop_requested` is set.
    pub(super) fn command(
        &mut self,
        name: &str,
        site: &Site,
        arguments: &[String],
        is_stop_requested: &AtomicBool,
    ) -> Result<Command, String> {
        if *site == Site::Here {
            return Ok(transport::command(site, punctual_host::THIS_PROGRAM, arguments));
        }
        // A lost connection has taken its program with it.
        self.by_site.retain(|_, delivery| delivery.kept_by.as_ref().is_none_or(|kept_by| !kept_by.has_ended()));
        if !self.by_site.contains_key(site) {
            self.by_site.insert(site.clone(), deliver(name, site, is_stop_requested)?);
        }
        let program = self.by_site.get(site).map_or("punctual", |delivery| &delivery.program);
        Ok(transport::command(site, program, arguments))
    }
}

/// Sends this program to `site` if it is missing there.
fn deliver(name: &str, site: &Site, is_stop_requested: &AtomicBool) -> Result<Delivery, String> {
    let script = ["-c", SCRIPT, "punctual", TOOL].map(str::to_owned);
    let mut connection = Connection::open(name.to_owned(), transport::command(site, "sh", &script), || {})?;
    loop {
        match connection.next_of_start(is_stop_requested)? {
            Event::Output(line) => {
                // What a login shell prints comes first.
                let Some(answer) = line.trim_end().strip_prefix(ANSWER) else { continue };
                match answer.split_once(' ') {
                    None if answer == "has" => return Ok(Delivery { program: "punctual".to_owned(), kept_by: None }),
                    Some(("lacks", there)) => {
                        let sent = parcel(there).map_err(|reason| format!("{name}: {reason}"))?;
                        connection.send(sent);
                    }
                    Some(("at", path)) => {
                        return Ok(Delivery { program: path.to_owned(), kept_by: Some(connection) });
                    }
                    _ => {}
                }
            }
            Event::Message(line) => connection.keep(line),
            Event::Ended => return Err(connection.failure()),
            Event::Sent | Event::Silent | Event::Stop => {}
        }
    }
}

/// What is sent to a machine that lacks this program: the size and the sum, then the program. `there` is its
/// architecture, its decompressor, and the installed version, if any. Errors: one line: this program for that machine
/// cannot be had, with the remedy.
fn parcel(there: &str) -> Result<Arc<[u8]>, String> {
    let mut words = there.splitn(3, ' ');
    let mut word = || words.next().unwrap_or_default().trim();
    let (machine, decompressor, installed) = (word(), word(), word());
    let whole = program_for(machine, installed)?;
    let whole = punctual_lab::without_sections(whole.clone()).unwrap_or(whole);
    let sum = punctual_host::sha256(&whole[..]).map_err(|err| err.to_string())?;
    let sent = if decompressor == "gunzip" { compressed(&whole).map_err(|err| err.to_string())? } else { whole };
    Ok([format!("{} {sum}\n", sent.len()).as_bytes(), &sent].concat().into())
}

fn program_for(machine: &str, installed: &str) -> Result<Vec<u8>, String> {
    let path = match punctual_host::program_for(machine) {
        Some(Ok(path)) => path,
        Some(Err(reason)) => return Err(format!("{reason}; or install {TOOL} there")),
        None if installed.is_empty() => {
            return Err(format!(
                "no punctual in its PATH, and this binary is for {ARCH}, not {machine}; install {TOOL} there"
            ));
        }
        None => {
            return Err(format!(
                "{installed} is in its PATH, this is {TOOL} for {ARCH}, not {machine}; install the same version there"
            ));
        }
    };
    std::fs::read(&path).map_err(|err| format!("{}: {err}", path.display()))
}

fn compressed(program: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(program)?;
    encoder.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::read::GzDecoder;
    use std::io::Read;

    #[test]
    fn what_is_sent_is_this_program_with_its_size_and_sum() {
        let whole = std::fs::read(punctual_host::THIS_PROGRAM).unwrap();
        for decompressor in ["gunzip", "cat"] {
            let parcel = parcel(&format!("{ARCH} {decompressor} ")).unwrap();
            let end = parcel.iter().position(|byte| *byte == b'\n').unwrap();
            let (line, sent) = (std::str::from_utf8(&parcel[..end]).unwrap(), &parcel[end + 1..]);
            let mut program = sent.to_vec();
            if decompressor == "gunzip" {
                program.clear();
                GzDecoder::new(sent).read_to_end(&mut program).unwrap();
                assert!(sent.len() < program.len() / 2);
            }
            assert_eq!(line, format!("{} {}", sent.len(), punctual_host::sha256(&program[..]).unwrap()));
            assert!(program.starts_with(b"\x7fELF") && program.len() < whole.len());
        }
    }

    #[test]
    fn a_machine_without_a_program_for_it_is_told_what_to_do() {
        let refused = |there: &str| parcel(there).unwrap_err();
        assert_eq!(
            refused("s390x cat "),
            format!("no punctual in its PATH, and this binary is for {ARCH}, not s390x; install {TOOL} there")
        );
        assert_eq!(
            refused("s390x gunzip punctual 0.0.1"),
            format!(
                "punctual 0.0.1 is in its PATH, this is {TOOL} for {ARCH}, not s390x; install the same version there"
            )
        );
    }
}
