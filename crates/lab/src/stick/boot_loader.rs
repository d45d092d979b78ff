//! GRUB on a stick: its boot code for BIOS, its files for UEFI, its menu.

use super::layout::FIRST_SECTOR;
use super::names::{ARGUMENTS, BIOS_MODULES, BIOS_SECTOR, ENVIRONMENT, KERNEL, STICK};
use super::tools::Tools;
use crate::LabError;
use std::fmt::Write as _;
use std::path::Path;

/// Directory of the menu: the one that is built into Debian's signed GRUB.
pub(super) const DIRECTORY: &str = "EFI/debian";

/// Modules of GRUB that the menu needs; the signed GRUB has them built in.
const MODULES: [&str; 16] = [
    "biosdisk", "part_msdos", "fat", "normal", "linux", "gzio", "serial", "terminal", "loadenv", "regexp", "test",
    "echo", "sleep", "reboot", "halt", "configfile",
];

/// A kernel of the menu.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Item {
    /// Its name: the release, and its arguments.
    pub(super) name: String,
    pub(super) arguments: String,
}

/// The first sectors of the image: code that loads the sectors behind it, and GRUB in these. GRUB's own image names
/// sector 1 as its place; a partition table is still to be added.
pub(super) fn bios_code(tools: &Tools, scratch: &Path) -> Result<Vec<u8>, LabError> {
    let core = scratch.join("core.img");
    let (modules, prefix) = (tools.file(BIOS_MODULES), format!("(,msdos1)/{DIRECTORY}"));
    let (modules, to) = (modules.display().to_string(), core.display().to_string());
    let words = ["-d", &modules, "-O", "i386-pc", "-p", &prefix, "-o", &to];
    tools.run("grub-mkimage", &[&words[..], &MODULES].concat())?;
    let read = |path: &Path| std::fs::read(path).map_err(|err| LabError::file(path, err));
    let (mut code, core) = (read(&tools.file(BIOS_SECTOR))?, read(&core)?);
    let room = usize::try_from((FIRST_SECTOR - 1) * 512).unwrap_or(usize::MAX);
    if code.len() != 512 || core.len() > room {
        return Err(LabError::program("grub-mkimage", "its boot code does not fit before the first partition"));
    }
    // As grub-bios-setup for disks: the drive number of the BIOS is taken as it is (boot.S, `boot_drive_check`).
    code[0x66..0x68].copy_from_slice(&[0x90, 0x90]);
    code.extend_from_slice(&core);
    Ok(code)
}

/// The menu. GRUB boots the kernel named in the environment once: it takes the name out before it starts the kernel.
pub(super) fn menu(identity: &str, items: &[Item]) -> String {
    let mut text = format!(
        "# Written by punctual stick.\n\
         set default=0\n\
         set timeout=5\n\
         if serial --unit=0 --speed=115200; then\n  terminal_input console serial\n  terminal_output console serial\nfi\n\
         regexp --set=1:disk '^([^,]*),' \"$root\"\n\
         set environment=\"($disk,msdos2)/{ENVIRONMENT}\"\n\
         if [ -s \"$environment\" ]; then\n  load_env --file \"$environment\" next\nfi\n\
         if [ -n \"$next\" ]; then\n  set default=\"$next\"\n  set timeout=2\n  set next=\n  \
         save_env --file \"$environment\" next\nfi\n"
    );
    for (n, Item { name, arguments }) in items.iter().enumerate() {
        let more = if arguments.is_empty() { String::new() } else { format!(" {arguments}") };
        let name = name.replace('\'', "");
        let _ = write!(
            text,
            "menuentry 'punctual on {name}' {{\n  \
             echo 'Loading Linux {name} ...'\n  \
             linux /kernels/{n}/vmlinuz {ARGUMENTS}{more} {STICK}={identity} {KERNEL}={n}\n  \
             initrd /kernels/punctual.gz /kernels/{n}/drivers.gz\n}}\n"
        );
    }
    text
}

/// The environment of GRUB that names the kernel to boot next: one block, as grub-editenv makes it.
pub(super) fn environment(next: Option<usize>) -> Vec<u8> {
    const BYTES: usize = 1024;
    let next = next.map(|next| next.to_string()).unwrap_or_default();
    let mut text = format!("# GRUB Environment Block\nnext={next}\n").into_bytes();
    text.resize(BYTES, b'#');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_menu_has_each_kernel_and_boots_the_named_one_once() {
        let item = |name: &str, arguments: &str| Item { name: name.to_owned(), arguments: arguments.to_owned() };
        let text = menu("0123abcd", &[item("6.12-rt", ""), item("6.12 it's", "preempt=full")]);
        let linux: Vec<_> = text.lines().filter(|line| line.trim().starts_with("linux ")).collect();
        assert!(linux[0].ends_with("console=tty0 PUNCTUAL_STICK=0123abcd PUNCTUAL_STICK_KERNEL=0"), "{}", linux[0]);
        assert!(linux[1].ends_with("preempt=full PUNCTUAL_STICK=0123abcd PUNCTUAL_STICK_KERNEL=1"), "{}", linux[1]);
        assert!(text.contains("menuentry 'punctual on 6.12 its' {"), "no quote ends the name early");
        let (taken, entry) = (text.find("save_env").unwrap(), text.find("menuentry").unwrap());
        assert!(taken < entry);
    }

    #[test]
    fn an_environment_is_a_block_as_grub_has_it() {
        for (next, line) in [(None, "next="), (Some(0), "next=0"), (Some(12), "next=12")] {
            let text = String::from_utf8(environment(next)).unwrap();
            assert_eq!(text.len(), 1024);
            let mut lines = text.lines();
            assert_eq!((lines.next(), lines.next()), (Some("# GRUB Environment Block"), Some(line)));
            assert!(lines.next().unwrap().bytes().all(|byte| byte == b'#'));
        }
    }
}
