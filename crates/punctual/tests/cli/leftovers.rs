//! Cleanup: no process of a load remains, however the cell or the campaign ended.

use crate::placement::load_of;
use crate::program::{
    Scratch, Start, UNPRIVILEGED, a_cpu, cell, comes_true, command, is_installed, is_root, kill_and_wait, machine,
    machine_and_scratch, record, run, running, skip_unless, start_cell, traces, wait_for_progress, wrapped,
};
use std::process::Child;
use std::time::{Duration, Instant};
use sys::process;

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
        kill_and_wait(&mut child);
        assert!(comes_true(|| running().is_empty()), "killed after {ms} ms: {:?} left", running());
    }
}

#[test]
fn a_cell_does_not_outlive_a_parent_killed_just_after_starting_it() {
    let _machine = machine();
    for ms in 0..8 {
        let mut measure = command("measure --wait --load messaging:groups=1 --duration 20s");
        let mut parent = measure.start_silent();
        assert!(comes_true(|| running().len() > 1), "the cell is there");
        std::thread::sleep(Duration::from_millis(ms));
        kill_and_wait(&mut parent);
        let killed = Instant::now();
        assert!(comes_true(|| running().is_empty()), "killed after {ms} ms: {:?} left", running());
        assert!(killed.elapsed() < Duration::from_secs(10), "long before the cell would have ended");
    }
}

/// Whether `directory`, in which a load made a directory, is empty and no trace of the load exists elsewhere.
fn is_clean(directory: &std::path::Path) -> bool {
    std::fs::read_dir(directory).unwrap().next().is_none() && traces().is_empty()
}

#[test]
fn a_directory_that_was_named_is_removed_when_its_supervisor_is_killed() {
    let _machine = machine();
    for load in ["disk", "files"] {
        let scratch = Scratch::new("supervisor");
        let load = format!("{load}:{}", scratch.dir().display());
        // The cell survives and cleans up at its end.
        let start = || {
            let mut child = start_cell(command("cell --progress"), &cell("other", &load, &a_cpu().to_string(), "60s"));
            wait_for_progress(&mut child);
            let supervisors = load_of(child.id()).0;
            assert!(!is_clean(scratch.dir()) && supervisors.len() == 1, "{supervisors:?}");
            (child, supervisors[0])
        };
        let (mut child, supervisor) = start();
        process::signal(supervisor, libc::SIGKILL).unwrap();
        process::signal(child.id(), libc::SIGINT).unwrap();
        child.wait().unwrap();
        assert!(comes_true(|| running().is_empty()) && is_clean(scratch.dir()), "{load}: {:?}", traces());
        // Both are killed: the note of the cell leads to the directory.
        let (mut child, supervisor) = start();
        process::signal(child.id(), libc::SIGSTOP).unwrap();
        process::signal(supervisor, libc::SIGKILL).unwrap();
        kill_and_wait(&mut child);
        assert!(comes_true(|| running().is_empty()) && !is_clean(scratch.dir()), "{load}");
        let said = run(&mut command("recover --wait"));
        let told = format!("removed, left behind by a killed process: {}/punctual-load-", scratch.dir().display());
        assert!(said.status == 0 && said.stdout.contains(&told) && is_clean(scratch.dir()), "{load}: {said:?}");
    }
}

#[test]
fn a_command_ends_with_its_supervisor() {
    let (_machine, scratch) = machine_and_scratch("supervisor-command");
    // With a control group and without, if this test can have both.
    let both = is_root() && is_installed("setpriv", "util-linux");
    for wrapper in [&["env"][..], UNPRIVILEGED].into_iter().filter(|wrapper| both || wrapper[0] == "env") {
        let start = |load: &str| {
            let mut command = wrapped(&scratch, wrapper, "load");
            command.arg(load).start_silent()
        };
        for load in ["cmd:sleep 600 & sleep 600", "cmd:setsid sleep 600 & sleep 600"] {
            let mut child = start(load);
            // This program, its supervisor, a shell, two commands.
            assert!(comes_true(|| running().len() == 5), "{wrapper:?} {load}: {:?}", running());
            process::signal(load_of(child.id()).0[0], libc::SIGKILL).unwrap();
            assert_eq!(child.wait().unwrap().code(), Some(1));
            assert!(comes_true(|| running().is_empty()), "{wrapper:?} {load}: {:?} left", running());
        }
        // Both are killed.
        let mut child = start("cmd:setsid sleep 600 & sleep 600");
        assert!(comes_true(|| running().len() == 5), "{wrapper:?}: {:?}", running());
        let supervisor = load_of(child.id()).0[0];
        process::signal(child.id(), libc::SIGSTOP).unwrap();
        process::signal(supervisor, libc::SIGKILL).unwrap();
        kill_and_wait(&mut child);
        let is_over = || run(&mut command("recover --wait")).status == 0 && running().is_empty();
        assert!(comes_true(is_over), "{wrapper:?}: {:?} left", running());
        // Killed by its own command, before its first output.
        let mut child = start("cmd:kill -9 $PPID; sleep 600");
        assert_eq!(child.wait().unwrap().code(), Some(1));
        assert!(comes_true(|| running().is_empty()), "{wrapper:?}: {:?} left", running());
        assert!(traces().is_empty(), "{wrapper:?}: {:?}", traces());
    }
}

