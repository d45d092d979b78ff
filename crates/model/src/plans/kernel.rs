//! The kernels that cells run on.

mod installed;

pub use installed::InstalledKernel;

use crate::words::word::{as_text, words};
use crate::{Architecture, GuestThreads, GuestThreadsError, Load, LoadError, UnknownWord};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// The kernel a cell runs on.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(try_from = "String", into = "String")]
pub enum Kernel {
    /// The kernel of this machine, as booted.
    Running,
    /// A kernel that is installed on this machine, which has to be booted with it.
    Installed(Box<InstalledKernel>),
    /// A kernel that is booted in the lab.
    Lab(Box<LabKernel>),
}

/// A kernel of the lab: source, further arguments, and files of its guests.
///
/// Invariant of a parsed one: no path contains white space, and paths on this machine are absolute.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LabKernel {
    /// Source of the image.
    pub source: KernelSource,
    /// Arguments for its command line (kernel-parameters.txt), one space between two; may be empty.
    pub arguments: String,
    /// Module, or directory of modules, that guests load before the measurement.
    pub modules: Option<String>,
    /// Files and directories copied into guests, in the order given.
    pub files: Vec<GuestFile>,
    /// Clock of its guests.
    pub clock: LabClock,
    /// CPUs of its guests: 1 to [`LabKernel::MAX_CPUS`], and 1 in virtual time.
    pub cpus: u32,
    /// Scheduling of its threads on this machine; none in virtual time, which does not depend on it.
    pub threads: GuestThreads,
    /// Background work on this machine while the guest measures; none in virtual time.
    pub host_load: Load,
    /// File of a domain of libvirt whose settings of threads are still to be taken over; `None` once they are.
    pub libvirt: Option<String>,
}

/// A file or a directory of this machine that is copied into a guest.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GuestFile {
    /// Path on this machine.
    pub from: String,
    /// Path in the guest.
    pub to: String,
}

/// Source of a lab kernel.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum KernelSource {
    /// The newest Debian package of a version and a flavor.
    Debian {
        /// The first two numbers of its version: `6.1`.
        version: String,
        /// The flavor.
        flavour: Flavour,
        /// The architecture; `None` for that of this machine.
        architecture: Option<Architecture>,
    },
    /// A file: bzImage, vmlinux, Image, or a package that holds one (`.deb`).
    File(String),
}

/// Debian's kernel flavors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Flavour {
    /// The standard build.
    Stock,
    /// With PREEMPT_RT.
    Rt,
    /// The reduced build for virtual machines.
    Cloud,
}

impl Flavour {
    /// Every flavor, with its suffix to the version.
    pub const ALL: [(Flavour, &str); 3] = [(Flavour::Stock, ""), (Flavour::Rt, "-rt"), (Flavour::Cloud, "-cloud")];

    /// Suffix to the version; may be empty.
    pub fn suffix(self) -> &'static str {
        match self {
            Flavour::Stock => "",
            Flavour::Rt => "-rt",
            Flavour::Cloud => "-cloud",
        }
    }
}

impl Kernel {
    /// Whether it runs on this machine itself, and not in a guest.
    pub fn is_here(&self) -> bool {
        !matches!(self, Kernel::Lab(_))
    }

    /// The installed kernel that has to be booted.
    pub fn installed(&self) -> Option<&InstalledKernel> {
        if let Kernel::Installed(kernel) = self { Some(kernel) } else { None }
    }

    /// Clock of its guests; `None` for a kernel of this machine, whose clock it has.
    pub fn clock(&self) -> Option<LabClock> {
        match self {
            Kernel::Running | Kernel::Installed(_) => None,
            Kernel::Lab(kernel) => Some(kernel.clock),
        }
    }

