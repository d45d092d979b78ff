//! Tests that this machine does not permit, in a guest; and what tests of guests share.
//!
//! Clock steps, confined control groups, CPUs off line.

use crate::program::{PROGRAM, ProgramOutput, Scratch, cell, command, install, run, set_mode};
use punctual_model::{Cell, Conditions, Record};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Beginning of every guest's init.
pub(crate) const INIT: &str = "#!/busybox sh\nfor dir in proc sys dev run tmp; do /busybox mkdir -p /$dir; done\n\
    /busybox mount -t proc proc /proc; /busybox mount -t sysfs sysfs /sys; /busybox mount -t devtmpfs dev /dev\n";

/// Runs cells in a guest in virtual time whose clock is set meanwhile.
///
/// The guest is a kernel, a static busybox and this program. Its init runs each cell, sets the clock 2 s after the cell
/// began, and prints the records.
#[test]
fn vm_a_clock_step_is_recorded_and_every_due_time_accounted_for() {
    let Some(kernel) = kernel() else { return };
    // Step of the clock in seconds, and the method of the cell.
    let cases: [(i64, &str); 4] = [
        (-100, "clock_nanosleep:realtime"),
        (30, "clock_nanosleep:tai"),
        (-100, "timerfd"),
        (-100, "posix_timer:realtime"),
    ];
    let cells = cases.map(|(_, method)| Cell {
        task: method.parse().unwrap(),
        period: "10ms".parse().unwrap(),
        ..cell("other", "none", "0", "5s")
    });
    let mut init = INIT.to_owned();
    for (n, (by, _)) in cases.iter().enumerate() {
        init += &format!(
            ">/said; (until /busybox test -s /said; do /busybox sleep 0.1; done; /busybox sleep 1; \
             /busybox date -s @$(($(/busybox date +%s) + ({by}))) >/dev/null) &\n\
             /punctual cell --progress </cell{n} 2>/said | /busybox sed 's/^/record: /'\nwait\n"
        );
    }
    init += "/busybox poweroff -f\n";
    let scratch = Scratch::new("guest");
    for (n, cell) in cells.iter().enumerate() {
        scratch.file(&format!("cell{n}"), serde_json::to_vec(cell).unwrap());
    }
    let records = records(&boot(&scratch, &kernel, &init, Clock::Virtual));
    assert_eq!(records.len(), cases.len());

    for ((by, method), record) in cases.iter().zip(&records) {
        let thread = &record.threads[0];
        assert!(thread.is_consistent(), "{method}");
        if *method == "timerfd" {
            assert_eq!((record.clock_steps.len(), thread.cycles_due), (0, 500), "nobody sets the monotonic clock");
            continue;
        }
        let [step] = record.clock_steps[..] else { panic!("{method}: {:?}", record.clock_steps) };
        // `date -s` sets full seconds.
        assert!((by * 1_000_000_000 - step.step_ns).abs() < 1_500_000_000, "{method}: {step:?}");
        assert!(thread.censored.is_none(), "{method}: {:?}", thread.censored);
        if *by < 0 {
            // The next due time lies in the future again and past the end of the measurement.
            assert!(thread.cycles_due < 500 && thread.recorded > 0, "{method}: {} due", thread.cycles_due);
        } else {
            // On that clock, all skipped due times are late.
            assert_eq!(thread.cycles_due, 500, "{method}");
            assert!(thread.missed > 100 && thread.histogram.max_ns > Some(1_000_000_000), "{method}");
        }
    }
}

/// Shell functions of a guest: `stopped` runs a cell in the background up to the place at which it stops itself;
/// `go_on` lets it end and prints its record.
const STOPPED: &str = r#"
stopped() {
  PUNCTUAL_FAIL_AT=stop:$2 /punctual cell <$1 >/record 2>&1 & cell=$!
  until /busybox grep -q '^State:.T' /proc/$cell/status || ! /busybox test -d /proc/$cell; do /busybox sleep 0.1; done
}
go_on() { kill -CONT $cell; wait $cell; /busybox sed 's/^/record: /' /record; }
"#;

