//! Options of cyclictest in the words of this program, for those who type them by habit.

use punctual_model::{CpuSet, Span};

/// What follows an option of cyclictest.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Takes {
    Nothing,
    Value,
    MaybeValue,
}
use Takes::{MaybeValue, Nothing, Value};

/// Options of cyclictest 2.x (rt-tests) that its users type.
const OPTIONS: &[(char, &str, Takes)] = &[
    ('a', "affinity", MaybeValue),
    ('b', "breaktrace", Value),
    ('c', "clock", Value),
    ('d', "distance", Value),
    ('D', "duration", Value),
    ('h', "histogram", Value),
    ('H', "histofall", Value),
    ('i', "interval", Value),
    ('l', "loops", Value),
    ('m', "mlockall", Nothing),
    ('M', "refresh_on_max", Nothing),
    ('n', "nanosleep", Nothing),
    ('N', "nsecs", Nothing),
    ('p', "priority", Value),
    ('q', "quiet", Nothing),
    ('r', "relative", Nothing),
    ('R', "resolution", Nothing),
    ('s', "system", Nothing),
    ('S', "smp", Nothing),
    ('t', "threads", MaybeValue),
    ('u', "unbuffered", Nothing),
    ('v', "verbose", Nothing),
    ('x', "posix_timers", Nothing),
];

/// An option of cyclictest on a command line.
#[derive(Debug)]
struct Given {
    letter: char,
    /// As `-p` or `--priority`.
    typed: String,
    value: Option<String>,
}

impl Given {
    /// The value; of an option in microseconds without the unit, which cyclictest does not take.
    fn number_or_value(&self) -> Option<String> {
        let value = self.value.as_deref()?;
        let span = value.parse::<Span>().ok().filter(|_| ['b', 'd', 'i'].contains(&self.letter));
        Some(span.map_or_else(|| value.to_owned(), |span| (span.ns() / 1000).to_string()))
    }
}

/// Returns the answer to `option`, which the command at `path` (its words after `punctual`) does not have; `None` when
/// it is no option of cyclictest. `words` follow the command, `is_known` tells which long options the command has.
pub(super) fn answer(option: &str, path: &str, words: &[String], is_known: impl Fn(&str) -> bool) -> Option<String> {
    let given = given(words, is_known);
    given.iter().find(|given| given.typed == option)?;
    let (mut write, mut leave_out) = (Vec::new(), Vec::new());
    for one in &given {
        match translated(one, &given) {
            Some(words) => write.push(words),
            None => leave_out.push(one.typed.as_str()),
        }
    }
    let has_words = !write.is_empty();
    let write = write.join(" ");
    // A plan sets these, so that `run` has no such options.
    let write = if path.is_empty() || path == "run" { format!("`punctual measure {write}`") } else { write };
    let here = match (has_words, leave_out.join(" ")) {
        (true, leave_out) if leave_out.is_empty() => format!("write {write}"),
        (true, leave_out) => format!("write {write} (without {leave_out})"),
        (false, leave_out) => format!("leave out {leave_out}"),
    };
    let value = |given: &Given| given.number_or_value().map(|value| format!(" {value}")).unwrap_or_default();
    let theirs: Vec<_> = given.iter().map(|given| format!("-{}{}", given.letter, value(given))).collect();
    Some(format!("`{option}` is an option of cyclictest: {here}, or run `punctual cyclictest {}`", theirs.join(" ")))
}

/// All options of cyclictest among `words`; short ones may stand together, as in `-Smp80`.
fn given(words: &[String], is_known: impl Fn(&str) -> bool) -> Vec<Given> {
    let mut given = Vec::new();
    let mut words = words.iter().map(String::as_str).peekable();
    while let Some(word) = words.next() {
        let mut next = |takes| match takes {
            Value => words.next_if(|word| !word.starts_with('-')),
            MaybeValue => words.next_if(|word| word.starts_with(|c: char| c.is_ascii_digit())),
            Nothing => None,
        };
        if let Some(long) = word.strip_prefix("--") {
            let (name, attached) = long.split_once('=').map_or((long, None), |(name, value)| (name, Some(value)));
            let option = OPTIONS.iter().find(|(_, long, _)| *long == name && !is_known(name));
            if let Some((letter, _, takes)) = option {
                let value = attached.or_else(|| next(*takes)).map(str::to_owned);
                given.push(Given { letter: *letter, typed: format!("--{name}"), value });
            }
            continue;
        }
        let mut letters = word.strip_prefix('-').unwrap_or_default().chars();
        while let Some((letter, _, takes)) =
            letters.next().and_then(|next| OPTIONS.iter().find(|(letter, _, _)| *letter == next))
        {
            let mut option = Given { letter: *letter, typed: format!("-{letter}"), value: None };
            if *takes == Nothing {
                given.push(option);
                continue;
            }
            let attached = Some(letters.as_str().trim_start_matches('=')).filter(|value| !value.is_empty());
            option.value = attached.or_else(|| next(*takes)).map(str::to_owned);
            given.push(option);
            break;
        }
    }
    given
}

/// The words for one of the options; `None` for what is so by default.
fn translated(one: &Given, all: &[Given]) -> Option<String> {
    let value = one.number_or_value();
    let value = value.as_deref();
    let number = |default: u64| value.and_then(|value| value.parse().ok()).unwrap_or(default);
    let interval_us = || {
        let interval = all.iter().find(|given| given.letter == 'i').and_then(Given::number_or_value);
        interval.and_then(|value| value.parse().ok()).unwrap_or(1000_u64)
    };
    Some(match one.letter {
        'p' if number(80) == 0 => "--policy other".to_owned(),
        'p' => format!("--policy fifo:{}", number(80).min(99)),
        'i' => format!("--period {}", us(number(1000))),
        'D' => format!("--duration {}", duration(value?)),
        'l' => format!("--duration {}", us(number(10_000).saturating_mul(interval_us()))),
        'a' => format!("--cpus {}", value?.parse::<CpuSet>().ok()?),
        't' if all.iter().any(|given| given.letter == 'a' && given.value.is_some()) => return None,
        't' => match value?.parse().ok()? {
            0 | 1_u32 => "--cpus 0".to_owned(),
            n => format!("--cpus 0-{}", n - 1),
        },
        'b' => format!("--stop-above {}", us(number(100))),
        'd' if number(500) > 0 => format!("--period-step {}", us(number(500))),
        'c' if number(0) == 1 => "clock_nanosleep:realtime".to_owned(),
        'r' => "clock_nanosleep:relative".to_owned(),
        's' => "nanosleep".to_owned(),
        'x' => "posix_timer".to_owned(),
        _ => return None,
    })
}

/// A number of microseconds as a time.
fn us(number: u64) -> Span {
    Span(number.saturating_mul(1000).min(Span::MAX.ns()))
}

/// The duration of `-D`: seconds, or with the suffix m, h or d.
fn duration(value: &str) -> String {
    if value.chars().all(|c| c.is_ascii_digit()) { format!("{value}s") } else { value.to_owned() }
}
