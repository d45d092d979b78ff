//! Help fits a screen, and its examples can be typed.

use super::*;

/// Each visible command with its words after `punctual`, but cyclictest and oslat, which print help of their own.
fn commands() -> Vec<(String, Command)> {
    fn collect(command: &Command, path: &str, into: &mut Vec<(String, Command)>) {
        for below in command.get_subcommands().filter(|below| !below.is_hide_set()) {
            let path = format!("{path} {}", below.get_name()).trim_start().to_owned();
            collect(below, &path, into);
        }
        into.push((path.to_owned(), command.clone()));
    }
    let mut root = command();
    root.build();
    let mut all = Vec::new();
    collect(&root, "", &mut all);
    all.retain(|(path, _)| path != "cyclictest" && path != "oslat");
    all
}

#[test]
fn a_screen_has_what_most_need_with_an_example() {
    for (path, command) in commands() {
        let (screen, page) = (screen(&command), page(&command));
        assert!(screen.lines().count() <= LINES, "{path}: {} lines\n{screen}", screen.lines().count());
        assert!(screen.contains("\nExample: "), "{path}: no example\n{screen}");
        for text in [&screen, &page] {
            let wide: Vec<_> = text.lines().filter(|line| line.chars().count() > COLUMNS).collect();
            assert!(wide.is_empty(), "{path}: {wide:#?}");
            assert!(!text.contains("docs/"), "{path}: names a file that is not installed\n{text}");
        }
        for arg in command.get_arguments().filter(|arg| !arg.is_hide_set() && arg.get_id() != "help") {
            let shown = arg.get_long().map_or_else(|| arg.to_string(), |long| format!("--{long}"));
            assert!(page.contains(&shown), "{path}: {shown}\n{page}");
            let is_first = arg.get_help_heading().is_none() && !path.is_empty();
            // After a short option, too.
            let begins =
                |line: &str| line.starts_with(&shown) || line.get(4..).is_some_and(|line| line.starts_with(&shown));
            assert_eq!(screen.lines().map(str::trim_start).any(begins), is_first, "{path}: {shown}\n{screen}");
        }
    }
}

#[test]
fn forms_of_values_are_topics() {
    let page = |path: &str| commands().into_iter().find(|(name, _)| name == path).map(|(_, command)| page(&command));
    let measure = page("measure").unwrap();
    assert!(
        measure.contains("\nValues: punctual help methods|policies|loads|formats|percentiles|settings\n"),
        "{measure}"
    );
    assert!(page("merge").is_some_and(|merge| !merge.contains("Values:")));
}

#[test]
fn long_lines_are_wrapped_below_their_description() {
    let words = "word ".repeat(20);
    let notes: String = wrapped(&format!("NOTE: {words}"));
    assert_eq!(notes.lines().map(str::len).collect::<Vec<_>>(), [80, 24]);
    let option = wrapped(&format!("      --name <X>  {words}"));
    assert!(option.lines().skip(1).all(|line| line.starts_with(&" ".repeat(18)) && &line[18..19] == "w"), "{option}");
    for short in
        ["", "Usage: punctual show [OPTIONS] <RUN>", "  run         Run a plan", "         punctual load --list"]
    {
        assert_eq!(wrapped(short), format!("{short}\n"));
    }
    assert_eq!(wrapped(&"x".repeat(100)), "x".repeat(100) + "\n");
}

#[test]
fn examples_can_be_typed() {
    for (path, examples) in EXAMPLES {
        for example in *examples {
            let words = &shell_commands(example)[0];
            let words = &words[words.iter().position(|word| word == "punctual").unwrap()..];
            let typed = command().try_get_matches_from(words);
            assert!(typed.is_ok(), "{example}: {:?}", typed.err());
            assert!(path.is_empty() || words[1..].join(" ").starts_with(path), "{path}: {example}");
        }
    }
    assert_eq!(EXAMPLES.len(), commands().len() + 2, "one of each command, and of cyclictest and oslat");
}

#[test]
fn every_command_of_a_group_exists() {
    let root = command();
    for name in GROUPS.iter().flat_map(|(_, names)| *names) {
        assert!(root.find_subcommand(name).is_some_and(|below| !below.is_hide_set()), "{name}");
    }
    let page = page(&root);
    for below in root.get_subcommands() {
        let shown = page.contains(&format!("\n  {} ", below.get_name()));
        assert_eq!(shown, !below.is_hide_set(), "{}", below.get_name());
    }
}

/// The commands of a line of a shell, each as its words; `$(...)` is a number, redirections are left out.
fn shell_commands(line: &str) -> Vec<Vec<String>> {
    let mut commands = vec![vec![String::new()]];
    let (mut quote, mut is_redirected) = (None, false);
    let mut chars = line.chars().peekable();
    while let Some(c) = chars.next() {
        let words = commands.last_mut().unwrap();
        let word = words.last_mut().unwrap();
        match c {
            '"' | '\'' if quote == Some(c) => quote = None,
            '"' | '\'' if quote.is_none() => quote = Some(c),
            '$' if chars.peek() == Some(&'(') => {
                chars.by_ref().find(|c| *c == ')');
                word.push('1');
            }
            '#' if quote.is_none() && word.is_empty() => break,
            ';' | '|' | '&' if quote.is_none() => {
                commands.push(vec![String::new()]);
                is_redirected = false;
            }
            '>' | '<' if quote.is_none() => is_redirected = true,
            ' ' if quote.is_none() && !is_redirected => words.push(String::new()),
            _ if !is_redirected => word.push(c),
            _ => {}
        }
    }
    commands.iter_mut().for_each(|words| words.retain(|word| !word.is_empty()));
    commands
}

/// Lines of a shell in a document: those of blocks `sh` and `yaml`, and those after `$` in blocks `console`.
fn shell_lines(text: &str) -> Vec<String> {
    let text = text.replace("\\\n", " ");
    let mut lines = Vec::new();
    let mut block = None;
    for line in text.lines() {
        if let Some(language) = line.strip_prefix("```") {
            block = if block.is_none() { Some(language) } else { None };
            continue;
        }
        match block {
            Some("sh" | "yaml") => lines.push(line.to_owned()),
            Some("console") => lines.extend(line.strip_prefix("$ ").map(str::to_owned)),
            Some(_) => {}
            None => {
                lines.extend(line.split('`').skip(1).step_by(2).filter(|_| line.contains("? | `")).map(str::to_owned))
            }
        }
    }
    lines
}

#[test]
fn commands_of_the_documents_can_be_typed() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let docs = std::fs::read_dir(root.join("docs")).unwrap().map(|entry| entry.unwrap().path());
    let mut n = 0;
    for path in docs.filter(|path| path.extension().is_some_and(|end| end == "md")).chain([root.join("README.md")]) {
        for line in shell_lines(&std::fs::read_to_string(&path).unwrap()) {
            for words in shell_commands(&line) {
                let Some(at) = words.iter().position(|word| word == "punctual" || word == "./punctual") else {
                    continue;
                };
                // Names of files that only exist where they are typed.
                let is_there =
                    |word: &&String| !["runs/2026-11-20-143205", "trace.dat", "PID"].contains(&word.as_str());
                if words.len() > at + 1 && words.iter().all(|word| is_there(&word)) {
                    let typed = command().try_get_matches_from(&words[at..]);
                    assert!(typed.is_ok(), "{}: {line}\n{}", path.display(), typed.unwrap_err());
                    n += 1;
                }
            }
        }
    }
    assert!(n > 100, "only {n} commands");
}
