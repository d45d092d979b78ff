//! Arguments of `punctual capture`.

use clap::Args;
use punctual_model::{Site, Span};
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(in crate::cli) struct CaptureArguments {
    /// Program to run meanwhile, and its arguments: the recording ends with it
    #[arg(last = true, value_name = "COMMAND")]
    pub(in crate::cli) command: Vec<String>,
    /// Record for this time, or until Ctrl-C
    #[arg(long = "for", alias = "duration", value_name = "TIME", default_value = "10s", allow_hyphen_values = true)]
    pub(in crate::cli) duration: Span,
    /// New file, for `trace-cmd report`, KernelShark and `punctual watch --from`; `-` is stdout
    #[arg(short, long, value_name = "FILE", default_value = "trace.dat")]
    pub(in crate::cli) output: PathBuf,
    /// End early after this much, e.g. 500MB
    #[arg(long, value_name = "SIZE", default_value = "2GB", value_parser = bytes)]
    pub(in crate::cli) most: Bytes,
    /// Record on another machine: ssh:HOST, or exec:COMMAND; this program is sent there, and the file comes back
    #[arg(long, value_name = "MACHINE")]
    pub(in crate::cli) on: Option<Site>,
    /// End when stdin ends: that of a machine that is recorded from another one
    #[arg(long, hide = true)]
    pub(in crate::cli) until_eof: bool,
}

/// A number of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::cli) struct Bytes(pub(in crate::cli) u64);

fn bytes(text: &str) -> Result<Bytes, String> {
    let units = [("GB", 1_000_000_000), ("MB", 1_000_000), ("kB", 1000), ("B", 1)];
    let parsed = units.into_iter().find_map(|(unit, factor)| Some((text.strip_suffix(unit)?, factor)));
    let whole = parsed.and_then(|(number, factor)| number.trim().parse::<u64>().ok()?.checked_mul(factor));
    whole
        .filter(|bytes| *bytes > 0)
        .map(Bytes)
        .ok_or_else(|| format!("invalid size `{text}`: expected e.g. 500MB or 2GB"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_a_unit() {
        for (text, expected) in [("1B", 1), ("7kB", 7000), ("500MB", 500_000_000), ("2 GB", 2_000_000_000)] {
            assert_eq!(bytes(text), Ok(Bytes(expected)));
        }
        for text in ["", "0MB", "5", "GB", "-1GB", "1.5GB", "1TB", "18446744073709551615GB"] {
            assert_eq!(bytes(text), Err(format!("invalid size `{text}`: expected e.g. 500MB or 2GB")));
        }
    }
}
