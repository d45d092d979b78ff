//! All kernels of a stick in turn: which one is next, whatever happened to the last.
//!
//! GRUB boots a named kernel once and then the first one again, so that a kernel that panics or hangs is noticed by
//! another one.

use punctual_model::{BootEvent, BootLine, BootStep, BootSteps, RunningKernel};
use serde::{Deserialize, Serialize};

/// State of a tour, kept on the stick.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Tour {
    /// Name of the plan.
    pub(super) plan: String,
    /// One for each kernel, in the order of the menu.
    pub(super) kernels: Vec<Turn>,
    /// What was done; the block of a kernel is its place in the menu.
    log: Vec<BootLine<String>>,
}

/// The turn of one kernel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Turn {
    /// Name of the kernel.
    pub(super) kernel: String,
    /// Directory of its run, from its first beginning on.
    pub(super) run: Option<String>,
    /// Its result, or why there is none; `None` until its turn is over.
    pub(super) outcome: Option<String>,
}

/// The next step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// The running kernel, the one at this place, measures.
    Measure(usize),
    /// The kernel at this place is to be booted.
    Boot(usize),
    /// All turns are over.
    Finished,
}

impl Tour {
    pub(super) fn new(plan: &str, kernels: &[String]) -> Tour {
        let turn = |kernel: &String| Turn { kernel: kernel.clone(), run: None, outcome: None };
        Tour { plan: plan.to_owned(), kernels: kernels.iter().map(turn).collect(), log: Vec::new() }
    }

    /// The next step after the kernel at the place `now` has booted, as `running`, or has measured. The new state has
    /// to be on disk before the step is taken.
    pub(super) fn next(&mut self, now: usize, running: &RunningKernel) -> Step {
        let steps = (0..).zip(&self.kernels).map(|(block, Turn { kernel, outcome, .. })| BootStep {
            block,
            kernel,
            is_running: usize::try_from(block) == Ok(now),
            is_open: outcome.is_none(),
        });
        let boots = BootSteps { steps: steps.collect(), log: &self.log, running };
        let reasons: Vec<_> = boots.steps.iter().map(|step| boots.why_given_up(step)).collect();
        let place = |step: &BootStep<'_, String>| usize::try_from(step.block).unwrap_or(usize::MAX);
        let (line, step) = match (boots.now(), boots.next()) {
            (Some(step), _) => (Some(boots.line(BootEvent::Began, step)), Step::Measure(place(step))),
            (None, Some(step)) => (Some(boots.line(BootEvent::Asked, step)), Step::Boot(place(step))),
            (None, None) => (None, Step::Finished),
        };
        self.log.extend(line);
        for (turn, reason) in self.kernels.iter_mut().zip(reasons) {
            turn.outcome = turn.outcome.take().or(reason);
        }
        step
    }

    /// Ends the turn of a kernel.
    pub(super) fn end(&mut self, kernel: usize, outcome: String) {
        if let Some(turn) = self.kernels.get_mut(kernel) {
            turn.outcome = Some(outcome);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Plays a tour of `kernels` kernels; `of` says what becomes of a kernel that is to boot or measures. Returns the
    /// steps and the outcomes.
    fn play(kernels: usize, mut of: impl FnMut(Step) -> Fate) -> (Vec<Step>, Vec<String>) {
        let names: Vec<String> = (0..kernels).map(|n| format!("6.{n}")).collect();
        let (mut tour, mut place, mut steps) = (Tour::new("minute", &names), 0, Vec::new());
        let mut running = RunningKernel { boot_id: String::new(), release: "6".into(), command_line: String::new() };
        loop {
            let step = tour.next(place, &running);
            steps.push(step);
            assert!(steps.len() < 50, "an endless tour: {steps:?}");
            match (step, of(step)) {
                (Step::Finished, _) => {
                    let outcomes = tour.kernels.into_iter().map(|turn| turn.outcome.unwrap());
                    return (steps, outcomes.collect());
                }
                (Step::Measure(kernel), Fate::Works) => tour.end(kernel, "measured".to_owned()),
                (Step::Boot(kernel), Fate::Works) => place = kernel,
                (_, Fate::Stops) => place = 0,
            }
            // A measurement that ends needs no boot.
            if !matches!(step, Step::Measure(kernel) if tour.kernels[kernel].outcome.is_some()) {
                running.boot_id += "x";
            }
            // As from the file.
            tour = serde_json::from_slice(&serde_json::to_vec(&tour).unwrap()).unwrap();
        }
    }

    #[derive(Clone, Copy, PartialEq)]
    enum Fate {
        Works,
        Stops,
    }

    #[test]
    fn each_kernel_has_its_turn_once() {
        let (steps, outcomes) = play(3, |_| Fate::Works);
        use Step::{Boot, Finished, Measure};
        assert_eq!(steps, [Measure(0), Boot(1), Measure(1), Boot(2), Measure(2), Finished]);
        assert_eq!(outcomes, ["measured"; 3]);
    }

    #[test]
    fn a_kernel_that_does_not_boot_or_finish_is_named_and_not_tried_for_ever() {
        let (steps, outcomes) = play(3, |step| if step == Step::Boot(1) { Fate::Stops } else { Fate::Works });
        assert_eq!(steps.iter().filter(|step| **step == Step::Boot(1)).count(), 2);
        assert!(outcomes[1] == "booted 2 times, and another kernel ran afterwards, at last 6", "{outcomes:?}");
        assert_eq!((&*outcomes[0], &*outcomes[2]), ("measured", "measured"));
        let (steps, outcomes) = play(2, |step| if step == Step::Measure(1) { Fate::Stops } else { Fate::Works });
        assert_eq!(steps.iter().filter(|step| **step == Step::Measure(1)).count(), 2);
        assert!(outcomes[1].contains("went down 2 times while it was measured"), "{outcomes:?}");
        let (_, outcomes) = play(2, |step| if step == Step::Measure(0) { Fate::Stops } else { Fate::Works });
        assert!(outcomes[0].contains("went down 2 times") && outcomes[1] == "measured", "{outcomes:?}");
    }

    #[test]
    fn power_that_fails_once_at_any_step_costs_no_turn() {
        let (steps, _) = play(3, |_| Fate::Works);
        for at in 0..steps.len() - 1 {
            let mut n = 0;
            let (_, outcomes) = play(3, |_| {
                n += 1;
                if n == at + 1 { Fate::Stops } else { Fate::Works }
            });
            assert_eq!(outcomes, ["measured"; 3], "stopped at step {at}");
        }
    }
}
