//! Invocations found in use, and invocations that must be rejected.

use super::*;

fn words(line: &str) -> Vec<String> {
    // A quoted word keeps its blanks: rteval passes "-h 3500" as one word.
    let mut words = Vec::new();
    for (index, part) in line.split('"').enumerate() {
        if index % 2 == 1 {
            words.push(part.to_owned());
        } else {
            words.extend(part.split_whitespace().map(str::to_owned));
        }
    }
    words
}

fn read_line(line: &str) -> Result<Options, String> {
    match read(&words(line), &"0-3".parse().unwrap(), None)? {
        Invocation::Measure(options) => Ok(*options),
        other => panic!("{line}: {other:?}"),
    }
}

/// Summary of a measurement: each thread's CPU, policy and interval; then all differences from the defaults.
fn gist(options: &Options) -> String {
    let mut text = Vec::new();
    for thread in &options.threads {
        let cpu = thread.cpu.map_or("any".to_owned(), |cpu| cpu.to_string());
        text.push(format!("{cpu}={}/{}", thread.policy, thread.interval_us));
    }
    let mut add = |is_given: bool, what: String| {
        if is_given {
            text.push(what);
        }
    };
    add(options.method != Method::CLOCK_NANOSLEEP, options.method.to_string());
    add(options.duration.is_some(), format!("D{}", options.duration.unwrap_or_default()));
    add(options.loops.is_some(), format!("l{}", options.loops.unwrap_or_default()));
    if let Some(histogram) = &options.histogram {
        let letter = if histogram.of_all { 'H' } else { 'h' };
        add(true, format!("{letter}{}{}", histogram.rows, histogram.file.as_deref().unwrap_or_default()));
    }
    add(options.break_above.is_some(), format!("b{}", options.break_above.unwrap_or_default()));
    add(options.trace_mark, "mark".to_owned());
    add(options.smi, "smi".to_owned());
    add(options.json.is_some(), format!("json={}", options.json.clone().unwrap_or_default()));
    add(options.lock_memory, "m".to_owned());
    add(options.quiet, "q".to_owned());
    add(options.verbose, "v".to_owned());
    add(options.nanoseconds, "N".to_owned());
    add(options.reduce > 1, format!("o{}", options.reduce));
    add(options.main_affinity.is_some(), format!("main={}", options.main_affinity.clone().unwrap_or_default()));
    add(options.cpu_dma_latency_us != Some(0), format!("dma={:?}", options.cpu_dma_latency_us));
    add(options.start != Start::Spread, format!("{:?}", options.start));
    add(options.layout != Layout::V2_4, format!("{:?}", options.layout));
    add(!options.notes.is_empty(), format!("[{}]", options.notes.join("; ")));
    text.join(" ")
}

const N_NOTE: &str = "[-n has no effect: clock_nanosleep is the default]";

