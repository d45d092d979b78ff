//! One measuring session: signals, checks, the lock of the machine, the snapshot of the host, the files of the run.
//!
//! The order is the same for every command that measures. A mistake in the plan is reported before the wait for the
//! machine; the header, whose snapshot tells what the machine is like, is made after it.

use super::carry_out::{CampaignError, Observer, carry_out};
use super::child::Child;
use super::estimate::expected;
use super::executor::Executor;
use super::header::{header, preview};
use super::lock::take_machine;
use super::stop::Stop;
use super::stopping::{self, Limits, Stopping};
use analysis::comparability;
use host::{HostFs, MachineLock};
use model::{Cell, Entry, Header, Plan, Planned, Progress, Span};
use std::error::Error;
use std::path::Path;
use std::time::{Duration, SystemTime};
use store::{Run, StoreError, Writer};

/// Refuses a run that the user has not agreed to, or that the command cannot show.
pub(crate) type Permit<'a> = &'a dyn Fn(&Header) -> Result<(), Box<dyn Error>>;

/// A session to begin: the plan, and the command's part of the script.
#[expect(missing_debug_implementations, reason = "a closure has nothing to show")]
pub struct Request<'a> {
    /// What is to be measured.
    pub plan: Plan,
    /// Whether all latencies are kept.
    pub samples: bool,
    /// The longest time of a run that ends by a stopping rule.
    pub at_most: Option<Span>,
    /// Whether to wait for another measurement to end.
    pub wait: bool,
    /// Called before the wait for the machine and again after it, because other cells may be possible then.
    pub permit: Permit<'a>,
    /// Shows a line to the user.
    pub note: &'a dyn Fn(&str),
}

/// The machine, held for a run. Dropping it releases the machine.
#[derive(Debug)]
pub struct Session {
    /// The run's first line: plan, cells in their order, and the machine.
    pub header: Header,
    /// Measurements that are recorded, those of earlier sessions included.
    pub entries: Vec<Entry>,
    stop: Stop,
    writer: Option<Writer>,
    lock: MachineLock,
}

impl Session {
    /// Takes the machine for a new run.
    ///
    /// # Errors
    /// When nothing can be measured, it is not permitted, or the machine cannot be had.
    pub fn begin(request: Request<'_>) -> Result<Session, Box<dyn Error>> {
        let Request { plan, samples, at_most, wait, permit, note } = request;
        let stop = Stop::on_signals()?;
        let permitted = |header: Header| {
            permit(&header)?;
            Ok::<_, Box<dyn Error>>(match at_most {
                Some(at_most) => stopping::bounded(header, at_most)?,
                None => header,
            })
        };
        permitted(preview(plan.clone(), samples)?)?;
        let lock = take_machine(wait, note)?;
        let header = permitted(header(plan, samples)?)?;
        let session = Session { header, entries: Vec::new(), stop, writer: None, lock };
        session.announce(session.header.n_measurements());
        Ok(session)
    }

    /// Takes the machine to go on with the run in `dir`. A run that began on another machine, or on this one with other
    /// settings, is refused unless `force` is set: then each difference is a note, and a finding of the run.
    ///
    /// # Errors
    /// When the machine cannot be had, or the run cannot be read, is not permitted, or cannot be continued here.
    pub fn resume(
        dir: &Path,
        wait: bool,
        force: bool,
        permit: Permit<'_>,
        note: &dyn Fn(&str),
    ) -> Result<Session, Box<dyn Error>> {
        let stop = Stop::on_signals()?;
        let lock = take_machine(wait, note)?;
        let run = store::read(dir)?;
        permit(&run.header)?;
        if depends_on_this_machine(&run) {
            check_same_machine(&run.header, force, note)?;
        }
        run.damage.iter().for_each(|damage| note(&format!("punctual: {damage}")));
        let writer = Some(store::append(dir, run.entries.len())?);
        let session = Session { header: run.header, entries: run.entries, stop, writer, lock };
        session.announce(session.header.n_measurements().saturating_sub(session.entries.len()));
        Ok(session)
    }

    /// Writes in the lock who holds it, and until when: `left` measurements are to be made.
    pub fn announce(&self, left: usize) {
        self.lock.say(&holder(&self.header, left));
    }

