//! Reading a plan from TOML, with the line and column of every error.

use super::axes::{ONLY, PREPARE};
use super::keys::Draft;
use super::setting::Setting;
use super::values::{Located, document};
use super::{Knob, Plan, matches};
use crate::{Kernel, Span};
use toml::Spanned;
use toml::de::DeTable;

/// An error in the text of a plan and its position; lines and columns count from 1.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{line}:{column}: {message}")]
pub struct PlanError {
    /// Line in the text.
    pub line: usize,
    /// Column in characters.
    pub column: usize,
    /// The error and the expected form.
    pub message: String,
}

/// A mistake in a plan that settings of the command line change: in its text, or in one of them.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ChangedPlanError {
    /// The text of the plan.
    #[error(transparent)]
    Text(#[from] PlanError),
    /// A setting, by its key.
    #[error("--set {key}: {message}")]
    Setting {
        /// The key of the setting.
        key: String,
        /// One line that says what is wrong.
        message: String,
    },
}

impl Plan {
    /// Parses a plan. Omitted keys have the values of [`Plan::default`], except that nothing is required. Errors: the
    /// first error: TOML syntax, an unknown key or word, an impossible value, a contradiction.
    pub fn parse(text: &str) -> Result<Plan, PlanError> {
        let reading = Reading::begin(text).and_then(|mut reading| {
            reading.draft.read(reading.document.get_ref())?;
            reading.finish(true)
        });
        reading.map_err(|located| place(text, located))
    }

    /// Reads a plan in which each of `settings` replaces its key, and every key that excludes it: `method` the axis
    /// `runtime`, `cycles` the duration. Errors: the first mistake in the text that is left, or in a setting.
    pub fn parse_with(text: &str, settings: &[Setting]) -> Result<Plan, ChangedPlanError> {
        let mut reading = Reading::begin(text).map_err(|located| place(text, located))?;
        settings.iter().for_each(|setting| setting.displace(reading.document.get_mut()));
        reading.draft.read(reading.document.get_ref()).map_err(|located| place(text, located))?;
        for (index, setting) in settings.iter().enumerate() {
            let mistake = |message| ChangedPlanError::Setting { key: setting.key().to_owned(), message };
            if settings.iter().take(index).any(|other| other.key() == setting.key()) {
                return Err(mistake("duplicate setting; separate its values by commas".to_owned()));
            }
            document(setting.toml())
                .and_then(|line| reading.draft.read(line.get_ref()))
                .map_err(|(_, why)| mistake(why))?;
        }
        // With another period or duration, the cells decide whether there is room.
        Ok(reading.finish(settings.is_empty()).map_err(|located| place(text, located))?)
    }
}

/// Finds line and column of a mistake.
fn place(text: &str, (offset, message): (usize, String)) -> PlanError {
    let before = text.get(..offset).unwrap_or(text);
    let line_start = before.rfind('\n').map_or(0, |at| at + 1);
    PlanError {
        line: before.matches('\n').count() + 1,
        column: before.get(line_start..).map_or(0, |line| line.chars().count()) + 1,
        message,
    }
}

/// A plan whose document is being read.
struct Reading<'a> {
    document: Spanned<DeTable<'a>>,
    draft: Draft,
}

impl<'a> Reading<'a> {
    fn begin(text: &'a str) -> Located<Reading<'a>> {
        let plan = Plan { title: String::new(), ..Plan::default() };
        Ok(Reading { document: document(text)?, draft: Draft { plan, ..Draft::default() } })
    }

    /// Checks the keys against each other; `is_room_checked`: also the duration against the periods.
    fn finish(self, is_room_checked: bool) -> Located<Plan> {
        let Reading { document, draft: Draft { mut plan, duration_at, files, knobs, .. } } = self;
        if let Some((files, at)) = files {
            if plan.axes.kernel.iter().all(Kernel::is_here) {
                return Err((
                    at,
                    "`files` applies to lab kernels only; name one in axis `kernel`, or leave it out".into(),
                ));
            }
            plan.axes.kernel.iter_mut().for_each(|kernel| kernel.give(&files));
        }
        if plan.is_virtual() && document.get_ref().get("repetitions").is_none() {
            plan.repetitions = Plan::PHASES;
        }
        let replaced = ["duration", "min_cycles"].map(|key| document.get_ref().get_key_value(key));
        if let (Some(_), Some((key, value))) = (plan.cycles, replaced.into_iter().flatten().next()) {
            let message = format!("`cycles` and `{}` cannot be combined; leave one out", key.get_ref());
            return Err((value.span().start, message));
        }
        let place_of = |axis: &str| {
            let table = document.get_ref().get("axes").and_then(|axes| axes.get_ref().as_table());
            table.and_then(|axes| axes.get(axis)).map_or(0, |value| value.span().start)
        };
        if let Some(none) =
            plan.axes.only.iter().find(|only| !plan.axes.points().iter().any(|point| matches(only, point)))
        {
            let message = format!("`only`: `{none}` matches no combination of the axes; change it or an axis");
            return Err((place_of(ONLY), message));
        }
        if !plan.axes.prepare.is_empty() && !plan.conditions.prepare.is_empty() {
            let message = "axis `prepare` and table `prepare` cannot be combined; write all settings into each value \
                           of the axis";
            return Err((place_of(PREPARE), message.to_owned()));
        }
        if let Some((knobs, at)) = knobs {
            if !(1..=Knob::MOST).contains(&knobs.len()) {
                let n = knobs.len();
                return Err((at, format!("`knobs` has {n}; name at least one and at most {} knobs", Knob::MOST)));
            }
            let mut checked = Vec::new();
            for (knob, at) in knobs {
                plan.knobs = vec![knob.clone()];
                knob.values().try_for_each(|value| plan.with_values(&[value]).map(drop)).map_err(|why| (at, why))?;
                checked.append(&mut plan.knobs);
            }
            plan.knobs = checked;
        }
        let longest = plan.axes.period.iter().max().map_or(Span(0), |period| period.span());
        if is_room_checked && plan.cycles.or(plan.min_cycles).is_none() && plan.duration < longest {
            let message = format!(
                "duration {} is shorter than the period of {longest}; measure at least {longest}",
                plan.duration
            );
            return Err((duration_at, message));
        }
        Ok(plan)
    }
}

impl Plan {
    /// Parses a value for `/dev/cpu_dma_latency`: a duration, or `leave`. Errors: one line with the expected form.
    pub fn cpu_dma_latency(text: &str) -> Result<Option<u32>, String> {
        if text == "leave" {
            return Ok(None);
        }
        let span: Span = text.parse().map_err(|err: crate::SpanError| format!("{err}, or `leave`"))?;
        let us = u32::try_from(span.ns() / 1000).ok().filter(|us| *us <= i32::MAX.unsigned_abs());
        us.filter(|_| span.ns().is_multiple_of(1000)).map(Some).ok_or_else(|| {
            format!("invalid cpu_dma_latency `{text}`: expected whole microseconds like 0us, or `leave`")
        })
    }
}

#[cfg(test)]
mod tests;
