//! What can be typed. Values are read here; what they mean on this machine is decided later.

mod compare;
mod cost;
mod doctor;
mod explain;
mod frontier;
mod keep;
mod lab;
mod response;
mod results;
mod sleep;

pub(super) use compare::CompareArguments;
pub(super) use cost::{CostArguments, OperationArguments};
pub(super) use doctor::DoctorArguments;
pub(super) use explain::ExplainArguments;
pub(super) use frontier::FrontierArguments;
pub(super) use keep::Keep;
pub(super) use lab::{
    LabArguments, LabBisectArguments, LabCheckArguments, LabCommand, LabFetchArguments, LabListArguments,
};
pub(super) use response::{RespondArguments, ResponseArguments, SuperviseArguments};
pub(super) use results::{CheckArguments, ImportArguments, ImportUnit, ListArguments, RunFormat, ShowArguments};
pub(super) use sleep::{MeasureCommand, SleepArguments};

use clap::{Args, Parser, Subcommand, ValueEnum};
use model::{
    Axes, Conditions, CpuSet, Kernel, Load, LoadCpus, Percent, Period, Plan, Policy, Prepare, Requirement, Span, Task,
    Until,
};
use std::ffi::OsString;
use std::path::PathBuf;

/// The laboratory for Linux real-time performance: how late can this machine be, and how sure are we?
#[derive(Debug, Parser)]
#[command(name = "punctual", version, disable_help_subcommand = true, after_help = EXIT_STATUS)]
pub(super) struct Arguments {
    #[command(subcommand)]
    pub(super) command: Command,
}

const EXIT_STATUS: &str = "Exit status: 0 passed, 1 error, 2 requirement violated, 3 inconclusive.";

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Carry out a plan; without one, measure this machine, idle and loaded, in about a minute
    Run(RunArguments),
    /// Measure one cell, with a live view
    Measure(MeasureArguments),
    /// Measure one cell while the kernel is traced, and say what made each late wake-up late (needs root)
    Explain(ExplainArguments),
    /// Search for the smallest period that is kept without a missed cycle
    Frontier(FrontierArguments),
    /// Say whether one of two configurations is later than the other
    Compare(CompareArguments),
    /// Show the summary of a run
    Show(ShowArguments),
    /// Check a run against limits, or against an older run: verdict and exit status for CI
    Check(CheckArguments),
    /// Read what cyclictest, jitterdebugger, rtla, rteval, latency, latmus or a table has measured
    Import(ImportArguments),
    /// List the runs below a directory
    List(ListArguments),
    /// Find out what makes this machine late, and what changes it; changes nothing itself
    Doctor(DoctorArguments),
    /// Run one load alone and show its rate; --list says which there are
    Load(LoadCommandArguments),
    /// Kernels for the lab: list and fetch them, check that virtual time is the same on this machine
    Lab(LabArguments),
    /// Make a page for a browser: table, pictures, findings, machine, plan, in one file
    Report(ReportArguments),
    /// Answer the triggers of `punctual measure response`, which measures how soon that is
    Respond(RespondArguments),
    /// Put back what a killed measurement has left changed
    Recover(RecoverArguments),
    /// Measure with the options and the output of cyclictest (rt-tests)
    Cyclictest(CyclictestArguments),
    /// Carry out one cell: JSON in on stdin, JSON out on stdout
    #[command(hide = true)]
    Cell(CellArguments),
    /// Carry out one operation of the cost suite so many times: for strace, perf and tests
    #[command(hide = true)]
    Operation(OperationArguments),
    /// Become another program, which runs as a cell asks
    #[command(hide = true)]
    Launch(LaunchArguments),
    /// Run another command of this program for as long as stdin is open: a role of a plan, on its machine
    #[command(hide = true)]
    Supervise(SuperviseArguments),
}

