//! Whether settings that were made for a cell lasted as long as it did.

use super::Finding;
use crate::summary::pool::Pool;

/// One for each setting that was something else at the end of a measurement, in the order in which they were made.
pub(super) fn findings(pool: &Pool<'_>) -> Vec<Finding> {
    let mut lost: Vec<Finding> = Vec::new();
    let settings = pool.entries.iter().flat_map(|entry| &entry.record.prepared);
    for setting in settings.filter(|setting| setting.at_end.as_ref() != Some(&setting.during)) {
        let seen = lost.iter_mut().find_map(|finding| match finding {
            Finding::SettingLost { what, measurements, .. } if *what == setting.what => Some(measurements),
            _ => None,
        });
        match seen {
            Some(measurements) => *measurements += 1,
            None => lost.push(Finding::SettingLost {
                what: setting.what.clone(),
                set: setting.during.clone(),
                found: setting.at_end.clone(),
                measurements: 1,
            }),
        }
    }
    lost
}

#[cfg(test)]
mod tests {
    use crate::summarise;
    use crate::testing::RunBuilder;
    use model::PreparedSetting;

    #[test]
    fn a_setting_that_did_not_stay_is_said_once() {
        let mut run = RunBuilder::new();
        run.cell("none", "other").measure(0, 0, |_, _| 5_000).measure(1, 0, |_, _| 5_000);
        let setting = |what: &str, at_end: &str| PreparedSetting {
            what: what.to_owned(),
            before: "powersave".to_owned(),
            during: "performance".to_owned(),
            at_end: Some(at_end.to_owned()),
        };
        for entry in &mut run.entries {
            entry.record.prepared = vec![setting("/kept", "performance"), setting("/lost", "powersave")];
        }
        let findings = summarise(&run.header, &run.entries).cell_findings.remove(0);
        let said: Vec<_> = findings.iter().map(ToString::to_string).filter(|text| text.contains("was set")).collect();
        assert_eq!(
            said,
            [
                "/lost was set to performance and was powersave at the end of 2 measurements: something else sets it, too; \
              stop that, like tuned or a power daemon"
            ]
        );
    }
}
