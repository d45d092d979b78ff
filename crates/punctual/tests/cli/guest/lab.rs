//! The lab: identical to the bit on a busy machine, kernels distinguished, no guest left behind.

use crate::guest::vm::{in_virtual_time, kernel, run_seeded};
use crate::program::{Scratch, Start, beside_a_load, ended, entries, finish, is_stopped, kill_and_wait, punctual, run};
use punctual_model::{Entry, HandoffKind, Histogram, LabClock};
use punctual_sys::testing::comes_true;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// A plan for these kernels under loads that separate preemption models.
fn plan(scratch: &Scratch, kernels: &[String], phases: u32) -> String {
    let kernels = kernels.iter().map(|kernel| format!("\"{kernel}\"")).collect::<Vec<_>>().join(", ");
    let plan = format!(
        "repetitions = {phases}\nduration = \"100ms\"\nwarm_up = \"20ms\"\n[axes]\nkernel = [{kernels}]\n\
         load = [\"exec\", \"tcp\"]\npolicy = [\"fifo:90\"]\nperiod = [\"1ms\"]\n"
    );
    scratch.file("plan.toml", plan).display().to_string()
}

/// The three preemption models of one kernel, and PREEMPT_RT if its package is available.
fn models() -> Option<Vec<String>> {
    let kernel = kernel()?.display().to_string();
    let mut models: Vec<_> = ["none", "voluntary", "full"].map(|model| format!("{kernel} preempt={model}")).into();
    let fetched = punctual("lab fetch debian:6.1-rt");
    if fetched.status == 0 {
        models.push("debian:6.1-rt".to_owned());
    } else {
        eprintln!("skipped: PREEMPT_RT among the models: {}", fetched.stderr.trim_end());
    }
    Some(models)
}

#[test]
fn vm_virtual_time_is_the_same_to_the_bit_and_tells_kernels_apart() {
    let Some(models) = models() else { return };
    let scratch = Scratch::new("lab");
    let [quiet, busy] = ["quiet", "busy"].map(|name| scratch.path(name));
    let said = run_seeded(&plan(&scratch, &models, 2), &quiet);
    // The second run competes with a load on every CPU: the first block of the last model.
    beside_a_load(|| run_seeded(&plan(&scratch, &models[models.len() - 1..], 1), &busy));

    let [entries, of_busy] = [quiet, busy].map(|run| entries(&run));
    assert_eq!([entries.len(), of_busy.len()], [models.len() * 2 * 2, 2]);
    for loaded in &of_busy {
        let is_first = |entry: &&Entry| entry.planned.block == 0 && entry.record.cell == loaded.record.cell;
        let alone = entries.iter().find(is_first).unwrap();
        assert_eq!(alone.record, loaded.record, "virtual time does not depend on what else the machine does");
    }
    for entry in &entries {
        let lab = entry.record.lab.as_ref().unwrap();
        assert_eq!(lab.clock, LabClock::Virtual);
        assert!(lab.command_line.contains("tsc_early_khz") && lab.qemu.starts_with("QEMU"), "{lab:?}");
        assert!(entry.record.threads[0].is_consistent());
        assert_eq!(entry.record.threads[0].recorded, 100);
    }
    // Cells are in plan order: exec and tcp of each model. Every phase of a less preemptible model exceeds every phase
    // of a more preemptible one, 1.4 times or more in 12 phases of each. Left out is what the layout of this program
    // decides: none and voluntary, the longest of full under exec and of voluntary under tcp, and means under exec.
    let assert_apart = |(less, more, load): (usize, usize, usize), number: fn(&Histogram) -> i128| {
        let [less, more] = [less, more].map(|model| (&models[model], of_phases(&entries, 2 * model + load, number)));
        assert!(less.1.iter().min() > more.1.iter().max(), "{less:?} {more:?}");
    };
    let [none, voluntary, full, rt, exec, tcp] = [0, 1, 2, 3, 0, 1];
    let of_rt = [(none, rt, exec), (voluntary, rt, exec), (none, rt, tcp), (voluntary, rt, tcp), (full, rt, tcp)];
    for pair in of_rt.into_iter().filter(|_| models.len() > rt).chain([(none, full, tcp)]) {
        assert_apart(pair, |all| all.max_ns.unwrap().into());
    }
    for pair in [(none, full, tcp), (voluntary, full, tcp)] {
        assert_apart(pair, |all| all.sum_ns / i128::from(all.n));
    }
    assert!(said.stdout.contains("virtual time: 1 us = 1000 instructions"), "{}", said.stdout);
    assert!(said.stdout.contains("use it to rank"), "{}", said.stdout);
}

