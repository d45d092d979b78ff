//! List of available kernels: those known to the package manager and those in the cache.

use super::fetch::{self, CachedKernel};
use super::{LabError, apt, directories, packages};
use punctual_model::{Architecture, Flavour, ListedKernel, Order};
use std::path::Path;

/// All available and cached kernels, oldest first, and whether there is a package manager.
pub fn list() -> (Vec<ListedKernel>, Result<bool, LabError>) {
    let cache = directories::kernel_cache();
    let names = directories::names_in(&cache);
    let own = Architecture::OWN.unwrap_or(Architecture::X86_64);
    let known = packages::known("", own);
    let newest = newest_of_each(known.as_ref().ok().and_then(Option::as_deref).unwrap_or_default());
    let mut newest = if newest.is_empty() { newest_of_each(&names) } else { newest };
    // Those of other architectures, where their lists have been fetched for a plan.
    let others = Architecture::ALL.into_iter().filter(|other| *other != own && apt::has_lists(*other));
    let of_others = others.filter_map(|other| packages::known("", other).ok().flatten());
    newest.extend(
        of_others.flat_map(|known| newest_of_each(&known)).filter(|name| !newest.contains(name)).collect::<Vec<_>>(),
    );
    let described = packages::described(&newest.iter().map(String::as_str).collect::<Vec<_>>());
    let mut all: Vec<ListedKernel> = newest
        .iter()
        .filter_map(|package| {
            let mut listed = of_name(package)?;
            if let Some(about) = described.iter().find(|about| about.name == *package) {
                (listed.version, listed.package_bytes) = (about.version.clone(), about.bytes);
                listed.package_sha256.clone_from(&about.sha256);
            }
            if let Some(kept) = fetch::kept_in(&cache.join(package)) {
                add_kept(&mut listed, kept, &cache.join(package));
            }
            Some(listed)
        })
        .collect();
    for name in names.iter().filter(|name| !name.starts_with('.') && !newest.contains(name)) {
        let dir = cache.join(name);
        let Some(kept) = fetch::kept_in(&dir) else { continue };
        let mut listed = of_name(&kept.package).unwrap_or_else(|| of_package(&kept.package));
        add_kept(&mut listed, kept, &dir);
        listed.kernel = fetch::kernel_in(&dir).display().to_string();
        all.push(listed);
    }
    all.order_by(|a, b| packages::by_numbers(&a.package, &b.package));
    (all, known.map(|known| known.is_some()))
}

/// The newest package of each kind.
fn newest_of_each(packages: &[String]) -> Vec<String> {
    let mut kinds: Vec<_> =
        packages.iter().filter_map(|name| packages::named(name)).map(|named| named.kind()).collect();
    kinds.sort_unstable();
    kinds.dedup();
    kinds.into_iter().filter_map(|kind| packages::newest_of(packages, &kind)).collect()
}

/// The kernel described by the name of a package.
fn of_name(package: &str) -> Option<ListedKernel> {
    let named = packages::named(package)?;
    Some(ListedKernel {
        kernel: named.kind().to_string(),
        flavour: Some(named.flavour.suffix().strip_prefix('-').unwrap_or("stock")),
        preempt_rt: Some(named.flavour == Flavour::Rt),
        ..of_package(package)
    })
}

fn of_package(package: &str) -> ListedKernel {
    ListedKernel { kernel: package.to_owned(), package: package.to_owned(), ..ListedKernel::default() }
}

/// Adds the cached metadata.
fn add_kept(listed: &mut ListedKernel, kept: CachedKernel, dir: &Path) {
    listed.version = kept.version.or_else(|| listed.version.take());
    listed.preempt = kept.preempt_rt.map(|_| kept.preempt);
    listed.preempt_rt = kept.preempt_rt.or(listed.preempt_rt);
    (listed.package_bytes, listed.package_sha256) = (Some(kept.package_bytes), Some(kept.package_sha256));
    (listed.path, listed.kernel_sha256) = (Some(fetch::kernel_in(dir)), Some(kept.kernel_sha256));
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