    /// Name of the clock of its times: `real`, or the clock of its guests.
    pub fn time(&self) -> &'static str {
        self.clock().map_or("real", LabClock::name)
    }

    /// Whether its times are virtual: one nanosecond per instruction.
    pub fn is_virtual(&self) -> bool {
        self.clock() == Some(LabClock::Virtual)
    }

    /// Every form of a kernel as typed.
    pub const KNOWN: &[&str] = &[
        "running",
        "installed:RELEASE[ WORDS]",
        "installed:current[ WORDS]",
        "debian:VERSION[-rt|-cloud][-amd64|-arm64|-riscv64][ WORDS]",
        "/PATH/OF/vmlinuz[ WORDS]",
    ];

    /// Adds files for its guests; no effect on a kernel of this machine.
    pub fn give(&mut self, files: &[GuestFile]) {
        if let Kernel::Lab(kernel) = self {
            let new = files.iter().filter(|file| !kernel.files.contains(file)).cloned().collect::<Vec<_>>();
            kernel.files.extend(new);
        }
    }
}

/// Parse error of a kernel.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KernelError {
    /// Unknown kernel.
    #[error(transparent)]
    Unknown(#[from] UnknownWord),
    /// An invalid release of an installed kernel.
    #[error(
        "invalid release `{0}`: expected the name below /lib/modules, like installed:6.1.0-13-rt-amd64, or \
             installed:current"
    )]
    Release(String),
    /// An invalid argument of a kernel that a machine boots.
    #[error("invalid argument `{0}` of a kernel to boot: expected a word of its command line, like threadirqs")]
    Argument(String),
    /// An invalid path of a guest file.
    #[error(
        "invalid guest path `{0}`: expected an absolute path without blanks, like /usr/bin/fio or /usr/bin/dash:/bin/sh"
    )]
    Path(String),
    /// `modules` given more than once.
    #[error("duplicate `modules`; name one module, or the directory that holds all of them")]
    ModulesTwice,
    /// Unknown clock.
    #[error(transparent)]
    Clock(UnknownWord),
    /// A number of guest CPUs out of range.
    #[error("invalid number of guest CPUs `{0}`: expected 1 to {most}", most = LabKernel::MAX_CPUS)]
    Cpus(String),
    /// More than one CPU in virtual time.
    #[error(
        "a guest in virtual time has one CPU: its instructions are the clock, and two CPUs would take turns at whole time \
         slices; leave cpus out, or add clock=emulated"
    )]
    VirtualCpus,
    /// An invalid setting of a guest's threads.
    #[error(transparent)]
    Threads(#[from] GuestThreadsError),
    /// An invalid load of this machine.
    #[error("host_load: {0}")]
    HostLoad(LoadError),
    /// Settings of threads, or a load of this machine, in virtual time.
    #[error("virtual time does not depend on what runs on this machine; leave `{0}` out, or add clock=emulated")]
    VirtualHost(String),
}

impl FromStr for GuestFile {
    type Err = KernelError;

    /// `/path`, or `/path:/path/in/the/guest`.
    fn from_str(text: &str) -> Result<Self, KernelError> {
        let (from, to) = text.split_once(':').unwrap_or((text, text));
        if is_path(from) && is_path(to) && !to.contains(':') {
            return Ok(GuestFile { from: from.to_owned(), to: to.to_owned() });
        }
        Err(KernelError::Path(text.to_owned()))
    }
}

impl fmt::Display for GuestFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.from == self.to { f.pad(&self.from) } else { f.pad(&format!("{}:{}", self.from, self.to)) }
    }
}

/// Whether a path is one word and independent of the working directory.
fn is_path(text: &str) -> bool {
    let has_parents = text.split('/').any(|part| part == "..");
    text.len() > 1 && text.starts_with('/') && !text.contains(char::is_whitespace) && !has_parents
}

/// Prefixes of words that configure the guest; all other words are kernel arguments.
const FILE: &str = "file=";
const MODULES: &str = "modules=";
const CLOCK: &str = "clock=";
const CPUS: &str = "cpus=";
const HOST_LOAD: &str = "host_load=";
const LIBVIRT: &str = "libvirt=";
const GUEST_WORDS: [&str; 6] = [FILE, MODULES, CLOCK, CPUS, HOST_LOAD, LIBVIRT];

