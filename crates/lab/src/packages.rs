//! Kernel packages known to the package manager.

use super::{LabError, directories, error_line};
use std::cmp::Ordering;
use std::io;
use std::path::Path;
use std::process::{Command, Output};

const APT: &str = "apt-cache";

/// Suffix of package names of this architecture.
const ARCHITECTURE: &str = "amd64";

/// A package: the newest version known to the package manager.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Package {
    /// Name, such as `linux-image-6.1.0-56-rt-amd64`.
    pub(super) name: String,
    /// Version, such as `6.1.192-2`.
    pub(super) version: Option<String>,
    /// Download size, bytes.
    pub(super) bytes: Option<u64>,
    /// SHA-256 of the package, 64 hexadecimal digits.
    pub(super) sha256: Option<String>,
}

/// The parsed name of a kernel package.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct KernelPackageName<'a> {
    /// The first two numbers of the version, as in plans: `6.1`.
    pub(super) series: &'a str,
    /// All numbers of the version: `6.1.0-56`.
    pub(super) release: &'a str,
    /// `-rt`, `-cloud`, or empty.
    pub(super) flavour: &'static str,
}

/// Parses the name of a package; `None` if it is not a kernel that can be booted here.
pub(super) fn named(package: &str) -> Option<KernelPackageName<'_>> {
    let whole = package.strip_prefix("linux-image-")?.strip_suffix(ARCHITECTURE)?.strip_suffix('-')?;
    let flavour = ["-rt", "-cloud"].into_iter().find(|flavour| whole.ends_with(flavour)).unwrap_or("");
    let release = whole.strip_suffix(flavour)?;
    let mut dots = release.match_indices('.').map(|(at, _)| at);
    let (first, second) = (dots.next()?, dots.next()?);
    let is_version = release.starts_with(|c: char| c.is_ascii_digit()) && !release.ends_with(char::is_alphabetic);
    (is_version && first + 1 < second).then(|| KernelPackageName { series: &release[..second], release, flavour })
}

/// Runs a query of the package manager. Where it keeps no index (as in container images), each query takes half a
/// second; an index in the cache of the lab avoids that, and the package manager keeps it up to date.
fn run_apt_cache<'a>(question: impl IntoIterator<Item = &'a str>) -> io::Result<Output> {
    let mut command = Command::new(APT);
    command.args(question);
    if let Some(place) = directories::cache("apt").ok().filter(|_| !Path::new("/var/cache/apt/pkgcache.bin").exists()) {
        let place = format!("Dir::Cache={}/", place.display());
        command.args(["-o", &place, "-o", "Dir::Cache::pkgcache=pkgcache.bin", "-o", "Dir::Cache::srcpkgcache="]);
    }
    command.output()
}

/// The kernels known to the package manager; `None` if it is not installed.
///
/// # Errors
/// If the query fails, for example because package lists are damaged or there is no room to read them.
pub(super) fn known(series: &str) -> Result<Option<Vec<String>>, LabError> {
    let begin = format!("linux-image-{series}");
    match run_apt_cache(["pkgnames", &begin]) {
        Ok(output) => known_by(&output).map(Some),
        Err(err) if err.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(err) => Err(LabError::program(APT, err)),
    }
}

fn known_by(output: &Output) -> Result<Vec<String>, LabError> {
    if !output.status.success() {
        return Err(LabError::program(APT, error_line(&output.stderr)));
    }
    let text = String::from_utf8_lossy(&output.stdout);
    let names = text.lines().map(str::trim);
    Ok(names.filter(|name| named(name).is_some()).map(str::to_owned).collect())
}

/// The descriptions of packages; unknown ones are left out.
pub(super) fn described(packages: &[&str]) -> Vec<Package> {
    let output = run_apt_cache(["show", "--no-all-versions"].into_iter().chain(packages.iter().copied()));
    output.map(|output| read(&String::from_utf8_lossy(&output.stdout))).unwrap_or_default()
}

/// Parses paragraphs of deb-control(5).
fn read(text: &str) -> Vec<Package> {
    let mut packages: Vec<Package> = Vec::new();
    for line in text.lines() {
        let Some((key, value)) = line.split_once(": ") else { continue };
        if key == "Package" {
            packages.push(Package { name: value.to_owned(), ..Package::default() });
        }
        let Some(last) = packages.last_mut() else { continue };
        match key {
            "Version" => last.version = Some(value.to_owned()),
            "Size" => last.bytes = value.parse().ok(),
            "SHA256" => last.sha256 = Some(value.to_owned()),
            _ => {}
        }
    }
    packages
}

