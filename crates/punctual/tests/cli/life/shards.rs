//! Shards of a run: made apart, resumed, merged to the run of one machine; what does not belong together is refused.

use crate::program::{
    ProgramOutput, Scratch, a_cpu, command, entries, header, is_root, machine_and_scratch, punctual, run, set_mode,
    skip_unless,
};
use model::Entry;
use std::collections::BTreeSet;
use std::os::unix::fs::{chown, symlink};
use std::path::{Path, PathBuf};

/// A plan of 8 short measurements on this machine: 4 blocks of two cells.
fn plan(scratch: &Scratch) -> String {
    let text = format!(
        "repetitions = 4\nduration = \"50ms\"\nwarm_up = \"10ms\"\ncpus = \"{}\"\n[axes]\nload = [\"none\"]\n\
         policy = [\"other\"]\nperiod = [\"1ms\", \"2ms\"]\n",
        a_cpu()
    );
    scratch.file("plan.toml", text).display().to_string()
}

/// Measures a shard into the directory of its name; returns that.
fn shard(scratch: &Scratch, plan: &str, shard: &str, options: &str) -> PathBuf {
    let out = scratch.path(&shard.replace('/', "of"));
    punctual(&format!("run {plan} --shard {shard} --wait {options} --out {}", out.display())).expect_success();
    out
}

pub(crate) fn merge(dirs: &[&Path], out: &Path, options: &str) -> ProgramOutput {
    run(command(&format!("merge {options}")).args(dirs).arg("--out").arg(out))
}

/// The lines of a run without its header.
pub(crate) fn lines(dir: &Path) -> Vec<String> {
    std::fs::read_to_string(dir.join("run.jsonl")).unwrap().lines().skip(1).map(str::to_owned).collect()
}

fn blocks(entries: &[Entry]) -> BTreeSet<u32> {
    entries.iter().map(|entry| entry.planned.block).collect()
}

#[test]
fn shards_of_this_machine_are_whole_blocks_and_merge_to_one_run() {
    let (_machine, scratch) = machine_and_scratch("shards");
    let plan = plan(&scratch);
    let first = shard(&scratch, &plan, "1/2", "");
    // The second is made in two sessions.
    let second = shard(&scratch, &plan, "2/2", "--blocks 1");
    assert_eq!((blocks(&entries(&first)), blocks(&entries(&second))), ([0, 2].into(), [1].into()));

    let out = scratch.path("whole");
    let said = merge(&[&first, &second], &out, "");
    assert_eq!((said.status, said.stdout.as_str()), (3, &*format!("{}: 6 of 8 measurements\n", out.display())));
    assert_eq!(said.stderr, "missing: 2 measurements, of shard 2/2 (2 of 4); make them, then merge again\n");
    let said = punctual(&format!("run --resume --wait --out {}", second.display())).expect_success();
    assert!(
        said.last_line().starts_with("shard 2/2: 4 of 4 measurements made; merge it with the others: "),
        "{said:?}"
    );
    assert!(said.stdout.is_empty(), "no verdict: {said:?}");

    let said = merge(&[&second, &first], &out, "").expect_success();
    assert_eq!(said.stdout, format!("{}: 8 of 8 measurements\n", out.display()));
    let (merged, header) = (entries(&out), header(&out));
    assert_eq!((merged.len(), header.shard), (8, None));
    let in_file = lines(&out).into_iter().map(|line| serde_json::from_str::<Entry>(&line).unwrap().planned);
    assert_eq!(in_file.collect::<Vec<_>>(), header.measurements(), "in order");
    for part in [&first, &second] {
        assert!(lines(part).iter().all(|line| lines(&out).contains(line)), "the same bytes");
    }
    let before = std::fs::read(out.join("run.jsonl")).unwrap();
    let said = merge(&[&first, &second, &first], &out, "").expect_success();
    assert_eq!(said.stdout, format!("{}: 8 of 8 measurements, unchanged\n", out.display()));
    assert_eq!(std::fs::read(out.join("run.jsonl")).unwrap(), before);
    let shown = punctual(&format!("show {} --format json", out.display())).expect_success().json();
    assert_eq!(shown["run"]["blocks"], 4);
    assert!(!shown["run"]["findings"].to_string().contains("not_all_cells_done"), "{}", shown["run"]["findings"]);
}

