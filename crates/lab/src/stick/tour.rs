//! All kernels of a stick in turn: which one is next, whatever happened to the last.
//!
//! GRUB boots a named kernel once and then the first one again, so that a kernel that panics or hangs is noticed by
//! another one.

use serde::{Deserialize, Serialize};

/// Attempts of a kernel: to boot, and to measure to the end.
const MAX_TRIES: u32 = 2;

/// State of a tour, kept on the stick.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Tour {
    /// Name of the plan.
    pub(super) plan: String,
    /// One for each kernel, in the order of the menu.
    pub(super) kernels: Vec<Turn>,
    /// The kernel that was named to GRUB, or measures.
    now: Option<usize>,
}

/// The turn of one kernel.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Turn {
    /// How often it was to boot.
    boots: u32,
    /// How often it has begun to measure.
    begun: u32,
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
    pub(super) fn new(plan: &str, kernels: usize) -> Tour {
        Tour { plan: plan.to_owned(), kernels: vec![Turn::default(); kernels], now: None }
    }

    /// The next step after kernel `running` has booted, or has measured. The new state has to be on disk before the
    /// step is taken.
    pub(super) fn next(&mut self, running: usize) -> Step {
        if let Some(turn) = self.now.take().and_then(|now| self.kernels.get_mut(now).filter(|_| now != running)) {
            turn.give_up_booting();
            turn.give_up_measuring();
        }
        if let Some(turn) = self.kernels.get_mut(running) {
            turn.give_up_measuring();
            if turn.outcome.is_none() {
                turn.begun += 1;
                self.now = Some(running);
                return Step::Measure(running);
            }
        }
        let Some(next) = self.kernels.iter().position(|turn| turn.outcome.is_none()) else { return Step::Finished };
        self.kernels[next].boots += 1;
        self.now = Some(next);
        Step::Boot(next)
    }

    /// Ends the turn of a kernel.
    pub(super) fn end(&mut self, kernel: usize, outcome: String) {
        if let Some(turn) = self.kernels.get_mut(kernel) {
            turn.outcome = Some(outcome);
        }
    }
}

impl Turn {
    fn give_up_booting(&mut self) {
        if self.outcome.is_none() && self.boots >= MAX_TRIES && self.begun == 0 {
            let reason = "did not boot: it panicked, hung, or another one was chosen";
            self.outcome = Some(format!("{reason}, {} times", self.boots));
        }
    }

    fn give_up_measuring(&mut self) {
        if self.outcome.is_none() && self.begun >= MAX_TRIES {
            let reason = "did not finish: the machine stopped or restarted while it measured";
            self.outcome = Some(format!("{reason}, {} times", self.begun));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Plays a tour of `kernels` kernels; `of` says what becomes of a kernel that is to boot or measures. Returns the
    /// steps and the outcomes.
    fn play(kernels: usize, mut of: impl FnMut(Step) -> Fate) -> (Vec<Step>, Vec<String>) {
        let (mut tour, mut running, mut steps) = (Tour::new("minute", kernels), 0, Vec::new());
        loop {
            let step = tour.next(running);
            steps.push(step);
            assert!(steps.len() < 50, "an endless tour: {steps:?}");
            match (step, of(step)) {
                (Step::Finished, _) => {
                    let outcomes = tour.kernels.into_iter().map(|turn| turn.outcome.unwrap());
                    return (steps, outcomes.collect());
                }
                (Step::Measure(kernel), Fate::Works) => tour.end(kernel, "measured".to_owned()),
                (Step::Boot(kernel), Fate::Works) => running = kernel,
                (_, Fate::Stops) => running = 0,
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
        assert!(outcomes[1].starts_with("did not boot: ") && outcomes[1].ends_with(", 2 times"), "{outcomes:?}");
        assert_eq!((&*outcomes[0], &*outcomes[2]), ("measured", "measured"));
        let (steps, outcomes) = play(2, |step| if step == Step::Measure(1) { Fate::Stops } else { Fate::Works });
        assert_eq!(steps.iter().filter(|step| **step == Step::Measure(1)).count(), 2);
        assert!(outcomes[1].starts_with("did not finish: "), "{outcomes:?}");
        let (_, outcomes) = play(2, |step| if step == Step::Measure(0) { Fate::Stops } else { Fate::Works });
        assert!(outcomes[0].starts_with("did not finish: ") && outcomes[1] == "measured", "{outcomes:?}");
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
