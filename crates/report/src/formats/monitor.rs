//! The metrics of a monitor: text exposition format 0.0.4 of Prometheus, base units.

use super::prometheus::{NS, escaped, metric, number};
use punctual_model::{Cause, GapReason, MonitorStatus};
use std::fmt::Write;

/// Quantiles of the last window.
const QUANTILES: [f64; 3] = [0.5, 0.99, 0.999];

/// The present state of a monitor as metrics. Counters begin at its start.
pub fn monitor_metrics(status: &MonitorStatus) -> String {
    let mut text = String::new();
    let start = &status.start;
    let info = format!(
        "{{cpus=\"{}\",kernel_release=\"{}\",period=\"{}\",policy=\"{}\",tool=\"{}\"}}",
        start.cpus,
        escaped(start.kernel_release.as_deref().unwrap_or_default()),
        start.period,
        start.policy,
        escaped(&start.tool)
    );
    let one = |value: f64| [(String::new(), value)].into_iter();
    let flag = |is: bool| one(if is { 1.0 } else { 0.0 });
    metric(&mut text, "punctual_monitor_info", "What is measured.", "gauge", [(info, 1.0)].into_iter());
    let help = "When the monitor began, seconds since 1970-01-01 UTC.";
    metric(
        &mut text,
        "punctual_monitor_start_timestamp_seconds",
        help,
        "gauge",
        one(start.started_unix_ms as f64 / 1e3),
    );
    let help = "1 while the monitor pauses for another measurement of punctual.";
    metric(&mut text, "punctual_monitor_paused", help, "gauge", flag(status.is_paused));
    let help = "1 if late wake-ups are explained.";
    metric(&mut text, "punctual_monitor_explains", help, "gauge", flag(start.unexplained.is_none()));
    latencies(&mut text, status);
    let by_cpu = |of: fn(&punctual_model::MonitorTotals) -> f64| {
        status.cpus.iter().map(move |cpu| (format!("{{cpu=\"{}\"}}", cpu.cpu), of(cpu)))
    };
    let help = "Due times already past when the thread could wait again.";
    metric(&mut text, "punctual_missed_due_times_total", help, "counter", by_cpu(|cpu| cpu.missed as f64));
    let help = "Wake-ups for which there was no room.";
    metric(&mut text, "punctual_lost_samples_total", help, "counter", by_cpu(|cpu| cpu.lost as f64));
    let help = "Time by which the present wait is already late.";
    metric(&mut text, "punctual_open_wait_seconds", help, "gauge", by_cpu(|cpu| cpu.open.as_secs_f64()));
    last_window(&mut text, status);
    let causes = status
        .causes
        .iter()
        .map(|((cpu, cause), n)| (format!("{{cause=\"{}\",cpu=\"{cpu}\"}}", word(*cause)), *n as f64));
    metric(&mut text, "punctual_spikes_total", "Explained late wake-ups, by their largest cause.", "counter", causes);
    let help = "Late wake-ups that no trace covers.";
    metric(&mut text, "punctual_uncovered_spikes_total", help, "counter", one(status.not_covered as f64));
    let help = "Time measured.";
    metric(&mut text, "punctual_measured_seconds_total", help, "counter", one(status.measured.as_secs_f64()));
    let gaps = GapReason::ALL.into_iter().filter(|reason| *reason != GapReason::NotRunning).map(|reason| {
        let gap = status.gaps.get(&reason).copied().unwrap_or_default();
        (format!("{{reason=\"{}\"}}", reason.name()), gap.as_secs_f64())
    });
    metric(&mut text, "punctual_unmeasured_seconds_total", "Time not measured, by reason.", "counter", gaps);
    let help = "Windows that could not be written to the history.";
    metric(&mut text, "punctual_unwritten_windows_total", help, "counter", one(status.unwritten as f64));
    let cpu_time = status.cpu_time.map(|time| (String::new(), time.as_secs_f64())).into_iter();
    metric(&mut text, "punctual_monitor_cpu_seconds_total", "CPU time of the monitor.", "counter", cpu_time);
    text
}

/// Writes the latencies since the start as histograms.
fn latencies(text: &mut String, status: &MonitorStatus) {
    let name = "punctual_wakeup_latency_seconds";
    let _ = writeln!(text, "# HELP {name} How late threads woke after their due time.\n# TYPE {name} histogram");
    for cpu in &status.cpus {
        let (index, latencies) = (cpu.cpu, &cpu.latencies);
        for (bound_ns, count) in latencies.cumulative() {
            let _ = writeln!(text, "{name}_bucket{{cpu=\"{index}\",le=\"{}\"}} {count}", number(bound_ns as f64 * NS));
        }
        let _ = writeln!(text, "{name}_bucket{{cpu=\"{index}\",le=\"+Inf\"}} {}", latencies.n);
        let _ = writeln!(text, "{name}_sum{{cpu=\"{index}\"}} {}", number(latencies.sum_ns as f64 * NS));
        let _ = writeln!(text, "{name}_count{{cpu=\"{index}\"}} {}", latencies.n);
    }
}

