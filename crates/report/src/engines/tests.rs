use super::*;

/// A job whose names need every kind of quoting.
pub(super) fn job() -> Job {
    let title = "it's a \"gate\" $HOME `id` {{ lookup('pipe', 'id') }} {% raw %} #x: - \\ \u{b5}s";
    Job {
        name: "a b\n'\"$(id){{x}}".to_owned(),
        title: title.to_owned(),
        plan: format!("title = {title:?}\nrepetitions = 2\n"),
        shards: 3,
        duration: Duration::from_millis(61_500),
        needs_root: true,
        virtual_time: false,
        cpus: 3,
        architectures: vec!["x86_64".to_owned()],
        targets: vec!["board-1".to_owned(), "board-2".to_owned()],
        source: None,
    }
}

#[test]
fn a_shard_is_named_only_where_there_are_several() {
    let mut job = job();
    assert_eq!(job.shard_option("$i"), " --shard $i/3");
    assert_eq!((job.seconds(), job.interval()), (62, 6));
    job.shards = 1;
    assert_eq!(job.shard_option("$i"), "");
    let text: String = ansible::files(&job).into_iter().map(|file| file.text).collect();
    assert!(!text.contains("--shard") && !text.contains("merge"), "{text}");
}

#[test]
fn every_place_of_a_template_is_filled_and_every_line_fits() {
    for file in ansible::files(&job()) {
        let text = &file.text;
        assert!(!text.contains("<<") && !text.contains(">>"), "{}: {text}", file.name);
        assert!(text.ends_with('\n') && !text.ends_with("\n\n"), "{}", file.name);
    }
}

#[test]
fn names_stand_in_comments_and_strings_only() {
    for file in ansible::files(&job()) {
        for line in file.text.lines().filter(|line| line.contains("lookup('pipe', 'id')")) {
            assert!(line.starts_with("# ") || line.starts_with("title = \""), "{}: {line}", file.name);
        }
    }
}
