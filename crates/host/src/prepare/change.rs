//! One change of the machine: making it, reading it back, and undoing it.

use crate::HostFs;
use crate::process;
use punctual_model::{CpuSet, PreparedSetting};
use serde::{Deserialize, Serialize};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::time::Duration;

/// One change. The journal's copy can be undone by another process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(super) enum Change {
    /// Another value in a file of `/proc` or `/sys`.
    File {
        /// Path below the root, without a leading slash.
        path: String,
        /// The previous value.
        before: String,
        /// The value for the duration of the cell.
        during: String,
        /// The format, which determines how two values are compared.
        form: Form,
    },
    /// A process that is stopped for the duration of the cell.
    Stopped {
        /// Its id.
        pid: u32,
        /// Its name.
        name: String,
        /// Start time, clock ticks since boot: another process may get the same id.
        started_ticks: u64,
    },
}

/// The format of a file's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Form {
    /// Plain text, compared word by word, without leading zeros.
    Text,
    /// All possible values, the one in force in brackets: `always [madvise] never`.
    Choice,
    /// The CPU list of a control group, `0-3,5`; an empty one means every CPU.
    GroupCpus,
    /// The CPU list of an interrupt, which the kernel may refuse to move.
    Interrupt,
    /// Gravity of Cobalt's clock in a line among others, `gravity: irq=0 kernel=2000 user=2000`; `0i 2000k 2000u` is
    /// written.
    Gravity,
    /// CPUs as hexadecimal digits: `00000000,0000000f`.
    Mask,
    /// KiB of a buffer, which the kernel rounds up to whole pages.
    Kib,
    /// The controllers of a control group; `+cpuset` and `-cpuset` are written.
    Controllers,
}

/// The CPUs of the root group: all online CPUs.
const ALL_CPUS: &str = "sys/fs/cgroup/cpuset.cpus.effective";

/// The timer of CPU 0: `proxy` where a co-kernel runs on Dovetail.
const CLOCK_EVENTS: &str = "sys/devices/system/clockevents/clockevent0/current_device";

/// The outcome of undoing a change, with a description.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum UndoResult {
    /// The value was already the previous one.
    Unchanged,
    /// The previous value was restored.
    Restored(String),
    /// The value is neither the previous one nor the one set, or the file or process is gone.
    NotRestored(String),
}

impl Change {
    /// Makes the change and reads it back. `false`: the kernel does not allow this one, which is no error.
    pub(super) fn make(&self, fs: &HostFs) -> Result<bool, String> {
        match self {
            Change::File { path, before, during, form } => match set(fs, path, during, *form) {
                Ok(()) => Ok(true),
                Err(err) if *form == Form::Interrupt && is_kept_by_kernel(&err, mode(fs, path)) => Ok(false),
                Err(err) => {
                    let advice = match err.kind() {
                        io::ErrorKind::PermissionDenied => advice(punctual_sys::process::effective_user_id()),
                        io::ErrorKind::ReadOnlyFilesystem => "; containers cannot change it: prepare the host itself",
                        _ => "",
                    };
                    // The kernel may have taken a part of the value, or another one, which `undo` does not know.
                    let is_before = read(fs, path, *form).is_some_and(|now| form.is_same(&now, before));
                    let restored = if is_before { Ok(()) } else { restore(fs, path, before, *form).map(drop) };
                    let and = restored.err().map_or_else(String::new, |reason| format!("; {reason}"));
                    Err(format!("cannot set /{path} to {during}: {err}{advice}{and}"))
                }
            },
            Change::Stopped { pid, name, .. } => stop(*pid).map(|()| true).map_err(|err| {
                let advice = advice(punctual_sys::process::effective_user_id());
                format!("cannot stop {name} (process {pid}): {err}{advice}")
            }),
        }
    }

    /// The file of the change, below the root.
    pub(super) fn path(&self) -> Option<&str> {
        match self {
            Change::File { path, .. } => Some(path),
            Change::Stopped { .. } => None,
        }
    }

