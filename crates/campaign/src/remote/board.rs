//! A board: another machine that measures whole cells of a campaign.

use super::Deliveries;
use super::connection::{Connection, Event};
use super::files;
use super::messages::{Answer, Ask};
use crate::executor::{Executor, Failure};
use crate::stop::Stop;
use punctual_lab::MessageSink;
use punctual_model::{Cell, Header, Host, Plan, Progress, Record, Site};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::SystemTime;

/// `punctual serve-cells` on another machine. Dropping it interrupts its cell and releases that machine.
pub(crate) struct Board {
    site: Site,
    connection: Connection,
    /// Receiver of messages while cells are measured.
    say: MessageSink,
    /// Keeps this program there.
    _deliveries: Deliveries,
}

impl Board {
    /// Connects to the machine `site`; `note` receives a message if that takes long. Errors: one line: the reason why
    /// it cannot be used; also if `is_stop_requested` is set.
    pub(crate) fn connect(site: &Site, is_stop_requested: &AtomicBool, note: &dyn Fn(&str)) -> Result<Board, String> {
        let name = format!("board {site}");
        let mut deliveries = Deliveries::default();
        note(&format!("punctual: connecting to {site}"));
        let command = deliveries.command(&name, site, &["serve-cells".to_owned()], is_stop_requested)?;
        let connection = Connection::open(name, command, || {})?;
        Ok(Board { site: site.clone(), connection, say: Arc::new(|_| {}), _deliveries: deliveries })
    }

    pub(crate) fn site(&self) -> &Site {
        &self.site
    }

    /// Redirects the messages, which follow until the campaign ends.
    pub(crate) fn say_by(&mut self, say: MessageSink) {
        self.say = say;
    }

    /// The run of `plan` as that machine and user could measure it, even if that is nothing. Errors: one line: the plan
    /// is impossible there, or the connection is lost.
    pub(crate) fn planned(&mut self, plan: &Plan, samples: bool, note: &dyn Fn(&str)) -> Result<Header, String> {
        let asked = Ask::Planned { plan: plan.clone().into(), samples };
        self.header(&asked, plan, note)
    }

    /// The same, if anything can be measured. Errors: as [`Board::planned`], and if nothing can be measured.
    pub(crate) fn preview(&mut self, plan: &Plan, samples: bool, note: &dyn Fn(&str)) -> Result<Header, String> {
        let asked = Ask::Preview { plan: plan.clone().into(), samples };
        self.header(&asked, plan, note)
    }

    /// Locks the machine for a run of `plan`. Errors: as [`Board::preview`], and if the machine cannot be locked.
    pub(crate) fn begin(
        &mut self,
        plan: &Plan,
        samples: bool,
        wait: bool,
        note: &dyn Fn(&str),
    ) -> Result<Header, String> {
        let asked = Ask::Header { plan: plan.clone().into(), samples, wait };
        let header = self.header(&asked, plan, note)?;
        self.send_files(plan, note)?;
        Ok(header)
    }

    /// Sends the files of instruments of `plan`, for the cells that follow. Errors: one line: a file cannot be read
    /// here or written there, or the connection is lost.
    pub(crate) fn send_files(&mut self, plan: &Plan, note: &dyn Fn(&str)) -> Result<(), String> {
        for (name, path) in files::of_plan(plan)? {
            match self.ask(&Ask::File(files::read(&name, &path)?.into()), note)? {
                Answer::Kept => {}
                answer => return Err(self.unexpected(&answer)),
            }
        }
        Ok(())
    }

    /// Locks the machine to continue a run; returns its snapshot. Errors: one line: the machine cannot be locked, or
    /// the connection is lost.
    pub(crate) fn resume(&mut self, wait: bool, note: &dyn Fn(&str)) -> Result<Host, String> {
        match self.ask(&Ask::Host { wait }, note)? {
            Answer::Host(host) => Ok(*host),
            answer => Err(self.unexpected(&answer)),
        }
    }

    fn header(&mut self, asked: &Ask, plan: &Plan, note: &dyn Fn(&str)) -> Result<Header, String> {
        match self.ask(asked, note)? {
            Answer::Header(header) if header.plan == *plan => {
                // Boards without a battery start their clock anywhere.
                let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
                Ok(Header { started_unix_ms: u64::try_from(now.as_millis()).unwrap_or(u64::MAX), ..*header })
            }
            answer => Err(self.unexpected(&answer)),
        }
    }

    /// Sends a request and waits for its answer. Errors: one line: the request is refused, or the connection is lost.
    fn ask(&mut self, asked: &Ask, say: &dyn Fn(&str)) -> Result<Answer, String> {
        let mut line = serde_json::to_vec(asked).map_err(|err| err.to_string())?;
        line.push(b'\n');
        self.connection.ask(line.into());
        loop {
            match self.connection.next(asked.timeout())? {
                Event::Output(line) => match serde_json::from_slice(line.as_bytes()) {
                    Ok(Answer::Note(note)) => {
                        say(&format!("punctual: {}: {}", self.site, punctual_model::plain(&note)));
                    }
                    Ok(Answer::Refused(reason)) => {
                        return Err(format!("{}: {}", self.connection.name, punctual_model::plain(&reason)));
                    }
                    Ok(answer) => return Ok(answer),
                    // What a login shell prints.
                    Err(_) if !line.starts_with('{') => {}
                    Err(err) => return Err(format!("{}: invalid answer: {err}", self.connection.name)),
                },
                Event::Message(line) => self.connection.keep(line),
                Event::Stop => self.connection.close(),
                Event::Ended => return Err(self.connection.failure()),
                Event::Sent | Event::Silent => {}
            }
        }
    }

    fn unexpected(&self, answer: &Answer) -> String {
        let kind = match answer {
            Answer::Note(_) => "a note",
            Answer::Header(_) => "another run",
            Answer::Host(_) => "a snapshot",
            Answer::Kept => "a file",
            Answer::Record(_) => "another record",
            Answer::Failed { .. } => "a failure",
            Answer::Refused(_) => "a refusal",
        };
        format!("{}: unexpected answer: {kind}", self.connection.name)
    }
}

impl Executor for Board {
    /// A lost connection ends the campaign, which can be resumed: the machine may come back with other settings.
    fn execute(
        &mut self,
        cell: &Cell,
        block: u32,
        _samples: Option<&Path>,
        stop: &Stop,
        _observe: &mut dyn FnMut(&Progress),
    ) -> Result<Record, Failure> {
        let (on_stop, say) = (self.connection.stopper(), Arc::clone(&self.say));
        let asked = Ask::Cell { cell: cell.clone().into(), block };
        match stop.during(on_stop, || self.ask(&asked, &*say))?.map_err(Failure::Unsupported)? {
            Answer::Record(record) if record.cell == *cell => Ok(*record),
            Answer::Failed { reason, is_unsupported: true } => Err(Failure::Unsupported(reason)),
            Answer::Failed { reason, .. } => Err(Failure::Reported(reason)),
            answer => Err(Failure::Unsupported(self.unexpected(&answer))),
        }
    }
}
