//! The keys of a plan in one table: how each is read, written, and set from the command line or as a knob.

use super::axes::{AXES, axes, guest_files};
use super::tables::{explain, knobs, named_loads, prepare, require, roles, share, some_cpus};
use super::values::{Located, any_text, boolean, integer, parsed, quoted, string, table, texts};
use super::{Knob, Plan};
use crate::{GuestFile, LoadCpus, NamedLoads, UnknownWord, plain};
use std::fmt::Display;
use std::sync::LazyLock;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// A plan that is being read: what does not depend on other keys, and what does, with its position.
#[derive(Default)]
pub(super) struct Draft {
    pub(super) plan: Plan,
    pub(super) named: NamedLoads,
    pub(super) duration_at: usize,
    pub(super) files: Option<(Vec<GuestFile>, usize)>,
    /// Each with its position.
    pub(super) knobs: Option<(Vec<(Knob, usize)>, usize)>,
}

impl Draft {
    /// Reads the keys of a document; first the loads, whose names axes use.
    pub(super) fn read(&mut self, document: &DeTable<'_>) -> Located<()> {
        let (loads, others): (Vec<_>, Vec<_>) = document.iter().partition(|(name, _)| name.get_ref() == "loads");
        for (name, value) in loads.into_iter().chain(others) {
            let unknown = || (name.span().start, UnknownWord::new("key", name.get_ref(), &NAMES).to_string());
            (key(name.get_ref()).ok_or_else(unknown)?.read)(self, value)?;
        }
        Ok(())
    }
}

/// Where a key gets its value besides a plan's text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// By `--set` or as a knob, as text.
    Text,
    /// By `--set` or as a knob; a number, or true or false.
    Bare,
    /// By an option of its own, or as a knob, as text.
    Knob,
    /// By an option of its own.
    Option,
    /// Not at all: a table, or what identifies the plan.
    File,
}

