//! Forecast of a run before it begins: its cells, their order, its time and disk space. Measures and changes nothing.

use super::estimate::{disk_bytes, expected, expected_of};
use super::expand::{Machine, expand};
use super::header::planned;
use super::remote::Board;
use super::session::may_be_elsewhere;
use super::shard::{seeded, sharded};
use super::stopping::bounded;
use punctual_model::{Header, Plan, Planned, Shard, Site, Span};
use std::error::Error;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// A run of a plan as it would be made here.
#[derive(Debug)]
pub struct Forecast {
    /// Plan, cells, and the combinations that this machine or user cannot measure; without the snapshot of the host.
    pub header: Header,
    /// Measurements in order; `None` if the seed is drawn when the run starts.
    pub order: Option<Vec<Planned>>,
    /// Expected duration of all measurements.
    pub time: Duration,
    /// Expected size of the run directory, bytes.
    pub disk_bytes: u64,
}

/// Forecasts a run of `plan`, or a `shard` of it, on the machine `on`, or on this one; `at_most` is the time limit of a
/// run that ends by a stopping rule. `note` receives messages. Errors: if the plan is impossible there, or that machine
/// cannot be reached.
pub fn forecast(
    plan: Plan,
    on: Option<&Site>,
    samples: bool,
    at_most: Option<Span>,
    shard: Option<Shard>,
    note: &dyn Fn(&str),
) -> Result<Forecast, Box<dyn Error>> {
    let plan = seeded(plan, shard)?;
    let seed = plan.seed;
    let header = match on.filter(|site| **site != Site::Here) {
        None => planned(plan, samples)?,
        Some(site) => {
            may_be_elsewhere(&plan, samples)?;
            Board::connect(site, &AtomicBool::new(false), note)?.planned(&plan, samples, note)?
        }
    };
    let header = match at_most {
        Some(at_most) => bounded(header, at_most)?,
        None => header,
    };
    let header = sharded(header, shard)?;
    Ok(Forecast {
        order: seed.map(|_| header.measurements()),
        time: expected(&header, header.n_measurements()),
        disk_bytes: disk_bytes(&header),
        header,
    })
}

/// Size of a plan where nothing is missing, whatever this machine and user lack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extent {
    /// Cells of a block.
    pub cells: usize,
    /// Cells of all blocks.
    pub measurements: usize,
    /// Expected duration of all measurements.
    pub time: Duration,
}

/// The extent of `plan` on a machine with the CPUs of this one, for a user with every privilege. Errors: if this
/// process cannot ask for its CPUs, or the plan is impossible on any machine.
pub fn extent(plan: &Plan) -> Result<Extent, Box<dyn Error>> {
    let machine = Machine {
        // The CPUs that the plan names are those of the machine that it is for.
        cpus: punctual_sys::sched::affinity(0)?.iter().chain(plan.cpus.iter().flat_map(|cpus| cpus.iter())).collect(),
        lock_memory: true,
        dma_latency: true,
        may_have: &|_| true,
        why_not: &|_| None,
        why_no_load: &|_| None,
    };
    let (cells, _) = expand(plan, &machine)?;
    let measurements = cells.len().saturating_mul(usize::try_from(plan.repetitions).unwrap_or(usize::MAX));
    Ok(Extent { cells: cells.len(), measurements, time: expected_of(&cells, measurements) })
}

#[cfg(test)]
mod tests {
    use super::super::estimate::SAMPLE_BYTES;
    use super::*;

    #[test]
    fn an_extent_is_that_of_a_user_with_every_privilege() {
        let of = |text: &str| extent(&Plan::parse(text).unwrap()).unwrap();
        let default = of("");
        // 2.2 s a cell and 0.6 s around it.
        assert_eq!(default, Extent { cells: 4, measurements: 24, time: Duration::new(2, 800_000_000) * 24 });
        // A guest takes 2 s besides; its phases are the blocks.
        let guest = of("duration = \"1s\"\nwarm_up = \"0s\"\n[axes]\nkernel = [\"debian:6.1\"]\nload = [\"none\"]");
        assert_eq!(guest, Extent { cells: 2, measurements: 16, time: Duration::new(3, 0) * 16 });
        assert_eq!(of("cpus = \"900\"").cells, 4, "of another machine");
    }

    fn here(plan: &str, samples: bool) -> Result<Forecast, Box<dyn Error>> {
        forecast(Plan::parse(plan).unwrap(), None, samples, None, None, &|_| {})
    }

    #[test]
    fn a_forecast_needs_no_privilege_and_has_an_order_where_the_seed_is_fixed() {
        let of = |text: &str| here(text, false).unwrap();
        let plan = "repetitions = 3\nexplain = true\n[axes]\npolicy = [\"other\"]\n";
        assert!(of(plan).order.is_none());
        let forecast = of(&format!("seed = 7\n{plan}"));
        let order = forecast.order.unwrap();
        assert_eq!((order.len(), forecast.header.n_measurements()), (6, 6));
        assert_eq!(order, punctual_model::planned_order(2, 3, 7));
        let most = "explain = true\nrepetitions = 10000\nduration = \"1h\"\n";
        assert!(here(most, false).is_err(), "longer than a year");
    }

    #[test]
    fn the_machine_that_is_named_makes_the_forecast() {
        let on = |site: &str| {
            let plan = Plan::parse("cpus = \"0\"\n[axes]\npolicy = [\"other\"]\nload = [\"none\"]").unwrap();
            forecast(plan, Some(&site.parse().unwrap()), false, None, None, &|_| {})
        };
        assert!(on("here").is_ok());
        let reason = on("exec:false").unwrap_err().to_string();
        assert!(reason.starts_with("board exec:false: "), "{reason}");
    }

    #[test]
    fn disk_space_grows_with_blocks_and_samples_and_not_without_bounds() {
        let bytes = |text: &str, samples| here(text, samples).unwrap().disk_bytes;
        let plan = |blocks: u32, duration: &str| {
            format!(
                "cpus = \"0\"\nrepetitions = {blocks}\nduration = \"{duration}\"\n[axes]\npolicy = [\"other\"]\nload = [\"none\"]"
            )
        };
        let one = bytes(&plan(1, "1s"), false);
        assert_eq!(bytes(&plan(5, "1s"), false), 5 * one);
        assert_eq!(bytes(&plan(1, "1h"), false), bytes(&plan(1, "2h"), false));
        assert_eq!(bytes(&plan(1, "1s"), true), one + 1000 * SAMPLE_BYTES);
    }
}
