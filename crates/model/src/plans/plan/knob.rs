//! Knobs: keys of a plan with two or more values each, whose effects a search determines.

use super::Plan;
use crate::{InstalledKernel, Kernel, Prepare};
use serde::{Deserialize, Serialize};

/// A key of a plan with two or more values.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Knob {
    /// An axis, another key that holds for every cell, or `prepare.SETTING`.
    pub key: String,
    /// Its value on the machine as it is; of a setting of `prepare`, [`Knob::AS_IS`] leaves the machine's own.
    pub as_is: String,
    /// Values between both, which are tried only if the change to the last one may have an effect.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub between: Vec<String>,
    /// Its other value; the last of several.
    pub changed: String,
}

impl Knob {
    /// Most knobs of one experiment.
    pub const MOST: usize = 11;
    /// Most values of one knob.
    pub const MOST_VALUES: usize = 8;
    /// The value of a setting that is not made.
    pub const AS_IS: &str = Prepare::LEAVE;
    /// How the key of a word of the kernel's command line begins: `boot.preempt` is `preempt=VALUE`; the value `on` is
    /// the word alone, `off` is without it.
    pub const BOOT: &str = "boot.";
    /// How the key of a setting of the machine begins.
    pub const PREPARE: &str = "prepare.";

    /// A knob with these values, as it is first. Errors: one line, with fewer than two values, more than
    /// [`Knob::MOST_VALUES`], or one twice.
    pub fn of(key: String, mut values: Vec<String>) -> Result<Knob, String> {
        let two = || format!("knob `{key}` needs two values or more, like [\"leave\", \"off\"]");
        let most = Knob::MOST_VALUES;
        if values.len() > most {
            return Err(format!("knob `{key}` has {} values; name at most {most}", values.len()));
        }
        let last = values.pop().ok_or_else(two)?;
        let between = if values.is_empty() { return Err(two()) } else { values.split_off(1) };
        let as_is = values.pop().ok_or_else(two)?;
        let knob = Knob { key, as_is, between, changed: last };
        knob.check()?;
        Ok(knob)
    }

    /// All values except that of the machine as it is.
    pub fn others(&self) -> impl Iterator<Item = &str> {
        self.between.iter().chain(std::iter::once(&self.changed)).map(String::as_str)
    }

    /// All values, as it is first.
    pub fn values(&self) -> impl Iterator<Item = &str> {
        std::iter::once(self.as_is.as_str()).chain(self.others())
    }

    /// The knob with `value` as its only other one.
    pub fn with(&self, value: &str) -> Knob {
        Knob { between: Vec::new(), changed: value.to_owned(), ..self.clone() }
    }

    /// The value of one level.
    pub fn value(&self, is_changed: bool) -> &str {
        if is_changed { &self.changed } else { &self.as_is }
    }

    /// Checks the knob by itself. Errors: one line, if two values are equal.
    fn check(&self) -> Result<(), String> {
        let values: Vec<&str> = self.values().collect();
        match (1..values.len()).find(|at| values.iter().take(*at).any(|other| Some(other) == values.get(*at))) {
            Some(at) => {
                let value = values.get(at).unwrap_or(&"");
                Err(format!("knob `{}` has the value `{value}` twice; give it different ones", self.key))
            }
            None => Ok(()),
        }
    }
}

impl Plan {
    /// Gives a word of the command line of every kernel another value; [`Knob::AS_IS`] leaves it. Errors: for the
    /// running kernel, or if it would not be one word.
    pub(super) fn boot_with(&mut self, word: &str, value: &str) -> Result<(), String> {
        let text = match value {
            Knob::AS_IS => return Ok(()),
            "off" => String::new(),
            "on" => word.to_owned(),
            value => format!("{word}={value}"),
        };
        for kernel in &mut self.axes.kernel {
            let (arguments, is_argument) = match kernel {
                Kernel::Lab(kernel) => {
                    let parsed = format!("/k {text}").parse();
                    let is_argument = matches!(parsed, Ok(Kernel::Lab(kernel)) if kernel.arguments == text);
                    (&mut kernel.arguments, is_argument)
                }
                Kernel::Installed(kernel) => (&mut kernel.arguments, InstalledKernel::check_arguments(&text).is_ok()),
                Kernel::Running => {
                    return Err(
                        "boot words need a kernel that is booted; name installed:current or one of the lab in [axes] \
                         (punctual help guide boots)"
                            .to_owned(),
                    );
                }
            };
            if text.contains(char::is_whitespace) || !is_argument {
                return Err(format!("invalid word `{text}`: expected one word"));
            }
            let is_other = |argument: &&str| argument.split('=').next() != Some(word);
            let kept = arguments.split_whitespace().filter(is_other);
            *arguments = kept.chain(Some(&*text).filter(|text| !text.is_empty())).collect::<Vec<_>>().join(" ");
        }
        Ok(())
    }
}