impl LabKernel {
    /// The limit of QEMU's `pc` machine without further devices.
    pub const MAX_CPUS: u32 = 255;

    /// The words after its source, in the order of its text form; may be empty.
    pub fn words(&self) -> String {
        let LabKernel { source: _, arguments, modules, files, clock, cpus, threads: _, host_load: _, libvirt: _ } =
            self;
        let mut words = Vec::from_iter(Some(arguments.clone()).filter(|arguments| !arguments.is_empty()));
        words.extend((*clock != LabClock::default()).then(|| format!("{CLOCK}{clock}")));
        words.extend((*cpus != 1).then(|| format!("{CPUS}{cpus}")));
        words.extend(Some(self.words_of_host()).filter(|words| !words.is_empty()));
        words.extend(modules.iter().map(|path| format!("{MODULES}{path}")));
        words.extend(files.iter().map(|file| format!("{FILE}{file}")));
        words.join(" ")
    }

    /// The words on what runs on this machine besides the guest, one blank between two; may be empty.
    fn words_of_host(&self) -> String {
        let load = Some(&self.host_load).filter(|load| !load.parts().is_empty());
        let threads = Some(self.threads.to_string()).filter(|words| !words.is_empty());
        let libvirt = self.libvirt.as_ref().map(|path| format!("{LIBVIRT}{path}"));
        let words = threads.into_iter().chain(load.map(|load| format!("{HOST_LOAD}{load}"))).chain(libvirt);
        words.collect::<Vec<_>>().join(" ")
    }
}

impl FromStr for Kernel {
    type Err = KernelError;

    fn from_str(text: &str) -> Result<Self, KernelError> {
        let (name, words) = text.trim().split_once(char::is_whitespace).unwrap_or((text.trim(), ""));
        let unknown = || UnknownWord::new("kernel", text, Kernel::KNOWN);
        if let Some(release) = name.strip_prefix(InstalledKernel::PREFIX) {
            return Ok(Kernel::Installed(Box::new(InstalledKernel::parse(release, words)?)));
        }
        let source = match name.strip_prefix("debian:") {
            Some(version) => debian(version).ok_or_else(unknown)?,
            None if name.contains('/') => KernelSource::File(name.to_owned()),
            None if name == "running" && words.is_empty() => return Ok(Kernel::Running),
            None => return Err(unknown().into()),
        };
        let mut kernel = LabKernel {
            source,
            arguments: String::new(),
            modules: None,
            files: Vec::new(),
            clock: LabClock::default(),
            cpus: 1,
            threads: GuestThreads::default(),
            host_load: Load::NONE,
            libvirt: None,
        };
        let mut arguments = Vec::new();
        for word in words.split_whitespace() {
            if let Some(file) = word.strip_prefix(FILE) {
                kernel.files.push(file.parse()?);
            } else if let Some(path) = word.strip_prefix(MODULES) {
                let path = Some(path).filter(|path| is_path(path)).ok_or_else(|| KernelError::Path(path.to_owned()))?;
                if kernel.modules.replace(path.to_owned()).is_some() {
                    return Err(KernelError::ModulesTwice);
                }
            } else if let Some(clock) = word.strip_prefix(CLOCK) {
                kernel.clock = clock.parse().map_err(KernelError::Clock)?;
            } else if let Some(cpus) = word.strip_prefix(CPUS) {
                let number = cpus.parse().ok().filter(|number| (1..=LabKernel::MAX_CPUS).contains(number));
                kernel.cpus = number.ok_or_else(|| KernelError::Cpus(cpus.to_owned()))?;
            } else if let Some(load) = word.strip_prefix(HOST_LOAD) {
                kernel.host_load = load.parse().map_err(KernelError::HostLoad)?;
            } else if let Some(path) = word.strip_prefix(LIBVIRT) {
                kernel.libvirt = Some(path.to_owned()).filter(|path| !path.is_empty());
            } else if !kernel.threads.take(word)? {
                arguments.push(word);
            }
        }
        if kernel.clock == LabClock::Virtual && kernel.cpus > 1 {
            return Err(KernelError::VirtualCpus);
        }
        kernel.arguments = arguments.join(" ");
        let of_host = kernel.words_of_host();
        if kernel.clock == LabClock::Virtual && !of_host.is_empty() {
            return Err(KernelError::VirtualHost(of_host));
        }
        Ok(Kernel::Lab(Box::new(kernel)))
    }
}

