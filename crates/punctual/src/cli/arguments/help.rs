//! The layout of help: `-h` is one screen, `--help` is whole; forms of values are topics of their own.

use super::{Arguments, topics};
use clap::{Arg, ArgAction, Command, CommandFactory};

/// Columns of help.
pub(in crate::cli) const COLUMNS: usize = 80;

/// Lines of a screen.
const LINES: usize = 24;

/// As clap's, with `before_help`, the examples, below the usage.
const TEMPLATE: &str = "{about-with-newline}\n{usage-heading} {usage}\n{before-help}{all-args}{after-help}";

/// Examples of each command, by its words after `punctual`. A test parses them.
const EXAMPLES: &[(&str, &[&str])] = &[
    ("", &["punctual run", "punctual measure --policy fifo:80 --load messaging"]),
    ("run", &["punctual run --quick", "punctual run loads --set policy=fifo:80 --require max=1ms"]),
    ("plan", &["punctual plan show loads > my.toml"]),
    ("plan list", &["punctual plan list"]),
    ("plan show", &["punctual plan show loads > my.toml"]),
    ("study", &["punctual study run toshiba-periodic-2010 --quick"]),
    ("study list", &["punctual study list"]),
    (
        "study show",
        &["punctual study show adeos-2005", "punctual study show debian10-stock-vs-rt-2020 runs/stock runs/rt"],
    ),
    (
        "study run",
        &[
            "punctual study run toshiba-periodic-2010 --quick",
            "punctual study run arm64-preemption-models --way here --out runs/none",
        ],
    ),
    ("measure", &["punctual measure --policy fifo:80 --load messaging"]),
    ("measure sleep", &["punctual measure sleep --runtime c,python3 --targets 1ms"]),
    ("measure noise", &["punctual measure noise --cpus 1 --explain"]),
    ("measure response", &["punctual measure response --to udp:192.0.2.7:4000 --policy fifo:80"]),
    ("measure cost", &["punctual measure cost --only syscall"]),
    ("explain", &["punctual explain --policy fifo:80 --load disk --above 100us"]),
    ("monitor", &["punctual monitor --cpus 3 --listen 127.0.0.1:9769", "punctual monitor show --last 24h"]),
    ("monitor show", &["punctual monitor show --last 7d"]),
    ("floor", &["punctual floor", "punctual floor --cpu 3 --policy fifo:1 --for 10min"]),
    ("frontier", &["punctual frontier --policy fifo:80 --load messaging"]),
    ("watch", &["punctual watch --pid 4711 --for 1min", "punctual watch --deadline 500us -- ./servo --rate 1000"]),
    ("capture", &["punctual capture --for 30s", "punctual capture --on ssh:root@board --output board.dat"]),
    ("tune", &["punctual tune --quick --load messaging"]),
    ("compare", &["punctual compare messaging/other messaging/fifo:80"]),
    ("show", &["punctual show --all"]),
    ("check", &["punctual check runs/new --require max=1ms --baseline runs/old", "punctual check --baseline store:"]),
    ("merge", &["punctual merge shards/1 shards/2 shards/3 --out runs/whole"]),
    ("import", &["punctual import cyclictest.txt --load idle"]),
    ("list", &["punctual list"]),
    ("store", &["punctual store add runs/", "punctual store list"]),
    ("store add", &["punctual store add runs/", "punctual store add runs/new --store postgresql://lab@db.example/lab"]),
    ("store list", &["punctual store list"]),
    ("store query", &["punctual store query 'SELECT hostname, model FROM machine'"]),
    ("store history", &["punctual store history", "punctual store history --cell fifo:80 --format html"]),
    ("doctor", &["punctual doctor"]),
    ("verify", &["punctual verify", "punctual verify wake-order timers --format tap"]),
    ("load", &["punctual load messaging+disk --for 10s", "punctual load --list"]),
    ("lab", &["punctual lab fetch debian:6.1-rt"]),
    ("lab list", &["punctual lab list"]),
    ("lab fetch", &["punctual lab fetch debian:6.1-rt"]),
    ("lab check", &["punctual lab check debian:6.1"]),
    ("lab check-config", &["punctual lab check-config debian:6.12 ./bzImage"]),
    ("lab worst", &["punctual lab worst \"debian:6.1 preempt=none\" --load mmap --budget 10s"]),
    ("lab film", &["punctual lab film \"debian:6.1 preempt=none\" --load mmap --witness 3/1204/61877 --out film"]),
    ("lab bisect-step", &["git bisect run punctual lab bisect-step --kernel ./bzImage --max 30us"]),
    ("stick", &["punctual stick --kernel debian:6.12-rt --kernel debian:6.12 -o stick.img"]),
    ("export", &["punctual export ansible loads --shards 2 --target a --target b"]),
    ("export perfetto", &["punctual export perfetto runs/2026-11-20-143205"]),
    ("report", &["punctual report runs/a -o a.html"]),
    ("respond", &["punctual respond --on udp:192.0.2.7:4000 --policy fifo:80"]),
    ("recover", &["punctual recover"]),
    ("cyclictest", &["punctual cyclictest -S -m -p 80 -i 200 -D 1m -q"]),
    ("oslat", &["punctual oslat -c 1-3 -f 1 -D 1m"]),
    ("completion", &["punctual completion bash > /etc/bash_completion.d/punctual"]),
    ("man", &["punctual man /usr/local/share/man/man1"]),
    ("help", &["punctual help measure cost", "punctual help loads"]),
];