#[test]
fn vm_hand_offs_are_the_same_to_the_bit() {
    let Some(kernel) = kernel() else { return };
    let scratch = Scratch::new("lab-handoff");
    let methods = HandoffKind::ALL.map(|kind| format!("\"handoff:{kind}\"")).join(", ");
    let plan = format!(
        "repetitions = 1\nduration = \"100ms\"\nwarm_up = \"20ms\"\n[axes]\nkernel = [\"{}\"]\nload = [\"none\"]\n\
         policy = [\"fifo:80\"]\nperiod = [\"1ms\"]\nmethod = [{methods}]\n",
        kernel.display()
    );
    let plan = scratch.file("plan.toml", plan).display().to_string();
    let [first, second] = ["first", "second"].map(|name| {
        run_seeded(&plan, &scratch.path(name));
        entries(&scratch.path(name))
    });
    assert_eq!(first, second);
    let recorded: Vec<_> = first.iter().map(|entry| entry.record.threads[0].recorded).collect();
    assert_eq!(recorded, [100; HandoffKind::ALL.len()]);
}

/// A number of the latencies of a cell in each phase, ns.
fn of_phases(entries: &[Entry], cell_index: usize, number: fn(&Histogram) -> i128) -> Vec<i128> {
    let of_cell = entries.iter().filter(|entry| entry.planned.cell_index == cell_index);
    of_cell.map(|entry| number(&entry.record.threads[0].histogram)).collect()
}

#[test]
fn vm_a_state_is_saved_once_for_all_and_made_again_if_it_is_damaged() {
    let Some(kernel) = kernel() else { return };
    let scratch = Scratch::new("lab-damaged");
    let plan = plan(&scratch, &[format!("{} preempt=full", kernel.display())], 1);
    let cache = scratch.path("cache");
    let start = |name: &str| {
        let out = scratch.path(name);
        let mut command = in_virtual_time(&scratch, &format!("run {plan} --seed 1 --wait --out {}", out.display()));
        // A lock of its own: those that are begun together run together.
        command.env("XDG_CACHE_HOME", &cache).env("PUNCTUAL_LOCK", out.with_extension("lock")).start_piped()
    };
    let said = ["one", "other"].map(start).map(|child| finish(child).expect_success().stderr).concat();
    assert_eq!(said.matches("booting ").count(), 1, "the other waits: {said}");
    let before = entries(&scratch.path("one"));
    assert_eq!(before, entries(&scratch.path("other")));
    let states = std::fs::read_dir(cache.join("punctual/snapshots")).unwrap().flatten().map(|entry| entry.path());
    let states: Vec<_> = states.filter(|path| path.is_dir()).collect();
    assert_eq!(states.len(), 1, "{states:?}");
    let state = &states[0].join("memory");
    let bytes = std::fs::read(state).unwrap();
    let at = bytes.iter().position(|byte| *byte != 0).unwrap();
    let file = std::fs::File::options().write(true).open(state).unwrap();
    file.write_all_at(&[bytes[at] ^ 1], at as u64).unwrap();
    let said = finish(start("after")).expect_success().stderr;
    assert_eq!(said.matches("booting ").count(), 1, "a damaged state is not gone on from: {said}");
    assert_eq!(before, entries(&scratch.path("after")));
}

