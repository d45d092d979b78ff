//! Tables of a plan, and values with a form of their own.

use super::values::{Located, boolean, integer, parsed, string, table};
use super::{Knob, Requirement};
use crate::{CpuSet, Explain, Load, NamedLoads, Order, Percent, Prepare, Roles, UnknownWord};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// The named loads of the plan. Each may use those above it.
pub(super) fn named_loads(table: &DeTable<'_>) -> Located<NamedLoads> {
    let mut named = NamedLoads::new();
    let mut entries: Vec<_> = table.iter().collect();
    entries.order_by_key(|(key, _)| key.span().start);
    for (key, value) in entries {
        let load = Load::parse(string(value)?, &named).map_err(|err| (value.span().start, err.to_string()))?;
        let name = key.get_ref().as_ref();
        named.insert(name.to_owned(), load.named(name).map_err(|err| (key.span().start, err.to_string()))?);
    }
    Ok(named)
}

/// `true` for half, or a percentage.
pub(super) fn share(value: &Spanned<DeValue<'_>>) -> Located<Option<Percent>> {
    match value.get_ref() {
        DeValue::Boolean(asked) => Ok(asked.then_some(Percent::HALF)),
        _ => integer(value, 1..=100).map(Percent::new).map_err(|(at, message)| (at, format!("{message}, or true"))),
    }
}

/// `true`, or a table of options.
pub(super) fn explain(value: &Spanned<DeValue<'_>>) -> Located<Option<Explain>> {
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

pub(super) fn roles(table: &DeTable<'_>, roles: &mut Roles) -> Located<()> {
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

pub(super) fn prepare(table: &DeTable<'_>, prepare: &mut Prepare) -> Located<()> {
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

pub(super) fn require(table: &DeTable<'_>, require: &mut Requirement) -> Located<()> {
    for (key, value) in table {
        let number = match value.get_ref() {
            DeValue::Integer(n) => i64::from_str_radix(n.as_str(), n.radix()).ok().map(|n| n.to_string()),
            DeValue::Float(n) => Some(n.as_str().to_owned()),
            _ => None,
        };
        let text = number.map_or_else(|| string(value).map(str::to_owned), Ok)?;
        let at = if !Requirement::is_known(key.get_ref()) { key.span().start } else { value.span().start };
        require.set(key.get_ref(), &text).map_err(|err| (at, err.to_string()))?;
    }
    Ok(())
}

/// A non-empty set of CPUs.
pub(super) fn some_cpus(value: &Spanned<DeValue<'_>>) -> Located<CpuSet> {
    let empty = || (value.span().start, "`cpus` is empty; name at least one CPU or leave the key out".to_owned());
    Some(parsed(value)?).filter(|cpus: &CpuSet| !cpus.is_empty()).ok_or_else(empty)
}

/// The knobs in the order of the text, each with its position.
pub(super) fn knobs(knobs: &DeTable<'_>) -> Located<Vec<(Knob, usize)>> {
    let mut entries: Vec<(String, usize, &Spanned<DeValue<'_>>)> = Vec::new();
    for (key, value) in knobs {
        let Some(prefix) =
            [Knob::PREPARE, Knob::BOOT].into_iter().find(|prefix| prefix[..prefix.len() - 1] == **key.get_ref())
        else {
            entries.push((key.get_ref().to_string(), key.span().start, value));
            continue;
        };
        let settings = table(value)?;
        let named = |(name, value)| {
            let name: &Spanned<_> = name;
            (format!("{prefix}{}", name.get_ref()), name.span().start, value)
        };
        entries.extend(settings.iter().map(named));
    }
    entries.order_by_key(|(_, at, _)| *at);
    let knob = |(key, at, value): (String, usize, &Spanned<DeValue<'_>>)| {
        let DeValue::Array(values) = value.get_ref() else {
            return Err((at, format!("knob `{key}` needs two values or more, like [\"leave\", \"off\"]")));
        };
        let text = |value: &Spanned<DeValue<'_>>| match value.get_ref() {
            DeValue::Boolean(on) => Ok(on.to_string()),
            DeValue::Integer(n) => Ok(n.as_str().to_owned()),
            _ => string(value).map(str::to_owned),
        };
        let values = values.iter().map(text).collect::<Located<Vec<String>>>()?;
        Ok((Knob::of(key, values).map_err(|why| (at, why))?, at))
    };
    entries.into_iter().map(knob).collect()
}
