//! A measuring session: signals, checks, the machine lock, the snapshot of the host, the files of the run.
//!
//! The order is the same for every measuring command. Errors of the plan are reported before the wait for the machine;
//! the header, whose snapshot describes the host, is made after it.

use super::boots::{Boots, NextBoot};
use super::carry_out::{CampaignError, Observer, Rules, carry_out, keep};
use super::child::Child;
use super::estimate::expected;
use super::executor::Executor;
use super::header::{header, preview};
use super::local_or_lab::LocalOrLab;
use super::lock::take_machine;
use super::remote::{Board, files_of};
use super::shard::{seeded, sharded};
use super::stop::Stop;
use super::stopping::{self, Limits, Stopping};
use punctual_analysis::comparability::{self, Role};
use punctual_host::{HostFs, MachineLock};
use punctual_lab::MessageSink;
use punctual_model::{
    BootEvent, BootLine, Cell, Ended, Entry, Header, Host, Kernel, Plan, Planned, Progress, RunningKernel, Shard, Site,
    Span,
};
use punctual_store::{Run, StoreError, Writer};
use std::collections::HashSet;
use std::error::Error;
use std::path::Path;
use std::time::{Duration, SystemTime};

/// Rejects a run that the user has not agreed to, or that the command cannot display.
pub(crate) type Permit<'a> = &'a dyn Fn(&Header) -> Result<(), Box<dyn Error>>;

/// Request for a session: the plan, and callbacks of the command.
#[expect(missing_debug_implementations, reason = "a closure has nothing to show")]
pub struct Request<'a> {
    /// The plan to measure.
    pub plan: Plan,
    /// Whether all latencies are recorded.
    pub samples: bool,
    /// Time limit of a run that ends by a stopping rule.
    pub at_most: Option<Span>,
    /// The part of the run to make; `None`: all of it.
    pub shard: Option<Shard>,
    /// Whether to wait for the end of another measurement.
    pub wait: bool,
    /// The machine that measures; `None`: this one.
    pub on: Option<Site>,
    /// Called before and after the wait for the machine, because the possible cells may have changed.
    pub permit: Permit<'a>,
    /// Shows a line to the user.
    pub note: &'a dyn Fn(&str),
}

impl<'a> Request<'a> {
    /// A request to measure a whole plan on this machine, without samples or limits.
    pub fn here(plan: Plan, wait: bool, permit: Permit<'a>, note: &'a dyn Fn(&str)) -> Request<'a> {
        Request { plan, samples: false, at_most: None, shard: None, wait, on: None, permit, note }
    }
}

/// The machine, locked for a run. Dropping it releases the lock.
#[expect(missing_debug_implementations, reason = "a closure has nothing to show")]
pub struct Session {
    /// First line of the run: plan, cells in order, and the host.
    pub header: Header,
    /// Recorded measurements, including those of earlier sessions.
    pub entries: Vec<Entry>,
    stop: Stop,
    writer: Option<Writer>,
    machine: Machine,
}

/// The machine that measures.
enum Machine {
    Here(MachineLock),
    There(Box<Board>),
}

impl Session {
    /// Locks the machine for a new run. Errors: if nothing can be measured, the run is not permitted, or the machine
    /// cannot be locked.
    pub fn begin(request: Request<'_>) -> Result<Session, Box<dyn Error>> {
        let Request { plan, samples, at_most, shard, wait, on, permit, note } = request;
        let plan = seeded(plan, shard)?;
        punctual_host::check_proc()?;
        let stop = Stop::at_once_on_signals()?;
        let permitted = |header: Header| {
            permit(&header)?;
            let header = match at_most {
                Some(at_most) => stopping::bounded(header, at_most)?,
                None => header,
            };
            Ok::<_, Box<dyn Error>>(sharded(header, shard)?)
        };
        let (machine, header) = match on.filter(|site| *site != Site::Here) {
            None => {
                permitted(preview(plan.clone(), samples)?)?;
                let lock = take_machine(Some(&plan), wait, &stop, note)?;
                (Machine::Here(lock), permitted(header(plan, samples)?)?)
            }
            Some(site) => {
                may_be_elsewhere(&plan, samples)?;
                let mut board = Board::connect(&site, stop.flag(), note)?;
                permitted(board.preview(&plan, samples, note)?)?;
                let header = permitted(board.begin(&plan, samples, wait, note)?)?;
                stop.defer();
                (Machine::There(Box::new(board)), header)
            }
        };
        let session = Session { header, entries: Vec::new(), stop, writer: None, machine };
        session.announce(session.header.n_measurements());
        Ok(session)
    }

