//! A command of this program on another machine whose output is a file.

use super::Deliveries;
use crate::stop::Stop;
use cell::child;
use host::{Lines, OutputLimit};
use model::{Site, plain};
use std::io::Read;
use std::process::ChildStderr;
use std::thread::Builder;

/// Begin of the line on stderr with which a command of this program reports its failure.
const ERROR: &str = "punctual: ";
/// Limit of its stderr, bytes.
const STDERR_BYTES: u64 = 1 << 20;

/// Runs this program with `arguments` at `site`, where it is sent first if it is missing, and returns what `take` makes
/// of its stdout. `note` receives its messages. A stop request closes its stdin; what it then writes is still taken.
///
/// # Errors
/// One line: it cannot be started there, fails, or its output cannot be taken.
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
    let work = || {
        std::thread::scope(|scope| {
            let errors = Builder::new().spawn_scoped(scope, move || errors(stderr, site, note));
            let taken = match &errors {
                Ok(_) => take(&mut stdout),
                Err(err) => Err(failed(&host::no_thread(err))),
            };
            if taken.is_err() {
                // It may write without an end.
                let _ = child.kill();
            }
            drop(stdout);
            (taken, errors.ok().and_then(|errors| errors.join().ok()).unwrap_or_default(), child.wait())
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

/// Forwards the lines of stderr, and returns those that report a failure.
fn errors(stderr: ChildStderr, site: &Site, note: &(dyn Fn(&str) + Sync)) -> Vec<String> {
    let mut errors = Vec::new();
    for line in Lines::new(stderr, &OutputLimit::new(STDERR_BYTES)) {
        match line.as_deref().map(str::trim_end) {
            Ok(line) if line.starts_with(ERROR) => errors.push(plain(line).into_owned()),
            Ok(line) => note(&format!("punctual: {site}: {}", plain(line))),
            Err(err) => errors.push(err.to_string()),
        }
    }
    errors
}
