//! Text forms of numbers: three significant digits, and always a unit.

use punctual_model::{ImportedLoad, Load, Policy};

/// Units of time: name, length in ns, and the multiple from which the unit is used.
const UNITS: [(&str, f64, f64); 7] = [
    ("years", 31_557_600e9, 2.0),
    ("d", 86_400e9, 2.0),
    ("h", 3_600e9, 2.0),
    ("min", 60e9, 2.0),
    ("s", 1e9, 1.0),
    ("ms", 1e6, 1.0),
    ("us", 1e3, 1.0),
];

/// A duration with its unit: `41 us`, `1.25 ms`, `9.3 s`, `3 h`. Three significant digits, rounded to the nearest.
pub fn duration(ns: f64) -> String {
    // Rounding to three digits may reach the next unit: 999.6 us is 1 ms.
    let unit = UNITS.iter().find(|(_, factor, from)| ns.abs() * 1.0005 >= factor * from);
    let (name, factor) = unit.map_or(("ns", 1.0), |(name, factor, _)| (*name, *factor));
    format!("{} {name}", number(ns / factor))
}

/// Two durations with enough digits to show their difference.
pub fn durations_apart(a_ns: i64, b_ns: i64) -> (String, String) {
    let (a, b) = (duration(a_ns as f64), duration(b_ns as f64));
    if a != b || a_ns == b_ns {
        return (a, b);
    }
    let exact = |ns: i64| format!("{}{} ns", if ns < 0 { "-" } else { "" }, count(ns.unsigned_abs()));
    (exact(a_ns), exact(b_ns))
}

/// A number with three significant digits, without trailing zeros; thousands are separated by spaces.
pub fn number(value: f64) -> String {
    let size = value.abs();
    let decimals = match size {
        _ if !size.is_finite() => return "?".to_owned(),
        _ if size >= 99.95 => 0,
        _ if size >= 9.995 => 1,
        _ if size >= 0.01 => 2,
        _ if size > 0.0 => return format!("{value:.0e}"),
        _ => 0,
    };
    let text = format!("{size:.decimals$}");
    let text = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    let (whole, fraction) = text.split_once('.').map_or((text, ""), |(whole, _)| (whole, &text[whole.len()..]));
    format!("{}{}{fraction}", if value < 0.0 { "-" } else { "" }, grouped(whole))
}

/// A scheduling policy by its name in the field: `FIFO 80`, `SCHED_OTHER`, `SCHED_OTHER nice -10`.
pub fn policy(policy: Policy) -> String {
    match policy {
        Policy::OTHER => "SCHED_OTHER".to_owned(),
        Policy::Other(nice) => format!("SCHED_OTHER nice {}", nice.get()),
        Policy::Batch => "SCHED_BATCH".to_owned(),
        Policy::Idle => "SCHED_IDLE".to_owned(),
        Policy::Fifo(priority) => format!("FIFO {}", priority.get()),
        Policy::RoundRobin(priority) => format!("RR {}", priority.get()),
        Policy::Deadline(_) => policy.to_string().replacen("deadline:", "SCHED_DEADLINE ", 1),
    }
}

/// The condition that a load is: `without load`, `under messaging`.
pub fn load(load: &ImportedLoad) -> String {
    match load {
        ImportedLoad::Known(load) if *load == Load::NONE => "without load".to_owned(),
        load => format!("under {}", load.label()),
    }
}

/// A load that did `factor` times as much for one configuration as for another, with operations a second of each:
/// `load mmap did 2.21 times as much on A as on B (440 and 199 mappings/s)`.
pub(crate) fn different_work(
    (load, operation): (&str, &str),
    factor: f64,
    (more_on, more): (&str, f64),
    (less_on, less): (&str, f64),
    on: &str,
) -> String {
    let operations = things(2, operation);
    let operations = operations.trim_start_matches("2 ");
    let [factor, more, less] = [factor, more, less].map(number);
    format!(
        "load {load} did {factor} times as much {on} {more_on} as {on} {less_on} ({more} and {less} {operations}/s); \
         part of a difference in latency may be due to that"
    )
}

/// A count, with thousands separated by spaces: `64 000`.
pub fn count(n: u64) -> String {
    grouped(&n.to_string())
}

/// A count with its noun: `1 stall`, `14 stalls`, `2 stretches`.
pub fn things(n: u64, one: &str) -> String {
    let plural = if one.ends_with("ch") || one.ends_with('s') { "es" } else { "s" };
    format!("{} {one}{}", count(n), if n == 1 { "" } else { plural })
}

fn grouped(digits: &str) -> String {
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(' ');
        }
        text.push(digit);
    }
    text
}

