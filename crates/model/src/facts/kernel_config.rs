//! A kernel's build configuration: its options, and a summary for records.

use crate::words::plain::fnv1a;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;

mod groups;

pub use groups::ConfigGroup;

/// A configuration as `.config` holds it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct KernelConfig {
    /// Version of the source in the head of the file: `6.12.117`; `None` without one.
    pub version: Option<String>,
    /// Values of the options that are set, without `CONFIG_`: `y`, `m`, a number, or a text in quotes.
    pub options: BTreeMap<String, String>,
}

/// Limit of a value, bytes. Certificates' names and command lines are shorter.
const LONGEST_VALUE: usize = 4096;

/// Size limit of the text of a configuration, bytes: those of distributions have about 300 KB.
pub const LARGEST_CONFIG: u64 = 4 << 20;

/// Error of a text that is not a configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("expected the configuration of a kernel, with lines like CONFIG_HZ=250")]
pub struct KernelConfigError;

impl KernelConfig {
    /// Parses a configuration. Lines that set no option are skipped. Errors: if no option is set.
    pub fn parse(text: &str) -> Result<KernelConfig, KernelConfigError> {
        let version = text.lines().take(8).find_map(|line| {
            let words: Vec<_> = line.strip_prefix("# Linux/")?.split(' ').collect();
            let [_, version, "Kernel", "Configuration"] = words[..] else { return None };
            let is_version = |c: char| c.is_ascii_alphanumeric() || ".-+_".contains(c);
            (version.len() < 64 && version.chars().all(is_version)).then(|| version.to_owned())
        });
        let options: BTreeMap<_, _> = text.lines().filter_map(option).collect();
        if options.is_empty() { Err(KernelConfigError) } else { Ok(KernelConfig { version, options }) }
    }

    /// The value of an option; `None` when it is not set.
    pub fn value(&self, option: &str) -> Option<&str> {
        self.options.get(option).map(String::as_str)
    }

    /// The summary for records; `file` names the source.
    pub fn summary(&self, file: String) -> ConfigSummary {
        let (mut options, mut others, mut count) = (BTreeMap::new(), String::new(), 0);
        for (option, value) in &self.options {
            match ConfigGroup::of(option, value) {
                ConfigGroup::OtherOptions => {
                    count += 1;
                    others.push_str(&format!("{option}={value}\n"));
                }
                ConfigGroup::NamesOfTheBuild => {}
                _ => drop(options.insert(option.clone(), value.clone())),
            }
        }
        let others_hash = format!("{:016x}", fnv1a(&others));
        ConfigSummary { file, version: self.version.clone(), options, others: count, others_hash }
    }
}

/// An option and its value; `None` for other lines, and for an option that is off.
fn option(line: &str) -> Option<(String, String)> {
    let (option, value) = line.strip_prefix("CONFIG_")?.split_once('=')?;
    let is_name = !option.is_empty() && option.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    let value = value.trim_end();
    let is_value = (1..=LONGEST_VALUE).contains(&value.len()) && value.chars().all(crate::is_plain);
    (is_name && is_value && value != "n").then(|| (option.to_owned(), value.to_owned()))
}

/// The part of a configuration that records keep: two kernels with the same summary are built alike.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct ConfigSummary {
    /// Source of the configuration: a file, or the package or image that holds it.
    pub file: String,
    /// Version of the source; `null` when the configuration does not state it.
    pub version: Option<String>,
    /// Values of the options that matter for latency, without `CONFIG_`; unset options are omitted.
    pub options: BTreeMap<String, String>,
    /// Number of further options that are set, without names and versions of the build.
    pub others: u64,
    /// Hash of those: 16 hexadecimal digits (FNV-1a, 64 bits).
    pub others_hash: String,
}

/// A kernel that can be booted or fetched.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, schemars::JsonSchema)]
pub struct ListedKernel {
    /// Name in a plan: `debian:6.1-rt`, or the path of an older cached image.
    pub kernel: String,
    /// Name of the package, or its file.
    pub package: String,
    /// Version; `null` when unknown.
    pub version: Option<String>,
    /// Flavor: `stock`, `rt`, `cloud`; `null` for a package that is not a Debian kernel.
    pub flavour: Option<&'static str>,
    /// Whether it is PREEMPT_RT; `null` when unknown before it is fetched.
    pub preempt_rt: Option<bool>,
    /// Values of its argument `preempt=`, empty when it has none; `null` when unknown before it is fetched.
    pub preempt: Option<Vec<String>>,
    /// Size of the package, bytes.
    pub package_bytes: Option<u64>,
    /// SHA-256 of the package.
    pub package_sha256: Option<String>,
    /// Path of the kernel in the cache; `null` when not cached.
    pub path: Option<PathBuf>,
    /// SHA-256 of that kernel.
    pub kernel_sha256: Option<String>,
}

/// All kernels: the output of `punctual lab list --format json`.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct ListedKernels<'a> {
    /// The kernels, oldest first.
    pub kernels: &'a [ListedKernel],
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "#\n# Automatically generated file; DO NOT EDIT.\n# Linux/x86 6.12.117 Kernel Configuration\n#\n\
                        CONFIG_HZ_250=y\nCONFIG_HZ=250\n# CONFIG_KASAN is not set\nCONFIG_EXT4_FS=m\r\n\
                        CONFIG_LOCALVERSION=\"-a=b\"\nCONFIG_SMP=n\n";

    #[test]
    fn a_configuration_is_its_set_options_and_its_version() {
        let config = KernelConfig::parse(TEXT).unwrap();
        assert_eq!(config.version.as_deref(), Some("6.12.117"));
        let options: Vec<_> = config.options.iter().map(|(option, value)| format!("{option}={value}")).collect();
        assert_eq!(options, ["EXT4_FS=m", "HZ=250", "HZ_250=y", "LOCALVERSION=\"-a=b\""]);
        assert_eq!((config.value("HZ"), config.value("SMP")), (Some("250"), None));
    }

    #[test]
    fn what_is_malformed_is_skipped_and_a_text_without_options_refused() {
        for text in
            ["", "CONFIG_", "CONFIG_=y", "CONFIG_A", "CONFIG_A=", "CONFIG_A B=y", "# CONFIG_A is not set", "HZ=1"]
        {
            assert_eq!(KernelConfig::parse(text), Err(KernelConfigError), "{text}");
        }
        let long = format!("CONFIG_A={}\nCONFIG_B=\"\u{1b}[2J\"\nCONFIG_C=1\n", "x".repeat(LONGEST_VALUE + 1));
        assert_eq!(KernelConfig::parse(&long).unwrap().options.keys().collect::<Vec<_>>(), ["C"]);
        for head in ["# Linux/x86 6.1 Kernel", "# Linux/x86 6\u{7}1 Kernel Configuration", "Linux/x86 6.1"] {
            assert_eq!(KernelConfig::parse(&format!("{head}\nCONFIG_A=y")).unwrap().version, None, "{head}");
        }
    }

    #[test]
    fn a_summary_notices_every_option_but_names_of_the_build() {
        let of = |more: &str| KernelConfig::parse(&format!("{TEXT}{more}")).unwrap().summary("x".to_owned());
        let same = of("");
        assert_eq!(same.options.keys().collect::<Vec<_>>(), ["HZ"]);
        assert_eq!((same.others, same), (1, of("CONFIG_BUILD_SALT=\"7\"\n")));
        assert_ne!(of("").others_hash, of("CONFIG_XFS_FS=m\n").others_hash);
        assert_ne!(of(""), of("CONFIG_KASAN=y\n"));
    }
}
