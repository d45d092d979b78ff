//! Command-line arguments. Values are parsed here; their meaning on this machine is decided later.

mod capture;
mod compare;
mod doctor;
mod explain;
mod export;
mod floor;
mod frontier;
mod heading;
mod help;
mod internal;
mod lab;
mod load;
mod measure;
mod measureless;
mod monitor;
mod plan;
mod results;
mod stick;
mod store;
mod study;
mod topics;
mod tune;
mod verify;
mod watch;

pub(super) use capture::CaptureArguments;
pub(super) use compare::CompareArguments;
pub(super) use doctor::DoctorArguments;
pub(super) use explain::{ExplainArguments, MethodOrRun};
pub(super) use export::{Engine, ExportArguments, ExportCommand, PerfettoArguments};
pub(super) use floor::FloorArguments;
pub(super) use frontier::FrontierArguments;
pub(super) use help::{COLUMNS, command, page, screen, wrapped, wrapped_to};
pub(super) use internal::{
    CellArguments, CompleteArguments, LaunchArguments, OperationArguments, Shell, SuperviseArguments,
};
pub(super) use lab::{
    GUEST_LOAD, GUEST_POLICY, LabArguments, LabBisectArguments, LabCheckArguments, LabCheckConfigArguments, LabCommand,
    LabFetchArguments, LabFilmArguments, LabListArguments, LabSearchCell, LabWorstArguments,
};
pub(super) use load::{LoadArguments, LoadCommandArguments};
pub(super) use measure::{
    CostArguments, Keep, MeasureCommand, NoiseArguments, RespondArguments, ResponseArguments, SleepArguments,
};
pub(super) use monitor::{MonitorArguments, MonitorCommand, MonitorShowArguments};
pub(super) use plan::{PlanArguments, PlanCommand};
pub(super) use results::{
    CheckArguments, ImportArguments, ImportUnit, ListArguments, MergeArguments, RunFormat, ShowArguments,
};
pub(super) use stick::StickArguments;
pub(super) use store::{
    HistoryArguments, HistoryFormat, QueryFormat, StoreAddArguments, StoreArguments, StoreCommand, StoreListArguments,
    StoreName, StoreQueryArguments,
};
pub(super) use study::{StudyArguments, StudyCommand, StudyFormat, StudyRunArguments, StudyShowArguments};
pub(super) use topics::LISTS;
pub(super) use tune::TuneArguments;
pub(super) use verify::{VerifyArguments, VerifyFormat};
pub(super) use watch::WatchArguments;

use clap::{Args, FromArgMatches, Parser, Subcommand, ValueEnum};
use punctual_model::{
    Axes, Conditions, CpuSet, Kernel, Period, Plan, Policy, Prepare, Requirement, Setting, Shard, Site, Span, Task,
    Until,
};
use std::ffi::OsString;
use std::path::PathBuf;

/// Measure how late this machine can be, and how sure that is
#[derive(Debug, Parser)]
#[command(name = "punctual", version, disable_help_subcommand = true, after_help = EXIT_STATUS)]
pub(super) struct Arguments {
    #[command(subcommand)]
    pub(super) command: Command,
}

impl Arguments {
    /// Parses a command line, whose first word is the name of the program.
    pub(super) fn read(words: &[OsString]) -> Result<Arguments, clap::Error> {
        if let Some(command) = Command::alone(words) {
            return Ok(Arguments { command });
        }
        let mut matches = command().try_get_matches_from(words)?;
        measureless::stands_alone(&matches)?;
        let explain = matches.subcommand_matches("explain");
        let has_period = explain.is_some_and(|given| measureless::is_given(given, "period"));
        let mut arguments = Arguments::from_arg_matches_mut(&mut matches)?;
        if let Command::Explain(explain) = &mut arguments.command {
            explain.has_period = has_period;
        }
        Ok(arguments)
    }
}

