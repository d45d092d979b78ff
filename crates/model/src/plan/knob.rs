//! Knobs: keys of a plan with two values each, whose effects a search determines.

use super::setting::line_of;
use super::{Plan, parse};
use crate::UnknownWord;
use serde::{Deserialize, Serialize};

/// A key of a plan with two values.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Knob {
    /// An axis, another key that holds for every cell, or `prepare.SETTING`.
    pub key: String,
    /// Its value on the machine as it is; of a setting of `prepare`, [`Knob::AS_IS`] leaves the machine's own.
    pub as_is: String,
    /// Its other value.
    pub changed: String,
}

impl Knob {
    /// Most knobs of one experiment.
    pub const MOST: usize = 11;
    /// The value of a setting that is not made.
    pub const AS_IS: &str = "leave";
    /// How the key of a setting of the machine begins.
    pub const PREPARE: &str = "prepare.";

    /// The value of one level.
    #[must_use]
    pub fn value(&self, is_changed: bool) -> &str {
        if is_changed { &self.changed } else { &self.as_is }
    }

    /// Checks the knob by itself.
    ///
    /// # Errors
    /// One line, if both values are equal.
    pub fn check(&self) -> Result<(), String> {
        let Knob { key, as_is, changed } = self;
        let equal = format!("knob `{key}` has the value `{as_is}` twice; give it two different ones");
        if as_is == changed { Err(equal) } else { Ok(()) }
    }
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
            plan = parse::changed(plan, &line).map_err(|why| format!("knob `{}`: {why}", knob.key))?;
        }
        Ok(plan)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
