//! An available kernel: an entry of the list that `punctual lab list --format json` prints.

use serde::Serialize;
use std::path::PathBuf;

/// A kernel that can be booted or fetched.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
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