    /// Locks the machine to continue the run in `dir`. A run that began on another machine, or with other settings of
    /// this one, is rejected unless `force` is set: then each difference is a note, and a finding of the run. Errors:
    /// if the machine cannot be locked, or the run cannot be read, is not permitted, or cannot be continued there.
    pub fn resume(
        dir: &Path,
        on: Option<&Site>,
        wait: bool,
        force: bool,
        permit: Permit<'_>,
        note: &dyn Fn(&str),
    ) -> Result<Session, Box<dyn Error>> {
        let stop = Stop::at_once_on_signals()?;
        let (mut machine, run, now) = match on.filter(|site| **site != Site::Here) {
            None => {
                let machine =
                    Machine::Here(take_machine(Some(&punctual_store::read(dir)?.header.plan), wait, &stop, note)?);
                // Read again: another session may have gone on with it until now.
                (machine, punctual_store::read(dir)?, punctual_host::snapshot(&HostFs::here()))
            }
            Some(site) => {
                let mut board = Board::connect(site, stop.flag(), note)?;
                let now = board.resume(wait, note)?;
                stop.defer();
                (Machine::There(Box::new(board)), punctual_store::read(dir)?, now)
            }
        };
        permit(&run.header)?;
        if let Machine::There(board) = &mut machine {
            board.send_files(&run.header.plan, note)?;
        }
        if depends_on_its_machine(&run) {
            check_same_machine(&run.header, &now, force, note)?;
        }
        run.damage.iter().for_each(|damage| note(&format!("punctual: {damage}")));
        let writer = Some(punctual_store::append(dir, run.entries.len())?);
        let session = Session { header: run.header, entries: run.entries, stop, writer, machine };
        session.announce(session.header.n_measurements().saturating_sub(session.entries.len()));
        Ok(session)
    }

    /// Measures these cells next, in this many blocks, as a run of its own: nothing is measured yet, and it is not
    /// kept.
    pub fn measure_instead(&mut self, cells: Vec<Cell>, blocks: u32) {
        let unix = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        self.header.started_unix_ms = u64::try_from(unix.as_millis()).unwrap_or(self.header.started_unix_ms);
        // Another order than that of the cells before.
        self.header.seed = self.header.seed.wrapping_add(1);
        (self.header.cells, self.header.plan.repetitions) = (cells, blocks);
        self.header.skipped.clear();
        self.entries.clear();
        self.writer = None;
        self.announce(self.header.n_measurements());
    }

    /// Continues the run in `dir` next, which this process or an earlier one began on this machine. Errors: if it
    /// cannot be read, or cannot be written any more.
    pub fn continue_in(&mut self, dir: &Path) -> Result<(), StoreError> {
        let run = punctual_store::read(dir)?;
        self.writer = Some(punctual_store::append(dir, run.entries.len())?);
        (self.header, self.entries) = (run.header, run.entries);
        self.announce(self.header.n_measurements().saturating_sub(self.entries.len()));
        Ok(())
    }

    /// Writes the holder and the expected end to the lock of this machine; `left` is the number of remaining
    /// measurements.
    pub fn announce(&self, left: usize) {
        if let Machine::Here(lock) = &self.machine {
            lock.say(&holder(&self.header, left));
        }
    }

