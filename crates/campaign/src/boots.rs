//! Runs whose kernels are installed ones: what the running kernel can measure, and which one is to be booted next.
//!
//! A step is what one boot is for: the cells of one kernel in one block. So boots alternate as blocks do, and each
//! block adds one boot of each kernel to the statistics.

use punctual_model::{
    BootEvent, BootLine, Cell, Entry, Failed, Header, InstalledKernel, Kernel, Plan, Planned, RunningKernel, Skipped,
};
use std::collections::{BTreeSet, HashSet};

/// How often a kernel is booted for one step until its cells are given up.
const MAX_TRIES: usize = 2;

/// The cells of one kernel in one block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Step<'a> {
    pub(super) block: u32,
    kernel: &'a Kernel,
}

/// A boot that a run needs before it can go on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NextBoot {
    /// The kernel to boot.
    pub kernel: InstalledKernel,
    /// Words that other kernels of the run have, and this one has not.
    pub without: Vec<String>,
    /// The block to measure with it.
    pub block: u32,
    /// Boots after which a step of the run was complete.
    pub done: usize,
    /// Boots of the whole run.
    pub all: usize,
}

/// A run over boots, and the kernel that runs.
pub(super) struct Boots<'a> {
    log: &'a [BootLine],
    running: &'a RunningKernel,
    /// Each step with an entry of this boot.
    of_this_boot: Vec<Step<'a>>,
    /// In order, each with its measurements that have neither a record nor failed.
    steps: Vec<(Step<'a>, Vec<Planned>)>,
}

impl<'a> Boots<'a> {
    pub(super) fn of(header: &'a Header, entries: &[Entry], log: &'a [BootLine], running: &'a RunningKernel) -> Self {
        let step = |planned: &Planned| {
            let kernel = &header.cells.get(planned.cell_index)?.kernel;
            kernel.installed().map(|_| Step { block: planned.block, kernel })
        };
        let is_now = |entry: &&Entry| entry.record.host_before.boot_id.as_ref() == Some(&running.boot_id);
        let of_this_boot = entries.iter().filter(is_now).filter_map(|entry| step(&entry.planned)).collect();
        // What failed in its boot is not measured in another one.
        let failed = header.failed.iter().map(|failed| failed.planned);
        let made: HashSet<Planned> = entries.iter().map(|entry| entry.planned).chain(failed).collect();
        let mut steps: Vec<(Step<'a>, Vec<Planned>)> = Vec::new();
        // The measurements of a step follow each other.
        for (step, planned) in header.measurements().into_iter().filter_map(|one| Some((step(&one)?, one))) {
            if steps.last().is_none_or(|(last, _)| *last != step) {
                steps.push((step, Vec::new()));
            }
            if let Some((_, missing)) = steps.last_mut().filter(|_| !made.contains(&planned)) {
                missing.push(planned);
            }
        }
        Boots { log, running, of_this_boot, steps }
    }

    /// The step that this boot is for; `None` if the running kernel is not asked for, or has been used.
    pub(super) fn now(&self) -> Option<Step<'a>> {
        let mut open = self.open().filter(|step| self.is_running(step.kernel) && self.is_for(step));
        open.find(|step| self.why_given_up(step).is_none()).copied()
    }