const EXIT_STATUS: &str = "\
Exit status: 0 passed, 1 error, 2 limit violated, 3 inconclusive; interrupted:
130 by SIGINT, 143 by SIGTERM, 129 by SIGHUP.";

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Run a plan; without one, measure this machine, idle and loaded
    Run(RunArguments),
    /// List the ready plans of `punctual run`, or print one
    Plan(PlanArguments),
    /// Repeat a published study: its tables and conclusions
    Study(StudyArguments),
    /// Measure one cell, with a live view
    Measure(MeasureArguments),
    /// Trace the kernel while measuring; explain late wake-ups (root)
    Explain(ExplainArguments),
    /// Watch threads of other programs: how late they are, and why (root)
    Watch(Box<WatchArguments>),
    /// Record what all threads do, here or on a board, to analyze it elsewhere (root)
    Capture(CaptureArguments),
    /// Measure for weeks at a low rate: maxima of 5 minutes, metrics for Prometheus
    Monitor(MonitorArguments),
    /// Measure what takes a CPU: firmware or host, kernel, treatable (root)
    Floor(FloorArguments),
    /// Search for the smallest period without a missed cycle
    Frontier(FrontierArguments),
    /// Test which settings reduce latency, and what they cost
    Tune(Box<TuneArguments>),
    /// Compare the latency of two cells or runs
    Compare(CompareArguments),
    /// Show the summary of a run
    Show(ShowArguments),
    /// Check a run against limits or an older run, for CI
    Check(CheckArguments),
    /// Import results of cyclictest, rtla, latmus and others
    Import(ImportArguments),
    /// Merge the shards of a run, made by `punctual run --shard`
    Merge(MergeArguments),
    /// List the runs below a directory
    List(ListArguments),
    /// Keep runs of many machines and years in one database
    Store(StoreArguments),
    /// The old spelling of `punctual store history`
    #[command(hide = true)]
    History(HistoryArguments),
    /// Check this machine for causes of latency, without changing it
    Doctor(DoctorArguments),
    /// Test what man pages promise about scheduling (root)
    Verify(VerifyArguments),
    /// Run a load alone and show its rate; --list describes all loads
    Load(LoadCommandArguments),
    /// Manage the kernels of the lab and check its virtual time
    Lab(LabArguments),
    /// Make an image for a USB stick that measures any PC, without installing anything
    Stick(StickArguments),
    /// Write an HTML report or pictures of one or several runs
    Report(ReportArguments),
    /// Write the files that run a plan by Ansible, labgrid, LAVA, Kubernetes or Slurm
    Export(ExportArguments),
    /// Answer the triggers of `punctual measure response`
    Respond(RespondArguments),
    /// Restore what a killed measurement left changed
    Recover(RecoverArguments),
    /// Measure with the options and the output of cyclictest
    Cyclictest(DropInArguments),
    /// Measure lost time with the options and the output of oslat
    Oslat(DropInArguments),
    /// Print a completion script for a shell
    Completion(CompletionArguments),
    /// Write the man pages of all commands into a directory
    Man(ManArguments),
    /// Show the help of a command or topic: loads, findings, guides ...
    Help(HelpArguments),
    /// Print the words that may stand next on a command line
    #[command(hide = true)]
    Complete(CompleteArguments),
    /// Measure one cell: JSON in on stdin, JSON out on stdout
    #[command(hide = true)]
    Cell(CellArguments),
    /// Repeat one operation of the cost suite, for strace, perf and tests
    #[command(hide = true)]
    Operation(OperationArguments),
    /// Become another program, with the affinity and policy of a cell
    #[command(hide = true)]
    Launch(LaunchArguments),
    /// Run another command of this program while stdin is open: a role of a plan, on its machine
    #[command(hide = true)]
    #[command(name = "supervise-role")]
    Supervise(SuperviseArguments),
    /// Measure the cells of a campaign on another machine, one request a line on stdin
    #[command(hide = true)]
    #[command(name = "serve-cells")]
    ServeCells,
}