    /// The machine that measures, if it is not this one.
    pub fn on(&self) -> Option<&Site> {
        match &self.machine {
            Machine::Here(_) => None,
            Machine::There(board) => Some(board.site()),
        }
    }

    /// Stores the run in the new directory `dir`. Errors: if the directory cannot be created.
    pub fn keep_in(&mut self, dir: &Path) -> Result<(), StoreError> {
        self.writer = Some(punctual_store::create(dir, &self.header)?);
        Ok(())
    }

    /// Removes the files of a run in which nothing was measured.
    pub fn discard_empty(&mut self) {
        if self.entries.is_empty() {
            self.writer.take().into_iter().for_each(Writer::discard);
        }
    }

    /// The stop request of this session.
    pub fn stop(&self) -> &Stop {
        &self.stop
    }

    /// The first cell; the only one of most commands.
    pub fn cell(&self) -> &Cell {
        self.header.cells.first().expect("a run without cells is refused")
    }

    /// Makes every missing measurement, until `limits` end the run. Measurements before a failure stay in `entries`.
    /// `say` receives messages about slow operations. Errors: like [`carry_out`].
    pub fn carry_out(
        &mut self,
        say: MessageSink,
        observer: &mut impl Observer,
        limits: Limits,
    ) -> Result<(), CampaignError> {
        let stopping = Stopping::new(limits, &self.entries);
        let Session { header, entries, stop, writer, machine } = self;
        let mut local;
        let executor: &mut dyn Executor = match machine {
            Machine::Here(_) => {
                local = LocalOrLab::new(say);
                &mut local
            }
            Machine::There(board) => {
                board.say_by(say);
                board.as_mut()
            }
        };
        let is_over = |begun: u32, entries: &[Entry]| stopping.is_reached(header, begun, entries);
        if !header.is_over_boots() {
            let rules = Rules { is_over: &is_over, now: None };
            header.failed = carry_out(header, entries, writer.as_mut(), executor, observer, stop, rules)?;
            return Ok(());
        }
        let running = running()?;
        let log = writer.as_ref().map(Writer::boots).unwrap_or_default();
        let boots = Boots::of(header, entries, &log, &running);
        let (now, given_up) = (boots.now(), boots.given_up());
        if let Some((step, writer)) = now.zip(writer.as_ref()) {
            writer.boot(&boots.began(step))?;
            punctual_sys::fail::point("boot-began");
        }
        let rules = Rules { is_over: &is_over, now };
        let failed = carry_out(header, entries, writer.as_mut(), executor, observer, stop, rules)?;
        header.failed.extend(failed.into_iter().chain(given_up));
        Ok(writer.as_ref().map_or(Ok(()), |writer| writer.failed(&header.failed))?)
    }

    /// The boot that the run needs next; `None` if it needs none. Errors: if boots cannot be told apart.
    pub fn next_boot(&self) -> Result<Option<NextBoot>, CampaignError> {
        if !self.header.is_over_boots() {
            return Ok(None);
        }
        let log = self.writer.as_ref().map(Writer::boots).unwrap_or_default();
        Ok(Boots::of(&self.header, &self.entries, &log, &running()?).next())
    }

    /// Records that the machine is set to boot `next`. Errors: if that cannot be written.
    pub fn ask_for(&self, next: &NextBoot) -> Result<(), CampaignError> {
        let running = running()?;
        let kernel = Kernel::Installed(Box::new(next.kernel.clone()));
        let line = BootLine { event: BootEvent::Asked, block: next.block, kernel, running };
        Ok(self.writer.as_ref().map_or(Ok(()), |writer| writer.boot(&line))?)
    }