#[derive(Debug, Args)]
#[command(after_help = EXIT_STATUS)]
pub(super) struct RunArguments {
    /// Plan in TOML; without it, load {none, messaging} x policy {other, fifo:80} at 1 ms
    pub(super) plan: Option<PathBuf>,
    /// Directory to keep the run in [default: runs/DATE-TIME]
    #[arg(long, value_name = "DIR")]
    pub(super) out: Option<PathBuf>,
    /// Go on with the run in --out: measure what is missing, nothing twice
    #[arg(long, requires = "out", conflicts_with_all = ["plan", "seed", "quick", "repetitions", "duration", "cpus", "require", "cpu_dma_latency", "prepare", "samples"])]
    pub(super) resume: bool,
    /// Go on although this machine is no longer what it was when the run began; it is a finding
    #[arg(long, requires = "resume")]
    pub(super) force: bool,
    /// Number that decides the order of the cells in each block
    #[arg(long, value_name = "N")]
    pub(super) seed: Option<u64>,
    /// 2 blocks, at most 1 s a cell: shows that it works, not how late the machine can be
    #[arg(long)]
    pub(super) quick: bool,
    /// Blocks: passes over all cells [default: the plan's]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(super) repetitions: Option<u32>,
    /// End when the two cells are shown to differ or to be equivalent (decided), or when all numbers are sure enough
    /// (enough)
    #[arg(long, value_name = "END", requires = "at_most", conflicts_with_all = ["resume", "repetitions"])]
    pub(super) until: Option<Until>,
    /// The most time that such a run takes, like 30min
    #[arg(long, value_name = "TIME", requires = "until", allow_hyphen_values = true)]
    pub(super) at_most: Option<Span>,
    /// Measure so many blocks now, and end; --resume goes on
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(super) blocks: Option<u32>,
    /// Measured time of a cell in each block, like 10s [default: the plan's]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub(super) duration: Option<Span>,
    /// Keep every latency, too: a Parquet file for each measurement, in samples/ of the run
    #[arg(long)]
    pub(super) samples: bool,
    #[command(flatten)]
    pub(super) common: Common,
}

#[derive(Debug, Args)]
#[command(after_help = EXIT_STATUS, args_conflicts_with_subcommands = true)]
pub(super) struct MeasureArguments {
    #[command(subcommand)]
    pub(super) command: Option<MeasureCommand>,
    #[command(flatten)]
    pub(super) waiting: HowToWait,
    #[command(flatten)]
    pub(super) cell: OneCell,
    /// Keep every latency in this new Parquet file
    #[arg(long, value_name = "FILE")]
    pub(super) samples: Option<PathBuf>,
}

/// The method, as `measure` and `explain` take it.
#[derive(Debug, Args)]
pub(super) struct HowToWait {
    /// How the thread waits: clock_nanosleep, clock_nanosleep:relative, nanosleep, timerfd, itimer, posix_timer, futex, poll,
    /// deadline, sleep:RUNTIME, response:LINK, cost; most take a clock, like timerfd:realtime (monotonic, realtime, boottime, tai)
    #[arg(value_name = "METHOD", default_value = "clock_nanosleep")]
    pub(super) task: Task,
}

/// One cell without its task.
#[derive(Debug, Args)]
pub(super) struct OneCell {
    /// How the thread is scheduled: other, other:nice=N, batch, idle, fifo:PRIORITY, rr:PRIORITY,
    /// deadline:RUNTIME/DEADLINE/PERIOD
    #[arg(long, default_value = "other")]
    pub(super) policy: Policy,
    /// Time between two due times, 10us to 100s
    #[arg(long, value_name = "TIME", default_value = "1ms", allow_hyphen_values = true)]
    pub(super) period: Period,
    #[command(flatten)]
    pub(super) load: LoadArguments,
    /// Measured time
    #[arg(long, value_name = "TIME", default_value = "10s", allow_hyphen_values = true)]
    pub(super) duration: Span,
    /// Time before it that is not recorded
    #[arg(long, value_name = "TIME", default_value = "200ms", allow_hyphen_values = true)]
    pub(super) warm_up: Span,
    /// Timer slack of a normal thread [default: the kernel's 50us]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub(super) timer_slack: Option<Span>,
    /// End at the first wake-up later than this
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub(super) stop_above: Option<Span>,
    /// Run this shell command at a spike, outside the measured CPUs, one at a time, with the spike as JSON on its stdin; a spike
    /// is what is explained, or the wake-up of --stop-above
    #[arg(long, value_name = "COMMAND")]
    pub(super) on_spike: Option<String>,
    /// Begin at a full second of the method's clock, or so long after one
    #[arg(long, value_name = "OFFSET", num_args = 0..=1, require_equals = true, default_missing_value = "0ns")]
    pub(super) align: Option<Span>,
    /// How much later the due times of each next CPU are [default: 0]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub(super) distance: Option<Span>,
    #[command(flatten)]
    pub(super) keep: Keep,
    #[command(flatten)]
    pub(super) common: Common,
}