    /// Restores the previous value. Errors: one line, when it cannot be restored; another attempt might succeed.
    pub(super) fn undo(&self, fs: &HostFs) -> Result<UndoResult, String> {
        match self {
            Change::File { path, before, during, form } => {
                let Some(now) = read(fs, path, *form) else {
                    return Ok(UndoResult::NotRestored(format!("cannot read /{path} to restore {before}")));
                };
                if form.is_same(&now, before) {
                    return Ok(UndoResult::Unchanged);
                }
                // Where an ordinary file stands for the kernel's, a kill during the write leaves it empty.
                if !form.is_same(&now, during) && !now.is_empty() {
                    return Ok(UndoResult::NotRestored(format!(
                        "/{path} was {before}, was set to {during}, and is now {now}: changed by another program, \
                         so it is not restored"
                    )));
                }
                restore(fs, path, before, *form).map(UndoResult::Restored)
            }
            Change::Stopped { pid, name, started_ticks } => {
                if process::started_ticks_of(*pid) != Some(*started_ticks) {
                    return Ok(UndoResult::Unchanged);
                }
                let was_stopped = process::state_of(*pid) == Some('T');
                punctual_sys::process::signal(*pid, libc::SIGCONT)
                    .map(|()| match was_stopped {
                        true => UndoResult::Restored(format!("{name} (process {pid}): resumed")),
                        false => UndoResult::Unchanged,
                    })
                    .map_err(|err| format!("cannot resume {name} (process {pid}): {err}"))
            }
        }
    }

    /// The record of the change: previous value, value set, present value.
    pub(super) fn setting(&self, fs: &HostFs) -> PreparedSetting {
        match self {
            Change::File { path, before, during, form } => PreparedSetting {
                what: format!("/{path}"),
                before: before.clone(),
                during: during.clone(),
                // Normalized, so that equal values are equal texts.
                at_end: read(fs, path, *form).map(|now| if form.is_same(&now, during) { during.clone() } else { now }),
            },
            Change::Stopped { pid, name, .. } => {
                let word = |is_stopped| if is_stopped { "stopped" } else { "runs" }.to_owned();
                PreparedSetting {
                    what: format!("{name} (process {pid})"),
                    before: word(false),
                    during: word(true),
                    at_end: process::state_of(*pid).map(|state| word(state == 'T')),
                }
            }
        }
    }
}

impl Form {
    /// Whether two values are equivalent.
    pub(super) fn is_same(self, now: &str, meant: &str) -> bool {
        let cpus = |text: &str| text.parse::<CpuSet>().ok();
        let mask = |text: &str| text.replace(',', "").trim_start_matches('0').to_ascii_lowercase();
        match self {
            // `1` may read as `01`, and a blank as a tab.
            Form::Text => words(now).eq(words(meant)),
            Form::Choice | Form::Gravity => now == meant,
            Form::GroupCpus | Form::Interrupt => now == meant || cpus(now).is_some() && cpus(now) == cpus(meant),
            Form::Mask => mask(now) == mask(meant),
            Form::Kib => {
                let [now, meant] = [now, meant].map(|text| text.parse::<u64>().ok());
                let page = (punctual_sys::mapping::page_bytes() as u64).div_ceil(1024);
                now.zip(meant).is_some_and(|(now, meant)| now.abs_diff(meant) <= page)
            }
            Form::Controllers => {
                let has = |name: &str| now.split_whitespace().any(|controller| controller == name);
                meant.strip_prefix('+').map_or_else(|| !meant.strip_prefix('-').is_some_and(has), has)
            }
        }
    }
}

/// Whether `err` means that the kernel refuses every move of an interrupt: it manages the interrupt itself, or the
/// interrupt belongs to one CPU. `EIO` up to Linux 6.5, `EPERM` since (`write_irq_affinity`, kernel/irq/proc.c). Some
/// kernels also clear the write permission in `mode`, so that without root's rights the file cannot be opened.
fn is_kept_by_kernel(err: &io::Error, mode: Option<u32>) -> bool {
    match err.raw_os_error() {
        Some(libc::EIO | libc::EPERM) => true,
        Some(libc::EACCES) => mode.is_some_and(|mode| mode & 0o222 == 0),
        _ => false,
    }
}

fn mode(fs: &HostFs, path: &str) -> Option<u32> {
    std::fs::metadata(fs.root.join(path)).ok().map(|metadata| metadata.mode())
}

/// Advice for `user` on a missing privilege.
fn advice(user: u32) -> &'static str {
    match user {
        0 => "; refused by a container, lockdown or the kernel itself, also for root",
        _ => "; run as root",
    }
}