/// The newest package of a series and a flavor: of those known to the package manager, else of those in the cache.
///
/// # Errors
/// If there is none, with advice, or if the package manager fails.
pub(super) fn newest(series: &str, flavour: &str, cached: &[String]) -> Result<String, LabError> {
    let cached = newest_of(cached, series, flavour);
    let known = match known(&format!("{series}.")) {
        // A cached package needs no package manager.
        Err(_) if cached.is_some() => None,
        known => known?,
    };
    let newest = known.as_ref().and_then(|known| newest_of(known, series, flavour));
    let none = || {
        let reason = if known.is_some() {
            "apt-get update, add the release that has it (6.12 for Debian 12 is in bookworm-backports), or name a \
             kernel's file"
        } else {
            "this system has no apt, and none is cached; name a kernel's file, /path/of/vmlinuz"
        };
        LabError::program(APT, format!("found no package of debian:{series}{flavour}; {reason}"))
    };
    newest.or(cached).ok_or_else(none)
}

/// The newest of `packages` with this series and flavor.
pub(super) fn newest_of(packages: &[String], series: &str, flavour: &str) -> Option<String> {
    let of_kind = packages.iter().filter_map(|name| {
        let found = named(name)?;
        (found.series == series && found.flavour == flavour).then_some((found.release, name))
    });
    of_kind.max_by(|(a, _), (b, _)| by_numbers(a, b)).map(|(_, name)| name.clone())
}

/// Compares texts by the numbers in them: `6.1.0-9` comes before `6.1.0-56`.
pub(super) fn by_numbers(a: &str, b: &str) -> Ordering {
    let numbers = |text: &str| -> Vec<u64> {
        text.split(|c: char| !c.is_ascii_digit()).filter_map(|number| number.parse().ok()).collect()
    };
    numbers(a).cmp(&numbers(b)).then_with(|| a.cmp(b))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::ExitStatusExt;
    use std::process::ExitStatus;

    #[test]
    fn the_newest_package_of_a_kind_is_chosen() {
        let packages = [
            "linux-image-6.1.0-9-amd64",
            "linux-image-6.1.0-56-amd64",
            "linux-image-6.1.0-56-amd64-dbg",
            "linux-image-6.1.0-57-amd64-unsigned",
            "linux-image-6.1.0-58-rt-amd64",
            "linux-image-6.1.0-59-cloud-amd64",
            "linux-image-6.12.117+deb12-amd64",
            "linux-image-6.12.9+deb12-amd64",
            "linux-image-6.12-amd64",
            "linux-image-amd64",
            "linux-image-6.1.0-60-arm64",
        ]
        .map(str::to_owned);
        for (series, flavour, package) in [
            ("6.1", "", Some("linux-image-6.1.0-56-amd64")),
            ("6.1", "-rt", Some("linux-image-6.1.0-58-rt-amd64")),
            ("6.1", "-cloud", Some("linux-image-6.1.0-59-cloud-amd64")),
            ("6.12", "", Some("linux-image-6.12.117+deb12-amd64")),
            ("6.12", "-rt", None),
            ("6.11", "", None),
        ] {
            assert_eq!(newest_of(&packages, series, flavour).as_deref(), package, "{series}{flavour}");
        }
    }

    #[test]
    fn a_package_manager_that_fails_does_not_know_nothing() {
        let full =
            "W: a warning\nE: Write error - write (28: No space left on device)\nE: IO Error saving source cache\n";
        let said = |status, stdout: &str, stderr: &str| {
            let output = Output { status: ExitStatus::from_raw(status), stdout: stdout.into(), stderr: stderr.into() };
            known_by(&output).map_err(|err| err.to_string())
        };
        let kernel = "linux-image-6.1.0-56-amd64";
        assert_eq!(said(0, &format!("{kernel}\nlinux-image-amd64\n"), ""), Ok(vec![kernel.to_owned()]));
        assert_eq!(said(0, "", ""), Ok(vec![]));
        let reason = said(100 << 8, "", full).unwrap_err();
        assert!(reason.contains("apt-cache") && reason.ends_with("(28: No space left on device)"), "{reason}");
    }

    #[test]
    fn a_package_is_what_it_says_of_itself() {
        let text = "Package: linux-image-6.1.0-56-rt-amd64\nVersion: 6.1.192-2\nDescription: Linux\n of: many lines\n\
                    Size: 70533964\nSHA256: b66d\n\nPackage: other\n";
        let [first, other] = &read(text)[..] else { panic!("two packages") };
        assert_eq!(
            (first.version.as_deref(), first.bytes, first.sha256.as_deref()),
            (Some("6.1.192-2"), Some(70_533_964), Some("b66d"))
        );
        assert_eq!((other.name.as_str(), &other.version), ("other", &None));
        assert_eq!(read("N: nothing\n"), []);
    }
}
