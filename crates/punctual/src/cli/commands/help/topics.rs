//! Topics of `punctual help` that are not commands: lists of values, guides, files and variables.

use super::{guides, markdown, places};
use crate::cli::arguments::{COLUMNS, Format, LISTS, RunFormat, wrapped};
use crate::cli::commands::{load, plan, study};
use crate::cli::terminal::output;
use clap::ValueEnum;
use punctual_analysis::doctor;
use punctual_model::{CostScope, HandoffKind, Level, Link, Policy, Requirement, Task};
use punctual_report::{Columns, Style};
use std::error::Error;

/// The text of a topic; `None` for words that name none. Errors: where this program was built without it.
pub(super) fn text(words: &[&str]) -> Option<Result<String, Box<dyn Error>>> {
    let text = match words {
        ["topics"] => Ok(overview()),
        ["guide"] => Ok(of_guides()),
        ["files"] => Ok(described_all(places::FILES)),
        ["environment"] => Ok(described_all(places::ENVIRONMENT)),
        ["guide", name] | [name] if guides::NAMES.contains(name) && !is_list(name) || words.len() == 2 => {
            guides::markdown(name)?.map(markdown::plain).map_err(Into::into)
        }
        [name] => of_list(name)?,
        _ => return None,
    };
    Some(text)
}

fn is_list(name: &str) -> bool {
    LISTS.iter().any(|list| list.name == name)
}

/// A list, and the guide that has more.
fn of_list(name: &str) -> Option<Result<String, Box<dyn Error>>> {
    let (text, guide) = match name {
        "methods" => (Ok(described(Task::KNOWN, METHODS)), "plans"),
        "policies" => (Ok(described(Policy::KNOWN, POLICIES)), "plans"),
        "handoffs" => (Ok(described(HandoffKind::KNOWN, HANDOFFS)), "handoff"),
        "links" => (Ok(described(Link::KNOWN, LINKS)), "response"),
        "loads" => (Ok(load::listed(COLUMNS)), "loads"),
        "formats" => (Ok(of_formats()), "formats"),
        "percentiles" => (Ok(of_percentiles()), "statistics"),
        "settings" => {
            (guides::markdown("prepare")?.map(|text| markdown::plain(first_table(text))).map_err(Into::into), "prepare")
        }
        "operations" => (utf8(Ok(punctual_report::cost::list_text(CostScope::All, style()))), "cost"),
        "plans" => (plan::all().map(|plans| plans.iter().map(|plan| row(plan.name, &plan.title)).collect()), "plans"),
        "studies" => (utf8(study::list(Format::Text, style())), "studies"),
        "checks" => (Ok(doctor::checks().map(|check| row(check.name, check.why)).collect()), "doctor"),
        _ => return None,
    };
    Some(text.map(|text| format!("{}\n\nMore: punctual help guide {guide}\n", text.trim_end())))
}

/// The style of lists, as wide as all help.
fn style() -> Style {
    Style { width: COLUMNS, ..output::style(false) }
}

/// All forms, each with its description.
fn described(forms: &[&str], texts: &[(&str, &str)]) -> String {
    let about = |form: &str| texts.iter().find(|(known, _)| *known == form).map_or("", |(_, about)| about);
    forms.iter().map(|form| row(form, about(form))).collect()
}

fn described_all(places: &[places::Place]) -> String {
    places.iter().map(|place| row(place.name, place.about)).collect()
}

/// A line of a list.
fn row(form: &str, about: &str) -> String {
    wrapped(&format!("  {form:22}  {about}"))
}

fn overview() -> String {
    let mut text = "Lists: punctual help NAME\n".to_owned();
    text.extend(LISTS.iter().map(|list| row(list.name, list.about)));
    text += &row("files", "files and directories of punctual");
    text += &row("environment", "environment variables");
    text += "\nGuides: punctual help guide NAME\n";
    text + &guides::NAMES.iter().map(|name| row(name, guides::title(name))).collect::<String>()
}