/// Groups of commands. The first one answers questions; `punctual -h` shows no other.
const GROUPS: &[(&str, &[&str])] = &[
    ("Questions", &["run", "measure", "doctor", "watch", "explain", "compare", "check", "tune", "study", "show"]),
    (
        "More measurements",
        &["floor", "frontier", "monitor", "capture", "verify", "load", "plan", "respond", "cyclictest", "oslat"],
    ),
    ("Results", &["report", "list", "store", "import", "merge"]),
    ("Machines", &["lab", "stick", "export", "recover"]),
    ("This program", &["help", "man", "completion"]),
];

/// The definition of the whole command line, with the layout of its help.
pub(in crate::cli) fn command() -> Command {
    let command = laid_out(Arguments::command(), "");
    let template = template(&command, GROUPS);
    command.help_template(template)
}

/// The whole help of a command of the definition, after `Command::build`.
pub(in crate::cli) fn page(command: &Command) -> String {
    wrapped_lines(&command.clone().render_help().to_string())
}

/// The first screen of the help of a command: without the options that have a heading of their own.
pub(in crate::cli) fn screen(command: &Command) -> String {
    let name = command.get_bin_name().unwrap_or(command.get_name());
    let is_root = command.get_name() == name;
    let mut short = command.clone().mut_args(|arg| {
        let is_first = arg.get_help_heading().is_none() && arg.get_id() != "help";
        if is_first { arg } else { arg.hide(true) }
    });
    if is_root {
        let template = template(command, &GROUPS[..1]).replace("Options:\n{options}", "");
        short = short.help_template(template).after_help(
            "All commands: punctual --help. One of them: punctual COMMAND -h, or --help for\n\
             all its options. Lists, findings, guides: punctual help topics",
        );
    } else {
        let text = format!("{}All options: {name} --help", values(&short));
        short = short.after_help(text);
    }
    let text = wrapped_lines(&short.render_help().to_string());
    // What a long one has no room for: further examples, then blank lines.
    let mut lines: Vec<_> = text.lines().collect();
    lines.dedup();
    if lines.len() > LINES {
        lines.retain(|line| !line.starts_with("         punctual "));
    }
    while let Some(blank) = lines.iter().rposition(|line| line.is_empty()).filter(|_| lines.len() > LINES) {
        lines.remove(blank);
    }
    lines.join("\n") + "\n"
}

