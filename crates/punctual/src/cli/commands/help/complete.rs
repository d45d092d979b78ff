//! `punctual complete` (hidden): the words that may stand next on a command line, for the scripts of the shells.

use super::guides;
use crate::cli::arguments::{CompleteArguments, LISTS, Shell, command};
use crate::cli::commands::plan;
use crate::cli::terminal::{Outcome, RUNS, output};
use clap::{Arg, Command};
use punctual_analysis::doctor;
use punctual_model::{
    CostGroup, CostScope, HandoffKind, Level, Link, Load, Plan, Policy, Prepare, Requirement, Study, Task,
};
use punctual_report::Columns;
use std::borrow::Cow;
use std::path::Path;

/// Runs and cells that are offered.
const MOST: usize = 200;

/// A word, and what it is.
type Candidate = (String, String);

/// Prints the candidates of the last word, one a line, as the shell takes them.
pub(crate) fn complete(arguments: &CompleteArguments) -> Outcome {
    let mut root = command();
    root.build();
    let mut words = arguments.words.clone();
    if arguments.shell == Shell::Bash {
        // The whole line, because bash splits words at `:` and `=`.
        let line = words.join(" ");
        words = line.split_whitespace().map(str::to_owned).collect();
        words.extend(line.ends_with(' ').then(String::new));
    }
    let words: Vec<_> = words.iter().map(String::as_str).collect();
    let found = candidates(&root, &words);
    let partial = words.last().copied().unwrap_or_default();
    // What bash has already taken for a word of its own.
    let taken = partial.rfind([':', '=']).map_or(0, |at| at + 1);
    let line = |(value, about): &Candidate| match arguments.shell {
        Shell::Bash => format!("{}\n", value.get(taken..).unwrap_or_default()),
        Shell::Zsh => format!("{}:{about}\n", value.replace(':', "\\:")),
        Shell::Fish => format!("{value}\t{about}\n"),
    };
    output::write(found.iter().map(line).collect::<String>().as_bytes())?;
    Ok(0)
}

/// The candidates for the last of the words, the first of which is the name of the program.
fn candidates(root: &Command, words: &[&str]) -> Vec<Candidate> {
    let Some((partial, before)) = words.split_last() else { return Vec::new() };
    let (mut command, mut positionals) = (root, Vec::new());
    let (mut pending, mut is_program) = (None, false);
    for word in before.iter().skip(1) {
        if pending.take().is_some() {
            continue;
        }
        if let Some(option) = word.strip_prefix('-') {
            is_program |= *word == "--";
            pending = command.get_arguments().find(|arg| takes_next(arg, option));
        } else if let Some(below) = command.find_subcommand(word).filter(|_| positionals.is_empty()) {
            command = below;
        } else {
            positionals.push(*word);
        }
    }
    // A program of `watch`, and its arguments.
    if is_program {
        return Vec::new();
    }
    let found = match (pending, partial.strip_prefix("--").and_then(|option| option.split_once('='))) {
        (Some(arg), _) => values(arg, partial, root, &positionals),
        (None, Some((name, value))) => {
            let arg = command.get_arguments().find(|arg| arg.get_long() == Some(name));
            let of_arg = arg.map(|arg| values(arg, value, root, &positionals)).unwrap_or_default();
            of_arg.into_iter().map(|(value, about)| (format!("--{name}={value}"), about)).collect()
        }
        (None, None) if partial.starts_with('-') => options(command),
        (None, None) => {
            let below = command.get_subcommands().filter(|below| !below.is_hide_set() && positionals.is_empty());
            let below = below.map(|below| (below.get_name().to_owned(), text(below.get_about())));
            let places: Vec<_> = command.get_positionals().filter(|arg| !arg.is_last_set()).collect();
            let arg = places.get(positionals.len()).or_else(|| places.last().filter(|arg| is_repeated(arg)));
            let of_arg = arg.map(|arg| values(arg, partial, root, &positionals)).unwrap_or_default();
            below.chain(of_arg).collect()
        }
    };
    found.into_iter().filter(|(value, _)| value.starts_with(partial) && is_literal(value)).collect()
}

/// Whether a shell takes a word for what it is. Runs and cells have names by others, which a shell would carry out.
fn is_literal(word: &str) -> bool {
    matches!(punctual_model::shell_word(word), Cow::Borrowed(_))
}

