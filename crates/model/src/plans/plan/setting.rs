//! Changes of a plan from the command line: `--set AXIS=VALUE[,VALUE...]`.

use super::axes::AXES;
use super::keys::{Form, OF_SET, key, line_of};
use super::values::quoted;
use crate::UnknownWord;
use std::str::FromStr;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// One key of a plan with another value: an axis, or a condition of every cell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting {
    key: String,
    /// The same as a line of TOML, read by the parser of plans.
    toml: String,
}

impl Setting {
    /// The key as typed.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// The line of TOML that stands for it.
    pub(super) fn toml(&self) -> &str {
        &self.toml
    }

    /// Removes from a document the key that it replaces, and those that exclude it.
    pub(super) fn displace(&self, document: &mut DeTable<'_>) {
        if !AXES.contains(&self.key.as_str()) {
            document.remove(self.key.as_str());
            let excluded: &[&str] = match self.key.as_str() {
                "cycles" => &["duration", "min_cycles"],
                "min_cycles" => &["cycles"],
                _ => &[],
            };
            excluded.iter().for_each(|key| drop(document.remove(*key)));
            return;
        }
        let Some(DeValue::Table(axes)) = document.get_mut("axes").map(Spanned::get_mut) else { return };
        axes.remove(self.key.as_str());
        match self.key.as_str() {
            "method" => drop(axes.remove("runtime")),
            "runtime" => drop(axes.remove("method")),
            _ => {}
        }
    }
}

impl FromStr for Setting {
    type Err = String;

    /// Reads `KEY=VALUE`. The values of an axis are separated by commas; a value that contains commas is written as a
    /// list of TOML: `load=["cmd:a,b", "none"]`. Errors: one line, if the key is missing or unknown. The value is
    /// checked with the plan.
    fn from_str(text: &str) -> Result<Setting, String> {
        let form = "expected KEY=VALUE, like load=none or policy=other,fifo:80";
        let (key, value) = text.split_once('=').ok_or_else(|| format!("invalid setting `{text}`: {form}"))?;
        let (key, value) = (key.trim(), value.trim());
        if value.is_empty() {
            return Err(format!("invalid setting `{text}`: {form}"));
        }
        let toml = if !AXES.contains(&key) {
            match self::key(key).map(|key| key.form) {
                Some(Form::Text | Form::Bare) => line_of(key, value).map_err(|unknown| unknown.to_string())?,
                Some(Form::Knob | Form::Option) => {
                    return Err(format!("`{key}` has an option of its own: --{} {value}", key.replace('_', "-")));
                }
                Some(Form::File) => {
                    return Err(format!("`{key}` cannot be set from the command line; write it in the plan"));
                }
                None => return Err(UnknownWord::new("key of a plan", key, &OF_SET).to_string()),
            }
        } else if value.starts_with('[') {
            format!("axes.{key} = {value}")
        } else {
            let values: Vec<_> = value.split(',').map(|value| quoted(value.trim())).collect();
            format!("axes.{key} = [{}]", values.join(", "))
        };
        Ok(Setting { key: key.to_owned(), toml })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Plan;

    const PLAN: &str = "duration = \"1s\"\n[loads]\nhog = \"cpu+disk\"\n[axes]\nload = [\"none\", \"hog\"]\n\
                        policy = [\"other\", \"fifo:80\"]\nruntime = [\"c\"]\n";

    fn set(plan: &str, settings: &[&str]) -> Result<Plan, String> {
        let settings: Result<Vec<Setting>, String> = settings.iter().map(|text| text.parse()).collect();
        Plan::parse_with(plan, &settings?).map_err(|err| err.to_string())
    }

    #[test]
    fn a_setting_replaces_an_axis_or_a_key_and_what_excludes_it() {
        let same = |settings: &[&str], text: &str| {
            assert_eq!(set(PLAN, settings), Ok(Plan::parse(text).unwrap()), "{settings:?}");
        };
        same(&[], PLAN);
        same(&["load=hog"], &PLAN.replace("\"none\", \"hog\"", "\"hog\""));
        same(
            &["policy=rr:1, other", "aa=true"],
            &format!("aa = true\n{PLAN}").replace("[\"other\", \"fifo:80\"]", "[\"rr:1\", \"other\"]"),
        );
        same(&["load=[\"cmd:a,b\"]"], &PLAN.replace("\"none\", \"hog\"", "\"cmd:a,b\""));
        same(
            &["stop_above=1ms", "on_spike=date +%s, x"],
            &format!("stop_above = \"1ms\"\non_spike = \"date +%s, x\"\n{PLAN}"),
        );
        same(&["method=timerfd"], &PLAN.replace("runtime = [\"c\"]", "method = [\"timerfd\"]"));
        same(&["cycles=5000"], &PLAN.replace("duration = \"1s\"", "cycles = 5000"));
        same(&["load_must_hold=40", "warm_up=0s"], &format!("load_must_hold = 40\nwarm_up = \"0s\"\n{PLAN}"));
        assert_eq!(set("cycles = 7", &["min_cycles=3"]), Ok(Plan::parse("min_cycles = 3").unwrap()));
        assert_eq!(set("", &["runtime=go,c"]), Ok(Plan::parse("[axes]\nruntime = [\"go\", \"c\"]").unwrap()));
        assert_eq!(set("[axes]\nload=[\"wrong\"]", &["load=cpu"]), Ok(Plan::parse("[axes]\nload=[\"cpu\"]").unwrap()));
    }

    #[test]
    fn mistakes_name_the_setting() {
        let form = "expected KEY=VALUE, like load=none or policy=other,fifo:80";
        for (settings, message) in [
            (&["load"][..], format!("invalid setting `load`: {form}")),
            (&["load="], format!("invalid setting `load=`: {form}")),
            (&["duration=1s"], "`duration` has an option of its own: --duration 1s".to_owned()),
            (
                &["cpu_dma_latency=leave"],
                "`cpu_dma_latency` has an option of its own: --cpu-dma-latency leave".to_owned(),
            ),
            (&["roles=x"], "`roles` cannot be set from the command line; write it in the plan".to_owned()),
            (
                &["policy=fifo:0"],
                "--set policy: invalid policy `fifo:0`: expected a priority from 1 to 99, like fifo:80".to_owned(),
            ),
            (&["load=none,none"], "--set load: duplicate value `none` in axis `load`".to_owned()),
            (&["load=none", "load=cpu"], "--set load: duplicate setting; separate its values by commas".to_owned()),
            (&["cycles=many"], "--set cycles: expected a whole number from 1 to 1000000000000".to_owned()),
            (&["load=[\"none\""], "--set load: invalid TOML: unclosed array, expected `]`".to_owned()),
        ] {
            assert_eq!(set(PLAN, settings).unwrap_err(), message);
        }
        let unknown = set(PLAN, &["laod=none"]).unwrap_err();
        assert!(
            unknown.starts_with("unknown key of a plan `laod` (did you mean `load`? known: kernel load "),
            "{unknown}"
        );
        let unknown = set(PLAN, &["load=mesaging"]).unwrap_err();
        assert!(unknown.starts_with("--set load: unknown load `mesaging` (did you mean `messaging`? "), "{unknown}");
    }
}
