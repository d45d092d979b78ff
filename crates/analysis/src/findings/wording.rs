//! Findings in plain words: what, how much, and what to do.

use super::{Finding, Limiter, steadiness};
use crate::wording::{count, duration, number, texts_apart, things};
use std::fmt;

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let us = |us: u64| duration(us as f64 * 1e3);
        match self {
            Finding::Allocations { allocations } => {
                let calls = things(*allocations, "memory allocation");
                write!(f, "{calls} inside the measured section: a defect of this program, please report it")
            }
            Finding::Lost { lost } => {
                write!(f, "{} had no room and are in no number here", things(*lost, "sample"))
            }
            Finding::HostChanged { fact, before, after } => {
                let [before, after] = [before, after].map(|value| value.as_deref().unwrap_or("unknown"));
                let (before, after) = texts_apart(before, after);
                write!(f, "{fact} changed during the run: {before} became {after}; blocks before and after differ")
            }
            Finding::BaselineDiffers { fact, baseline, now, prevents } => {
                let [baseline, now] = [baseline, now].map(|value| value.as_deref().unwrap_or("unknown"));
                let (baseline, now) = texts_apart(baseline, now);
                let forced = if *prevents { "; not comparable, and forced" } else { "" };
                write!(f, "{fact} is not the same as in the baseline: {baseline} there, {now} here{forced}")
            }
            Finding::OperationsSkipped { operations, reason } => {
                write!(f, "not measured: {} ({reason})", operations.join(", "))
            }
            Finding::FrequencyChanged { lowest_khz, highest_khz } => {
                let [lowest, highest] = [*lowest_khz, *highest_khz].map(|khz| number(khz as f64 / 1e3));
                write!(
                    f,
                    "the CPU ran at {lowest} to {highest} MHz: a cost in ns is that of a mixture; prepare governor=performance"
                )
            }
            Finding::Coincidence { what, in_worst, worst, in_others, others } => write!(
                f,
                "{in_worst} of the {worst} worst seconds had {what}, and {in_others} of the other {others}: a \
                 coincidence, not shown to be the cause"
            ),
            Finding::LoadFailed { load, reason, at_ms, measurements } => {
                let (measurements, seconds) = (things(*measurements, "measurement"), *at_ms as f64 / 1e3);
                write!(
                    f,
                    "load {load}: {reason} after {seconds:.1} s in {measurements}: not all of the time was measured under it; \
                     measure again"
                )
            }
            Finding::LoadFell { load, share, measurements } => {
                let (percent, measurements) = ((share * 100.0).floor(), things(*measurements, "measurement"));
                write!(
                    f,
                    "load {load} fell to {percent:.0} % of its rate at the start in {measurements}: see what else ran; \
                     --load-must-hold makes that an error"
                )
            }
            Finding::LoadDidNothing { load, measurements } => {
                let measurements = things(*measurements, "measurement");
                write!(
                    f,
                    "load {load} did nothing in {measurements}: their latencies are those without it; punctual load shows \
                     what it does alone"
                )
            }
            Finding::SettingLost { what, set, found, measurements } => {
                let found = found.as_deref().unwrap_or("unreadable");
                let measurements = things(*measurements, "measurement");
                write!(
                    f,
                    "{what} was set to {set} and was {found} at the end of {measurements}: something else sets it, too; \
                     stop that, like tuned or a power daemon"
                )
            }
            Finding::Interrupted { measurements } => {
                let measurements = things(*measurements, "measurement");
                write!(f, "{measurements} ended early by a signal: counted for the time they lasted")
            }
            Finding::Stopped { measurements } => {
                let measurements = things(*measurements, "measurement");
                write!(
                    f,
                    "{measurements} ended early, as asked, at a wake-up later than allowed: the rest was not measured"
                )
            }
            Finding::OnSpikeFailed { failed, runs, reason } => {
                let (failed, runs) = (count(*failed), things(*runs, "run"));
                write!(f, "the command of on_spike failed in {failed} of {runs}: {reason}; the measurement went on")
            }
            Finding::NotAllCellsDone { done, planned } => {
                write!(
                    f,
                    "{} of {} are complete: a run that is kept goes on with --resume",
                    count(*done),
                    things(*planned, "measurement")
                )
            }
            Finding::MeasurementsFailed { cell, measurements, reason } => {
                let failed = things(*measurements, "measurement");
                write!(f, "{failed} of {cell} failed twice: {reason}; run --resume tries again")
            }
            Finding::Skipped { cells, reason } => write!(f, "not measured: {}: {reason}", some_of(cells)),
            Finding::Starved { waits, at_least_ns, samples: 0 } => {
                let late = duration(*at_least_ns as f64);
                write!(f, "never woke: {} still open at the end, more than {late} late", things(*waits, "wait"))
            }
            Finding::Starved { waits, at_least_ns, .. } => {
                let late = duration(*at_least_ns as f64);
                let waits = things(*waits, "wait");
                write!(f, "starved: {waits} still open at the end, more than {late} late; max is a lower bound")
            }
            Finding::StarvedOfCpu { woke, due } => {
                write!(f, "starved: it woke for only {} of {}", count(*woke), things(*due, "due time"))
            }
            Finding::Missed { missed, stalls, longest_ns, at_least, p99_by_due_time_ns } => {
                let more_than = if *at_least { "more than " } else { "" };
                let (missed, stalls) = (things(*missed, "due time"), things(*stalls, "stall"));
                let longest = duration(*longest_ns as f64);
                write!(f, "{missed} missed in {stalls}; longest {more_than}{longest}")?;
                let p99 = p99_by_due_time_ns.map(|ns| duration(ns as f64));
                p99.map_or(Ok(()), |p99| write!(f, "; p99 is {p99} when they count too"))
            }
            Finding::LateAnswers { late, triggers } => {
                let (late, triggers) = (count(*late), things(*triggers, "trigger"));
                write!(f, "late answers: {late} of {triggers} were answered after the next one was due; ")?;
                f.write_str("each counts with its whole delay")
            }
            Finding::NeverAnswered { never, triggers, at_least_ns, p99_by_due_time_ns } => {
                let (never, triggers) = (count(*never), things(*triggers, "trigger"));
                write!(f, "never answered: {never} of {triggers}")?;
                if let Some(waited) = at_least_ns.filter(|ns| *ns > 0) {
                    write!(f, ", each waited for at least {}", duration(waited as f64))?;
                }
                f.write_str("; max is a lower bound")?;
                let p99 = p99_by_due_time_ns.map(|ns| duration(ns as f64));
                p99.map_or(Ok(()), |p99| write!(f, ", and p99 is at least {p99} when they count too"))
            }
            Finding::NotSent { unsent, due } => {
                let (unsent, due) = (count(*unsent), things(*due, "due time"));
                write!(
                    f,
                    "not sent: {unsent} of {due} had no trigger, because the logger was late or still waiting; "
                )?;
                f.write_str("how soon they would have been answered is not known")
            }
            Finding::AnswersLeftOut { left_out } => {
                let what = things(*left_out, "answer");
                write!(
                    f,
                    "{what} later than a period or missing: this record, of an older version, has no latency of "
                )?;
                f.write_str("them; measure again")
            }
            Finding::Drift { periods, due } => {
                let (periods, due) = (count(*periods), things(*due, "period"));
                write!(
                    f,
                    "relative waits drift: {periods} of {due} were lost to it; no due time is missed, and none kept"
                )
            }
            Finding::ClockSet { steps, largest_ns } => {
                let by = duration(largest_ns.unsigned_abs() as f64);
                let way = if *largest_ns < 0 { "back" } else { "forward" };
                write!(
                    f,
                    "the clock was set {}, by {by} {way} at most: ",
                    if *steps == 1 { "once".to_owned() } else { format!("{} times", count(*steps)) }
                )?;
                f.write_str("latencies are by that clock, not by time that passed")
            }
            Finding::OriginUncertain { at_most_ns } => {
                let by = duration(*at_most_ns as f64);
                write!(
                    f,
                    "the kernel counts these periods from a moment known to {by}: latencies may be smaller by as much"
                )
            }
            Finding::TakesTurns { processes, max_ns, realtime, realtime_max_ns } => {
                let (max, realtime_max) = (duration(*max_ns as f64), duration(*realtime_max_ns as f64));
                write!(f, "max {max}, where {realtime} had {realtime_max} under the same load: ")?;
                write!(f, "a normal thread takes turns with the load's {} processes", count(*processes))
            }
            Finding::MissStorms { episodes, upper_per_hour } => {
                let (episodes, upper) = (things(*episodes, "episode"), number(*upper_per_hour));
                write!(f, "misses come in storms ({episodes}): their rate is known only to be below {upper}/h")
            }
            Finding::ByBlock { level, blocks, least_ns, most_ns } => {
                let (least, most) = (duration(*least_ns as f64), duration(*most_ns as f64));
                write!(f, "{level} by block: {least} to {most} ({})", things(*blocks, "block"))
            }
            Finding::LatencyChanged { changes } => steadiness::changed(f, changes),
            Finding::LatencyDrifts { drifts } => steadiness::drifted(f, drifts),
            Finding::LatencyInWaves { what } => steadiness::in_waves(f, what),
            Finding::RegularSpikes { every_ns } => {
                let every = duration(*every_ns as f64);
                write!(f, "spikes every {every}: look for a timer or a job with that period")
            }
            Finding::OwnPopulation { seconds, from_ns, to_ns } => {
                let (from, to) = (duration(*from_ns as f64), duration(*to_ns as f64));
                write!(f, "an event of its own: {} later than {to}, nothing ", things(*seconds, "wake-up"))?;
                write!(f, "between {from} and that; ask how often it comes, not for a bound")
            }
            Finding::TailLimit { times, upper_ns } => {
                let upper = duration(*upper_ns as f64);
                write!(f, "in {} times this time one wake-up may be later than a level of at most ", number(*times))?;
                write!(f, "{upper} (95 %), if only the causes act that acted here")
            }
            Finding::MaxIsThrottleQuantum { max_ns, quantum_us, limiter, stops_realtime } => {
                let limiter = match limiter {
                    Limiter::Throttling => "real-time throttling",
                    Limiter::FairServer => "the fair server",
                };
                write!(f, "max {} is within 1 % of the {} ", duration(*max_ns as f64), us(*quantum_us))?;
                if *stops_realtime {
                    write!(f, "for which {limiter} stops real-time threads: probably they kept the CPU busy")
                } else {
                    write!(
                        f,
                        "after which {limiter} lets normal threads run: probably a real-time one kept the CPU busy"
                    )
                }
            }
            Finding::RtThrottling { runtime_us, period_us } => {
                let (runtime, period, rest) = (us(*runtime_us), us(*period_us), us(period_us - runtime_us));
                write!(f, "real-time throttling is on: threads that use {runtime} of a {period} period may be ")?;
                write!(f, "stopped for {rest} (sched_rt_runtime_us)")
            }
            Finding::FairServer { runtime_us, period_us } => {
                let runtime = us(*runtime_us);
                let period = if *period_us == 1_000_000 { "second".to_owned() } else { us(*period_us) };
                f.write_str("the fair server is on by default (since Linux 6.12; not read back): normal threads get ")?;
                write!(f, "up to {runtime} of each {period} from real-time ones that keep a CPU busy")
            }
            Finding::TimerSlack { slack_ns } => {
                let slack = duration(*slack_ns as f64);
                write!(f, "up to {slack} of each wake-up is timer slack (prctl PR_SET_TIMERSLACK), not scheduling")
            }
            Finding::VirtualTime { cells } => {
                let cells = things(*cells, "cell");
                write!(
                    f,
                    "virtual time in {cells}: an instruction counts as a nanosecond and nothing else takes time; "
                )?;
                f.write_str("it ranks what kernels do before a thread runs, and is no latency of any hardware")
            }
            Finding::EmulatedTime { cells } => {
                let cells = things(*cells, "cell");
                write!(
                    f,
                    "emulated machines in {cells}: how long QEMU takes to translate and run a guest, beside whatever "
                )?;
                f.write_str("else this machine does; it shows what happens, and is no latency of any hardware")
            }
            Finding::GuestTime { cells } => {
                let cells = things(*cells, "cell");
                write!(
                    f,
                    "KVM guests in {cells}: the latency of a kernel in a virtual machine on this one, so what either "
                )?;
                f.write_str("kernel does is in it")
            }
            Finding::VirtualMachine { hypervisor } => {
                write!(f, "a virtual machine ({hypervisor}): its host can stop it at any time; ")?;
                f.write_str("these numbers are no bound for the hardware")
            }
            Finding::Container { container } => {
                write!(f, "in a container ({container}): its limits on CPUs and privileges are part of the result")
            }
            Finding::PageFaults { minor, major } => {
                write!(f, "page faults while measuring: {} minor, {} with I/O", count(*minor), count(*major))
            }
            Finding::Steal { steal_ms, share } => {
                let took = duration(*steal_ms as f64 * 1e6);
                write!(f, "the hypervisor took {took} of CPU time while this was measured")?;
                share.map_or(Ok(()), |share| write!(f, " ({} %)", number(share * 100.0)))?;
                f.write_str("; a coincidence, not a proven cause")
            }
            Finding::Early { early, earliest_ns } => {
                let earliest = duration(*earliest_ns as f64);
                write!(f, "{} too early, by up to {earliest}: clock or timer", things(*early, "wake-up"))
            }
            Finding::FewSamples { level, n_eff, more_ns } => {
                write!(f, "{level} not shown: worth only {} independent samples", count(*n_eff))?;
                more_ns.map_or(Ok(()), |ns| write!(f, "; about {} more would do", duration(ns as f64)))
            }
            Finding::FewSlices { slices, need } => {
                write!(f, "no intervals: {} of time, they need {need}; measure more blocks", things(*slices, "stretch"))
            }
            Finding::Dependent { samples, n_eff } => {
                let (samples, n_eff) = (count(*samples), count(*n_eff));
                write!(f, "{samples} wake-ups resemble their neighbours: worth {n_eff} independent ones at p99")
            }
            Finding::NotRealtimeKernel { preemption } => {
                write!(f, "the kernel is {}, not PREEMPT_RT: ", preemption.name())?;
                f.write_str("some of its work runs to an end before any real-time thread")
            }
            Finding::Governor { governors } => {
                let governors = governors.join(" ");
                write!(f, "frequency governor {governors}: CPUs may start slowly after idle; performance avoids that")
            }
            Finding::ClockSource { clock_source } => {
                write!(f, "clock source {clock_source} is slow to read, and reading it is part of each latency")
            }
            Finding::MemoryUnlocked => f.write_str("memory was not locked: page faults may be part of the latency"),
            Finding::DmaLatencyLeft => {
                f.write_str("/dev/cpu_dma_latency was left alone: leaving deep idle states is part of the latency")
            }
            Finding::VisibilityFloor { measured_ns, floor_ns } => {
                let (measured, floor) = (duration(*measured_ns as f64), duration(*floor_ns as f64));
                write!(f, "{measured} measured in each cell: a cause rarer than once per {floor} has more than a ")?;
                f.write_str("5 % chance of not having been seen")
            }
        }
    }
}

/// The first names, and how many more.
fn some_of(names: &[String]) -> String {
    const SHOWN: usize = 3;
    let shown = names.iter().take(SHOWN).map(String::as_str).collect::<Vec<_>>().join(", ");
    match names.len().checked_sub(SHOWN) {
        Some(more @ 1..) => format!("{shown} and {more} more"),
        _ => shown,
    }
}
