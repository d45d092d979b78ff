//! `punctual run --on` and a role on an emulated board.

use crate::field::board::{Board, UDP_PORT};
use crate::program::{a_cpu, command, entries, is_installed, machine_and_scratch, run, set_mode, skip_unless};
use punctual_sys::testing::comes_true;

/// A role and whole cells on an emulated arm64 board with busybox and dropbear, to which this program is sent.
#[test]
#[ignore = "field: an emulated board"]
fn vm_an_arm64_board_measures_whole_cells_and_answers() {
    skip_unless!(is_installed("ssh", "openssh-client"));
    if let Err(reason) = punctual_host::program_of(punctual_model::Architecture::Aarch64) {
        eprintln!("skipped: {reason}");
        return;
    }
    let Some(emulated) = Board::start("arm64") else { return };
    let (_machine, scratch) = machine_and_scratch("on-board-arm64");
    let path = format!("{}:{}", emulated.directory().display(), std::env::var("PATH").unwrap());
    let head = "repetitions = 1\nduration = \"2s\"\nwarm_up = \"100ms\"\n";
    let campaign = |name: &str, keys: &str, more: &str| {
        let plan = scratch.file(&format!("{name}.toml"), format!("{head}{keys}"));
        set_mode(&plan, 0o644);
        let out = scratch.path(name);
        let arguments = format!("run {} --wait {more} --out {}", plan.display(), out.display());
        run(command(&arguments).env("PATH", &path)).expect_success();
        entries(&out)
    };
    let axes = "[axes]\nload = [\"none\", \"pipe\"]\npolicy = [\"other\", \"fifo:80\"]\nperiod = [\"10ms\"]\n";
    let cells = campaign("cells", axes, "--on ssh:board");
    assert_eq!(cells.len(), 4);
    for entry in &cells {
        let record = &entry.record;
        assert_eq!(record.host_before.architecture.as_deref(), Some("aarch64"), "{:?}", record.host_before);
        assert_eq!(record.threads.len(), 2, "two CPUs");
        for thread in &record.threads {
            assert!(thread.is_consistent() && thread.recorded > 50, "{thread:?}");
            assert_eq!(thread.achieved.policy, record.cell.policy);
        }
        assert!(record.loads.iter().all(|load| load.failure.is_none() && !load.did_nothing()), "{:?}", record.loads);
    }

    let udp = format!("127.0.0.1:{}", emulated.udp);
    let keys = format!(
        "cpus = \"{}\"\n[roles]\ntarget = \"ssh:board\"\ntarget_link = \"udp:10.0.2.15:{UDP_PORT}\"\n\
         [axes]\nload = [\"none\"]\npolicy = [\"other\"]\nperiod = [\"20ms\"]\nmethod = [\"response:udp:{udp}\"]\n",
        a_cpu()
    );
    let [answers] = &campaign("role", &keys, "")[..] else { panic!("one record") };
    let target = answers.record.response.as_ref().unwrap().target.as_ref().unwrap();
    assert_eq!(target.host.as_ref().unwrap().architecture.as_deref(), Some("aarch64"));
    assert!(target.answered > 20, "{target:?}");
    let left = || emulated.ssh("ls -d /tmp/punctual-* /var/tmp/punctual-* 2>/dev/null; pidof punctual").stdout;
    assert!(comes_true(|| left().is_empty()), "left there: {}", left());
}