#[test]
fn every_invocation_in_use_is_understood() {
    for (line, gist_of_it) in [
        // LAVA test-definitions
        ("-q -p 98 -i 1000 -t 1 -a 0 -D 5m -m --json=out.json", "0=fifo:98/1000 D5min json=out.json m q"),
        ("-q -p 98 -i 1000 -t 1 -a 0 -D 5m -h 100 -m --json=o", "0=fifo:98/1000 D5min h100 json=o m q"),
        (
            "-q -p 98 -i 1000 -t 4 -a all -D 5m -m --json=o",
            "0=fifo:98/1000 1=fifo:98/1500 2=fifo:98/2000 3=fifo:98/2500 D5min json=o m q",
        ),
        // KernelCI
        (
            "-q -t 2 -a 0 -p 98",
            "0=fifo:98/1000 0=fifo:98/1500 q [WARN: several threads on CPU 0 delay each other; use one a CPU: -S, or a \
             smaller -t]",
        ),
        // oe-core rt_bmark.py
        ("-S -p 99 -q -i 100 -d 20 -l 30000", "0=fifo:99/100 1=fifo:99/120 2=fifo:99/140 3=fifo:99/160 l30000 q"),
        // rteval
        ("-i100 -qmu \"-h 3500\" -p95 -t2 -a1,3", "1=fifo:95/100 3=fifo:95/100 h3500 m q"),
        (
            "-i100 -qmu \"-h 3500\" -p95 -t2 -a1,3 --default-system -b50 --tracemark",
            "1=fifo:95/100 3=fifo:95/100 h3500 b50 mark m q dma=None [WARN: not setting cpu_dma_latency from cyclictest]",
        ),
        // OSADL and its clones
        (
            "-l100000000 -m -Sp90 -i200 -h400 -q",
            "0=fifo:90/200 1=fifo:90/200 2=fifo:90/200 3=fifo:90/200 l100000000 h400 m q",
        ),
        (
            "-l100000000 -m -Sp99 -i200 -h400 -q",
            "0=fifo:99/200 1=fifo:99/200 2=fifo:99/200 3=fifo:99/200 l100000000 h400 m q",
        ),
        ("-l100000000 -m -n -a0 -t1 -p99 -i200 -h400 -q -v", &format!("0=fifo:99/200 l100000000 h400 m q v {N_NOTE}")),
        // OpenShift cnf-tests
        (
            "--duration 15s --priority 95 --threads 2 --affinity 1,3 --histogram 30 --interval 1000 --mlockall \
             --mainaffinity 0 --quiet",
            "1=fifo:95/1000 3=fifo:95/1000 D15s h30 m q main=0",
        ),
        // crucible
        (
            "--policy fifo --priority 95 --interval 100 --histofall 100 --histfile F --duration 60 --quiet --affinity 2-3 \
             --threads 2 --mlockall --json F --mainaffinity 1 --smi --breaktrace=30",
            "2=fifo:95/100 3=fifo:95/100 D1min H100F b30 smi json=F m q main=1",
        ),
        // NI
        (
            "--smp --priority=98 --mlockall --interval=997 --quiet --duration=8h --histofall=1000 --histfile=F",
            "0=fifo:98/997 1=fifo:98/997 2=fifo:98/997 3=fifo:98/997 D8h H1000F m q",
        ),
        // mmtests
        (
            "--mlockall -p98 --threads 2 -a --duration=600 --histogram=500 --interval=200 --quiet",
            "0=fifo:98/200 1=fifo:98/200 D10min h500 m q",
        ),
        ("--mlockall -p98 --threads 2 -a --duration=600 --interval=200 -v", "0=fifo:98/200 1=fifo:98/700 D10min m v"),
        // Ubuntu
        (
            "--mlockall --smp --priority=80 --interval=200 --distance=0",
            "0=fifo:80/200 1=fifo:80/200 2=fifo:80/200 3=fifo:80/200 m",
        ),
        // README, tutorials
        ("-a -t -n -p99", &format!("0=fifo:99/1000 1=fifo:99/1500 2=fifo:99/2000 3=fifo:99/2500 {N_NOTE}")),
        (
            "-p 80 -t5 -n",
            "0=fifo:80/1000 1=fifo:80/1500 2=fifo:80/2000 3=fifo:80/2500 0=fifo:80/3000 [-n has no effect: clock_nanosleep is \
             the default; WARN: several threads on CPU 0 delay each other; use one a CPU: -S, or a smaller -t]",
        ),
        // rteval without an interval
        ("\"\" -qmu \"-h 3500\" -p95 -t2 -a0-1", "0=fifo:95/1000 1=fifo:95/1000 h3500 m q"),
        // yardstick
        (
            "-i 1000 -p 99 -l 1000 -t 1 -h 90 -m -n -q --notrace",
            "0=fifo:99/1000 l1000 h90 m q [-n has no effect: clock_nanosleep is the default; --notrace has no effect: no tracer is switched on]",
        ),
        // m4r1k/Cyclictest_and_Plot, OSADL's -U
        (
            "--nanosleep --numa -p 99 -q -i 200 -h 400",
            "0=fifo:99/200 1=fifo:99/200 2=fifo:99/200 3=fifo:99/200 h400 q [--nanosleep has no effect: clock_nanosleep is the default; --numa is read as -S: a thread on each CPU]",
        ),
        (
            "-l100000000 -m -Up99 -i200 -h400 -q",
            "0=fifo:99/200 1=fifo:99/200 2=fifo:99/200 3=fifo:99/200 l100000000 h400 m q [-U is read as -S: a thread on each CPU]",
        ),
        ("", "0=other/1000"),
    ] {
        let options = read_line(line).unwrap_or_else(|err| panic!("{line}: {err}"));
        assert_eq!(gist(&options), gist_of_it, "{line}");
    }
}

