//! Reading a plan from TOML, with the line and column of every error.

mod axes;
mod knobs;
mod values;

use super::setting::Setting;
use super::{Knob, Plan, Requirement};
use crate::{CpuSet, Explain, GuestFile, Kernel, Load, NamedLoads, Percent, Prepare, Roles, Span, UnknownWord, plain};
use axes::{axes, guest_files};
use knobs::knobs;
use toml::Spanned;
use toml::de::{DeTable, DeValue};
use values::{any_text, boolean, integer, parsed, string, table};

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

/// An error and its byte offset.
type Located<T> = Result<T, (usize, String)>;

const KEYS: &[&str] = &[
    "title", "study", "repetitions", "aa", "duration", "cycles", "min_cycles", "warm_up", "seed", "cpus",
    "timer_slack", "align", "distance", "period_step", "cpu_dma_latency", "load_cpus", "load_policy", "load_must_hold",
    "loads", "prepare", "explain", "stop_above", "on_spike", "tracers", "roles", "axes", "knobs", "require", "files",
];

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
    /// Parses a plan. Omitted keys have the values of [`Plan::default`], except that nothing is required.
    ///
    /// # Errors
    /// The first error: TOML syntax, an unknown key or word, an impossible value, a contradiction.
    pub fn parse(text: &str) -> Result<Plan, PlanError> {
        let reading = Reading::begin(text).and_then(|mut reading| {
            reading.text()?;
            reading.finish(true)
        });
        reading.map_err(|located| place(text, located))
    }

    /// Reads a plan in which each of `settings` replaces its key, and every key that excludes it: `method` the axis
    /// `runtime`, `cycles` the duration.
    ///
    /// # Errors
    /// The first mistake in the text that is left, or in a setting.
    pub fn parse_with(text: &str, settings: &[Setting]) -> Result<Plan, ChangedPlanError> {
        let mut reading = Reading::begin(text).map_err(|located| place(text, located))?;
        settings.iter().for_each(|setting| setting.displace(reading.document.get_mut()));
        reading.text().map_err(|located| place(text, located))?;
        for (index, setting) in settings.iter().enumerate() {
            let mistake = |message| ChangedPlanError::Setting { key: setting.key().to_owned(), message };
            if settings.iter().take(index).any(|other| other.key() == setting.key()) {
                return Err(mistake("duplicate setting; separate its values by commas".to_owned()));
            }
            document(setting.toml()).and_then(|line| reading.keys(line.get_ref())).map_err(|(_, why)| mistake(why))?;
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

fn document(text: &str) -> Located<Spanned<DeTable<'_>>> {
    DeTable::parse(text).map_err(|err| {
        let message = err.message().replace('\n', ", ");
        (err.span().map_or(0, |span| span.start), format!("invalid TOML: {message}"))
    })
}

/// A plan that is being read.
struct Reading<'a> {
    document: Spanned<DeTable<'a>>,
    named: NamedLoads,
    plan: Plan,
    duration_at: usize,
    files: Option<(Vec<GuestFile>, usize)>,
    /// Each with its position.
    knobs: Option<(Vec<(Knob, usize)>, usize)>,
}