/// A guest with two CPUs, one of them measured: interrupts, services and kernel work run on the other one during the
/// cell, and everywhere afterwards. The first cell has a load in a control group, the second one without groups.
#[test]
fn vm_other_work_is_kept_off_a_measured_cpu_for_the_length_of_a_cell() {
    let Some(kernel) = kernel() else { return };
    let prepared = |text: &str| {
        let mut prepare = punctual_model::Prepare::default();
        prepare.set_all(text).unwrap();
        Cell {
            conditions: Conditions { prepare, ..Conditions::default() },
            ..cell("fifo:80", "messaging:groups=1", "1", "1s")
        }
    };
    let scratch = Scratch::new("guest-prepare");
    let json = |cell: &Cell| serde_json::to_vec(cell).unwrap();
    scratch.file("cell0", json(&prepared("housekeeping_cpus=others,irq_cpus=others,timer_migration=off")));
    scratch.file("cell1", json(&prepared("timer_migration=off")));
    let look = "look() { echo \"seen: $1 $(/busybox cat /sys/fs/cgroup/user/cpuset.cpus) \
        $(/busybox cat /sys/devices/virtual/workqueue/cpumask) $(/busybox cat /proc/sys/kernel/timer_migration) \
        $(/busybox cat /proc/irq/*/smp_affinity_list | /busybox sort | /busybox uniq | /busybox tr '\\n' ' ')\"; }\n";
    let init = format!(
        "{INIT}{STOPPED}{look}/busybox mount -t cgroup2 cgroup /sys/fs/cgroup; /busybox mkdir /sys/fs/cgroup/user\n\
         (echo 0 >/sys/fs/cgroup/user/cgroup.procs; exec /busybox sleep 100000) &\n\
         look before; stopped /cell0 threads-released; look during; go_on; look after\n\
         /busybox umount /sys/fs/cgroup\n\
         /punctual cell </cell1 2>&1 | /busybox sed 's/^/record: /'; /busybox ps | /busybox grep -c '[p]unctual'\n\
         echo \"left: $(/busybox ls /run/punctual /tmp /var/tmp 2>/dev/null | /busybox grep -c json)\"\n/busybox poweroff -f\n"
    );
    let said = boot(&scratch, &kernel, &init, Clock::Machine);
    let seen = |when: &str| {
        let line = said.lines().find_map(|line| line.split_once(&format!("seen: {when} ")));
        line.unwrap_or_else(|| panic!("{when}: {said}")).1.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let during = seen("during");
    assert!(during.starts_with("0 1 0 "), "group, mask, migration: {during}; {said:.2000}");
    // Without the controller, before and after, the file does not exist.
    assert!(
        seen("before").starts_with("3 1 ") && seen("before") == seen("after"),
        "{} {}",
        seen("before"),
        seen("after")
    );
    let records = records(&said);
    assert_eq!(records.len(), 2, "{said:.2000}");
    let moved = records[0].prepared.iter().filter(|setting| setting.what.starts_with("/proc/irq/")).count();
    assert!(moved > 0, "{:?}", records[0].prepared);
    for record in &records {
        assert!(record.threads[0].is_consistent());
        assert!(record.prepared.iter().all(|setting| setting.at_end.as_ref() == Some(&setting.during)), "{record:?}");
        let [load] = &record.loads[..] else { panic!("one load") };
        assert_eq!(load.failure, None);
    }
    assert!(said.contains("left: 0"), "{said:.2000}");
}

/// A measured CPU goes off line: its thread continues elsewhere, every due time is counted, and the record shows the
/// change of the machine.
#[test]
fn vm_a_measured_cpu_that_goes_off_line_is_recorded() {
    let Some(kernel) = kernel() else { return };
    let scratch = Scratch::new("guest-unplug");
    scratch.file("cell0", serde_json::to_vec(&cell("other", "messaging:groups=1", "0-1", "2s")).unwrap());
    let init = format!(
        "{INIT}{STOPPED}stopped /cell0 threads-released\n\
         echo 0 >/sys/devices/system/cpu/cpu1/online; go_on\n/busybox poweroff -f\n"
    );
    let said = boot(&scratch, &kernel, &init, Clock::Machine);
    let [record] = &records(&said)[..] else { panic!("{said:.2000}") };
    assert!(record.threads.len() == 2 && record.threads.iter().all(punctual_model::ThreadRecord::is_consistent));
    let online = |host: &punctual_model::Host| host.cpus_online.as_ref().map(ToString::to_string);
    assert_eq!(
        (online(&record.host_before).as_deref(), online(&record.host_after).as_deref()),
        (Some("0-1"), Some("0"))
    );
}

/// The command `punctual ARGUMENTS` for guests in virtual time only. They need no machine of their own: it does not
/// wait for measurements of this one, and its lock is a file.
pub(crate) fn in_virtual_time(scratch: &Scratch, arguments: &str) -> Command {
    give_way();
    let mut command = command(arguments);
    command.env("PUNCTUAL_LOCK", scratch.path("lock"));
    command
}

/// Runs a plan of guests in virtual time into the directory `out`, always with the same seed.
#[track_caller]
pub(crate) fn run_seeded(plan: &str, out: &Path) -> ProgramOutput {
    give_way();
    let mut command = command(&format!("run {plan} --seed 1 --wait --out {}", out.display()));
    run(command.env("PUNCTUAL_LOCK", out.with_extension("lock"))).expect_success()
}

/// Lets other tests have the CPU first, which measure this machine: virtual time does not depend on it.
fn give_way() {
    // Fails below a nicer caller, and is not needed there.
    let _ = punctual_sys::sched::set_inherited_policy(0, "other:nice=10".parse().expect("a policy"));
}

/// A kernel to boot; prints that the test is skipped and returns `None` if a requirement is missing.
pub(crate) fn kernel() -> Option<PathBuf> {
    let skip = |what: &str| eprintln!("skipped: needs {what}");
    for (program, package) in
        [("qemu-system-x86_64", "qemu-system-x86"), ("busybox", "busybox-static"), ("cpio", "cpio")]
    {
        if Command::new(program).arg("--help").output().is_err() {
            skip(&format!("{program} (apt-get install {package})"));
            return None;
        }
    }
    // A dynamic busybox would need a loader in the guest.
    let busybox = std::fs::read("/bin/busybox").unwrap_or_default();
    if busybox.is_empty() || busybox.windows(9).any(|bytes| bytes == b"/ld-linux") {
        skip("a static /bin/busybox (apt-get install busybox-static)");
        return None;
    }
    let mut kernels: Vec<PathBuf> = std::env::var_os("PUNCTUAL_TEST_KERNEL").map(PathBuf::from).into_iter().collect();
    let boot = std::fs::read_dir("/boot").into_iter().flatten().flatten().map(|entry| entry.path());
    kernels.extend(
        boot.filter(|path| path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"vmlinuz-"))),
    );
    if kernels.is_empty() || !cfg!(target_arch = "x86_64") {
        skip("an x86-64 kernel in /boot, or PUNCTUAL_TEST_KERNEL=/path/to/vmlinuz");
    }
    kernels.into_iter().next().filter(|_| cfg!(target_arch = "x86_64"))
}