impl OneCell {
    /// The plan of this one cell of `task`, whose title begins with `verb`; and what is not of the plan.
    pub(super) fn ask(self, verb: &str, task: Task) -> (Common, Keep, Plan) {
        let common = self.common;
        let plan = self.load.ask(Plan {
            title: format!("{verb} {task}"),
            repetitions: 1,
            duration: self.duration,
            cycles: None,
            min_cycles: None,
            seed: None,
            cpus: common.cpus.clone(),
            axes: Axes {
                kernel: vec![Kernel::Running],
                load: Vec::new(),
                policy: vec![self.policy],
                period: vec![self.period],
                task: vec![task],
                runtime: Vec::new(),
            },
            require: common.require.unwrap_or_default(),
            conditions: Conditions {
                warm_up: self.warm_up,
                timer_slack: self.timer_slack,
                align: self.align,
                stop_above: self.stop_above,
                on_spike: self.on_spike,
                distance: self.distance,
                ..common.conditions()
            },
            ..Plan::default()
        });
        (common, self.keep, plan)
    }
}

/// Background work, and how it runs.
#[derive(Debug, Args)]
pub(super) struct LoadArguments {
    /// Background work: none, cpu or cpu:50, messaging or messaging:groups=2, pipe, disk, high, stress-ng:ARGS, cmd:COMMAND
    /// ...; several with +, like messaging+disk; `punctual load --list` says what each does
    #[arg(long, default_value = "none")]
    pub(super) load: Load,
    /// CPUs of the load: all, measured, others (those that are not measured), or a list like 0-3
    #[arg(long, value_name = "CPUS", default_value = "all", allow_hyphen_values = true)]
    pub(super) load_cpus: LoadCpus,
    /// How the load is scheduled [default: other]
    #[arg(long, value_name = "POLICY")]
    pub(super) load_policy: Option<Policy>,
    /// Fail when the load ends, stalls, or falls below this share of its rate at the start
    #[arg(long, value_name = "PERCENT", num_args = 0..=1, require_equals = true, default_missing_value = "50", value_parser = percent)]
    pub(super) load_must_hold: Option<Percent>,
}

impl LoadArguments {
    /// Puts them into a plan.
    pub(super) fn ask(self, plan: Plan) -> Plan {
        let LoadArguments { load, load_cpus, load_policy, load_must_hold } = self;
        let axes = Axes { load: vec![load], ..plan.axes };
        Plan { axes, load_cpus, conditions: Conditions { load_policy, load_must_hold, ..plan.conditions }, ..plan }
    }
}

/// What `run` and `measure` share.
#[derive(Debug, Args)]
pub(super) struct Common {
    /// CPUs to measure on, like 0-3,5 [default: every CPU that may be used]
    #[arg(long, value_name = "LIST", allow_hyphen_values = true)]
    pub(super) cpus: Option<CpuSet>,
    /// What has to be kept, like max=1ms,p999=200us,misses_per_hour=1
    #[arg(long, value_name = "LIMITS", value_parser = requirement)]
    pub(super) require: Option<Requirement>,
    /// Time to hold in /dev/cpu_dma_latency, which limits idle states, or `leave` [default: 0us]
    #[arg(long, value_name = "TIME", value_parser = dma_latency)]
    pub(super) cpu_dma_latency: Option<DmaLatencyAsked>,
    /// Settings to change for as long as each cell lasts, like governor=performance,timer_migration=off: governor,
    /// idle_latency, rt_runtime, timer_migration, transparent_hugepages, irqbalance, irq_cpus, housekeeping_cpus, cgroup
    #[arg(long, value_name = "SETTINGS", value_parser = prepare)]
    pub(super) prepare: Option<Prepare>,
    /// Wait until nobody else measures this machine
    #[arg(long)]
    pub(super) wait: bool,
    /// Run the programs and make the settings of a plan or run that is not your own file; let ping flood another machine
    #[arg(long)]
    pub(super) yes: bool,
    /// Form of the result on stdout
    #[arg(long, value_enum, default_value = "text")]
    pub(super) format: RunFormat,
}

impl Common {
    /// The conditions that they ask for.
    pub(super) fn conditions(&self) -> Conditions {
        let default = Plan::default().conditions;
        Conditions {
            cpu_dma_latency_us: self.cpu_dma_latency.map_or(default.cpu_dma_latency_us, |asked| asked.0),
            prepare: self.prepare.clone().unwrap_or_default(),
            ..default
        }
    }
}

