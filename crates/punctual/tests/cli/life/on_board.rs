//! `punctual run --on`: whole cells on another machine, here behind `exec:` with a search path without this program.

use crate::life::roles::{doing, executable};
use crate::places::{Places, go_on};
use crate::program::{
    ProgramOutput, Scratch, Start, a_cpu, command, ended, entries, finish, is_installed, is_root, machine,
    machine_and_scratch, punctual, run, running, set_mode, skip_unless,
};
use crate::session::play;
use punctual_sys::process;
use punctual_sys::testing::comes_true;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A machine that lacks this program: a search path, and a directory for temporary files.
struct Machine {
    scratch: Scratch,
    site: String,
}

/// Makes the directories of such a machine; returns its name.
fn on_search_path(scratch: &Scratch) -> String {
    for directory in ["bin", "tmp"] {
        std::fs::create_dir(scratch.path(directory)).unwrap();
    }
    let dir = scratch.dir().display();
    format!("exec:env TMPDIR={dir}/tmp PATH={dir}/bin:/usr/bin:/bin")
}

fn short_plan(scratch: &Scratch, blocks: u32, duration: &str) -> PathBuf {
    let axes = "[axes]\nload = [\"none\", \"light\"]\npolicy = [\"other\"]\nperiod = [\"1ms\"]\n";
    let head = format!("repetitions = {blocks}\nduration = \"{duration}\"\nwarm_up = \"50ms\"\n");
    let plan = scratch.file("plan.toml", format!("{head}cpus = \"{}\"\n{axes}", a_cpu()));
    set_mode(&plan, 0o644);
    plan
}

impl Machine {
    fn new(scratch: Scratch) -> Machine {
        let site = on_search_path(&scratch);
        Machine { scratch, site }
    }

    /// Replaces a program of that machine by a shell script.
    fn replace(&self, name: &str, script: &str) {
        executable(&self.scratch, &format!("bin/{name}"), script);
    }

    fn plan(&self, blocks: u32, duration: &str) -> PathBuf {
        short_plan(&self.scratch, blocks, duration)
    }

    /// `punctual run PLAN --on MACHINE` with further arguments.
    fn campaign(&self, plan: &Path, more: &str) -> Command {
        let out = self.scratch.path("run");
        let mut command = command(&format!("run --wait {more} --out {}", out.display()));
        if !more.contains("--resume") {
            command.arg(plan);
        }
        command.args(["--on", &self.site]);
        command
    }

    /// Asserts that nothing of a campaign is left, neither processes nor this program.
    #[track_caller]
    fn expect_nothing_left(&self) {
        assert!(comes_true(|| running().is_empty()), "no orphans: {:?}", running());
        let is_empty = || std::fs::read_dir(self.scratch.path("tmp")).unwrap().next().is_none();
        assert!(comes_true(is_empty), "the program is removed");
    }
}

#[track_caller]
fn expect_refused(said: &ProgramOutput, reason: &str) {
    assert!(said.status == 1 && said.stdout.is_empty(), "{said:?}");
    assert_eq!(said.last_line(), format!("punctual: {reason}"));
}

#[test]
fn a_campaign_elsewhere_is_recorded_here() {
    let (_machine, scratch) = machine_and_scratch("board");
    let board = Machine::new(scratch);
    let sent = board.scratch.path("sent");
    board.replace("gunzip", &format!("echo sent >>{}; exec /usr/bin/env -u TMPDIR gzip -dc", sent.display()));
    let plan = board.plan(2, "300ms");

    let said = run(&mut board.campaign(&plan, "--blocks 1")).expect_success();
    assert!(said.stderr.contains(&format!("punctual: connecting to {}\n", board.site)), "{said:?}");
    let out = board.scratch.path("run");
    assert!(said.last_line().ends_with(&format!("--resume --out {} --on '{}'", out.display(), board.site)), "{said:?}");
    assert_eq!(std::fs::read_to_string(&sent).unwrap(), "sent\n", "once for all cells");
    board.expect_nothing_left();

    run(&mut board.campaign(&plan, "--resume")).expect_success();
    assert_eq!(std::fs::read_to_string(&sent).unwrap(), "sent\nsent\n", "once for each campaign");
    let entries = entries(&out);
    assert_eq!(entries.len(), 4);
    for entry in &entries {
        let [thread] = &entry.record.threads[..] else { panic!("one thread") };
        assert!(thread.is_consistent() && thread.cycles_due == 300, "{thread:?}");
        assert_eq!(entry.record.loads.len(), entry.record.cell.load.parts().len());
    }
    board.expect_nothing_left();
}

