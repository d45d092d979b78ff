//! This program on boards of other architectures: its commands, its records and the facts of the machine.

use crate::field::board::Board;
use crate::program::{ProgramOutput, Scratch, entries, header, inconclusive, is_installed, skip_unless};
use punctual_model::{Entry, Host, Record};
use std::path::PathBuf;

/// What is known of a board.
struct Known {
    board: &'static str,
    /// Name of this program for it.
    program: &'static str,
    architecture: &'static str,
    cpu_model: Option<&'static str>,
    clock_source: &'static str,
    counter_hz: Option<u64>,
}

/// This program for a board, in `PUNCTUAL_BINARIES`; prints that the test is skipped where it is missing.
fn program(name: &str) -> Option<PathBuf> {
    let set = std::env::var_os(punctual_host::BINARIES_VARIABLE).map(PathBuf::from);
    let found = set.map(|set| set.join(name)).filter(|path| path.exists());
    if found.is_none() {
        eprintln!("skipped: needs {name} in {} (make test-field builds it)", punctual_host::BINARIES_VARIABLE);
    }
    found
}

/// A board with this program in its `PATH`.
struct Equipped {
    board: Board,
    scratch: Scratch,
}

impl Equipped {
    fn of(name: &str, program_name: &str) -> Option<Equipped> {
        let program = program(program_name)?;
        let board = Board::start(name)?;
        board.copy(&program, "/usr/bin/punctual");
        Some(Equipped { board, scratch: Scratch::new(&format!("tries-{name}")) })
    }

    /// Runs `punctual ARGUMENTS` there.
    fn say(&self, arguments: &str) -> ProgramOutput {
        self.board.ssh(&format!("cd /tmp && punctual {arguments}"))
    }

    /// Runs a command that keeps its run in `/tmp/NAME`, and returns a copy of it.
    #[track_caller]
    fn measured(&self, name: &str, arguments: &str) -> PathBuf {
        self.say(&format!("{arguments} --wait --out /tmp/{name}")).expect_success();
        let run = self.board.ssh(&format!("cat /tmp/{name}/run.jsonl")).expect_success().stdout;
        self.scratch.file(&format!("{name}/run.jsonl"), run);
        self.scratch.path(name)
    }
}

#[track_caller]
fn expect_samples(entry: &Entry) {
    let record: &Record = &entry.record;
    assert_eq!(record.threads.iter().map(|thread| thread.cpu).collect::<Vec<_>>(), [0, 1]);
    for thread in &record.threads {
        assert!(thread.is_consistent(), "{thread:?}");
        // A busy machine emulates slowly: many periods are missed.
        if thread.recorded == 0 {
            inconclusive("the board had no time for a sample");
        }
        assert!(thread.histogram.min_ns.is_none_or(|min| min > 0), "{thread:?}");
        assert_eq!(thread.achieved.policy, record.cell.policy);
    }
    assert_eq!(record.cell_id, record.cell.id());
    assert!(record.loads.iter().all(|load| load.failure.is_none()), "{:?}", record.loads);
}

/// Asserts that facts are those of the emulated machine, and that those it lacks are unknown.
#[track_caller]
fn expect_facts(host: &Host, known: &Known) {
    let text = Option::<String>::as_deref;
    assert_eq!(text(&host.architecture), Some(known.architecture));
    assert_eq!(text(&host.hypervisor), Some("QEMU"));
    assert_eq!(text(&host.cpu_model), known.cpu_model);
    assert_eq!(text(&host.clock_source), Some(known.clock_source));
    assert_eq!((host.clocks.counter_hz, host.clocks.tsc_is_invariant), (known.counter_hz, None));
    assert_eq!(host.cpus_online.as_ref().map(ToString::to_string).as_deref(), Some("0-1"));
    assert!(host.memory_bytes.is_some_and(|bytes| (800 << 20..1 << 30).contains(&bytes)), "{:?}", host.memory_bytes);
    assert!(host.power.idle_states.is_empty() && host.power.frequency.is_empty(), "{:?}", host.power);
    assert!(host.processors.microcode.is_empty() && host.platform.smi_count.is_none());
    assert_eq!((text(&host.hostname), &host.container), (Some("board"), &None));
}

/// A short form of the ready plan quick-look, for a slow machine.
const PLAN: &str = "repetitions = 2\nduration = \"500ms\"\nwarm_up = \"100ms\"\n[axes]\nload = [\"none\", \"pipe\"]\n\
                    policy = [\"fifo:80\"]\nperiod = [\"10ms\"]\n";

