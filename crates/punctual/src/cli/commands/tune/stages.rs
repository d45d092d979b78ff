//! Both stages of an experiment, screening and confirmation, each a run of its own that can be continued.

use super::request::{asked, least_duration, wake_ups_needed};
use crate::cli::arguments::TuneArguments;
use crate::cli::commands::{consent, run_directory, run_over_boots};
use crate::cli::terminal::progress::Lines;
use crate::cli::terminal::{Outcome, note};
use punctual_analysis::comparison::Metric;
use punctual_analysis::tune::{self, Screened, Tuned};
use punctual_analysis::wording::{self, duration, things};
use punctual_campaign::{CampaignError, Limits, NextBoot, Request, Session};
use punctual_model::{Cell, Entry, Header, Knob, Plan, shell_word};
use std::error::Error;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Blocks of the confirmation at each look, as multiples of those at the first.
const LOOKS: [u32; 3] = [1, 2, 4];

/// An experiment on this machine, which is locked.
pub(super) struct Experiment {
    /// Directory of both runs.
    pub(super) dir: PathBuf,
    plan: Plan,
    session: Session,
}

impl Experiment {
    /// Begins an experiment. Errors: if it is refused, or the machine or the directory cannot be had.
    pub(super) fn begin(arguments: &TuneArguments) -> Result<Experiment, Box<dyn Error>> {
        let (plan, origin) = asked(arguments)?;
        let knobs = plan.knobs.clone();
        let design = tune::design(&knobs).ok_or("no knobs")?;
        // Values between the first and the last are checked before hours of screening, too.
        let others = cells_of_all_values(&plan)?;
        let runs: Vec<Vec<&str>> = design.runs.iter().map(|run| values(&knobs, run)).collect();
        let screening = cells(&plan, &runs)?;
        screening.iter().try_for_each(|cell| has_enough(cell, arguments.response))?;
        let with_all_cells =
            |header: &Header| Header { cells: screening.iter().chain(&others).cloned().collect(), ..header.clone() };
        let permit = |header: &Header| {
            let all = with_all_cells(header);
            origin.iter().try_for_each(|origin| origin.permit(&all, arguments.yes))?;
            consent::permit_floods(&all, arguments.yes)?;
            if arguments.reboot {
                run_over_boots::permit(&all, arguments.yes)?;
            }
            Ok(())
        };
        if arguments.at_most.is_some() && screening.iter().any(|cell| cell.kernel.installed().is_some()) {
            return Err("unsupported: --at-most with kernels that are booted; leave it out".into());
        }
        let as_is = plan.with_knobs(&vec![false; knobs.len()])?;
        let plan_as_is = Plan { knobs: knobs.clone(), ..as_is };
        let mut session = Session::begin(Request::here(plan_as_is, arguments.wait, &permit, &|line| note(line)))?;
        if let Some(plan) = &arguments.plan {
            consent::announce(plan, &with_all_cells(&session.header), None);
        }
        let default = || run_directory::new_directory(run_directory::started(&session.header));
        let dir = arguments.out.clone().unwrap_or_else(default);
        let blocks = arguments.blocks.unwrap_or(if arguments.quick { 2 } else { 3 });
        session.measure_instead(screening, blocks);
        session.keep_in(&screening_of(&dir))?;
        // It names the release of the current kernel, which is another one after a boot.
        Ok(Experiment { dir, plan: session.header.plan.clone(), session })
    }

    /// Continues the experiment in `dir`. Errors: if it cannot be read or continued here.
    pub(super) fn resume(dir: &Path, arguments: &TuneArguments) -> Result<Experiment, Box<dyn Error>> {
        let screening = screening_of(dir);
        if !punctual_store::is_run(&screening) {
            return Err(format!("cannot resume: {} holds no experiment of punctual tune", dir.display()).into());
        }
        let permit = |header: &Header| {
            // The confirmation may make settings that the screening does not.
            let others = cells_of_all_values(&header.plan)?;
            let all = Header { cells: header.cells.iter().cloned().chain(others).collect(), ..header.clone() };
            if arguments.reboot {
                run_over_boots::permit(&all, arguments.yes)?;
            }
            Ok(consent::permit_resumption(&screening, &all, None, arguments.yes)?)
        };
        let session = Session::resume(&screening, None, arguments.wait, false, &permit, &|line| note(line))?;
        let plan = session.header.plan.clone();
        if tune::design(&plan.knobs).is_none_or(|design| design.runs.len() != session.header.cells.len()) {
            return Err(format!("cannot resume: {} is not a screening of knobs", screening.display()).into());
        }
        Ok(Experiment { dir: dir.to_owned(), plan, session })
    }

