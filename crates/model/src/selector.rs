//! Which cells of a run are meant: values of some axes, as typed.

use crate::{Cell, Kernel, Load, Method, Period, Policy, UnknownWord};
use std::fmt::Display;
use std::str::FromStr;

/// Values of axes that a cell has to have, like `load=messaging,policy=fifo:80`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Selector {
    kernel: Option<Kernel>,
    load: Option<Load>,
    policy: Option<Policy>,
    period: Option<Period>,
    method: Option<Method>,
}

impl Selector {
    /// Every axis as it is typed.
    pub const AXES: &[&str] = &["kernel", "load", "policy", "period", "method"];

    /// Whether the cell has all these values.
    #[must_use]
    pub fn matches(&self, cell: &Cell) -> bool {
        fn is<T: PartialEq>(asked: Option<&T>, value: &T) -> bool {
            asked.is_none_or(|asked| asked == value)
        }
        is(self.kernel.as_ref(), &cell.kernel)
            && is(self.load.as_ref(), &cell.load)
            && is(self.policy.as_ref(), &cell.policy)
            && is(self.period.as_ref(), &cell.period)
            && is(self.method.as_ref(), &cell.method)
    }

    /// The axes that both name, with different values.
    #[must_use]
    pub fn apart_from(&self, other: &Selector) -> Vec<&'static str> {
        fn differ<T: PartialEq>(a: Option<&T>, b: Option<&T>) -> bool {
            a.zip(b).is_some_and(|(a, b)| a != b)
        }
        let Selector { kernel, load, policy, period, method } = self;
        let differ = [
            differ(kernel.as_ref(), other.kernel.as_ref()),
            differ(load.as_ref(), other.load.as_ref()),
            differ(policy.as_ref(), other.policy.as_ref()),
            differ(period.as_ref(), other.period.as_ref()),
            differ(method.as_ref(), other.method.as_ref()),
        ];
        Selector::AXES.iter().zip(differ).filter(|(_, differ)| *differ).map(|(axis, _)| *axis).collect()
    }
}

impl FromStr for Selector {
    type Err = String;

    /// One line says what is wrong and what to write.
    fn from_str(text: &str) -> Result<Selector, String> {
        let mut selector = Selector::default();
        for part in text.split(',') {
            let (axis, value) = part
                .split_once('=')
                .ok_or_else(|| format!("`{part}` names no cells; write it like load=messaging,policy=fifo:80"))?;
            match axis {
                "kernel" => set(&mut selector.kernel, axis, value)?,
                "load" => set(&mut selector.load, axis, value)?,
                "policy" => set(&mut selector.policy, axis, value)?,
                "period" => set(&mut selector.period, axis, value)?,
                "method" => set(&mut selector.method, axis, value)?,
                other => return Err(UnknownWord::new("axis", other, Selector::AXES).to_string()),
            }
        }
        Ok(selector)
    }
}

fn set<T: FromStr<Err: Display>>(slot: &mut Option<T>, axis: &str, value: &str) -> Result<(), String> {
    let value = value.parse().map_err(|err: T::Err| err.to_string())?;
    slot.replace(value).map_or(Ok(()), |_| Err(format!("axis `{axis}` stands twice; give each once")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cell::tests::cell;

    #[test]
    fn cells_are_selected_by_the_axes_that_are_named() {
        let selects = |text: &str| text.parse::<Selector>().unwrap().matches(&cell());
        assert!(selects("load=none") && selects("policy=other,period=1ms") && selects("method=clock_nanosleep"));
        assert!(!selects("load=messaging") && !selects("load=none,policy=fifo:80") && !selects("period=2ms"));
        assert!(Selector::default().matches(&cell()));
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
            ("messaging", "`messaging` names no cells; write it like load=messaging,policy=fifo:80"),
            ("", "`` names no cells; write it like load=messaging,policy=fifo:80"),
            ("load=none,load=cpu", "axis `load` stands twice; give each once"),
            ("laod=none", "unknown axis `laod` (did you mean `load`? known: kernel load policy period method)"),
        ] {
            assert_eq!(text.parse::<Selector>(), Err(message.to_owned()));
        }
        assert!("policy=fifo:0".parse::<Selector>().is_err());
    }
}