/// Shared memory, semaphores and message queues of System V, and the POSIX objects of stress-ng (sysvipc(7),
/// shm_overview(7)).
fn shared_memory() -> Vec<String> {
    let tables = ["shm", "sem", "msg"].iter().filter_map(|table| {
        let text = std::fs::read_to_string(format!("/proc/sysvipc/{table}")).ok()?;
        Some(text.lines().skip(1).map(str::to_owned).collect::<Vec<_>>())
    });
    let files = std::fs::read_dir("/dev/shm").into_iter().flatten().flatten();
    let names = files.map(|file| file.file_name().to_string_lossy().into_owned());
    tables.flatten().chain(names.filter(|name| name.starts_with("stress-ng"))).collect()
}

/// A command to kill: its wrapper, its load, and the process that is killed.
struct Victim<'a> {
    wrapper: &'a [&'a str],
    load: &'a str,
    /// Whether a whole `measure` is killed instead of its cell.
    campaign: bool,
}

impl Victim<'_> {
    fn start(&self, scratch: &Scratch) -> Child {
        if self.campaign {
            let mut measure = wrapped(scratch, self.wrapper, "measure --wait --duration 20s --load");
            return measure.arg(self.load).start_silent();
        }
        start_cell(wrapped(scratch, self.wrapper, "cell"), &cell("other", self.load, &a_cpu().to_string(), "20s"))
    }
}

#[test]
fn root_nothing_stays_after_sigkill_at_any_of_50_instants() {
    skip_unless!(is_root() && is_installed("setpriv", "util-linux") && is_installed("prlimit", "util-linux"));
    let (_machine, scratch) = machine_and_scratch("any-instant");
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
    // Marsaglia's xorshift64 with a new seed each time, which a failure prints.
    let seed = u64::from(std::process::id()) << 20 | 1;
    let mut random = seed;
    for (round, victim) in (0..50).zip(victims.iter().cycle()) {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        // Most loads run after 10 to 300 ms.
        let instant = Duration::from_micros(random % 400_000);
        let mut child = victim.start(&scratch);
        std::thread::sleep(instant);
        kill_and_wait(&mut child);
        let what = format!("round {round} of seed {seed}, {} killed after {instant:?}", victim.load);
        assert!(comes_true(|| running().is_empty()), "{what}: {:?} left", running());
        assert!(comes_true(|| traces().is_empty()), "{what}: {:?} left", traces());
        assert_eq!(shared_memory(), shared_before, "{what}");
    }
}

/// System V semaphore sets of the suite, recognized by seven members and their key.
fn sets_of_the_suite() -> Vec<String> {
    let list = std::fs::read_to_string("/proc/sysvipc/sem").unwrap();
    let is_ours = |line: &&str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let key = words[0].parse::<i32>().map_or(0, i32::cast_unsigned);
        sys::ipc::maker_of_semaphores(key, words[3].parse().unwrap_or(0)).is_some()
    };
    list.lines().filter(is_ours).map(str::to_owned).collect()
}

#[test]
fn root_semaphores_of_the_suite_go_with_it_or_are_recovered() {
    skip_unless!(is_root());
    let _machine = machine();
    // Other processes may use this key, but not while this test holds the machine.
    assert_eq!(sets_of_the_suite(), [""; 0]);
    let kill_all = || {
        for _ in 0..3 {
            running().into_iter().for_each(|pid| drop(process::signal(pid, libc::SIGKILL)));
        }
    };
    for ms in (0..12).map(|n| 150 + 83 * n) {
        let mut load = command("load cost --for 20s").start_silent();
        std::thread::sleep(Duration::from_millis(ms));
        kill_all();
        load.wait().unwrap();
        assert!(comes_true(|| running().is_empty()), "{:?} left", running());
        assert_eq!(sets_of_the_suite(), [""; 0], "a namespace of its own goes with the last process in it");
    }
    // A single operation has no namespace, like a load of a user without the right to one.
    let mut suite = command("operation ipc/semaphore 1000000000");
    let mut suite = suite.start_silent();
    assert!(comes_true(|| !sets_of_the_suite().is_empty()), "it has made one");
    kill_all();
    suite.wait().unwrap();
    assert!(comes_true(|| running().is_empty()), "{:?} left", running());
    assert!(!sets_of_the_suite().is_empty(), "the kernel keeps it");
    let said = crate::program::punctual("recover");
    assert!(said.stdout.contains("removed, left behind by a killed process: /proc/sysvipc/sem "), "{said:?}");
    assert_eq!((said.status, sets_of_the_suite()), (0, Vec::new()));
}
