//! Recorded traces: judged without a machine, the same everywhere; what cannot be read is one line.

use super::schema::assert_conforms;
use crate::program::{Scratch, command, punctual, run};
use expect_test::expect;
use ftrace::testing::loop_file;
use std::path::PathBuf;

/// A trace of a thread with a period of 2 ms.
fn trace(scratch: &Scratch) -> PathBuf {
    let path = scratch.path("trace.dat");
    std::fs::write(&path, loop_file(0)).unwrap();
    path
}

#[test]
fn a_recorded_trace_has_its_threads_and_why_they_were_late() {
    let scratch = Scratch::new("recorded");
    trace(&scratch);
    let said = run(command("watch --from trace.dat").current_dir(scratch.dir())).expect_success();
    expect![[r#"
        trace.dat: 238 ms of 1 CPU, 841 events
        Not in the trace: system calls: what a thread waits for, and why it slept.
        Not in the trace: page faults.

        spike 1 of 1   control took 448 us   CPU 0   0.1980 s
          |||------------------------------------ 401 us -------------------------------------|- 45 us -|
          expiry to interrupt 600 ns | interrupt to wakeup 1.4 us | wakeup to switch 401 us | activation
            45 us
          logger ran 400 us in the kernel, not preemptible, or the CPU was stalled (host, SMI), 89 % of it
            [ambiguous].
          then its usual work took 45 us [direct]
          then the wake-up itself took 2 us [direct]
          then interrupt local_timer ran 1 us [direct]
          Try: boot with preempt=full, or use a PREEMPT_RT kernel (punctual doctor: preemption-model,
            workqueues).

        What makes it late: 1 activation above 150 us, 1 explained, 448 us in all
          cause, and by whom                        share     total     worst  wake-ups  blamed
          not preemptible or CPU stalled by logger   89 %    400 us    400 us         1       1
          its usual work by control                  10 %     45 us     45 us         1       0
          2 causes of less than 0.5 %                 1 %      3 us      2 us                 0
        Evidence: direct 11 %, inferred 0 %, ambiguous 89 %, undetermined 0 %.
        not preemptible or CPU stalled: boot with preempt=full, or use a PREEMPT_RT kernel (punctual doctor:
          preemption-model, workqueues).

          thread   period  activations  late    latency     jitter      run  response
          control    2 ms          119     0  5.0 / 403  0.0 / 398  45 / 45  50 / 448
        control waits in unknown call with a timer, released by its timer, measured from the due time;
          period 2 ms (found; 100 % of the intervals follow it).
        p50 / max in us unless marked. Latency: from the release until the program runs; run: on the CPU;
          response: from the release to the next wait.
    "#]]
    .assert_eq(&said.stdout);
    let explained = run(command("explain trace.dat --thread cont* --all").current_dir(scratch.dir())).expect_success();
    assert_eq!(explained.stdout, said.stdout);
    let json = run(command("watch --from trace.dat --format json").current_dir(scratch.dir())).json();
    assert_conforms("recorded", &json);
    assert_eq!((&json["threads"][0]["name"], &json["threads"][0]["activations"]), (&"control".into(), &119.into()));
    assert_eq!(json["explained"]["worst"][0]["latency_ns"], 448_000);
}

#[test]
fn what_is_no_trace_and_what_is_not_asked_of_one_is_refused() {
    let scratch = Scratch::new("recorded-refused");
    let path = trace(&scratch);
    let shown = path.display();
    std::fs::write(scratch.path("cut.dat"), &loop_file(0)[..20_000]).unwrap();
    let cut = scratch.path("cut.dat");
    for (arguments, line) in [
        (
            format!("watch --from {shown} --thread none"),
            format!("{shown}: nothing to report: no thread named `none` waited twice in one call"),
        ),
        (
            format!("watch --from {shown} --format md"),
            "unsupported: a recorded trace in this format; use text or json".to_owned(),
        ),
        (format!("watch --from {shown} --pid 1"), "--from cannot be combined with --pid <PID>".to_owned()),
        (format!("explain {shown} --cpus 0"), "FILE cannot be combined with --cpus <LIST>".to_owned()),
        (format!("explain {}", cut.display()), format!("{}: damaged: content beyond its end", cut.display())),
        ("watch --from /dev/zero".to_owned(), "/dev/zero: expected a regular file, found a device".to_owned()),
    ] {
        let said = punctual(&arguments);
        assert_eq!((said.status, said.stderr), (1, format!("punctual: {line}\n")), "{arguments}");
    }
}

#[test]
fn a_directory_has_one_trace_or_is_refused_in_one_line() {
    let scratch = Scratch::new("recorded-directory");
    for name in ["one", "two", "empty", "run", "kept", "threads"] {
        std::fs::create_dir(scratch.path(name)).unwrap();
    }
    for name in ["one/trace.dat", "two/a.dat", "two/b.dat", "run/trace.dat", "kept/a.dat.zst", "kept/trace.dat"] {
        std::fs::write(scratch.path(name), loop_file(0)).unwrap();
    }
    for name in ["run/run.jsonl", "threads/data", "threads/data.0"] {
        std::fs::write(scratch.path(name), "").unwrap();
    }
    for (target, link) in [("one", "link"), ("nowhere", "dangling")] {
        std::os::unix::fs::symlink(target, scratch.path(link)).unwrap();
    }
    for name in ["one", "link"] {
        let said = run(command("explain --thread control").arg(name).current_dir(scratch.dir())).expect_success();
        assert!(said.stdout.starts_with(&format!("{name}: 238 ms of 1 CPU, 841 events\n")), "{said:?}");
    }
    let kept = "expected a recorded trace; for kept spikes: punctual explain";
    for (name, line) in [
        ("two", "several recorded traces, two/a.dat to two/b.dat; name one: punctual explain two/a.dat".to_owned()),
        (
            "empty",
            "unsupported: files without traces/cpu0, formats/header_page and formats/sched/sched_switch/format"
                .to_owned(),
        ),
        ("run", format!("{kept} run --again")),
        ("dangling", "No such file or directory (os error 2)".to_owned()),
        ("kept", format!("{kept} kept --again")),
        (
            "threads",
            "unsupported: perf.data in a directory; read its text: perf script --ns -i FILE > FILE.txt".to_owned(),
        ),
    ] {
        let said = run(command("explain").arg(name).current_dir(scratch.dir()));
        assert_eq!((said.status, said.stderr), (1, format!("punctual: {name}: {line}\n")));
    }
    let said = run(command("explain empty --again").current_dir(scratch.dir()));
    let line = "invalid run empty: it has no run.jsonl; name a directory written by `punctual run`";
    assert_eq!((said.status, said.stderr), (1, format!("punctual: {line}\n")));
}