#[test]
fn vm_a_killed_qemu_is_one_line_and_its_measurement_is_repeated() {
    let Some(kernel) = kernel() else { return };
    let scratch = Scratch::new("lab-qemu-killed");
    let plan = plan(&scratch, &[format!("{} preempt=full", kernel.display())], 2);
    let out = scratch.path("run");
    let campaign = in_virtual_time(&scratch, &format!("run {plan} --wait --out {}", out.display())).start_piped();
    let of_campaign = format!("punctual-guest-{}", campaign.id());
    let guests = || guests_with(&of_campaign);
    // One that is stopped cannot end before it is killed.
    let signal = |pid, signal| punctual_sys::process::signal(pid, signal).is_ok();
    let mut stopped = None;
    let is_one_stopped = || {
        stopped = guests().first().copied().filter(|pid| signal(*pid, libc::SIGSTOP) && is_stopped(*pid));
        stopped.is_some()
    };
    assert!(comes_true(is_one_stopped), "a guest runs");
    assert!(signal(stopped.unwrap(), libc::SIGKILL));
    let said = finish(campaign).expect_success().stderr;
    let of_killed = said.lines().find(|line| line.contains("qemu-system-x86_64 exited (signal: 9 (SIGKILL))"));
    assert!(of_killed.is_some_and(|line| line.ends_with("; retried at the end")), "{said}");
    assert!(said.contains("guest 1 of 4: block 1  "), "{said}");
    assert!(comes_true(|| guests().is_empty()), "the other guests end, too");
    assert_eq!(entries(&out).len(), 4);
}

#[test]
fn vm_a_qemu_that_never_stops_talking_is_one_line() {
    let Some(kernel) = kernel() else { return };
    let scratch = Scratch::new("lab-qemu-endless");
    let plan = plan(&scratch, &[kernel.display().to_string()], 1);
    let path = format!("{}:{}", scratch.path("bin").display(), std::env::var("PATH").unwrap());
    for talk in ["yes", "cat /dev/urandom", "yes '{\"event\":\"STOP\"}'"] {
        std::fs::create_dir_all(scratch.path("bin")).unwrap();
        let version = "[ \"$1\" = --version ] && { echo QEMU emulator version 7.2.0; exit; }";
        scratch.executable("bin/qemu-system-x86_64", format!("#!/bin/sh\n{version}\nexec {talk}\n"));
        let arguments = format!("run {plan} --wait --out {}", scratch.path(&format!("run-{}", talk.len())).display());
        let said = ended(in_virtual_time(&scratch, &arguments).env("PATH", &path));
        assert!(said.status == 1 && said.last_line().contains("QEMU: output limit exceeded"), "{talk}: {said:?}");
    }
}

/// Process IDs of QEMUs with `text` in their command line.
pub(crate) fn guests_with(text: &str) -> Vec<u32> {
    let is_guest = |path: &Path| {
        let line = std::fs::read(path.join("cmdline")).unwrap_or_default();
        line.starts_with(b"qemu") && String::from_utf8_lossy(&line).contains(text)
    };
    let processes = std::fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path());
    let guests = processes.filter(|path| is_guest(path));
    guests.filter_map(|path| path.file_name()?.to_str()?.parse().ok()).collect()
}

#[test]
fn vm_a_guest_ends_with_its_campaign() {
    let Some(kernel) = kernel() else { return };
    let scratch = Scratch::new("lab-killed");
    let plan = plan(&scratch, &[format!("{} preempt=full", kernel.display())], 100);
    let arguments = format!("run {plan} --wait --out {}", scratch.path("run").display());
    let mut campaign = in_virtual_time(&scratch, &arguments).start_silent();
    let image = format!("punctual-guest-{}", campaign.id());
    assert!(comes_true(|| !guests_with(&image).is_empty()), "a guest runs");
    kill_and_wait(&mut campaign);
    assert!(comes_true(|| guests_with(&image).is_empty()), "QEMU outlives its campaign");
}