#[test]
fn a_dry_run_shows_the_measurements_of_a_shard() {
    let scratch = Scratch::new("shards-dry");
    let plan = plan(&scratch);
    let dry = |shard: &str| {
        let out = scratch.path("never");
        punctual(&format!("run {plan} --dry-run --format json --shard {shard} --out {}", out.display()))
    };
    let of = |shard: &str| dry(shard).expect_success().json();
    let (first, third) = (of("1/3"), of("3/3"));
    assert_eq!((&first["measurements"], &third["measurements"]), (&4.into(), &2.into()));
    assert_eq!((first["order"].as_array().unwrap().len(), third["order"].as_array().unwrap().len()), (2, 1));
    assert!(first["seed"].is_u64() && first["seed"] == third["seed"], "one order on all machines");
    dry("5/5").expect_error("invalid --shard 5/5: this plan has 4 blocks; use N up to 4");
    assert!(!scratch.path("never").exists());
}

#[test]
fn bad_shards_are_one_line() {
    let scratch = Scratch::new("shards-bad");
    let plan = plan(&scratch);
    for shard in ["0/2", "3/2", "x", "1/0", "1/20000"] {
        let said = punctual(&format!("run {plan} --out {} --shard {shard}", scratch.path("o").display()));
        let reason = format!("invalid shard \"{shard}\": expected I/N, from 1/N to N/N, with N up to 10000");
        assert!(said.status == 1 && said.stderr.contains(&reason), "{said:?}");
        assert_eq!(said.stderr.trim_end().lines().count(), 1, "{said:?}");
    }
    let with = |options: &str| punctual(&format!("run {plan} --shard 1/2 {options}"));
    assert!(with("").stderr.contains("--out"), "{:?}", with(""));
    assert_eq!(with("--out x --until enough --at-most 1h").status, 1);
    let empty = scratch.path("empty");
    std::fs::create_dir(&empty).unwrap();
    let said = merge(&[&empty], &scratch.path("out"), "");
    let none = format!("punctual: {}: no measurement was begun there\n", empty.display());
    assert_eq!(said.stderr, none + "punctual: cannot merge: no shard has a measurement\n");
    merge(&[&scratch.path("nowhere")], &scratch.path("out"), "").expect_error(&format!(
        "invalid run {}: it has no run.jsonl; name a directory written by `punctual run`",
        scratch.path("nowhere").display()
    ));
    assert!(!scratch.path("out").exists());
}

#[test]
fn root_shards_of_another_user_are_merged_only_with_consent() {
    skip_unless!(is_root());
    let (_machine, scratch) = machine_and_scratch("shards-foreign");
    let plan = plan(&scratch);
    let [first, second] = ["1/2", "2/2"].map(|one| shard(&scratch, &plan, one, ""));
    let out = scratch.path("out");
    let refused = |what: &Path, why: &str| {
        let yours = "and would run from files of your own; read it, then add --yes";
        merge(&[&first, &second], &out, "").expect_error(&format!("{} {why}, {yours}", what.display()));
        assert!(!out.exists());
    };
    let file = second.join("run.jsonl");
    chown(&file, Some(54321), None).unwrap();
    refused(&file, "is owned by user 54321");
    chown(&file, Some(0), None).unwrap();
    set_mode(&second, 0o777);
    refused(&file, "is in a directory that other users may write (chmod go-w)");
    set_mode(&second, 0o755);
    chown(&second, Some(54321), None).unwrap();
    refused(&file, "is in a directory of user 54321");
    merge(&[&first, &second], &out, "--yes").expect_success();
    chown(&second, Some(0), None).unwrap();

    // Links in a shard are not followed.
    let elsewhere = scratch.path("elsewhere");
    std::fs::rename(&file, &elsewhere).unwrap();
    symlink(&elsewhere, &file).unwrap();
    let said = merge(&[&first, &second], &scratch.path("again"), "--yes");
    said.expect_error(&format!("cannot read {}: expected a regular file, found a link", file.display()));
}
