//! Answers over links: a row for each cell, the measured machines, and the record of a responder.

use super::Section;
use super::latencies::{dash, latency};
use super::machine::known_facts;
use crate::table::{Column, Field, Table};
use punctual_analysis::wording::count;
use punctual_analysis::{CellSummary, Part, Response, RunSummary, Target};
use punctual_model::{Link, Roles, TargetRecord};
use std::io;

/// A cell that measured answers.
type Answered<'a> = (&'a CellSummary, &'a Response);

/// A row for each cell that measured answers over a link, and sentences on the answering machines.
pub(crate) fn of(summary: &RunSummary) -> Option<Section> {
    let cells: Vec<Answered<'_>> =
        summary.cells.iter().filter_map(|cell| Some((cell, cell.response.as_ref()?))).collect();
    if cells.is_empty() {
        return None;
    }
    let table = Some(table(&cells).without_unknown());
    Some(Section { title: "Triggers and answers", table, sentences: machines(&cells), notes: notes(&cells) })
}

fn table(cells: &[Answered<'_>]) -> Table {
    let fields: [Field<Answered<'_>>; 13] = [
        (Column::text("cell"), |(cell, _)| cell.name.clone()),
        (Column::figure("triggers"), |(_, response)| count(response.triggers)),
        (Column::figure("late"), |(_, response)| count(response.late)),
        (Column::figure("never"), |(_, response)| count(response.lost)),
        (Column::figure("not sent").spare(5), |(_, response)| some(response.unsent)),
        (Column::figure("duplicate").spare(0), |(_, response)| some(response.duplicate)),
        (Column::figure("foreign").spare(0), |(_, response)| some(response.foreign)),
        (Column::figure("damaged").spare(0), |(_, response)| some(response.line_errors.unwrap_or(0))),
        (Column::figure("sending").spare(1), |(_, response)| part(response, 0)),
        (Column::figure("away").spare(1), |(_, response)| part(response, 1)),
        (Column::figure("waking").spare(2), |(_, response)| part(response, 2)),
        (Column::figure("logger").spare(4), |(_, response)| {
            response.own.map_or_else(dash, |own| p50_and_max(Some(own.p50_ns as f64), Some(own.max_ns as f64)))
        }),
        (Column::figure("target").spare(3), |(_, response)| {
            let target = response.target.as_ref();
            target.map_or_else(dash, |target| of_known(target.own_p50_ns, target.own_max_ns))
        }),
    ];
    Table::of(&fields, cells)
}

/// A count; `-` for none, so that a column without any is left out.
fn some(n: u64) -> String {
    if n > 0 { count(n) } else { dash() }
}

/// Median and maximum of a part of the answers.
fn part(response: &Response, index: usize) -> String {
    let part = response.parts.as_ref().and_then(|parts| parts.get(index)).filter(|part| part.n > 0);
    part.map_or_else(dash, |Part { p50_ns, max_ns, .. }| of_known(*p50_ns, *max_ns))
}

/// Median and maximum where they are known.
fn of_known(p50_ns: Option<i64>, max_ns: Option<i64>) -> String {
    p50_and_max(p50_ns.map(|ns| ns as f64), max_ns.map(|ns| ns as f64))
}

/// `5.0 / 33`; `-` where neither is known.
fn p50_and_max(p50_ns: Option<f64>, max_ns: Option<f64>) -> String {
    if p50_ns.is_none() && max_ns.is_none() {
        return dash();
    }
    let [p50, max] = [p50_ns, max_ns].map(|ns| ns.map_or_else(dash, latency));
    format!("{p50} / {max}")
}

/// The meaning of the columns.
fn notes(cells: &[Answered<'_>]) -> Vec<String> {
    let any = |is: fn(&Response) -> bool| cells.iter().any(|(_, response)| is(response));
    let mut parts = Vec::new();
    if any(|response| response.parts.is_some()) {
        parts.push("sending, away and waking: by the kernel's time stamps");
    }
    if any(|response| response.own.is_some()) {
        parts.push("logger: its own part, included in every answer");
    }
    if any(|response| response.target.as_ref().is_some_and(|target| target.own_p50_ns.is_some())) {
        parts.push("target: from waking to the answer sent");
    }
    let mut notes = Vec::new();
    if !parts.is_empty() {
        notes.push(format!("p50 / max in microseconds; {}.", parts.join("; ")));
    }
    let is_loop =
        |(cell, _): &Answered<'_>| matches!(cell.cell.task.link(), Some(Link::SerialLoop(_) | Link::GpioLoop(_)));
    if cells.iter().any(is_loop) {
        notes.push("One thread sends and answers: every answer includes all that it does.".to_owned());
    }
    if any(|response| response.left_out > 0) {
        notes.push("Records of an older version hold no latency of late answers.".to_owned());
    }
    notes
}

/// The measured machines, each once with all its policies; they are not the one in the first line.
fn machines(cells: &[Answered<'_>]) -> Vec<String> {
    let mut machines: Vec<(String, String, Vec<String>)> = Vec::new();
    for (cell, response) in cells {
        let Some(target) = &response.target else { continue };
        let (measured, place) = machine(&cell.cell.conditions.roles, target);
        let policy = target.policy.to_string();
        match machines.iter_mut().find(|(known, at, _)| (known, at) == (&measured, &place)) {
            Some((.., policies)) if policies.contains(&policy) => {}
            Some((.., policies)) => policies.push(policy),
            None => machines.push((measured, place, vec![policy])),
        }
    }
    let sentence = |(measured, place, policies): (String, String, Vec<String>)| {
        format!("{measured}. It answers as {}{place}.", policies.join(" or "))
    };
    machines.into_iter().map(sentence).collect()
}

/// A measured machine, and the places of the threads.
fn machine(roles: &Roles, target: &Target) -> (String, String) {
    let Target { cpus, host, .. } = target;
    let site = roles.target.as_ref().map(|site| format!(" ({site})")).unwrap_or_default();
    let facts = host.as_ref().map(|host| known_facts(host).join(", ")).filter(|facts| !facts.is_empty());
    let facts = facts.unwrap_or_else(|| "a machine that is not known".to_owned());
    let mut place = format!(" on {}", cpus.named());
    if let Some(site) = &roles.host {
        place.push_str(&format!("; ping comes from the host ({site})"));
    }
    if let Some(site) = roles.logger.as_ref().filter(|_| roles.is_logged_elsewhere()) {
        place.push_str(&format!("; the logger is {site}, not the machine above"));
    }
    (format!("Measured is the target{site}: {facts}"), place)
}

/// Writes the record of a responder.
pub fn target(out: &mut dyn io::Write, record: &TargetRecord) -> io::Result<()> {
    let TargetRecord {
        link,
        achieved,
        triggers,
        answered,
        missed,
        duplicate,
        foreign,
        too_soon,
        line_errors,
        own,
        waking,
        ..
    } = record;
    let locked = if achieved.memory_locked_bytes > 0 { "memory locked" } else { "memory not locked" };
    writeln!(out, "{link}: {} on {}, {locked}", achieved.policy, achieved.cpus.named())?;
    writeln!(out, "  triggers {}, answered {}, missed {}", count(*triggers), count(*answered), count(*missed))?;
    let (duplicate, foreign, too_soon) = (count(*duplicate), count(*foreign), count(*too_soon));
    writeln!(out, "  not answered: duplicate {duplicate}, foreign {foreign}, too soon {too_soon}")?;
    if let Some(errors) = line_errors {
        writeln!(out, "  bytes received wrongly: {}", count(*errors))?;
    }
    for (what, taken) in [("the interrupt to waking", waking.as_ref()), ("waking to the answer sent", Some(own))] {
        let Some(taken) = taken else { continue };
        if let (Some(min), Some(mean), Some(max)) = (taken.min_ns, taken.mean_ns(), taken.max_ns) {
            let [min, mean, max] = [min, mean, max].map(|ns| latency(ns as f64));
            writeln!(out, "  from {what}, us: min {min}, mean {mean}, max {max}")?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use punctual_analysis::testing::RunBuilder;
    use punctual_model::{Host, OwnExchange};

    fn quiet() -> Response {
        Response { triggers: 1000, line_errors: Some(0), ..Response::default() }
    }

    fn target(policy: &str, host: Option<Host>) -> Target {
        Target {
            policy: policy.parse().unwrap(),
            cpus: "3".parse().unwrap(),
            triggers: 9,
            answered: 9,
            missed: 0,
            own_p50_ns: Some(4_000),
            own_max_ns: Some(9_000),
            host: host.map(Into::into),
        }
    }

    /// The section of cells with these links and responses.
    fn section(responses: Vec<(&str, Response)>, roles: &Roles) -> Section {
        let mut run = RunBuilder::new();
        for (link, _) in &responses {
            run.cell("none", "fifo:80");
            let cell = run.header.cells.last_mut().unwrap();
            cell.task = format!("response:{link}").parse().unwrap();
            cell.conditions.roles = roles.clone();
        }
        let mut summary = punctual_analysis::summarise(&run.header, &[]);
        for (cell, (_, response)) in summary.cells.iter_mut().zip(responses) {
            cell.response = Some(response);
        }
        of(&summary).unwrap()
    }

    #[test]
    fn the_measured_machine_is_named_once_with_its_policies() {
        let host = Host {
            hostname: Some("board".to_owned()),
            cpu_model: Some("Cortex-A53".to_owned()),
            kernel_release: Some("6.1.0-rt".to_owned()),
            ..Host::default()
        };
        let by = |policy: &str| Response { target: Some(target(policy, Some(host.clone()))), ..quiet() };
        let mut roles = Roles { target: "ssh:board".parse().ok(), ..Roles::default() };
        let cells = || vec![("uio", by("fifo:80")), ("uio", by("other")), ("uio", by("fifo:80"))];
        let measured = "Measured is the target (ssh:board): board, Cortex-A53, Linux 6.1.0-rt. It answers as fifo:80 or other on CPU 3";
        assert_eq!(section(cells(), &roles).sentences, [format!("{measured}.")]);
        (roles.host, roles.logger) = ("here".parse().ok(), "ssh:pc".parse().ok());
        assert_eq!(
            section(cells(), &roles).sentences,
            [format!("{measured}; ping comes from the host (here); the logger is ssh:pc, not the machine above.")]
        );
        let unknown = vec![("uio", Response { target: Some(target("rr:1", None)), ..quiet() })];
        assert_eq!(
            section(unknown, &Roles::default()).sentences,
            ["Measured is the target: a machine that is not known. It answers as rr:1 on CPU 3."]
        );
    }

    #[test]
    fn troubles_and_parts_have_columns_where_there_are_any() {
        let part = |name| Part { name, n: 9, min_ns: Some(1), p50_ns: Some(2_000), max_ns: None };
        let noisy = Response {
            late: 2,
            lost: 3,
            unsent: 4,
            duplicate: 5,
            foreign: 6,
            line_errors: Some(7),
            parts: Some(["sending", "away", "waking"].map(part)),
            own: Some(OwnExchange { exchanges: 201, min_ns: 1, p50_ns: 4_000, max_ns: 12_000 }),
            ..quiet()
        };
        let lines = |section: &Section| section.table.as_ref().unwrap().lines();
        let quiet = section(vec![("serial-loop", quiet())], &Roles::default());
        assert_eq!(lines(&quiet), ["  cell          triggers  late  never", "  none/fifo:80     1 000     0      0"]);
        assert_eq!(quiet.notes, ["One thread sends and answers: every answer includes all that it does."]);
        let noisy = section(vec![("udp:h:1", noisy)], &Roles::default());
        assert_eq!(
            lines(&noisy)[1].split_whitespace().collect::<Vec<_>>().join(" "),
            "none/fifo:80 1 000 2 3 4 5 6 7 2.0 / - 2.0 / - 2.0 / - 4.0 / 12"
        );
        assert_eq!(
            noisy.notes,
            [
                "p50 / max in microseconds; sending, away and waking: by the kernel's time stamps; logger: its own part, included in \
              every answer."
            ]
        );
    }
}
