//! Levels of quantiles that are shown: one rule for tables, pictures, comparisons and limits.
//!
//! The number of independent samples above a quantile does not fall evenly with the level, so one may be refused below
//! another that is not. A quantile is shown only if it and every lower one, in steps from the median upward, has enough
//! independent samples above it.

use crate::stats::woodruff::{Quantile, Refusal, estimate_of};
use punctual_model::{Histogram, Level};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use std::borrow::Cow;

/// Steps for each nine: 50 %, 68 %, 82 %, 90 %, 94.4 % ...
const STEPS_A_NINE: i32 = 4;

/// Highest level that is tried, in nines; it takes 10^16 samples.
const MOST_NINES: i32 = 16;

/// Tolerance for the rounding of `1 - p`.
const NEARLY: f64 = 1.0 - 1e-9;

/// The quantiles of one distribution, by level; each has three keys in JSON, that of its level before the unit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Quantiles([Quantile; Level::ALL.len()]);

impl Quantiles {
    pub(crate) fn of(pooled: &Histogram, slices: &[Histogram], confidence: f64) -> Quantiles {
        levels(|p| estimate_of(pooled, slices, p, confidence))
    }

    /// The result of `quantile` for each level.
    pub(crate) fn by(quantile: impl Fn(Level) -> Quantile) -> Quantiles {
        Quantiles(Level::ALL.map(quantile))
    }

    /// The same values, with intervals only where they hold.
    pub(crate) fn with_intervals_where(self, holds: impl Fn(Level) -> bool) -> Quantiles {
        Quantiles::by(|level| if holds(level) { *self.at(level) } else { self.at(level).without_interval() })
    }

    /// The quantile of this level.
    pub fn at(&self, level: Level) -> &Quantile {
        &self.0[level as usize]
    }
}

impl Serialize for Quantiles {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for level in Level::ALL {
            let (key, quantile) = (level.key(), self.at(level));
            map.serialize_entry(&format!("{key}_ns"), &quantile.value_ns())?;
            map.serialize_entry(&format!("{key}_interval_ns"), &quantile.interval_ns())?;
            map.serialize_entry(&format!("{key}_refused"), &quantile.refusal())?;
        }
        map.end()
    }
}

impl JsonSchema for Quantiles {
    fn schema_name() -> Cow<'static, str> {
        "Quantiles".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut schema = json_schema!({
            "description": "The quantiles of one distribution.", "type": "object", "properties": {}, "required": []
        });
        for key in Level::ALL.map(Level::key) {
            for (key, of_key) in [
                (format!("{key}_ns"), generator.subschema_for::<Option<i64>>()),
                (format!("{key}_interval_ns"), generator.subschema_for::<Option<(i64, i64)>>()),
                (format!("{key}_refused"), generator.subschema_for::<Option<Refusal>>()),
            ] {
                schema.ensure_object()["required"]
                    .as_array_mut()
                    .into_iter()
                    .for_each(|all| all.push(key.clone().into()));
                schema.ensure_object()["properties"][key] = of_key.into();
            }
        }
        schema
    }
}

/// Exceedance probabilities of the levels, from the median upward.
fn exceedances() -> impl Iterator<Item = f64> {
    let rung = |step: i32| 10_f64.powf(-f64::from(step) / f64::from(STEPS_A_NINE));
    std::iter::once(0.5).chain((2..=MOST_NINES * STEPS_A_NINE).map(rung))
}

/// The quantiles shown in tables.
pub(crate) fn levels(quantile: impl Fn(f64) -> Quantile) -> Quantiles {
    let highest = Level::ALL.map(|level| 1.0 - level.p()).into_iter().fold(1.0, f64::min);
    let is_refused = |exceedance: &f64| matches!(quantile(1.0 - exceedance), Quantile::Refused(_));
    let refused = exceedances().take_while(|exceedance| *exceedance > highest / NEARLY).find(is_refused);
    let at = |level: Level| match (quantile(level.p()), refused) {
        (Quantile::Known { value_ns, .. }, Some(refused)) if refused * NEARLY > 1.0 - level.p() => {
            Quantile::Refused(Refusal::LowerRefused { estimate_ns: value_ns })
        }
        (quantile, _) => quantile,
    };
    Quantiles::by(at)
}

/// The quantiles drawn in pictures, each with its exceedance probability, up to the first refused one; empty without
/// the median.
pub(crate) fn rungs(quantile: impl Fn(f64) -> Quantile) -> Vec<(f64, Quantile)> {
    let all = exceedances().map(|exceedance| (exceedance, quantile(1.0 - exceedance)));
    all.take_while(|(_, quantile)| matches!(quantile, Quantile::Known { .. })).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A quantile that is refused if `refuse` is true for its exceedance probability.
    fn of(refuse: impl Fn(f64) -> bool) -> impl Fn(f64) -> Quantile {
        move |p| match refuse(1.0 - p) {
            true => Quantile::Refused(Refusal::FewExceedances {
                n_eff: 974,
                exceedances: 9.74,
                times_as_long: 10.0 / 9.74,
                estimate_ns: Some(1),
                at_least_ns: Some(1),
            }),
            false => Quantile::Known { value_ns: 7, interval_ns: None, n_eff: None },
        }
    }

    #[test]
    fn no_level_is_shown_above_one_that_is_refused() {
        let shown = |refuse: &dyn Fn(f64) -> bool| {
            let quantiles = levels(of(refuse));
            let shown = Level::ALL.map(|level| quantiles.at(level).value_ns().is_some());
            let last = rungs(of(refuse)).last().map_or(1.0, |(exceedance, _)| *exceedance);
            // The table shows the same levels as the picture.
            for (level, shown) in Level::ALL.into_iter().zip(shown) {
                assert_eq!(shown, last * NEARLY <= 1.0 - level.p(), "{level}: {last}");
            }
            shown
        };
        let near = |of: f64| move |exceedance: f64| (exceedance / of - 1.0).abs() < 0.01;
        assert_eq!(shown(&|_| false), [true; 6]);
        assert_eq!(shown(&near(0.01)), [true, false, false, false, false, false], "p99 is refused, p99.9 is not");
        assert_eq!(shown(&near(0.056_234)), [true, false, false, false, false, false], "94.4 % is refused");
        assert_eq!(shown(&near(0.001)), [true, true, false, false, false, false]);
        assert_eq!(shown(&near(0.5)), [false; 6]);
        assert_eq!(shown(&|exceedance| exceedance < 0.0009), [true, true, true, false, false, false]);
        assert_eq!(
            *levels(of(near(0.01))).at(Level::P999),
            Quantile::Refused(Refusal::LowerRefused { estimate_ns: 7 })
        );
    }
}
