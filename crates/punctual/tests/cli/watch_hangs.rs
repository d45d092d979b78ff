//! Threads that never come back: whatever hides them, a verdict about them is not PASS.

use crate::program::{Scratch, command, machine_and_scratch, punctual, run, skip_unless};
use crate::watch_faults::{compiled_from, may_watch};
use std::path::Path;

/// A loop of 2 ms that does something else for good after 0.3 s: its argument says what.
const HANG: &str = r#"
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static void *other(void *nothing) { for (;;) pause(); return nothing; }
static int64_t now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec * 1000000000ll + t.tv_nsec; }

int main(int n, char **words) {
    const char *mode = n > 1 ? words[1] : "";
    struct sched_param fifo = { .sched_priority = 50 }, none = { 0 };
    pthread_t thread;
    int ends[2];
    char byte;
    prctl(PR_SET_NAME, "hang");
    pthread_create(&thread, 0, other, 0);
    sched_setscheduler(0, SCHED_FIFO, &fifo);
    int64_t due = now(), hang_ns = due + 300000000ll;
    for (;;) {
        due += 2000000;
        struct timespec at = { due / 1000000000, due % 1000000000 };
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, 0);
        if (now() < hang_ns) continue;
        hang_ns = INT64_MAX;
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
fn expect_no_pass(mode: &str, fate: &Fate, dir: &Path) {
    let check = |require: &str| punctual(&format!("check {} --require {require}", dir.display()));
    // On any machine that runs the program at all, nothing takes an hour.
    let open = check("max=1h");
    let (words, is_open) = match fate {
        Fate::Hangs(words) => (words, true),
        Fate::Ends(words) => (words, false),
    };
    let said = verdict(&open.stdout);
    assert!(
        open.status == 3 && said.starts_with("Verdict: INCONCLUSIVE: ") && said.contains(words),
        "{mode}: {open:?}"
    );
    let tight = check("max=50ms");
    let said = verdict(&tight.stdout);
    if is_open {
        assert!(tight.status == 2 && said.contains(": max at least "), "{mode}: {tight:?}");
    } else {
        assert!([2, 3].contains(&tight.status), "{mode}: {tight:?}");
    }
    // Neither does any other number pass.
    for require in ["p99=1h", "misses_per_hour=1000000000", "max=1h,p999=1h"] {
        let said = check(require);
        assert!(said.status == 3, "{mode} {require}: {said:?}");
    }
}

#[test]
fn root_a_thread_that_never_comes_back_is_no_pass() {
    skip_unless!(may_watch());
    let (_machine, scratch) = machine_and_scratch("watch-hangs");
    let program = hang(&scratch);
    for (mode, fate) in &MODES {
        let dir = scratch.path(mode);
        let options =
            format!("watch --for 1s --warm-up 0s --deadline 2ms --no-explain --require max=1h --out {}", dir.display());
        let said = run(command(&options).args(["--", &program, mode]));
        assert!(said.status == 3 && verdict(&said.stdout).starts_with("Verdict: INCONCLUSIVE: "), "{mode}: {said:?}");
        expect_no_pass(mode, fate, &dir);
        let shown = punctual(&format!("show {} --format json", dir.display())).expect_success().json();
        let thread = &shown["cells"][0]["summary"]["watch"]["threads"][0];
        match fate {
            Fate::Hangs(_) => {
                assert!(thread["open"]["at_least_ns"].as_u64() > Some(50_000_000), "{mode}: {thread}");
                assert!(thread["late"].as_u64() > Some(0), "{mode}: {thread}");
            }
            Fate::Ends(_) => assert!(thread["ended"].is_string() && thread["open"].is_null(), "{mode}: {thread}"),
        }
    }
    // A plan's verdict is the same.
    let plan = format!(
        "repetitions = 1\nduration = \"1s\"\nwarm_up = \"0s\"\n[axes]\nload = [\"none\"]\npolicy = [\"other\"]\n\
         method = [\"watch:{program} lock\"]\n[require]\nmax = \"1h\"\n"
    );
    let (plan, dir) = (scratch.file("plan.toml", plan), scratch.path("plan"));
    let said = run(command("run").arg(plan).arg("--out").arg(&dir));
    assert_eq!(said.status, 3, "{said:?}");
    expect_no_pass("lock", &Fate::Hangs("hang had not finished an activation after "), &dir);
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
    let verdict = verdict(&said.stdout);
    assert!(said.status == 3 && verdict.contains("nothing is known of thread spins (running)"), "{said:?}");
}
