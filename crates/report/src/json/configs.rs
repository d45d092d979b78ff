//! Two kernels' build configurations as one JSON document.

use punctual_analysis::config::{ConfigDifference, KernelDifference, Likeness};
use serde::Serialize;
use serde_json::Value;

/// A kernel that was compared.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct ComparedKernel {
    /// The kernel as requested.
    pub kernel: String,
    /// The file of its configuration; `null`: none was found.
    pub file: Option<String>,
    /// Version in the configuration; `null`: unknown.
    pub version: Option<String>,
    /// Number of options that are set; `null`: unknown.
    pub options: Option<usize>,
}

/// Two kernels and what differs between their build configurations.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct ConfigCheckDocument<'a> {
    /// The kernels A and B.
    pub kernels: &'a [ComparedKernel; 2],
    /// Facts besides options that differ; `null` when a configuration is unknown.
    pub facts: Option<&'a Vec<KernelDifference>>,
    /// Options that differ, by group, the most important first; `null` when a configuration is unknown.
    pub options: Option<&'a Vec<ConfigDifference>>,
    /// Whether they are like for like.
    pub likeness: Likeness,
    /// The same in words.
    pub sentence: String,
}

/// The comparison of two configurations as a JSON document.
pub(crate) fn of_config_check(document: &ConfigCheckDocument<'_>) -> Value {
    super::value(document)
}
