//! `punctual serve-cells`: measures cells for a campaign on another machine, which sends one request a line on stdin.
//!
//! It holds the lock of this machine from the first request that needs it. It ends when stdin is closed, which
//! interrupts the cell, or when no request has come for a while: a connection may be lost without notice. Nothing is
//! sent while a cell measures, because packets would disturb it.

use super::executor::Executor;
use super::header::{header, planned, preview};
use super::local_or_lab::LocalOrLab;
use super::lock::take_machine;
use super::remote::ReceivedFiles;
use super::remote::messages::{Answer, Ask};
use super::session::holder;
use super::stop::Stop;
use punctual_host::{ANSWER_BYTES, HostFs, Lines, MachineLock, OutputLimit};
use punctual_workload::instrument;
use std::error::Error;
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread::Builder;
use std::time::Duration;

/// Timeout between requests.
const IDLE_TIMEOUT: Duration = Duration::from_secs(300);

/// Serves a campaign until its stdin is closed. Errors: if a request is malformed or does not come, an answer cannot be
/// written, or a signal requests a stop.
pub fn serve() -> Result<(), Box<dyn Error>> {
    let stop = Arc::new(Stop::on_signals()?);
    let (requests_tx, requests) = channel();
    let is_over = Arc::clone(&stop);
    let limit = OutputLimit::new(ANSWER_BYTES);
    let lines = Lines::new(io::stdin(), &limit);
    let read = move || {
        lines.map_while(Result::ok).all(|line| requests_tx.send(line).is_ok());
        drop(requests_tx);
        is_over.request();
    };
    Builder::new().spawn(read).map_err(|err| punctual_host::no_thread(&err))?;
    punctual_host::check_proc()?;
    instrument::expect_sent_files();
    Server { executor: LocalOrLab::new(Arc::new(note)), lock: None, files: None, stop: &stop }.serve(&requests, &limit)
}

struct Server<'a> {
    executor: LocalOrLab,
    lock: Option<MachineLock>,
    /// Files of instruments that the campaign has sent.
    files: Option<ReceivedFiles>,
    stop: &'a Stop,
}

impl Server<'_> {
    fn serve(mut self, requests: &Receiver<String>, limit: &OutputLimit) -> Result<(), Box<dyn Error>> {
        loop {
            let line = match requests.recv_timeout(IDLE_TIMEOUT) {
                Ok(line) => {
                    limit.give_back(&line);
                    line
                }
                Err(RecvTimeoutError::Disconnected) => return Ok(()),
                Err(RecvTimeoutError::Timeout) => {
                    return Err(format!("timeout: no request for {} s", IDLE_TIMEOUT.as_secs()).into());
                }
            };
            let asked: Ask =
                serde_json::from_slice(line.as_bytes()).map_err(|err| format!("invalid request: {err}"))?;
            let answer = self.answer(asked).unwrap_or_else(|err| Answer::Refused(err.to_string()));
            write(&answer)?;
        }
    }

    fn answer(&mut self, asked: Ask) -> Result<Answer, Box<dyn Error>> {
        Ok(match asked {
            Ask::Planned { plan, samples } => Answer::Header(planned(*plan, samples)?.into()),
            Ask::Preview { plan, samples } => Answer::Header(preview(*plan, samples)?.into()),
            Ask::Header { plan, samples, wait } => {
                let lock = self.lock.insert(take_machine(Some(&plan), wait, self.stop, &note)?);
                let header = header(*plan, samples)?;
                lock.say(&holder(&header, header.n_measurements()));
                Answer::Header(header.into())
            }
            Ask::Host { wait } => {
                let lock = self.lock.insert(take_machine(None, wait, self.stop, &note)?);
                lock.say(&format!("pid {} (resumed from another machine)", std::process::id()));
                Answer::Host(punctual_host::snapshot(&HostFs::here()).into())
            }
            Ask::File(sent) => {
                if self.files.is_none() {
                    let files = ReceivedFiles::new()?;
                    instrument::use_sent_files(files.path());
                    self.files = Some(files);
                }
                self.files.iter().try_for_each(|files| files.take(&sent))?;
                Answer::Kept
            }
            Ask::Cell { cell, block } => {
                if self.lock.is_none() {
                    return Err("this machine is not locked".into());
                }
                match self.executor.execute(&cell, block, None, self.stop, &mut |_| {}) {
                    Ok(record) => Answer::Record(record.into()),
                    Err(failure) => {
                        Answer::Failed { reason: failure.to_string(), is_unsupported: failure.is_unsupported() }
                    }
                }
            }
        })
    }
}

/// Sends a line to the user of the campaign.
fn note(line: &str) {
    // The next answer reports a closed stdout.
    let _ = write(&Answer::Note(line.strip_prefix("punctual: ").unwrap_or(line).to_owned()));
}

fn write(answer: &Answer) -> Result<(), Box<dyn Error>> {
    let mut line = serde_json::to_vec(answer)?;
    line.push(b'\n');
    let mut stdout = io::stdout().lock();
    stdout.write_all(&line).and_then(|()| stdout.flush()).map_err(|err| format!("stdout: {err}").into())
}
