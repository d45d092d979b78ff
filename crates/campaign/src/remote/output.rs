//! A command of this program on another machine whose output is a file.

use super::Deliveries;
use super::connection::{STDERR_TIMEOUT, STOP_CHECK_INTERVAL, STOP_TIMEOUT};
use crate::stop::Stop;
use punctual_cell::child;
use punctual_host::{Lines, OutputLimit, TooMuchOutput};
use punctual_model::{Site, plain};
use punctual_sys::waited::Waited;
use std::io::Read;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread::Builder;

/// Begin of the line on stderr with which a command of this program reports its failure.
const ERROR: &str = "punctual: ";
/// Limit of its stderr, bytes.
const STDERR_BYTES: u64 = 1 << 20;

/// Runs this program with `arguments` at `site`, where it is sent first if it is missing, and returns what `take` makes
/// of its stdout. `note` receives its messages. A stop request closes its stdin; what it then writes is still taken.
/// Errors: one line: it cannot be started there, fails, or its output cannot be taken.
pub fn output_from<T>(
    site: &Site,
    arguments: &[String],
    stop: &Stop,
    note: &(dyn Fn(&str) + Sync),
    take: impl FnOnce(&mut dyn Read) -> Result<T, String>,
) -> Result<T, String> {
    let failed = |err: &dyn std::fmt::Display| format!("{site}: {err}");
    note(&format!("punctual: connecting to {site}"));
    let mut deliveries = Deliveries::default();
    let mut child =
        deliveries.command(&site.to_string(), site, arguments, stop.flag())?.spawn().map_err(|err| failed(&err))?;
    let missing = || failed(&"no pipe to it");
    let stdin = child.stdin.take();
    let mut stdout = child.stdout.take().ok_or_else(missing)?;
    let stderr = child.stderr.take().ok_or_else(missing)?;
    // A process that the command leaves behind may keep stderr open: its reader then ends with this process.
    let (line_tx, lines) = channel();
    let limit = OutputLimit::new(STDERR_BYTES);
    let read = move || drop(Lines::new(stderr, &limit).try_for_each(|line| line_tx.send(line)));
    Builder::new().spawn(read).map_err(|err| failed(&punctual_host::no_thread(&err)))?;
    let has_ended = AtomicBool::new(false);
    let work = || {
        std::thread::scope(|scope| {
            let is_over = &has_ended;
            let errors = Builder::new().spawn_scoped(scope, move || errors(lines, is_over, site, note));
            let taken = match &errors {
                Ok(_) => take(&mut stdout),
                Err(err) => Err(failed(&punctual_host::no_thread(err))),
            };
            if taken.is_err() {
                // It may write without an end.
                let _ = child.kill();
            }
            drop(stdout);
            let status = punctual_host::end_within(&mut child, STOP_TIMEOUT);
            has_ended.store(true, Relaxed);
            (taken, errors.ok().and_then(|errors| errors.join().ok()).unwrap_or_default(), status)
        })
    };
    let (taken, errors, status) = stop.during(move || drop(stdin), work).map_err(|err| failed(&err))?;
    let status = status.map_err(|err| failed(&err))?;
    match (taken, child::reason(&errors)) {
        (Ok(taken), _) if status.success() => Ok(taken),
        (_, Some(reason)) => Err(failed(&reason)),
        (Err(err), None) => Err(err),
        (Ok(_), None) => Err(failed(&format_args!("ended ({status}) without a message"))),
    }
}

/// Forwards the lines of stderr to its end, at most for a while after that of the command, and returns those that
/// report a failure.
fn errors(
    lines: Receiver<Result<String, TooMuchOutput>>,
    has_ended: &AtomicBool,
    site: &Site,
    note: &(dyn Fn(&str) + Sync),
) -> Vec<String> {
    let (mut errors, mut since_end) = (Vec::new(), None);
    loop {
        match lines.recv_timeout(STOP_CHECK_INTERVAL) {
            Ok(Ok(line)) if line.starts_with(ERROR) => errors.push(plain(line.trim_end()).into_owned()),
            Ok(Ok(line)) => note(&format!("punctual: {site}: {}", plain(line.trim_end()))),
            Ok(Err(err)) => errors.push(err.to_string()),
            Err(RecvTimeoutError::Disconnected) => return errors,
            Err(RecvTimeoutError::Timeout) => {}
        }
        if has_ended.load(Relaxed) && since_end.get_or_insert_with(Waited::begin).look() >= STDERR_TIMEOUT {
            return errors;
        }
    }
}
