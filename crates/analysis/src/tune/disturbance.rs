//! Settings of knobs that another program changed during the experiment.

use punctual_model::{Ended, Entry, Knob, PreparedSetting};
use serde::Serialize;

/// A setting that did not stay as the experiment made or found it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Disturbance {
    /// The file or process.
    pub what: String,
    /// What happened to it, as a sentence without its full stop.
    pub sentence: String,
    /// Positions of the knobs that change it, as far as the screening shows.
    pub knobs: Vec<usize>,
    /// Cells of the confirmation in which it happened.
    #[serde(skip)]
    pub(super) cells: Vec<usize>,
}

/// The first disturbance of each setting, in the order of the measurements.
pub(super) fn disturbances(knobs: &[Knob], screening: &[Entry], confirmation: &[Entry]) -> Vec<Disturbance> {
    let mut found: Vec<Disturbance> = Vec::new();
    for (entries, is_confirmation) in [(screening, false), (confirmation, true)] {
        let made: Vec<&Entry> = entries.iter().filter(|entry| entry.record.ended == Ended::Completed).collect();
        for (index, entry) in made.iter().enumerate() {
            let cell = entry.planned.cell_index;
            let before = made.iter().take(index).rev().find(|other| other.planned.cell_index == cell);
            for (what, sentence) in of_one(entry, before.copied()) {
                let cells: Vec<usize> = Some(cell).filter(|_| is_confirmation).into_iter().collect();
                match found.iter_mut().find(|known| known.what == what) {
                    Some(known) => known.cells.extend(cells),
                    None => {
                        let knobs = knobs_of(&what, knobs, screening);
                        found.push(Disturbance { what, sentence, knobs, cells });
                    }
                }
            }
        }
    }
    found
}

/// What happened to the settings of one measurement: while it ran, and since the one of the same cell before it.
fn of_one(entry: &Entry, before: Option<&Entry>) -> Vec<(String, String)> {
    let settings = &entry.record.prepared;
    let lost = settings.iter().filter(|one| one.at_end.as_ref() != Some(&one.during)).map(|one| {
        let now = one.at_end.as_deref().map_or("unreadable".to_owned(), |now| format!("`{now}`"));
        (
            one.what.clone(),
            format!("{} was set to `{}` and was {now} at the end of a measurement", one.what, one.during),
        )
    });
    let mut all: Vec<(String, String)> = lost.collect();
    let Some(before) = before.map(|before| &before.record.prepared) else { return all };
    // irqbalance moves interrupts all the time.
    let stays = |one: &&PreparedSetting| !one.what.ends_with("smp_affinity_list");
    for one in settings.iter().filter(stays) {
        match named(before, &one.what) {
            Some(other) if other.before != one.before => {
                all.push((
                    one.what.clone(),
                    format!(
                        "{} was `{}` before a measurement, and `{}` before another",
                        one.what, other.before, one.before
                    ),
                ));
            }
            Some(_) => {}
            None => all.push((one.what.clone(), format!("{} was `{}` only at times", one.what, one.during))),
        }
    }
    let gone = before.iter().filter(stays).filter(|other| named(settings, &other.what).is_none());
    all.extend(gone.map(|other| {
        (other.what.clone(), format!("{} was `{}`, and then `{}` already", other.what, other.before, other.during))
    }));
    all
}

fn named<'a>(settings: &'a [PreparedSetting], what: &str) -> Option<&'a PreparedSetting> {
    settings.iter().find(|one| one.what == what)
}

/// Positions of the knobs whose changed value sets `what`: most measurements with that value make it, most others do
/// not.
fn knobs_of(what: &str, knobs: &[Knob], screening: &[Entry]) -> Vec<usize> {
    let Some(design) = super::design(knobs) else { return Vec::new() };
    let is_set_by = |knob: &usize| {
        let (mut with, mut without) = ((0u32, 0u32), (0u32, 0u32));
        for entry in screening {
            let Some(levels) = design.runs.get(entry.planned.cell_index) else { continue };
            let counts = if levels.get(*knob) == Some(&true) { &mut with } else { &mut without };
            counts.0 += u32::from(named(&entry.record.prepared, what).is_some());
            counts.1 += 1;
        }
        2 * with.0 > with.1 && 2 * without.0 < without.1
    };
    (0..knobs.len()).filter(is_set_by).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::RunBuilder;
    use crate::tune::{design, knobs};

    /// A screening of two knobs that each set a file.
    fn screening() -> Vec<Entry> {
        let mut run = RunBuilder::new();
        let design = design(&knobs(2)).unwrap();
        for _ in &design.runs {
            run.cell("none", "other");
        }
        for block in 0..2 {
            for (cell, levels) in design.runs.iter().enumerate() {
                run.measure(block, cell, |_, _| 1_000);
                let set = |(file, _): (&str, &bool)| PreparedSetting {
                    what: file.to_owned(),
                    before: "1".into(),
                    during: "0".into(),
                    at_end: Some("0".into()),
                };
                let settings = ["/a", "/b"].into_iter().zip(levels).filter(|(_, changed)| **changed).map(set);
                run.entries.last_mut().unwrap().record.prepared = settings.collect();
            }
        }
        run.entries
    }

    #[test]
    fn what_others_change_is_named_with_its_knob() {
        let entries = screening();
        assert_eq!(disturbances(&knobs(2), &entries, &[]), []);
        let last = |change: &dyn Fn(&mut PreparedSetting)| {
            let mut entries = screening();
            let entry = entries.iter_mut().rev().find(|entry| entry.record.prepared.len() == 1).unwrap();
            change(&mut entry.record.prepared[0]);
            entries
        };
        for (changed, words) in [
            (last(&|one| one.at_end = Some("1".into())), "was set to `0` and was `1` at the end of a measurement"),
            (last(&|one| one.at_end = None), "was unreadable at the end"),
            (last(&|one| one.before = "2".into()), "was `1` before a measurement, and `2` before another"),
        ] {
            let [one] = &disturbances(&knobs(2), &changed, &[])[..] else { panic!("{words}") };
            assert!(one.sentence.contains(words), "{}", one.sentence);
            assert_eq!(one.knobs, [usize::from(one.what == "/b")]);
        }
        let mut gone = screening();
        gone.iter_mut().rev().find(|entry| entry.record.prepared.len() == 2).unwrap().record.prepared.clear();
        let all = disturbances(&knobs(2), &gone, &[]);
        assert_eq!(all.len(), 2, "{all:?}");
        assert_eq!(all[0].sentence, "/a was `1`, and then `0` already");
    }
}