fn of_guides() -> String {
    guides::NAMES.iter().map(|name| row(name, guides::title(name))).collect()
}

fn of_formats() -> String {
    let formats = RunFormat::value_variants().iter().filter_map(ValueEnum::to_possible_value);
    formats
        .map(|format| row(format.get_name(), &format.get_help().map(ToString::to_string).unwrap_or_default()))
        .collect()
}

fn of_percentiles() -> String {
    let names = |level: Level| match (level.name(), level.key()) {
        (name, key) if name == key => name.to_owned(),
        (name, key) => format!("{name}, {key}"),
    };
    let about = |level: Level| format!("{} % of the samples are at most this", level.name().trim_start_matches('p'));
    let levels: String = Level::ALL.map(|level| row(&names(level), &about(level))).concat();
    let line = |option: &str, values: &[&str]| wrapped(&format!("  {option:22}  {}", values.join(", ")));
    levels
        + "\nOptions that take them:\n"
        + &line("--require LIMIT=VALUE", Requirement::KNOWN)
        + &line("--metric", &Level::USUAL.map(Level::name))
        + &line("--columns", Columns::KNOWN)
}

fn utf8(text: Result<Vec<u8>, Box<dyn Error>>) -> Result<String, Box<dyn Error>> {
    Ok(String::from_utf8(text?)?)
}

/// The lines of the first table of a page.
fn first_table(markdown: &str) -> &str {
    let start = markdown.find("\n|").map_or(0, |at| at + 1);
    let end = markdown[start..].find("\n\n").map_or(markdown.len(), |at| start + at);
    &markdown[start..end]
}

/// The forms of [`Task::KNOWN`].
const METHODS: &[(&str, &str)] = &[
    ("clock_nanosleep[:relative][:CLOCK]", "clock_nanosleep(2) until an instant; with relative for a length of time"),
    ("nanosleep", "nanosleep(2) for a length of time"),
    ("timerfd[:CLOCK]", "read(2) of a timerfd, armed in each cycle; every clock but tai"),
    ("itimer", "sigwaitinfo(2) for the signal of setitimer(2); a process for each CPU, not with explain"),
    ("posix_timer[:CLOCK]", "sigwaitinfo(2) for the signal of a periodic timer of timer_create(2)"),
    ("futex[:CLOCK]", "futex(2) with a timeout; clock monotonic or realtime"),
    ("poll", "ppoll(2) with the remaining time as timeout, as event loops do"),
    ("deadline", "sched_yield(2) of a thread with policy deadline"),
    ("cobalt[:timerfd]", "a wait of Cobalt, the co-kernel of Xenomai 3"),
    ("handoff:KIND", "a hand-off by another thread, the waker; see punctual help handoffs; not with explain"),
    ("noise[:THRESHOLD]", "no wait: gaps between clock readings of a thread that never waits; not with explain"),
    ("cobalt:kernel", "a thread in the kernel of Cobalt, measured by the driver timerbench; not with explain"),
    ("cobalt:handler", "a timer handler of Cobalt, measured by the driver timerbench; not with explain"),
    ("sleep:RUNTIME", "the sleep of c, python3, node, go or java; run and measure, not with explain"),
    ("response:LINK", "response time over a link; see punctual help links"),
    ("cost[:GROUP]", "cost of operations; see punctual help operations; not with explain"),
    ("program:RESULT:COMMAND", "another program that measures, like cyclictest; not with explain"),
    ("watch:COMMAND", "activations of the threads of a program; plans only, see punctual help watch"),
];

/// The forms of [`Policy::KNOWN`].
const POLICIES: &[(&str, &str)] = &[
    ("other", "SCHED_OTHER at nice 0: the policy of every ordinary program"),
    ("other:nice=N", "SCHED_OTHER at nice -20 (most favored) to 19"),
    ("batch", "SCHED_BATCH: as other, but a waking thread does not preempt"),
    ("idle", "SCHED_IDLE: runs when no other thread is runnable"),
    ("fifo:PRIORITY", "SCHED_FIFO at priority 1 (lowest) to 99; without a number 80"),
    ("rr:PRIORITY", "SCHED_RR: as fifo, with time slices among threads of one priority"),
    (
        "deadline:RUNTIME/DEADLINE/PERIOD",
        "SCHED_DEADLINE: this much CPU time before the deadline in each period, e.g. deadline:1ms/5ms/10ms",
    ),
];

