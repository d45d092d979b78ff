//! Screen and serial port of a machine that runs from a stick: both show everything, and take keys.

use punctual_sys::terminal::{self, Size};
use punctual_sys::{process, serial};
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

/// The first virtual console, whose speed cannot be set to another (drivers/tty/vt), and the first serial port.
const DEVICES: [(&str, u32); 2] = [("/dev/tty1", 38_400), ("/dev/ttyS0", 115_200)];
/// Size of a terminal for what is shown: the least that a screen or the other end of a serial line has.
const SIZE: Size = Size { columns: 80, rows: 24 };
/// Ctrl-C.
const INTERRUPT: u8 = 3;
/// Interval of checking whether a command has ended whose output did not end.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// What happens at a terminal.
enum Event {
    Key(u8),
    Output(Vec<u8>),
}

/// All terminals as one.
#[derive(Debug)]
pub(super) struct Terminals {
    outputs: Vec<File>,
    events: Receiver<Event>,
    sender: Sender<Event>,
}

impl Terminals {
    /// Opens those that the machine has.
    pub(super) fn open() -> Terminals {
        let (sender, events) = channel();
        let mut outputs = Vec::new();
        for (path, baud) in DEVICES {
            let opened = serial::open(Path::new(path)).and_then(|file| serial::make_raw(&file, baud).map(|()| file));
            let Ok((mut keys, output)) = opened.and_then(|file| Ok((file.try_clone()?, file))) else { continue };
            let sender = sender.clone();
            let read = std::thread::Builder::new().spawn(move || {
                pass_on(&mut keys, |byte| byte.iter().try_for_each(|key| sender.send(Event::Key(*key))))
            });
            drop(read);
            outputs.push(output);
        }
        Terminals { outputs, events, sender }
    }

    /// Shows a line.
    pub(super) fn say(&mut self, line: &str) {
        self.write(format!("{line}\n").replace('\n', "\r\n").as_bytes());
    }

    fn write(&mut self, bytes: &[u8]) {
        // A port without a chip behind it fails, and the other terminal is there.
        self.outputs.iter_mut().for_each(|output| drop(output.write_all(bytes)));
    }

    /// Waits for a key, at most so long; without a limit for `None`.
    pub(super) fn key(&self, at_most: Option<Duration>) -> Option<char> {
        loop {
            let event = match at_most {
                Some(at_most) => self.events.recv_timeout(at_most).ok()?,
                None => self.events.recv().ok()?,
            };
            if let Event::Key(key) = event {
                return Some(char::from(key));
            }
        }
    }

    /// Runs a command of this program on a terminal of its own, whose output all terminals show; Ctrl-C at any of them
    /// interrupts it. Errors: if it cannot be started.
    pub(super) fn run(&mut self, words: &[&str]) -> io::Result<ExitStatus> {
        let (mut master, slave) = terminal::pair(SIZE)?;
        let mut command = Command::new(punctual_host::THIS_PROGRAM);
        command.args(words).env("PATH", crate::guest_files::PATH).env("TERM", "linux");
        command.stdin(Stdio::null()).stdout(slave.try_clone()?).stderr(slave);
        let mut child = command.spawn()?;
        // It holds the other end of the terminal.
        drop(command);
        let sender = self.sender.clone();
        std::thread::Builder::new()
            .spawn(move || pass_on(&mut master, |bytes| sender.send(Event::Output(bytes.to_vec()))))?;
        let mut status = None;
        loop {
            match self.events.recv_timeout(POLL_INTERVAL) {
                Ok(Event::Output(bytes)) => self.write(&bytes),
                Ok(Event::Key(INTERRUPT)) if status.is_none() => drop(process::signal(child.id(), libc::SIGINT)),
                Ok(Event::Key(_)) => {}
                Err(_) => match status {
                    Some(status) => return Ok(status),
                    None => status = child.try_wait()?,
                },
            }
        }
    }
}

/// Hands on what a file gives until its end.
fn pass_on<E>(file: &mut File, mut to: impl FnMut(&[u8]) -> Result<(), E>) {
    let mut bytes = [0; 4096];
    while let Ok(read) = file.read(&mut bytes) {
        if read == 0 || to(&bytes[..read]).is_err() {
            return;
        }
    }
}