/// Parses `6.1-rt-arm64`: two numbers, a flavor and an architecture.
fn debian(text: &str) -> Option<KernelSource> {
    let of_architecture = |architecture: &Architecture| text.strip_suffix(architecture.debian())?.strip_suffix('-');
    let named = Architecture::ALL.into_iter().find_map(|named| Some((Some(named), of_architecture(&named)?)));
    let (architecture, text) = named.unwrap_or((None, text));
    let flavours = Flavour::ALL.into_iter().filter(|(flavour, _)| *flavour != Flavour::Stock);
    let named = flavours.into_iter().find_map(|(flavour, suffix)| Some((flavour, text.strip_suffix(suffix)?)));
    let (flavour, version) = named.unwrap_or((Flavour::Stock, text));
    let (major, minor) = version.split_once('.')?;
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let version = (is_number(major) && is_number(minor)).then(|| version.to_owned())?;
    Some(KernelSource::Debian { version, flavour, architecture })
}

impl fmt::Display for KernelSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            KernelSource::Debian { version, flavour, architecture } => {
                write!(f, "debian:{version}{}", flavour.suffix())?;
                architecture.map_or(Ok(()), |named| write!(f, "-{}", named.debian()))
            }
            KernelSource::File(path) => f.write_str(path),
        }
    }
}

impl fmt::Display for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Kernel::Running => f.pad("running"),
            Kernel::Installed(kernel) => kernel.fmt(f),
            Kernel::Lab(kernel) => {
                let words = [kernel.source.to_string(), kernel.words()];
                let words: Vec<_> = words.into_iter().filter(|words| !words.is_empty()).collect();
                f.pad(&words.join(" "))
            }
        }
    }
}

as_text!(Kernel, KernelError);

