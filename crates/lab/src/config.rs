//! Build configurations in files: embedded in a kernel (`CONFIG_IKCONFIG`), beside it, or on their own.

use super::fetch::{self, CachedConfig};
use super::image::{self, LARGEST_KERNEL};
use super::{LabError, regular_file};
use flate2::read::GzDecoder;
use memchr::memmem;
use punctual_model::{ConfigSummary, KernelConfig, LARGEST_CONFIG};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// A configuration and its source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundConfig {
    /// The file that holds it.
    pub file: String,
    /// The configuration.
    pub config: KernelConfig,
}

/// The summary of a bootable kernel's configuration for records; `None` if it is unknown. `dir` is the cached package,
/// `kernel` the kernel as named, `unpacked` the file that QEMU boots.
pub(super) fn summary(package: &str, dir: Option<&Path>, kernel: &Path, unpacked: &Path) -> Option<ConfigSummary> {
    if let Some(dir) = dir {
        let CachedConfig::Known(_, text) = fetch::config_in(dir) else { return None };
        // The name of the package, because the path depends on the user.
        return Some(KernelConfig::parse(&text).ok()?.summary(package.to_owned()));
    }
    let image = regular_file::read(unpacked, LARGEST_KERNEL).ok()?;
    let found = of_image(kernel, &image, None).ok()??;
    Some(found.config.summary(found.file))
}

/// The configuration in a file: a kernel, or a configuration itself, also compressed by gzip; `None` if a kernel has
/// none.
pub(super) fn of_file(path: &Path) -> Result<Option<FoundConfig>, LabError> {
    let content = regular_file::read(path, LARGEST_KERNEL)?;
    if is_text_of_config(&content) {
        if content.len() as u64 > LARGEST_CONFIG {
            return Err(LabError::file(path, TOO_LARGE));
        }
        return parsed(path, &String::from_utf8_lossy(&content)).map(Some);
    }
    let mut begin = [0; 64];
    let n = GzDecoder::new(content.as_slice()).read(&mut begin).unwrap_or(0);
    if is_text_of_config(begin.get(..n).unwrap_or_default()) {
        let text = unpacked(&content).map_err(|err| LabError::file(path, err))?;
        return parsed(path, &text).map(Some);
    }
    let unpacked = image::inside(&content).map_err(|()| {
        let expected = "expected a kernel (bzImage, vmlinux, Image) or a configuration (.config); name another file";
        LabError::file(path, expected)
    })?;
    of_image(path, unpacked.as_deref().unwrap_or(&content), release_of_bzimage(&content))
}

/// Whether a file begins as a configuration does: with a comment or an option.
fn is_text_of_config(content: &[u8]) -> bool {
    let begin = content.get(..content.len().min(64)).unwrap_or_default();
    let begin = begin.trim_ascii_start();
    (begin.starts_with(b"#") && !begin.starts_with(b"#!")) || begin.starts_with(b"CONFIG_")
}

/// The configuration of an unpacked kernel: its own, or one in a file beside `path`.
fn of_image(path: &Path, image: &[u8], release: Option<String>) -> Result<Option<FoundConfig>, LabError> {
    if let Some(text) = embedded(image).map_err(|err| LabError::file(path, format!("configuration in it: {err}")))? {
        return parsed(path, &text).map(Some);
    }
    let Some(file) = places(path).into_iter().find(|file| file.is_file()) else { return Ok(None) };
    let text = regular_file::read(&file, LARGEST_CONFIG)?;
    let found = parsed(&file, &String::from_utf8_lossy(&text))?;
    let release = release.or_else(|| release_of_vmlinux(image));
    if let (Some(release), Some(version)) = (release, &found.config.version) {
        let rest = release.strip_prefix(version.as_str());
        if rest.is_none_or(|rest| rest.starts_with(|c: char| c.is_ascii_digit() || c == '.')) {
            let reason = format!("configuration of Linux {version}, not of {release} beside it; remove or replace it");
            return Err(LabError::file(&file, reason));
        }
    }
    Ok(Some(found))
}

/// Parses the text of `file`.
pub(super) fn parsed(file: &Path, text: &str) -> Result<FoundConfig, LabError> {
    let config = KernelConfig::parse(text).map_err(|err| LabError::file(file, err))?;
    Ok(FoundConfig { file: file.display().to_string(), config })
}