/// Texts of two facts that differ, shortened to the difference; an empty one is `none`. Of long lists only the items
/// that the other does not have; of other long texts the beginning, or the part from where they differ.
pub fn facts_apart(a: Option<&str>, b: Option<&str>) -> (String, String) {
    let [a, b] = [a, b].map(|fact| fact.map_or("unknown", |fact| if fact.is_empty() { "none" } else { fact }));
    const LONG: usize = 36;
    let is_long = |text: &str| text.chars().count() > LONG;
    if !is_long(a) && !is_long(b) {
        return (a.to_owned(), b.to_owned());
    }
    let parted = [", ", "; ", " "].into_iter().find(|parted| a.contains(parted) || b.contains(parted));
    let own = |text: &str, other: &str| -> String {
        let Some(parted) = parted else { return text.to_owned() };
        let others: Vec<&str> = other.split(parted).collect();
        let own: Vec<&str> = text.split(parted).filter(|item| !others.contains(item)).collect();
        if own.is_empty() { "none".to_owned() } else { own.join(parted) }
    };
    // A list that differs in its order only has no such items.
    let (only_a, only_b) = (own(a, b), own(b, a));
    let (a, b) = if only_a == only_b { (a.to_owned(), b.to_owned()) } else { (only_a, only_b) };
    // Texts that are equal for so long are shown from where they differ.
    let shared = Some(a.chars().zip(b.chars()).take_while(|(a, b)| a == b).count()).filter(|shared| *shared >= LONG);
    let cut = |text: String| {
        let (before, rest) = (shared.map_or("", |_| "..."), text.chars().skip(shared.unwrap_or(0)));
        let after = if rest.clone().count() > LONG { "..." } else { "" };
        format!("{before}{}{after}", rest.take(LONG).collect::<String>())
    };
    (cut(a), cut(b))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_three_digits_and_a_unit() {
        for (ns, text) in [
            (0.0, "0 ns"),
            (1.0, "1 ns"),
            (-250.0, "-250 ns"),
            (999.0, "999 ns"),
            (1_000.0, "1 us"),
            (5_310.0, "5.31 us"),
            (41_000.0, "41 us"),
            (999_400.0, "999 us"),
            (999_600.0, "1 ms"),
            (44_123_456.0, "44.1 ms"),
            (950e6, "950 ms"),
            (9.3e9, "9.3 s"),
            (119e9, "119 s"),
            (120e9, "2 min"),
            (10_800e9, "3 h"),
            (2.996e9 * 3600.0 * 1e9, "342 000 years"),
        ] {
            let got = duration(ns);
            // For years, only the order of magnitude is checked.
            let years = text.ends_with("years") && got.ends_with("years") && got.starts_with("34");
            assert!(got == text || years, "{ns}: {got}, not {text}");
        }
    }

    #[test]
    fn values_that_differ_look_different() {
        let own = |a: &str, b: &str| (a.to_owned(), b.to_owned());
        assert_eq!(durations_apart(41_000, 30_000), own("41 us", "30 us"));
        assert_eq!(durations_apart(30_001, 30_000), own("30 001 ns", "30 000 ns"));
        assert_eq!(durations_apart(30_000, 30_000), own("30 us", "30 us"));
    }

    #[test]
    fn texts_show_where_they_differ() {
        let long = "BOOT_IMAGE=/boot/vmlinuz-6.1.0-28-amd64 root=/dev/sda1 ro quiet";
        for (a, b, shown) in [
            ("", "1 x irq/9 fifo:50", ("none", "1 x irq/9 fifo:50")),
            ("tsc", "hpet", ("tsc", "hpet")),
            (long, &format!("{long} nosmt"), ("none", "nosmt")),
            (
                "l1tf=Not affected, mds=Vulnerable, srbds=Not affected",
                "l1tf=Not affected, mds=Mitigation: Clear CPU buffers; SMT off, srbds=Not affected",
                ("mds=Vulnerable", "mds=Mitigation: Clear CPU buffers; S..."),
            ),
            (&format!("{}1", "x".repeat(40)), &format!("{}2", "x".repeat(40)), ("...1", "...2")),
            ("short", &"x".repeat(40), ("short", &format!("{}...", "x".repeat(36)))),
            ("one two three four five six seven 8", "two one three four five six seven eight", ("8", "eight")),
            (
                "two one three four five six seven eight",
                "one two three four five six seven eight",
                ("two one three four five six seven ei...", "one two three four five six seven ei..."),
            ),
        ] {
            assert_eq!(facts_apart(Some(a), Some(b)), (shown.0.to_owned(), shown.1.to_owned()));
        }
    }

    #[test]
    fn numbers_keep_what_matters() {
        for (value, text) in [
            (0.0, "0"),
            (0.0004, "4e-4"),
            (0.5, "0.5"),
            (1.25, "1.25"),
            (9.996, "10"),
            (12.34, "12.3"),
            (135.4, "135"),
            (1_234_567.0, "1 234 567"),
            (f64::INFINITY, "?"),
        ] {
            assert_eq!(number(value), text);
        }
        for (n, text) in [(0, "0"), (999, "999"), (1_000, "1 000"), (1_234_567, "1 234 567")] {
            assert_eq!(count(n), text);
        }
        assert_eq!((things(1, "stretch"), things(2, "stretch")), ("1 stretch".into(), "2 stretches".into()));
        assert_eq!((things(1, "stall"), things(2_788, "due time")), ("1 stall".into(), "2 788 due times".into()));
    }
}