/// Whether the option, typed without its first `-`, is this argument and its value is the next word.
fn takes_next(arg: &Arg, option: &str) -> bool {
    let is_it = option.strip_prefix('-').map_or_else(
        || arg.get_short().is_some_and(|short| option == short.to_string()),
        |long| arg.get_long() == Some(long),
    );
    is_it && arg.get_num_args().is_some_and(|n| n.takes_values()) && !arg.is_require_equals_set()
}

fn is_repeated(arg: &Arg) -> bool {
    arg.get_num_args().is_some_and(|n| n.max_values() > 1)
}

fn text(about: Option<&clap::builder::StyledStr>) -> String {
    about.map(ToString::to_string).unwrap_or_default()
}

fn options(command: &Command) -> Vec<Candidate> {
    let visible = command.get_arguments().filter(|arg| !arg.is_hide_set());
    visible.filter_map(|arg| Some((format!("--{}", arg.get_long()?), text(arg.get_help())))).collect()
}

/// Values of an argument, after the part of a list that is typed.
fn values(arg: &Arg, typed: &str, root: &Command, positionals: &[&str]) -> Vec<Candidate> {
    let id = arg.get_id().as_str();
    let bare = |names: Vec<String>| names.into_iter().map(|name| (name, String::new())).collect::<Vec<_>>();
    let list = LISTS.iter().find(|list| list.is_of(arg)).map_or(id, |list| list.name);
    // `--set policy=other,fifo:80` has the values of its key.
    let key = typed.split_once('=').map(|(key, _)| key).filter(|_| ["set", "knob"].contains(&id));
    let list = match key {
        None => list,
        Some("method") => "methods",
        Some("policy" | "load_policy") => "policies",
        Some("load") => "loads",
        Some(_) => return Vec::new(),
    };
    let is_end = |c: char| c == ',' || c == '+' || c == '=' && key.is_some();
    let head = typed.rfind(is_end).map_or("", |at| &typed[..=at]);
    let found = match list {
        "set" | "knob" => bare(Plan::keys_of_set().iter().map(|key| format!("{key}=")).collect()),
        "cell" => bare(cells(positionals)),
        "words" => bare(cells(positionals).into_iter().chain(runs()).collect()),
        "run" | "runs" | "baseline" | "shards" => bare(runs()),
        "path" => topics(root, positionals),
        list => of_list(list, id),
    };
    let possible = arg.get_possible_values().into_iter().filter(|value| !value.is_hide_set());
    let possible = possible.map(|value| (value.get_name().to_owned(), text(value.get_help())));
    found.into_iter().chain(possible).map(|(value, about)| (format!("{head}{value}"), about)).collect()
}

/// What `punctual help` has a text for, after these words.
fn topics(root: &Command, words: &[&str]) -> Vec<Candidate> {
    let guides = guides::NAMES.iter().map(|name| ((*name).to_owned(), guides::title(name).to_owned()));
    let shown = words.iter().try_fold(root, |command, word| command.find_subcommand(word));
    let Some(shown) = shown else { return if words == ["guide"] { guides.collect() } else { Vec::new() } };
    let visible = shown.get_subcommands().filter(|below| !below.is_hide_set());
    let commands = visible.map(|below| (below.get_name().to_owned(), text(below.get_about())));
    let lists = LISTS.iter().map(|list| (list.name.to_owned(), list.about.to_owned()));
    let others = ["topics", "guide"].map(|name| (name.to_owned(), String::new()));
    commands.chain(lists.chain(others).filter(|_| words.is_empty())).collect()
}

/// The values of a list of `punctual help`, up to what the user fills in; `id` is the argument that takes one.
fn of_list(list: &str, id: &str) -> Vec<Candidate> {
    let stems = |forms: &[&str]| forms.iter().map(|form| (stem(form).to_owned(), String::new())).collect::<Vec<_>>();
    let keys = |names: &[&str]| names.iter().map(|name| (format!("{name}="), String::new())).collect();
    match list {
        "methods" => {
            let handoffs = HandoffKind::KNOWN.iter().map(|kind| (format!("handoff:{kind}"), String::new()));
            stems(Task::KNOWN).into_iter().filter(|(form, _)| form != "handoff:").chain(handoffs).collect()
        }
        "policies" => stems(Policy::KNOWN),
        "loads" => stems(Load::KNOWN),
        "links" => stems(Link::KNOWN),
        "percentiles" => match id {
            "require" => keys(Requirement::KNOWN),
            "metric" => stems(&Level::USUAL.map(Level::name)),
            _ => stems(Columns::KNOWN),
        },
        "settings" => keys(Prepare::KNOWN),
        "operations" => {
            let operations = CostScope::All.operations().map(|operation| (operation.name.to_owned(), String::new()));
            stems(&CostGroup::ALL.map(CostGroup::name)).into_iter().chain(operations).collect()
        }
        "plans" => plan::all().into_iter().flatten().map(|plan| (plan.name.to_owned(), plan.title)).collect(),
        "studies" => stems(Study::KNOWN),
        "checks" => doctor::checks().map(|check| (check.name.to_owned(), check.why.to_owned())).collect(),
        _ => Vec::new(),
    }
}

