//! Captures: what is recorded is what trace-cmd and this program read, and nothing is left but the file.

use crate::program::{
    Scratch, UNPRIVILEGED, command, inconclusive, machine_and_scratch, punctual, run, set_mode, skip_unless, wrapped,
};
use crate::real::explain::{instances, left_behind};
use punctual_ftrace::DatFile;
use std::fs::File;
use std::path::Path;
use std::process::Command;

/// The number of events of a capture, and the names of the threads in them.
fn read(path: &Path) -> (u64, Vec<String>) {
    let mut file = DatFile::open(File::open(path).unwrap()).unwrap();
    let decoder = file.head.layouts.decoder().unwrap();
    let mut trace = decoder.begin(file.buffers[0].n_cpus());
    let mut events = 0;
    for cpu in 0..file.buffers[0].n_cpus() {
        let pages = file.pages(0, cpu).unwrap();
        let counted = decoder.read(&mut trace, cpu, &pages);
        assert_eq!(counted.damaged, 0, "CPU {cpu}");
        events += counted.events;
    }
    let machine = file.head.machine.unwrap();
    assert_eq!(Some(&machine.kernel), punctual_host::kernel_release().as_ref());
    assert_eq!((machine.architecture.as_str(), file.clock.as_str()), (std::env::consts::ARCH, "mono"));
    // The names of threads that do not appear in an event as well.
    let own = i32::try_from(std::process::id()).unwrap();
    assert!(!punctual_host::is_initial_pid_namespace() || file.head.names.contains_key(&own), "{own}");
    (events, trace.names.into_values().collect())
}

/// The number of events that trace-cmd reads; `None` where it is not installed.
fn read_by_trace_cmd(path: &Path) -> Option<u64> {
    let said = Command::new("trace-cmd").args(["report", "-i"]).arg(path).output().ok()?;
    assert!(said.status.success(), "{said:?}");
    let of_cpu = |word: &str| word.strip_prefix('[')?.strip_suffix(']')?.parse::<u32>().ok();
    let text = String::from_utf8_lossy(&said.stdout).into_owned();
    Some(text.lines().filter(|line| line.split_whitespace().any(|word| of_cpu(word).is_some())).count() as u64)
}

/// Nothing is left of a capture but these files.
#[track_caller]
fn expect_only(scratch: &Scratch, expected: &[&str]) {
    let entries = std::fs::read_dir(scratch.dir()).unwrap().flatten();
    let mut names: Vec<String> = entries.map(|entry| entry.file_name().into_string().unwrap()).collect();
    names.sort_unstable();
    assert_eq!(names, expected);
    assert_eq!(instances().map(|dir| left_behind(&dir)).unwrap_or_default(), Vec::<String>::new());
}

#[test]
fn root_a_capture_has_the_events_that_trace_cmd_reads() {
    skip_unless!(instances().is_some());
    let (_machine, scratch) = machine_and_scratch("capture");
    let path = scratch.path("board.dat");
    let capture = |more: &str| {
        let mut command = command(&format!("capture --for 1h --output {}", path.display()));
        run(command.args(more.split_whitespace()))
    };
    let said = capture("-- sleep 0.1").expect_success();
    expect_only(&scratch, &["board.dat"]);
    let shown = path.display().to_string();
    let last = said.last_line();
    assert!(last.starts_with(&format!("{shown}: ")), "{said:?}");
    assert!(last.ends_with(&format!("; next: punctual watch --from {shown}")), "{said:?}");
    let (events, names) = read(&path);
    if last.contains("no events lost") {
        assert!(names.iter().any(|name| name == "sleep"), "{names:?}");
    } else {
        inconclusive("events were lost");
    }
    match read_by_trace_cmd(&path) {
        Some(theirs) => assert_eq!(theirs, events),
        None => eprintln!("skipped: needs trace-cmd (apt-get install trace-cmd)"),
    }
    let before = std::fs::read(&path).unwrap();
    capture("")
        .expect_error(&format!("cannot write {shown}: it exists; remove it, or name another file with --output"));
    assert!(std::fs::read(&path).unwrap() == before);
    // A program that does not end is ended.
    std::fs::remove_file(&path).unwrap();
    capture("--most 1B -- sleep 1h").expect_success();
    assert!(read(&path).0 > 0);
    expect_only(&scratch, &["board.dat"]);
}

#[test]
fn root_a_capture_that_cannot_be_written_leaves_nothing() {
    skip_unless!(instances().is_some());
    let (_machine, scratch) = machine_and_scratch("capture-refused");
    let path = scratch.path("trace.dat");
    let options = format!("capture --for 300ms --output {}", path.display());
    punctual(&format!("{options} -- /no/such/program"))
        .expect_error("/no/such/program is not installed (searched in PATH); install it, or name its path");
    expect_only(&scratch, &[]);
    set_mode(scratch.dir(), 0o777);
    let said = run(&mut wrapped(&scratch, UNPRIVILEGED, &options));
    let refused = "punctual: cannot capture: tracing needs root, and this process runs as user 54321; run as root";
    assert!(said.status == 1 && said.last_line() == refused, "{said:?}");
    expect_only(&scratch, &["punctual"]);
}
