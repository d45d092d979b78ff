//! Nothing stays behind: no process of a load, however the cell or the campaign ended.

use crate::program::{
    Scratch, UNPRIVILEGED, a_cpu, cell, comes_true, command, is_installed, is_root, machine, record, running,
    start_cell, traces, wrapped,
};
use rt::sys::process;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

#[test]
fn a_load_works_in_every_second_and_is_gone_with_its_cell() {
    let _machine = machine();
    let record = record(start_cell(command("cell"), &cell("other", "messaging:groups=2", &a_cpu().to_string(), "2s")));
    assert!(running().is_empty(), "{:?}", running());
    let [load] = &record.loads[..] else { panic!("one load") };
    assert_eq!((load.operation.as_str(), load.workers), ("message", 80));
    assert!(load.seconds.len() >= 2 && load.seconds.iter().all(|second| second.operations > Some(0)), "{load:?}");
}

#[test]
fn a_cell_killed_at_any_instant_takes_its_load_along() {
    let _machine = machine();
    for ms in [1, 5, 10, 20, 40, 80, 160, 320, 640] {
        let mut child = start_cell(command("cell"), &cell("other", "messaging", &a_cpu().to_string(), "5s"));
        std::thread::sleep(Duration::from_millis(ms));
        process::signal(child.id(), libc::SIGKILL).unwrap();
        child.wait().unwrap();
        assert!(comes_true(|| running().is_empty()), "killed after {ms} ms: {:?} left", running());
    }
}

#[test]
fn a_cell_does_not_outlive_a_parent_killed_just_after_starting_it() {
    let _machine = machine();
    for ms in 0..8 {
        let mut measure = command("measure --wait --load messaging:groups=1 --duration 20s");
        let mut parent = measure.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        assert!(comes_true(|| running().len() > 1), "the cell is there");
        std::thread::sleep(Duration::from_millis(ms));
        process::signal(parent.id(), libc::SIGKILL).unwrap();
        parent.wait().unwrap();
        let killed = Instant::now();
        assert!(comes_true(|| running().is_empty()), "killed after {ms} ms: {:?} left", running());
        assert!(killed.elapsed() < Duration::from_secs(10), "long before the cell would have ended");
    }
}

/// Shared memory, semaphores and message queues of System V, and what stress-ng has of POSIX (sysvipc(7), shm_overview(7)).
fn shared_memory() -> Vec<String> {
    let tables = ["shm", "sem", "msg"].iter().filter_map(|table| {
        let text = std::fs::read_to_string(format!("/proc/sysvipc/{table}")).ok()?;
        Some(text.lines().skip(1).map(str::to_owned).collect::<Vec<_>>())
    });
    let files = std::fs::read_dir("/dev/shm").into_iter().flatten().flatten();
    let names = files.map(|file| file.file_name().to_string_lossy().into_owned());
    tables.flatten().chain(names.filter(|name| name.starts_with("stress-ng"))).collect()
}

/// A command that is killed in one test: itself or the campaign above it, by whom and with which load.
struct Victim<'a> {
    wrapper: &'a [&'a str],
    load: &'a str,
    /// Whether a whole `measure` is killed, and not only its cell.
    campaign: bool,
}

impl Victim<'_> {
    fn start(&self, scratch: &Scratch) -> Child {
        if self.campaign {
            let mut measure = wrapped(scratch, self.wrapper, "measure --wait --duration 20s --load");
            return measure.arg(self.load).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        }
        start_cell(wrapped(scratch, self.wrapper, "cell"), &cell("other", self.load, &a_cpu().to_string(), "20s"))
    }
}

#[test]
fn root_nothing_stays_after_sigkill_at_any_of_50_instants() {
    if !is_root() || !is_installed("setpriv", "util-linux") || !is_installed("prlimit", "util-linux") {
        return;
    }
    let _machine = machine();
    let scratch = Scratch::new("any-instant");
    let job = scratch.file("job.fio", "[j]\nfilename=laid-out\nsize=4m\nrw=randwrite\ntime_based\nruntime=3600\n");
    let fio = format!("fio:{}", job.display());
    let few_files = [&["prlimit", "--nofile=64"], UNPRIVILEGED].concat();
    let victims: Vec<Victim<'_>> = [
        (&["env"][..], "messaging:groups=2", false),
        (UNPRIVILEGED, "messaging:groups=2", false),
        (&["env"], "stress-ng:--shm 1 --shm-sysv 1 --sem-sysv 1 --msg 1 --mq 1", false),
        (UNPRIVILEGED, "stress-ng:--vm 1 --vm-bytes 16m --fork 1", true),
        (&["env"], &fio, true),
        (&few_files, "exec+pipe+tcp", false),
        (&["env"], "high+hackbench:-g 2", true),
        (UNPRIVILEGED, "files+hackbench:-g 2", false),
        (&few_files, "cmd:while :; do setsid sleep 30 & sleep 0.01; done", true),
        (&["env"], "ping:127.0.0.1", false),
    ]
    .map(|(wrapper, load, campaign)| Victim { wrapper, load, campaign })
    .into_iter()
    .filter(|victim| {
        ["stress-ng", "fio", "hackbench", "ping"]
            .iter()
            .all(|name| !victim.load.contains(name) || is_installed(name, name))
    })
    .collect();
    let shared_before = shared_memory();
    // Marsaglia's xorshift64, from another start each time, which a failure tells.
    let seed = u64::from(std::process::id()) << 20 | 1;
    let mut random = seed;
    for (round, victim) in (0..50).zip(victims.iter().cycle()) {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        // Most loads work after 10 to 300 ms.
        let instant = Duration::from_micros(random % 400_000);
        let mut child = victim.start(&scratch);
        std::thread::sleep(instant);
        process::signal(child.id(), libc::SIGKILL).unwrap();
        child.wait().unwrap();
        let what = format!("round {round} of seed {seed}, {} killed after {instant:?}", victim.load);
        assert!(comes_true(|| running().is_empty()), "{what}: {:?} left", running());
        assert!(comes_true(|| traces().is_empty()), "{what}: {:?} left", traces());
        assert_eq!(shared_memory(), shared_before, "{what}");
    }
}
