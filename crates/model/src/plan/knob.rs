//! Knobs: keys of a plan with two values each, whose effects a search determines.

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
