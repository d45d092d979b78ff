//! Topics of `punctual help` that list the forms of values, and the arguments that take such values.

use clap::Arg;

/// A list of values.
#[derive(Debug)]
pub(crate) struct List {
    pub(crate) name: &'static str,
    /// What it lists.
    pub(crate) about: &'static str,
    /// Identifiers of the arguments whose values these are; also names of values.
    of: &'static [&'static str],
}

const fn list(name: &'static str, about: &'static str, of: &'static [&'static str]) -> List {
    List { name, about, of }
}

/// All lists, in the order of `punctual help topics`.
pub(crate) const LISTS: &[List] = &[
    list("methods", "ways to wait, and other things to measure", &["task", "what", "METHOD"]),
    list("policies", "scheduling policies", &["policy", "load_policy", "POLICY"]),
    list("loads", "background loads: what each does, disturbs and costs", &["load", "LOAD"]),
    list("links", "links to a responder", &["LINK"]),
    list("handoffs", "kinds of hand-offs between threads", &["KIND"]),
    list("formats", "output formats of a run", &["run-format"]),
    list("percentiles", "names of percentiles, limits and columns", &["require", "metric", "columns"]),
    list("settings", "system settings of --prepare", &["prepare"]),
    list("operations", "operations of measure cost", &["GROUP", "OPERATION"]),
    list("plans", "ready plans of punctual run", &["plan"]),
    list("studies", "published studies", &["study"]),
    list("checks", "checks of punctual doctor", &["checks"]),
];

impl List {
    /// Whether the argument takes values of this list.
    pub(crate) fn is_of(&self, arg: &Arg) -> bool {
        let id = arg.get_id().as_str();
        // Formats that help does not name one by one.
        let id = if id == "format" && arg.is_hide_possible_values_set() { "run-format" } else { id };
        let names = arg.get_value_names().unwrap_or_default();
        self.of.contains(&id) || names.iter().any(|name| self.of.contains(&name.as_str()))
    }
}
