//! Parsing of the kernel's formats.

use crate::HostFs;
use punctual_model::CpuSet;

impl HostFs {
    /// A list of CPUs. An empty file is the empty set, and so is `(null)`, which `nohz_full` contains without any.
    pub(crate) fn cpu_list(&self, path: &str) -> Option<CpuSet> {
        let text = String::from_utf8(self.bytes(path).ok()?).ok()?;
        if text.trim() == "(null)" { Some(CpuSet::default()) } else { text.parse().ok() }
    }

    /// A set of CPUs as a mask: words of 32 bits in hexadecimal digits, the highest first.
    pub(super) fn cpu_mask(&self, path: &str) -> Option<CpuSet> {
        mask(&self.text(path)?)
    }

    /// A switch: 0 is off, everything else on.
    pub(super) fn switch(&self, path: &str) -> Option<bool> {
        self.number::<i64>(path).map(|value| value != 0)
    }

    /// The word in brackets of `always [madvise] never`.
    pub(super) fn chosen(&self, path: &str) -> Option<String> {
        let text = self.text(path)?;
        text.split_whitespace().find_map(|word| word.strip_prefix('[')?.strip_suffix(']')).map(str::to_owned)
    }

    /// The names in a directory, sorted; none when it cannot be listed.
    pub(super) fn names(&self, path: &str) -> Vec<String> {
        let entries = std::fs::read_dir(self.root.join(path)).into_iter().flatten().flatten();
        let mut names: Vec<_> = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.sort();
        names
    }

    /// The numbers N of the entries `PREFIX N` of a directory, ascending.
    pub(super) fn numbered(&self, path: &str, prefix: &str) -> Vec<u32> {
        let number = |name: String| name.strip_prefix(prefix)?.parse().ok();
        let mut numbers: Vec<u32> = self.names(path).into_iter().filter_map(number).collect();
        numbers.sort_unstable();
        numbers
    }
}

/// The value of the first `name : value` line.
pub(crate) fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        (key.trim() == name && !value.trim().is_empty()).then(|| value.trim())
    })
}

/// capabilities(7).
pub(crate) const CAP_IPC_LOCK: u32 = 14;
pub(crate) const CAP_SYS_NICE: u32 = 23;

/// The effective capabilities in `/proc/PID/status`, a bit each.
pub(crate) fn capabilities(status: &str) -> Option<u64> {
    u64::from_str_radix(field(status, "CapEff")?, 16).ok()
}

/// The soft limit of a resource in `/proc/PID/limits`: a number, or `unlimited`.
pub(crate) fn soft_limit<'a>(limits: &'a str, resource: &str) -> Option<&'a str> {
    limits.lines().find_map(|line| line.strip_prefix(resource)?.split_whitespace().next())
}

fn mask(text: &str) -> Option<CpuSet> {
    let mut cpus = CpuSet::default();
    for (word, index) in text.trim().rsplit(',').zip(0_u32..) {
        let bits = u32::from_str_radix(word, 16).ok()?;
        let first = index.checked_mul(32).filter(|first| *first <= CpuSet::MAX_CPU)?;
        cpus.extend((0..32).filter(|bit| bits >> bit & 1 == 1).map(|bit| first + bit));
    }
    Some(cpus)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_are_read() {
        for (text, cpus) in [
            ("3", Some("0-1")),
            ("00000000,00000003", Some("0-1")),
            ("1,80000000\n", Some("31-32")),
            ("0", Some("")),
            ("", None),
            ("g", None),
            ("1,,1", None),
            ("100000000", None),
        ] {
            assert_eq!(mask(text).map(|cpus| cpus.to_string()).as_deref(), cpus, "{text:?}");
        }
        assert_eq!(mask(&["1"; 257].join(",")), None, "more CPUs than there can be");
    }
}
