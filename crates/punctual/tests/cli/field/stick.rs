//! A stick boots a PC by BIOS and UEFI, answers at keyboard and serial port, and leaves the PC's disk alone.

use crate::program::{Scratch, is_installed, punctual};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

const FIRMWARE: &str = "/usr/share/OVMF/OVMF_CODE_4M.fd";
const VARIABLES: &str = "/usr/share/OVMF/OVMF_VARS_4M.fd";
/// For a guest that QEMU translates on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(600);

/// A PC with a stick in it.
struct Pc {
    qemu: Child,
    serial: ChildStdin,
    shown: Receiver<u8>,
    monitor: PathBuf,
}

impl Pc {
    /// Switches it on, with the firmware `uefi` or a BIOS, and with `more` options of QEMU.
    fn on(scratch: &Scratch, stick: &Path, disk: &Path, uefi: bool, more: &[&str]) -> Pc {
        let monitor = scratch.path("monitor");
        let _ = std::fs::remove_file(&monitor);
        let drive = |id: &str, path: &Path| format!("if=none,id={id},format=raw,file={}", path.display());
        let mut qemu = Command::new("setpriv");
        qemu.args(["--pdeathsig", "KILL", "qemu-system-x86_64", "-M", "q35", "-nodefaults"]);
        qemu.args(["-accel", "tcg,thread=multi", "-smp", "2", "-m", "1024", "-cpu", "max", "-vga", "std"]);
        qemu.args(["-display", "none", "-serial", "stdio"]);
        qemu.args(["-qmp", &format!("unix:{},server=on,wait=off", monitor.display())]);
        qemu.args(["-device", "qemu-xhci", "-device", "usb-kbd", "-drive", &drive("stick", stick)]);
        qemu.args(["-device", "usb-storage,drive=stick,bootindex=0", "-drive", &drive("disk", disk)]);
        qemu.args(["-device", "ahci,id=sata", "-device", "ide-hd,bus=sata.0,drive=disk"]);
        if uefi {
            let variables = scratch.path("variables");
            std::fs::copy(VARIABLES, &variables).unwrap();
            qemu.args(["-drive", &format!("if=pflash,format=raw,readonly=on,file={FIRMWARE}")]);
            qemu.args(["-drive", &format!("if=pflash,format=raw,file={}", variables.display())]);
        }
        let mut qemu = qemu.args(more).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (serial, output) = (qemu.stdin.take().unwrap(), qemu.stdout.take().unwrap());
        let (send, shown) = channel();
        let output = BufReader::new(output);
        std::thread::spawn(move || output.bytes().map_while(Result::ok).try_for_each(|byte| send.send(byte)));
        Pc { qemu, serial, shown, monitor }
    }

    /// Waits until the serial port shows a text; returns what it has shown up to there.
    fn shows(&mut self, text: &str) -> String {
        let mut shown = Vec::new();
        while !shown.ends_with(text.as_bytes()) {
            match self.shown.recv_timeout(TIMEOUT) {
                Ok(byte) => shown.push(byte),
                Err(err) => panic!("no `{text}`: {err}: {}", String::from_utf8_lossy(&shown)),
            }
        }
        String::from_utf8_lossy(&shown).into_owned()
    }

    fn serial_key(&mut self, key: &str) {
        self.serial.write_all(key.as_bytes()).unwrap();
    }