/// The words of [`HandoffKind::KNOWN`].
const HANDOFFS: &[(&str, &str)] = &[
    ("futex", "FUTEX_WAKE of a word of memory, futex(2)"),
    ("futex-pi", "FUTEX_UNLOCK_PI of a lock with priority inheritance"),
    ("condvar", "pthread_cond_signal(3), by the C library of this program"),
    ("eventfd", "write(2) to an event file that is read"),
    ("epoll", "write(2) to an event file that is waited for by epoll_wait(2), then read"),
    ("pipe", "write(2) of a byte to a pipe"),
    ("socketpair", "write(2) of a byte to a pair of stream sockets"),
    ("mq", "mq_send(3) to a POSIX message queue"),
    ("sem", "sem_post(3) of a POSIX semaphore, by the C library of this program"),
    ("sysv-sem", "semop(2) of a System V semaphore"),
    ("signal", "tgkill(2); the thread waits by sigwaitinfo(2)"),
];

/// The forms of [`Link::KNOWN`].
const LINKS: &[(&str, &str)] = &[
    ("uio", "lab guests: a device that interrupts by itself"),
    ("oob", "lab guests: the same, answered out of band by Dovetail"),
    ("serial-loop[:/dev/ttyX]", "a serial port with its output on its input"),
    ("serial:/dev/ttyX[,BAUD]", "a serial line to punctual respond on another machine"),
    ("udp:HOST:PORT", "the network to punctual respond on another machine"),
    ("gpio:CHIP/IN,OUT", "GPIO lines to punctual respond on another machine"),
    ("gpio-loop:CHIP/IN,OUT", "a GPIO output wired to an input of this machine"),
    ("parport:/dev/parportN", "a parallel port with an output wired to its interrupt"),
    ("uio:/dev/uioN", "a UIO device that interrupts by itself"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_is_described() {
        let forms = |texts: &[(&'static str, &str)]| texts.iter().map(|(form, _)| *form).collect::<Vec<_>>();
        assert_eq!(forms(METHODS), Task::KNOWN);
        assert_eq!(forms(POLICIES), Policy::KNOWN);
        assert_eq!(forms(LINKS), Link::KNOWN);
        assert_eq!(forms(HANDOFFS), HandoffKind::KNOWN);
    }

    #[test]
    fn every_topic_of_the_overview_has_a_text() {
        let overview = text(&["topics"]).unwrap().unwrap();
        // Without the second lines of titles.
        let rows = overview.lines().filter_map(|line| line.strip_prefix("  ").filter(|row| !row.starts_with(' ')));
        for line in rows {
            let name = line.split("  ").next().unwrap();
            let is_guide = guides::NAMES.contains(&name) && !is_list(name);
            let words = if is_guide { vec!["guide", name] } else { vec![name] };
            let shown = text(&words).unwrap_or_else(|| panic!("{name}")).unwrap();
            assert!(shown.lines().count() > 2, "{name}: {shown}");
            // Quoted output and long addresses stay as they are.
            let wide = shown.lines().filter(|line| line.chars().count() > COLUMNS && !is_guide && line.contains("  "));
            assert_eq!(wide.collect::<Vec<_>>(), [""; 0], "{name}");
            assert!(!shown.contains("docs/"), "{name}: {shown}");
        }
        assert!(text(&["nosuch"]).is_none() && text(&["guide", "nosuch"]).is_none());
        assert_eq!(text(&["findings"]).unwrap().unwrap(), text(&["guide", "findings"]).unwrap().unwrap());
    }
}
