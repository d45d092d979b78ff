//! The kernels that cells run on.

use crate::UnknownWord;
use crate::word::as_text;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// The kernel a cell runs on.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(try_from = "String", into = "String")]
pub enum Kernel {
    /// The kernel of this machine, as booted.
    Running,
    /// One that is booted in the lab.
    Lab(LabKernel),
}

/// A kernel of the lab: where it comes from, and its further arguments.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LabKernel {
    /// Where it comes from.
    pub source: KernelSource,
    /// Arguments for its command line (kernel-parameters.txt), one space between two; may be empty.
    pub arguments: String,
}

/// Where a kernel of the lab comes from.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum KernelSource {
    /// The newest package of Debian for a version and a flavour.
    Debian {
        /// The first two numbers of its version: `6.1`.
        version: String,
        /// How it was built.
        flavour: Flavour,
    },
    /// A file: bzImage or vmlinux.
    File(String),
}

/// How Debian builds its kernels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Flavour {
    /// The ordinary one.
    Stock,
    /// With PREEMPT_RT.
    Rt,
    /// For virtual machines: less of everything.
    Cloud,
}

impl Flavour {
    /// Every flavour, with what stands behind the version.
    pub const ALL: [(Flavour, &str); 3] = [(Flavour::Stock, ""), (Flavour::Rt, "-rt"), (Flavour::Cloud, "-cloud")];

    /// What stands behind the version; may be empty.
    #[must_use]
    pub fn suffix(self) -> &'static str {
        match self {
            Flavour::Stock => "",
            Flavour::Rt => "-rt",
            Flavour::Cloud => "-cloud",
        }
    }
}

impl Kernel {
    /// Whether its times are virtual: instructions that count as a nanosecond each.
    #[must_use]
    pub fn is_virtual(&self) -> bool {
        *self != Kernel::Running
    }

    /// Every form as it is typed.
    pub const KNOWN: &[&str] = &["running", "debian:VERSION[-rt|-cloud][ ARGUMENTS]", "/PATH/OF/vmlinuz[ ARGUMENTS]"];
}

impl FromStr for Kernel {
    type Err = UnknownWord;

    fn from_str(text: &str) -> Result<Self, UnknownWord> {
        let (name, arguments) = text.trim().split_once(char::is_whitespace).unwrap_or((text.trim(), ""));
        let unknown = || UnknownWord::new("kernel", text, Kernel::KNOWN);
        let source = match name.strip_prefix("debian:") {
            Some(version) => debian(version).ok_or_else(unknown)?,
            None if name.starts_with(['/', '.']) => KernelSource::File(name.to_owned()),
            None if name == "running" && arguments.is_empty() => return Ok(Kernel::Running),
            None => return Err(unknown()),
        };
        let arguments = arguments.split_whitespace().collect::<Vec<_>>().join(" ");
        Ok(Kernel::Lab(LabKernel { source, arguments }))
    }
}

/// `6.1-rt`: two numbers and a flavour.
fn debian(text: &str) -> Option<KernelSource> {
    let flavours = Flavour::ALL.into_iter().filter(|(flavour, _)| *flavour != Flavour::Stock);
    let named = flavours.into_iter().find_map(|(flavour, suffix)| Some((flavour, text.strip_suffix(suffix)?)));
    let (flavour, version) = named.unwrap_or((Flavour::Stock, text));
    let (major, minor) = version.split_once('.')?;
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let version = (is_number(major) && is_number(minor)).then(|| version.to_owned())?;
    Some(KernelSource::Debian { version, flavour })
}

impl fmt::Display for KernelSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            KernelSource::Debian { version, flavour } => write!(f, "debian:{version}{}", flavour.suffix()),
            KernelSource::File(path) => f.write_str(path),
        }
    }
}

impl fmt::Display for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Kernel::Running => f.pad("running"),
            Kernel::Lab(LabKernel { source, arguments }) if arguments.is_empty() => f.pad(&source.to_string()),
            Kernel::Lab(LabKernel { source, arguments }) => f.pad(&format!("{source} {arguments}")),
        }
    }
}

as_text!(Kernel, UnknownWord);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_are_what_they_are_typed_as() {
        for (text, shown) in [
            ("running", "running"),
            ("debian:6.1", "debian:6.1"),
            ("debian:6.12-rt", "debian:6.12-rt"),
            ("debian:6.1-cloud  preempt=none   quiet", "debian:6.1-cloud preempt=none quiet"),
            (" /boot/vmlinuz-6.1 threadirqs", "/boot/vmlinuz-6.1 threadirqs"),
            ("./bzImage", "./bzImage"),
        ] {
            let kernel: Kernel = text.parse().unwrap();
            assert_eq!(kernel.to_string(), shown);
            assert_eq!(shown.parse::<Kernel>(), Ok(kernel));
        }
    }

    #[test]
    fn what_is_no_kernel_is_named() {
        for text in
            ["", "runing", "debian:", "debian:6", "debian:6.", "debian:6.1-arm", "debian:six.1", "running quiet"]
        {
            let said = text.parse::<Kernel>().unwrap_err().to_string();
            assert!(said.starts_with(&format!("unknown kernel `{text}`")), "{said}");
        }
        assert!("runing".parse::<Kernel>().unwrap_err().to_string().contains("did you mean `running`?"));
    }
}
