//! Findings about cells that an outside program measured.

use super::{Finding, when};
use crate::summary::cell::CellSummary;
use crate::summary::pool::Pool;
use crate::wording::{count, duration};
use punctual_model::{CobaltContext, Period};

finding!(
    /// The program reports less than a cell of this program has.
    pub struct ProgramTellsLess {
        /// The program.
        pub program: String,
        /// Resolution of its values, ns.
        pub resolution_ns: u64,
        /// What its results leave out.
        pub absent: Vec<&'static str>,
    },
    importance = 6,
    format_args!(
        "measured by {program} (steps of {}); it does not report {}",
        duration(*resolution_ns as f64),
        absent.join(", ")
    ),
    [ProgramTellsLess {
        program: "cyclictest".to_owned(),
        resolution_ns: 1_000,
        absent: vec!["missed due times", "its course of time"],
    }]
);

finding!(
    /// The program measured with another period than the cell names.
    pub struct ProgramDiffers {
        /// The program.
        pub program: String,
        /// Period of the cell, ns.
        pub period_ns: u64,
        /// Period that the program reports, ns.
        pub reported_ns: u64,
    },
    importance = 2,
    format_args!(
        "{program} measured with a period of {}, not {}; give it the period, like -i {{period_us}}",
        duration(*reported_ns as f64),
        duration(*period_ns as f64)
    ),
    [ProgramDiffers { program: "cyclictest".to_owned(), period_ns: 500_000, reported_ns: 1_000_000 }]
);

finding!(
    /// Samples were beyond the program's histogram.
    pub struct BeyondHistogram {
        /// The program.
        pub program: String,
        /// Number of them; `None` if unknown.
        pub samples: Option<u64>,
    },
    importance = 4,
    match (samples, if program == CobaltContext::DRIVER { "" } else { "; make it larger" }) {
        (Some(samples), advice) => {
            format!(
                "{} samples are beyond the histogram of {program} and count as its maximum{advice}",
                count(*samples)
            )
        }
        (None, advice) => format!("samples beyond the histogram of {program} are missing{advice}"),
    },
    [BeyondHistogram { program: "cyclictest".to_owned(), samples: Some(14) }]
);

finding!(
    /// Latencies below 0, which a histogram of magnitudes counts as if they were above.
    pub struct FoldedHistogram {
        /// The driver.
        pub program: String,
        /// The smallest latency, ns.
        pub min_ns: i64,
    },
    importance = 4,
    format_args!(
        "latencies down to {}, below 0 by gravity: {program} counts them as positive ones, so its distribution is left \
         out; set it with --prepare cobalt_gravity=0us",
        duration(*min_ns as f64)
    ),
    [FoldedHistogram { program: "timerbench".to_owned(), min_ns: -1_500 }]
);

/// Findings about the program of a cell, if it has one.
pub(super) fn findings(pool: &Pool<'_>, summary: &CellSummary) -> Vec<Finding> {
    let Some(instrument) = &summary.instrument else { return Vec::new() };
    let program = || instrument.program.clone();
    let has_course = pool.threads().all(|(_, thread)| thread.slices.len() > 1) && instrument.has_distribution;
    let absent = [
        (!instrument.has_distribution).then_some("a distribution"),
        summary.missed.is_none().then_some("missed due times"),
        (!has_course).then_some("its course of time"),
        instrument.period.is_none().then_some("its period"),
    ];
    let absent: Vec<_> = absent.into_iter().flatten().collect();
    let reported = instrument.period.filter(|period| *period != pool.cell.period).map(Period::ns);
    let differs =
        |reported| ProgramDiffers { program: program(), period_ns: pool.cell.period.ns(), reported_ns: reported };
    let beyond = instrument.beyond;
    let below_0 = instrument.extremes.min_ns.filter(|min_ns| *min_ns < 0 && !instrument.has_distribution);
    let below_0 = below_0.filter(|_| pool.cell.task.cobalt_context().is_some());
    let found = [
        reported.map(|reported| differs(reported).into()),
        below_0.map(|min_ns| FoldedHistogram { program: program(), min_ns }.into()),
        when(beyond != Some(0), BeyondHistogram { program: program(), samples: beyond }),
        when(
            !absent.is_empty(),
            ProgramTellsLess { program: program(), resolution_ns: instrument.resolution_ns, absent },
        ),
    ];
    found.into_iter().flatten().collect()
}
