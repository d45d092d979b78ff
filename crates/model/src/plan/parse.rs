//! Reading a plan from TOML, with the line and column of every error.

use super::{Axes, Plan, Requirement};
use crate::{
    CpuSet, Explain, GuestFile, Kernel, KernelError, LabKernel, Load, NamedLoads, Percent, Prepare, Roles, Span,
    UnknownWord, is_plain, plain,
};
use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt::Display;
use std::hash::Hash;
use std::str::FromStr;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

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
    "timer_slack", "align", "distance", "cpu_dma_latency", "load_cpus", "load_policy", "load_must_hold", "loads",
    "prepare", "explain", "stop_above", "on_spike", "tracers", "roles", "axes", "require", "files",
];
const AXES: &[&str] = &["kernel", "load", "policy", "period", "method", "runtime"];

impl Plan {
    /// Parses a plan. Omitted keys have the values of [`Plan::default`], except that nothing is required.
    ///
    /// # Errors
    /// The first error: TOML syntax, an unknown key or word, an impossible value, a contradiction.
    pub fn parse(text: &str) -> Result<Plan, PlanError> {
        plan(text).map_err(|(offset, message)| {
            let before = text.get(..offset).unwrap_or(text);
            let line_start = before.rfind('\n').map_or(0, |at| at + 1);
            PlanError {
                line: before.matches('\n').count() + 1,
                column: before.get(line_start..).map_or(0, |line| line.chars().count()) + 1,
                message,
            }
        })
    }
}

fn plan(text: &str) -> Located<Plan> {
    let document = DeTable::parse(text).map_err(|err| {
        let message = err.message().replace('\n', ", ");
        (err.span().map_or(0, |span| span.start), format!("invalid TOML: {message}"))
    })?;
    let mut plan = Plan { title: String::new(), ..Plan::default() };
    let (mut duration_at, mut files) = (0, None);
    let named = document.get_ref().get("loads").map_or(Ok(NamedLoads::new()), |loads| named_loads(table(loads)?))?;
    for (key, value) in document.get_ref() {
        let at = value.span().start;
        match key.get_ref().as_ref() {
            "title" => plan.title = plain(any_text(value)?).into_owned(),
            "study" => plan.study = Some(parsed(value)?),
            "repetitions" => plan.repetitions = integer(value, Plan::REPETITIONS)?,
            "aa" => plan.aa = boolean(value)?,
            "duration" => (plan.duration, duration_at) = (parsed(value)?, at),
            "cycles" => plan.cycles = Some(integer(value, Plan::CYCLES)?),
            "min_cycles" => plan.min_cycles = Some(integer(value, Plan::CYCLES)?),
            "warm_up" => plan.conditions.warm_up = parsed(value)?,
            "seed" => plan.seed = Some(integer(value, 0..=u64::MAX)?),
            "cpus" => plan.cpus = Some(some_cpus(value)?),
            "timer_slack" => plan.conditions.timer_slack = Some(parsed(value)?),
            "align" => plan.conditions.align = Some(parsed(value)?),
            "distance" => plan.conditions.distance = Some(parsed(value)?),
            "cpu_dma_latency" => {
                plan.conditions.cpu_dma_latency_us =
                    Plan::cpu_dma_latency(string(value)?).map_err(|message| (at, message))?;
            }
            "load_cpus" => plan.load_cpus = parsed(value)?,
            "load_policy" => plan.conditions.load_policy = Some(parsed(value)?),
            "load_must_hold" => plan.conditions.load_must_hold = share(value)?,
            "loads" => {}
            "files" => files = Some((guest_files(value)?, at)),
            "prepare" => prepare(table(value)?, &mut plan.conditions.prepare)?,
            "stop_above" => plan.conditions.stop_above = Some(parsed(value)?),
            "on_spike" => plan.conditions.on_spike = Some(any_text(value)?.to_owned()),
            "explain" => plan.conditions.explain = explain(value)?,
            "tracers" => plan.conditions.tracers = boolean(value)?,
            "roles" => roles(table(value)?, &mut plan.conditions.roles)?,
            "axes" => axes(table(value)?, &named, &mut plan.axes)?,
            "require" => require(table(value)?, &mut plan.require)?,
            other => return Err((key.span().start, UnknownWord::new("key", other, KEYS).to_string())),
        }
    }
    if let Some((files, at)) = files {
        if plan.axes.kernel.iter().all(|kernel| *kernel == Kernel::Running) {
            return Err((at, "`files` applies to lab kernels only; name one in axis `kernel`, or leave it out".into()));
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
    let longest = plan.axes.period.iter().max().map_or(Span(0), |period| period.span());
    if plan.cycles.or(plan.min_cycles).is_none() && plan.duration < longest {
        let message =
            format!("duration {} is shorter than the period of {longest}; measure at least {longest}", plan.duration);
        return Err((duration_at, message));
    }
    Ok(plan)
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
            other => {
                let message = UnknownWord::new("key", other, &["above", "keep", "stacks", "witness"]).to_string();
                return Err((key.span().start, message));
            }
        }
        asked.check().map_err(|message| (value.span().start, message))?;
    }
    Ok(Some(asked))
}

