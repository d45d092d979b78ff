//! The kernels that can be had: those that the package manager knows, and those that were fetched.

use super::fetch::{self, Kept};
use super::{kernels, packages};
use serde::Serialize;
use std::path::{Path, PathBuf};

/// A kernel that can be booted, or fetched.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Listed {
    /// How a plan names it: `debian:6.1-rt`, or the file of an older one that is kept.
    pub(crate) kernel: String,
    /// The package, or the file of one.
    pub(crate) package: String,
    /// Its version; `null` when it is not known.
    pub(crate) version: Option<String>,
    /// How it was built: `stock`, `rt`, `cloud`; `null` for a package that is no kernel of Debian.
    pub(crate) flavour: Option<&'static str>,
    /// Whether it is PREEMPT_RT; `null` when that is not known before it is fetched.
    pub(crate) preempt_rt: Option<bool>,
    /// What its argument `preempt=` takes, empty when it takes none; `null` when that is not known before it is fetched.
    pub(crate) preempt: Option<Vec<String>>,
    /// Size of the package, bytes.
    pub(crate) package_bytes: Option<u64>,
    /// SHA-256 of the package.
    pub(crate) package_sha256: Option<String>,
    /// The kernel in the cache; `null` when it is not there.
    pub(crate) path: Option<PathBuf>,
    /// SHA-256 of that kernel.
    pub(crate) kernel_sha256: Option<String>,
}

/// All kernels that can be named, and all that are kept, the oldest first; and whether there is a package manager to ask.
pub(crate) fn list() -> (Vec<Listed>, bool) {
    let cache = kernels::place();
    let names = kernels::names_in(&cache);
    let known = packages::known("[0-9]");
    let newest = newest_of_each(known.as_deref().unwrap_or_default());
    let newest = if newest.is_empty() { newest_of_each(&names) } else { newest };
    let described = packages::described(&newest.iter().map(String::as_str).collect::<Vec<_>>());
    let mut all: Vec<Listed> = newest
        .iter()
        .filter_map(|package| {
            let mut listed = of_name(package)?;
            if let Some(about) = described.iter().find(|about| about.name == *package) {
                (listed.version, listed.package_bytes) = (about.version.clone(), about.bytes);
                listed.package_sha256.clone_from(&about.sha256);
            }
            if let Some(kept) = fetch::kept_in(&cache.join(package)) {
                listed.is_kept(kept, &cache.join(package));
            }
            Some(listed)
        })
        .collect();
    for name in names.iter().filter(|name| !name.starts_with('.') && !newest.contains(name)) {
        let dir = cache.join(name);
        let Some(kept) = fetch::kept_in(&dir) else { continue };
        let mut listed = of_name(&kept.package).unwrap_or_else(|| Listed::of(&kept.package));
        listed.is_kept(kept, &dir);
        listed.kernel = fetch::kernel_in(&dir).display().to_string();
        all.push(listed);
    }
    all.sort_by(|a, b| packages::by_numbers(&a.package, &b.package));
    (all, known.is_some())
}

/// The newest package of each series and flavour.
fn newest_of_each(packages: &[String]) -> Vec<String> {
    let mut kinds: Vec<(&str, &str)> =
        packages.iter().filter_map(|name| packages::named(name)).map(|named| (named.series, named.flavour)).collect();
    kinds.sort_unstable();
    kinds.dedup();
    kinds.into_iter().filter_map(|(series, flavour)| packages::newest_of(packages, series, flavour)).collect()
}

/// What the name of a package says.
fn of_name(package: &str) -> Option<Listed> {
    let named = packages::named(package)?;
    let flavour = named.flavour.strip_prefix('-').unwrap_or("stock");
    Some(Listed {
        kernel: format!("debian:{}{}", named.series, named.flavour),
        flavour: Some(flavour),
        preempt_rt: Some(flavour == "rt"),
        ..Listed::of(package)
    })
}

impl Listed {
    fn of(package: &str) -> Listed {
        Listed {
            kernel: package.to_owned(),
            package: package.to_owned(),
            version: None,
            flavour: None,
            preempt_rt: None,
            preempt: None,
            package_bytes: None,
            package_sha256: None,
            path: None,
            kernel_sha256: None,
        }
    }

    /// Puts in what the cache knows.
    fn is_kept(&mut self, kept: Kept, dir: &Path) {
        self.version = kept.version.or_else(|| self.version.take());
        self.preempt = kept.preempt_rt.map(|_| kept.preempt);
        self.preempt_rt = kept.preempt_rt.or(self.preempt_rt);
        (self.package_bytes, self.package_sha256) = (Some(kept.package_bytes), Some(kept.package_sha256));
        (self.path, self.kernel_sha256) = (Some(fetch::kernel_in(dir)), Some(kept.kernel_sha256));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_is_listed_once_with_its_newest_package() {
        let packages = ["linux-image-6.1.0-9-amd64", "linux-image-6.1.0-56-amd64", "linux-image-6.1.0-9-rt-amd64", "x"];
        let newest = newest_of_each(&packages.map(str::to_owned));
        assert_eq!(newest, ["linux-image-6.1.0-56-amd64", "linux-image-6.1.0-9-rt-amd64"]);
        let rt = of_name(&newest[1]).unwrap();
        assert_eq!((rt.kernel.as_str(), rt.flavour, rt.preempt_rt), ("debian:6.1-rt", Some("rt"), Some(true)));
        assert_eq!((rt.preempt, rt.path), (None, None), "unknown before it is fetched");
    }
}