/// A key of a plan.
pub(super) struct Key {
    pub(super) name: &'static str,
    pub(super) form: Form,
    read: fn(&mut Draft, &Spanned<DeValue<'_>>) -> Located<()>,
    /// Its value in TOML; `None` if it has none, or is a table of its own.
    pub(super) write: fn(&Plan) -> Option<String>,
}

macro_rules! keys {
    ($($name:literal $form:ident, |$draft:ident, $value:ident| $read:expr, |$plan:ident| $write:expr;)*) => {
        /// All keys, in the order in which they are written.
        pub(super) const KEYS: &[Key] = &[$(Key {
            name: $name,
            form: Form::$form,
            read: |$draft, $value| {
                $read;
                Ok(())
            },
            write: |$plan| $write,
        }),*];
    };
}

keys! {
    "title" Text, |it, value| it.plan.title = plain(any_text(value)?).into_owned(), |plan| text(Some(&plan.title));
    "study" File, |it, value| it.plan.study = Some(parsed(value)?), |plan| text(plan.study);
    "repetitions" Option, |it, value| it.plan.repetitions = integer(value, Plan::REPETITIONS)?,
        |plan| bare(Some(plan.repetitions));
    "aa" Bare, |it, value| it.plan.aa = boolean(value)?, |plan| bare(plan.aa.then_some(true));
    "duration" Option, |it, value| (it.plan.duration, it.duration_at) = (parsed(value)?, value.span().start),
        |plan| text(plan.cycles.is_none().then_some(plan.duration));
    "cycles" Bare, |it, value| it.plan.cycles = Some(integer(value, Plan::CYCLES)?), |plan| bare(plan.cycles);
    "min_cycles" Bare, |it, value| it.plan.min_cycles = Some(integer(value, Plan::CYCLES)?),
        |plan| bare(plan.min_cycles.filter(|_| plan.cycles.is_none()));
    "warm_up" Text, |it, value| it.plan.conditions.warm_up = parsed(value)?,
        |plan| text(Some(plan.conditions.warm_up));
    "seed" Option, |it, value| it.plan.seed = Some(integer(value, 0..=u64::MAX)?), |plan| bare(plan.seed);
    "cpus" Knob, |it, value| it.plan.cpus = Some(some_cpus(value)?), |plan| text(plan.cpus.as_ref());
    "timer_slack" Text, |it, value| it.plan.conditions.timer_slack = Some(parsed(value)?),
        |plan| text(plan.conditions.timer_slack);
    "align" Text, |it, value| it.plan.conditions.align = Some(parsed(value)?), |plan| text(plan.conditions.align);
    "distance" Text, |it, value| it.plan.conditions.distance = Some(parsed(value)?),
        |plan| text(plan.conditions.distance);
    "period_step" Text, |it, value| it.plan.conditions.period_step = Some(parsed(value)?),
        |plan| text(plan.conditions.period_step);
    "cpu_dma_latency" Knob, |it, value| {
        let latency_us = Plan::cpu_dma_latency(string(value)?).map_err(|message| (value.span().start, message))?;
        it.plan.conditions.cpu_dma_latency_us = latency_us;
    }, |plan| text(Some(plan.conditions.cpu_dma_latency_us.map_or_else(|| "leave".to_owned(), |us| format!("{us}us"))));
    "load_cpus" Text, |it, value| it.plan.load_cpus = parsed(value)?,
        |plan| text(Some(&plan.load_cpus).filter(|cpus| **cpus != LoadCpus::All));
    "load_policy" Text, |it, value| it.plan.conditions.load_policy = Some(parsed(value)?),
        |plan| text(plan.conditions.load_policy);
    "load_must_hold" Bare, |it, value| it.plan.conditions.load_must_hold = share(value)?,
        |plan| bare(plan.conditions.load_must_hold.map(|share| share.get()));
    "loads" File, |it, value| it.named = named_loads(table(value)?)?, |_plan| None;
    "prepare" Option, |it, value| prepare(table(value)?, &mut it.plan.conditions.prepare)?, |_plan| None;
    "explain" Bare, |it, value| it.plan.conditions.explain = explain(value)?, |_plan| None;
    "stop_above" Text, |it, value| it.plan.conditions.stop_above = Some(parsed(value)?),
        |plan| text(plan.conditions.stop_above);
    "on_spike" Text, |it, value| it.plan.conditions.on_spike = Some(any_text(value)?.to_owned()),
        |plan| text(plan.conditions.on_spike.as_ref());
    "marks" Text, |it, value| it.plan.conditions.marks = texts(value)?, |plan| list(&plan.conditions.marks);
    "tracers" Bare, |it, value| it.plan.conditions.tracers = boolean(value)?,
        |plan| bare(plan.conditions.tracers.then_some(true));
    "roles" File, |it, value| roles(table(value)?, &mut it.plan.conditions.roles)?, |_plan| None;
    "axes" File, |it, value| axes(table(value)?, &it.named, &mut it.plan.axes)?, |_plan| None;
    "knobs" File, |it, value| it.knobs = Some((knobs(table(value)?)?, value.span().start)), |_plan| None;
    "require" Option, |it, value| require(table(value)?, &mut it.plan.require)?, |_plan| None;
    "files" File, |it, value| it.files = Some((guest_files(value)?, value.span().start)), |_plan| None;
}

fn text(value: Option<impl Display>) -> Option<String> {
    value.map(|value| quoted(&value.to_string()))
}

/// A list; `None` if it is empty.
fn list(values: &[impl Display]) -> Option<String> {
    let all: Vec<String> = values.iter().map(|value| quoted(&value.to_string())).collect();
    (!all.is_empty()).then(|| format!("[{}]", all.join(", ")))
}

fn bare(value: Option<impl Display>) -> Option<String> {
    value.map(|value| value.to_string())
}

/// The names of the keys of these forms.
fn of_forms(forms: &'static [Form]) -> impl Iterator<Item = &'static str> {
    KEYS.iter().filter(|key| forms.contains(&key.form)).map(|key| key.name)
}

static NAMES: LazyLock<Vec<&str>> = LazyLock::new(|| KEYS.iter().map(|key| key.name).collect());
/// What `--set` changes, the axes first.
pub(super) static OF_SET: LazyLock<Vec<&str>> =
    LazyLock::new(|| AXES.iter().copied().chain(of_forms(&[Form::Text, Form::Bare])).collect());
impl Plan {
    /// The keys that `--set` changes.
    pub fn keys_of_set() -> &'static [&'static str] {
        &OF_SET
    }
}

/// What a knob changes.
static OF_KNOBS: LazyLock<Vec<&str>> = LazyLock::new(|| {
    let settings = ["prepare.SETTING", "boot.WORD"];
    OF_SET.iter().copied().chain(of_forms(&[Form::Knob])).chain(settings).collect()
});

/// The key with this name.
pub(super) fn key(name: &str) -> Option<&'static Key> {
    KEYS.iter().find(|key| key.name == name)
}

/// The line of TOML that gives a knob one value; `prepare.SETTING` is a setting of the machine. Errors: if the key is
/// unknown, or no knob.
pub(super) fn line_of(name: &str, value: &str) -> Result<String, UnknownWord> {
    if let Some(setting) = name.strip_prefix(Knob::PREPARE) {
        return Ok(format!("prepare.{} = {}", quoted(setting), quoted(value)));
    }
    if AXES.contains(&name) {
        return Ok(format!("axes.{name} = [{}]", quoted(value)));
    }
    match key(name).map(|key| key.form) {
        Some(Form::Bare) if is_bare_word(value) => Ok(format!("{name} = {value}")),
        Some(Form::Text | Form::Bare | Form::Knob) => Ok(format!("{name} = {}", quoted(value))),
        Some(Form::Option | Form::File) | None => Err(UnknownWord::new("knob", name, &OF_KNOBS)),
    }
}

/// Whether a value is a number or a word of TOML; anything else is text.
fn is_bare_word(value: &str) -> bool {
    matches!(value, "true" | "false") || value.bytes().all(|byte| byte.is_ascii_digit() || byte == b'_')
}
