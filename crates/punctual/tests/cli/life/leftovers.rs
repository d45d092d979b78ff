//! Cleanup: no process of a load remains, however the cell or the campaign ended.

use crate::places::{Places, go_on};
use crate::program::{
    Scratch, Start, UNPRIVILEGED, a_cpu, cell, command, inconclusive, is_installed, is_root, kill_and_wait, machine,
    machine_and_scratch, record, run, running, skip_unless, start_cell, traces, wait_for_progress, wrapped,
};
use crate::real::placement::load_of;
use punctual_model::{Cell, Conditions, Span};
use punctual_sys::process;
use punctual_sys::testing::comes_true;
use std::process::Child;

#[test]
fn a_load_is_gone_with_its_cell() {
    let _machine = machine();
    let record = record(start_cell(command("cell"), &cell("other", "messaging:groups=2", &a_cpu().to_string(), "1s")));
    assert!(running().is_empty(), "{:?}", running());
    let [load] = &record.loads[..] else { panic!("one load") };
    assert_eq!((load.operation.as_str(), load.workers), ("message", 80));
    if !load.seconds.iter().any(|second| second.operations > Some(0)) {
        inconclusive("no message in the measured time");
    }
}

/// Places of a cell with a load of files and one of a program, which must be visited.
const PLACES_OF_A_LOAD: [&str; 18] = [
    "cell-begun",
    "supervisor-forked",
    "supervisor-forked@2",
    "supervisor-made",
    "directory-noted",
    "directory-made",
    "load-forked",
    "load-works",
    "cell-armed",
    "threads-released",
    "cell-looked",
    "cell-measured",
    "load-ends",
    "load-killed",
    "directory-removed",
    "load-over",
    "cell-half-said",
    "cell-untied",
];

/// The cell or a supervisor is killed, at every place of either; what is left then is nothing.
#[test]
fn a_cell_or_a_supervisor_killed_at_any_place_takes_the_load_along() {
    let (_machine, scratch, places) = (machine(), Scratch::new("any-place"), Places::new());
    let load = format!("files:{}+cmd:setsid sleep 600 & sleep 600", scratch.dir().display());
    let short = cell("other", &load, &a_cpu().to_string(), "20ms");
    let cell = Cell { conditions: Conditions { warm_up: Span(0), ..short.conditions.clone() }, ..short };
    let start = |action: &str| {
        let mut command = command("cell");
        places.act(&mut command, action);
        places.start_cell(command, &cell)
    };
    let shared_before = shared_memory();
    assert!(start("").wait().unwrap().success());
    assert!(running().is_empty() && is_clean(scratch.dir()));
    for place in places.all(None, &PLACES_OF_A_LOAD) {
        places.killed(&mut start(&format!("kill:{place}")), &place);
        assert!(comes_true(|| running().is_empty()), "killed at {place}: {:?} left", running());
        if places.acted(&format!("kill:{place}")).len() > 1 {
            // The supervisor, and then the cell that cleaned up after it.
            run(&mut command("recover --wait")).expect_success();
        }
        assert!(comes_true(|| is_clean(scratch.dir())), "killed at {place}: {:?} left", traces());
    }
    assert_eq!(shared_memory(), shared_before);
}