#[test]
fn what_options_mean_together() {
    for (line, gist_of_it) in [
        ("-t 2 -a !0", "1=other/1000 2=other/1500"),
        ("-t3 -a 3-2,1 -d0", "-a: invalid CPU list `3-2,1`: expected a list like 0-3,5"),
        (
            "-t3 -a 2-3 -d 0",
            "2=other/1000 3=other/1000 2=other/1000 [WARN: several threads on CPU 2 delay each other; use one a CPU: -S, \
             or a smaller -t]",
        ),
        ("-t -a 1-2", "1=other/1000 2=other/1500"),
        (
            "-S -t1 -a0",
            "0=other/1000 1=other/1500 2=other/2000 3=other/2500 [WARN: -t ignored due to smp mode; WARN: -a ignored due to smp mode]",
        ),
        ("--compat 2.7", "any=other/1000 V2_7"),
        ("--compat=2.7 -a", "0=other/1000 V2_7"),
        (
            "--compat=2.7 -t2 -S",
            "0=other/1000 1=other/1500 2=other/2000 3=other/2500 V2_7 [WARN: -t ignored due to smp mode]",
        ),
        ("-t2 --priospread -p 3", "0=fifo:3/1000 1=fifo:2/1500"),
        (
            "-t2 --priospread",
            "0=fifo:3/1000 1=fifo:2/1500 [defaulting realtime priority to 3; policy and priority don't match: setting policy to SCHED_FIFO]",
        ),
        ("--policy=rr -p5", "0=rr:5/1000"),
        ("--policy RR", "0=rr:2/1000 [defaulting realtime priority to 2]"),
        ("-p 0", "0=fifo:2/1000 [defaulting realtime priority to 2]"),
        ("-p 0 -t3 -d0", "0=fifo:4/1000 1=fifo:4/1000 2=fifo:4/1000 [defaulting realtime priority to 4]"),
        ("-y rr -p5", "0=rr:5/1000"),
        ("-e 30 -X", "0=other/1000 dma=Some(30) [-X has no effect]"),
        ("-Q -t2 -p3", "0=fifo:3/1000 1=fifo:2/1500"),
        ("--policy=normal", "0=other/1000"),
        ("--policy=other -p0", "0=other/1000"),
        ("--policy=batch", "0=batch/1000"),
        ("--policy=idle", "0=idle/1000"),
        ("-r", "0=other/1000 clock_nanosleep:relative"),
        ("-rc1", "0=other/1000 clock_nanosleep:relative:realtime"),
        ("-s", "0=other/1000 nanosleep"),
        ("-x --clock=1", "0=other/1000 posix_timer:realtime"),
        ("-A -t1", "0=other/1000 Aligned(Span(0))"),
        ("-A 7", "0=other/1000 Aligned(Span(7000))"),
        ("--aligned=7", "0=other/1000 Aligned(Span(7000))"),
        ("--secaligned 9", "0=other/1000 SecAligned(Span(9000))"),
        ("-d10 -h5", "0=other/1000 h5 [WARN: distance is ignored and set to 0, if histogram enabled]"),
        ("-h3 -H4", "0=other/1000 H4"),
        ("-D 2d -l0", "0=other/1000 D2d"),
        ("-D0", "0=other/1000"),
        ("--latency=30", "0=other/1000 dma=Some(30)"),
        ("--laptop --latency=30", "0=other/1000 dma=None [WARN: not setting cpu_dma_latency to save battery power]"),
        ("-vo 3 -N", "0=other/1000 v N o3"),
        ("--tracemark", "0=other/1000 mark [--tracemark requires -b]"),
        ("--dbg_cyclictest", "0=other/1000 [--dbg_cyclictest has no effect]"),
        ("-i10 -i100000000", "0=other/100000000"),
    ] {
        let found = read_line(line).map_or_else(|err| err, |options| gist(&options));
        assert_eq!(found, gist_of_it, "{line}");
    }
}

