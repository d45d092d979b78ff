//! Invalid input: one line with value, place and remedy; exit status 1; nothing measured, no file left.

use crate::program::{Scratch, command, punctual, run};
use std::process::Stdio;

#[test]
fn a_wrong_value_is_refused_before_anything_is_measured() {
    for (arguments, line) in [
        (
            "measure --duration foo",
            "--duration: invalid duration `foo`: expected a number and a unit, like 500us, 1ms, 10s, 5min, 8h",
        ),
        ("measure --period 0", "--period: invalid period `0`: expected 10us to 100s"),
        ("measure --period -5us", "--period: invalid period `-5us`: expected 10us to 100s"),
        ("measure --duration 1", "--duration: invalid duration `1`: expected a unit, as in 1us, 1ms, 1s, 1min or 1h"),
        ("measure --load cpu:0", "--load: invalid load `cpu:0`: expected a share of 1 to 100 percent, like cpu:50"),
        ("measure --load cpu:101", "--load: invalid load `cpu:101`: expected a share of 1 to 100 percent, like cpu:50"),
        (
            "measure --policy fifo:0",
            "--policy: invalid policy `fifo:0`: expected a priority from 1 to 99, like fifo:80",
        ),
        (
            "measure --policy fifo:100",
            "--policy: invalid policy `fifo:100`: expected a priority from 1 to 99, like fifo:80",
        ),
        (
            "measure --policy fifoo:80",
            "--policy: unknown scheduling policy `fifoo:80` (did you mean `fifo:80`? known: other other:nice=N batch idle fifo:PRIORITY rr:PRIORITY deadline:RUNTIME/DEADLINE/PERIOD)",
        ),
        (
            "measure sleep --runtime c,pyton3",
            "--runtime: unknown runtime `pyton3` (did you mean `python3`? known: c python3 node go java)",
        ),
        ("measure sleep --targets 1us", "--targets: invalid period `1us`: expected 10us to 100s"),
        ("measure sleep --policy other,other", "--policy: duplicate value `other`"),
        (
            "measure sleep:c --policy deadline:1ms/10ms/10ms --period 10ms",
            "method sleep cannot run under SCHED_DEADLINE: a runtime has several threads; choose another policy",
        ),
        ("run --duration 10us", "duration 10us is shorter than the period of 1ms; measure at least 1ms"),
        ("run --cpus=", "no CPU is selected; name at least one, like 0"),
        ("measure --timer-slack 0s", "invalid timer slack: expected 1ns to 1s; to the kernel 0 means \"the default\""),
        (
            "run --duration 366d --repetitions 10000",
            "40000 measurements take more than a year; reduce the duration or the number of blocks",
        ),
        ("run no-such-plan.toml", "no-such-plan.toml: No such file or directory (os error 2)"),
        (
            "show no-such-run",
            "invalid run no-such-run: it has no run.jsonl; name a directory written by `punctual run`",
        ),
        ("capture --for 0s", "--for: invalid duration `0s`: expected a positive duration, like 10s"),
        ("capture --most 5", "--most: invalid size `5`: expected e.g. 500MB or 2GB"),
        ("capture --output no/such/t.dat", "cannot write no/such/t.dat: No such file or directory (os error 2)"),
        (
            "capture --output /dev/null",
            "cannot write /dev/null: it exists; remove it, or name another file with --output",
        ),
        ("capture --on board", "--on: unknown machine `board` (known: here ssh:HOST exec:COMMAND)"),
        (
            "measure --policy fifo:80 --timer-slack 1us",
            "unsupported: timer slack of real-time threads, the only ones here; leave it out",
        ),
    ] {
        punctual(arguments).expect_error(line);
    }
}

#[test]
fn an_unknown_load_is_refused_with_the_nearest_and_all_that_are_known() {
    let said = punctual("measure --load mesaging");
    let begin = "punctual: --load: unknown load `mesaging` (did you mean `messaging`? known: none cpu[:PERCENT] ";
    assert!(said.stderr.starts_with(begin) && said.stderr.lines().count() == 1, "{said:?}");
    assert_eq!(said.status, 1);
}

#[test]
fn a_cpu_that_is_not_there_is_refused() {
    for arguments in ["measure --cpus 99", "run --cpus 99"] {
        let said = punctual(arguments);
        assert_eq!(said.status, 1);
        assert!(said.stderr.starts_with("punctual: cannot use CPU 99: this process may use "), "{said:?}");
        assert_eq!(said.stderr.lines().count(), 1);
    }
}

#[test]
fn a_mistake_in_a_plan_is_named_with_its_place() {
    let scratch = Scratch::new("plans");
    for (text, line) in [
        (&b"[axes]\nload = []\n"[..], "2:8: axis `load` is empty; give it a value or leave it out"),
        (
            b"[axes]\n\n  laod = [\"none\"]\n",
            "3:3: unknown axis `laod` (did you mean `load`? known: kernel load policy period method runtime only)",
        ),
        (
            b"repetition = 3\n",
            "1:1: unknown key `repetition` (did you mean `repetitions`? known: title study repetitions aa duration cycles min_cycles warm_up seed cpus timer_slack align distance period_step cpu_dma_latency load_cpus load_policy load_must_hold loads prepare explain stop_above on_spike tracers roles axes knobs require files)",
        ),
        (b"title = \"a\"\ntitle = \"\xff\"\n", "2: not UTF-8; save the plan as UTF-8 text"),
    ] {
        let plan = scratch.file("plan.toml", text);
        run(command("run").arg(&plan)).expect_error(&format!("{}:{line}", plan.display()));
    }
    assert_eq!(std::fs::read_dir(scratch.dir()).unwrap().count(), 1, "only the plan is there");
}

#[test]
fn a_cell_that_is_no_cell_is_refused() {
    let said = run(command("cell").stdin(Stdio::null()));
    assert!(said.stderr.starts_with("punctual: stdin: EOF while parsing"), "{said:?}");
    assert_eq!((said.status, said.stderr.lines().count()), (1, 1));
}
