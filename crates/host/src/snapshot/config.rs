//! The kernel's configuration, where it is available.

use crate::HostFs;
use flate2::read::GzDecoder;
use punctual_model::{KernelFacts, LARGEST_CONFIG};
use std::collections::{BTreeMap, HashSet};
use std::fs::File;
use std::io::Read;

/// The configuration of the running kernel, and the file that it was read from; `None` if none can be read.
pub fn kernel_config(fs: &HostFs) -> Option<(String, String)> {
    let release = fs.text("proc/sys/kernel/osrelease");
    Config::read(fs, release.as_deref()).map(|config| (config.file, config.text))
}

/// The text of a configuration.
#[derive(Debug)]
pub(crate) struct Config {
    /// The file that it was read from.
    pub(super) file: String,
    text: String,
}

impl Config {
    /// The configuration from the kernel itself if it provides it (`CONFIG_IKCONFIG_PROC`), else from the file that the
    /// distribution keeps for this release.
    pub(super) fn read(fs: &HostFs, release: Option<&str>) -> Option<Config> {
        let own = "proc/config.gz";
        let kept = release.map(|release| {
            [
                format!("boot/config-{release}"),
                format!("lib/modules/{release}/config"),
                format!("lib/modules/{release}/build/.config"),
            ]
        });
        let unpacked = unpack(fs, own).map(|text| (own.to_owned(), text));
        let (file, text) =
            unpacked.or_else(|| kept?.into_iter().find_map(|file| Some((file.clone(), fs.text(file)?))))?;
        text.contains("CONFIG_").then(|| Config { file: format!("/{file}"), text })
    }

    /// A configuration with this text, for tests.
    #[cfg(test)]
    pub(crate) fn of(text: &str) -> Config {
        Config { file: "test".to_owned(), text: text.to_owned() }
    }

    /// The value of `CONFIG_{option}`: `y`, `m`, a number or a text.
    pub(crate) fn value(&self, option: &str) -> Option<&str> {
        self.text.lines().find_map(|line| line.strip_prefix("CONFIG_")?.strip_prefix(option)?.strip_prefix('='))
    }

    /// The recorded options that are set.
    pub(super) fn options(&self) -> BTreeMap<String, String> {
        let pairs = self.text.lines().filter_map(|line| line.strip_prefix("CONFIG_")?.split_once('='));
        let recorded: HashSet<&str> = KernelFacts::OPTIONS.split(' ').collect();
        let kept = pairs.filter(|(option, _)| recorded.contains(option));
        kept.map(|(option, value)| (option.to_owned(), value.to_owned())).collect()
    }
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
        let config =
            Config::of("CONFIG_HZ_250=y\nCONFIG_HZ=250\n# CONFIG_KASAN is not set\nCONFIG_PREEMPT=y\nCONFIG_EXT4_FS=m");
        assert_eq!(
            (config.value("HZ"), config.value("KASAN"), config.value("EXT4_FS")),
            (Some("250"), None, Some("m"))
        );
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
