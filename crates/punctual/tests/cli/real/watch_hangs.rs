//! Threads that never come back: whatever hides them, a verdict about them is not PASS.

use crate::program::{Scratch, command, inconclusive, machine_and_scratch, punctual, run, skip_unless};
use crate::real::watch::{saw_nothing, watched};
use crate::servo::{compiled_from, may_watch};
use std::path::Path;

/// A loop of 2 ms that does something else for good after 100 activations: its first argument says what. The due time
/// of the activation that never ends is in the file that the second argument names.
const HANG: &str = r#"
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static void *other(void *nothing) { for (;;) pause(); return nothing; }
static int64_t now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec * 1000000000ll + t.tv_nsec; }

int main(int n, char **words) {
    if (n != 3) return 2;
    const char *mode = words[1];
    struct sched_param fifo = { .sched_priority = 50 }, none = { 0 };
    pthread_t thread;
    int ends[2];
    char byte;
    prctl(PR_SET_NAME, "hang");
    pthread_create(&thread, 0, other, 0);
    sched_setscheduler(0, SCHED_FIFO, &fifo);
    int64_t due = now();
    int loops = 0;
    for (;;) {
        due += 2000000;
        struct timespec at = { due / 1000000000, due % 1000000000 };
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, 0);
        if (loops++ != 100) continue;
        FILE *file = fopen(words[2], "w");
        if (!file || fprintf(file, "%lld", (long long)due) < 0 || fclose(file)) return 1;
        if (!strcmp(mode, "lock")) pthread_mutex_lock(&lock), pthread_mutex_lock(&lock);
        if (!strcmp(mode, "loop")) { sched_setscheduler(0, SCHED_OTHER, &none); for (;;) ; }
        if (!strcmp(mode, "read")) if (!pipe(ends)) while (read(ends[0], &byte, 1)) ;
        if (!strcmp(mode, "stop")) raise(SIGSTOP);
        if (!strcmp(mode, "wait")) due += 3600000000000ll;
        if (!strcmp(mode, "thread")) pthread_exit(0);
        if (!strcmp(mode, "exit")) _exit(0);
        if (!strcmp(mode, "crash")) raise(SIGSEGV);
    }
}
"#;

