//! Reading of the axes of a plan.

use super::Located;
use super::values::{integer, kind, parsed, string};
use crate::plan::Axes;
use crate::plan::setting::AXES;
use crate::{GuestFile, Kernel, KernelError, LabKernel, Load, NamedLoads, UnknownWord};
use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt::Display;
use std::hash::Hash;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

pub(super) fn axes(table: &DeTable<'_>, named: &NamedLoads, axes: &mut Axes) -> Located<()> {
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
            "cpus" => words.push(format!("cpus={}", integer(part, 1..=LabKernel::MAX_CPUS)?)),
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
pub(super) fn guest_files(value: &Spanned<DeValue<'_>>) -> Located<Vec<GuestFile>> {
    match value.get_ref() {
        DeValue::Array(items) => items.iter().map(parsed).collect(),
        other => Err((value.span().start, format!("expected a list of paths, found {}", kind(other)))),
    }
}
