//! Limits of the CPU time of real-time threads, and maxima that are such a limit and not a latency.

use super::{Finding, when};
use crate::summary::cell::CellSummary;
use crate::wording::duration;
use punctual_model::{Header, Host};
use serde::Serialize;

finding!(
    /// The largest latency equals the time for which real-time threads are throttled, or normal ones wait.
    pub struct MaxIsThrottleQuantum {
        /// The largest latency, ns.
        pub max_ns: i64,
        /// The throttled time, us.
        pub quantum_us: u64,
        /// The limiter.
        pub limiter: Limiter,
        /// Whether a real-time thread is throttled.
        pub stops_realtime: bool,
    },
    importance = 3,
    {
        let limiter = match limiter {
            Limiter::Throttling => "real-time throttling",
            Limiter::FairServer => "fair server",
        };
        let what = if *stops_realtime {
            "for which it stops real-time threads: probably they kept the CPU busy"
        } else {
            "after which it lets normal threads run: probably a real-time thread kept the CPU busy"
        };
        format!("{limiter}: max {} is within 1 % of the {} {what}", duration(*max_ns as f64), us(*quantum_us))
    },
    [
        MaxIsThrottleQuantum {
            max_ns: 949_000_000,
            quantum_us: 950_000,
            limiter: Limiter::Throttling,
            stops_realtime: false
        },
        MaxIsThrottleQuantum {
            max_ns: 50_100_000,
            quantum_us: 50_000,
            limiter: Limiter::FairServer,
            stops_realtime: true
        }
    ]
);

finding!(
    /// Real-time threads that use up their share are throttled by the kernel.
    pub struct RtThrottling {
        /// Real-time budget of each period, us.
        pub runtime_us: u64,
        /// The period, us.
        pub period_us: u64,
    },
    importance = 7,
    {
        let (runtime, period, rest) = (us(*runtime_us), us(*period_us), us(*period_us - runtime_us));
        format!(
            "real-time throttling: threads that use {runtime} of a {period} period are stopped for {rest}; see: punctual \
             doctor rt-throttling"
        )
    },
    [RtThrottling { runtime_us: 950_000, period_us: 1_000_000 }]
);

finding!(
    /// Normal threads have a share of each CPU that real-time threads cannot take. The numbers are the kernel's
    /// defaults, which cannot be read back without debugfs.
    pub struct FairServer {
        /// Budget of normal threads in each period, us.
        pub runtime_us: u64,
        /// The period, us.
        pub period_us: u64,
    },
    importance = 7,
    {
        let runtime = us(*runtime_us);
        let period = if *period_us == 1_000_000 { "second".to_owned() } else { us(*period_us) };
        format!(
            "fair server (default of Linux since 6.12; its setting is unreadable here): normal threads get up to {runtime} of each {period} \
             from busy real-time threads"
        )
    },
    [FairServer { runtime_us: 50_000, period_us: 1_000_000 }]
);

fn us(us: u64) -> String {
    duration(us as f64 * 1e3)
}

/// Mechanisms that limit the CPU time of real-time threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Limiter {
    /// Real-time throttling (`sched_rt_runtime_us`), before Linux 6.12.
    Throttling,
    /// The deadline server of normal threads, since Linux 6.12.
    FairServer,
}

/// Largest difference between a maximum and a limiter's time that is reported, percent.
const NEAR: u64 = 1;

/// Share of a CPU that real-time threads may use while normal ones want it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Share {
    /// Real-time budget of each period, us; less than the period.
    runtime_us: u64,
    /// The period, us.
    period_us: u64,
    /// The mechanism.
    limiter: Limiter,
}

/// The default of Linux 6.12: 50 ms of each second are for normal threads, whatever the value of `sched_rt_runtime_us`
/// (kernel/sched/deadline.c, `fair_server_init`). It can be changed, and read back only through debugfs.
const WITH_FAIR_SERVER: Share = Share { runtime_us: 950_000, period_us: 1_000_000, limiter: Limiter::FairServer };