/// Writes maxima and quantiles of the last window that has ended.
fn last_window(text: &mut String, status: &MonitorStatus) {
    let Some(last) = &status.last else { return };
    let help = "Largest latency in the last window that has ended; a bound from below when a wait was open.";
    let maxima =
        last.cpus.iter().filter_map(|cpu| Some((format!("{{cpu=\"{}\"}}", cpu.cpu), cpu.max_ns()? as f64 * NS)));
    metric(text, "punctual_window_latency_max_seconds", help, "gauge", maxima);
    let quantiles = last.cpus.iter().flat_map(|cpu| {
        QUANTILES.into_iter().filter_map(move |p| {
            let ns = punctual_analysis::quantile(&cpu.histogram, p)?;
            Some((format!("{{cpu=\"{}\",level=\"{p}\"}}", cpu.cpu), ns as f64 * NS))
        })
    });
    let help = "Quantiles of the latency in the last window that has ended.";
    metric(text, "punctual_window_latency_quantile_seconds", help, "gauge", quantiles);
    let ended = [(String::new(), last.ended_unix_ms as f64 / 1e3)].into_iter();
    let help = "End of the last window, seconds since 1970-01-01 UTC.";
    metric(text, "punctual_window_end_timestamp_seconds", help, "gauge", ended);
    let measured = [(String::new(), last.measured.as_secs_f64())].into_iter();
    metric(text, "punctual_window_measured_seconds", "Time measured in the last window.", "gauge", measured);
}

/// A cause as it is written in records.
fn word(cause: Cause) -> String {
    serde_json::to_value(cause).ok().and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use punctual_model::{Histogram, MonitorStart, MonitorTotals, MonitorWindow, MonitoredCpu, Policy, Span};
    use std::sync::Arc;

    /// Two CPUs with latencies, misses, an open wait, a cause and a gap.
    fn status() -> MonitorStatus {
        let start = MonitorStart {
            format: 1,
            tool: "punctual 0.1.0".to_owned(),
            started_unix_ms: 1_700_000_000_123,
            hostname: Some("board".to_owned()),
            kernel_release: Some("6.12.8\"x".to_owned()),
            cpus: [1, 3].into_iter().collect(),
            policy: Policy::OTHER,
            period: "10ms".parse().unwrap(),
            window: Span(300_000_000_000),
            unexplained: None,
            memory_locked: true,
        };
        let cpu = |cpu, open, latencies: &[i64]| MonitoredCpu {
            cpu,
            missed: 0,
            lost: 0,
            open,
            worst_unix_ms: None,
            histogram: Histogram::of(latencies),
        };
        let last = MonitorWindow {
            started_unix_ms: 1_700_000_000_123,
            ended_unix_ms: 1_700_000_100_000,
            measured: Span(99_877_000_000),
            cpus: vec![cpu(1, None, &[5_000, 7_000]), cpu(3, Some(Span(50_000_000)), &[])],
            gaps: Vec::new(),
            explained: 1,
            not_covered: 0,
            spikes: Vec::new(),
            cpu_time_us: Some(70_000),
        };
        let mut status = MonitorStatus::at_start(start, Some(Arc::new(last)));
        for cpu in &mut status.cpus {
            [-3, 1_000, 1_001, 20_000_000_000].into_iter().for_each(|ns| cpu.latencies.record(ns));
        }
        status.cpus[0] = MonitorTotals { missed: 2, lost: 1, open: Span(5_000_000), ..status.cpus[0].clone() };
        status.causes.insert((1, Cause::HigherPriority), 4);
        status.gaps.insert(GapReason::Measurement, Span(60_000_000_000));
        status.cpu_time = Some(Span(123_000_000));
        status
    }

    #[test]
    fn metrics_follow_the_conventions() {
        let text = monitor_metrics(&status());
        for line in [
            "punctual_monitor_start_timestamp_seconds 1700000000.123",
            "punctual_wakeup_latency_seconds_bucket{cpu=\"1\",le=\"0.000001\"} 2",
            "punctual_wakeup_latency_seconds_bucket{cpu=\"1\",le=\"0.000002\"} 3",
            "punctual_wakeup_latency_seconds_bucket{cpu=\"1\",le=\"10\"} 3",
            "punctual_wakeup_latency_seconds_bucket{cpu=\"1\",le=\"+Inf\"} 4",
            "punctual_wakeup_latency_seconds_count{cpu=\"3\"} 4",
            "punctual_missed_due_times_total{cpu=\"1\"} 2",
            "punctual_lost_samples_total{cpu=\"1\"} 1",
            "punctual_open_wait_seconds{cpu=\"1\"} 0.005",
            "punctual_window_latency_max_seconds{cpu=\"1\"} 0.000007",
            "punctual_window_latency_max_seconds{cpu=\"3\"} 0.05",
            "punctual_window_latency_quantile_seconds{cpu=\"1\",level=\"0.999\"} 0.000007",
            "punctual_spikes_total{cause=\"higher_priority\",cpu=\"1\"} 4",
            "punctual_unmeasured_seconds_total{reason=\"measurement\"} 60",
            "punctual_unmeasured_seconds_total{reason=\"clock\"} 0",
            "punctual_monitor_cpu_seconds_total 0.123",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}: {text}");
        }
        assert!(text.contains("kernel_release=\"6.12.8\\\"x\""), "{text}");
        assert!(!text.contains("level=\"0.5\",cpu=\"3\"") && !text.contains("not_running"), "unknown is left out");
    }
}
