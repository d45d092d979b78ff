//! The plans that the values of knobs give.

use super::keys::{Draft, line_of};
use super::values::document;
use super::{Knob, Plan};

/// The plan with the keys of one more line. Errors: what is wrong with the line.
fn changed(plan: Plan, line: &str) -> Result<Plan, String> {
    let mut draft = Draft { plan, ..Draft::default() };
    document(line).and_then(|line| draft.read(line.get_ref())).map_err(|(_, why)| why)?;
    Ok(draft.plan)
}

impl Plan {
    /// The plan with each knob at one of its values; `levels` tells which are changed, in the order of the knobs. It
    /// has no knobs itself. Errors: one line with the key and the value that cannot be.
    pub fn with_knobs(&self, levels: &[bool]) -> Result<Plan, String> {
        self.with_values(&self.knobs.iter().zip(levels).map(|(knob, level)| knob.value(*level)).collect::<Vec<_>>())
    }

    /// The plan with each knob at this value, in the order of the knobs. It has no knobs itself. Errors: one line with
    /// the key and the value that cannot be.
    pub fn with_values(&self, values: &[&str]) -> Result<Plan, String> {
        let mut plan = Plan { knobs: Vec::new(), ..self.clone() };
        for (knob, value) in self.knobs.iter().zip(values.iter().copied()) {
            if let Some(word) = knob.key.strip_prefix(Knob::BOOT) {
                plan.boot_with(word, value).map_err(|why| format!("knob `{}`: {why}", knob.key))?;
                continue;
            }
            if knob.key.starts_with(Knob::PREPARE) {
                if !plan.axes.prepare.is_empty() {
                    return Err(format!("knob `{}` and axis `prepare` cannot be combined; leave one out", knob.key));
                }
                if value == Knob::AS_IS {
                    continue;
                }
            }
            let line = line_of(&knob.key, value).map_err(|unknown| unknown.to_string())?;
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
            (plan.axes.policy[0].to_string(), slack, plan.settings().to_string(), plan.knobs.len())
        };
        assert_eq!(at([false; 3]), ("other".into(), "50us".into(), "leave".into(), 0));
        assert_eq!(at([true; 3]), ("fifo:80".into(), "1us".into(), "timer_migration=off".into(), 0));
    }

    #[test]
    fn knobs_are_written_and_read_back() {
        let more = PLAN.replace("\"1us\"]", "\"10us\", \"5us\", \"1us\"]");
        for plan in [PLAN, &more, BOOT] {
            let plan = Plan::parse(plan).unwrap();
            assert_eq!(Plan::parse(&plan.to_toml()), Ok(plan));
        }
        let plan = Plan::parse(&more).unwrap();
        let knob = &plan.knobs[1];
        assert_eq!((knob.as_is.as_str(), knob.between.len(), knob.changed.as_str()), ("50us", 2, "1us"));
        let between = plan.with_values(&["other", "5us", "leave"]).unwrap();
        assert_eq!(between.conditions.timer_slack.unwrap().to_string(), "5us");
    }

    const BOOT: &str = "[knobs]\nboot.preempt = [\"leave\", \"none\", \"full\"]\nboot.threadirqs = [\"leave\", \"on\"]\n\
                        [axes]\nkernel = [\"debian:6.1 preempt=voluntary quiet\"]\n";

    #[test]
    fn words_of_the_command_line_are_replaced_or_added() {
        let plan = Plan::parse(BOOT).unwrap();
        for (values, kernel) in [
            (["leave", "leave"], "debian:6.1 preempt=voluntary quiet"),
            (["full", "leave"], "debian:6.1 quiet preempt=full"),
            (["none", "on"], "debian:6.1 quiet preempt=none threadirqs"),
            (["off", "off"], "debian:6.1 quiet"),
        ] {
            assert_eq!(plan.with_values(&values).unwrap().axes.kernel[0].to_string(), kernel, "{values:?}");
            let plan = Plan::parse(&BOOT.replace("debian:6.1", "installed:current")).unwrap();
            let installed = plan.with_values(&values).unwrap().axes.kernel[0].to_string();
            assert_eq!(installed, kernel.replace("debian:6.1", "installed:current"));
        }
        let two_words = plan.with_values(&["none quiet", "on"]).unwrap_err();
        assert_eq!(two_words, "knob `boot.preempt`: invalid word `preempt=none quiet`: expected one word");
    }

    #[test]
    fn a_wrong_knob_is_one_line() {
        for (knobs, message) in [
            ("policy = [\"other\"]", "knob `policy` needs two values or more, like [\"leave\", \"off\"]"),
            ("policy = \"other\"", "knob `policy` needs two values or more, like [\"leave\", \"off\"]"),
            ("boot.preempt = [\"leave\", \"full\"]", "boot words need a kernel that is booted"),
            ("policy = [\"other\", \"other\"]", "knob `policy` has the value `other` twice; give it different ones"),
            ("polcy = [\"other\", \"batch\"]", "unknown knob `polcy` (did you mean `policy`? known: kernel"),
            ("duration = [\"1s\", \"2s\"]", "unknown knob `duration` (known: "),
            ("policy = [\"other\", \"fifo:200\"]", "knob `policy`: "),
            ("prepare.timer_migration = [\"leave\", \"of\"]", "expected on or off"),
            ("prepare = [\"a\", \"b\"]", "expected a table"),
            (
                "prepare.timer_migration = [\"leave\", \"off\"]\n[axes]\nprepare = [\"leave\"]",
                "knob `prepare.timer_migration` and axis `prepare` cannot be combined; leave one out",
            ),
        ] {
            let said = Plan::parse(&format!("[knobs]\n{knobs}\n")).unwrap_err();
            assert!(said.message.contains(message) && said.line == 2, "{said}");
        }
        let many: String = (0..12).map(|n| format!("prepare.\"sysctl:a.b{n}\" = [\"leave\", \"{n}\"]\n")).collect();
        let said = Plan::parse(&format!("[knobs]\n{many}")).unwrap_err();
        assert!(said.message.contains("at most 11"), "{said}");
    }
}