/// What a mode does to the thread.
enum Fate {
    /// It is there and does not come back; the verdict says so with these words.
    Hangs(&'static str),
    /// It is gone; the verdict says so with these words.
    Ends(&'static str),
}

const MODES: [(&str, Fate); 8] = [
    ("lock", Fate::Hangs("hang had not finished an activation after ")),
    ("loop", Fate::Hangs("hang had not finished an activation after ")),
    ("read", Fate::Hangs("hang had not finished an activation after ")),
    ("stop", Fate::Hangs("hang had not finished an activation after ")),
    ("wait", Fate::Hangs("hang was not released for ")),
    ("thread", Fate::Ends("hang ended after ")),
    ("exit", Fate::Ends("the program ended after ")),
    ("crash", Fate::Ends("(signal: 11 (SIGSEGV)")),
];

/// The words of a verdict on one line.
fn verdict(text: &str) -> String {
    let from = text.rfind("Verdict: ").map_or("", |at| &text[at..]);
    from.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn hang(scratch: &Scratch) -> String {
    compiled_from(scratch, "hang", HANG, &[]).display().to_string()
}

/// A limit that nothing has exceeded yet is inconclusive, one that the hang has exceeded is violated.
#[track_caller]
fn expect_no_pass(mode: &str, words: &str, at_least_ns: Option<u64>, dir: &Path) {
    let check = |require: &str| punctual(&format!("check {} --require {require}", dir.display()));
    // On any machine that runs the program at all, nothing takes an hour.
    let open = check("max=1h");
    let said = verdict(&open.stdout);
    assert!(
        open.status == 3 && said.starts_with("Verdict: INCONCLUSIVE: ") && said.contains(words),
        "{mode}: {open:?}"
    );
    let tight = check("max=50ms");
    let said = verdict(&tight.stdout);
    match at_least_ns {
        Some(at_least_ns) if at_least_ns > 50_000_000 => {
            assert!(tight.status == 2 && said.contains(": max at least "), "{mode}: {tight:?}");
        }
        _ => assert!([2, 3].contains(&tight.status), "{mode}: {tight:?}"),
    }
    // Neither does any other number pass.
    for require in ["p99=1h", "misses_per_hour=1000000000", "max=1h,p999=1h"] {
        let said = check(require);
        assert!(said.status == 3, "{mode} {require}: {said:?}");
    }
}

/// Time, ns, between the due time of the activation that never ends, which is in a file, and the end of the measured
/// time in `dir`; `None` if the machine let the program not come so far.
fn hangs_for_ns(file: &Path, dir: &Path) -> Option<u64> {
    let record = watched(dir).0;
    let due_ns = std::fs::read_to_string(file).ok().and_then(|due| due.parse().ok());
    let ns = due_ns.and_then(|due_ns| (record.started.0 + record.measured.ns()).checked_sub(due_ns));
    if ns.is_none() {
        inconclusive("the program did not come to its hang within the measured time");
    }
    ns
}

#[test]
fn root_a_thread_that_never_comes_back_is_no_pass() {
    skip_unless!(may_watch());
    let (_machine, scratch) = machine_and_scratch("watch-hangs");
    let program = hang(&scratch);
    for (mode, fate) in &MODES {
        let dir = scratch.path(mode);
        // A program that ends is watched until then.
        let time = if ["exit", "crash"].contains(mode) { "1h" } else { "1s" };
        let options = format!(
            "watch --for {time} --warm-up 0s --deadline 2ms --no-explain --require max=1h --out {}",
            dir.display()
        );
        let file = scratch.path(&format!("{mode}.due"));
        let said = run(command(&options).args(["--", &program, mode]).arg(&file));
        if saw_nothing(&said) {
            continue;
        }
        assert!(said.status == 3 || said.status == 0, "{mode}: {said:?}");
        let shown = punctual(&format!("show {} --format json", dir.display())).expect_success().json();
        let thread = &shown["cells"][0]["summary"]["watch"]["threads"][0];
        let at_least_ns = thread["open"]["at_least_ns"].as_u64();
        match fate {
            Fate::Hangs(words) => {
                let Some(hangs_for_ns) = hangs_for_ns(&file, &dir) else { continue };
                // The wait that nothing ends is open from the next due time on.
                let passed_ns = hangs_for_ns.saturating_sub(if *mode == "wait" { 2_000_000 } else { 0 });
                assert!(at_least_ns >= Some(passed_ns), "{mode}: {passed_ns} {thread}");
                let is_late = at_least_ns > Some(2_000_000);
                assert_eq!(thread["late"].as_u64() > Some(0), is_late, "{mode}: {thread}");
                expect_no_pass(mode, words, at_least_ns, &dir);
            }
            Fate::Ends(words) if !thread["ended"].is_null() => {
                assert!(thread["open"].is_null(), "{mode}: {thread}");
                expect_no_pass(mode, words, None, &dir);
            }
            Fate::Ends(_) => {
                assert_eq!(*mode, "thread", "the program has ended: {thread}");
                let Some(_) = hangs_for_ns(&file, &dir) else { continue };
                assert!(!thread["open"].is_null() && said.status == 3, "{thread}");
            }
        }
        assert!(said.status == 3 && verdict(&said.stdout).starts_with("Verdict: INCONCLUSIVE: "), "{mode}: {said:?}");
    }
}

#[test]
fn root_a_plan_whose_program_hangs_is_no_pass() {
    skip_unless!(may_watch());
    let (_machine, scratch) = machine_and_scratch("watch-hangs-plan");
    let program = hang(&scratch);
    let file = scratch.path("due");
    let plan = format!(
        "repetitions = 1\nduration = \"1s\"\nwarm_up = \"0s\"\n[axes]\nload = [\"none\"]\npolicy = [\"other\"]\n\
         method = [\"watch:{program} lock {}\"]\n[require]\nmax = \"1h\"\n",
        file.display()
    );
    let (plan, dir) = (scratch.file("plan.toml", plan), scratch.path("plan"));
    let said = run(command("run").arg(plan).arg("--wait").arg("--out").arg(&dir));
    if said.stderr.contains("nothing to report: ") || watched(&dir).1.threads.is_empty() {
        return inconclusive("the program did nothing");
    }
    let Some(_) = hangs_for_ns(&file, &dir) else { return };
    assert_eq!(said.status, 3, "{said:?}");
    let at_least_ns = watched(&dir).1.threads[0].open.as_ref().map(|open| open.at_least.ns());
    expect_no_pass("lock", "hang had not finished an activation after ", at_least_ns, &dir);
}

#[test]
fn root_a_thread_that_spins_unseen_is_no_pass() {
    skip_unless!(may_watch());
    let (_machine, scratch) = machine_and_scratch("watch-spins");
    let source = r#"
#include <pthread.h>
#include <unistd.h>
static void *spin(void *nothing) { for (;;) ; return nothing; }
int main(void) { pthread_t thread; pthread_create(&thread, 0, spin, 0); for (;;) usleep(2000); }
"#;
    let program = compiled_from(&scratch, "spins", source, &[]).display().to_string();
    let options = "watch --for 1s --warm-up 0s --no-explain --no-keep --require max=1h";
    let said = run(command(options).args(["--", &program]));
    skip_unless!(!saw_nothing(&said));
    let verdict = verdict(&said.stdout);
    assert!(said.status == 3 && verdict.contains("nothing is known of thread spins (running)"), "{said:?}");
}

#[test]
fn root_a_thread_that_is_always_behind_is_told_and_late_where_it_has_a_period() {
    skip_unless!(may_watch());
    let (_machine, scratch) = machine_and_scratch("watch-behind");
    // Its first argument names a file for the time at which it begins.
    let source = r#"
#include <stdio.h>
#include <time.h>
int main(int n, char **words) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    FILE *file = fopen(words[n - 1], "w");
    if (!file || fprintf(file, "%lld", t.tv_sec * 1000000000ll + t.tv_nsec) < 0 || fclose(file)) return 1;
    for (;;) clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
}
"#;
    let program = compiled_from(&scratch, "behind", source, &[]).display().to_string();
    for period in ["", "--period 10ms"] {
        let (file, dir) = (scratch.path("begun"), scratch.path(if period.is_empty() { "none" } else { "period" }));
        let options =
            format!("watch --for 1s --warm-up 0s --no-explain {period} --require max=50ms --out {}", dir.display());
        let said = run(command(&options).args(["--", &program]).arg(&file));
        let begun_ns: Option<u64> = std::fs::read_to_string(&file).ok().and_then(|text| text.parse().ok());
        if said.last_line().contains("nothing to report: ") || begun_ns.is_none() {
            return inconclusive("the program did not begin");
        }
        let (record, watch) = watched(&dir);
        if begun_ns > Some(record.started.0 + record.measured.ns()) {
            return inconclusive("the program began after the measured time");
        }
        let verdict = verdict(&said.stdout);
        if period.is_empty() {
            assert!(said.status == 3 && verdict.contains("nothing is known of thread behind (running)"), "{said:?}");
            assert!(said.stdout.contains("behind (other) has no activations, as it never waited twice"), "{said:?}");
            continue;
        }
        let open = watch.threads.iter().find_map(|thread| thread.open.as_ref()).expect("an open activation");
        let is_beyond = open.at_least.ns() > 50_000_000;
        assert!(said.status == if is_beyond { 2 } else { 3 }, "{open:?} {said:?}");
        assert!(said.stdout.contains("behind never waited"), "{said:?}");
    }
}