    /// The steps with missing measurements.
    fn open(&self) -> impl Iterator<Item = &Step<'a>> {
        self.steps.iter().filter(|(_, missing)| !missing.is_empty()).map(|(step, _)| step)
    }

    /// The boot that the run needs; `None` if no step is left that the running kernel cannot measure.
    pub(super) fn next(&self) -> Option<NextBoot> {
        let step = self.open().find(|step| self.why_given_up(step).is_none())?;
        Some(NextBoot {
            kernel: step.kernel.installed()?.clone(),
            without: self.without(step.kernel.installed()?),
            block: step.block,
            done: self.steps.len() - self.open().count(),
            all: self.steps.len(),
        })
    }

    /// The measurements whose kernel was booted in vain.
    pub(super) fn given_up(&self) -> Vec<Failed> {
        let given_up = self.steps.iter().filter_map(|(step, missing)| Some((self.why_given_up(step)?, missing)));
        let failed = |(reason, missing): (String, &Vec<Planned>)| {
            missing.iter().map(|planned| Failed { planned: *planned, reason: reason.clone() }).collect::<Vec<_>>()
        };
        given_up.flat_map(failed).collect()
    }

    /// A line of the log about `step` under the running kernel.
    pub(super) fn line(&self, event: BootEvent, step: Step<'_>) -> BootLine {
        BootLine { event, block: step.block, kernel: step.kernel.clone(), running: self.running.clone() }
    }

    /// Whether the running kernel is this one: the release, its arguments, and none that only others of the run have.
    fn is_running(&self, kernel: &Kernel) -> bool {
        let Some(asked) = kernel.installed() else { return false };
        let is_given = |word: &String| self.running.command_line.split_whitespace().any(|given| given == word);
        asked.is_booted(&self.running.release, &self.running.command_line) && !self.without(asked).iter().any(is_given)
    }

    /// Words that other kernels of the run have, and this one has not.
    fn without(&self, kernel: &InstalledKernel) -> Vec<String> {
        let all = self.steps.iter().filter_map(|(step, _)| step.kernel.installed());
        let words: BTreeSet<&str> = all.flat_map(|other| other.arguments.split_whitespace()).collect();
        let is_own = |word: &&str| kernel.arguments.split_whitespace().any(|own| own == *word);
        words.into_iter().filter(|word| !is_own(word)).map(str::to_owned).collect()
    }

    /// Whether this boot has not been used for another step: each block has a boot of its own.
    fn is_for(&self, step: &Step<'a>) -> bool {
        let mut began = self.log.iter().filter(|line| line.event == BootEvent::Began && self.is_of_this_boot(line));
        self.of_this_boot.iter().all(|used| used == step)
            && began.all(|line| line.block == step.block && line.kernel == *step.kernel)
    }

    fn is_of_this_boot(&self, line: &BootLine) -> bool {
        line.running.boot_id == self.running.boot_id
    }

    /// Earlier boots with this event for a step.
    fn tries(&self, event: BootEvent, step: &Step<'a>) -> usize {
        let lines = self.log.iter().filter(|line| line.event == event && !self.is_of_this_boot(line));
        let of_step = lines.filter(|line| line.block == step.block && line.kernel == *step.kernel);
        of_step.map(|line| &line.running.boot_id).collect::<HashSet<_>>().len()
    }

    /// Reason why a step, or the kernel of an earlier one, is not tried again.
    fn why_given_up(&self, step: &Step<'a>) -> Option<String> {
        let mut of_kernel = self.open().filter(|other| other.kernel == step.kernel);
        of_kernel.find_map(|step| {
            let [asked, began] = [BootEvent::Asked, BootEvent::Began].map(|event| self.tries(event, step));
            let kernel = step.kernel;
            match () {
                () if began >= MAX_TRIES => {
                    Some(format!("the machine went down {began} times while {kernel} was measured"))
                }
                // The boot that was asked for may be this one.
                () if asked >= MAX_TRIES && !self.is_running(kernel) => Some(format!(
                    "{kernel} was booted {asked} times, and another kernel ran afterwards, at last {}",
                    self.running.release
                )),
                () => None,
            }
        })
    }
}

/// Rejects a plan whose cells would run on another kernel with each boot.
pub(super) fn check_plan(plan: &Plan) -> Result<(), String> {
    let kernels = &plan.axes.kernel;
    match kernels.iter().find(|kernel| kernel.installed().is_some()) {
        Some(installed) if kernels.contains(&Kernel::Running) => Err(format!(
            "kernels `running` and `{installed}` cannot be combined: `running` would be another one with each boot; name \
             its release (uname -r)"
        )),
        _ => Ok(()),
    }
}

/// The plan with this release in place of the current one.
pub(super) fn with_release(mut plan: Plan, release: Option<&str>) -> Result<Plan, String> {
    for kernel in &mut plan.axes.kernel {
        if let Kernel::Installed(kernel) = kernel
            && kernel.release == InstalledKernel::CURRENT
        {
            release.ok_or("the release of the running kernel cannot be read")?.clone_into(&mut kernel.release);
        }
    }
    Ok(plan)
}

/// Skips the cells on kernels that are not installed.
pub(super) fn without_absent(
    (cells, mut skipped): (Vec<Cell>, Vec<Skipped>),
    there: &[String],
) -> (Vec<Cell>, Vec<Skipped>) {
    let is_there = |cell: &Cell| cell.kernel.installed().is_none_or(|kernel| there.contains(&kernel.release));
    let (cells, absent): (Vec<Cell>, Vec<Cell>) = cells.into_iter().partition(is_there);
    let known = if there.is_empty() { "none is there".to_owned() } else { format!("there are {}", there.join(", ")) };
    skipped.extend(
        absent
            .into_iter()
            .map(|cell| Skipped { reason: format!("{} is not in /boot with its modules; {known}", cell.kernel), cell }),
    );
    (cells, skipped)
}

/// Whether a measurement belongs to a step, or to a kernel that needs no boot.
pub(super) fn is_possible(header: &Header, now: Option<Step<'_>>, planned: &Planned) -> bool {
    header.cells.get(planned.cell_index).is_none_or(|cell| match cell.kernel {
        Kernel::Installed(_) => now.is_some_and(|step| step.block == planned.block && *step.kernel == cell.kernel),
        Kernel::Running | Kernel::Lab(_) => true,
    })
}

#[cfg(test)]
mod tests;