    /// Presses a key of the keyboard.
    fn keyboard_key(&self, key: &str) {
        let mut monitor = UnixStream::connect(&self.monitor).unwrap();
        let key = format!(r#"{{"execute":"send-key","arguments":{{"keys":[{{"type":"qcode","data":"{key}"}}]}}}}"#);
        monitor.write_all(format!("{{\"execute\":\"qmp_capabilities\"}}\n{key}\n").as_bytes()).unwrap();
        // One answer to each: QEMU drops what it has not read when the connection ends.
        let answers = BufReader::new(monitor).lines().map_while(Result::ok).filter(|line| line.contains("return"));
        assert_eq!(answers.take(2).count(), 2, "QEMU's monitor ended");
    }
}

impl Drop for Pc {
    /// Cuts the power.
    fn drop(&mut self) {
        let _ = self.qemu.kill();
        let _ = self.qemu.wait();
    }
}

/// The runs on a stick, copied from its second partition.
fn runs(scratch: &Scratch, stick: &Path) -> Vec<PathBuf> {
    let to = scratch.path("copied");
    let _ = std::fs::remove_dir_all(&to);
    std::fs::create_dir(&to).unwrap();
    let mut table = [0; 512];
    std::fs::File::open(stick).unwrap().read_exact(&mut table).unwrap();
    let first = u32::from_le_bytes(table[470..474].try_into().unwrap());
    let place = format!("{}@@{}", stick.display(), u64::from(first) * 512);
    let copied = Command::new("mcopy").args(["-i", &place, "-s", "-Q", "::runs"]).arg(&to).status().unwrap();
    assert!(copied.success());
    let mut runs: Vec<_> = std::fs::read_dir(to.join("runs")).unwrap().map(|entry| entry.unwrap().path()).collect();
    runs.sort();
    runs
}

/// Makes a stick with these kernels, and the disk of a PC with its content; `None`, and a line, where that is not
/// possible.
fn made(scratch: &Scratch, kernels: &str) -> Option<(PathBuf, PathBuf, Vec<u8>)> {
    if !(is_installed("qemu-system-x86_64", "qemu-system-x86") && is_installed("mcopy", "mtools")) {
        return None;
    }
    if !Path::new(FIRMWARE).exists() {
        eprintln!("skipped: needs {FIRMWARE} (apt-get install ovmf)");
        return None;
    }
    let (stick, disk) = (scratch.path("stick.img"), scratch.path("disk"));
    let planted: Vec<u8> = (0..8_u32 << 20).map(|n| n.wrapping_mul(2_654_435_761).to_le_bytes()[3]).collect();
    std::fs::write(&disk, &planted).unwrap();
    punctual(&format!("stick {kernels} -o {}", stick.display())).expect_success();
    Some((stick, disk, planted))
}

#[test]
#[ignore = "field: boots PCs with firmware"]
fn a_stick_measures_a_pc_by_bios_and_uefi_and_its_disk_is_unchanged() {
    let scratch = Scratch::new("stick");
    let Some((stick, disk, planted)) = made(&scratch, "--kernel debian:6.12-rt --kernel debian:6.12") else { return };
    for (n, uefi) in [false, true].into_iter().enumerate() {
        let mut pc = Pc::on(&scratch, &stick, &disk, uefi, &[]);
        pc.shows("Press a key.");
        if uefi {
            pc.keyboard_key("5")
        } else {
            pc.serial_key("5")
        }
        let shown = pc.shows("Press a key.");
        assert!(shown.contains("fit for 2 ms: "), "{shown}");
        if uefi {
            pc.serial_key("9")
        } else {
            pc.keyboard_key("9")
        }
        assert!(pc.qemu.wait().unwrap().success(), "it powers itself off");
        assert!(std::fs::read(&disk).unwrap() == planted, "the disk of the PC is unchanged to the byte");
        let runs = runs(&scratch, &stick);
        assert_eq!(runs.len(), n + 1);
        let run = runs.last().unwrap();
        assert!(run.join("report.html").exists() && run.join("answer.txt").exists());
        let shown = punctual(&format!("show {}", run.display())).expect_success();
        assert!(shown.stdout.contains("messaging"), "{}", shown.stdout);
    }
}

#[test]
#[ignore = "field: boots PCs with firmware"]
fn what_is_wrong_with_a_stick_is_one_line_and_the_disk_is_unchanged() {
    let scratch = Scratch::new("stick-wrong");
    let Some((stick, disk, planted)) = made(&scratch, "--kernel debian:6.12-rt") else { return };
    let copy = scratch.path("copy.img");
    std::fs::copy(&stick, &copy).unwrap();
    let second = format!("if=none,id=second,format=raw,file={}", copy.display());
    let mut pc = Pc::on(&scratch, &stick, &disk, false, &["-drive", &second, "-device", "usb-storage,drive=second"]);
    let shown = pc.shows("Press a key.");
    let lines: Vec<_> = shown.lines().filter(|line| line.starts_with("disks with the same identity: ")).collect();
    assert_eq!(lines.len(), 1, "{shown}");
    assert!(shown.contains("results stay in memory, and are lost"), "{shown}");
    drop(pc);
    assert!(std::fs::read(&stick).unwrap() == std::fs::read(&copy).unwrap(), "neither is written");
    assert!(std::fs::read(&disk).unwrap() == planted);
}