impl Command {
    /// A command that measures, parsed without the definitions of all others, which take a millisecond. `None` if it is
    /// another one, or if there is something to say about its arguments.
    fn alone(words: &[OsString]) -> Option<Command> {
        fn of<T: Args>(words: &[OsString]) -> Option<T> {
            let definition = T::augment_args(clap::Command::new("punctual"));
            T::from_arg_matches(&definition.try_get_matches_from(words).ok()?).ok()
        }
        let words = words.get(1..)?;
        match words.first()?.to_str()? {
            "cell" => of(words).map(Command::Cell),
            "measure" => of(words).map(Command::Measure),
            "run" => of(words).map(Command::Run),
            _ => None,
        }
    }
}

#[derive(Debug, Args)]
#[command(after_help = EXIT_STATUS)]
pub(super) struct RunArguments {
    /// Ready plan (`punctual plan list`) or TOML file with a `/` or .toml [default: loads none, messaging;
    /// policies other, fifo:80; period 1ms]
    pub(super) plan: Option<PathBuf>,
    /// Replace the values of an axis or key, like policy=other,fifo:80
    #[arg(long, value_name = "KEY=VALUE")]
    pub(super) set: Vec<Setting>,
    /// Show cells, time, disk space, settings and programs only
    #[arg(long)]
    pub(super) dry_run: bool,
    /// Trial run: 2 blocks, at most 1 s a cell
    #[arg(long)]
    pub(super) quick: bool,
    /// Measured time of a cell [default: the plan's]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub(super) duration: Option<Span>,
    /// Blocks: passes over all cells [default: the plan's]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(super) repetitions: Option<u32>,
    /// Directory of the run [default: runs/DATE-TIME]
    #[arg(long, value_name = "DIR")]
    pub(super) out: Option<PathBuf>,
    /// Resume the run in --out: measure what is missing
    #[arg(long, requires = "out", conflicts_with_all = ["plan", "set", "dry_run", "seed", "quick", "repetitions", "duration", "cpus", "require", "cpu_dma_latency", "prepare", "samples", "shard"])]
    pub(super) resume: bool,
    /// Resume although the machine changed (recorded as a finding)
    #[arg(long, requires = "resume", help_heading = heading::EXTENT)]
    pub(super) force: bool,
    /// Boot the next kernel `installed:RELEASE` of the run, and go on there, until all are measured
    #[arg(long, conflicts_with_all = ["dry_run", "blocks", "shard", "on"], help_heading = heading::EXTENT)]
    pub(super) reboot: bool,
    /// Measure at most N blocks now; --resume continues
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000), help_heading = heading::EXTENT)]
    pub(super) blocks: Option<u32>,
    /// Make part I of N of the run: whole blocks, or single measurements in virtual time; `punctual merge` joins them
    #[arg(long, value_name = "I/N", requires = "out", conflicts_with = "until", help_heading = heading::EXTENT)]
    pub(super) shard: Option<Shard>,
    /// Stop when two cells are shown to differ or to be equivalent (decided), or when all numbers are precise (enough)
    #[arg(long, value_name = "END", requires = "at_most", conflicts_with_all = ["resume", "repetitions"], help_heading = heading::EXTENT)]
    pub(super) until: Option<Until>,
    /// Time limit of a run with --until, e.g. 30min
    #[arg(long, value_name = "TIME", requires = "until", allow_hyphen_values = true, help_heading = heading::EXTENT)]
    pub(super) at_most: Option<Span>,
    /// Seed of the order of the cells in each block
    #[arg(long, value_name = "N", help_heading = heading::EXTENT)]
    pub(super) seed: Option<u64>,
    /// Measure on another machine: ssh:HOST, or exec:COMMAND, like exec:docker exec -i box; this program is sent there
    #[arg(long, value_name = "MACHINE", help_heading = heading::EXTENT)]
    pub(super) on: Option<Site>,
    /// Keep every latency: a Parquet file for each measurement, in samples/ of the run
    #[arg(long, help_heading = heading::OUTPUT)]
    pub(super) samples: bool,
    #[command(flatten)]
    pub(super) common: Common,
}

