//! `punctual verify`: whether the kernel keeps what man pages and kernel documents promise about scheduling.

use crate::cli::arguments::{VerifyArguments, VerifyFormat};
use crate::cli::terminal::{Outcome, note, output};
use punctual_analysis::promises::{JudgedPromise, exit_status};
use punctual_campaign::take_lock;
use punctual_host::{HostFs, Subject};
use punctual_model::{ClockId, CpuSet, Host, Promise};
use punctual_report::Verification;
use punctual_sys::{clock, sched};
use punctual_workload::promises::{self, Grounds};
use std::time::Instant;

pub(super) fn verify(arguments: &VerifyArguments) -> Outcome {
    let host = punctual_host::snapshot(&HostFs::here());
    let grounds = grounds(&host, arguments.cpus.as_ref())?;
    let _lock = take_lock(Subject::Machine, arguments.wait, &|line| note(line))?;
    let is_asked = |promise: &Promise| arguments.promises.is_empty() || arguments.promises.contains(promise);
    let started_unix_ms = clock::now(ClockId::Realtime).0 / 1_000_000;
    let begun = Instant::now();
    let judge = |promise| {
        let begun = Instant::now();
        let cases = promises::observe(promise, &grounds);
        JudgedPromise::new(promise, cases, begun.elapsed().as_secs_f64())
    };
    let verification = Verification {
        host: &host,
        started_unix_ms,
        cpus: [grounds.cpu].into_iter().chain(grounds.other).collect(),
        promises: Promise::ALL.into_iter().filter(is_asked).map(judge).collect(),
        seconds: begun.elapsed().as_secs_f64(),
    };
    let mut text = Vec::new();
    match arguments.format {
        VerifyFormat::Text => verification.text(&mut text, output::style(arguments.all))?,
        VerifyFormat::Json => output::json(&mut text, &verification.json())?,
        VerifyFormat::Junit => text = punctual_report::junit(&verification.page()).into_bytes(),
        VerifyFormat::Tap => text = punctual_report::tap(&verification.page()).into_bytes(),
        VerifyFormat::Lava => text = punctual_report::lava(&verification.page()).into_bytes(),
        VerifyFormat::Kcidb => text = punctual_report::kcidb(&verification.page()).into_bytes(),
    }
    output::write(&text)?;
    Ok(exit_status(&verification.promises))
}

/// The CPUs of the experiments, and facts of the machine. Errors: when a CPU may not be used.
fn grounds(host: &Host, asked: Option<&CpuSet>) -> Result<Grounds, String> {
    let usable = sched::affinity(0).map_err(|err| format!("cannot read the CPUs of this process: {err}"))?;
    if let Some(absent) = asked.and_then(|asked| asked.iter().find(|cpu| !usable.contains(*cpu))) {
        return Err(format!("cannot use CPU {absent}: expected CPUs of {usable}"));
    }
    let isolated = host.isolated().unwrap_or_default();
    let mut cpus: Vec<u32> = match asked {
        Some(asked) => asked.iter().collect(),
        None => usable.iter().filter(|cpu| !isolated.contains(*cpu)).collect(),
    };
    if asked.is_none() {
        cpus.reverse();
    }
    let cpu = cpus.first().copied().or_else(|| usable.iter().next()).unwrap_or(0);
    let limited = |runtime: i64| u64::try_from(runtime).ok();
    let server = host.scheduling.fair_server_runtime_us.iter().find(|server| server.cpus.contains(cpu));
    Ok(Grounds {
        cpu,
        other: cpus.get(1).copied(),
        realtime_us: host.rt_runtime_us.and_then(limited).zip(host.rt_period_us),
        fair_server: server.map(|server| server.value > 0),
    })
}
