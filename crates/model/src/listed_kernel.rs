//! A kernel that can be had: an entry of what `punctual lab list --format json` prints.

use serde::Serialize;
use std::path::PathBuf;

/// A kernel that can be booted, or fetched.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ListedKernel {
    /// How a plan names it: `debian:6.1-rt`, or the file of an older one that is kept.
    pub kernel: String,
    /// The package, or the file of one.
    pub package: String,
    /// Its version; `null` when it is not known.
    pub version: Option<String>,
    /// How it was built: `stock`, `rt`, `cloud`; `null` for a package that is no kernel of Debian.
    pub flavour: Option<&'static str>,
    /// Whether it is PREEMPT_RT; `null` when that is not known before it is fetched.
    pub preempt_rt: Option<bool>,
    /// What its argument `preempt=` takes, empty when it takes none; `null` when that is not known before it is fetched.
    pub preempt: Option<Vec<String>>,
    /// Size of the package, bytes.
    pub package_bytes: Option<u64>,
    /// SHA-256 of the package.
    pub package_sha256: Option<String>,
    /// The kernel in the cache; `null` when it is not there.
    pub path: Option<PathBuf>,
    /// SHA-256 of that kernel.
    pub kernel_sha256: Option<String>,
}

/// All of them: what `punctual lab list --format json` prints.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ListedKernels<'a> {
    /// The oldest first.
    pub kernels: &'a [ListedKernel],
}