/// The share that real-time threads are limited to; `None` without a limit, or if it is unknown.
fn realtime_share(host: &Host) -> Option<Share> {
    if host.has_fair_server() == Some(true) {
        return Some(WITH_FAIR_SERVER);
    }
    let runtime_us = u64::try_from(host.rt_runtime_us?).ok()?;
    let period_us = host.rt_period_us?;
    (runtime_us < period_us).then_some(Share { runtime_us, period_us, limiter: Limiter::Throttling })
}

/// Finding about the real-time share of a CPU of `host`.
pub(super) fn of_host(host: &Host) -> Option<Finding> {
    let Share { runtime_us, period_us, limiter } = realtime_share(host)?;
    Some(match limiter {
        Limiter::Throttling => RtThrottling { runtime_us, period_us }.into(),
        Limiter::FairServer => FairServer { runtime_us: period_us - runtime_us, period_us }.into(),
    })
}

/// Finding about a maximum that is a throttled time and not a latency.
pub(super) fn of_cell(header: &Header, summary: &CellSummary) -> Option<Finding> {
    // The delay of an answer has causes on the target and on the way to it.
    if summary.response.is_some() {
        return None;
    }
    let Share { runtime_us, period_us, limiter } = realtime_share(&header.host)?;
    let max_ns = summary.max?.latency_ns;
    // A real-time thread waits until the period ends, a normal one until real-time threads have used their share.
    let stops_realtime = summary.cell.policy.is_realtime();
    let quantum_us = if stops_realtime { period_us - runtime_us } else { runtime_us };
    let quantum_ns = quantum_us.saturating_mul(1_000);
    let distance = u64::try_from(max_ns).unwrap_or(0).abs_diff(quantum_ns);
    let is_near = distance.saturating_mul(100) <= quantum_ns.saturating_mul(NEAR) && quantum_ns > 0;
    when(is_near, MaxIsThrottleQuantum { max_ns, quantum_us, limiter, stops_realtime })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::cell::tests::findings_of;
    use crate::testing::RunBuilder;

    #[test]
    fn a_maximum_of_the_throttle_is_no_latency() {
        let (old, new) = ("6.11.0", "6.12.0");
        for (policy, release, runtime_us, max_us, found) in [
            ("fifo:80", old, 950_000, 50_000, Some((50_000, Limiter::Throttling))),
            ("fifo:80", old, 950_000, 50_500, Some((50_000, Limiter::Throttling))),
            ("fifo:80", old, 950_000, 50_501, None),
            ("fifo:80", old, 950_000, 49_500, Some((50_000, Limiter::Throttling))),
            ("fifo:80", old, 950_000, 49_499, None),
            ("fifo:80", old, 950_000, 950_000, None),
            ("fifo:80", old, -1, 50_000, None),
            ("other", old, 950_000, 949_965, Some((950_000, Limiter::Throttling))),
            ("other", old, 950_000, 50_000, None),
            ("fifo:80", new, -1, 50_000, Some((50_000, Limiter::FairServer))),
            ("fifo:80", new, 900_000, 100_000, None),
            ("other", new, -1, 950_000, Some((950_000, Limiter::FairServer))),
        ] {
            let mut run = RunBuilder::new();
            run.header.host.rt_runtime_us = Some(runtime_us);
            run.header.host.kernel_release = Some(release.to_owned());
            let max_ns = max_us * 1_000;
            run.cell("none", policy).measure(0, 0, |_, cycle| if cycle == 9 { max_ns } else { 5_000 });
            let stops_realtime = policy != "other";
            let expected = found.map(|(quantum_us, limiter)| {
                MaxIsThrottleQuantum { max_ns, quantum_us, limiter, stops_realtime }.into()
            });
            let is_throttle = |finding: &Finding| matches!(finding, Finding::MaxIsThrottleQuantum(_));
            assert_eq!(findings_of(&run).into_iter().find(is_throttle), expected, "{policy} {release} {max_us} us");
        }
    }
}