words! {
    /// The clock of the times of a guest. Times of different clocks are never compared.
    #[derive(Default)]
    json LabClock, "clock" {
        /// Virtual time: each instruction counts as one nanosecond, and nothing else takes time (QEMU, "TCG Instruction
        /// Counting"). One CPU.
        #[default]
        Virtual = "virtual",
        /// Host time, with instructions translated by QEMU: tens of times slower than hardware.
        Emulated = "emulated",
        /// Host time, with instructions run by the host's processor (KVM).
        Kvm = "kvm",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_are_what_they_are_typed_as() {
        for (text, shown) in [
            ("running", "running"),
            ("installed:6.1.0-13-amd64", "installed:6.1.0-13-amd64"),
            ("installed:current preempt=lazy", "installed:current preempt=lazy"),
            ("installed:6.12.9+rt  threadirqs  isolcpus=1,2", "installed:6.12.9+rt threadirqs isolcpus=1,2"),
            ("debian:6.1", "debian:6.1"),
            ("debian:6.12-rt", "debian:6.12-rt"),
            ("debian:6.1-rt-arm64 threadirqs", "debian:6.1-rt-arm64 threadirqs"),
            ("debian:6.12-arm64", "debian:6.12-arm64"),
            ("debian:6.12-riscv64", "debian:6.12-riscv64"),
            ("debian:6.1-cloud-amd64", "debian:6.1-cloud-amd64"),
            ("debian:6.1-cloud  preempt=none   quiet", "debian:6.1-cloud preempt=none quiet"),
            (" /boot/vmlinuz-6.1 threadirqs", "/boot/vmlinuz-6.1 threadirqs"),
            ("./bzImage", "./bzImage"),
            ("./bzImage clock=virtual cpus=1", "./bzImage"),
            ("debian:6.1 cpus=2 quiet clock=emulated", "debian:6.1 quiet clock=emulated cpus=2"),
            ("debian:6.1-rt clock=kvm", "debian:6.1-rt clock=kvm"),
            (
                "debian:6.1 host_load=cpu+disk emulator_cpus=0 cpus=2 vcpu_policy=fifo:50 clock=emulated",
                "debian:6.1 clock=emulated cpus=2 vcpu_policy=fifo:50 emulator_cpus=0 host_load=cpu+disk",
            ),
            ("arch/x86/boot/bzImage quiet", "arch/x86/boot/bzImage quiet"),
            (
                "debian:6.1 file=/usr/bin/fio modules=/m preempt=none file=/bin/dash:/bin/sh quiet",
                "debian:6.1 preempt=none quiet modules=/m file=/usr/bin/fio file=/bin/dash:/bin/sh",
            ),
        ] {
            let kernel: Kernel = text.parse().unwrap();
            assert_eq!(kernel.to_string(), shown);
            assert_eq!(shown.parse::<Kernel>(), Ok(kernel));
        }
    }

    #[test]
    fn what_is_no_kernel_is_named() {
        for text in [
            "",
            "runing",
            "debian:",
            "debian:6",
            "debian:6.",
            "debian:6.1-arm",
            "debian:6.1-arm64-rt",
            "debian:6.1arm64",
            "debian:six.1",
            "running quiet",
        ] {
            let message = text.parse::<Kernel>().unwrap_err().to_string();
            assert!(message.starts_with(&format!("unknown kernel `{text}`")), "{message}");
        }
        for text in ["file=", "file=/", "file=usr/bin/fio", "file=/a:b", "file=/a:/b:/c", "file=/a/../b", "modules=x"] {
            let message = format!("debian:6.1 {text}").parse::<Kernel>().unwrap_err().to_string();
            assert!(message.starts_with("invalid guest path `"), "{message}");
        }
        for release in ["", "-rt", "../vmlinuz", "6.1/x", "six"] {
            let message = format!("installed:{release}").parse::<Kernel>().unwrap_err().to_string();
            assert!(message.starts_with(&format!("invalid release `{release}`")), "{message}");
        }
        for word in ["cpus=2", "vcpu_policy=fifo:50", "a\"b", "$(reboot)", "a;b", "'", "{"] {
            let message = format!("installed:6.1 {word}").parse::<Kernel>().unwrap_err().to_string();
            assert!(message.starts_with(&format!("invalid argument `{word}`")), "{message}");
        }
        for cpus in ["0", "256", "two", "-1", ""] {
            let message = format!("/k clock=kvm cpus={cpus}").parse::<Kernel>().unwrap_err().to_string();
            assert_eq!(message, format!("invalid number of guest CPUs `{cpus}`: expected 1 to 255"));
        }
        assert_eq!("/k cpus=2".parse::<Kernel>(), Err(KernelError::VirtualCpus));
        let message = "/k vcpu_policy=fifo:50".parse::<Kernel>().unwrap_err().to_string();
        assert!(message.contains("leave `vcpu_policy=fifo:50` out, or add clock=emulated"), "{message}");
        let message = "/k clock=vitual".parse::<Kernel>().unwrap_err().to_string();
        assert!(message.contains("did you mean `virtual`?"), "{message}");
        assert_eq!("/k modules=/a modules=/b".parse::<Kernel>(), Err(KernelError::ModulesTwice));
        assert!("runing".parse::<Kernel>().unwrap_err().to_string().contains("did you mean `running`?"));
    }
}
