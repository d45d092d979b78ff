//! Two kernels' build configurations side by side, as text and JSON.

use super::Style;
use super::json::{self, ComparedKernel, ConfigCheckDocument};
use super::lines::{Lines, shortened};
use super::table::{Column, Table, UNKNOWN};
use punctual_analysis::config::{ConfigComparison, ConfigDifference, Likeness};
use punctual_analysis::wording::{count, things};
use punctual_model::ConfigGroup;
use serde_json::Value;
use std::io;

/// Rows of a group in a brief table; of drivers and the like fewer.
const ROWS: usize = 12;
const ROWS_OF_OTHERS: usize = 4;
/// Longest value in a brief table, characters.
const LONGEST: usize = 24;

/// Two kernels, and what differs between their configurations.
#[derive(Debug)]
pub struct KernelPair {
    /// The kernels.
    pub kernels: [ComparedKernel; 2],
    /// The comparison; `Err`: the reason for which there is none.
    pub comparison: Result<ConfigComparison, String>,
}

impl KernelPair {
    fn likeness(&self) -> Likeness {
        match &self.comparison {
            Ok(comparison) => comparison.likeness.clone(),
            Err(reason) => Likeness::Unknown { reason: reason.clone() },
        }
    }

    /// Exit status of the program: 0 like for like, 2 not, 3 unknown.
    pub fn exit_status(&self) -> u8 {
        self.likeness().exit_status()
    }

    /// The kernels, the differences and the verdict as a JSON document.
    pub fn json(&self) -> Value {
        let (facts, options) = match &self.comparison {
            Ok(comparison) => (Some(&comparison.facts), Some(&comparison.options)),
            Err(_) => (None, None),
        };
        let likeness = self.likeness();
        let sentence = likeness.sentence();
        json::of_config_check(&ConfigCheckDocument { kernels: &self.kernels, facts, options, likeness, sentence })
    }

    /// Writes the kernels, the options that differ by group, and the verdict; all options with `style.all_findings`.
    pub fn text(&self, out: &mut dyn io::Write, style: Style) -> io::Result<()> {
        let lines = Lines::new(style);
        for (letter, kernel) in ["A", "B"].into_iter().zip(&self.kernels) {
            let ComparedKernel { kernel, file, version, options } = kernel;
            let version = version.as_ref().map(|version| format!("Linux {version}"));
            let options = options.map(|n| format!("{} options", count(n.try_into().unwrap_or(u64::MAX))));
            let known: Vec<_> = [version, options, file.clone()].into_iter().flatten().collect();
            let known = if known.is_empty() { "configuration unknown".to_owned() } else { known.join(", ") };
            lines.hanging(out, &format!("{letter}  "), &format!("{kernel}: {known}"))?;
        }
        if let Ok(comparison) = &self.comparison {
            table(comparison, style.all_findings).map_or(Ok(()), |table| table.write(out, &lines))?;
        }
        lines.paragraph(out, "", &format!("{}.", self.likeness().sentence()))
    }
}