/// Files beside a kernel that may hold its configuration: `config-RELEASE` for `vmlinuz-RELEASE`; `config` or `.config`
/// for a plain name; that of the build tree for `arch/x86/boot/bzImage`.
fn places(kernel: &Path) -> Vec<PathBuf> {
    let name = kernel.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let mut places = Vec::new();
    match name.split_once('-') {
        Some((_, release)) => places.push(kernel.with_file_name(format!("config-{release}"))),
        None => places.extend([".config", "config"].map(|name| kernel.with_file_name(name))),
    }
    let mut above = kernel.ancestors().skip(1);
    let is_named = |dir: Option<&Path>, name: &str| dir.is_some_and(|dir| dir.ends_with(name));
    let (boot, _, arch) = (above.next(), above.next(), above.next());
    if is_named(boot, "boot") && is_named(arch, "arch") {
        places.extend(above.next().map(|tree| tree.join(".config")));
    }
    places
}

/// Mark of the configuration in a kernel (kernel/configs.c), and the beginning of gzip data after it.
const BEGIN: &[u8] = b"IKCFG_ST\x1f\x8b\x08";
const MARK: usize = 8;

/// The configuration embedded in a kernel with `CONFIG_IKCONFIG`.
fn embedded(image: &[u8]) -> io::Result<Option<String>> {
    let Some(at) = memmem::find(image, BEGIN) else { return Ok(None) };
    unpacked(image.get(at + MARK..).unwrap_or_default()).map(Some)
}

/// Error of data that is larger than any configuration.
const TOO_LARGE: &str = "larger than 4 MiB, which configurations are not";

