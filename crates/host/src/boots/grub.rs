//! A boot by GRUB: an entry of our own in `custom.cfg`, and `grub-reboot`, which counts once.
//!
//! GRUB reads `custom.cfg` beside its generated configuration (the script `41_custom`), and takes the entry of
//! `grub-reboot` back before it starts the kernel, so that whatever happens afterwards, the next boot is the usual one.

use super::common::{NoBoot, mount_of, run, with_arguments, write};
use crate::HostFs;
use punctual_model::InstalledKernel;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

const CONFIGURATION: &str = "boot/grub/grub.cfg";
const CUSTOM: &str = "boot/grub/custom.cfg";
/// What `grub-reboot` writes, and what it writes there.
const ENVIRONMENT: &str = "boot/grub/grubenv";
const CHOICE: &str = "next_entry=punctual";
/// The name of our entry, and the lines around it.
const ENTRY: &str = "punctual";
const BEGIN: &str = "### BEGIN punctual: removed by `punctual recover`";
const END: &str = "### END punctual";

/// Reason why GRUB cannot boot `kernel` once.
pub(super) fn check(fs: &HostFs, kernel: &InstalledKernel) -> Result<(), String> {
    let configuration = fs.text(CONFIGURATION).ok_or_else(|| format!("no /{CONFIGURATION}"))?;
    if !configuration.contains("custom.cfg") {
        return Err(format!("/{CONFIGURATION} does not read custom.cfg; install /etc/grub.d/41_custom"));
    }
    if !configuration.contains("next_entry") {
        return Err(format!("/{CONFIGURATION} does not know grub-reboot"));
    }
    entry(&configuration, kernel, &[])
        .ok_or_else(|| format!("no entry of /{CONFIGURATION} boots {}", kernel.release))?;
    // GRUB has to take the choice back itself.
    let [device, at, kind, options] = mount_of(fs, Path::new("/boot/grub"));
    if options.split(',').any(|option| option == "ro") {
        return Err(format!("{at} ({device}) is mounted read-only"));
    }
    let is_writable = matches!(kind.as_str(), "ext2" | "ext3" | "ext4" | "vfat");
    let is_plain = ["/dev/mapper/", "/dev/dm-", "/dev/md"].iter().all(|prefix| !device.starts_with(prefix));
    if is_writable && is_plain {
        return Ok(());
    }
    Err(format!("GRUB cannot write to /boot/grub ({kind} on {device}), and would boot the kernel each time"))
}

pub(super) fn boot_next(fs: &HostFs, kernel: &InstalledKernel, without: &[&str]) -> Result<(), NoBoot> {
    write_entry(fs, kernel, without)?;
    punctual_sys::fail::point("boot-entry-made");
    run("grub-reboot", &[ENTRY])
}

/// Adds our entry to `custom.cfg`, in the place of an earlier one.
pub(super) fn write_entry(fs: &HostFs, kernel: &InstalledKernel, without: &[&str]) -> Result<(), NoBoot> {
    let configuration = fs.text(CONFIGURATION).unwrap_or_default();
    let entry = entry(&configuration, kernel, without)
        .ok_or_else(|| NoBoot::Failed(format!("no entry of /{CONFIGURATION} boots {}", kernel.release)))?;
    let mut content = without_ours(&custom(fs)?);
    if !content.is_empty() && !content.ends_with(b"\n") {
        content.push(b'\n');
    }
    content.extend_from_slice(format!("{BEGIN}\n{entry}{END}\n").as_bytes());
    write(&fs.root.join(CUSTOM), &content)
}

/// The content of `custom.cfg`, which is the administrator's; empty without one.
fn custom(fs: &HostFs) -> Result<Vec<u8>, NoBoot> {
    match fs.bytes(CUSTOM) {
        Err(err) if err.kind() == ErrorKind::NotFound => Ok(Vec::new()),
        read => read.map_err(|err| NoBoot::Io(fs.root.join(CUSTOM), err)),
    }
}

/// Takes the choice of our entry back, if no boot has, and removes the entry.
pub(super) fn forget(fs: &HostFs) -> Result<Option<PathBuf>, NoBoot> {
    let environment = fs.bytes(ENVIRONMENT).unwrap_or_default();
    if environment.split(|byte| *byte == b'\n').any(|line| line == CHOICE.as_bytes()) {
        run("grub-editenv", &[&fs.root.join(ENVIRONMENT).display().to_string(), "unset", "next_entry"])?;
    }
    let content = match custom(fs) {
        // Only root has written an entry.
        Err(_) if punctual_sys::process::effective_user_id() != 0 => return Ok(None),
        content => content?,
    };
    let others = without_ours(&content);
    if others == content {
        return Ok(None);
    }
    let path = fs.root.join(CUSTOM);
    write(&path, &others).map(|()| Some(path))
}

/// The content of `custom.cfg` without our entry.
fn without_ours(content: &[u8]) -> Vec<u8> {
    let mut is_ours = false;
    let mut kept = Vec::new();
    for line in content.split_inclusive(|byte| *byte == b'\n') {
        is_ours |= line.trim_ascii_end() == BEGIN.as_bytes();
        if !is_ours {
            kept.extend_from_slice(line);
        }
        is_ours &= line.trim_ascii_end() != END.as_bytes();
    }
    kept
}

/// Our entry for `kernel`: that of the configuration which boots its release, with its arguments besides; `None`
/// without one.
fn entry(configuration: &str, kernel: &InstalledKernel, without: &[&str]) -> Option<String> {
    let image = format!("/vmlinuz-{}", kernel.release);
    let is_image = |line: &str| line.split_whitespace().nth(1).is_some_and(|path| path.ends_with(&image));
    let is_start = |line: &str| line.starts_with("linux") && is_image(line);
    let mut lines = configuration.lines().map(str::trim);
    while lines.any(|line| line.starts_with("menuentry ") && line.ends_with('{')) {
        let body: Vec<&str> = lines.by_ref().take_while(|line| *line != "}").collect();
        let Some(start) = body.iter().copied().find(|line| is_start(line)) else { continue };
        if start.split_whitespace().any(|word| ["single", "recovery"].contains(&word)) {
            continue;
        }
        let mut entry = format!("menuentry 'punctual: {}' --id {ENTRY} {{\n", kernel.release);
        // `savedefault` would make it the default.
        for line in body.iter().copied().filter(|line| !line.starts_with("savedefault")) {
            let words = line.split_whitespace();
            let line = if line == start { with_arguments(words, kernel, without).join(" ") } else { line.to_owned() };
            entry += &format!("\t{line}\n");
        }
        return Some(entry + "}\n");
    }
    None
}
