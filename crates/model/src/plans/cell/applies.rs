//! Conditions that do not apply to what a cell measures: one table of what excludes which, and why.

use super::Cell;
use crate::{Link, Method, Task};

/// A condition, and whether a cell has it.
type Condition = (&'static str, fn(&Cell) -> bool);

const CONDITIONS: [Condition; 18] = [
    ("timer_slack", |cell| cell.conditions.timer_slack.is_some()),
    ("warm_up", |cell| cell.conditions.warm_up.ns() > 0),
    ("align", |cell| cell.conditions.align.is_some()),
    ("distance", |cell| cell.conditions.distance.is_some()),
    ("period_step", |cell| cell.conditions.period_step.is_some()),
    ("lock_memory", |cell| cell.lock_memory),
    ("explain", |cell| cell.conditions.explain.is_some()),
    ("witness", |cell| cell.conditions.explain.as_ref().is_some_and(|explain| explain.witness.is_some())),
    ("stop_above", |cell| cell.conditions.stop_above.is_some()),
    ("on_spike", |cell| cell.conditions.on_spike.is_some()),
    ("marks", |cell| !cell.conditions.marks.is_empty()),
    ("tracers", |cell| cell.conditions.tracers),
    ("[roles]", |cell| !cell.conditions.roles.is_empty()),
    ("cgroup", |cell| cell.conditions.prepare.cgroup.is_some()),
    ("prepare", |cell| !cell.conditions.prepare.is_empty()),
    ("load_cpus", |cell| cell.load_cpus.is_some()),
    ("load_policy", |cell| cell.conditions.load_policy.is_some()),
    ("load_must_hold", |cell| cell.conditions.load_must_hold.is_some()),
];

/// Names of conditions, and what in a cell excludes them, with the reason; `None` if nothing does.
type Exclusion = (&'static [&'static str], fn(&Cell) -> Option<String>);

const EXCLUSIONS: &[Exclusion] = &[
    (
        &["explain", "stop_above", "on_spike", "align", "distance", "period_step", "tracers", "lock_memory", "[roles]"],
        |cell| (!cell.task.has_latencies()).then(|| format!("method {}, which has no due times", cell.task)),
    ),
    (&["warm_up", "align", "distance", "period_step", "timer_slack", "witness", "tracers"], |cell| {
        cell.task.is_noise().then(|| format!("method {}, whose threads never wait", cell.task))
    }),
    (&["timer_slack"], |cell| {
        cell.policy.is_realtime().then(|| format!("policy {}, under which threads have none", cell.policy))
    }),
    (&["align", "distance"], |cell| {
        let task = &cell.task;
        let is_own = task.is_relative() || task.is_reported() || task.link().is_some();
        let is_own = is_own || task.method() == Some(Method::Deadline) || matches!(task, Task::Watch(_));
        is_own.then(|| format!("method {task}, whose due times depend on when it starts to wait"))
    }),
    (&["period_step"], |cell| match &cell.task {
        Task::Cyclic(Method::Deadline) => Some("method deadline, whose period is that of the policy".to_owned()),
        Task::Cyclic(_) => cell.conditions.tracers.then(|| "tracers, whose threads have one period".to_owned()),
        other => Some(format!("method {}, only to threads that wait for due times", other.label())),
    }),
    (&["explain"], |cell| {
        let is_elsewhere = cell.task.is_in_other_processes();
        is_elsewhere.then(|| format!("method {}, which measures in other processes", cell.task))
    }),
    (&["stop_above"], |cell| {
        let is_elsewhere = cell.task.is_in_other_processes();
        is_elsewhere.then(|| format!("method {}, whose processes cannot stop each other", cell.task))
    }),
    (&["explain", "stop_above"], |cell| {
        let is_driver = matches!(cell.task, Task::Timerbench(_));
        is_driver.then(|| format!("method {}, whose driver reports nothing about single wake-ups", cell.task))
    }),
    (&["lock_memory", "cgroup", "tracers", "warm_up"], |cell| match &cell.task {
        Task::Timerbench(_) => Some(format!("{}, which a driver measures", cell.task.label())),
        Task::Program(_) => Some(format!("{}, an outside program", cell.task.label())),
        _ => None,
    }),
    (&["stop_above"], |cell| {
        let is_watched = matches!(cell.task, Task::Watch(_));
        is_watched.then(|| "method watch, which changes nothing in the watched program".to_owned())
    }),
    (&["marks"], |cell| {
        let is_watched = matches!(cell.task, Task::Watch(_));
        (!is_watched).then(|| format!("method {}, only to watch", cell.task.label()))
    }),
    (&["lock_memory", "cgroup", "tracers", "witness"], |cell| {
        matches!(cell.task, Task::Watch(_)).then(|| "method watch".to_owned())
    }),
    (&["lock_memory"], |cell| {
        matches!(cell.task, Task::Sleep(_)).then(|| "method sleep, where the program decides".to_owned())
    }),
    (&["cgroup"], |cell| {
        let is_sleep = matches!(cell.task, Task::Sleep(_));
        is_sleep.then(|| "method sleep, whose programs stay in the initial control group".to_owned())
    }),
    (&["explain"], |cell| match cell.task {
        Task::Cyclic(Method::Cobalt { .. }) => Some("method cobalt, whose threads must not call Linux".to_owned()),
        Task::Response(Link::Oob) => Some("response:oob, whose threads must not call Linux".to_owned()),
        Task::Cyclic(Method::Handoff(_)) => Some("method handoff, whose wake-ups no timer starts".to_owned()),
        _ => None,
    }),
    (&["[roles]"], |cell| {
        (!cell.kernel.is_here()).then(|| "lab guests, which have their own (punctual help guide response)".to_owned())
    }),
    (&["load_cpus", "load_policy", "load_must_hold", "prepare"], |cell| {
        let roles = &cell.conditions.roles;
        (roles.target.is_some() || roles.host.is_some()).then(|| "the target or the host".to_owned())
    }),
];

