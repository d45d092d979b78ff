//! Ready plans, and a run before it begins, as JSON: `punctual plan list` and `punctual run --dry-run`.

use punctual_analysis::CannotPass;
use punctual_analysis::findings::Skipped;
use punctual_model::{Cell, Requirement};
use serde::Serialize;

/// A plan of the binary.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct ReadyPlan {
    /// Its name for `punctual run`.
    pub name: &'static str,
    /// Its title.
    pub title: String,
    /// Cells of a block, where nothing is missing.
    pub cells: usize,
    /// Blocks: passes over all cells.
    pub blocks: u32,
    /// Cells of all blocks.
    pub measurements: usize,
    /// Expected duration of all measurements.
    pub expected_ns: u64,
    /// Privileges, programs and machines that it needs to measure all of its cells; empty if none.
    pub needs: Vec<String>,
}

/// All plans of the binary.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct ReadyPlans {
    /// In the order of their names.
    pub plans: Vec<ReadyPlan>,
}

/// A cell of a run that has not begun.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct PlannedCell<'a> {
    /// Its name, as in the results of the run.
    pub name: String,
    /// The cell.
    pub cell: &'a Cell,
}

/// A run before it begins: what `punctual run --dry-run` prints.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct DryRun<'a> {
    /// Title of the plan.
    pub title: &'a str,
    /// Cells in the order of the plan.
    pub cells: Vec<PlannedCell<'a>>,
    /// Combinations that cannot be measured here.
    pub skipped: Vec<Skipped>,
    /// Blocks: passes over all cells; the maximum if a stopping rule ends the run.
    pub blocks: u32,
    /// Cells of all blocks.
    pub measurements: usize,
    /// Whether a stopping rule can end the run before.
    pub can_end_early: bool,
    /// Seed of the order; `null` if it is drawn when the run starts.
    pub seed: Option<u64>,
    /// Order of each block as indices into `cells`; `null` without a seed.
    pub order: Option<Vec<Vec<usize>>>,
    /// Expected duration of all measurements.
    pub expected_ns: u64,
    /// Expected size of the run directory, bytes.
    pub disk_bytes: u64,
    /// Limits of latencies.
    pub require: &'a Requirement,
    /// Those that so many measurements cannot show to be kept.
    pub cannot_pass: Vec<CannotPass>,
    /// System settings and devices that the cells change or hold, each restored after its cell.
    pub settings: Vec<String>,
    /// Programs that it runs, and other effects outside its own files.
    pub programs: Vec<String>,
}
