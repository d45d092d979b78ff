//! The floor of the machine beside latencies: what the firmware or the host takes, however the machine is set up.

use super::Finding;
use crate::stats::rate::poisson_interval;
use crate::summary::pool::Pool;
use crate::wording::{duration, number};
use punctual_model::{Header, Kernel, LayerTotal, Span};

finding!(
    /// Latencies up to a length can be those of the firmware or the host, by `punctual floor` since the boot.
    pub struct BelowFloor {
        /// The length, ns: the largest above which one was to be expected in this cell.
        pub level_ns: u64,
        /// The layer: `firmware`, or in a virtual machine `host`.
        pub layer: &'static str,
        /// How often an hour it takes a CPU for longer.
        pub per_hour: f64,
        /// Lower limit, 95 %.
        pub lower_per_hour: f64,
        /// Upper limit, 95 %.
        pub upper_per_hour: f64,
        /// The limit of the plan below that length, ns; `null` without one.
        pub limit_ns: Option<u64>,
    },
    importance = 4,
    {
        let level = duration(*level_ns as f64);
        let limit = limit_ns.map(|ns| format!("; the limit {} is below it", duration(ns as f64)));
        format!(
            "floor {level}: the {layer} takes this machine for longer {} times an hour [{}-{}], and no setting lowers it; \
             do not quote maxima below{}",
            number(*per_hour),
            number(*lower_per_hour),
            number(*upper_per_hour),
            limit.unwrap_or_default()
        )
    },
    [BelowFloor {
        level_ns: 100_000,
        layer: "host",
        per_hour: 412.0,
        lower_per_hour: 355.0,
        upper_per_hour: 476.0,
        limit_ns: Some(80_000),
    }]
);

/// The finding about a cell on the running kernel, where the floor reaches latencies that it has or is judged by.
pub(super) fn finding(header: &Header, pool: &Pool<'_>) -> Option<Finding> {
    let floor = header.host.floor.as_ref()?;
    let is_meant = pool.cell.kernel == Kernel::Running && pool.cell.task.has_latencies() && !pool.cell.task.is_noise();
    let hours = |span: Span| span.as_secs_f64() / 3600.0;
    let (observed, measured) = (hours(floor.observed), hours(pool.measured()) * pool.cell.cpus.len() as f64);
    if !is_meant || observed <= 0.0 {
        return None;
    }
    let lengths = LayerTotal::LENGTHS.into_iter().zip(floor.below.longer).rev();
    let mut limits = lengths.map(|(length, n)| (length, n, poisson_interval(n as f64, observed)));
    let (length, n, (lower_per_hour, upper_per_hour)) = limits.find(|(_, _, (lower, _))| lower * measured >= 1.0)?;
    let limit_ns = header.plan.require.max.map(Span::ns).filter(|ns| *ns < length.ns());
    let layer = if header.host.hypervisor.is_some() { "host" } else { "firmware" };
    let per_hour = n as f64 / observed;
    Some(BelowFloor { level_ns: length.ns(), layer, per_hour, lower_per_hour, upper_per_hour, limit_ns }.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::summarise;
    use crate::testing::RunBuilder;
    use punctual_model::{Floor, Layer};

    /// The findings of a cell of 4 s on two CPUs, where a floor of an hour has so many gaps.
    fn found(longer: [u64; 4], limit: Option<u64>) -> Vec<BelowFloor> {
        let mut run = RunBuilder::new();
        run.cell("none", "fifo:80").measure(0, 0, |_, _| 5_000);
        run.entries[0].record.measured = Span(4_000_000_000);
        run.header.plan.require.max = limit.map(Span);
        let below = LayerTotal { longer, ..LayerTotal::none(Layer::FirmwareOrHost) };
        let observed = Span(3_600_000_000_000);
        let cpus = "1".parse().unwrap();
        run.header.host.floor = Some(Floor { boot_id: None, started_unix_ms: 0, cpus, observed, below });
        let findings = summarise(&run.header, &run.entries).cell_findings.remove(0);
        let is_it = |finding| if let Finding::BelowFloor(floor) = finding { Some(floor) } else { None };
        findings.into_iter().filter_map(is_it).collect()
    }

    #[test]
    fn the_floor_is_the_longest_to_be_expected_in_the_measured_time() {
        assert_eq!(found([0; 4], None), []);
        // In 8 s of an hour, 450 an hour are one.
        assert_eq!(found([400, 10, 0, 0], None), []);
        let one = &found([9_000, 700, 20, 0], Some(80_000))[0];
        assert_eq!((one.level_ns, one.layer, one.per_hour, one.limit_ns), (100_000, "firmware", 700.0, Some(80_000)));
        assert!(one.lower_per_hour < 700.0 && one.upper_per_hour > 700.0);
        assert_eq!(found([9_000, 700, 20, 0], Some(100_000))[0].limit_ns, None);
        assert_eq!(found([9_000, 100, 0, 0], None)[0].level_ns, 10_000);
    }
}