/// One line, if the cell has a condition that does not apply to it.
pub(super) fn refusal(cell: &Cell) -> Option<String> {
    EXCLUSIONS.iter().find_map(|(names, excluded_by)| {
        let what = excluded_by(cell)?;
        let is_given = |name: &&&str| CONDITIONS.iter().any(|(known, is_given)| *known == **name && is_given(cell));
        let name = names.iter().find(is_given)?;
        Some(format!("{name} does not apply to {what}; leave it out"))
    })
}

#[cfg(test)]
mod tests {
    use super::super::tests::cell;
    use super::*;

    /// Every name of an exclusion is a condition, and every condition is excluded by something.
    #[test]
    fn exclusions_name_all_conditions_and_no_others() {
        let mut excluded: Vec<&str> = EXCLUSIONS.iter().flat_map(|(names, _)| names.iter().copied()).collect();
        excluded.sort_unstable();
        excluded.dedup();
        let mut known: Vec<&str> = CONDITIONS.iter().map(|(name, _)| *name).collect();
        known.sort_unstable();
        assert_eq!(excluded, known);
    }

    /// Each pair of a condition and a kind of task is refused by name, or the cell has no objection to this condition.
    #[test]
    fn every_pair_of_a_condition_and_a_task_is_decided_by_the_table() {
        let conditions = [
            ("timer_slack", "timer_slack_ns", "1"),
            ("warm_up", "warm_up_ns", "1"),
            ("align", "align_ns", "0"),
            ("distance", "distance_ns", "0"),
            ("period_step", "period_step_ns", "1000"),
            ("lock_memory", "lock_memory", "true"),
            ("explain", "explain", r#"{"above_ns":null,"keep":1}"#),
            ("stop_above", "stop_above_ns", "1"),
            ("tracers", "tracers", "true"),
            ("cgroup", "prepare", r#"{"cgroup":"/a"}"#),
        ];
        let refused_by = |task: &str| {
            let names = conditions.iter().filter(|(name, key, value)| {
                let mut json = serde_json::to_value(cell()).unwrap();
                json["method"] = task.into();
                for off in ["lock_memory", "tracers"] {
                    json[off] = false.into();
                }
                json["warm_up_ns"] = 0.into();
                json[*key] = serde_json::from_str(value).unwrap();
                let cell: Cell = serde_json::from_value(json).unwrap();
                refusal(&cell).is_some_and(|why| why.starts_with(&format!("{name} does not apply to ")))
            });
            names.map(|(name, ..)| *name).collect::<Vec<_>>().join(" ")
        };
        for (task, refused) in [
            ("clock_nanosleep", ""),
            ("nanosleep", "align distance"),
            ("itimer", "explain stop_above"),
            ("deadline", "align distance period_step"),
            ("cobalt", "explain"),
            ("handoff:pipe", "explain"),
            ("noise", "timer_slack warm_up align distance period_step tracers"),
            ("cobalt:kernel", "warm_up align distance period_step lock_memory explain stop_above tracers cgroup"),
            ("sleep:c", "align distance period_step lock_memory explain stop_above cgroup"),
            ("response:udp:h:1", "align distance period_step"),
            ("cost", "align distance period_step lock_memory explain stop_above tracers"),
            (
                "program:cyclictest:cyclictest -q",
                "warm_up align distance period_step lock_memory explain stop_above tracers cgroup",
            ),
            ("watch:./servo", "align distance period_step lock_memory stop_above tracers cgroup"),
        ] {
            assert_eq!(refused_by(task), refused, "{task}");
        }
    }
}
