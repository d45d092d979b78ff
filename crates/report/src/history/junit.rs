//! Histories as JUnit XML: a test for each series.

use super::{History, name, sentence};
use crate::formats::junit_text as escaped;
use punctual_analysis::history::{FIRST_TEST, Standing};
use std::fmt::Write;

impl History {
    /// A test for each series: failed if it became later lately, skipped with too few runs.
    pub fn junit(&self) -> String {
        let failed = self.series.iter().filter(|series| self.alarms(series).next().is_some()).count();
        let skipped = self.series.iter().filter(|series| series.standing == Standing::TooFew).count();
        let counts = format!("tests=\"{}\" failures=\"{failed}\" errors=\"0\"", self.series.len());
        let mut text = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
        let _ = writeln!(text, "<testsuites name=\"punctual\" {counts}>");
        let _ = writeln!(text, "  <testsuite name=\"history\" {counts} skipped=\"{skipped}\">");
        let _ = writeln!(
            text,
            "    <properties>\n      <property name=\"answer\" value=\"{}\"/>\n    </properties>",
            escaped(&self.answer().to_string())
        );
        for series in &self.series {
            let (machine, cell) = (&series.series.machine, &series.series.cell);
            let _ = write!(
                text,
                "    <testcase classname=\"punctual.{}\" name=\"{}\" time=\"0\">",
                escaped(machine),
                escaped(&format!("{cell} ({})", series.series.details))
            );
            let alarms: Vec<_> = self.alarms(series).map(sentence).collect();
            let of = name(series);
            let _ = match series.standing {
                _ if !alarms.is_empty() => {
                    let why = escaped(&format!("{of}: {}", alarms.join(". ")));
                    write!(text, "<failure type=\"later\" message=\"{why}\"/>")
                }
                Standing::TooFew => write!(text, "<skipped message=\"fewer than {FIRST_TEST} runs\"/>"),
                _ => {
                    let all: Vec<_> = series.changes.iter().map(sentence).collect();
                    let said = if all.is_empty() { "no change found".to_owned() } else { all.join(". ") };
                    write!(text, "<system-out>{}</system-out>", escaped(&said))
                }
            };
            text.push_str("</testcase>\n");
        }
        text.push_str("  </testsuite>\n</testsuites>\n");
        text
    }
}
