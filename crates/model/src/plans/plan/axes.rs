//! Reading of the axes of a plan.

use super::Axes;
use super::values::{Located, integer, kind, parsed, string};
use crate::{GuestFile, Instrument, Kernel, KernelError, LabKernel, Load, NamedLoads, Task, UnknownWord};
use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt::Display;
use std::hash::Hash;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Key of the table of axes that selects combinations.
pub(super) const ONLY: &str = "only";
/// Key of the axis of settings of the machine.
pub(super) const PREPARE: &str = "prepare";
/// Keys of the table of axes.
pub(super) const KEYS: &[&str] = &["kernel", "load", "policy", "period", "method", "runtime", PREPARE, ONLY];
/// The axes that settings and knobs change, in the order in which messages list them; `prepare` has an option.
pub(super) const AXES: &[&str] = match KEYS {
    [axes @ .., _prepare, _only] => axes,
    _ => &[],
};

pub(super) fn axes(table: &DeTable<'_>, named: &NamedLoads, axes: &mut Axes) -> Located<()> {
    for (key, value) in table {
        match key.get_ref().as_ref() {
            "kernel" => axes.kernel = axis_of(key, value, kernels)?,
            "load" => axes.load = axis(key, value, |text| Load::parse(text, named))?,
            "policy" => axes.policy = axis(key, value, str::parse)?,
            "period" => axes.period = axis(key, value, str::parse)?,
            "method" => axes.task = axis_of(key, value, |item| task(item).map(|task| vec![task]))?,
            "runtime" => axes.runtime = axis(key, value, str::parse)?,
            PREPARE => axes.prepare = axis(key, value, str::parse)?,
            ONLY => axes.only = axis(key, value, str::parse)?,
            other => return Err((key.span().start, UnknownWord::new("axis", other, KEYS).to_string())),
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
    axis_of(key, value, |item| {
        parse(string(item)?).map(|value| vec![value]).map_err(|err| (item.span().start, err.to_string()))
    })
}

/// The values of one axis: at least one, no duplicates. An item may stand for several.
fn axis_of<T>(
    key: &Spanned<Cow<'_, str>>,
    value: &Spanned<DeValue<'_>>,
    parse: impl Fn(&Spanned<DeValue<'_>>) -> Located<Vec<T>>,
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
        for value in parse(item)? {
            if !seen.insert(value.clone()) {
                return Err((item.span().start, format!("duplicate value `{value}` in axis `{name}`")));
            }
            values.push(value);
        }
    }
    Ok(values)
}

/// A task as one text, or an outside program as a table of its parts.
fn task(value: &Spanned<DeValue<'_>>) -> Located<Task> {
    const KEYS: &[&str] = &["program", "read", "timeout", "output", "files", "stop"];
    let DeValue::Table(parts) = value.get_ref() else { return parsed(value) };
    let (Some(program), Some(read)) = (parts.get("program"), parts.get("read")) else {
        let message =
            "missing key `program` or `read`; write { program = \"cyclictest -q -D 60\", read = \"cyclictest\" }";
        return Err((value.span().start, message.to_owned()));
    };
    let at = |part: &Spanned<DeValue<'_>>| part.span().start;
    let instrument = Instrument::new(parsed(read)?, string(program)?);
    let mut instrument = instrument.map_err(|err| (at(program), err.to_string()))?;
    for (key, part) in parts {
        let text = match (key.get_ref().as_ref(), part.get_ref()) {
            ("program" | "read", _) => continue,
            ("files", DeValue::Array(items)) if items.is_empty() => continue,
            ("files", DeValue::Array(items)) => items.iter().map(string).collect::<Located<Vec<_>>>()?.join("+"),
            (name, _) if KEYS.contains(&name) => string(part)?.to_owned(),
            (other, _) => return Err((key.span().start, UnknownWord::new("key", other, KEYS).to_string())),
        };
        instrument.set(key.get_ref(), &text).map_err(|err| (at(part), err.to_string()))?;
    }
    Ok(Task::Program(Box::new(instrument)))
}

/// A kernel as one text, or as a table of its parts. Lists of what runs on this machine besides the guest stand for all
/// combinations.
fn kernels(value: &Spanned<DeValue<'_>>) -> Located<Vec<Kernel>> {
    const KEYS: &[&str] = &[
        "image", "append", "modules", "files", "clock", "cpus", "vcpu_policy", "vcpu_cpus", "io_policy", "io_cpus",
        "emulator_policy", "emulator_cpus", "host_load", "libvirt",
    ];
    let DeValue::Table(parts) = value.get_ref() else { return parsed(value).map(|kernel| vec![kernel]) };
    let Some(image) = parts.get("image") else {
        return Err((value.span().start, "missing key `image`; write { image = \"/path/of/vmlinuz\" }".to_owned()));
    };
    let mut words = vec![string(image)?.trim().to_owned()];
    if words[0].contains(char::is_whitespace) {
        let message = format!("invalid image `{}`: expected no blanks; kernel arguments go into `append`", words[0]);
        return Err((image.span().start, message));
    }
    let mut files = Vec::new();
    // One entry for each combination of the settings that are lists.
    let mut settings = vec![Vec::new()];
    for (key, part) in parts {
        match key.get_ref().as_ref() {
            "image" => {}
            "append" => words.push(string(part)?.to_owned()),
            "modules" => words.push(format!("modules={}", string(part)?)),
            "clock" => words.push(format!("clock={}", string(part)?)),
            "cpus" => words.push(format!("cpus={}", integer(part, 1..=LabKernel::MAX_CPUS)?)),
            "files" => files = guest_files(part)?,
            setting if KEYS.contains(&setting) => settings = combined(&settings, setting, part)?,
            other => return Err((key.span().start, UnknownWord::new("key", other, KEYS).to_string())),
        }
    }
    if words[0] == "running" {
        return Err((
            image.span().start,
            "invalid image `running`: expected a path or debian:VERSION; write the running kernel as \"running\""
                .to_owned(),
        ));
    }
    let kernel = |settings: Vec<String>| {
        let words = words.iter().cloned().chain(settings).collect::<Vec<_>>().join(" ");
        let mut kernel: Kernel = words.parse().map_err(|err: KernelError| (value.span().start, err.to_string()))?;
        kernel.give(&files);
        Ok(kernel)
    };
    settings.into_iter().map(kernel).collect()
}

/// The words of `before`, each with every value of one more setting: a text or a list of texts.
fn combined(before: &[Vec<String>], key: &str, value: &Spanned<DeValue<'_>>) -> Located<Vec<Vec<String>>> {
    let values: Vec<&str> = match value.get_ref() {
        DeValue::Array(items) if items.is_empty() => {
            return Err((value.span().start, format!("`{key}` is empty; give it a value or leave it out")));
        }
        DeValue::Array(items) => items.iter().map(string).collect::<Located<_>>()?,
        _ => vec![string(value)?],
    };
    if let Some(blank) = values.iter().find(|value| value.contains(char::is_whitespace)) {
        return Err((value.span().start, format!("invalid {key} `{blank}`: expected no blanks")));
    }
    let with = |value: &&str| {
        let word = format!("{key}={value}");
        before.iter().map(move |words| words.iter().cloned().chain([word.clone()]).collect())
    };
    Ok(values.iter().flat_map(with).collect())
}

pub(super) fn guest_files(value: &Spanned<DeValue<'_>>) -> Located<Vec<GuestFile>> {
    match value.get_ref() {
        DeValue::Array(items) => items.iter().map(parsed).collect(),
        other => Err((value.span().start, format!("expected a list of paths, found {}", kind(other)))),
    }
}