#[test]
fn root_a_capture_comes_back() {
    skip_unless!(crate::real::explain::instances().is_some());
    let (_machine, scratch) = machine_and_scratch("board-capture");
    let board = Machine::new(scratch);
    // What a login shell prints comes first.
    let script = format!(
        "#!/bin/sh\necho welcome\nexec env TMPDIR={}/tmp PATH=/usr/bin:/bin \"$@\"\n",
        board.scratch.dir().display()
    );
    let shell = board.scratch.executable("shell", script);
    let path = board.scratch.path("trace.dat");
    let capture = |site: &str, more: &str| {
        let mut command = command(&format!("capture --for 1h --output {}", path.display()));
        run(command.args(["--on", site]).args(more.split_whitespace()))
    };
    let said = capture(&format!("exec:{}", shell.display()), "-- sleep 0.1").expect_success();
    assert!(said.last_line().starts_with(&format!("{}: ", path.display())), "{said:?}");
    let file = punctual_ftrace::DatFile::open(std::fs::File::open(&path).unwrap()).unwrap();
    assert_eq!(file.head.machine.map(|machine| machine.kernel), punctual_host::kernel_release());
    board.expect_nothing_left();
    std::fs::remove_file(&path).unwrap();

    let refused = capture(&board.site, "-- /no/such/program");
    let reason = "/no/such/program is not installed (searched in PATH); install it, or name its path";
    expect_refused(&refused, &format!("{}: {reason}", board.site));
    assert!(!path.exists() && !board.scratch.path("trace.dat.part").exists());
    board.expect_nothing_left();
}

#[test]
fn an_instrument_is_sent_with_its_files() {
    skip_unless!(is_installed("cyclictest", "rt-tests"));
    let (_machine, scratch) = machine_and_scratch("board-instrument");
    let board = Machine::new(scratch);
    let here = board.scratch.path("tool-of-ours");
    let plan = |files: &str| {
        let program = "tool-of-ours -q -m -t1 -a{cpu} -i{period_us} -D{duration_s} -h 400";
        let text = format!(
            "repetitions = 2\nduration = \"1s\"\ncpus = \"{}\"\n[axes]\nload = [\"none\"]\npolicy = [\"other\"]\n\
             period = [\"1ms\"]\nmethod = [{{ program = \"{program}\", read = \"cyclictest\", files = [{files}] }}]\n",
            a_cpu()
        );
        let plan = board.scratch.file("plan.toml", text);
        set_mode(&plan, 0o644);
        plan
    };
    let with_file = plan(&format!("\"{}\"", here.display()));
    let said = run(&mut board.campaign(&with_file, ""));
    expect_refused(&said, &format!("files: {}: No such file or directory (os error 2)", here.display()));
    std::fs::copy("/usr/bin/cyclictest", &here).unwrap();

    run(&mut board.campaign(&with_file, "--blocks 1")).expect_success();
    run(&mut board.campaign(&with_file, "--resume")).expect_success();
    let entries = entries(&board.scratch.path("run"));
    assert_eq!(entries.len(), 2, "the file was sent again");
    for entry in &entries {
        assert_eq!(entry.record.instrument.as_ref().unwrap().status, "exit status: 0");
        assert!(entry.record.threads[0].is_consistent(), "{:?}", entry.record.threads);
    }
    board.expect_nothing_left();
    std::fs::remove_dir_all(board.scratch.path("run")).unwrap();
    let said = run(&mut board.campaign(&plan(""), ""));
    assert!(said.status == 1 && said.last_line().contains("tool-of-ours is not installed"), "{said:?}");
    board.expect_nothing_left();
}

#[test]
fn what_cannot_be_sent_or_answers_strangely_is_one_line() {
    let _machine = machine();
    let script = "printf '#!/bin/sh\\n%s\\n' \"$2\" > bin/$1; chmod +x bin/$1\n";
    play(|scratch, _| {
        let site = on_search_path(scratch);
        scratch.file("site", site);
        scratch.file("replace", script);
        short_plan(scratch, 1, "200ms");
    });
}

