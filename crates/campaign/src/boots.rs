//! Runs whose kernels are installed ones: what the running kernel can measure, and which one is to be booted next.
//!
//! A step is what one boot is for: the cells of one kernel in one block. So boots alternate as blocks do, and each
//! block adds one boot of each kernel to the statistics.

use punctual_model::{
    BootEvent, BootLine, BootStep, BootSteps, Cell, Entry, Failed, Header, InstalledKernel, Kernel, Plan, Planned,
    RunningKernel, Skipped,
};
use std::collections::{BTreeSet, HashSet};

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
    steps: BootSteps<'a>,
    /// Of each step the measurements that have neither a record nor failed.
    missing: Vec<Vec<Planned>>,
}

impl<'a> Boots<'a> {
    pub(super) fn of(header: &'a Header, entries: &[Entry], log: &'a [BootLine], running: &'a RunningKernel) -> Self {
        let kernel = |planned: &Planned| {
            let kernel = &header.cells.get(planned.cell_index)?.kernel;
            kernel.installed().map(|_| kernel)
        };
        // What failed in its boot is not measured in another one.
        let failed = header.failed.iter().map(|failed| failed.planned);
        let made: HashSet<Planned> = entries.iter().map(|entry| entry.planned).chain(failed).collect();
        let all: Vec<_> = header.measurements().into_iter().filter_map(|one| Some((one, kernel(&one)?))).collect();
        // The measurements of a step follow each other.
        let of_steps = all.chunk_by(|(a, of_a), (b, of_b)| a.block == b.block && of_a == of_b);
        let (mut steps, mut missing) = (Vec::new(), Vec::new());
        for (of_step, &(first, kernel)) in of_steps.filter_map(|of_step| Some((of_step, of_step.first()?))) {
            let open: Vec<Planned> = of_step.iter().map(|(one, _)| *one).filter(|one| !made.contains(one)).collect();
            let is_running = is_running(header, kernel, running);
            steps.push(BootStep { block: first.block, kernel, is_running, is_open: !open.is_empty() });
            missing.push(open);
        }
        Boots { steps: BootSteps { steps, log, running }, missing }
    }

    /// The step that this boot is for; `None` if the running kernel is not asked for, or has been used.
    pub(super) fn now(&self) -> Option<&BootStep<'a>> {
        self.steps.now()
    }

    /// The boot that the run needs; `None` if no step is left that the running kernel cannot measure.
    pub(super) fn next(&self) -> Option<NextBoot> {
        let step = self.steps.next()?;
        let kernel = step.kernel.installed()?;
        let all = self.steps.steps.len();
        Some(NextBoot {
            kernel: kernel.clone(),
            without: without(self.steps.steps.iter().map(|step| step.kernel), kernel),
            block: step.block,
            done: all - self.steps.open().count(),
            all,
        })
    }

    /// The measurements whose kernel was booted in vain.
    pub(super) fn given_up(&self) -> Vec<Failed> {
        let steps = self.steps.steps.iter().zip(&self.missing);
        let given_up = steps.filter_map(|(step, missing)| Some((step, missing, self.steps.why_given_up(step)?)));
        let failed = given_up.flat_map(|(step, missing, reason)| {
            let reason = format!("{}: {reason}", step.kernel);
            missing.iter().map(move |planned| Failed { planned: *planned, reason: reason.clone() })
        });
        failed.collect()
    }

    /// The line that the log gets when `step` begins.
    pub(super) fn began(&self, step: &BootStep<'_>) -> BootLine {
        self.steps.line(BootEvent::Began, step)
    }
}

/// Whether the running kernel is this one: the release, its arguments, and none that only others of the run have.
fn is_running(header: &Header, kernel: &Kernel, running: &RunningKernel) -> bool {
    let Some(asked) = kernel.installed() else { return false };
    let is_given = |word: &str| running.command_line.split_whitespace().any(|given| given == word);
    let without = without(header.cells.iter().map(|cell| &cell.kernel), asked);
    asked.release == running.release
        && asked.arguments.split_whitespace().all(is_given)
        && !without.iter().any(|word| is_given(word))
}

/// Words that other kernels of the run have, and this one has not.
fn without<'a>(all: impl Iterator<Item = &'a Kernel>, kernel: &InstalledKernel) -> Vec<String> {
    let all = all.filter_map(Kernel::installed);
    let words: BTreeSet<&str> = all.flat_map(|other| other.arguments.split_whitespace()).collect();
    let is_own = |word: &&str| kernel.arguments.split_whitespace().any(|own| own == *word);
    words.into_iter().filter(|word| !is_own(word)).map(str::to_owned).collect()
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
pub(super) fn is_possible(header: &Header, now: Option<&BootStep<'_>>, planned: &Planned) -> bool {
    header.cells.get(planned.cell_index).is_none_or(|cell| match cell.kernel {
        Kernel::Installed(_) => now.is_some_and(|step| step.block == planned.block && *step.kernel == cell.kernel),
        Kernel::Running | Kernel::Lab(_) => true,
    })
}

#[cfg(test)]
mod tests;