    /// Keeps the run in the new directory `dir`.
    ///
    /// # Errors
    /// When the directory cannot be made.
    pub fn keep_in(&mut self, dir: &Path) -> Result<(), StoreError> {
        self.writer = Some(store::create(dir, &self.header)?);
        Ok(())
    }

    /// The request to stop, by a signal.
    pub fn stop(&self) -> &Stop {
        &self.stop
    }

    /// The first cell; the only one of most commands.
    pub fn cell(&self) -> &Cell {
        self.header.cells.first().expect("a run without cells is refused")
    }

    /// Makes every measurement that is missing, until `limits` end the run. What was measured before a failure stays in
    /// `entries`.
    ///
    /// # Errors
    /// As [`carry_out`].
    pub fn carry_out(
        &mut self,
        executor: &mut impl Executor,
        observer: &mut impl Observer,
        limits: Limits,
    ) -> Result<(), CampaignError> {
        let stopping = Stopping::new(limits, &self.entries);
        let Session { header, entries, stop, writer, .. } = self;
        let is_over = |entries: &[Entry]| stopping.is_reached(header, entries);
        let failed = carry_out(header, entries, writer.as_mut(), executor, observer, stop, &is_over)?;
        self.header.failed = failed;
        Ok(())
    }

    /// Measures the one cell of the run here, without a second try. Its latencies go to the new file `samples`, if it
    /// is named.
    ///
    /// # Errors
    /// When it was not measured, or cannot be kept.
    pub fn measure(
        &mut self,
        samples: Option<&Path>,
        observe: &mut dyn FnMut(&Progress),
    ) -> Result<(), Box<dyn Error>> {
        let record = Child.execute(self.cell(), 0, samples, &self.stop, observe)?;
        let entry = Entry { planned: Planned { block: 0, position: 0, cell_index: 0 }, record };
        if let Some(writer) = &mut self.writer {
            writer.entry(&entry)?;
        }
        self.entries.push(entry);
        Ok(())
    }

    /// Whether measurements are missing that a later session can make.
    pub fn is_unfinished(&self) -> bool {
        self.header.failed.is_empty() && self.entries.len() < self.header.n_measurements()
    }
}

/// The text of the lock: its holder; `left` measurements are to be made.
fn holder(header: &Header, left: usize) -> String {
    let now = SystemTime::now();
    let clock = |time| humantime::format_rfc3339_seconds(time).to_string()[..16].replace('T', " ");
    // What a file asks for may be longer than a calendar is.
    let ends = now + expected(header, left).min(Duration::from_nanos(Span::MAX.ns()));
    let (started, ends) = (clock(now), clock(ends));
    format!("pid {} (started {started}, ends about {ends} UTC)", std::process::id())
}

/// The wall-clock time, UTC, as a directory name that sorts: 2026-11-20-143205.
pub fn stamp(time: SystemTime) -> String {
    humantime::format_rfc3339_seconds(time).to_string().replace('T', "-").replace([':', 'Z'], "")
}

/// Whether a measurement is left that depends on this machine: one in virtual time does not.
fn depends_on_this_machine(run: &Run) -> bool {
    let made = |index: usize| run.entries.iter().filter(|entry| entry.planned.cell_index == index).count();
    let blocks = usize::try_from(run.header.plan.repetitions).unwrap_or(usize::MAX);
    let mut cells = run.header.cells.iter().enumerate();
    cells.any(|(index, cell)| !cell.kernel.is_virtual() && made(index) < blocks)
}

/// Refuses to go on with a run on a machine that is not what it was when the run began, unless it is forced. What the
/// plan itself sets is no difference.
fn check_same_machine(header: &Header, force: bool, note: &dyn Fn(&str)) -> Result<(), String> {
    let now = host::snapshot(&HostFs::here());
    let differences = comparability::since(header, &now);
    if !force && !differences.is_empty() {
        let named = differences.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        return Err(format!(
            "this machine is not what it was when the run began: {named}; put that back and resume, or begin another run; \
             --force goes on all the same"
        ));
    }
    differences.iter().for_each(|one| note(&format!("not as when the run began: {one}")));
    Ok(())
}
