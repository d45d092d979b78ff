//! Sentences on links: answers, late and missing ones, the logger's own part, and the record of a responder.

use super::Section;
use super::latencies::latency;
use super::machine::known_facts;
use analysis::wording::count;
use analysis::{Part, Response, RunSummary, Target};
use model::{Link, Roles, TargetRecord};
use std::io;

/// Sentences on each cell that measured answers over a link, after those on the answering machines.
pub(crate) fn of(summary: &RunSummary) -> Option<Section> {
    let sentences = sentences(summary);
    let section = Section { title: "Triggers and answers", table: None, sentences, notes: Vec::new() };
    Some(section).filter(|section| !section.sentences.is_empty())
}

fn sentences(summary: &RunSummary) -> Vec<String> {
    let answered = || summary.cells.iter().filter_map(|cell| Some((cell, cell.response.as_ref()?)));
    let mut said: Vec<String> = Vec::new();
    for (cell, response) in answered() {
        if let Some(machines) = response.target.as_ref().map(|target| machines(&cell.cell.conditions.roles, target))
            && !said.contains(&machines)
        {
            said.push(machines);
        }
    }
    said.extend(answered().map(|(cell, response)| sentence(&cell.name, cell.cell.task.link(), response)));
    said
}

/// The measured machine, which is not the one in the first line.
fn machines(roles: &Roles, target: &Target) -> String {
    let Target { policy, cpus, host, .. } = target;
    let site = roles.target.as_ref().map(|site| format!(" ({site})")).unwrap_or_default();
    let facts = host.as_ref().map(|host| known_facts(host).join(", ")).filter(|facts| !facts.is_empty());
    let facts = facts.unwrap_or_else(|| "a machine that is not known".to_owned());
    let mut said = format!("Measured is the target{site}: {facts}. It answers as {policy} on CPU {cpus}");
    if let Some(site) = &roles.host {
        said.push_str(&format!("; ping comes from the host ({site})"));
    }
    if let Some(site) = roles.logger.as_ref().filter(|_| roles.is_logged_elsewhere()) {
        said.push_str(&format!("; the logger is {site}, not the machine above"));
    }
    said + "."
}

fn sentence(cell: &str, link: Option<Link>, response: &Response) -> String {
    let Response {
        triggers, late, lost, unsent, left_out, duplicate, foreign, line_errors, own, parts, target, ..
    } = response;
    let [sent, late, never] = [*triggers, *late, *lost].map(count);
    let mut said = format!("{cell}: {sent} triggers; {late} answered late, {never} never");
    if *unsent > 0 {
        said.push_str(&format!("; {} more not sent in time", count(*unsent)));
    }
    if *left_out > 0 {
        said.push_str("; answers that came late are in no latency of this record, which is of an older version");
    }
    for (number, what) in [(Some(*duplicate), "duplicate"), (Some(*foreign), "foreign"), (*line_errors, "damaged")] {
        if let Some(number) = number.filter(|number| *number > 0) {
            said.push_str(&format!("; {} {what}", count(number)));
        }
    }
    if let Some(parts) = parts {
        let us = |ns: Option<i64>| ns.map_or_else(|| "-".to_owned(), |ns| latency(ns as f64));
        let part = |part: &Part| format!("{} p50 {}, max {}", part.name, us(part.p50_ns), us(part.max_ns));
        let known: Vec<_> = parts.iter().filter(|part| part.n > 0).map(part).collect();
        said.push_str(&format!(". By the kernel's time stamps: {}", known.join("; ")));
    }
    match own {
        Some(own) => {
            let [p50, max] = [own.p50_ns, own.max_ns].map(|ns| latency(ns as f64));
            said.push_str(&format!(". The logger's own part, which is in every answer: p50 {p50}, max {max}."));
        }
        None if matches!(link, Some(Link::SerialLoop(_) | Link::GpioLoop(_))) => {
            said.push_str(". One thread sends and answers: all that it does is in every answer.");
        }
        None => said.push_str(". The logger's own part, which is in every answer, is not known."),
    }
    if let Some(Target { answered, own_p50_ns: Some(p50), own_max_ns: Some(max), .. }) = target {
        let [p50, max] = [*p50, *max].map(|ns| latency(ns as f64));
        let answered = count(*answered);
        said.push_str(&format!(
            " The target answered {answered}, the warm-up's, too; from waking to the answer sent: p50 {p50}, max {max}."
        ));
    }
    said
}

/// Writes the record of a responder.
///
/// # Errors
/// If writing to `out` fails.
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
    writeln!(out, "{link}: {} on CPU {}, {locked}", achieved.policy, achieved.cpus)?;
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
    use model::{Host, OwnExchange};

    #[test]
    fn whose_latency_it_is_stands_before_the_numbers() {
        let host = Host {
            hostname: Some("board".to_owned()),
            cpu_model: Some("Cortex-A53".to_owned()),
            kernel_release: Some("6.1.0-rt".to_owned()),
            ..Host::default()
        };
        let target = Target {
            policy: "fifo:80".parse().unwrap(),
            cpus: "3".parse().unwrap(),
            triggers: 9,
            answered: 9,
            missed: 0,
            own_p50_ns: Some(4_000),
            own_max_ns: Some(9_000),
            host: Some(host.into()),
        };
        let mut roles = Roles { target: "ssh:board".parse().ok(), ..Roles::default() };
        let measured =
            "Measured is the target (ssh:board): board, Cortex-A53, Linux 6.1.0-rt. It answers as fifo:80 on CPU 3";
        assert_eq!(machines(&roles, &target), format!("{measured}."));
        (roles.host, roles.logger) = ("here".parse().ok(), "ssh:pc".parse().ok());
        assert_eq!(
            machines(&roles, &target),
            format!("{measured}; ping comes from the host (here); the logger is ssh:pc, not the machine above.")
        );
        assert_eq!(
            machines(&Roles::default(), &Target { host: None, ..target }),
            "Measured is the target: a machine that is not known. It answers as fifo:80 on CPU 3."
        );
    }

    #[test]
    fn what_came_and_what_did_not_is_said_in_words() {
        let quiet = Response {
            triggers: 1000,
            late: 0,
            lost: 0,
            lost_at_least_ns: None,
            unsent: 0,
            left_out: 0,
            duplicate: 0,
            foreign: 0,
            line_errors: Some(0),
            parts: None,
            own: None,
            target: None,
        };
        let said = |link: &str, response| sentence("none/fifo:80", link.parse().ok(), &response);
        assert_eq!(
            said("serial:/dev/ttyS0", quiet.clone()),
            "none/fifo:80: 1 000 triggers; 0 answered late, 0 never. The logger's own part, which is in every answer, is not \
             known."
        );
        assert!(
            said("serial-loop", quiet.clone())
                .ends_with("One thread sends and answers: all that it does is in every answer.")
        );
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
            ..quiet
        };
        assert_eq!(
            said("udp:h:1", noisy),
            "none/fifo:80: 1 000 triggers; 2 answered late, 3 never; 4 more not sent in time; 5 duplicate; 6 foreign; 7 \
             damaged. By the kernel's time stamps: sending p50 2.0, max -; away p50 \
             2.0, max -; waking p50 2.0, max -. The logger's own part, which is in every answer: p50 4.0, max 12."
        );
    }
}