const TRACED: &str = "it enables a kernel tracer, which changes latency; start one with trace-cmd(1)";

const SMP: &str = "it means -s (nanosleep), -m and -p; for one thread on each CPU use --smp or -S, like -S -m -p80";

/// Lines with the reason for which each is refused; `SMP` and `TRACED` stand for the texts above.
const REFUSED: &[(&str, &str)] = &[
    ("-D foo", "-D: invalid duration `foo`: expected seconds, or a number with s, m, h or d, like 90s"),
    ("-D 5x", "-D: invalid duration `5x`: expected seconds, or a number with s, m, h or d, like 90s"),
    ("-D -1", "-D: invalid duration `-1`: expected seconds, or a number with s, m, h or d, like 90s"),
    ("-D m", "-D: invalid duration `m`: expected seconds, or a number with s, m, h or d, like 90s"),
    ("-D 367d", "-D: invalid duration `367d`: expected at most 366d"),
    ("-i abc", "-i: invalid interval in us `abc`: expected a number from 10 to 100000000"),
    ("-i 0", "-i: invalid interval in us `0`: expected a number from 10 to 100000000"),
    ("-i -5", "-i: invalid interval in us `-5`: expected a number from 10 to 100000000"),
    ("-i 9", "-i: invalid interval in us `9`: expected a number from 10 to 100000000"),
    ("-i 200000000", "-i: invalid interval in us `200000000`: expected a number from 10 to 100000000"),
    ("-i 1000x", "-i: invalid interval in us `1000x`: expected a number from 10 to 100000000"),
    ("-i 99999999 -t2", "-d: the last of 2 threads has an interval of 100000499 us; the limit is 100 s"),
    ("-l abc", "-l: invalid number of loops `abc`: expected a number from 0 to 2147483647"),
    ("-l +5", "-l: invalid number of loops `+5`: expected a number from 0 to 2147483647"),
    ("-p 100", "-p: invalid priority `100`: expected a number from 0 to 99"),
    ("-p -p", "-p: invalid priority `-p`: expected a number from 0 to 99"),
    ("-smp -p 80", "ambiguous option `-smp`: SMP"),
    ("-smp80", "ambiguous option `-smp80`: SMP"),
    ("-t0", "-t: invalid number of threads `0`: expected a number from 1 to 1024"),
    ("-t foo", "-t: invalid number of threads `foo`: expected a number from 1 to 1024"),
    ("-t2 --priospread -p1", "-p: 2 threads from priority 1 exceed the range 1 to 99; use another -p"),
    ("-t99 --policy=fifo", "-p: 99 threads from priority 100 exceed the range 1 to 99; use another -p"),
    ("--policy=foo", "--policy: unknown policy `foo` (known: other normal batch idle fifo rr)"),
    ("--policy=deadline", "--policy: unsupported: SCHED_DEADLINE; see `punctual measure deadline`"),
    ("--policy=idle -p5", "--policy=idle has no priority; leave out -p and --priospread, or use --policy=fifo"),
    ("-a 7", "-a: cannot use CPU 7: this process may use 0-3"),
    ("-a !0-3", "-a: invalid CPUs `!0-3`: none of 0-3 is left"),
    ("-a x", "-a: invalid CPU list `x`: expected a list like 0-3,5"),
    ("--mainaffinity 9", "--mainaffinity: cannot use CPU 9: this process may use 0-3"),
    ("-c 2", "-c: invalid clock `2`: expected 0 (monotonic) or 1 (realtime)"),
    ("-h 0", "-h: invalid number of rows `0`: expected a number from 1 to 10000000"),
    ("-h 10000001", "-h: invalid number of rows `10000001`: expected a number from 1 to 10000000"),
    ("-b", "-b needs a value; see --help"),
    ("-b 0", "-b: invalid latency `0`: expected a number from 1 to 2147483647"),
    ("-o2", "-o is only meaningful with -v"),
    ("--histfile=x", "--histfile requires -h or -H"),
    ("--json=", "--json needs a file name"),
    ("-s -x", "-s and -x conflict; use one of them"),
    ("-s -c1", "-s: nanosleep uses the monotonic clock; leave out -c, or -s"),
    ("-x -r", "-r does not apply to a periodic timer; leave out -r, or -x"),
    ("-A --secaligned", "--aligned and --secaligned conflict; use one of them"),
    ("--smp=3", "unexpected value for --smp"),
    ("--nosuch", "unknown option `--nosuch`; see --help"),
    ("-q word", "unexpected argument `word`; see --help"),
    ("--hist=3", "ambiguous option `--hist`: expected one of --histogram --histofall --histfile"),
    ("--compat=3", "--compat: invalid layout `3`: expected 2.4 (up to 2.6) or 2.7 (and later)"),
    ("-F x", "unsupported: -F; read the status with SIGUSR1 instead"),
    ("--spike=5", "unsupported: --spike; `-v` prints every value, with its cycle"),
    ("--spike-nodes=5", "unsupported: --spike-nodes; `-v` prints every value, with its cycle"),
    ("-qfb 50", "unsupported: -f; TRACED"),
    ("--ftrace", "unsupported: --ftrace; TRACED"),
    ("-T wakeup", "unsupported: -T; TRACED"),
    ("--nano", "unknown option `--nano`; see --help"),
    ("-g 5", "unsupported: -g; `-H` has a column for all threads"),
    ("--deepest-idle-state=1", "unsupported: --deepest-idle-state; --latency limits idle states by their exit latency"),
];