#[derive(Debug, Args)]
#[command(after_help = EXIT_STATUS, args_conflicts_with_subcommands = true)]
pub(super) struct MeasureArguments {
    #[command(subcommand)]
    pub(super) command: Option<MeasureCommand>,
    /// How the thread waits
    #[arg(value_name = "METHOD", default_value = "clock_nanosleep")]
    pub(super) task: Task,
    #[command(flatten)]
    pub(super) cell: OneCell,
    /// Keep every latency in this new Parquet file
    #[arg(long, value_name = "FILE", help_heading = heading::OUTPUT)]
    pub(super) samples: Option<PathBuf>,
}

/// One cell without its task.
#[derive(Debug, Args)]
pub(super) struct OneCell {
    /// Scheduling policy, e.g. fifo:80
    #[arg(long, default_value = "other")]
    pub(super) policy: Policy,
    /// Period or frequency, e.g. 200us, 1kHz
    #[arg(long, value_name = "TIME", default_value = "1ms", allow_hyphen_values = true)]
    pub(super) period: Period,
    /// Measured time
    #[arg(long, value_name = "TIME", default_value = "10s", allow_hyphen_values = true)]
    pub(super) duration: Span,
    #[command(flatten)]
    pub(super) load: LoadArguments,
    /// Warm-up time: cycles run but are not recorded
    #[arg(long, value_name = "TIME", default_value = "200ms", allow_hyphen_values = true, help_heading = heading::TIMING)]
    pub(super) warm_up: Span,
    /// Start at a full second of the method's clock, or this long after one
    #[arg(long, value_name = "OFFSET", num_args = 0..=1, require_equals = true, default_missing_value = "0ns", help_heading = heading::TIMING)]
    pub(super) align: Option<Span>,
    /// Offset between the due times of consecutive CPUs [default: 0]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, help_heading = heading::TIMING)]
    pub(super) distance: Option<Span>,
    /// Difference between the periods of consecutive CPUs: the first has --period, the next this much more [default: 0]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, help_heading = heading::TIMING)]
    pub(super) period_step: Option<Span>,
    /// Timer slack of a normal thread [default: the kernel's 50us]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, help_heading = heading::TIMING)]
    pub(super) timer_slack: Option<Span>,
    /// Stop at the first wake-up later than this
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, help_heading = heading::SPIKES)]
    pub(super) stop_above: Option<Span>,
    /// Shell command to run at each spike (an explained wake-up, or that of --stop-above), off the measured CPUs, with
    /// the spike as JSON on its stdin
    #[arg(long, value_name = "COMMAND", help_heading = heading::SPIKES)]
    pub(super) on_spike: Option<String>,
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
                prepare: Vec::new(),
                only: Vec::new(),
            },
            require: common.require.unwrap_or_default(),
            conditions: Conditions {
                warm_up: self.warm_up,
                timer_slack: self.timer_slack,
                align: self.align,
                stop_above: self.stop_above,
                on_spike: self.on_spike,
                distance: self.distance,
                period_step: self.period_step,
                ..common.conditions()
            },
            ..Plan::default()
        });
        (common, self.keep, plan)
    }
}