impl<'a> Reading<'a> {
    fn begin(text: &'a str) -> Located<Reading<'a>> {
        let document = document(text)?;
        let plan = Plan { title: String::new(), ..Plan::default() };
        Ok(Reading { document, named: NamedLoads::new(), plan, duration_at: 0, files: None, knobs: None })
    }

    /// Reads the text itself.
    fn text(&mut self) -> Located<()> {
        let document = std::mem::replace(&mut self.document, Spanned::new(0..0, DeTable::new()));
        if let Some(loads) = document.get_ref().get("loads") {
            self.named = named_loads(table(loads)?)?;
        }
        let read = self.keys(document.get_ref());
        self.document = document;
        read
    }

    /// Reads the keys of a document.
    fn keys(&mut self, document: &DeTable<'_>) -> Located<()> {
        let plan = &mut self.plan;
        for (key, value) in document {
            let at = value.span().start;
            match key.get_ref().as_ref() {
                "title" => plan.title = plain(any_text(value)?).into_owned(),
                "study" => plan.study = Some(parsed(value)?),
                "repetitions" => plan.repetitions = integer(value, Plan::REPETITIONS)?,
                "aa" => plan.aa = boolean(value)?,
                "duration" => (plan.duration, self.duration_at) = (parsed(value)?, at),
                "cycles" => plan.cycles = Some(integer(value, Plan::CYCLES)?),
                "min_cycles" => plan.min_cycles = Some(integer(value, Plan::CYCLES)?),
                "warm_up" => plan.conditions.warm_up = parsed(value)?,
                "seed" => plan.seed = Some(integer(value, 0..=u64::MAX)?),
                "cpus" => plan.cpus = Some(some_cpus(value)?),
                "timer_slack" => plan.conditions.timer_slack = Some(parsed(value)?),
                "align" => plan.conditions.align = Some(parsed(value)?),
                "distance" => plan.conditions.distance = Some(parsed(value)?),
                "period_step" => plan.conditions.period_step = Some(parsed(value)?),
                "cpu_dma_latency" => {
                    plan.conditions.cpu_dma_latency_us =
                        Plan::cpu_dma_latency(string(value)?).map_err(|message| (at, message))?;
                }
                "load_cpus" => plan.load_cpus = parsed(value)?,
                "load_policy" => plan.conditions.load_policy = Some(parsed(value)?),
                "load_must_hold" => plan.conditions.load_must_hold = share(value)?,
                "loads" => {}
                "files" => self.files = Some((guest_files(value)?, at)),
                "prepare" => prepare(table(value)?, &mut plan.conditions.prepare)?,
                "stop_above" => plan.conditions.stop_above = Some(parsed(value)?),
                "on_spike" => plan.conditions.on_spike = Some(any_text(value)?.to_owned()),
                "explain" => plan.conditions.explain = explain(value)?,
                "tracers" => plan.conditions.tracers = boolean(value)?,
                "roles" => roles(table(value)?, &mut plan.conditions.roles)?,
                "axes" => axes(table(value)?, &self.named, &mut plan.axes)?,
                "knobs" => self.knobs = Some((knobs(table(value)?)?, at)),
                "require" => require(table(value)?, &mut plan.require)?,
                other => return Err((key.span().start, UnknownWord::new("key", other, KEYS).to_string())),
            }
        }
        Ok(())
    }

    /// Checks the keys against each other; `is_room_checked`: also the duration against the periods.
    fn finish(self, is_room_checked: bool) -> Located<Plan> {
        let Reading { document, mut plan, duration_at, files, knobs, .. } = self;
        if let Some((files, at)) = files {
            if plan.axes.kernel.iter().all(|kernel| *kernel == Kernel::Running) {
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
        if let Some(none) =
            plan.axes.only.iter().find(|only| !plan.axes.points().iter().any(|point| super::matches(only, point)))
        {
            let table = document.get_ref().get("axes").and_then(|axes| axes.get_ref().as_table());
            let at = table.and_then(|axes| axes.get(axes::ONLY)).map_or(0, |value| value.span().start);
            return Err((at, format!("`only`: `{none}` matches no combination of the axes; change it or an axis")));
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
    /// Parses a value for `/dev/cpu_dma_latency`: a duration, or `leave`.
    ///
    /// # Errors
    /// One line with the expected form.
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

/// The named loads of the plan. Each may use those above it.
fn named_loads(table: &DeTable<'_>) -> Located<NamedLoads> {
    let mut named = NamedLoads::new();
    let mut entries: Vec<_> = table.iter().collect();
    entries.sort_by_key(|(key, _)| key.span().start);
    for (key, value) in entries {
        let load = Load::parse(string(value)?, &named).map_err(|err| (value.span().start, err.to_string()))?;
        let name = key.get_ref().as_ref();
        named.insert(name.to_owned(), load.named(name).map_err(|err| (key.span().start, err.to_string()))?);
    }
    Ok(named)
}

/// `true` for half, or a percentage.
fn share(value: &Spanned<DeValue<'_>>) -> Located<Option<Percent>> {
    match value.get_ref() {
        DeValue::Boolean(asked) => Ok(asked.then_some(Percent::HALF)),
        _ => integer(value, 1..=100).map(Percent::new).map_err(|(at, message)| (at, format!("{message}, or true"))),
    }
}

/// `true`, or a table of options.
fn explain(value: &Spanned<DeValue<'_>>) -> Located<Option<Explain>> {
    let DeValue::Table(table) = value.get_ref() else {
        return boolean(value).map(|asked| asked.then(Explain::default)).map_err(|(at, _)| {
            let message = "expected true, false or a table like { above = \"100us\" }";
            (at, message.to_owned())
        });
    };
    let mut asked = Explain::default();
    for (key, value) in table {
        match key.get_ref().as_ref() {
            "above" if string(value)? == "auto" => asked.above = None,
            "above" => asked.above = Some(parsed(value)?),
            "keep" => asked.keep = integer(value, Explain::KEEP)?,
            "stacks" => asked.stacks = boolean(value)?,
            "witness" => asked.witness = Some(parsed(value)?),
            "captures" => asked.captures = parsed(value)?,
            other => {
                const KNOWN: [&str; 5] = ["above", "keep", "stacks", "witness", "captures"];
                let message = UnknownWord::new("key", other, &KNOWN).to_string();
                return Err((key.span().start, message));
            }
        }
        asked.check().map_err(|message| (value.span().start, message))?;
    }
    Ok(Some(asked))
}

fn roles(table: &DeTable<'_>, roles: &mut Roles) -> Located<()> {
    for (key, value) in table {
        match key.get_ref().as_ref() {
            "target" => roles.target = Some(parsed(value)?),
            "target_cpu" => roles.target_cpu = Some(integer(value, 0..=CpuSet::MAX_CPU)?),
            "target_link" => roles.target_link = Some(parsed(value)?),
            "logger" => roles.logger = Some(parsed(value)?),
            "host" => roles.host = Some(parsed(value)?),
            other => return Err((key.span().start, UnknownWord::new("role", other, Roles::KNOWN).to_string())),
        }
    }
    Ok(())
}

fn prepare(table: &DeTable<'_>, prepare: &mut Prepare) -> Located<()> {
    for (key, value) in table {
        let unknown = !Prepare::KNOWN.contains(&key.get_ref().as_ref());
        let at = if unknown { key.span().start } else { value.span().start };
        // `true` reads better in a plan, `on` on a command line.
        let text = match value.get_ref() {
            DeValue::Boolean(on) => {
                if *on {
                    "on"
                } else {
                    "off"
                }
            }
            _ => string(value)?,
        };
        prepare.set(key.get_ref(), text).map_err(|err| (at, err.to_string()))?;
    }
    Ok(())
}

fn require(table: &DeTable<'_>, require: &mut Requirement) -> Located<()> {
    for (key, value) in table {
        let number = match value.get_ref() {
            DeValue::Integer(n) => i64::from_str_radix(n.as_str(), n.radix()).ok().map(|n| n.to_string()),
            DeValue::Float(n) => Some(n.as_str().to_owned()),
            _ => None,
        };
        let text = number.map_or_else(|| string(value).map(str::to_owned), Ok)?;
        let unknown = !Requirement::KNOWN.contains(&key.get_ref().as_ref());
        let at = if unknown { key.span().start } else { value.span().start };
        require.set(key.get_ref(), &text).map_err(|err| (at, err.to_string()))?;
    }
    Ok(())
}

/// A non-empty set of CPUs.
fn some_cpus(value: &Spanned<DeValue<'_>>) -> Located<CpuSet> {
    let empty = || (value.span().start, "`cpus` is empty; name at least one CPU or leave the key out".to_owned());
    Some(parsed(value)?).filter(|cpus: &CpuSet| !cpus.is_empty()).ok_or_else(empty)
}

#[cfg(test)]
mod tests;
