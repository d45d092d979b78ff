//! `punctual measure cost`: the cost suite as one cell.

use super::{consent, run_directory};
use crate::cli::arguments::{CostArguments, RunFormat};
use crate::cli::terminal::{Outcome, note, output};
use punctual_campaign::{Request, Session};
use punctual_model::{Axes, CostScope, Ended, Header, Kernel, Plan, Span, Task};

/// Default limit for the batches of all operations; most finish sooner.
const DURATION: Span = Span(40_000_000_000);
const QUICK_DURATION: Span = Span(4_000_000_000);

pub(super) fn cost(arguments: CostArguments) -> Outcome {
    let scope = arguments.only.unwrap_or(CostScope::All);
    if arguments.list {
        let text = match arguments.common.format {
            RunFormat::Text => punctual_report::cost::list_text(scope, output::style(false)),
            RunFormat::Json => punctual_report::cost::list_json(scope),
            _ => return Err("invalid --format for --list: expected text or json".into()),
        };
        return output::write(&text).map(|()| 0);
    }
    let (keep, format) = (arguments.keep.clone(), arguments.common.format);
    let (wait, yes) = (arguments.common.wait, arguments.common.yes);
    let permit = |header: &Header| {
        consent::permit_floods(header, yes)?;
        output::check(header, format)
    };
    let plan = plan(arguments, scope);
    let request = Request::here(plan, wait, &permit, &|line| note(line));
    let mut session = Session::begin(request)?;
    let (n, cell) = (scope.operations().count(), session.cell());
    note(format_args!("{n} operations on {}, at most about {}", cell.cpus.named(), cell.duration));
    let dir = run_directory::keep(&mut session, &keep)?;
    if let Err(err) = session.measure(None, &mut |_| ()) {
        session.discard_empty();
        return Err(err);
    }
    let status = run_directory::finish(&session, dir.as_deref(), format.into())?;
    if session.entries.iter().any(|entry| entry.record.ended != Ended::Completed) {
        return Err(session.stop().interrupted("interrupted; partial results are shown").into());
    }
    Ok(status)
}

/// The plan of these options.
fn plan(arguments: CostArguments, scope: CostScope) -> Plan {
    let CostArguments { quick, duration, policy, load, common, .. } = arguments;
    let default = Plan::default();
    load.ask(Plan {
        title: "cost of operations".to_owned(),
        conditions: common.conditions(),
        repetitions: 1,
        duration: duration.unwrap_or(if quick { QUICK_DURATION } else { DURATION }),
        cpus: common.cpus,
        axes: Axes {
            kernel: vec![Kernel::Running],
            policy: vec![policy],
            task: vec![Task::Cost(scope)],
            period: default.axes.period.clone(),
            ..default.axes
        },
        require: common.require.unwrap_or_default(),
        ..default
    })
}
