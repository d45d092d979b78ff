//! `punctual monitor`: measures for weeks at a low rate; `punctual monitor show` shows its history.

use crate::cli::arguments::{Format, MonitorArguments, MonitorCommand, MonitorShowArguments};
use crate::cli::terminal::{Outcome, note, output};
use punctual_campaign::Stop;
use punctual_model::{MonitorWindow, Span};
use punctual_monitor::{Hooks, Listener, Monitor, Settings};
use punctual_report::MonitorDocument;
use std::error::Error;
use std::time::{Duration, Instant, SystemTime};

pub(super) fn monitor(arguments: MonitorArguments) -> Outcome {
    match arguments.command {
        Some(MonitorCommand::Show(arguments)) => show(&arguments),
        None => measure(arguments),
    }
}

fn measure(arguments: MonitorArguments) -> Outcome {
    let ends = arguments.duration.map(|duration| Instant::now() + Duration::from_nanos(duration.ns()));
    let settings = settings(&arguments)?;
    settings.check()?;
    // Before anything is measured: a port that is in use is an error at once.
    let listener = arguments.listen.map(Listener::open).transpose()?;
    let stop = Stop::on_signals()?;
    let wait = |until: Instant| {
        stop.wait_until(ends.map_or(until, |ends| ends.min(until)));
        stop.is_requested() || ends.is_some_and(|ends| Instant::now() >= ends)
    };
    let hooks = Hooks {
        wait: &wait,
        note: &|line| note(format_args!("punctual: {line}")),
        window: &line,
        metrics: punctual_report::monitor_metrics,
    };
    let monitor = Monitor::start(settings, &hooks)?;
    announce(&monitor);
    if let Some(listener) = listener {
        let address = listener.address()?;
        listener.serve(monitor.page(punctual_report::monitor_metrics)).map_err(|err| punctual_host::no_thread(&err))?;
        note(format_args!("punctual: metrics at http://{address}/metrics"));
    }
    monitor.run(&hooks)?;
    Ok(if stop.is_requested() { stop.exit_status() } else { 0 })
}

fn settings(arguments: &MonitorArguments) -> Result<Settings, Box<dyn Error>> {
    let allowed = punctual_sys::sched::affinity(0)?;
    Ok(Settings {
        cpus: arguments.cpus.clone().unwrap_or(allowed),
        policy: arguments.policy,
        period: arguments.period,
        window: arguments.window,
        above: arguments.above.0,
        explains: !arguments.no_explain,
        dir: arguments.dir.clone(),
        textfile: arguments.textfile.clone(),
    })
}

/// States on stderr what is measured, and what is not.
fn announce(monitor: &Monitor) {
    let start = monitor.settings();
    let (cpus, policy, period, window) = (&start.cpus, start.policy, start.period, start.window);
    note(format_args!("punctual: monitors CPU {cpus}, {policy} every {period}, in windows of {window}"));
    if let Some(reason) = &start.unexplained {
        note(format_args!("punctual: late wake-ups are not explained: {reason}"));
    }
    note(format_args!("punctual: history: {}", monitor.history().display()));
}

/// Prints the line of a window. Without a reader the monitor goes on: the history has it, too.
fn line(window: &MonitorWindow) {
    let _ = output::write_while_read((punctual_report::monitor_line(window) + "\n").as_bytes());
}

fn show(arguments: &MonitorShowArguments) -> Outcome {
    let punctual_store::MonitorLines { starts, mut windows, damage } = punctual_store::read_monitor(&arguments.dir)?;
    if let Some(last) = arguments.last {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?.saturating_sub(as_duration(last));
        let since_ms = u64::try_from(since.as_millis())?;
        windows.retain(|window| window.ended_unix_ms >= since_ms);
    }
    let document = MonitorDocument { starts, windows, damage };
    let mut text = Vec::new();
    match arguments.format {
        Format::Json => output::json(&mut text, &document)?,
        Format::Text => punctual_report::monitor_summary(&document, &mut text, output::style(false))?,
    }
    output::write(&text)?;
    Ok(0)
}

fn as_duration(span: Span) -> Duration {
    Duration::from_nanos(span.ns())
}
