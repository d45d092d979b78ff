//! Quoting of the engines' files.

use super::*;

/// A job whose names need every kind of quoting.
pub(super) fn job() -> Job {
    let title = "it's a \"gate\" $HOME `id` {{ lookup('pipe', 'id') }} {% raw %} #x: - \\ \u{b5}s";
    Job {
        name: "a b\n'\"$(id){{x}}".to_owned(),
        title: title.to_owned(),
        plan: format!("title = {title:?}\nrepetitions = 2\n"),
        shards: 3,
        duration: Duration::new(61, 500_000_000),
        needs_root: true,
        virtual_time: false,
        cpus: 3,
        architectures: vec!["x86_64".to_owned()],
        targets: vec!["board-1".to_owned(), "board-2".to_owned()],
        source: None,
    }
}

/// The files of every engine.
fn all(job: &Job) -> Vec<File> {
    [ansible(job), k8s(job), labgrid(job), lava(job), slurm(job)].concat()
}

#[test]
fn a_shard_is_named_only_where_there_are_several() {
    let mut job = job();
    assert_eq!(job.shard_option("$i"), " --shard $i/3");
    assert_eq!((job.seconds(), job.interval()), (62, 6));
    assert!(all(&job).iter().filter(|file| file.text.contains("--shard ")).count() >= 6);
    job.shards = 1;
    assert_eq!(job.shard_option("$i"), "");
    let text: String = all(&job).into_iter().map(|file| file.text).collect();
    assert!(!text.contains("--shard ") && !text.contains("merge"), "{text}");
}

#[test]
fn every_place_of_a_template_is_filled() {
    for File { name, text, .. } in all(&job()) {
        let is_left =
            text.split("<<").skip(1).any(|rest| rest.split_once(">>").is_some_and(|(name, _)| is_place(name)));
        assert!(!is_left, "{name}: {text}");
        assert!(text.ends_with('\n') && !text.ends_with("\n\n"), "{name}: {text}");
    }
}

fn is_place(name: &str) -> bool {
    name.trim_start_matches(['?', '!', '.']).chars().all(|c| c.is_ascii_uppercase())
}

#[test]
fn names_stand_in_comments_and_strings_only() {
    let job = job();
    for File { name, text, .. } in all(&job) {
        for line in text.lines().filter(|line| line.contains("lookup('pipe', 'id')")) {
            let keys = ["# ", "title = \"", "job_name: \"", "description: \"", "punctual/title: \""];
            assert!(keys.iter().any(|key| line.trim_start().starts_with(key)), "{name}: {line}");
        }
        assert!(!text.contains(&job.name) && !text.contains("$(id)"), "{name}: {text}");
    }
}

#[test]
fn pods_in_virtual_time_may_share_a_node() {
    let mut job = job();
    let text = |job: &Job| k8s(job)[0].text.clone();
    assert!(text(&job).contains("podAntiAffinity") && text(&job).contains("SYS_NICE"));
    (job.virtual_time, job.needs_root) = (true, false);
    assert!(!text(&job).contains("podAntiAffinity") && !text(&job).contains("SYS_NICE"));
}

#[test]
fn a_plan_cannot_end_its_own_quotation() {
    let mut job = job();
    job.plan = "title = \"x\"\nEND_OF_PLAN\nEND_OF_PLAN_\n".to_owned();
    let text = &lava(&job)[0].text;
    assert!(text.contains("<<'END_OF_PLAN__'"), "{text}");
}
