//! False alarms of the conclusions of published studies: one configuration under the names of several.
//!
//! A pseudo-experiment takes consecutive measurements of a recorded cell, gives them to the boots of the kernels of a
//! study in turn, and within each boot to the study's cells in random order. Kernels, loads and policies are names
//! only, so that a conclusion that is found again is a false alarm.

use super::noise::Noise;
use super::{Expected, ResultRow};
use punctual_analysis::study::{StudyVerdict, judgments, measurements};
use punctual_model::{Entry, Host, Kernel, Load, Policy, Preemption, Study, StudyConclusion, StudyDefinition};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Pseudo-experiments with each study.
const EXPERIMENTS: u32 = 2_000;

/// Boots of each kernel, and blocks of a boot.
const BOOTS: usize = 3;
const BLOCKS: usize = 2;

/// Level of a conclusion, and the limit of its false alarms.
const LEVEL: f64 = 0.05;

/// Counts on the measurements of a recorded cell, with each study of its method.
pub(super) fn of_recording(name: &str, entries: &[Entry]) -> Vec<ResultRow> {
    let has_method =
        |study: &Study| entries.first().is_some_and(|one| study.definition().method_of(&one.record.cell).is_some());
    Study::all().filter(has_method).flat_map(|study| rows(name, study, entries)).collect()
}

/// The cells of a study by their values on all axes.
struct Cells {
    kernels: Vec<Preemption>,
    loads_and_policies: Vec<(Load, Policy)>,
}

impl Cells {
    fn of(definition: &StudyDefinition) -> Cells {
        let named = || definition.conclusions.iter().flat_map(|one| one.falls.iter().chain([&one.only]));
        let loads: BTreeSet<&Load> = named().flat_map(|cells| &cells.load).collect();
        let policies: BTreeSet<Policy> = named().flat_map(|cells| cells.policy.iter().copied()).collect();
        let each = |load: &&Load| policies.iter().map(|policy| ((*load).clone(), *policy)).collect::<Vec<_>>();
        Cells {
            kernels: definition.kernels.iter().filter_map(|kernel| kernel.preemption.first().copied()).collect(),
            loads_and_policies: loads.iter().flat_map(each).collect(),
        }
    }

    fn n(&self) -> usize {
        self.kernels.len() * BOOTS * BLOCKS * self.loads_and_policies.len()
    }

    /// The measurements of a window under the names of these cells, a list for each boot.
    fn named(&self, window: &[Entry], noise: &mut Noise) -> Vec<Vec<Entry>> {
        let of_boot = BLOCKS * self.loads_and_policies.len();
        // Which kernel comes first is random, as which one is the better.
        let first = noise.below(self.kernels.len());
        let boot = |(n, some): (usize, &[Entry])| {
            let kernel = self.kernels[(first + n) % self.kernels.len()];
            let mut cells: Vec<_> = (0..BLOCKS).flat_map(|_| &self.loads_and_policies).collect();
            noise.shuffle(&mut cells);
            some.iter().zip(cells).map(|(entry, cell)| called(entry, kernel, n, cell)).collect()
        };
        window.chunks_exact(of_boot).enumerate().map(boot).collect()
    }
}

fn called(entry: &Entry, kernel: Preemption, boot: usize, (load, policy): &(Load, Policy)) -> Entry {
    let mut entry = entry.clone();
    let cell = &mut entry.record.cell;
    (cell.kernel, cell.load, cell.policy) = (Kernel::Running, load.clone(), *policy);
    let host: &mut Host = Arc::make_mut(&mut entry.record.host_before);
    (host.preemption, host.boot_id) = (Some(kernel), Some(format!("boot {boot}")));
    entry
}

fn rows(name: &str, study: Study, entries: &[Entry]) -> Vec<ResultRow> {
    let definition = study.definition();
    let cells = Cells::of(definition);
    let Some(last) = entries.len().checked_sub(cells.n()) else { return Vec::new() };
    let mut noise = Noise::new(3_309);
    let mut found = vec![0; definition.conclusions.len()];
    for _ in 0..EXPERIMENTS {
        let from = noise.below(last + 1);
        let boots = cells.named(&entries[from..from + cells.n()], &mut noise);
        let runs: Vec<&[Entry]> = boots.iter().map(Vec::as_slice).collect();
        for (count, judgment) in found.iter_mut().zip(judgments(definition, &measurements(definition, &runs))) {
            *count += u32::from(judgment.verdict == StudyVerdict::FoundAgain);
        }
    }
    let row = |(conclusion, count): (&StudyConclusion, u32)| {
        // Limits compare no groups.
        let is_order = conclusion.below.is_none();
        let says: String = conclusion.says.chars().take(60).collect();
        is_order.then(|| ResultRow::share(format!("{name}: {says}"), count, EXPERIMENTS, Expected::AtMost(LEVEL)))
    };
    definition.conclusions.iter().zip(found).filter_map(row).collect()
}
