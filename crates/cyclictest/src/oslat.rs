//! The program oslat of rt-tests: the same options and output on the loop of `measure noise`.

mod options;
mod result;

use super::option_values::Layout;
use super::output::{Console, Sink};
use super::signals::Requests;
use super::{json, machine};
use options::{Invocation, Options};
use punctual_host::{HostFs, TraceMark};
use punctual_model::{ClockId, CpuSet, Host, Method, Nanos, Span};
use punctual_rt::{Settings, Team, ThreadSpec};
use punctual_sys::counter::Counter;
use result::{Core, Results};
use std::error::Error;
use std::time::{Duration, SystemTime};

/// The shortest gap: what is shorter is in the first bucket.
const THRESHOLD: Span = Span(1_000);
/// Time before the measured one in which the loops run already, so that the frequency of the CPUs is high.
const PREHEAT: Span = Span::SECOND;
/// Time from opening the barrier to the first reading: every thread runs within it.
const LEAD: Span = Span(2_000_000);
/// Samples that a log holds: they are read each second.
const ROOM: usize = 1 << 16;
const TICK: Duration = Duration::from_secs(1);
/// The version of rt-tests whose output is written.
const LAYOUT: Layout = Layout::V2_4;
/// Exit status of oslat after a gap of `-T`.
const BREAK_STATUS: u8 = 1;

/// Runs with `words`, the words of `command_line` without the program's name; returns the exit status. Errors: one
/// line: reason and advice.
pub fn run(words: &[String], command_line: &str, console: &mut Console<'_>) -> Result<u8, Box<dyn Error>> {
    let usable = punctual_sys::sched::affinity(0)?;
    let options = match options::read(words, &usable)? {
        Invocation::Help => {
            console.print(include_str!("oslat/help.txt"))?;
            return Ok(0);
        }
        Invocation::Version => {
            console.print(&format!("oslat V {}\n", LAYOUT.version()))?;
            return Ok(0);
        }
        Invocation::Measure(options) => options,
    };
    let host = punctual_host::snapshot(&HostFs::here());
    punctual_model::check_endless(options.policy, &options.cpus, &host)?;
    let json = options.json.as_deref().map(|path| Sink::open("--json", path, true)).transpose()?;
    let trace = options.trace_from.map(|_| TraceMark::open(&HostFs::here())).transpose();
    let mut trace = trace.map_err(|err| format!("-T: {err}"))?;
    machine::lock_memory()?;
    machine::unfit(options.policy).iter().for_each(|note| console.say(&format!("{note}\n")));
    let main_cpus = options.main_cpu.map_or_else(|| usable.minus(&options.cpus), |cpu| [cpu].into_iter().collect());
    if !main_cpus.is_empty() {
        punctual_sys::sched::set_affinity(0, &main_cpus).map_err(|err| format!("-C {main_cpus}: {err}"))?;
    }
    console.print(&format!("oslat V {}\n", LAYOUT.version()))?;
    let say = |console: &mut Console<'_>, text: &str| if options.quiet { Ok(()) } else { console.print(text) };
    say(console, &about(&options, &main_cpus))?;
    say(console, "Pre-heat for 1 seconds...\n")?;
    let started = SystemTime::now();
    let counter = Counter::best(host.clock_source.as_deref());
    let mut preheat = spawn(&options, counter, PREHEAT)?;
    preheat.release(punctual_sys::clock::now(ClockId::Monotonic).plus(LEAD));
    while !preheat.wait(TICK) {}
    if options.bias > 0 {
        console.print(&format!("Global bias set to {} (us)\n", options.bias))?;
    }
    say(console, "Test starts...\n")?;
    let cores = match measure(&options, counter, trace.as_mut())? {
        End::Whole(cores) => cores,
        End::Broke(cpu, us) => {
            let from = options.trace_from.unwrap_or(0);
            console.say(&format!("oslat: Trace threshold ({from} us) triggered on cpu {cpu} with {us} us!\n"));
            return Ok(BREAK_STATUS);
        }
    };
    say(console, "Test completed.\n\n")?;
    console.print(&result::table(&cores, options.leaves_zeros_out))?;
    if let Some(json) = json {
        json.write(&document(command_line, started, &host, &cores)?, console)?;
    }
    Ok(0)
}