/// A timer of QEMU's main loop is one of the host's clock: those of the guest's clock end its waits by other means.
#[test]
fn vm_nothing_but_its_guest_wakes_a_qemu_in_virtual_time() {
    let Some(kernel) = kernel() else { return };
    let scratch = Scratch::new("lab-timers");
    let plan = plan(&scratch, &[format!("{} preempt=full", kernel.display())], 1);
    let arguments = format!("run {plan} --wait --out {}", scratch.path("run").display());
    let mut campaign = in_virtual_time(&scratch, &arguments).start_piped();
    let of_campaign = format!("punctual-guest-{}", campaign.id());
    let (mut before, mut waits, mut with_timeout) = (Vec::new(), 0, Vec::new());
    let look_until_it_ends = || {
        let now: Vec<_> = guests_with(&of_campaign).into_iter().filter_map(wait_of_main_loop).collect();
        // The same at two looks: what was read belongs together.
        for wait in now.iter().filter(|wait| before.contains(*wait)) {
            match wait.timeout {
                Some([0, 0]) => {}
                None => waits += 1,
                Some(timeout) => with_timeout.push(timeout),
            }
        }
        before = now;
        campaign.try_wait().unwrap().is_some()
    };
    assert!(comes_true(look_until_it_ends), "the run ends");
    finish(campaign).expect_success();
    assert!(waits > 10, "{waits} waits of the main loop seen");
    assert_eq!(with_timeout, [[0; 2]; 0], "beside {waits} waits without a timeout");
}

/// A ppoll(2) in which the first thread of a process waits.
#[derive(Debug, PartialEq, Eq)]
struct Wait {
    /// Process, system call with its arguments, stack pointer and program counter (proc_pid_syscall(5)).
    call: (u32, String),
    /// Seconds and nanoseconds.
    timeout: Option<[u64; 2]>,
}

fn wait_of_main_loop(pid: u32) -> Option<Wait> {
    let call = std::fs::read_to_string(format!("/proc/{pid}/syscall")).ok()?;
    let words: Vec<_> = call.split_whitespace().collect();
    let [number, _, _, timeout, ..] = words[..] else { return None };
    if number.parse() != Ok(libc::SYS_ppoll) {
        return None;
    }
    let at = u64::from_str_radix(timeout.strip_prefix("0x")?, 16).ok()?;
    let mut time = [[0; 8]; 2];
    if at != 0 {
        let memory = std::fs::File::open(format!("/proc/{pid}/mem")).ok()?;
        memory.read_exact_at(time.as_flattened_mut(), at).ok()?;
    }
    let timeout = (at != 0).then(|| time.map(u64::from_ne_bytes));
    Some(Wait { call: (pid, call), timeout })
}

#[test]
fn vm_what_cannot_boot_is_one_line() {
    let Some(good) = kernel() else { return };
    let scratch = Scratch::new("lab-broken");
    let text = scratch.file("notes.txt", "no kernel");
    let with = |kernel: &str| {
        let plan = format!("repetitions = 1\nduration = \"100ms\"\n[axes]\nkernel = [\"{kernel}\"]\n");
        let plan = scratch.file("plan.toml", plan);
        let out = scratch.path(&format!("out-{}", kernel.len()));
        run(in_virtual_time(&scratch, "run --wait").arg(plan).arg("--out").arg(out))
    };
    for (kernel, expected) in [
        (
            text.display().to_string(),
            "expected a bzImage or a vmlinux for x86, or an Image for arm64 or riscv64; name another file",
        ),
        ("/nowhere/vmlinuz".to_owned(), "/nowhere/vmlinuz: No such file or directory"),
        ("debian:1.3".to_owned(), "found no package of debian:1.3"),
        (format!("{} rdinit=/nowhere root=/dev/nowhere", good.display()), "not syncing: "),
        (
            format!("{} preempt=lazy isolcpus=0 frobnicate=1", good.display()),
            "differs from the plan: preempt=lazy has no effect: this kernel supports none voluntary full and uses \
             voluntary; isolcpus=0 has no effect on CPU 0, which /sys/devices/system/cpu/isolated lacks; \
             frobnicate=1 has no effect: unknown to this kernel",
        ),
    ] {
        let said = with(&kernel);
        assert_eq!(said.status, 1, "{said:?}");
        assert!(said.stderr.contains(expected), "{kernel}: {}", said.stderr);
    }
}
