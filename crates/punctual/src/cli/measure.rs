//! `punctual measure`: one cell, watched while it is measured. Nothing is kept but what is shown.

use super::arguments::{MeasureArguments, MeasureCommand, RunFormat};
use super::live::Live;
use super::recover::take_machine;
use super::sleep::sleep;
use super::start::{header, holder};
use super::{Outcome, consent, note, output};
use crate::campaign::{Child, Executor, Stop};
use analysis::enough::Outlook;
use model::{Axes, Entry, Kernel, Plan, Planned};
use std::time::SystemTime;

pub(super) fn measure(arguments: MeasureArguments) -> Outcome {
    if let Some(MeasureCommand::Sleep(arguments)) = arguments.command {
        return sleep(*arguments);
    }
    let stop = Stop::on_signals()?;
    let common = arguments.common;
    let plan = arguments.load.ask(Plan {
        title: format!("measure {}", arguments.method),
        repetitions: 1,
        duration: arguments.duration,
        cycles: None,
        min_cycles: None,
        warm_up: arguments.warm_up,
        seed: None,
        cpus: common.cpus,
        timer_slack: arguments.timer_slack,
        align: arguments.align,
        distance: arguments.distance,
        cpu_dma_latency_us: common.cpu_dma_latency.map_or(Plan::default().cpu_dma_latency_us, |asked| asked.0),
        axes: Axes {
            kernel: vec![Kernel::Running],
            load: Vec::new(),
            policy: vec![arguments.policy],
            period: vec![arguments.period],
            method: vec![arguments.method],
            runtime: Vec::new(),
        },
        prepare: common.prepare.unwrap_or_default(),
        require: common.require.unwrap_or_default(),
        ..Plan::default()
    });
    let header = header(plan, arguments.samples.is_some(), SystemTime::now())?;
    consent::permit_floods(&header, common.yes)?;
    let cell = header.cells.first().ok_or("nothing to measure")?;
    let lock = take_machine(common.wait)?;
    lock.say(&holder(&header, 1));
    note(Outlook::of(cell, 1));
    let mut live = Live::new(cell);
    let samples = arguments.samples.as_deref();
    let record = Child.execute(cell, 0, samples, &stop, &mut |progress| live.show(progress));
    live.finish();
    let entry = Entry { planned: Planned { block: 0, position: 0, cell_index: 0 }, record: record? };
    let status = output::show(&header, &[entry], common.format.into())?;
    if let Some(samples) = samples.filter(|_| common.format == RunFormat::Text) {
        note(format_args!("samples: {}", samples.display()));
    }
    Ok(status)
}
