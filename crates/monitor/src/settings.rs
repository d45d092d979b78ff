//! Settings of a monitor.

use punctual_model::{CpuSet, Period, Policy, Span};
use std::path::PathBuf;

/// Settings of a monitor.
#[derive(Debug, Clone)]
pub struct Settings {
    /// CPUs to measure.
    pub cpus: CpuSet,
    /// Policy of the measured threads.
    pub policy: Policy,
    /// Period of each thread.
    pub period: Period,
    /// Length of a window; windows begin at multiples of it, in UTC.
    pub window: Span,
    /// Latency above which a wake-up is explained; `None`: twice the p99 of the window before.
    pub above: Option<Span>,
    /// Whether late wake-ups are explained where the kernel can be traced.
    pub explains: bool,
    /// Directory of the history.
    pub dir: PathBuf,
    /// File for the textfile collector of Prometheus' node exporter.
    pub textfile: Option<PathBuf>,
}

impl Settings {
    /// Valid lengths of a window: shorter ones would be a load, longer ones hide when something happened.
    pub const WINDOW: std::ops::RangeInclusive<Span> = Span(1_000_000_000)..=Span(86_400_000_000_000);

    /// Checks ranges.
    pub fn check(&self) -> Result<(), String> {
        if !Self::WINDOW.contains(&self.window) || !self.window.ns().is_multiple_of(1_000_000_000) {
            return Err(format!("invalid window `{}`: expected whole seconds, 1s to 24h", self.window));
        }
        if self.window.ns() < self.period.ns().saturating_mul(20) {
            let (window, period) = (self.window, self.period);
            return Err(format!("invalid window `{window}`: expected at least 20 periods of {period}"));
        }
        if let Policy::Deadline(_) = self.policy {
            return Err("unsupported: a monitor under SCHED_DEADLINE; choose another policy, like fifo:80".to_owned());
        }
        if self.cpus.is_empty() {
            return Err("--cpus: empty list; name at least one CPU, like 0".to_owned());
        }
        let has_extension = |file: &PathBuf| file.extension().is_some_and(|extension| extension == "prom");
        match self.textfile.as_ref().filter(|file| !has_extension(file)) {
            Some(file) => {
                let file = file.display();
                Err(format!("invalid file `{file}`: expected a name ending in .prom; the collector reads no other"))
            }
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_have_ranges() {
        let good = Settings {
            cpus: [0].into_iter().collect(),
            policy: Policy::OTHER,
            period: "10ms".parse().unwrap(),
            window: Span(1_000_000_000),
            above: None,
            explains: false,
            dir: "monitor".into(),
            textfile: Some("a/b.prom".into()),
        };
        assert_eq!(good.check(), Ok(()));
        let second = 1_000_000_000;
        for (bad, what) in [
            (Settings { window: Span(second - 1), ..good.clone() }, "invalid window `999999999ns`"),
            (Settings { window: Span(86_401 * second), ..good.clone() }, "invalid window"),
            (Settings { window: Span(second + 1), ..good.clone() }, "expected whole seconds"),
            (Settings { period: "51ms".parse().unwrap(), ..good.clone() }, "at least 20 periods of 51ms"),
            (Settings { policy: "deadline:1ms/10ms/10ms".parse().unwrap(), ..good.clone() }, "unsupported"),
            (Settings { cpus: CpuSet::default(), ..good.clone() }, "empty list"),
            (Settings { textfile: Some("a/b.txt".into()), ..good.clone() }, "ending in .prom"),
            (Settings { textfile: Some(".prom".into()), ..good.clone() }, "ending in .prom"),
        ] {
            let said = bad.check().unwrap_err();
            assert!(said.contains(what), "{said}");
        }
    }
}
