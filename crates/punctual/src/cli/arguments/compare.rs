//! Arguments of `punctual compare`.

use super::Format;
use clap::Args;
use punctual_analysis::Level;

const AFTER: &str = "\
A cell is named as printed, by a part of that like fifo:80, or like
load=none,policy=fifo:80.

Exit status: 0 equivalent, 1 error, 2 different, 3 undecided.

Two cells of one run are compared block by block; two runs only if they were
measured in alternation (punctual help guide compare). Imported measurements are
only shown side by side. Undecided does not mean equal.";

#[derive(Debug, Args)]
#[command(after_help = AFTER)]
pub(in crate::cli) struct CompareArguments {
    /// One run and two of its cells, or two runs and a cell of each or one for both [default: the latest run below
    /// runs/]
    #[arg(value_name = "RUN|CELL", num_args = 0..=4)]
    pub(in crate::cli) words: Vec<String>,
    /// Deciding metric: p50, p99 or p99.9 [default: p99.9 if 20 wake-ups of each measurement exceed it, else p99]
    #[arg(long, value_parser = metric)]
    pub(in crate::cli) metric: Option<Level>,
    /// Ratio below which a difference does not matter, e.g. 1.25 or 25% [default: p50 1.10, else 1.25]
    #[arg(long, value_name = "RATIO", value_parser = margin)]
    pub(in crate::cli) margin: Option<f64>,
    /// Compare although runs differ in time, boot, machine, period or method
    #[arg(long)]
    pub(in crate::cli) force: bool,
    /// Output format
    #[arg(long, value_enum, default_value = "text")]
    pub(in crate::cli) format: Format,
}

pub(super) fn metric(text: &str) -> Result<Level, String> {
    match text {
        "max" => {
            Err("unsupported metric `max`: maxima of most equal runs differ by more than 20 %; use p50, p99 or p99.9"
                .to_owned())
        }
        other => {
            other.parse().map_err(|_| format!("invalid metric `{other}`: expected one of {}", Level::KNOWN.join(" ")))
        }
    }
}

pub(super) fn margin(text: &str) -> Result<f64, String> {
    let ratio = match text.strip_suffix('%') {
        Some(percent) => percent.parse().ok().map(|percent: f64| 1.0 + percent / 100.0),
        None => text.parse().ok(),
    };
    ratio
        .filter(|ratio| *ratio > 1.0 && *ratio <= 100.0)
        .ok_or_else(|| format!("invalid margin `{text}`: expected a ratio above 1 like 1.25, or 25%"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn margins_are_ratios_or_percent() {
        for (text, ratio) in [("1.25", 1.25), ("25%", 1.25), ("5%", 1.05), ("100", 100.0)] {
            assert!((margin(text).unwrap() - ratio).abs() < 1e-12, "{text}");
        }
        for text in ["1", "0.8", "0%", "-5%", "x", "nan", "inf", ""] {
            assert!(margin(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_maximum_does_not_decide() {
        assert_eq!((metric("p99.9"), metric("p999")), (Ok(Level::P999), Ok(Level::P999)));
        assert!(metric("max").unwrap_err().starts_with("unsupported metric `max`"));
        assert!(metric("p99.99999").is_err());
    }
}
