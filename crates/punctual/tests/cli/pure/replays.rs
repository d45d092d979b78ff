//! Recorded faults, explained again: the same cause, owner and nanoseconds on every machine.

use crate::program::{Scratch, command, punctual, run};
use crate::servo::{FAULTS, Fault, all_faults, is_of};
use expect_test::expect_file;
use punctual_model::{Cause, Explanation, Share};
use serde_json::Value;
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// The recordings.
pub(crate) fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/captures")
}

/// The file of the recording of a fault.
pub(crate) fn file_of(fault: &Fault) -> String {
    format!("{}-{}.dat.zst", fault.program.names().0, fault.name.replace('_', "-"))
}

/// A recorded late wake-up of a measured thread.
pub(crate) struct Spike {
    /// The series of `host/explain` that records it.
    pub(crate) series: &'static str,
    cause: Cause,
    /// The owner, where the series has one.
    owner: Option<&'static str>,
}

const fn spike(series: &'static str, cause: Cause, owner: Option<&'static str>) -> Spike {
    Spike { series, cause, owner }
}

pub(crate) static SPIKES: [Spike; 10] = [
    spike("explain higher priority", Cause::HigherPriority, Some("culprit")),
    spike("explain equal priority", Cause::EqualPriority, Some("culprit")),
    spike("explain fair competition", Cause::FairScheduling, None),
    spike("explain timer slack", Cause::TimerSlack, None),
    spike("explain SIGSTOP", Cause::Stopped, None),
    spike("explain real-time throttling", Cause::Throttling, None),
    spike("explain limit of a control group", Cause::Throttling, None),
    spike("explain page faults", Cause::PageFault, None),
    spike("explain frozen group", Cause::Stopped, None),
    spike("explain demotion", Cause::Demoted, None),
];

/// Whole traces of the example with a fault: their names, their lengths, s, and what keeps the machine busy meanwhile.
pub(crate) static WHOLE: [(&str, &str, &str); 2] =
    [("whole-busy", "0.4", "timeout 1 sh -c 'while :; do :; done'"), ("whole-quiet", "1", "true")];

/// The file of a whole trace.
pub(crate) fn whole_file(name: &str) -> String {
    format!("{name}.dat.gz")
}

impl Spike {
    /// The file of the recording.
    pub(crate) fn file(&self) -> String {
        format!("{}.dat.zst", self.series.to_lowercase().replace(' ', "-"))
    }

    /// Whether this is its cause, or one of two that no event separates.
    pub(crate) fn is_meant(&self, share: &Share) -> bool {
        (share.cause == self.cause || share.or == Some(self.cause))
            && self.owner.is_none_or(|owner| owner == share.owner.name)
    }
}

/// Spikes of a recording, as they are explained now.
fn again(path: &Path) -> Vec<Explanation> {
    let said = run(command("explain --again --format json").arg(path));
    assert_eq!((said.status, said.stderr.as_str()), (0, ""), "{}", path.display());
    let spikes = said.json()["spikes"].as_array().unwrap().clone();
    spikes.into_iter().map(|spike: Value| serde_json::from_value(spike["now"].clone()).unwrap()).collect()
}

/// Recordings are explained where system calls have their numbers.
fn may_replay() -> bool {
    let is_same = cfg!(target_arch = "x86_64");
    if !is_same {
        eprintln!("skipped: recorded on x86_64");
    }
    is_same
}

/// Adds the explanations of a recording to `text`: each adds up, and one of them is as `is_named` says.
#[track_caller]
fn replay(text: &mut String, file: &str, is_named: impl Fn(&Share) -> bool) {
    let all = again(&directory().join(file));
    assert!(all.iter().filter_map(Explanation::blame).any(is_named), "{file}: {all:#?}");
    writeln!(text, "{file}").unwrap();
    for one in &all {
        assert!(one.is_complete(), "{one:#?}");
        let thread = one.thread.as_ref().map_or("measured thread", |thread| &thread.name);
        writeln!(text, "  {thread}: {} ns", one.latency.ns()).unwrap();
        for share in &one.shares {
            let code = share.code.as_ref().map_or("", |code| code.at.function.as_deref().unwrap_or("?"));
            let line = format!(
                "    {} ns in {}, {}: {} {code}",
                share.total.ns(),
                share.pieces,
                share.evidence,
                crate::servo::described(share)
            );
            writeln!(text, "{}", line.trim_end()).unwrap();
        }
    }
}

#[test]
fn every_recorded_cause_is_named_again() {
    if !may_replay() {
        return;
    }
    let mut text = String::new();
    for fault in all_faults() {
        replay(&mut text, &file_of(fault), |share| is_of(share, fault));
    }
    for spike in &SPIKES {
        replay(&mut text, &spike.file(), |share| spike.is_meant(share));
    }
    expect_file![directory().join("verdicts.txt")].assert_eq(&text);
}

#[test]
fn whole_recordings_tell_the_same_again() {
    if !may_replay() {
        return;
    }
    for (name, ..) in WHOLE {
        let said = run(command("watch --all --from").arg(whole_file(name)).current_dir(directory()));
        assert_eq!(said.stderr, "", "{name}");
        expect_file![directory().join(format!("{name}.txt"))].assert_eq(&said.stdout);
    }
}

#[test]
fn recordings_that_cannot_be_read_are_named_and_the_others_are_explained() {
    if !may_replay() {
        return;
    }
    let scratch = Scratch::new("replays");
    let whole = std::fs::read(directory().join(file_of(&FAULTS[0]))).unwrap();
    let captures = scratch.path("captures");
    std::fs::create_dir(&captures).unwrap();
    scratch.file("run.jsonl", "");
    let run_dir = scratch.dir();
    let none = punctual(&format!("explain {} --again", run_dir.display()));
    assert_eq!((none.status, none.stdout.as_str()), (1, ""));
    assert!(none.last_line().contains("no events are kept of its spikes"), "{none:?}");
    let mut damaged = whole.clone();
    let middle = damaged.len() / 2;
    damaged[middle] ^= 1;
    for (name, content) in [("a.dat.zst", &whole[..]), ("b.dat.zst", &damaged), ("c.dat.zst", b"text"), ("d.txt", b"")]
    {
        std::fs::write(captures.join(name), content).unwrap();
    }
    std::os::unix::fs::symlink(captures.join("a.dat.zst"), captures.join("e.dat.zst")).unwrap();
    let said = punctual(&format!("explain {} --again", run_dir.display()));
    assert_eq!(said.status, 1);
    let n = again(&captures.join("a.dat.zst")).len();
    assert!(said.stdout.starts_with(&format!("0 of {n} verdict")), "{said:?}");
    // The captures alone tell the same.
    let copied = punctual(&format!("explain {} --again", captures.display()));
    assert_eq!((copied.status, &copied.stdout, &copied.stderr), (1, &said.stdout, &said.stderr));
    let lines: Vec<&str> = said.stderr.lines().collect();
    for (line, begin) in lines.iter().zip([
        "punctual: b.dat.zst: damaged",
        "punctual: c.dat.zst: damaged",
        "punctual: e.dat.zst: cannot read",
    ]) {
        assert!(line.starts_with(begin), "{said:?}");
    }
    assert_eq!(lines.len(), 3, "{said:?}");
}
