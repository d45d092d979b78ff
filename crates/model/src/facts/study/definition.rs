//! Definition of a published study: its source, its tables, the plans that repeat it, and its conclusions as checks.

use crate::words::word::{as_text, words};
use crate::{Cell, Host, Kernel, KernelLoad, LabClock, Load, LoadPart, Period, Policy, Preemption, Tool, UnknownWord};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

/// A published study, from `studies/NAME.toml`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StudyDefinition {
    /// Title of the publication, or what was measured.
    pub title: String,
    /// Year of publication; `None` if not known.
    pub year: Option<u32>,
    /// Authors and place of publication.
    pub source: String,
    /// The machine that was measured; `None` if not given.
    pub machine: Option<String>,
    /// How it was measured, in one line.
    pub note: String,
    /// Plans that repeat it; empty for a study of which only numbers are known.
    #[serde(default, rename = "way")]
    pub ways: Vec<StudyWay>,
    /// Parts that no plan repeats everywhere.
    #[serde(default)]
    pub beyond: Vec<StudyBeyond>,
    /// Methods of the cells that repeat it, without their details: `itimer`, `sleep:python3`, `response`.
    #[serde(default)]
    pub methods: Vec<String>,
    /// Its kernels, in the order of its tables.
    #[serde(default, rename = "kernel")]
    pub kernels: Vec<StudyKernel>,
    /// Its tables.
    #[serde(default, rename = "table")]
    pub tables: Vec<StudyTable>,
    /// Its conclusions, most important first.
    #[serde(default, rename = "conclusion")]
    pub conclusions: Vec<StudyConclusion>,
}

impl StudyDefinition {
    /// The method of the study that a cell has; `None` for another method.
    pub fn method_of(&self, cell: &Cell) -> Option<&str> {
        let task = cell.task.to_string();
        let is_method = |method: &&String| {
            task.strip_prefix(method.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with(':'))
        };
        self.methods.iter().find(is_method).map(String::as_str)
    }

    /// Names of the study's kernels that stand for that of a cell on `host`, the machine or its guest.
    pub fn kernels_of(&self, cell: &Cell, host: &Host) -> Vec<&str> {
        let stands = self.kernels.iter().filter(|kernel| kernel.stands_for(cell, host));
        stands.map(|kernel| kernel.name.as_str()).collect()
    }

    /// The way with this name. Errors: one line with the known names, if there is none.
    pub fn way(&self, name: &str) -> Result<&StudyWay, String> {
        let known: Vec<_> = self.ways.iter().map(|way| way.name.as_str()).collect();
        let found = self.ways.iter().find(|way| way.name == name);
        found.ok_or_else(|| format!("unknown way `{name}` (known: {})", known.join(" ")))
    }
}

/// A ready plan that repeats a study, or a part of it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StudyWay {
    /// Name within the study.
    pub name: String,
    /// Name of the ready plan.
    pub plan: String,
    /// Changes of the plan, each `KEY=VALUE`.
    #[serde(default)]
    pub set: Vec<String>,
    /// What it measures, in one line.
    pub what: String,
    /// What the user must provide; `None` for a way that runs as it is.
    pub needs: Option<String>,
}

/// A part of a study that takes more than a plan.
#[derive(Debug, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StudyBeyond {
    /// The part.
    pub item: String,
    /// The hardware or software that it takes.
    pub takes: String,
}

/// A kernel of a study, and the kernels here that stand for it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StudyKernel {
    /// Name in tables and conclusions.
    pub name: String,
    /// Preemption models that stand for it; empty: any.
    #[serde(default)]
    pub preemption: Vec<Preemption>,
    /// Whether Cobalt measures.
    #[serde(default)]
    pub cobalt: bool,
    /// Whether it runs in a guest in machine time; otherwise it is the running kernel, or one in virtual time. `None`:
    /// either.
    pub guest: Option<bool>,
    /// Whether this machine works beside its guest; `None`: either.
    pub host_load: Option<bool>,
    /// Whether the threads of its guest's CPUs are real-time threads; `None`: either.
    pub realtime_vcpu: Option<bool>,
    /// Columns of the published rows of this kernel, with their values.
    #[serde(default)]
    pub published: BTreeMap<String, String>,
}