/// The template of the first page, with these groups of commands.
fn template(command: &Command, groups: &[(&str, &[&str])]) -> String {
    TEMPLATE.replace("{all-args}", &format!("{}Options:\n{{options}}", listed(command, groups)))
}

/// Lines of any text, each wrapped.
fn wrapped_lines(text: &str) -> String {
    text.lines().map(wrapped).collect()
}

/// A line of help, wrapped at [`COLUMNS`].
pub(in crate::cli) fn wrapped(line: &str) -> String {
    wrapped_to(line, COLUMNS)
}

/// A line, wrapped at so many columns to the one where its description begins. clap wraps too, with three crates more.
pub(in crate::cli) fn wrapped_to(line: &str, columns: usize) -> String {
    let start = line.len() - line.trim_start().len();
    let gap = line[start..].find("  ").filter(|_| start > 0);
    let indent = gap.map_or(start, |gap| line.len() - line[start + gap..].trim_start().len());
    let (mut text, mut column) = (line[..indent].to_owned(), indent);
    for (index, word) in line[indent..].split_whitespace().enumerate() {
        let length = word.chars().count();
        if index > 0 && column + 1 + length > columns {
            text += &format!("\n{:indent$}", "");
            column = indent;
        } else if index > 0 {
            text.push(' ');
            column += 1;
        }
        text += word;
        column += length;
    }
    text.trim_end().to_owned() + "\n"
}

/// Lays out the help of a command, whose words after `punctual` are `path`, and of those below it.
fn laid_out(command: Command, path: &str) -> Command {
    let examples = EXAMPLES.iter().find(|(of, _)| *of == path).map(|(_, examples)| examples.join("\n         "));
    let command = match examples {
        Some(examples) => command.before_help(format!("Example: {examples}")),
        None => command,
    };
    // clap's own `--help` takes a paragraph for each option.
    let command = if command.is_disable_help_flag_set() {
        command
    } else {
        let help = Arg::new("help").short('h').long("help").action(ArgAction::HelpShort).help("Print help");
        command.disable_help_flag(true).arg(help)
    };
    let notes = [values(&command), command.get_after_help().map(ToString::to_string).unwrap_or_default()];
    let notes = notes.into_iter().filter(|note| !note.is_empty()).collect::<Vec<_>>().join("\n");
    let command = if notes.is_empty() { command } else { command.after_help(notes) };
    command.help_template(TEMPLATE).mut_subcommands(|below| {
        let path = format!("{path} {}", below.get_name());
        laid_out(below, path.trim_start())
    })
}

/// Names the topics with the forms of values that arguments of this command take.
fn values(command: &Command) -> String {
    let visible: Vec<_> = command.get_arguments().filter(|arg| !arg.is_hide_set()).collect();
    let names = topics::LISTS.iter().filter(|list| visible.iter().any(|arg| list.is_of(arg))).map(|list| list.name);
    match names.collect::<Vec<_>>().join("|") {
        names if names.is_empty() => names,
        names => format!("Values: punctual help {names}\n"),
    }
}

/// These groups of commands, a line each.
fn listed(command: &Command, groups: &[(&str, &[&str])]) -> String {
    let visible: Vec<_> = command.get_subcommands().filter(|below| !below.is_hide_set()).collect();
    let width = visible.iter().map(|below| below.get_name().len()).max().unwrap_or(0);
    let line = |name: &&str| {
        let below = visible.iter().find(|below| below.get_name() == *name)?;
        Some(format!("  {name:width$}  {}\n", below.get_about().map(ToString::to_string).unwrap_or_default()))
    };
    let group =
        |(title, names): &(&str, &[&str])| format!("{title}:\n{}\n", names.iter().filter_map(line).collect::<String>());
    groups.iter().map(group).collect()
}

#[cfg(test)]
mod tests;
