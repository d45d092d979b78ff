//! Reading of the table of knobs, and the plans that their values give.

use super::values::{string, table};
use super::{Located, Reading, document};
use crate::UnknownWord;
use crate::plan::setting::line_of;
use crate::plan::{Knob, Plan};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// The knobs in the order of the text, each with its position.
pub(super) fn knobs(knobs: &DeTable<'_>) -> Located<Vec<(Knob, usize)>> {
    let mut entries: Vec<(String, usize, &Spanned<DeValue<'_>>)> = Vec::new();
    for (key, value) in knobs {
        if key.get_ref() != "prepare" {
            entries.push((key.get_ref().to_string(), key.span().start, value));
            continue;
        }
        let settings = table(value)?;
        let named = |(name, value)| {
            let name: &Spanned<_> = name;
            (format!("{}{}", Knob::PREPARE, name.get_ref()), name.span().start, value)
        };
        entries.extend(settings.iter().map(named));
    }
    entries.sort_by_key(|(_, at, _)| *at);
    let knob = |(key, at, value): (String, usize, &Spanned<DeValue<'_>>)| {
        let two = || (at, format!("knob `{key}` needs two values, like [\"leave\", \"off\"]"));
        let DeValue::Array(values) = value.get_ref() else { return Err(two()) };
        let [as_is, changed] = &values[..] else { return Err(two()) };
        let text = |value: &Spanned<DeValue<'_>>| match value.get_ref() {
            DeValue::Boolean(on) => Ok(on.to_string()),
            DeValue::Integer(n) => Ok(n.as_str().to_owned()),
            _ => string(value).map(str::to_owned),
        };
        let knob = Knob { as_is: text(as_is)?, changed: text(changed)?, key: key.clone() };
        knob.check().map_err(|why| (at, why))?;
        Ok((knob, at))
    };
    entries.into_iter().map(knob).collect()
}

/// The plan with the keys of one more line.
///
/// # Errors
/// What is wrong with the line.
fn changed(plan: Plan, line: &str) -> Result<Plan, String> {
    let read = document(line).and_then(|document| {
        let mut reading = Reading::begin("")?;
        reading.plan = plan;
        reading.keys(document.get_ref())?;
        Ok(reading.plan)
    });
    read.map_err(|(_, why)| why)
}

impl Plan {
    /// The plan with each knob at one of its values; `levels` tells which are changed, in the order of the knobs. It
    /// has no knobs itself.
    ///
    /// # Errors
    /// One line with the key and the value that cannot be.
    pub fn with_knobs(&self, levels: &[bool]) -> Result<Plan, String> {
        let mut plan = Plan { knobs: Vec::new(), ..self.clone() };
        for (knob, is_changed) in self.knobs.iter().zip(levels) {
            let value = knob.value(*is_changed);
            if knob.key.starts_with(Knob::PREPARE) && value == Knob::AS_IS {
                continue;
            }
            let line = line_of(&knob.key, value).map_err(|unknown: UnknownWord| format!("knobs: {unknown}"))?;
            plan = changed(plan, &line).map_err(|why| format!("knob `{}`: {why}", knob.key))?;
        }
        Ok(plan)
    }
}

#[cfg(test)]
mod tests {
    use crate::Plan;

    const PLAN: &str = "[knobs]\npolicy = [\"other\", \"fifo:80\"]\ntimer_slack = [\"50us\", \"1us\"]\n\
                        prepare.timer_migration = [\"leave\", \"off\"]\n\
                        [axes]\nload = [\"none\"]\npolicy = [\"batch\"]\n";

    #[test]
    fn each_level_is_a_plan() {
        let plan = Plan::parse(PLAN).unwrap();
        let keys: Vec<_> = plan.knobs.iter().map(|knob| knob.key.as_str()).collect();
        assert_eq!(keys, ["policy", "timer_slack", "prepare.timer_migration"], "in the order of the text");
        let at = |levels: [bool; 3]| {
            let plan = plan.with_knobs(&levels).unwrap();
            let slack = plan.conditions.timer_slack.unwrap().to_string();
            (plan.axes.policy[0].to_string(), slack, plan.conditions.prepare.to_string(), plan.knobs.len())
        };
        assert_eq!(at([false; 3]), ("other".into(), "50us".into(), String::new(), 0));
        assert_eq!(at([true; 3]), ("fifo:80".into(), "1us".into(), "timer_migration=off".into(), 0));
    }

    #[test]
    fn knobs_are_written_and_read_back() {
        let plan = Plan::parse(PLAN).unwrap();
        assert_eq!(Plan::parse(&plan.to_toml()), Ok(plan));
    }

    #[test]
    fn a_wrong_knob_is_one_line() {
        for (knobs, message) in [
            ("policy = [\"other\"]", "knob `policy` needs two values, like [\"leave\", \"off\"]"),
            (
                "policy = [\"other\", \"other\"]",
                "knob `policy` has the value `other` twice; give it two different ones",
            ),
            ("polcy = [\"other\", \"batch\"]", "unknown key of a plan `polcy` (did you mean `policy`?"),
            ("policy = [\"other\", \"fifo:200\"]", "knob `policy`: "),
            ("prepare.timer_migration = [\"leave\", \"of\"]", "expected on or off"),
            ("prepare = [\"a\", \"b\"]", "expected a table"),
        ] {
            let said = Plan::parse(&format!("[knobs]\n{knobs}\n")).unwrap_err();
            assert!(said.message.contains(message) && said.line == 2, "{said}");
        }
        let many: String = (0..12).map(|n| format!("prepare.\"sysctl:a.b{n}\" = [\"leave\", \"{n}\"]\n")).collect();
        let said = Plan::parse(&format!("[knobs]\n{many}")).unwrap_err();
        assert!(said.message.contains("at most 11"), "{said}");
    }
}
