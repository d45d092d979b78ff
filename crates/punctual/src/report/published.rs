//! Published results that come with the program: facts with their source, to stand beside ours, never to be ranked.

use model::{KernelLoad, Load, LoadPart, Study, Tool};

const STUDIES: &str = include_str!("../../data/studies.csv");
const WAKE_UPS: &str = include_str!("../../data/wakeup-latency.csv");
const SLEEPS: &str = include_str!("../../data/sleep-error.csv");
const THROUGHPUT: &str = include_str!("../../data/throughput-cost.csv");
const INTERRUPTS: &str = include_str!("../../data/interrupt-response.csv");

/// What is known of a study; `None` where it does not say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct About {
    pub(super) title: String,
    pub(super) year: Option<String>,
    pub(super) source: String,
    pub(super) machine: Option<String>,
    /// How it was measured.
    pub(super) note: String,
}

/// One row of a published table, as it was published: numbers with the digits they have there, us.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Row {
    /// Where it differs from that of the study.
    pub(super) machine: Option<String>,
    pub(super) kernel: String,
    pub(super) preemption: Option<String>,
    pub(super) load: String,
    /// The load that stands in for it in our plans.
    pub(super) our_load: Option<String>,
    pub(super) policy: Option<String>,
    /// The policy in our words.
    pub(super) our_policy: Option<String>,
    pub(super) period_us: Option<String>,
    pub(super) thread: Option<String>,
    pub(super) samples: Option<String>,
    pub(super) min_us: Option<String>,
    pub(super) mean_us: Option<String>,
    pub(super) max_us: Option<String>,
    pub(super) stddev_us: Option<String>,
    pub(super) overruns: Option<String>,
}

/// What is known of a study. Every name has an entry, which a test proves.
pub(super) fn about(study: Study) -> About {
    let of_study = table(STUDIES).into_iter().find(|line| line.get("study") == Some(study.name()));
    let text = |key| of_study.as_ref().and_then(|line| line.get(key)).unwrap_or_default().to_owned();
    let known = |key| Some(text(key)).filter(|text| !text.is_empty());
    About {
        title: text("title"),
        year: known("year"),
        source: text("source"),
        machine: known("machine"),
        note: text("note"),
    }
}

/// The rows of a study, in the order of its tables.
pub(super) fn rows(study: Study) -> Vec<Row> {
    let files = [WAKE_UPS, SLEEPS, INTERRUPTS].into_iter().flat_map(table);
    files.filter(|line| line.get("study") == Some(study.name())).map(|line| row(&line)).collect()
}

/// What a study has published about throughput, as it was published.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Throughput {
    pub(super) kernel: String,
    pub(super) load: String,
    /// The load that stands in for it in our plans.
    pub(super) our_load: Option<String>,
    pub(super) seconds: String,
    /// The kernel that the change is against.
    pub(super) baseline: Option<String>,
    pub(super) change_percent: Option<String>,
}

/// The rows of a study about throughput, in the order of its table.
pub(super) fn throughput(study: Study) -> Vec<Throughput> {
    let of_study = table(THROUGHPUT).into_iter().filter(|line| line.get("study") == Some(study.name()));
    let row = |line: Line<'_>| {
        let known = |key| line.get(key).filter(|value| !value.is_empty()).map(str::to_owned);
        Throughput {
            kernel: known("kernel").unwrap_or_default(),
            load: known("load").unwrap_or_default(),
            our_load: known("our_load"),
            seconds: known("lmbench_seconds").unwrap_or_default(),
            baseline: known("baseline"),
            change_percent: known("change_percent"),
        }
    };
    of_study.map(row).collect()
}

/// Whether the load of a cell is what stands here for a published one: where there is no machine that floods from outside,
/// `udp` stands for its `ping`.
pub(super) fn stands_for(ours: &Load, published: &Load) -> bool {
    let is_alike = |(ours, published): (&LoadPart, &LoadPart)| match ours {
        LoadPart::Program(program) if program.tool == Tool::Ping => *published == LoadPart::Kernel(KernelLoad::Udp),
        ours => ours == published,
    };
    ours.parts().len() == published.parts().len() && ours.parts().iter().zip(published.parts()).all(is_alike)
}

fn row(line: &Line<'_>) -> Row {
    let known = |keys: &[&str]| {
        let values = keys.iter().filter_map(|key| line.get(key));
        values.filter(|value| !value.is_empty()).map(str::to_owned).next()
    };
    Row {
        machine: known(&["machine"]),
        kernel: known(&["kernel"]).unwrap_or_default(),
        preemption: known(&["preemption"]),
        load: known(&["load"]).unwrap_or_default(),
        our_load: known(&["our_load"]),
        policy: known(&["policy"]),
        our_policy: known(&["our_policy"]),
        period_us: known(&["period_us", "requested_us"]),
        thread: known(&["thread"]),
        samples: known(&["samples", "interrupts"]),
        min_us: known(&["min_us"]),
        mean_us: known(&["avg_us", "mean_error_us"]),
        max_us: known(&["max_us"]),
        stddev_us: known(&["stddev_us"]),
        overruns: known(&["overruns"]),
    }
}