/// Stops a process, and waits until it is stopped.
fn stop(pid: u32) -> io::Result<()> {
    punctual_sys::process::signal(pid, libc::SIGSTOP)?;
    for _ in 0..1000 {
        if process::state_of(pid) == Some('T') {
            return Ok(());
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    Err(io::Error::other("it goes on all the same"))
}

/// The value in a file, which may be empty.
pub(super) fn read(fs: &HostFs, path: &str, form: Form) -> Option<String> {
    // Of a stopped core, the kernel takes a timer for granted that is not there, and fails.
    if form == Form::Gravity && fs.text(CLOCK_EVENTS).as_deref() != Some("proxy") {
        return None;
    }
    let text = std::fs::read_to_string(fs.root.join(path)).ok()?;
    let text = text.trim();
    let value = match form {
        Form::Choice => {
            text.split_whitespace().find_map(|word| word.strip_prefix('[')?.strip_suffix(']')).unwrap_or(text)
        }
        Form::Gravity => return gravity(text),
        _ => text,
    };
    Some(value.to_owned())
}

/// The gravity in the form in which it is written.
fn gravity(text: &str) -> Option<String> {
    let line = text.lines().find_map(|line| line.strip_prefix("gravity:"))?;
    let value = |key: &str| -> Option<u64> {
        line.split_whitespace().find_map(|word| word.strip_prefix(key)?.strip_prefix('=')?.parse().ok())
    };
    Some(format!("{}i {}k {}u", value("irq")?, value("kernel")?, value("user")?))
}

/// The words of a value, without leading zeros.
fn words(value: &str) -> impl Iterator<Item = &str> {
    value.split_whitespace().map(|word| word.trim_start_matches('0'))
}

/// Writes a value, and reads it back.
fn set(fs: &HostFs, path: &str, value: &str, form: Form) -> io::Result<()> {
    write(fs, path, value)?;
    match read(fs, path, form) {
        Some(now) if form.is_same(&now, value) => Ok(()),
        now => Err(io::Error::other(format!("it reads {}", now.as_deref().unwrap_or("nothing readable")))),
    }
}

/// Writes the previous value again; returns a description. Errors: one line, when that is not the value then.
fn restore(fs: &HostFs, path: &str, before: &str, form: Form) -> Result<String, String> {
    match set(fs, path, before, form) {
        // Some kernels (6.1) refuse to reset a group with processes to "every CPU"; they accept only the list of all
        // CPUs.
        Err(err) if form == Form::GroupCpus && err.raw_os_error() == Some(libc::ENOSPC) => {
            let all = fs.text(ALL_CPUS).unwrap_or_default();
            write(fs, path, &all).map(|()| format!("/{path}: {all}")).map_err(|err| format!("/{path}: {err}"))
        }
        Ok(()) => Ok(format!("/{path}: {before}")),
        Err(err) => Err(format!("cannot restore /{path} to {before}: {err}")),
    }
}

/// Writes a value. Never creates a file: a missing file is a missing setting.
fn write(fs: &HostFs, path: &str, value: &str) -> io::Result<()> {
    let mut file = std::fs::OpenOptions::new().write(true).truncate(true).open(fs.root.join(path))?;
    punctual_sys::fail::write("setting-empty")?;
    io::Write::write_all(&mut file, format!("{value}\n").as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_gravity_is_read_as_it_is_written() {
        let text =
            "gravity: irq=0 kernel=1500 user=2000\n devices: timer=lapic, clock=<Linux clocksource>\nwatchdog: off";
        assert_eq!(gravity(text).as_deref(), Some("0i 1500k 2000u"));
        for wrong in ["", "gravity: irq=0 kernel=1500", "gravity: irq=x kernel=1500 user=2000", "irq=0 kernel=0 user=0"]
        {
            assert_eq!(gravity(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn an_interrupt_that_no_user_may_move_is_no_matter_of_rights() {
        for (errno, mode, kept) in [
            (libc::EIO, Some(0o644), true),
            (libc::EPERM, Some(0o644), true),
            (libc::EPERM, Some(0o444), true),
            (libc::EACCES, Some(0o444), true),
            (libc::EACCES, Some(0o644), false),
            (libc::EACCES, None, false),
            (libc::EINVAL, Some(0o444), false),
            (libc::EROFS, Some(0o644), false),
        ] {
            assert_eq!(is_kept_by_kernel(&io::Error::from_raw_os_error(errno), mode), kept, "{errno} {mode:?}");
        }
        assert!(!advice(0).contains("run as root") && advice(1000).contains("run as root"));
    }
}
