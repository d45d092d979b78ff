//! Selection of cells of a run by values of axes.

use crate::{Cell, Kernel, Load, LoadError, Period, Policy, Prepare, Task, UnknownWord};
use serde::{Deserialize, Serialize};
use std::fmt::{self, Display};
use std::str::FromStr;

/// Values of axes that a cell must have, like `load=messaging,policy=fifo:80`.
///
/// Its text form is complete, so that a plan can be written from its record.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[schemars(with = "String")]
#[serde(try_from = "String", into = "String")]
pub struct Selector {
    kernel: Option<Kernel>,
    load: Option<SelectedLoad>,
    policy: Option<Policy>,
    period: Option<Period>,
    task: Option<Task>,
    prepare: Option<Prepare>,
}

/// A value of each axis of [`Selector::AXES`]; `None` for settings that are no axis.
type Values<'a> = (&'a Kernel, &'a Load, Policy, Period, &'a Task, Option<&'a Prepare>);

impl Selector {
    /// Every axis in its typed form.
    pub const AXES: &[&str] = &["kernel", "load", "policy", "period", "method", "prepare"];

    /// Whether the cell has all these values.
    pub fn matches(&self, cell: &Cell) -> bool {
        self.has((&cell.kernel, &cell.load, cell.policy, cell.period, &cell.task, Some(&cell.conditions.prepare)))
    }

    /// Whether these values of the axes are those that it names.
    pub(crate) fn has(&self, (kernel, load, policy, period, task, prepare): Values<'_>) -> bool {
        fn is<T: PartialEq>(asked: Option<&T>, value: &T) -> bool {
            asked.is_none_or(|asked| asked == value)
        }
        is(self.kernel.as_ref(), kernel)
            && self.load.as_ref().is_none_or(|selected| selected.matches(load))
            && is(self.policy.as_ref(), &policy)
            && is(self.period.as_ref(), &period)
            && is(self.task.as_ref(), task)
            && (self.prepare.is_none() || self.prepare.as_ref() == prepare)
    }

    /// The axes that both name with different values.
    pub fn apart_from(&self, other: &Selector) -> Vec<&'static str> {
        fn differ<T: PartialEq>(a: Option<&T>, b: Option<&T>) -> bool {
            a.zip(b).is_some_and(|(a, b)| a != b)
        }
        let Selector { kernel, load, policy, period, task, prepare } = self;
        let differ = [
            differ(kernel.as_ref(), other.kernel.as_ref()),
            differ(load.as_ref(), other.load.as_ref()),
            differ(policy.as_ref(), other.policy.as_ref()),
            differ(period.as_ref(), other.period.as_ref()),
            differ(task.as_ref(), other.task.as_ref()),
            differ(prepare.as_ref(), other.prepare.as_ref()),
        ];
        Selector::AXES.iter().zip(differ).filter(|(_, differ)| *differ).map(|(axis, _)| *axis).collect()
    }
}

impl From<&Cell> for Selector {
    /// All values of the cell.
    fn from(cell: &Cell) -> Selector {
        Selector {
            kernel: Some(cell.kernel.clone()),
            load: Some(SelectedLoad::Text(cell.load.clone())),
            policy: Some(cell.policy),
            period: Some(cell.period),
            task: Some(cell.task.clone()),
            prepare: Some(cell.conditions.prepare.clone()),
        }
    }
}

impl FromStr for Selector {
    type Err = String;

    /// The error is one line: the wrong value and the expected form.
    fn from_str(text: &str) -> Result<Selector, String> {
        let mut selector = Selector::default();
        for part in parts(text) {
            let (axis, value) = part.split_once('=').ok_or_else(|| {
                format!("invalid selector `{part}`: expected AXIS=VALUE, like load=messaging,policy=fifo:80")
            })?;
            match axis {
                "kernel" => set(&mut selector.kernel, axis, value)?,
                "load" => set(&mut selector.load, axis, value)?,
                "policy" => set(&mut selector.policy, axis, value)?,
                "period" => set(&mut selector.period, axis, value)?,
                "method" => set(&mut selector.task, axis, value)?,
                "prepare" => set(&mut selector.prepare, axis, value)?,
                other => return Err(UnknownWord::new("axis", other, Selector::AXES).to_string()),
            }
        }
        Ok(selector)
    }
}

impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Selector { kernel, load, policy, period, task, prepare } = self;
        let load = load.as_ref().map(|load| match load {
            SelectedLoad::Text(load) => load.to_string(),
            SelectedLoad::Name(name) => name.clone(),
        });
        let values = [
            kernel.as_ref().map(ToString::to_string),
            load,
            policy.as_ref().map(ToString::to_string),
            period.as_ref().map(ToString::to_string),
            task.as_ref().map(ToString::to_string),
            prepare.as_ref().map(ToString::to_string),
        ];
        let named = Selector::AXES.iter().zip(values).filter_map(|(axis, value)| Some(format!("{axis}={}", value?)));
        f.write_str(&named.collect::<Vec<_>>().join(","))
    }
}

impl From<Selector> for String {
    fn from(selector: Selector) -> String {
        selector.to_string()
    }
}

impl TryFrom<String> for Selector {
    type Error = String;

    fn try_from(text: String) -> Result<Selector, String> {
        text.parse()
    }
}

/// A load of a selector.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum SelectedLoad {
    /// The load's text form: with the name from a plan's `[loads]`, or without it.
    Text(Load),
    /// The name that a plan's `[loads]` defines.
    Name(String),
}