/// A line of a CSV file with the names of its columns.
struct Line<'a>(Vec<(&'a str, String)>);

impl Line<'_> {
    fn get(&self, key: &str) -> Option<&str> {
        self.0.iter().find(|(name, _)| *name == key).map(|(_, value)| value.as_str())
    }
}

/// The lines of a CSV file of ours (RFC 4180, no line feed inside a value), by the names in its first line.
fn table(text: &str) -> Vec<Line<'_>> {
    let mut lines = text.lines();
    let names: Vec<&str> = lines.next().map_or_else(Vec::new, |head| head.split(',').collect());
    lines.map(|line| Line(names.iter().copied().zip(values(line)).collect())).collect()
}

/// The values of a line: parted by commas, in quotes where they hold some, quotes inside doubled.
fn values(line: &str) -> Vec<String> {
    let mut values = vec![String::new()];
    let mut quoted = false;
    let mut chars = line.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '"' if quoted && chars.next_if_eq(&'"').is_some() => {
                values.last_mut().into_iter().for_each(|v| v.push('"'))
            }
            '"' => quoted = !quoted,
            ',' if !quoted => values.push(String::new()),
            c => values.last_mut().into_iter().for_each(|value| value.push(c)),
        }
    }
    values
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::Policy;

    #[test]
    fn values_may_hold_commas_and_quotes() {
        assert_eq!(values(r#"a,"b, ""c""",,d"#), ["a", "b, \"c\"", "", "d"]);
        assert_eq!(values(""), [""]);
    }

    #[test]
    fn every_study_has_facts_and_every_row_a_study() {
        for name in Study::KNOWN {
            let study: Study = name.parse().unwrap();
            let about = about(study);
            assert!(!about.title.is_empty() && !about.source.is_empty() && !about.note.is_empty(), "{name}");
            assert!(!rows(study).is_empty(), "{name}");
        }
        for (file, columns) in [(STUDIES, 6), (WAKE_UPS, 17), (SLEEPS, 9), (INTERRUPTS, 9), (THROUGHPUT, 7)] {
            for line in file.lines() {
                assert_eq!(values(line).len(), columns, "{line}");
            }
            for line in table(file) {
                assert!(line.get("study").is_some_and(|name| name.parse::<Study>().is_ok()));
            }
        }
    }

    #[test]
    fn numbers_are_numbers_and_our_words_are_ours() {
        for row in Study::KNOWN.iter().flat_map(|name| rows(name.parse().unwrap())) {
            let Row { period_us, min_us, mean_us, max_us, stddev_us, overruns, .. } = &row;
            for number in [period_us, min_us, mean_us, max_us, stddev_us, overruns].into_iter().flatten() {
                assert!(number.parse::<f64>().is_ok_and(|number| number >= 0.0), "{row:?}");
            }
            let value = |text: &Option<String>| text.as_ref().and_then(|text| text.parse::<f64>().ok());
            if let (Some(min), Some(mean), Some(max)) = (value(min_us), value(mean_us), value(max_us)) {
                assert!(min <= mean && mean <= max, "{row:?}");
            }
            assert!(row.our_load.is_none_or(|load| load.parse::<Load>().is_ok()));
            assert!(row.our_policy.is_none_or(|policy| policy.parse::<Policy>().is_ok()));
        }
    }

    #[test]
    fn every_load_of_a_plan_that_repeats_a_study_has_published_rows() {
        let plans = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../plans");
        let mut repeat = 0;
        for path in std::fs::read_dir(plans).unwrap().map(|entry| entry.unwrap().path()) {
            let plan = model::Plan::parse(&std::fs::read_to_string(&path).unwrap()).unwrap();
            let Some(study) = plan.study else { continue };
            repeat += 1;
            let of_throughput = throughput(study).into_iter().filter_map(|row| row.our_load);
            let ours = rows(study).into_iter().filter_map(|row| row.our_load).chain(of_throughput);
            let loads: Vec<Load> = ours.map(|load| load.parse().unwrap()).collect();
            // In virtual time, loads are those that tell kernels apart.
            let is_other = plan.is_virtual() && path.ends_with("preemption-models.toml");
            for load in plan.axes.load.into_iter().filter(|_| !is_other) {
                assert!(loads.iter().any(|row| stands_for(&load, row)), "{}: {load}", path.display());
            }
        }
        assert_eq!(repeat, 10);
    }

    #[test]
    fn a_row_is_as_it_was_published() {
        let rows = rows("toshiba-periodic-2010".parse().unwrap());
        assert_eq!(rows.len(), 36);
        let first = &rows[0];
        assert_eq!((first.mean_us.as_deref(), first.overruns.as_deref()), (Some("3.882"), Some("82")));
        assert_eq!((first.policy.clone(), first.our_load.as_deref()), (None, Some("high")));
    }
}