/// Rows by group, each group below its name; `None` without a difference.
fn table(comparison: &ConfigComparison, all: bool) -> Option<Table> {
    let cut = |text: &str| if all { text.to_owned() } else { shortened(text, LONGEST) };
    let mut rows: Vec<Vec<String>> =
        comparison.facts.iter().map(|one| vec![one.fact.to_owned(), cut(&one.a), cut(&one.b)]).collect();
    for of_group in comparison.options.chunk_by(|a, b| a.group == b.group) {
        let group = of_group.first().map_or(ConfigGroup::OtherOptions, |one| one.group);
        let most = if group == ConfigGroup::OtherOptions { ROWS_OF_OTHERS } else { ROWS };
        // One row more costs no more than the remark on it.
        let shown = if all || of_group.len() <= most + 1 { of_group.len() } else { most };
        rows.push(vec![group.name().to_owned(), String::new(), String::new()]);
        let value = |value: &Option<String>| value.as_deref().map_or_else(|| UNKNOWN.to_owned(), cut);
        let row = |one: &ConfigDifference| vec![format!("  {}", one.option), value(&one.a), value(&one.b)];
        rows.extend(of_group.iter().take(shown).map(row));
        if shown < of_group.len() {
            let more = (of_group.len() - shown).try_into().unwrap_or(u64::MAX);
            rows.push(vec![format!("  and {} (--all)", things(more, "more option")), String::new(), String::new()]);
        }
    }
    let columns = vec![Column::text("different").after(0), Column::text("A"), Column::text("B")];
    (!rows.is_empty()).then(|| Table::new(columns, rows))
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;
    use punctual_analysis::config::{ConfiguredKernel, compare_configs};
    use punctual_model::KernelConfig;

    fn pair(a: &str, b: &str) -> KernelPair {
        let configs = [a, b].map(|text| KernelConfig::parse(text).unwrap());
        let kernels = [("/k/a", &configs[0]), ("/k/b", &configs[1])].map(|(kernel, config)| ComparedKernel {
            kernel: kernel.to_owned(),
            file: Some(format!("{kernel}/.config")),
            version: config.version.clone(),
            options: Some(config.options.len()),
        });
        let [a, b] = [&configs[0], &configs[1]].map(|config| ConfiguredKernel { config, words: "" });
        KernelPair { kernels, comparison: Ok(compare_configs(a, b)) }
    }

    fn shown(pair: &KernelPair, all: bool) -> String {
        let mut out = Vec::new();
        pair.text(&mut out, Style { all_findings: all, ..Style::plain(80) }).unwrap();
        String::from_utf8(out).unwrap()
    }

    const LEAN: &str = "# Linux/x86 6.12.117 Kernel Configuration\nCONFIG_HZ=250\nCONFIG_PREEMPT_NONE=y\n";

    #[test]
    fn differences_come_by_group_and_drivers_by_number() {
        let drivers: String = (0..9).map(|n| format!("CONFIG_DRIVER_{n}=m\n")).collect();
        let other = format!("# Linux/x86 6.1.192 Kernel Configuration\nCONFIG_HZ=1000\nCONFIG_PREEMPT_RT=y\n{drivers}");
        let pair = pair(LEAN, &other);
        expect![[r#"
            A  /k/a: Linux 6.12.117, 2 options, /k/a/.config
            B  /k/b: Linux 6.1.192, 11 options, /k/b/.config
            different                     A         B
            version                       6.12.117  6.1.192
            preemption model
              PREEMPT_NONE                y         -
              PREEMPT_RT                  -         y
            timers and ticks
              HZ                          250       1000
            other options
              DRIVER_0                    -         m
              DRIVER_1                    -         m
              DRIVER_2                    -         m
              DRIVER_3                    -         m
              and 5 more options (--all)
            NOT LIKE FOR LIKE: version (6.12.117 and 6.1.192), timers and ticks (HZ: 250 and
              1000), 9 other options.
        "#]]
        .assert_eq(&shown(&pair, false));
        assert!(shown(&pair, true).contains("DRIVER_8"));
        assert_eq!(pair.exit_status(), 2);
    }

    #[test]
    fn equal_and_unknown_kernels_have_no_table() {
        let same = pair(LEAN, LEAN);
        assert_eq!(shown(&same, false).lines().nth(2), Some("LIKE FOR LIKE: both are built alike."));
        let mut unknown = pair(LEAN, LEAN);
        unknown.comparison = Err("no configuration of B".to_owned());
        unknown.kernels[1] = ComparedKernel { kernel: "/k/b".to_owned(), file: None, version: None, options: None };
        expect![[r#"
            A  /k/a: Linux 6.12.117, 2 options, /k/a/.config
            B  /k/b: configuration unknown
            CANNOT TELL: no configuration of B.
        "#]]
        .assert_eq(&shown(&unknown, false));
        let json = unknown.json();
        assert_eq!((&json["options"], &json["likeness"]["kind"]), (&Value::Null, &"unknown".into()));
        assert_eq!((same.exit_status(), unknown.exit_status()), (0, 3));
    }
}