impl StudyKernel {
    /// Whether a cell on `host`, the machine or its guest, was measured on such a kernel.
    fn stands_for(&self, cell: &Cell, host: &Host) -> bool {
        let lab = match &cell.kernel {
            Kernel::Lab(lab) if lab.clock != LabClock::Virtual => Some(lab),
            _ => None,
        };
        let is_loaded = lab.is_some_and(|lab| !lab.host_load.parts().is_empty());
        let is_realtime = lab.is_some_and(|lab| lab.threads.vcpu.policy.is_some_and(Policy::is_realtime));
        let meets = |asked: Option<bool>, is: bool| asked.is_none_or(|asked| asked == is);
        let is_model = |model: &Preemption| host.preemption == Some(*model);
        let is_of_cobalt = cell.task.is_of_cobalt() || cell.task.cobalt_context().is_some();
        self.cobalt == is_of_cobalt
            && (self.cobalt || self.preemption.is_empty() || self.preemption.iter().any(is_model))
            && meets(self.guest, lab.is_some())
            && meets(self.host_load, is_loaded)
            && meets(self.realtime_vcpu, is_realtime)
    }
}

/// A table of a study: an axis in rows, another in columns, a field for each statistic.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StudyTable {
    /// Title.
    pub title: String,
    /// The method of its cells; `None`: any of the study.
    pub method: Option<String>,
    /// Axes of the rows, outermost first.
    pub rows: Vec<StudyAxis>,
    /// Axes of the columns; the statistics are the innermost.
    #[serde(default)]
    pub columns: Vec<StudyAxis>,
    /// Statistics of each field.
    pub statistics: Vec<Statistic>,
    /// Digits after the decimal point of our values.
    pub decimals: usize,
    /// Cells here that belong to it.
    #[serde(default)]
    pub only: StudyCells,
}

words! {
    /// An axis of a table.
    json StudyAxis {
        /// Kernel of the study.
        Kernel = "kernel",
        /// Background load.
        Load = "load",
        /// Scheduling policy.
        Policy = "policy",
        /// Period, or requested length.
        Period = "period",
        /// The n-th measured CPU, from 0.
        Cpu = "cpu",
    }
}

words! {
    /// A statistic of a study.
    #[derive(Serialize, Deserialize)]
    #[serde(try_from = "String", into = "String")]
    Statistic, "statistic" {
        /// Smallest latency, ns.
        Min = "min",
        /// Mean latency, ns.
        Mean = "mean",
        /// Largest latency, ns.
        Max = "max",
        /// Standard deviation of the latency, ns.
        Deviation = "sd",
        /// Missed due times (overruns), as a number in a table and as their share in a conclusion.
        Missed = "missed",
        /// Run time of a suite of operations: the change against the baseline in percent.
        Cost = "cost",
    }
}

impl Statistic {
    /// Unit of a table; empty for a number of things.
    pub fn unit(self) -> &'static str {
        match self {
            Statistic::Missed => "",
            Statistic::Cost => "%",
            _ => "us",
        }
    }
}

as_text!(Statistic, UnknownWord);

/// A conclusion of a study.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StudyConclusion {
    /// The conclusion, a sentence without its full stop.
    pub says: String,
    /// The statistic that it is about.
    pub statistic: Statistic,
    /// The method of its cells; `None`: any of the study.
    pub method: Option<String>,
    /// Groups of cells, each with larger values than the next, where all else is equal. Empty with `below`.
    #[serde(default)]
    pub falls: Vec<StudyCells>,
    /// Limit that no value reaches; `None` with `falls`.
    #[serde(default, deserialize_with = "limit")]
    pub below: Option<Period>,
    /// Cells that it is about.
    #[serde(default)]
    pub only: StudyCells,
    /// Axes of which it holds at each value alone, besides the kernel; others are pooled.
    #[serde(default)]
    pub each: Vec<StudyAxis>,
    /// Reason why virtual time cannot test it; `None` if it can. A limit in time is never tested there.
    pub needs_hardware: Option<String>,
}