/// Runs the commands on the board.
#[track_caller]
fn expect_board_measures(known: &Known) {
    let Some(board) = Equipped::of(known.board, known.program) else { return };
    for (name, policy) in [("fifo", "fifo:80"), ("other", "other")] {
        let run = board.measured(name, &format!("measure --policy {policy} --period 20ms --duration 2s"));
        expect_facts(&header(&run).host, known);
        let [entry] = &entries(&run)[..] else { panic!("one measurement") };
        expect_samples(entry);
    }
    let plan = board.scratch.file("plan.toml", PLAN);
    board.board.copy(&plan, "/tmp/plan.toml");
    let entries = entries(&board.measured("plan", "run plan.toml"));
    assert_eq!(entries.len(), 4);
    entries.iter().for_each(expect_samples);

    let said = board.say("doctor --format json");
    let document = said.json();
    crate::pure::schema::assert_conforms("doctor", &document);
    let will = document["totals"]["will"].as_u64().unwrap();
    assert_eq!(said.status, if will > 0 { 2 } else { 0 }, "{said:?}");

    let said = board.say("cyclictest -q -p 80 -i 20000 -l 50").expect_success();
    assert!(said.stdout.lines().all(|line| line.starts_with("T:") || line.starts_with('#')), "{said:?}");
    assert!(said.stdout.contains("T: 0 (") && said.stdout.contains(" C:     50 Min:"), "{said:?}");

    let said = board
        .say("explain --policy fifo:80 --period 20ms --duration 2s --wait --no-keep --format json")
        .expect_success();
    let document = said.json();
    crate::pure::schema::assert_conforms("show", &document);
    let seen = &document["cells"][0]["summary"]["explained"];
    assert!(seen.is_object(), "{document:#}");

    for (left_out, part, feature) in [
        ("store list", "stores in files", "history"),
        ("history", "stores in files", "history"),
        ("store list --store postgresql://db/lab", "PostgreSQL", "postgres"),
        ("measure --samples a.parquet", "sample files", "samples"),
        ("import a.txt", "results of other programs", "import"),
        ("study list", "published studies", "studies"),
    ] {
        let line =
            format!("unsupported: this program is built without {part} (cargo feature `{feature}`); use a full one");
        board.say(left_out).expect_error(&line);
    }

    // Without the loopback device, only what communicates over it is skipped.
    let cost = "measure cost --only net --quick --wait --no-keep --format json";
    for (state, key, names) in [("up", "operations", 4), ("down", "skipped", 4)] {
        let said = board.board.ssh(&format!("ifconfig lo {state} && cd /tmp && punctual {cost}")).expect_success();
        let of_kind = &said.json()["cells"][0]["summary"]["cost"][key];
        assert_eq!(of_kind.as_array().map(Vec::len), Some(names), "{said:?}");
    }
}

fn can_boot() -> bool {
    is_installed("ssh", "openssh-client")
}

#[test]
#[ignore = "field: emulated boards"]
fn vm_an_arm64_board_is_measured() {
    skip_unless!(can_boot());
    expect_board_measures(&Known {
        board: "arm64",
        program: "punctual-aarch64",
        architecture: "aarch64",
        cpu_model: Some("Cortex-A72"),
        clock_source: "arch_sys_counter",
        counter_hz: Some(62_500_000),
    });
}

#[test]
#[ignore = "field: emulated boards"]
fn vm_a_riscv64_board_is_measured() {
    skip_unless!(can_boot());
    expect_board_measures(&Known {
        board: "riscv64",
        program: "punctual-riscv64",
        architecture: "riscv64",
        cpu_model: None,
        clock_source: "riscv_clocksource",
        counter_hz: Some(10_000_000),
    });
}

#[test]
#[ignore = "field: emulated boards"]
fn vm_an_armhf_board_is_measured() {
    skip_unless!(can_boot());
    expect_board_measures(&Known {
        board: "armhf",
        program: "punctual-arm",
        architecture: "armv7l",
        cpu_model: Some("ARMv7 Processor rev 0 (v7l)"),
        clock_source: "arch_sys_counter",
        counter_hz: None,
    });
}

#[test]
#[ignore = "field: emulated boards"]
fn vm_pages_of_16_kib_are_counted_and_traced() {
    skip_unless!(can_boot());
    let Some(board) = Equipped::of("arm64-16k", "punctual-aarch64") else { return };
    for (operation, n, pages) in [("memory/fault", 64, 64), ("memory/fault", 640, 640), ("memory/map_touch", 64, 256)] {
        let used = board.say(&format!("operation {operation} {n}")).expect_success().json();
        let faults = used["minor_faults"].as_u64().unwrap();
        assert!((pages..pages + 32).contains(&faults), "{operation}: {faults} faults of {pages} pages");
    }
    let explain = "explain --policy fifo:80 --period 20ms --duration 2s --above 50us --wait --no-keep --format json";
    let document = board.say(explain).expect_success().json();
    let seen = &document["cells"][0]["summary"]["explained"];
    // A wrong size of the buffer's pages would leave no event that can be read.
    assert!(seen["explained"].as_u64() > Some(0) && seen["events"].as_u64() > Some(100), "{seen:#}");
}
