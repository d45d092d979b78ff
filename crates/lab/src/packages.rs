//! Kernel packages known to the package manager.

use super::{LabError, apt, error_line};
use punctual_model::{Architecture, Flavour};
use std::cmp::Ordering;
use std::fmt;
use std::process::Output;

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
    pub(super) flavour: Flavour,
    pub(super) architecture: Architecture,
}

impl KernelPackageName<'_> {
    /// Series, flavor and architecture.
    pub(super) fn kind(&self) -> Kind {
        Kind { series: self.series.to_owned(), flavour: self.flavour, architecture: self.architecture }
    }
}

/// Packages of which only the newest is used.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Kind {
    /// The first two numbers of the version.
    pub(super) series: String,
    pub(super) flavour: Flavour,
    pub(super) architecture: Architecture,
}

/// As in plans: `debian:6.1-rt`, with another architecture than this machine's `debian:6.1-rt-arm64`.
impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "debian:{}{}", self.series, self.flavour.suffix())?;
        let is_own = Architecture::OWN == Some(self.architecture);
        if is_own { Ok(()) } else { write!(f, "-{}", self.architecture.debian()) }
    }
}

/// Parses the name of a package; `None` if it is not a kernel of an architecture of the lab.
pub(super) fn named(package: &str) -> Option<KernelPackageName<'_>> {
    let all = package.strip_prefix("linux-image-")?;
    let of = |named: Architecture| Some((named, all.strip_suffix(named.debian())?.strip_suffix('-')?));
    let (architecture, whole) = Architecture::ALL.into_iter().find_map(of)?;
    let flavours = [Flavour::Rt, Flavour::Cloud].into_iter();
    let flavour = flavours.into_iter().find(|named| whole.ends_with(named.suffix())).unwrap_or(Flavour::Stock);
    let release = whole.strip_suffix(flavour.suffix())?;
    let mut dots = release.match_indices('.').map(|(at, _)| at);
    let (first, second) = (dots.next()?, dots.next()?);
    let is_version = release.starts_with(|c: char| c.is_ascii_digit()) && !release.ends_with(char::is_alphabetic);
    (is_version && first + 1 < second).then(|| KernelPackageName {
        series: &release[..second],
        release,
        flavour,
        architecture,
    })
}

/// The architecture of a kernel package; that of this machine for other packages.
pub(super) fn architecture_of(package: &str) -> Architecture {
    let own = Architecture::OWN.unwrap_or(Architecture::X86_64);
    named(package).map_or(own, |named| named.architecture)
}

/// The kernels of an architecture that the package manager knows; `None` if it is not installed. Errors: if the query
/// fails, for example because package lists are damaged or there is no room to read them.
pub(super) fn known(series: &str, architecture: Architecture) -> Result<Option<Vec<String>>, LabError> {
    if !apt::is_here() {
        return Ok(None);
    }
    let begin = format!("linux-image-{series}");
    known_by(&apt::query(architecture, ["pkgnames", &begin])?).map(|mut names| {
        names.retain(|name| named(name).is_some_and(|named| named.architecture == architecture));
        Some(names)
    })
}

fn known_by(output: &Output) -> Result<Vec<String>, LabError> {
    if !output.status.success() {
        return Err(LabError::program(apt::QUERY, error_line(&output.stderr)));
    }
    let text = String::from_utf8_lossy(&output.stdout);
    let names = text.lines().map(str::trim);
    Ok(names.filter(|name| named(name).is_some()).map(str::to_owned).collect())
}

/// The descriptions of packages; unknown ones are left out.
pub(super) fn described(packages: &[&str]) -> Vec<Package> {
    let of = |architecture: Architecture| {
        let names: Vec<_> = packages.iter().copied().filter(|name| architecture_of(name) == architecture).collect();
        let question = ["show", "--no-all-versions"].into_iter().chain(names.iter().copied());
        let output = (!names.is_empty()).then(|| apt::query(architecture, question).ok()).flatten();
        output.map(|output| read(&String::from_utf8_lossy(&output.stdout))).unwrap_or_default()
    };
    Architecture::ALL.into_iter().flat_map(of).collect()
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

/// The newest package of a kind: of those known to the package manager, else of those in the cache. Errors: if there is
/// none, with advice, or if the package manager fails.
pub(super) fn newest(kind: &Kind, cached: &[String]) -> Result<String, LabError> {
    let cached = newest_of(cached, kind);
    let known = match known(&format!("{}.", kind.series), kind.architecture) {
        // A cached package needs no package manager.
        Err(_) if cached.is_some() => None,
        known => known?,
    };
    let newest = known.as_ref().and_then(|known| newest_of(known, kind));
    let none = || {
        let reason = if known.is_some() {
            "apt-get update, add the release that has it (6.12 for Debian 12 is in bookworm-backports), or name a \
             kernel's file"
        } else {
            "this system has no apt, and none is cached; name a kernel's file, /path/of/vmlinuz"
        };
        LabError::program(apt::QUERY, format!("found no package of {kind}; {reason}"))
    };
    newest.or(cached).ok_or_else(none)
}

/// The newest of `packages` of this kind.
pub(super) fn newest_of(packages: &[String], kind: &Kind) -> Option<String> {
    let of_kind = packages.iter().filter_map(|name| {
        let found = named(name)?;
        (found.kind() == *kind).then_some((found.release, name))
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
            "linux-image-6.12.117+deb12-rt-arm64",
            "linux-image-6.12.118+deb12-arm64-16k",
            "linux-image-6.1.0-60-riscv64",
        ]
        .map(str::to_owned);
        let [x86, arm, riscv] = Architecture::ALL;
        for (series, flavour, architecture, package) in [
            ("6.1", Flavour::Stock, x86, Some("linux-image-6.1.0-56-amd64")),
            ("6.1", Flavour::Rt, x86, Some("linux-image-6.1.0-58-rt-amd64")),
            ("6.1", Flavour::Cloud, x86, Some("linux-image-6.1.0-59-cloud-amd64")),
            ("6.12", Flavour::Stock, x86, Some("linux-image-6.12.117+deb12-amd64")),
            ("6.12", Flavour::Rt, x86, None),
            ("6.11", Flavour::Stock, x86, None),
            ("6.1", Flavour::Stock, arm, Some("linux-image-6.1.0-60-arm64")),
            ("6.12", Flavour::Rt, arm, Some("linux-image-6.12.117+deb12-rt-arm64")),
            ("6.12", Flavour::Stock, arm, None),
            ("6.1", Flavour::Stock, riscv, Some("linux-image-6.1.0-60-riscv64")),
        ] {
            let kind = Kind { series: series.to_owned(), flavour, architecture };
            assert_eq!(newest_of(&packages, &kind).as_deref(), package, "{kind}");
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