/// The text of compressed data (RFC 1952); what follows it is ignored.
fn unpacked(gzip: &[u8]) -> io::Result<String> {
    let mut bytes = Vec::new();
    let read = GzDecoder::new(gzip).take(LARGEST_CONFIG + 1).read_to_end(&mut bytes);
    read.map_err(|err| io::Error::other(format!("damaged gzip data: {err}")))?;
    if bytes.len() as u64 > LARGEST_CONFIG {
        return Err(io::Error::other(TOO_LARGE));
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// The release in the header of a bzImage (`kernel_version` of Documentation/arch/x86/boot.rst).
fn release_of_bzimage(kernel: &[u8]) -> Option<String> {
    const SETUP: usize = 0x200;
    (kernel.get(0x202..0x206)? == b"HdrS").then_some(())?;
    let at = u16::from_le_bytes(kernel.get(0x20e..0x210)?.try_into().ok()?);
    (at > 0).then_some(())?;
    word(kernel.get(SETUP + usize::from(at)..)?)
}

/// The release in the banner of an unpacked kernel (init/version.c).
fn release_of_vmlinux(image: &[u8]) -> Option<String> {
    const BANNER: &[u8] = b"Linux version ";
    let is_release = |at: &usize| image.get(at + BANNER.len()).is_some_and(u8::is_ascii_digit);
    let at = memmem::find_iter(image, BANNER).find(is_release)?;
    word(image.get(at + BANNER.len()..)?)
}

/// The first word of bytes, if it may be a release.
fn word(bytes: &[u8]) -> Option<String> {
    const LONGEST: usize = 64;
    let end = bytes.iter().take(LONGEST + 1).position(|byte| byte.is_ascii_whitespace() || *byte == 0)?;
    let word = std::str::from_utf8(bytes.get(..end)?).ok()?;
    word.chars().all(|c| c.is_ascii_graphic()).then(|| word.to_owned()).filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use punctual_host::testing::Scratch;

    const TEXT: &str = "# Linux/x86 6.12.117 Kernel Configuration\nCONFIG_HZ=250\n";

    fn gzip(content: &[u8]) -> Vec<u8> {
        image::piped("gzip", &["-c"], content).unwrap()
    }

    /// An unpacked kernel with this data after the mark of its configuration.
    fn vmlinux(data: &[u8]) -> Vec<u8> {
        [b"\x7fELF\x02\x01 IKCFG_ST Linux version %s Linux version 6.12.117-rt (x) IKCFG_ST".as_slice(), data].concat()
    }

    fn read(path: &Path) -> Result<Option<String>, String> {
        of_file(path).map(|found| found.map(|found| found.file)).map_err(|err| err.to_string())
    }

    #[test]
    fn a_configuration_is_read_from_wherever_it_is() {
        let scratch = Scratch::make();
        let packed = gzip(TEXT.as_bytes());
        let with = vmlinux(&[&packed, b"IKCFG_ED".as_slice()].concat());
        for (name, content, from) in [
            (".config", TEXT.as_bytes(), Some(".config")),
            ("config.gz", &packed, Some("config.gz")),
            ("vmlinux-with", &with, Some("vmlinux-with")),
            ("vmlinux-without", b"\x7fELF\x02\x01", None),
        ] {
            let path = scratch.file(name, content);
            let expected = from.map(|name| scratch.path(name).display().to_string());
            assert_eq!(read(&path), Ok(expected), "{name}");
        }
    }

    #[test]
    fn a_configuration_beside_a_kernel_is_of_its_version() {
        let scratch = Scratch::make();
        let kernel = b"\x7fELF\x02\x01 Linux version 6.12.117-lean (x)";
        for (name, beside) in [
            ("boot/vmlinuz-6.12.117-lean", "boot/config-6.12.117-lean"),
            ("a/vmlinux", "a/.config"),
            ("b/vmlinux", "b/config"),
            ("tree/arch/x86/boot/bzImage", "tree/.config"),
        ] {
            let path = scratch.file(name, kernel);
            let config = scratch.file(beside, TEXT);
            assert_eq!(read(&path), Ok(Some(config.display().to_string())), "{name}");
            for other in ["6.12.11", "6.12", "6.1.9"] {
                scratch.file(beside, TEXT.replace("6.12.117", other));
                let expected =
                    format!("configuration of Linux {other}, not of 6.12.117-lean beside it; remove or replace it");
                assert_eq!(read(&path), Err(format!("{}: {expected}", config.display())));
            }
        }
    }

    #[test]
    fn what_is_damaged_or_endless_is_one_line() {
        let scratch = Scratch::make();
        let packed = gzip(TEXT.as_bytes());
        let bomb = gzip(&[b"# ".as_slice(), &vec![b'x'; 5 << 20]].concat());
        for (name, content, expected) in [
            ("cut", vmlinux(&packed[..packed.len() - 12]), "configuration in it: damaged gzip data: "),
            ("bomb", vmlinux(&bomb), "configuration in it: larger than 4 MiB"),
            ("bomb.gz", bomb.clone(), "larger than 4 MiB"),
            ("cut.gz", packed[..packed.len() - 6].to_vec(), "damaged gzip data: "),
            ("large", [TEXT.as_bytes(), &vec![b'\n'; 5 << 20]].concat(), "larger than 4 MiB"),
            ("empty", Vec::new(), "expected a kernel (bzImage, vmlinux, Image) or a configuration"),
            ("script", b"#!/bin/sh\nCONFIG_HZ=1".to_vec(), "expected a kernel (bzImage, vmlinux, Image)"),
            ("text", b"# nothing\n".to_vec(), "expected the configuration of a kernel, with lines like CONFIG_HZ=250"),
            ("other", vmlinux(&gzip(b"hello")), "expected the configuration of a kernel"),
        ] {
            let path = scratch.file(name, content);
            let said = read(&path).unwrap_err();
            assert!(said.starts_with(&format!("{}: {expected}", path.display())), "{name}: {said}");
            assert_eq!(said.lines().count(), 1);
        }
    }

    #[test]
    fn a_release_is_a_word_of_a_header_or_of_a_banner() {
        let mut kernel = vec![0; 0x400];
        kernel[0x202..0x206].copy_from_slice(b"HdrS");
        assert_eq!(release_of_bzimage(&kernel), None);
        kernel[0x20f] = 1;
        kernel[0x300..0x308].copy_from_slice(b"6.1-rt (");
        assert_eq!(release_of_bzimage(&kernel).as_deref(), Some("6.1-rt"));
        kernel[0x20e] = 0xff;
        kernel.truncate(0x3ff);
        assert_eq!(release_of_bzimage(&kernel), None, "cut off");
        assert_eq!(release_of_vmlinux(&vmlinux(b"")).as_deref(), Some("6.12.117-rt"));
        assert_eq!(release_of_vmlinux(b"Linux version 6.1\x1b[2J (x)"), None);
    }
}
