//! Scheduling of a guest's threads on the host: its vCPUs, its I/O threads, and the emulator itself.

use crate::words::word::words;
use crate::{CpuSet, CpuSetError, Policy, PolicyError};
use std::fmt;

words! {
    /// Kinds of threads of QEMU, as libvirt divides them (`vcpusched`, `iothreadsched`, `emulatorsched`).
    json GuestThreadKind {
        /// Runs the guest's code, one thread for each of its CPUs.
        Vcpu = "vcpu",
        /// Serves its disks (`iothread`).
        Io = "io",
        /// Everything else: the main loop with devices and timers, and its helpers.
        Emulator = "emulator",
    }
}

/// Scheduling of the threads of one kind. What is `None` stays as QEMU has it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct GuestThreadSettings {
    /// Scheduling policy.
    pub policy: Option<Policy>,
    /// CPUs of the host.
    pub cpus: Option<CpuSet>,
}

/// Scheduling of all threads of a guest.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct GuestThreads {
    /// Threads that run the guest's code.
    pub vcpu: GuestThreadSettings,
    /// Threads that serve its disks.
    pub io: GuestThreadSettings,
    /// All other threads.
    pub emulator: GuestThreadSettings,
}

/// Parse error of a setting.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GuestThreadsError {
    /// An invalid policy.
    #[error("{key}: {source}")]
    Policy {
        /// The setting.
        key: String,
        /// Reason.
        source: PolicyError,
    },
    /// An invalid list of CPUs.
    #[error("{key}: {source}")]
    Cpus {
        /// The setting.
        key: String,
        /// Reason.
        source: CpuSetError,
    },
    /// An empty list of CPUs.
    #[error("invalid {0}: expected CPUs, like 0,2-3")]
    NoCpus(String),
    /// The same setting twice.
    #[error("duplicate `{0}`; name one value, or one kernel for each")]
    Twice(String),
}

impl GuestThreads {
    /// Settings of the threads of a kind.
    pub fn of(&self, kind: GuestThreadKind) -> &GuestThreadSettings {
        match kind {
            GuestThreadKind::Vcpu => &self.vcpu,
            GuestThreadKind::Io => &self.io,
            GuestThreadKind::Emulator => &self.emulator,
        }
    }

    /// Settings of the threads of a kind, to be changed.
    pub fn of_mut(&mut self, kind: GuestThreadKind) -> &mut GuestThreadSettings {
        match kind {
            GuestThreadKind::Vcpu => &mut self.vcpu,
            GuestThreadKind::Io => &mut self.io,
            GuestThreadKind::Emulator => &mut self.emulator,
        }
    }

    /// Whether nothing is set.
    pub fn is_empty(&self) -> bool {
        *self == GuestThreads::default()
    }

    /// Takes a word like `vcpu_policy=fifo:50` or `emulator_cpus=0`; returns whether it is one. Errors: if its value is
    /// invalid, or was set before.
    pub(crate) fn take(&mut self, word: &str) -> Result<bool, GuestThreadsError> {
        let Some((key, value)) = word.split_once('=') else { return Ok(false) };
        for kind in GuestThreadKind::ALL {
            let settings = self.of_mut(kind);
            let was_set = match key.strip_prefix(kind.name()) {
                Some("_policy") => {
                    let failed = |source| GuestThreadsError::Policy { key: key.to_owned(), source };
                    settings.policy.replace(value.parse().map_err(failed)?).is_some()
                }
                Some("_cpus") => {
                    let failed = |source| GuestThreadsError::Cpus { key: key.to_owned(), source };
                    let cpus: CpuSet = value.parse().map_err(failed)?;
                    if cpus.is_empty() {
                        return Err(GuestThreadsError::NoCpus(key.to_owned()));
                    }
                    settings.cpus.replace(cpus).is_some()
                }
                _ => continue,
            };
            return if was_set { Err(GuestThreadsError::Twice(key.to_owned())) } else { Ok(true) };
        }
        Ok(false)
    }
}

/// The words of all settings, in a fixed order, one blank between two.
impl fmt::Display for GuestThreads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = GuestThreadKind::ALL.into_iter().flat_map(|kind| {
            let (name, settings) = (kind.name(), self.of(kind));
            let policy = settings.policy.map(|policy| format!("{name}_policy={policy}"));
            let cpus = settings.cpus.as_ref().map(|cpus| format!("{name}_cpus={cpus}"));
            policy.into_iter().chain(cpus)
        });
        f.pad(&words.collect::<Vec<_>>().join(" "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(words: &str) -> Result<GuestThreads, GuestThreadsError> {
        let mut threads = GuestThreads::default();
        for word in words.split_whitespace() {
            assert!(threads.take(word)?, "{word}");
        }
        Ok(threads)
    }

    #[test]
    fn settings_print_in_one_order() {
        let words = "vcpu_policy=fifo:50 vcpu_cpus=1-3 io_policy=rr:10 io_cpus=0 emulator_policy=other emulator_cpus=0";
        assert_eq!(of(words).unwrap().to_string(), words);
        let reversed: Vec<_> = words.split(' ').rev().collect();
        assert_eq!(of(&reversed.join(" ")).unwrap().to_string(), words);
        assert!(GuestThreads::default().is_empty() && GuestThreads::default().to_string().is_empty());
    }

    #[test]
    fn other_words_are_left_to_the_kernel_and_wrong_values_are_named() {
        for word in ["quiet", "vcpu", "vcpu_polic=fifo:50", "isolcpus=1", "xvcpu_cpus=1", "vcpu_policy"] {
            assert_eq!(GuestThreads::default().take(word), Ok(false), "{word}");
        }
        for (words, begin) in [
            ("vcpu_policy=fifo:0", "vcpu_policy: invalid policy `fifo:0`"),
            ("io_cpus=x", "io_cpus: "),
            ("io_cpus=", "invalid io_cpus: expected CPUs"),
            ("vcpu_cpus=1 vcpu_cpus=1", "duplicate `vcpu_cpus`"),
        ] {
            let message = of(words).unwrap_err().to_string();
            assert!(message.starts_with(begin), "{message}");
        }
    }
}