    pub(super) fn knobs(&self) -> &[Knob] {
        &self.plan.knobs
    }

    /// The plan with every knob as it is, and the knobs.
    pub(super) fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Measures the screening, or what is missing of it. Errors: if it ends early; what was measured stays in the
    /// directory.
    pub(super) fn screening(&mut self) -> Result<(Header, Vec<Entry>), Box<dyn Error>> {
        if self.session.is_unfinished() {
            note(format_args!("screening of {}", things(count(self.plan.knobs.len()), "knob")));
        }
        self.measure(Limits::default())?;
        Ok((self.session.header.clone(), std::mem::take(&mut self.session.entries)))
    }

    /// Measures the confirmation, or what is missing of it, until it is decided or its blocks are over. Errors: if it
    /// ends early, or that in the directory is of other knobs.
    pub(super) fn confirmation(
        &mut self,
        arguments: &TuneArguments,
        screened: &Screened,
        screening: &[Entry],
    ) -> Result<(Tuned, Vec<Entry>), Box<dyn Error>> {
        let (knobs, candidates) = (self.plan.knobs.clone(), screened.candidates());
        // Over boots the blocks are not measured one after the other by one process.
        let is_over_boots = self.session.header.is_over_boots();
        let looks = if arguments.at_most.is_some() && !is_over_boots { LOOKS.len() } else { 1 };
        let looks_u32 = u32::try_from(looks).unwrap_or(1);
        let least = tune::least_blocks(&knobs, &candidates, looks_u32);
        let asked = arguments.confirm.unwrap_or(if arguments.quick { 8 } else { 12 });
        let first = asked.max(least);
        let multiples = LOOKS.get(..looks).unwrap_or(&LOOKS);
        let most = first.saturating_mul(*multiples.last().unwrap_or(&1));
        let cells = cells(&self.plan, &tune::confirmation(&knobs, &candidates))?;
        let dir = self.dir.join("confirmation");
        if punctual_store::is_run(&dir) {
            self.session.continue_in(&dir)?;
            if self.session.header.cells != cells {
                let dir = dir.display();
                return Err(format!("cannot resume: {dir} confirms other knobs; give the same --response").into());
            }
            self.session.header.plan.repetitions = most;
        } else {
            self.session.measure_instead(cells, most);
            self.session.keep_in(&dir)?;
        }
        let names: Vec<_> =
            candidates.iter().filter_map(|index| knobs.get(*index)).map(|knob| knob.key.as_str()).collect();
        note(format_args!("confirmation of {}, {}", names.join(", "), things(u64::from(first), "block")));
        let begun = Instant::now();
        let mut answer = None;
        for (look, blocks) in multiples.iter().map(|times| first.saturating_mul(*times)).enumerate() {
            let done = self.session.entries.iter().map(|entry| entry.planned.block + 1).max().unwrap_or(0);
            if let Some(at_most) = arguments.at_most.filter(|_| look > 0) {
                let expected = begun.elapsed() / done.max(1) * blocks;
                if expected > Duration::from_nanos(at_most.ns()) {
                    note(format_args!(
                        "undecided after {}; {blocks} blocks would take {} (--at-most)",
                        things(u64::from(done), "block"),
                        duration(expected.as_nanos() as f64)
                    ));
                    break;
                }
            }
            let blocks = Some(blocks.saturating_sub(done)).filter(|_| !is_over_boots);
            self.measure(Limits { blocks, ..Limits::default() })?;
            let tuned = tune::tuned(&knobs, screened.clone(), screening, &self.session.entries, looks_u32);
            let is_decided = tuned.is_decided();
            answer = Some(tuned);
            if is_decided {
                break;
            }
        }
        let tuned = answer.ok_or("the confirmation has no blocks")?;
        Ok((tuned, std::mem::take(&mut self.session.entries)))
    }