#[test]
fn a_campaign_elsewhere_ends_with_its_connection_and_can_be_resumed() {
    let (_machine, scratch) = machine_and_scratch("board-lost");
    let board = Machine::new(scratch);
    let plan = board.plan(2, "1h");
    let out = board.scratch.path("run");
    let measures = |campaign: &std::process::Child| {
        comes_true(|| {
            let ours = running();
            ours.contains(&campaign.id()) && doing("cell", "--progress").iter().any(|cell| ours.contains(cell))
        })
    };
    for (signal, victim) in
        [(libc::SIGINT, "run"), (libc::SIGKILL, "run"), (libc::SIGKILL, "serve-cells"), (libc::SIGKILL, "sh")]
    {
        let mut campaign = board.campaign(&plan, "").start_piped();
        assert!(measures(&campaign), "{victim}");
        let pid = match victim {
            "run" => campaign.id(),
            // The shell that keeps the program there.
            "sh" => shell_among(&running()),
            _ => running().into_iter().find(|pid| doing(victim, "").contains(pid)).unwrap(),
        };
        process::signal(pid, signal).unwrap();
        if victim == "sh" {
            // The program runs on, its file is gone, and the campaign goes on.
            assert!(measures(&campaign));
            process::signal(campaign.id(), libc::SIGTERM).unwrap();
        }
        let said = if signal == libc::SIGKILL && victim == "run" {
            campaign.wait().unwrap();
            None
        } else {
            Some(finish(campaign))
        };
        let resume = format!("punctual run --resume --out {} --on '{}'", out.display(), board.site);
        match (victim, said) {
            ("run" | "sh", Some(said)) => {
                assert!(said.last_line().ends_with(&resume), "{said:?}");
                assert!([130, 143].contains(&said.status), "{said:?}");
            }
            (_, Some(said)) => {
                let expected = format!("/other: board {}: exited (signal: 9 (SIGKILL)) without a message", board.site);
                assert!(said.last_line().contains(&expected) && said.status == 1, "{said:?}");
            }
            (_, None) => {}
        }
        board_is_free(&board, victim);
        let _ = std::fs::remove_dir_all(&out);
    }
}

/// The process of a shell script given with `-c`.
fn shell_among(processes: &[u32]) -> u32 {
    let is_it = |pid: &&u32| {
        std::fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|text| text.starts_with(b"sh\0-c\0v=$(punctual"))
    };
    *processes.iter().find(is_it).expect("a shell")
}

/// Asserts that no process and no file is left; a killed shell cannot remove its file.
#[track_caller]
fn board_is_free(board: &Machine, victim: &str) {
    if victim == "sh" {
        assert!(comes_true(|| running().is_empty()), "no orphans: {:?}", running());
        let tmp = board.scratch.path("tmp");
        std::fs::remove_dir_all(&tmp).unwrap();
        std::fs::create_dir(tmp).unwrap();
    } else {
        board.expect_nothing_left();
    }
}

#[test]
fn a_board_that_never_stops_talking_is_one_line_and_little_memory() {
    let (_machine, scratch) = machine_and_scratch("board-endless");
    let board = Machine::new(scratch);
    let plan = board.plan(1, "200ms");
    for talk in ["yes", "yes >&2", "cat /dev/zero", "cat /dev/zero >&2", "cat /dev/urandom"] {
        // At the start, and instead of the first answer.
        for start in ["", "[ \"$1\" = sh ] && { echo punctual-role has; exit; }; "] {
            let shell = board.scratch.executable("shell", format!("#!/bin/sh\n{start}exec {talk}\n"));
            let out = board.scratch.path("run");
            // In kB: a limit of 256 MiB, doubled where a vector grows, besides the program and its stacks.
            let mut limited = Command::new("sh");
            limited.args(["-c", "ulimit -v 1200000; exec \"$@\"", "sh", crate::program::PROGRAM, "run"]).arg(&plan);
            limited.arg("--on").arg(format!("exec:{}", shell.display())).arg("--out").arg(&out);
            let said = ended(&mut limited);
            let line = said.last_line();
            assert!(line.starts_with(&format!("punctual: board exec:{}: ", shell.display())), "{talk}: {said:?}");
            // Random bytes may begin with a brace.
            let is_named = line.contains("output limit exceeded") || talk.contains("urandom");
            assert!(is_named && said.status == 1 && !out.exists(), "{talk}: {said:?}");
        }
    }
}

#[test]
fn root_the_lock_of_the_other_machine_is_respected() {
    skip_unless!(is_root());
    let (_machine, scratch) = machine_and_scratch("board-lock");
    let board = Machine::new(scratch);
    let (plan, places) = (board.plan(1, "200ms"), Places::new());
    let text = std::fs::read_to_string(&plan).unwrap().replace(", \"light\"", "");
    std::fs::write(&plan, text).unwrap();
    let mut campaign = board.campaign(&plan, "");
    let mut first = places.act(&mut campaign, "stop:threads-released").start_silent();
    let cell = places.stopped(&mut first, "threads-released");
    let said = punctual("measure --duration 100ms");
    assert!(said.status == 1 && said.stderr.contains("ends about"), "{said:?}");
    go_on(cell);
    assert!(first.wait().unwrap().success());
}
