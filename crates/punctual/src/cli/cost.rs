//! `punctual measure cost`: the cost suite as one cell.

use super::arguments::{CostArguments, RunFormat};
use super::recover::take_machine;
use super::start::{header, holder};
use super::{Outcome, consent, note, output};
use crate::campaign::{Child, Executor, Stop};
use crate::report;
use crate::store;
use model::{Axes, CostScope, Ended, Entry, Kernel, Method, Plan, Planned, Span};
use std::time::SystemTime;

/// How long the batches of all operations may take unless told; most are done sooner.
const DURATION: Span = Span(40_000_000_000);
const QUICK: Span = Span(4_000_000_000);

pub(super) fn cost(arguments: CostArguments) -> Outcome {
    let scope = arguments.only.unwrap_or(CostScope::All);
    if arguments.list {
        let text = match arguments.common.format {
            RunFormat::Text => report::cost::list_text(scope, output::style(false)),
            RunFormat::Json => report::cost::list_json(scope),
            _ => return Err("--list is text or json".into()),
        };
        return output::write(&text).map(|()| 0);
    }
    let (out, common) = (arguments.out.clone(), arguments.common.format);
    let (wait, yes) = (arguments.common.wait, arguments.common.yes);
    let plan = plan(arguments, scope);
    let stop = Stop::on_signals()?;
    let asked = header(plan.clone(), false, SystemTime::now())?;
    consent::permit_floods(&asked, yes)?;
    output::check(&asked, common)?;
    let lock = take_machine(wait)?;
    let header = header(plan, false, SystemTime::now())?;
    let cell = header.cells.first().ok_or("nothing to measure")?;
    lock.say(&holder(&header, 1));
    let n = scope.operations().count();
    note(format_args!("{n} operations on CPU {}, at most about {}", cell.cpus, cell.duration));
    let mut writer = out.as_deref().map(|dir| store::create(dir, &header)).transpose()?;
    let record = Child.execute(cell, 0, None, &stop, &mut |_| ())?;
    let is_whole = record.ended == Ended::Completed;
    let entry = Entry { planned: Planned { block: 0, position: 0, cell_index: 0 }, record };
    if let Some(writer) = &mut writer {
        writer.entry(&entry)?;
    }
    let status = output::show(&header, &[entry], common.into())?;
    if let Some(dir) = out {
        note(dir.join("run.jsonl").display());
    }
    if !is_whole {
        return Err("interrupted; what is shown was measured before".into());
    }
    Ok(status)
}

/// What the options mean as a plan.
fn plan(arguments: CostArguments, scope: CostScope) -> Plan {
    let CostArguments { quick, duration, policy, load, common, .. } = arguments;
    let default = Plan::default();
    load.ask(Plan {
        title: "cost of operations".to_owned(),
        repetitions: 1,
        duration: duration.unwrap_or(if quick { QUICK } else { DURATION }),
        cpus: common.cpus,
        cpu_dma_latency_us: common.cpu_dma_latency.map_or(default.cpu_dma_latency_us, |asked| asked.0),
        axes: Axes {
            kernel: vec![Kernel::Running],
            policy: vec![policy],
            method: vec![Method::Cost(scope)],
            period: default.axes.period.clone(),
            ..default.axes
        },
        prepare: common.prepare.unwrap_or_default(),
        require: common.require.unwrap_or_default(),
        ..default
    })
}
