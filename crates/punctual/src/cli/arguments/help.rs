//! The layout of help: options that most need first, an example above them, forms of values below.

use super::{Arguments, RunFormat};
use clap::{Arg, ArgAction, Command, CommandFactory, ValueEnum};
use punctual_model::{Load, Method, Policy, Task};

/// Columns of help.
const COLUMNS: usize = 80;

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
    ("measure response", &["punctual measure response --to udp:192.0.2.7:4000 --policy fifo:80"]),
    ("measure cost", &["punctual measure cost --only syscall"]),
    ("explain", &["punctual explain --policy fifo:80 --load disk --above 100us"]),
    ("monitor", &["punctual monitor --cpus 3 --listen 127.0.0.1:9769", "punctual monitor show --last 24h"]),
    ("monitor show", &["punctual monitor show --last 7d"]),
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
    ("history", &["punctual history", "punctual history --cell fifo:80 --format html"]),
    ("doctor", &["punctual doctor"]),
    ("load", &["punctual load messaging+disk --for 10s", "punctual load --list"]),
    ("lab", &["punctual lab fetch debian:6.1-rt"]),
    ("lab list", &["punctual lab list"]),
    ("lab fetch", &["punctual lab fetch debian:6.1-rt"]),
    ("lab check", &["punctual lab check debian:6.1"]),
    ("lab check-config", &["punctual lab check-config debian:6.12 ./bzImage"]),
    ("lab bisect-step", &["git bisect run punctual lab bisect-step --kernel ./bzImage --max 30us"]),
    ("export", &["punctual export ansible loads --shards 2 --target a --target b"]),
    ("export perfetto", &["punctual export perfetto runs/2026-11-20-143205"]),
    ("report", &["punctual report runs/a -o a.html"]),
    ("respond", &["punctual respond --on udp:192.0.2.7:4000 --policy fifo:80"]),
    ("recover", &["punctual recover"]),
    ("cyclictest", &["punctual cyclictest -S -m -p 80 -i 200 -D 1m -q"]),
    ("completion", &["punctual completion bash > /etc/bash_completion.d/punctual"]),
    ("man", &["punctual man /usr/local/share/man/man1"]),
    ("help", &["punctual help measure cost"]),
];

/// Groups of commands on the first page of help. Commands of no group follow under [`MORE`].
const GROUPS: &[(&str, &[&str])] = &[
    ("Measure", &["run", "plan", "study", "measure", "explain", "watch", "frontier", "tune", "doctor"]),
    ("Results", &["show", "report", "compare", "check", "list", "history"]),
];

/// Heading of the commands that few need.
const MORE: &str = "More commands";

/// The definition of the whole command line, with the layout of its help.
pub(in crate::cli) fn command() -> Command {
    let command = laid_out(Arguments::command(), "");
    let template = TEMPLATE.replace("{all-args}", &format!("{}Options:\n{{options}}", groups(&command)));
    command.help_template(template)
}

/// The help of a command of the definition, after `Command::build`.
pub(in crate::cli) fn page(command: &Command) -> String {
    command.clone().render_help().to_string().lines().map(wrapped).collect()
}

/// A line, wrapped at [`COLUMNS`] to the column where its description begins. clap wraps too, with three crates more.
fn wrapped(line: &str) -> String {
    let start = line.len() - line.trim_start().len();
    let gap = line[start..].find("  ").filter(|_| start > 0);
    let indent = gap.map_or(start, |gap| line.len() - line[start + gap..].trim_start().len());
    let (mut text, mut column) = (line[..indent].to_owned(), indent);
    for (index, word) in line[indent..].split_whitespace().enumerate() {
        let length = word.chars().count();
        if index > 0 && column + 1 + length > COLUMNS {
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
    let notes = [notes(&command), command.get_after_help().map(ToString::to_string).unwrap_or_default()];
    let notes = notes.into_iter().filter(|note| !note.is_empty()).collect::<Vec<_>>().join("\n");
    let command = if notes.is_empty() { command } else { command.after_help(notes) };
    command.help_template(TEMPLATE).mut_subcommands(|below| {
        let path = format!("{path} {}", below.get_name());
        laid_out(below, path.trim_start())
    })
}

/// Forms of the values that options of this command take.
fn notes(command: &Command) -> String {
    let visible: Vec<_> = command.get_arguments().filter(|arg| !arg.is_hide_set()).collect();
    let has = |id: &str| visible.iter().any(|arg| arg.get_id() == id);
    let forms = |name: &str, known: &[&str]| format!("{name}: {}\n", known.join(", "));
    let mut text = String::new();
    if has("task") {
        // A search for a period needs due times.
        text += &forms("METHOD", if has("confirm") { Method::KNOWN } else { Task::KNOWN });
        text += "CLOCK: monotonic, realtime, boottime, tai\n";
    }
    if has("policy") {
        text += &forms("POLICY", Policy::KNOWN);
        text += "`fifo` and `rr` alone have priority 80.\n";
    }
    if has("load") {
        text += &forms("LOAD", Load::KNOWN);
        text += "Several with +, e.g. messaging+disk; `punctual load --list` describes them.\n";
    }
    if visible.iter().any(|arg| arg.get_value_names().is_some_and(|names| names.iter().any(|name| name == "LINK"))) {
        text += "LINK: udp:HOST:PORT, serial:/dev/ttyX,BAUD, serial-loop:/dev/ttyX, gpio:CHIP/IN,OUT, \
                 gpio-loop:CHIP/IN,OUT, parport:/dev/parportN, uio:/dev/uioN\n";
    }
    if visible.iter().any(|arg| arg.get_id() == "format" && arg.is_hide_possible_values_set()) {
        let formats = RunFormat::value_variants().iter().filter_map(ValueEnum::to_possible_value);
        let formats: Vec<_> = formats.map(|format| format.get_name().to_owned()).collect();
        text += &format!("FORMAT: {}\n", formats.join(", "));
    }
    text
}

/// The commands of the first page, by groups.
fn groups(command: &Command) -> String {
    let visible: Vec<_> = command.get_subcommands().filter(|below| !below.is_hide_set()).collect();
    let width = visible.iter().map(|below| below.get_name().len()).max().unwrap_or(0);
    let line = |name: &str| {
        let below = visible.iter().find(|below| below.get_name() == name)?;
        Some(format!("  {name:width$}  {}\n", below.get_about().map(ToString::to_string).unwrap_or_default()))
    };
    let group = |(title, names): (&str, Vec<&str>)| {
        format!("{title}:\n{}\n", names.into_iter().filter_map(line).collect::<String>())
    };
    let is_grouped = |name: &str| GROUPS.iter().any(|(_, names)| names.contains(&name));
    let others = visible.iter().map(|below| below.get_name()).filter(|name| !is_grouped(name)).collect();
    let named = GROUPS.iter().map(|(title, names)| (*title, names.to_vec()));
    named.chain([(MORE, others)]).map(group).collect()
}

#[cfg(test)]
mod tests;
