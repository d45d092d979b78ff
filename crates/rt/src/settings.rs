//! Settings of a measured thread: made, read back and compared. A difference stops the cell; it never falls back.
#![expect(clippy::disallowed_macros, reason = "runs before the barrier or after the last cycle")]

use crate::clock::Waiting;
use crate::sys;
use model::{CpuSet, Method, Policy, Span};
use std::io;

/// What a measured thread has to be like.
#[derive(Debug, Clone, Copy)]
pub struct Settings {
    /// How it is scheduled.
    pub policy: Policy,
    /// Its timer slack; `None`: [`Settings::KERNEL_SLACK`] for normal policies. Real-time threads have none.
    pub timer_slack: Option<Span>,
    /// How it waits.
    pub method: Method,
}

/// A setting that could not be made, or was not kept.
#[derive(Debug, thiserror::Error)]
pub enum SettingError {
    /// The policy was refused for want of privilege.
    #[error("{0} needs CAP_SYS_NICE (or, for other, a start without nice); run as root")]
    PolicyPrivilege(Policy),
    /// The kernel refused a setting.
    #[error("cannot set {what}: {source}")]
    Refused {
        /// Which setting and value.
        what: String,
        /// The kernel's reason.
        source: io::Error,
    },
    /// The kernel accepted a setting and reports another.
    #[error("{what} was set to {asked}, but the kernel reports {found}; measuring would not be what was asked")]
    NotKept {
        /// Which setting.
        what: &'static str,
        /// The value asked for.
        asked: String,
        /// The value read back.
        found: String,
    },
}

impl SettingError {
    /// The error for a setting that the kernel refused.
    pub fn refused(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let what = what.into();
        move |source| SettingError::Refused { what, source }
    }
}

/// Compares a setting with what was asked.
pub(crate) fn expect<T: PartialEq + ToString>(what: &'static str, asked: &T, found: &T) -> Result<(), SettingError> {
    if asked == found {
        return Ok(());
    }
    Err(SettingError::NotKept { what, asked: asked.to_string(), found: found.to_string() })
}

impl Settings {
    /// The timer slack that every program starts with: 50 us (`init_task`, init/init_task.c). It is set, not
    /// inherited, because whoever started us may have changed theirs.
    pub const KERNEL_SLACK: Span = Span(50_000);

    /// Makes the settings that only the calling thread can make for itself; returns what it waits by, and its timer slack
    /// as read back.
    ///
    /// # Errors
    /// When one is refused, or timer slack reads back differently.
    pub(crate) fn apply(&self) -> Result<(Waiting, Span), SettingError> {
        sys::thread::block_signals().map_err(SettingError::refused("the signal mask"))?;
        let slack = self.timer_slack.unwrap_or(Self::KERNEL_SLACK);
        sys::thread::set_timer_slack(slack).map_err(SettingError::refused(format!("timer slack {slack}")))?;
        let found = sys::thread::timer_slack().map_err(SettingError::refused("timer slack (reading)"))?;
        expect("timer slack", &slack, &found)?;
        let waiting = Waiting::by(self.method).map_err(SettingError::refused(format!("method {}", self.method)))?;
        sys::memory::touch_stack();
        // A real-time thread has none, whatever was set (hrtimer_nanosleep, kernel/time/hrtimer.c).
        Ok((waiting, if self.policy.is_realtime() { Span(0) } else { found }))
    }

    /// Pins thread `tid` to `cpu`, gives it its policy, and reads both back.
    ///
    /// # Errors
    /// When one is refused, or reads back differently.
    pub(crate) fn place(&self, tid: u32, cpu: u32) -> Result<(Policy, CpuSet), SettingError> {
        let cpus: CpuSet = [cpu].into_iter().collect();
        sys::sched::set_affinity(tid, &cpus).map_err(SettingError::refused(format!("affinity to CPU {cpu}")))?;
        let found = sys::sched::affinity(tid).map_err(SettingError::refused("affinity (reading)"))?;
        expect("affinity", &cpus, &found)?;
        sys::sched::set_policy(tid, self.policy).map_err(|source| match source.raw_os_error() {
            Some(libc::EPERM) => SettingError::PolicyPrivilege(self.policy),
            _ => SettingError::Refused { what: format!("policy {}", self.policy), source },
        })?;
        let found = sys::sched::policy(tid).map_err(SettingError::refused("policy (reading)"))?;
        expect("policy", &self.policy.to_string(), &found.to_string())?;
        Ok((self.policy, cpus))
    }
}