/// At two places each of the parent and of the cell: before and after the cell has tied itself to its parent.
#[test]
fn a_cell_does_not_outlive_a_parent_killed_just_after_starting_it() {
    let (_machine, places) = (machine(), Places::new());
    let start = |action: &str| {
        let mut measure = command("measure --wait --no-keep --load messaging:groups=1 --duration 10min");
        places.act(&mut measure, action).start_silent()
    };
    for place in ["cell-started", "cell-given"] {
        places.killed(&mut start(&format!("kill:{place}")), place);
        assert!(comes_true(|| running().is_empty()), "killed at {place}: {:?} left", running());
    }
    for place in ["cell-untied", "cell-begun", "supervisor-forked", "threads-released"] {
        let mut parent = start(&format!("stop:{place}"));
        let cell = places.stopped(&mut parent, place);
        kill_and_wait(&mut parent);
        if place == "cell-untied" {
            go_on(cell);
        }
        assert!(comes_true(|| running().is_empty()), "parent killed at {place}: {:?} left", running());
    }
    assert_eq!(traces(), [""; 0]);
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
            let mut child =
                start_cell(command("cell --progress"), &cell("other", &load, &a_cpu().to_string(), "10min"));
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
    /// Starts it, to be killed, or the cell of a campaign to be stopped, when its threads are released.
    fn start(&self, scratch: &Scratch, places: &Places) -> Child {
        if self.campaign {
            let mut measure = wrapped(scratch, self.wrapper, "measure --wait --no-keep --duration 10min --load");
            return places.act(measure.arg(self.load), "stop:threads-released").start_silent();
        }
        let mut command = wrapped(scratch, self.wrapper, "cell");
        places.act(&mut command, "kill:threads-released");
        places.start_cell(command, &cell("other", self.load, &a_cpu().to_string(), "10min"))
    }
}

/// One kill of each kind of load, while it works; `a_cell_or_a_supervisor_killed_at_any_place_takes_the_load_along` has
/// all places.
#[test]
fn root_nothing_of_any_kind_of_load_stays_after_sigkill() {
    skip_unless!(is_root() && is_installed("setpriv", "util-linux") && is_installed("prlimit", "util-linux"));
    let (_machine, scratch) = machine_and_scratch("any-kind");
    let places = Places::new();
    let job = scratch.file("job.fio", "[j]\nfilename=laid-out\nsize=4m\nrw=randwrite\ntime_based\nruntime=3600\n");
    let fio = format!("fio:{}", job.display());
    let few_files = [&["prlimit", "--nofile=64"], UNPRIVILEGED].concat();
    let victims: [Victim<'_>; 10] = [
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
    .map(|(wrapper, load, campaign)| Victim { wrapper, load, campaign });
    let shared_before = shared_memory();
    for victim in &victims {
        let of_package =
            [("stress-ng", "stress-ng"), ("fio", "fio"), ("hackbench", "rt-tests"), ("ping", "iputils-ping")];
        let mut needed = of_package.iter().filter(|(program, _)| victim.load.contains(program));
        if !needed.all(|(program, package)| is_installed(program, package)) {
            continue;
        }
        let mut child = victim.start(&scratch, &places);
        if victim.campaign {
            places.stopped(&mut child, "threads-released");
            kill_and_wait(&mut child);
        } else {
            places.killed(&mut child, "threads-released");
        }
        let what = victim.load;
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
        punctual_sys::ipc::maker_of_semaphores(key, words[3].parse().unwrap_or(0)).is_some()
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
    let places = Places::new();
    let mut command_of_load = command("load cost --for 10min");
    let mut load = places.act(&mut command_of_load, "stop:semaphores-made").start_silent();
    places.stopped(&mut load, "semaphores-made");
    kill_all();
    load.wait().unwrap();
    assert!(comes_true(|| running().is_empty()), "{:?} left", running());
    assert_eq!(sets_of_the_suite(), [""; 0], "a namespace of its own goes with the last process in it");
    // A single operation has no namespace, like a load of a user without the right to one.
    let mut operation = command("operation ipc/semaphore 1000000000");
    let mut suite = places.act(&mut operation, "stop:semaphores-made").start_silent();
    places.stopped(&mut suite, "semaphores-made");
    assert!(!sets_of_the_suite().is_empty(), "it has made one");
    kill_all();
    suite.wait().unwrap();
    assert!(comes_true(|| running().is_empty()), "{:?} left", running());
    assert!(!sets_of_the_suite().is_empty(), "the kernel keeps it");
    let said = crate::program::punctual("recover --wait");
    assert!(said.stdout.contains("removed, left behind by a killed process: /proc/sysvipc/sem "), "{said:?}");
    assert_eq!((said.status, sets_of_the_suite()), (0, Vec::new()));
}
