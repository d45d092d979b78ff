//! Options of oslat (rt-tests 2.4 to 2.10).

use crate::getopt::{self, ArgumentKind::Nothing, ArgumentKind::Value, OptionSpec, option};
use crate::option_values::{cpus, duration, number};
use punctual_model::{CpuSet, Nice, Policy, RtPriority, Span};

/// Requested action.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Invocation {
    Help,
    Version,
    Measure(Options),
}

/// Complete parameters of a measurement.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Options {
    pub(super) cpus: CpuSet,
    /// The CPUs as typed; `None`: all that this process may use.
    pub(super) typed_cpus: Option<String>,
    /// The CPU of the thread that prints; `None`: one that is not measured, if there is one.
    pub(super) main_cpu: Option<u32>,
    pub(super) policy: Policy,
    pub(super) duration: Span,
    /// Number of buckets, 1 us each; the last one has the longer gaps, too.
    pub(super) buckets: usize,
    /// Shortest gap, us, that all buckets are moved by.
    pub(super) bias: u64,
    pub(super) quiet: bool,
    pub(super) has_single_preheat: bool,
    /// Shortest gap, us, that ends the run and stops the trace.
    pub(super) trace_from: Option<u64>,
    pub(super) leaves_zeros_out: bool,
    pub(super) json: Option<String>,
}

/// Identifier of an option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Id {
    Bias,
    Buckets,
    CpuList,
    Duration,
    Help,
    Json,
    MainCpu,
    Priority,
    Quiet,
    SinglePreheat,
    TraceThreshold,
    Version,
    Width,
    Workload,
    WorkloadMemory,
    ZeroOmit,
}

const OPTIONS: &[OptionSpec<Id>] = &[
    option(Id::Buckets, Some('b'), "bucket-size", Value),
    option(Id::Bias, Some('B'), "bias", Nothing),
    option(Id::CpuList, Some('c'), "cpu-list", Value),
    option(Id::MainCpu, Some('C'), "cpu-main-thread", Value),
    option(Id::Duration, Some('D'), "duration", Value),
    option(Id::Priority, Some('f'), "rtprio", Value),
    option(Id::Help, Some('h'), "help", Nothing),
    option(Id::Json, None, "json", Value),
    option(Id::WorkloadMemory, Some('m'), "workload-mem", Value),
    option(Id::Quiet, Some('q'), "quiet", Nothing),
    option(Id::SinglePreheat, Some('s'), "single-preheat", Nothing),
    option(Id::TraceThreshold, Some('T'), "trace-threshold", Value),
    option(Id::Version, Some('v'), "version", Nothing),
    option(Id::Workload, Some('w'), "workload", Value),
    option(Id::Width, Some('W'), "bucket-width", Value),
    option(Id::ZeroOmit, Some('z'), "zero-omit", Nothing),
];

/// Parses a command line without the program's name. `usable` are the CPUs that this process may use. Errors: one line:
/// reason and advice.
pub(super) fn read(words: &[String], usable: &CpuSet) -> Result<Invocation, String> {
    let mut options = Options {
        cpus: usable.clone(),
        typed_cpus: None,
        main_cpu: None,
        policy: Policy::Other(Nice::default()),
        duration: Span::SECOND,
        buckets: 32,
        bias: 0,
        quiet: false,
        has_single_preheat: false,
        trace_from: None,
        leaves_zeros_out: false,
        json: None,
    };
    for given in getopt::options(OPTIONS, words)? {
        let (typed, text) = (given.typed.as_str(), given.value.unwrap_or_default());
        let whole = |what, range| number(typed, &text, what, range);
        match given.id {
            Id::Help => return Ok(Invocation::Help),
            Id::Version => return Ok(Invocation::Version),
            Id::Buckets => options.buckets = usize::try_from(whole("number of buckets", 5..=1024)?).unwrap_or(1024),
            // Readings take less than the shortest bucket, so that this is the shortest gap of every machine.
            Id::Bias => options.bias = 1,
            Id::CpuList => {
                options.cpus = cpus(typed, &text, usable)?;
                options.typed_cpus = Some(text);
            }
            Id::MainCpu => options.main_cpu = cpus(typed, &text, usable)?.iter().next(),
            Id::Duration => options.duration = duration(typed, &text.to_ascii_lowercase())?,
            Id::Priority => {
                let priority = whole("priority", 1..=99)?;
                let priority = u32::try_from(priority).ok().and_then(RtPriority::new);
                options.policy = priority.map_or(options.policy, Policy::Fifo);
            }
            Id::Json => options.json = Some(text),
            Id::Quiet => options.quiet = true,
            Id::SinglePreheat => options.has_single_preheat = true,
            Id::TraceThreshold => options.trace_from = Some(whole("gap in us", 1..=1_000_000_000)?),
            Id::ZeroOmit => options.leaves_zeros_out = true,
            Id::Workload if text == "no" => {}
            // Without a workload its memory means nothing, there as here.
            Id::WorkloadMemory => {}
            Id::Workload => {
                return Err(format!(
                    "unsupported: {typed} {text}: the loop does nothing but read the counter; run the work beside it, \
                     like: punctual measure noise --load memory"
                ));
            }
            Id::Width if text == "1000" => {}
            Id::Width => return Err(format!("unsupported: {typed} {text}: buckets are 1 us (1000); leave it out")),
        }
    }
    if options.duration == Span(0) {
        return Err("-D: invalid duration `0`: expected at least 1 s".to_owned());
    }
    Ok(Invocation::Measure(options))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<Options, String> {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        match read(&words, &[0, 1, 2, 3].into_iter().collect())? {
            Invocation::Measure(options) => Ok(options),
            other => Err(format!("{other:?}")),
        }
    }

    #[test]
    fn options_are_those_of_oslat() {
        let options = parsed("-c 1-3 -D 2M --rtprio=1 -b 64 -BqszT50 -C0 --js out.json -w no -m 4K -W 1000").unwrap();
        assert_eq!((options.cpus.to_string().as_str(), options.typed_cpus.as_deref()), ("1-3", Some("1-3")));
        assert_eq!((options.duration, options.policy.to_string().as_str()), (Span(120_000_000_000), "fifo:1"));
        assert_eq!((options.buckets, options.bias, options.trace_from, options.main_cpu), (64, 1, Some(50), Some(0)));
        assert!(options.quiet && options.has_single_preheat && options.leaves_zeros_out);
        assert_eq!(options.json.as_deref(), Some("out.json"));
        let default = parsed("").unwrap();
        assert_eq!((default.cpus.len(), default.duration, default.buckets), (4, Span::SECOND, 32));
    }

    #[test]
    fn what_is_not_done_is_refused() {
        for (line, refusal) in [
            (
                "-w memmove",
                "unsupported: -w memmove: the loop does nothing but read the counter; run the work beside it",
            ),
            ("-W 100", "unsupported: -W 100: buckets are 1 us (1000); leave it out"),
            ("-b 4", "-b: invalid number of buckets `4`: expected a number from 5 to 1024"),
            ("-c 7", "-c: cannot use CPU 7: this process may use 0-3"),
            ("-D 0", "-D: invalid duration `0`: expected at least 1 s"),
            ("-f 100", "-f: invalid priority `100`: expected a number from 1 to 99"),
            ("-T 0", "-T: invalid gap in us `0`"),
            ("-x", "unknown option `-x` in `-x`; see --help"),
            ("-h", "Help"),
            ("-v", "Version"),
        ] {
            let refused = parsed(line).unwrap_err();
            assert!(refused.starts_with(refusal), "{line}: {refused}");
        }
    }
}