/// Values of axes, each one or several; an axis without values allows all.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct StudyCells {
    /// Names of kernels of the study.
    #[serde(deserialize_with = "one_or_many")]
    pub kernel: Vec<String>,
    /// Background loads.
    #[serde(deserialize_with = "one_or_many")]
    pub load: Vec<Load>,
    /// Scheduling policies.
    #[serde(deserialize_with = "one_or_many")]
    pub policy: Vec<Policy>,
    /// Periods.
    #[serde(deserialize_with = "one_or_many")]
    pub period: Vec<Period>,
}

impl StudyCells {
    /// The axes that have values.
    pub fn axes(&self) -> Vec<StudyAxis> {
        let named = [
            (StudyAxis::Kernel, self.kernel.is_empty()),
            (StudyAxis::Load, self.load.is_empty()),
            (StudyAxis::Policy, self.policy.is_empty()),
            (StudyAxis::Period, self.period.is_empty()),
        ];
        named.into_iter().filter(|(_, is_empty)| !is_empty).map(|(axis, _)| axis).collect()
    }

    /// Each combination of one value of every axis that has values.
    pub fn members(&self) -> Vec<StudyCells> {
        fn each<T: Clone>(all: &[T]) -> Vec<Vec<T>> {
            if all.is_empty() { vec![Vec::new()] } else { all.iter().map(|one| vec![one.clone()]).collect() }
        }
        let mut members = Vec::new();
        for kernel in each(&self.kernel) {
            for load in each(&self.load) {
                for policy in each(&self.policy) {
                    for period in each(&self.period) {
                        let (kernel, load, policy) = (kernel.clone(), load.clone(), policy.clone());
                        members.push(StudyCells { kernel, load, policy, period });
                    }
                }
            }
        }
        members
    }

    /// Whether a place in a table, whose unknown axes are `None`, is among them.
    pub fn contain(&self, kernel: &str, load: Option<&Load>, policy: Option<Policy>, period: Option<Period>) -> bool {
        (self.kernel.is_empty() || self.kernel.iter().any(|name| name == kernel))
            && (self.load.is_empty() || load.is_some_and(|load| self.load.iter().any(|one| stands_for(load, one))))
            && (self.policy.is_empty() || policy.is_some_and(|policy| self.policy.contains(&policy)))
            && (self.period.is_empty() || period.is_some_and(|period| self.period.contains(&period)))
    }
}

/// Whether the load of a cell is the equivalent of a published one: `udp` replaces `ping` without a machine that floods
/// from outside. Names of loads in a plan are free.
pub fn stands_for(ours: &Load, published: &Load) -> bool {
    let is_alike = |(ours, published): (&LoadPart, &LoadPart)| match ours {
        LoadPart::Program(program) if program.tool == Tool::Ping => *published == LoadPart::Kernel(KernelLoad::Udp),
        ours => ours == published,
    };
    ours.parts().len() == published.parts().len() && ours.parts().iter().zip(published.parts()).all(is_alike)
}

/// Values in their text forms, one or several.
fn one_or_many<'de, D, T>(from: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: FromStr<Err: fmt::Display>,
{
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum OneOrMany {
        One(String),
        Many(Vec<String>),
    }
    let texts = match OneOrMany::deserialize(from)? {
        OneOrMany::One(one) => vec![one],
        OneOrMany::Many(many) => many,
    };
    texts.iter().map(|text| text.parse().map_err(D::Error::custom)).collect()
}

fn limit<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Period>, D::Error> {
    String::deserialize(from)?.parse().map(Some).map_err(D::Error::custom)
}