/// Arguments that `run` and `measure` share.
#[derive(Debug, Args)]
pub(super) struct Common {
    /// Latency limits, e.g. max=1ms,p99.9=200us
    #[arg(long, value_name = "LIMITS", value_parser = requirement)]
    pub(super) require: Option<Requirement>,
    /// CPUs to measure, e.g. 0-3,5 [default: all usable ones]
    #[arg(long, value_name = "LIST", allow_hyphen_values = true)]
    pub(super) cpus: Option<CpuSet>,
    /// Output format, e.g. json, md
    #[arg(long, value_enum, default_value = "text", hide_possible_values = true)]
    pub(super) format: RunFormat,
    /// Value held in /dev/cpu_dma_latency, which limits idle states, or `leave` [default: 0us]
    #[arg(long, value_name = "TIME", value_parser = dma_latency, help_heading = heading::MACHINE)]
    pub(super) cpu_dma_latency: Option<DmaLatencyAsked>,
    /// System settings for the time of each cell, e.g. governor=performance,timer_migration=off: governor,
    /// idle_latency, rt_runtime, timer_migration, transparent_hugepages, irqbalance, irq_cpus, housekeeping_cpus,
    /// cgroup, cobalt_gravity
    #[arg(long, value_name = "SETTINGS", value_parser = prepare, help_heading = heading::MACHINE)]
    pub(super) prepare: Option<Prepare>,
    /// Wait for other measurements on this machine to end
    #[arg(long, help_heading = heading::MACHINE)]
    pub(super) wait: bool,
    /// Trust a plan owned by another user (its commands and system settings), and allow `ping -f` to other hosts
    #[arg(long, help_heading = heading::MACHINE)]
    pub(super) yes: bool,
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
pub(super) struct ReportArguments {
    /// Directories of runs, compared on one page [default: the latest below runs/]
    #[arg(value_name = "RUN")]
    pub(super) runs: Vec<PathBuf>,
    /// File to write [default: report.html in the run's directory; of several runs, here]
    #[arg(short, long, value_name = "FILE")]
    pub(super) output: Option<PathBuf>,
    /// Page, or pictures, one file a plot (report-histogram.gnuplot, report-1-percentiles.svg)
    #[arg(long, value_enum, default_value = "html")]
    pub(super) format: ReportFormat,
}

/// Format of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum ReportFormat {
    /// A page for a browser
    Html,
    /// Scripts for gnuplot, with their data: histogram and CCDF
    Gnuplot,
    /// The pictures of the page
    Svg,
}

#[derive(Debug, Args)]
pub(super) struct RecoverArguments {
    /// Wait for other measurements on this machine to end
    #[arg(long)]
    pub(super) wait: bool,
    /// Output format
    #[arg(long, value_enum, default_value = "text")]
    pub(super) format: Format,
}

/// Parsed by the rules of getopt: `-h` of cyclictest is the histogram.
#[derive(Debug, Args)]
#[command(disable_help_flag = true)]
pub(super) struct DropInArguments {
    /// Options of that program; see --help
    #[arg(value_name = "OPTIONS", trailing_var_arg = true, allow_hyphen_values = true)]
    pub(super) words: Vec<OsString>,
    /// Called by the name of that program, not as a command.
    #[arg(skip)]
    pub(super) is_drop_in: bool,
}

#[derive(Debug, Args)]
pub(super) struct CompletionArguments {
    /// Shell that reads the script
    pub(super) shell: Shell,
}

#[derive(Debug, Args)]
pub(super) struct ManArguments {
    /// Existing directory, e.g. /usr/local/share/man/man1
    pub(super) dir: PathBuf,
}

#[derive(Debug, Args)]
pub(super) struct HelpArguments {
    /// Command, e.g. measure cost; or a topic, e.g. loads, findings; `topics` lists them [default: all commands]
    #[arg(value_name = "NAME")]
    pub(super) path: Vec<String>,
}

/// Format of a result.
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

fn prepare(text: &str) -> Result<Prepare, String> {
    text.parse().map_err(|err: punctual_model::PrepareError| err.to_string())
}

fn requirement(text: &str) -> Result<Requirement, String> {
    let mut require = Requirement::default();
    require.set_all(text).map_err(|err| err.to_string())?;
    Ok(require)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_read_alone_as_among_all_others() {
        for (line, is_alone) in [
            ("cell --progress --parent 7 --lock 3", true),
            ("cell --beside-guest --progress", false),
            ("measure", true),
            ("measure clock_nanosleep --policy fifo:80 --period 100us --load messaging --require max=1ms", true),
            ("measure sleep --runtime c", true),
            ("measure --period 0", false),
            ("measure --help", false),
            ("measure help", false),
            ("run --quick --set policy=fifo:80 --out runs/a", true),
            ("run --resume", false),
            ("show", false),
        ] {
            let words: Vec<OsString> = format!("punctual {line}").split(' ').map(OsString::from).collect();
            let alone = Command::alone(&words);
            assert_eq!(alone.is_some(), is_alone, "{line}");
            let among_all = || Arguments::from_arg_matches(&command().try_get_matches_from(&words).unwrap()).unwrap();
            if let Some(alone) = alone {
                assert_eq!(format!("{alone:?}"), format!("{:?}", among_all().command), "{line}");
            }
        }
    }
}