/// The clock of a guest that [`boot`] boots.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Clock {
    /// Instructions of one CPU: the same whatever this machine does.
    Virtual,
    /// That of this machine, with two CPUs.
    Machine,
}

/// Boots a guest with the files of `scratch` and returns the output of its `init`.
pub(crate) fn boot(scratch: &Scratch, kernel: &Path, init: &str, clock: Clock) -> String {
    set_mode(scratch.file("init", init), 0o755);
    if clock == Clock::Virtual {
        give_way();
    }
    install(PROGRAM, scratch.path("punctual"));
    // Symbols are a third of it; without strip(1) they go along.
    let _ = Command::new("strip").arg(scratch.path("punctual")).status();
    install("/bin/busybox", scratch.path("busybox"));
    let names: Vec<_> = std::fs::read_dir(scratch.dir()).unwrap().flatten().map(|entry| entry.file_name()).collect();
    let image = scratch.path("image");
    let mut cpio = Command::new("cpio")
        .args(["--quiet", "-o", "-H", "newc", "-O"])
        .arg(&image)
        .current_dir(scratch.dir())
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let list = names.iter().map(|name| format!("{}\n", name.to_str().unwrap())).collect::<String>();
    cpio.stdin.take().unwrap().write_all(list.as_bytes()).unwrap();
    assert!(cpio.wait().unwrap().success());
    let (options, words) = match clock {
        Clock::Virtual => (
            "-accel tcg,thread=single -icount shift=0,sleep=off -rtc base=2026-01-01,clock=vm",
            "no_timer_check random.trust_cpu=off tsc=reliable tsc_early_khz=1000000 lpj=4000000",
        ),
        Clock::Machine => ("-accel tcg,thread=multi -smp 2", ""),
    };
    // Ended with this test, whatever the guest does.
    let mut qemu = Command::new("setpriv");
    qemu.args([
        "--pdeathsig", "KILL", "qemu-system-x86_64", "-M", "pc", "-nodefaults", "-no-user-config", "-no-reboot",
    ]);
    qemu.args(["-display", "none", "-serial", "stdio", "-m", "512"]).args(options.split(' '));
    qemu.args(["-append", &format!("console=ttyS0 quiet panic=-1 {words}")]);
    run(qemu.arg("-kernel").arg(kernel).arg("-initrd").arg(image).stdin(Stdio::null())).stdout
}

/// The records in the output of a guest.
pub(crate) fn records(said: &str) -> Vec<Record> {
    let records = said.lines().filter_map(|line| line.split_once("record: "));
    records
        .map(|(_, json)| serde_json::from_str(json.trim()).unwrap_or_else(|err| panic!("{err}: {json:.200}")))
        .collect()
}