fn axes(table: &DeTable<'_>, named: &NamedLoads, axes: &mut Axes) -> Located<()> {
    for (key, value) in table {
        match key.get_ref().as_ref() {
            "kernel" => axes.kernel = axis_of(key, value, kernel)?,
            "load" => axes.load = axis(key, value, |text| Load::parse(text, named))?,
            "policy" => axes.policy = axis(key, value, str::parse)?,
            "period" => axes.period = axis(key, value, str::parse)?,
            "method" => axes.task = axis(key, value, str::parse)?,
            "runtime" => axes.runtime = axis(key, value, str::parse)?,
            other => return Err((key.span().start, UnknownWord::new("axis", other, AXES).to_string())),
        }
    }
    match table.iter().find(|(key, _)| key.get_ref() == "runtime") {
        Some((key, _)) if table.contains_key("method") => {
            Err((key.span().start, "axes `runtime` and `method` cannot be combined; leave one out".to_owned()))
        }
        _ => Ok(()),
    }
}

/// The values of one axis, each a text.
fn axis<T, E>(
    key: &Spanned<Cow<'_, str>>,
    value: &Spanned<DeValue<'_>>,
    parse: impl Fn(&str) -> Result<T, E>,
) -> Located<Vec<T>>
where
    T: Eq + Hash + Clone + Display,
    E: Display,
{
    axis_of(key, value, |item| parse(string(item)?).map_err(|err| (item.span().start, err.to_string())))
}