#[derive(Debug, Args)]
pub(super) struct LoadCommandArguments {
    /// The load, like messaging, cpu:50, disk+pipe, or cmd:COMMAND
    #[arg(required_unless_present = "list")]
    pub(super) load: Option<Load>,
    /// Say what each load does, what it is known to disturb, and what it costs
    #[arg(long, conflicts_with_all = ["load", "duration", "cpus", "policy"])]
    pub(super) list: bool,
    /// How long it runs [default: until Ctrl-C]
    #[arg(long = "for", value_name = "TIME", allow_hyphen_values = true)]
    pub(super) duration: Option<Span>,
    /// CPUs that it may use [default: every CPU that may be used]
    #[arg(long, value_name = "LIST", allow_hyphen_values = true)]
    pub(super) cpus: Option<CpuSet>,
    /// How it is scheduled; a real-time policy needs --for
    #[arg(long, default_value = "other")]
    pub(super) policy: Policy,
    /// Let ping flood another machine
    #[arg(long)]
    pub(super) yes: bool,
    /// Form of the result on stdout
    #[arg(long, value_enum, default_value = "text")]
    pub(super) format: Format,
    /// Process that it ends with
    #[arg(long, value_name = "PID", hide = true)]
    pub(super) parent: Option<u32>,
}

#[derive(Debug, Args)]
pub(super) struct ReportArguments {
    /// Directories of runs, compared on one page [default: the latest below runs/]
    #[arg(value_name = "RUN")]
    pub(super) runs: Vec<PathBuf>,
    /// File to write [default: report.html in the run's directory; of several runs, here]
    #[arg(short, long, value_name = "FILE")]
    pub(super) output: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(super) struct RecoverArguments {
    /// Wait until nobody measures this machine
    #[arg(long)]
    pub(super) wait: bool,
    /// Form of the result on stdout
    #[arg(long, value_enum, default_value = "text")]
    pub(super) format: Format,
}

/// Read by its own rules, which are getopt's: `-h` is the histogram.
#[derive(Debug, Args)]
#[command(disable_help_flag = true)]
pub(super) struct CyclictestArguments {
    /// Options of cyclictest; see `punctual cyclictest --help`
    #[arg(value_name = "OPTIONS", trailing_var_arg = true, allow_hyphen_values = true)]
    pub(super) words: Vec<OsString>,
    /// Called by the name of cyclictest, not as a command.
    #[arg(skip)]
    pub(super) is_drop_in: bool,
}

#[derive(Debug, Args)]
pub(super) struct CellArguments {
    /// Write a line of JSON to stderr once a second that says how it goes
    #[arg(long)]
    pub(super) progress: bool,
    /// Process that the cell ends with [default: whoever started it]
    #[arg(long, value_name = "PID")]
    pub(super) parent: Option<u32>,
    /// Open descriptor of the machine's lock, to be held until the cell has ended
    #[arg(long, value_name = "FD")]
    pub(super) lock: Option<i32>,
    /// Keep the raw samples in this new Parquet file
    #[arg(long, value_name = "FILE")]
    pub(super) samples: Option<PathBuf>,
    /// Run the kernel's tracers in place of measured threads, and write what they saw in place of the record
    #[arg(long, conflicts_with_all = ["progress", "samples"])]
    pub(super) tracers: bool,
}

#[derive(Debug, Args)]
pub(super) struct LaunchArguments {
    /// Process that the program ends with
    #[arg(long, value_name = "PID")]
    pub(super) parent: u32,
    /// CPU that it may use
    #[arg(long, requires_all = ["policy", "timer_slack"])]
    pub(super) cpu: Option<u32>,
    /// How its threads are scheduled
    #[arg(long, requires = "cpu")]
    pub(super) policy: Option<Policy>,
    /// Timer slack of its threads
    #[arg(long, value_name = "TIME", requires = "cpu")]
    pub(super) timer_slack: Option<Span>,
    /// The program and its arguments
    #[arg(required = true, last = true)]
    pub(super) program: Vec<OsString>,
}

/// The form of a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Format {
    /// For people
    Text,
    /// One document for programs
    Json,
}

/// A value for `/dev/cpu_dma_latency`, us; `None`: leave it alone.
#[derive(Debug, Clone, Copy)]
pub(super) struct DmaLatencyAsked(pub(super) Option<u32>);

fn dma_latency(text: &str) -> Result<DmaLatencyAsked, String> {
    Plan::cpu_dma_latency(text).map(DmaLatencyAsked)
}

fn percent(text: &str) -> Result<Percent, String> {
    let percent = text.strip_suffix('%').unwrap_or(text).parse().ok().and_then(Percent::new);
    percent.ok_or_else(|| format!("`{text}` is no percentage; write 1 to 100"))
}

fn prepare(text: &str) -> Result<Prepare, String> {
    let mut prepare = Prepare::default();
    prepare.set_all(text).map_err(|err| err.to_string())?;
    Ok(prepare)
}

fn requirement(text: &str) -> Result<Requirement, String> {
    let mut require = Requirement::default();
    require.set_all(text).map_err(|err| err.to_string())?;
    Ok(require)
}
