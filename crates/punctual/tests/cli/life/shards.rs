//! Shards of a run: made apart, resumed, merged to the run of one machine; what does not belong together is refused.

use crate::program::{
    ProgramOutput, Scratch, a_cpu, command, entries, header, machine, machine_and_scratch, punctual, run,
};
use crate::session::play;
use punctual_model::Entry;
use std::collections::BTreeSet;
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
fn shards_that_cannot_be_made_or_merged_are_refused() {
    let _machine = machine();
    play(|scratch, _| drop(plan(scratch)));
}