    /// Makes the missing measurements of the present run.
    fn measure(&mut self, limits: Limits) -> Result<(), Box<dyn Error>> {
        let session = &mut self.session;
        let mut lines = Lines::new(&session.header, session.entries.len());
        let result = session.carry_out(lines.say_above(), &mut lines, limits);
        lines.finish();
        let dir = self.dir.display().to_string();
        let resume = format!("punctual tune --resume {}", shell_word(&dir));
        result.map_err(|err| -> Box<dyn Error> {
            match err {
                CampaignError::Interrupted { .. } => {
                    session.stop().interrupted(format!("{err}; continue with: {resume}")).into()
                }
                other => format!("{other}; continue with: {resume}").into(),
            }
        })?;
        let failed = session.header.failed.first();
        if failed.is_some() && session.header.is_over_boots() {
            run_over_boots::end()?;
        }
        match failed {
            Some(failed) => Err(format!(
                "a measurement failed twice: {}; the others are in {dir}; try again with: {resume}",
                failed.reason
            )
            .into()),
            None => session.next_boot()?.map_or(Ok(()), |next| Err(CampaignError::NeedsBoot(next.into()).into())),
        }
    }

    /// Boots the kernel that the experiment needs next, or says how.
    pub(super) fn go_on(self, next: &NextBoot, arguments: &TuneArguments) -> Outcome {
        let confirm = arguments.confirm.map(|blocks| format!("--confirm={blocks}"));
        let quick = arguments.quick.then(|| "--quick".to_owned());
        let words =
            ["tune".to_owned(), format!("--response={}", arguments.response)].into_iter().chain(confirm).chain(quick);
        let words: Vec<String> = words.chain(["--resume".to_owned()]).collect();
        run_over_boots::go_on(&self.dir, self.session, next, &words, arguments.reboot)
    }
}

/// Rejects a cell whose measurements are too short for the number that is compared.
fn has_enough(cell: &Cell, metric: Metric) -> Result<(), String> {
    let (have, need) = (cell.cycles_of_all(), wake_ups_needed(metric));
    if have >= need {
        return Ok(());
    }
    let least = least_duration(metric, cell.period.span(), &cell.cpus);
    let (have, need) = (things(have, "wake-up"), wording::count(need));
    Err(format!("a measurement has {have}, but {metric} needs {need}; measure at least {least} (--duration)"))
}

fn screening_of(dir: &Path) -> PathBuf {
    dir.join("screening")
}

/// The value of each knob in a run of the design.
fn values<'a>(knobs: &'a [Knob], run: &[bool]) -> Vec<&'a str> {
    knobs.iter().zip(run).map(|(knob, changed)| knob.value(*changed)).collect()
}

/// The cells of all confirmations that are possible but for combinations. Errors: as [`cells`].
fn cells_of_all_values(plan: &Plan) -> Result<Vec<Cell>, Box<dyn Error>> {
    let all: Vec<usize> = (0..plan.knobs.len()).collect();
    cells(plan, &tune::confirmation(&plan.knobs, &all))
}

/// The cells of these combinations of values. Errors: if a combination cannot be measured here; the combination is
/// named.
fn cells(plan: &Plan, runs: &[Vec<&str>]) -> Result<Vec<Cell>, Box<dyn Error>> {
    let cell = |values: &Vec<&str>| {
        let named = || {
            let values = plan.knobs.iter().zip(values).map(|(knob, value)| format!("{}={value}", knob.key));
            values.collect::<Vec<_>>().join(", ")
        };
        punctual_campaign::only_cell(&plan.with_values(values)?)
            .map_err(|err| format!("with {}: {err}", named()).into())
    };
    runs.iter().map(cell).collect()
}

fn count(n: usize) -> u64 {
    u64::try_from(n).unwrap_or(u64::MAX)
}