fn document(command_line: &str, started: SystemTime, host: &Host, cores: &[Core]) -> serde_json::Result<String> {
    let ended = SystemTime::now();
    let header = json::Header { command_line, layout: LAYOUT, started, ended, exit_status: 0, host };
    json::document(&header, Results::of(cores))
}

/// The lines before the run.
fn about(options: &Options, main_cpus: &CpuSet) -> String {
    let priority = if options.policy.is_realtime() {
        options.policy.to_string().replace("fifo", "SCHED_FIFO")
    } else {
        "default".to_owned()
    };
    format!(
        "Total runtime: \t\t{} seconds\nThread priority: \t{priority}\nCPU list: \t\t{}\nCPU for main thread: \t{}\n\
         Workload: \t\tno\nWorkload mem: \t\t0 (KiB)\nPreheat cores: \t\t{}\n\n",
        options.duration.ns() / Span::SECOND.ns(),
        options.typed_cpus.as_deref().unwrap_or("(all cores)"),
        main_cpus.iter().next().unwrap_or(0),
        if options.has_single_preheat { 1 } else { options.cpus.len() },
    )
}

/// One thread for each CPU, at the barrier.
fn spawn(options: &Options, counter: Counter, duration: Span) -> Result<Team, Box<dyn Error>> {
    let (method, period) = (Method::Noise { threshold: Some(THRESHOLD) }, Method::NOISE_PERIOD);
    let settings = Settings { policy: options.policy, timer_slack: None, method, period, counter, movable: None };
    let spec = |cpu| ThreadSpec {
        cpu,
        cpus: [cpu].into_iter().collect(),
        settings,
        phase: Span(0),
        cycles: 0..duration.ns() / period.ns(),
        link: None,
    };
    // From N us on, where a gap counts as the next whole microsecond.
    let above = options.trace_from.and_then(|us| i64::try_from((us - 1) * 1_000).ok()).unwrap_or(i64::MAX);
    machine::spawn(options.cpus.iter().map(spec).collect(), Nanos(above), ROOM)
}

/// The end of a measurement.
enum End {
    Whole(Vec<Core>),
    /// A gap of `-T`: its CPU and length, us.
    Broke(u32, u64),
}

/// Measures to the end, or to the first gap that stops the trace.
fn measure(options: &Options, counter: Counter, mut trace: Option<&mut TraceMark>) -> Result<End, Box<dyn Error>> {
    let requests = Requests::accept()?;
    let mut team = spawn(options, counter, options.duration)?;
    let asked = requests.forward(team.waker())?;
    let both = || (counter.read(), punctual_sys::clock::monotonic().0);
    let begin = both();
    team.release(punctual_sys::clock::now(ClockId::Monotonic).plus(LEAD));
    let mut cores: Vec<Core> =
        options.cpus.iter().map(|cpu| Core::new(cpu, 0, options.buckets, options.bias)).collect();
    let mut broke = None;
    loop {
        let is_over = team.members.iter().all(|member| member.outcome.is_some());
        for (core, member) in cores.iter_mut().zip(&mut team.members) {
            member.log.drain(|sample| {
                let us = sample.latency.0.unsigned_abs().div_ceil(1_000);
                core.take(us);
                if options.trace_from.is_some_and(|from| us >= from) && broke.is_none() {
                    broke = Some((core.cpu, us));
                }
            });
        }
        if let Some(((cpu, us), trace)) = broke.zip(trace.take_if(|_| broke.is_some())) {
            trace.stop(&format!("oslat: Trace threshold triggered on cpu {cpu} with {us} us"))?;
        }
        if is_over {
            break;
        }
        team.listen(TICK);
        if asked.to_stop() {
            team.end_now();
        }
    }
    let end = both();
    let mhz = ((end.0 - begin.0) * 1_000).checked_div(end.1.saturating_sub(begin.1)).unwrap_or(0);
    for (core, member) in cores.iter_mut().zip(&team.members) {
        core.mhz = mhz;
        match member.outcome.map(|outcome| (outcome.result, outcome.noise)) {
            Some((Ok(_), Some(noise))) if noise.readings > 0 => core.end(&noise),
            _ => return Err(format!("CPU {}: the thread had no time to read the counter", core.cpu).into()),
        }
    }
    Ok(broke.map_or(End::Whole(cores), |(cpu, us)| End::Broke(cpu, us)))
}