impl SelectedLoad {
    fn matches(&self, load: &Load) -> bool {
        match self {
            SelectedLoad::Text(text) => text == load || text.name().is_none() && text.parts() == load.parts(),
            SelectedLoad::Name(name) => load.name() == Some(name),
        }
    }
}

impl FromStr for SelectedLoad {
    type Err = LoadError;

    fn from_str(text: &str) -> Result<Self, LoadError> {
        text.parse().map(SelectedLoad::Text).or_else(|err| match err {
            // The run defines the names, not the program.
            LoadError::Unknown(_) if Load::NONE.named(text).is_ok() => Ok(SelectedLoad::Name(text.to_owned())),
            err => Err(err),
        })
    }
}

/// Splits a selector at commas. A program may have commas in its arguments, and settings are separated by commas.
fn parts(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut start = 0;
    for (comma, _) in text.match_indices(',') {
        let (part, rest) = (&text[start..comma], &text[comma + 1..]);
        let begins_axis = |text: &str| {
            Selector::AXES.iter().any(|axis| text.strip_prefix(axis).is_some_and(|rest| rest.starts_with('=')))
        };
        let has_program = part.starts_with("load=") || part.starts_with("method=program:");
        if (has_program && part.contains(':') || part.starts_with("prepare=")) && !begins_axis(rest) {
            continue;
        }
        parts.push(part);
        start = comma + 1;
    }
    parts.push(&text[start..]);
    parts
}

fn set<T: FromStr<Err: Display>>(slot: &mut Option<T>, axis: &str, value: &str) -> Result<(), String> {
    let value = value.parse().map_err(|err: T::Err| err.to_string())?;
    slot.replace(value).map_or(Ok(()), |_| Err(format!("duplicate axis `{axis}`; give each once")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plans::cell::tests::cell;

    #[test]
    fn cells_are_selected_by_the_axes_that_are_named() {
        let selects = |text: &str| text.parse::<Selector>().unwrap().matches(&cell());
        assert!(selects("load=none") && selects("policy=other,period=1ms") && selects("method=clock_nanosleep"));
        assert!(!selects("load=messaging") && !selects("load=none,policy=fifo:80") && !selects("period=2ms"));
        assert!(Selector::default().matches(&cell()));
    }

    #[test]
    fn a_load_of_a_plan_is_selected_by_its_name_and_by_its_text() {
        let of = |load: &str| Cell { load: load.parse().unwrap(), ..cell() };
        let hog = of("hog=cmd:sh -c 'taskset -c 0,1 stress=2'+pipe");
        for (text, meant) in [
            ("load=hog", true),
            ("load=hog,policy=other", true),
            ("load=hog,policy=fifo:80", false),
            ("load=cmd:sh -c 'taskset -c 0,1 stress=2'+pipe", true),
            ("load=cmd:sh -c 'taskset -c 0,1 stress=2'+pipe,policy=other", true),
            ("load=hog=cmd:sh -c 'taskset -c 0,1 stress=2'+pipe", true),
            ("load=pig=cmd:sh -c 'taskset -c 0,1 stress=2'+pipe", false),
            ("load=pig", false),
            ("load=none", false),
            ("prepare=leave,policy=other", true),
            ("prepare=timer_migration=off", false),
        ] {
            assert_eq!(text.parse::<Selector>().unwrap().matches(&hog), meant, "{text}");
        }
        let high = "load=high".parse::<Selector>().unwrap();
        assert!(high.matches(&of("high")) && !high.matches(&of("half")));
        assert!("load=cpu+disk".parse::<Selector>().unwrap().matches(&of("high")), "what it is made of");
    }

    #[test]
    fn a_selector_is_written_as_it_is_read() {
        for text in [
            "load=none",
            "load=pig",
            "load=cost+udp,policy=fifo:90",
            "policy=other,prepare=timer_migration=off,irq_cpus=0,2-3,/sys/a/b=x y",
            "prepare=leave",
            "kernel=running,load=hog=cmd:sh -c 'taskset -c 0,1 stress=2'+pipe,policy=other,period=1ms,method=cost",
        ] {
            let selector: Selector = text.parse().unwrap();
            assert_eq!((selector.to_string().as_str(), selector.to_string().parse()), (text, Ok(selector)));
        }
    }

    #[test]
    fn axes_that_both_name_set_them_apart() {
        for (a, b, axes) in [
            ("load=none", "load=none", &[][..]),
            ("load=none", "policy=other", &[]),
            ("load=none,policy=other", "load=messaging,policy=other", &["load"]),
            ("period=1ms,method=timerfd,kernel=running", "method=poll,period=2ms", &["period", "method"]),
        ] {
            let [a, b]: [Selector; 2] = [a, b].map(|text| text.parse().unwrap());
            assert_eq!((a.apart_from(&b), b.apart_from(&a)), (axes.to_vec(), axes.to_vec()));
        }
    }

    #[test]
    fn what_is_no_selector_is_refused() {
        for (text, message) in [
            ("messaging", "invalid selector `messaging`: expected AXIS=VALUE, like load=messaging,policy=fifo:80"),
            ("", "invalid selector ``: expected AXIS=VALUE, like load=messaging,policy=fifo:80"),
            ("load=none,load=cpu", "duplicate axis `load`; give each once"),
            ("laod=none", "unknown axis `laod` (did you mean `load`? known: kernel load policy period method prepare)"),
        ] {
            assert_eq!(text.parse::<Selector>(), Err(message.to_owned()));
        }
        assert!("policy=fifo:0".parse::<Selector>().is_err());
    }
}