/// The values of one axis: at least one, no duplicates.
fn axis_of<T>(
    key: &Spanned<Cow<'_, str>>,
    value: &Spanned<DeValue<'_>>,
    parse: impl Fn(&Spanned<DeValue<'_>>) -> Located<T>,
) -> Located<Vec<T>>
where
    T: Eq + Hash + Clone + Display,
{
    let name = key.get_ref();
    let DeValue::Array(items) = value.get_ref() else {
        return Err((value.span().start, format!("invalid axis `{name}`: expected a list, like {name} = [\"...\"]")));
    };
    if items.is_empty() {
        return Err((value.span().start, format!("axis `{name}` is empty; give it a value or leave it out")));
    }
    let mut seen = HashSet::new();
    let mut values = Vec::new();
    for item in items.iter() {
        let value = parse(item)?;
        if !seen.insert(value.clone()) {
            return Err((item.span().start, format!("duplicate value `{value}` in axis `{name}`")));
        }
        values.push(value);
    }
    Ok(values)
}

/// A kernel as one text, or as a table of its parts.
fn kernel(value: &Spanned<DeValue<'_>>) -> Located<Kernel> {
    const KEYS: &[&str] = &["image", "append", "modules", "files", "clock", "cpus"];
    let DeValue::Table(parts) = value.get_ref() else { return parsed(value) };
    let Some(image) = parts.get("image") else {
        return Err((value.span().start, "missing key `image`; write { image = \"/path/of/vmlinuz\" }".to_owned()));
    };
    let mut words = vec![string(image)?.trim().to_owned()];
    if words[0].contains(char::is_whitespace) {
        let message = format!("invalid image `{}`: expected no blanks; kernel arguments go into `append`", words[0]);
        return Err((image.span().start, message));
    }
    let mut files = Vec::new();
    for (key, part) in parts {
        match key.get_ref().as_ref() {
            "image" => {}
            "append" => words.push(string(part)?.to_owned()),
            "modules" => words.push(format!("modules={}", string(part)?)),
            "clock" => words.push(format!("clock={}", string(part)?)),
            "cpus" => words.push(format!("cpus={}", integer(part, 1..=LabKernel::MOST_CPUS)?)),
            "files" => files = guest_files(part)?,
            other => return Err((key.span().start, UnknownWord::new("key", other, KEYS).to_string())),
        }
    }
    let mut kernel: Kernel =
        words.join(" ").parse().map_err(|err: KernelError| (value.span().start, err.to_string()))?;
    if kernel == Kernel::Running {
        return Err((
            image.span().start,
            "invalid image `running`: expected a path or debian:VERSION; write the running kernel as \"running\""
                .to_owned(),
        ));
    }
    kernel.give(&files);
    Ok(kernel)
}

/// Files for guests.
fn guest_files(value: &Spanned<DeValue<'_>>) -> Located<Vec<GuestFile>> {
    match value.get_ref() {
        DeValue::Array(items) => items.iter().map(parsed).collect(),
        other => Err((value.span().start, format!("expected a list of paths, found {}", kind(other)))),
    }
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

fn table<'a, 'i>(value: &'a Spanned<DeValue<'i>>) -> Located<&'a DeTable<'i>> {
    match value.get_ref() {
        DeValue::Table(table) => Ok(table),
        other => Err((value.span().start, format!("expected a table, found {}", kind(other)))),
    }
}

fn boolean(value: &Spanned<DeValue<'_>>) -> Located<bool> {
    match value.get_ref() {
        DeValue::Boolean(yes) => Ok(*yes),
        other => Err((value.span().start, format!("expected true or false, found {}", kind(other)))),
    }
}

/// A text that is a word or a list of words, without control characters, so that it prints on one line.
fn string<'a>(value: &'a Spanned<DeValue<'_>>) -> Located<&'a str> {
    let unplain = || (value.span().start, "control characters are not allowed; write it on one line".to_owned());
    Some(any_text(value)?).filter(|text| text.chars().all(is_plain)).ok_or_else(unplain)
}

/// Any text.
fn any_text<'a>(value: &'a Spanned<DeValue<'_>>) -> Located<&'a str> {
    match value.get_ref() {
        DeValue::String(text) => Ok(text),
        other => Err((value.span().start, format!("expected text in quotes, found {}", kind(other)))),
    }
}

fn parsed<T: FromStr<Err: Display>>(value: &Spanned<DeValue<'_>>) -> Located<T> {
    string(value)?.parse().map_err(|err: T::Err| (value.span().start, err.to_string()))
}

fn integer<T>(value: &Spanned<DeValue<'_>>, range: std::ops::RangeInclusive<T>) -> Located<T>
where
    T: TryFrom<u64> + PartialOrd + Display,
{
    let number = match value.get_ref() {
        DeValue::Integer(n) => u64::from_str_radix(n.as_str(), n.radix()).ok(),
        _ => None,
    };
    number.and_then(|n| T::try_from(n).ok()).filter(|n| range.contains(n)).ok_or_else(|| {
        (value.span().start, format!("expected a whole number from {} to {}", range.start(), range.end()))
    })
}

/// The kind of a TOML value, for messages.
fn kind(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "text",
        DeValue::Integer(_) | DeValue::Float(_) => "a number",
        DeValue::Boolean(_) => "true or false",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    }
}

#[cfg(test)]
mod tests;
