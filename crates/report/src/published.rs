//! Published results that come with the program: facts with their source, shown beside own results, never ranked.

use punctual_model::Study;

/// Wake-ups, sleeps, interrupts, throughput.
#[cfg(feature = "studies")]
const FILES: [&str; 4] = [
    include_str!("../../../studies/wakeup-latency.csv"),
    include_str!("../../../studies/sleep-error.csv"),
    include_str!("../../../studies/interrupt-response.csv"),
    include_str!("../../../studies/throughput-cost.csv"),
];
#[cfg(not(feature = "studies"))]
const FILES: [&str; 4] = [""; 4];

/// A line of a CSV file with the names of its columns.
#[derive(Debug)]
pub(super) struct Row(Vec<(&'static str, String)>);

impl Row {
    /// Value of a column; `None` if empty or absent.
    pub(super) fn get(&self, column: &str) -> Option<&str> {
        let value = self.0.iter().find(|(name, _)| *name == column).map(|(_, value)| value.as_str());
        value.filter(|value| !value.is_empty())
    }

    /// Value of a column as text; empty if absent.
    pub(super) fn text(&self, column: &str) -> &str {
        self.get(column).unwrap_or_default()
    }
}

/// Rows of a study, in the order of its tables: numbers in us with the published digits. `our_load` and `our_policy`
/// are the equivalents in our plans; `machine` is present if it differs from that of the study.
pub(super) fn rows(study: Study) -> Vec<Row> {
    FILES[..3].iter().flat_map(|file| of_study(file, study)).collect()
}

/// Rows of a study about throughput: `change_percent` is relative to the kernel `baseline`.
pub(super) fn throughput(study: Study) -> Vec<Row> {
    of_study(FILES[3], study).collect()
}

fn of_study(file: &'static str, study: Study) -> impl Iterator<Item = Row> {
    table(file).into_iter().filter(move |row| row.get("study") == Some(study.name()))
}

/// Rows of a bundled CSV file (RFC 4180, no line feed inside a value) by the names in its first line.
fn table(text: &'static str) -> Vec<Row> {
    let mut lines = text.lines();
    let names: Vec<_> = lines.next().map_or_else(Vec::new, |head| head.split(',').map(column).collect());
    lines.map(|line| Row(names.iter().copied().zip(values(line)).collect())).collect()
}

/// Common name of a column that other tables name differently.
fn column(name: &'static str) -> &'static str {
    match name {
        "requested_us" => "period_us",
        "interrupts" => "samples",
        "avg_us" | "mean_error_us" => "mean_us",
        name => name,
    }
}

/// Values of a line: separated by commas, in quotes if they contain one, with quotes doubled.
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
    use punctual_model::{Load, Policy, stands_for};

    #[test]
    fn values_may_hold_commas_and_quotes() {
        assert_eq!(values(r#"a,"b, ""c""",,d"#), ["a", "b, \"c\"", "", "d"]);
        assert_eq!(values(""), [""]);
    }

    #[test]
    fn every_study_has_rows_and_every_row_a_study() {
        for study in Study::all() {
            assert!(!rows(study).is_empty(), "{study}");
        }
        for (file, columns) in FILES.into_iter().zip([17, 9, 9, 7]) {
            for line in file.lines() {
                assert_eq!(values(line).len(), columns, "{line}");
            }
            for line in table(file) {
                assert!(line.text("study").parse::<Study>().is_ok());
            }
        }
    }

    #[test]
    fn numbers_are_numbers_and_our_words_are_ours() {
        for row in Study::KNOWN.iter().flat_map(|name| rows(name.parse().unwrap())) {
            let numbers = ["min_us", "mean_us", "max_us", "period_us", "stddev_us", "overruns"];
            let [min, mean, max, ..] = numbers.map(|column| row.get(column).map(|text| text.parse::<f64>().unwrap()));
            assert!(numbers.iter().filter_map(|column| row.get(column)).all(|text| !text.starts_with('-')), "{row:?}");
            if let (Some(min), Some(mean), Some(max)) = (min, mean, max) {
                assert!(min <= mean && mean <= max, "{row:?}");
            }
            assert!(row.get("our_load").is_none_or(|load| load.parse::<Load>().is_ok()));
            assert!(row.get("our_policy").is_none_or(|policy| policy.parse::<Policy>().is_ok()));
        }
    }

    #[test]
    fn every_load_of_a_plan_that_repeats_a_study_has_published_rows() {
        let plans = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../plans");
        let mut repeat = 0;
        for path in std::fs::read_dir(plans).unwrap().map(|entry| entry.unwrap().path()) {
            let plan = punctual_model::Plan::parse(&std::fs::read_to_string(&path).unwrap()).unwrap();
            let Some(study) = plan.study else { continue };
            repeat += 1;
            let rows: Vec<Row> = rows(study).into_iter().chain(throughput(study)).collect();
            let loads: Vec<Load> = rows.iter().filter_map(|row| Some(row.get("our_load")?.parse().unwrap())).collect();
            let is_suite = plan.axes.task.iter().any(|task| !task.has_latencies());
            for load in plan.axes.load {
                // In virtual time, further loads separate kernels.
                let is_further =
                    path.ends_with("preemption-models.toml") && !["light", "heavy"].contains(&load.label().as_str());
                // The method carries out the operations of the load `cost`.
                let with_suite = format!("cost+{load}").parse().ok().filter(|_| is_suite);
                let is_known = |load: &Load| loads.iter().any(|row| stands_for(load, row));
                assert!(
                    is_further || is_known(&load) || with_suite.is_some_and(|load| is_known(&load)),
                    "{}: {load}",
                    path.display()
                );
            }
        }
        assert_eq!(repeat, 17);
    }

    #[test]
    fn the_minima_of_adeos_are_those_of_their_loads() {
        let lines = table(FILES[2]);
        let of_adeos = lines.iter().filter(|line| line.text("kernel").contains("adeos-r10c3"));
        let minima: Vec<_> = of_adeos.map(|line| line.text("min_us")).collect();
        assert_eq!(minima[..3], ["13.2", "13.3", "13.2"], "none, ping, lmbench with ping");
    }

    #[test]
    fn a_row_is_as_it_was_published() {
        let rows = rows("toshiba-periodic-2010".parse().unwrap());
        assert_eq!(rows.len(), 36);
        let first = &rows[0];
        assert_eq!((first.text("mean_us"), first.text("overruns")), ("3.882", "82"));
        assert_eq!((first.get("policy"), first.text("our_load")), (None, "high"));
        // The slides name the kernel without its preemption model.
        let models: Vec<_> = rows.iter().take(3).map(|row| row.get("preemption")).collect();
        assert_eq!(models, [None, Some("full"), Some("rt")]);
    }
}