/// The part of a form before what is optional or filled in: `fifo:` of `fifo:PRIORITY`.
fn stem(form: &str) -> &str {
    form.split(|c: char| c == '[' || c.is_ascii_uppercase()).next().unwrap_or(form)
}

/// Runs below the directory `runs`, the latest first.
fn runs() -> Vec<String> {
    let found = punctual_store::below(Path::new(RUNS)).map(|(found, _)| found).unwrap_or_default();
    found.iter().rev().take(MOST).map(|run| run.dir.display().to_string()).collect()
}

/// Names of the cells of the run among these words, or of the latest run.
fn cells(words: &[&str]) -> Vec<String> {
    let named = words.iter().map(Path::new).find(|path| path.is_dir()).map(Path::to_owned);
    let latest = || punctual_store::latest(Path::new(RUNS)).ok().flatten();
    let run = named.or_else(latest).and_then(|dir| punctual_store::read(&dir).ok());
    run.map(|run| punctual_analysis::cell_names(&run.header.cells)).unwrap_or_default().into_iter().take(MOST).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_a_shell_would_carry_out_are_not_offered() {
        for (name, is) in [
            ("runs/2026-11-28-231729", true),
            ("none/fifo:80", true),
            ("runs/x;reboot", false),
            ("runs/$(reboot)", false),
            ("runs/*", false),
            ("a b", false),
            ("a\nb", false),
        ] {
            assert_eq!(is_literal(name), is, "{name:?}");
        }
    }

    #[test]
    fn words_are_completed_from_the_tables_that_parse_them() {
        let mut root = command();
        root.build();
        for (typed, expected) in [
            ("mea", &["measure"][..]),
            ("measure --load-m", &["--load-must-hold"]),
            ("measure --load mess", &["messaging"]),
            ("measure --load=mess", &["--load=messaging"]),
            ("measure --load disk+mess", &["disk+messaging"]),
            ("measure --policy fi", &["fifo:"]),
            ("measure --policy fifo:80 --format ju", &["junit"]),
            ("measure clock", &["clock_nanosleep"]),
            ("measure co", &["cost", "cobalt", "cobalt:kernel", "cobalt:handler", "cost"]),
            (
                "measure --require max=1ms,p99",
                &["max=1ms,p99=", "max=1ms,p99.9=", "max=1ms,p99.99=", "max=1ms,p99.999=", "max=1ms,p99.9999="],
            ),
            ("measure --prepare gov", &["governor="]),
            ("run quick", &["quick-look"]),
            ("run --set pol", &["policy="]),
            ("run --set policy=other,fi", &["policy=other,fifo:"]),
            ("plan show aa", &["aa-recording"]),
            ("study show adeos", &["adeos-2005"]),
            ("doctor governor sw", &["swap"]),
            ("show --columns n_eff,wh", &["n_eff,when"]),
            ("measure cost --only syscall/re", &["syscall/read"]),
            ("help lo", &["load", "loads"]),
            ("help guide find", &["findings"]),
            ("help lab check-", &["check-config"]),
            ("lab bisect-step --ker", &["--kernel"]),
            ("watch -- ./s", &[]),
            ("measure --duration ", &[]),
            ("supervise", &[]),
            ("completion ", &["bash", "zsh", "fish"]),
        ] {
            let words: Vec<_> = ["punctual"].into_iter().chain(typed.split(' ')).collect();
            let found: Vec<_> = candidates(&root, &words).into_iter().map(|(value, _)| value).collect();
            assert_eq!(found, expected, "{typed}");
        }
    }
}