    /// Measures the only cell of the run in a child process, without a second attempt. Its latencies go to the new file
    /// `samples`, if given. Errors: if it was not measured, or cannot be written.
    pub fn measure(
        &mut self,
        samples: Option<&Path>,
        observe: &mut dyn FnMut(&Progress),
    ) -> Result<(), Box<dyn Error>> {
        let record = match Child.execute(self.cell(), 0, samples, &self.stop, observe) {
            // An error after a stop request is not a failure of the cell.
            Err(_) if self.stop.is_requested() => {
                return Err(self.stop.interrupted("interrupted before the first measured cycle").into());
            }
            record => record?,
        };
        let planned = Planned { block: 0, position: 0, cell_index: 0 };
        self.entries.push(keep(self.writer.as_mut(), Entry { planned, record }, 1)?);
        Ok(())
    }

    /// The exit status if a signal has ended a recorded measurement early.
    pub fn interrupted_status(&self) -> Option<u8> {
        let is_interrupted = self.entries.iter().any(|entry| entry.record.ended == Ended::Interrupted);
        is_interrupted.then(|| self.stop.exit_status())
    }

    /// Whether measurements remain that a later session can make.
    pub fn is_unfinished(&self) -> bool {
        self.header.failed.is_empty() && self.entries.len() < self.header.n_measurements()
    }
}

/// The kernel that runs.
fn running() -> Result<RunningKernel, CampaignError> {
    punctual_host::running_kernel().ok_or(CampaignError::NoBootId)
}

/// Rejects what only this machine could do. Errors: one line with the remedy.
pub(super) fn may_be_elsewhere(plan: &Plan, samples: bool) -> Result<(), String> {
    if samples {
        return Err("unsupported: --samples with --on; the samples would stay there; leave one of them out".to_owned());
    }
    if plan.axes.kernel.iter().any(|kernel| kernel.installed().is_some()) {
        return Err("unsupported: installed kernels with --on; start punctual run on that machine".to_owned());
    }
    if !plan.conditions.roles.is_empty() {
        return Err("unsupported: [roles] with --on; start punctual run on that machine".to_owned());
    }
    for path in files_of(plan)?.values() {
        punctual_host::file::open(path).map_err(|err| format!("files: {}: {err}", path.display()))?;
    }
    Ok(())
}

/// The text of the lock: its holder and expected end, with `left` remaining measurements.
pub(super) fn holder(header: &Header, left: usize) -> String {
    let now = SystemTime::now();
    let clock = |time| humantime::format_rfc3339_seconds(time).to_string()[..16].replace('T', " ");
    // Files may request a longer time than the calendar covers.
    let ends = now + expected(header, left).min(Duration::from_nanos(Span::MAX.ns()));
    let (started, ends) = (clock(now), clock(ends));
    format!("pid {} (started {started}, ends about {ends} UTC)", std::process::id())
}

/// The UTC time as a sortable directory name: 2026-11-20-143205.
pub fn stamp(time: SystemTime) -> String {
    humantime::format_rfc3339_seconds(time).to_string().replace('T', "-").replace([':', 'Z'], "")
}

/// Whether a remaining measurement depends on the machine: those in virtual time do not.
fn depends_on_its_machine(run: &Run) -> bool {
    let made: HashSet<Planned> = run.entries.iter().map(|entry| entry.planned).collect();
    let left = run.header.measurements().into_iter().filter(|planned| !made.contains(planned));
    let mut cells = left.filter_map(|planned| run.header.cells.get(planned.cell_index));
    cells.any(|cell| !cell.kernel.is_virtual())
}

/// Rejects the continuation of a run if the machine has changed since it began, unless `force` is set; `now` is its
/// present state. Settings of the plan itself do not count.
fn check_same_machine(header: &Header, now: &Host, force: bool, note: &dyn Fn(&str)) -> Result<(), String> {
    let mut differences = comparability::since(header, now);
    if header.is_over_boots() {
        // Each kernel has facts of its own.
        differences.retain(|one| one.role == Role::Prevents);
    }
    if !force && !differences.is_empty() {
        let named = differences.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        return Err(format!(
            "cannot resume: this machine has changed since the run began: {named}; restore it, or begin another run; \
             --force resumes anyway"
        ));
    }
    differences.iter().for_each(|one| note(&format!("changed since the run began: {one}")));
    Ok(())
}