#[test]
fn what_the_original_hangs_on_or_changes_in_silence_is_refused() {
    for (line, message) in REFUSED {
        let message = message.replace("SMP", SMP).replace("TRACED", TRACED);
        assert_eq!(read_line(line).map(|options| gist(&options)), Err(message), "{line}");
    }
}

#[test]
fn help_version_and_the_environment() {
    let usable = "0-1".parse().unwrap();
    assert_eq!(read(&words("-q --help"), &usable, None), Ok(Invocation::Help));
    assert_eq!(read(&words("-?"), &usable, None), Ok(Invocation::Help));
    assert_eq!(read(&words("--version"), &usable, None), Ok(Invocation::Version));
    let layout = |line: &str, environment| match read(&words(line), &usable, environment) {
        Ok(Invocation::Measure(options)) => options.layout,
        other => panic!("{other:?}"),
    };
    assert_eq!(layout("", Some("2.7")), Layout::V2_7);
    assert_eq!(layout("--compat 2.4", Some("2.7")), Layout::V2_4);
    let message = "PUNCTUAL_CYCLICTEST_COMPAT: invalid layout `new`: expected 2.4 (up to 2.6) or 2.7 (and later)";
    assert_eq!(read(&[], &usable, Some("new")), Err(message.to_owned()));
}
