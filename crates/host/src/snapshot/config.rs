//! The kernel's configuration, where it is available.

use crate::HostFs;
use flate2::read::GzDecoder;
use punctual_model::{KernelFacts, LARGEST_CONFIG};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::Read;
use std::sync::OnceLock;

/// The configuration of the running kernel, and the file that it was read from; `None` if none can be read.
pub fn kernel_config(fs: &HostFs) -> Option<(String, String)> {
    text(fs, fs.text("proc/sys/kernel/osrelease").as_deref())
}

/// Options whose values are used, besides those that are recorded.
const USED: &str = "ARCH_HAS_PREEMPT_LAZY DOVETAIL IPIPE IRQ_PIPELINE LOCK_DOWN_KERNEL_FORCE_CONFIDENTIALITY \
    LOCK_DOWN_KERNEL_FORCE_INTEGRITY PREEMPT_NONE_BEHAVIOUR PREEMPT_VOLUNTARY_BEHAVIOUR SECURITY_LOCKDOWN_LSM \
    SECURITY_LOCKDOWN_LSM_EARLY XENOMAI";

/// Those options of a configuration that are used or recorded, and set.
#[derive(Debug, Clone)]
pub(crate) struct Config {
    /// The file that it was read from.
    pub(super) file: String,
    /// `y`, `m`, a number or a text by option, without `CONFIG_`.
    values: BTreeMap<&'static str, String>,
}

impl Config {
    /// The configuration of this machine; that of the running kernel, which never changes, is read once.
    pub(super) fn read(fs: &HostFs, release: Option<&str>) -> Option<Cow<'static, Config>> {
        static RUNNING: OnceLock<Option<Config>> = OnceLock::new();
        let read = || text(fs, release).map(|(file, text)| Config::of(file, &text));
        if fs.is_running() { RUNNING.get_or_init(read).as_ref().map(Cow::Borrowed) } else { read().map(Cow::Owned) }
    }

    /// The configuration with this text.
    pub(crate) fn of(file: String, text: &str) -> Config {
        let used: BTreeSet<&str> = USED.split(' ').chain(KernelFacts::OPTIONS.split(' ')).collect();
        let pairs = text.lines().filter_map(|line| line.strip_prefix("CONFIG_")?.split_once('='));
        Config { file, values: pairs.filter_map(|(name, value)| Some((*used.get(name)?, value.to_owned()))).collect() }
    }

    /// The value of `CONFIG_{option}`: `y`, `m`, a number or a text.
    pub(crate) fn value(&self, option: &str) -> Option<&str> {
        let is_used = || USED.split(' ').chain(KernelFacts::OPTIONS.split(' ')).any(|used| used == option);
        debug_assert!(is_used(), "{option}");
        self.values.get(option).map(String::as_str)
    }

    /// The recorded options that are set.
    pub(super) fn options(&self) -> BTreeMap<String, String> {
        let set = |option: &str| Some((option.to_owned(), self.value(option)?.to_owned()));
        KernelFacts::OPTIONS.split(' ').filter_map(set).collect()
    }
}

/// The file and its text: from the kernel itself if it provides it (`CONFIG_IKCONFIG_PROC`), else from the file that
/// the distribution keeps for this release.
fn text(fs: &HostFs, release: Option<&str>) -> Option<(String, String)> {
    let own = "proc/config.gz";
    let kept = release.map(|release| {
        [
            format!("boot/config-{release}"),
            format!("lib/modules/{release}/config"),
            format!("lib/modules/{release}/build/.config"),
        ]
    });
    let unpacked = unpack(fs, own).map(|text| (own.to_owned(), text));
    let (file, text) = unpacked.or_else(|| kept?.into_iter().find_map(|file| Some((file.clone(), fs.text(file)?))))?;
    text.contains("CONFIG_").then(|| (format!("/{file}"), text))
}

fn unpack(fs: &HostFs, path: &str) -> Option<String> {
    let mut text = String::new();
    GzDecoder::new(File::open(fs.root.join(path)).ok()?).take(LARGEST_CONFIG).read_to_string(&mut text).ok()?;
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Scratch;

    #[test]
    fn options_that_matter_are_kept() {
        let config = Config::of(
            String::new(),
            "CONFIG_HZ_250=y\nCONFIG_HZ=250\n# CONFIG_KASAN is not set\nCONFIG_PREEMPT=y\nCONFIG_IPIPE=m",
        );
        assert_eq!((config.value("HZ"), config.value("KASAN"), config.value("IPIPE")), (Some("250"), None, Some("m")));
        let kept: Vec<_> = config.options().into_iter().map(|(option, value)| format!("{option}={value}")).collect();
        assert_eq!(kept, ["HZ=250", "PREEMPT=y"]);
    }

    #[test]
    fn a_broken_archive_is_unknown() {
        let scratch = Scratch::make();
        for bytes in [&b""[..], b"\x1f\x8b\x08", b"CONFIG_HZ=250"] {
            scratch.file("proc/config.gz", bytes);
            assert!(Config::read(&scratch.machine(), Some("6.1")).is_none());
        }
    }
}
