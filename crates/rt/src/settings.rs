//! Settings of a measured thread: made, read back and compared. A difference stops the cell; there is no fallback.
#![expect(clippy::disallowed_macros, reason = "runs before the barrier or after the last cycle")]

use crate::LinkEnd;
use crate::methods::AnyWait;
use punctual_model::{CpuSet, Method, Period, Policy, Span, WakerCpu};
use punctual_sys::counter::Counter;
use std::io;

/// The required settings of a measured thread.
#[derive(Debug, Clone, Copy)]
pub struct Settings {
    /// Scheduling policy.
    pub policy: Policy,
    /// Timer slack; `None`: [`Settings::KERNEL_SLACK`] for normal policies. Real-time threads have none.
    pub timer_slack: Option<Span>,
    /// Method of waiting for due times; not used with a link.
    pub method: Method,
    /// The distance between due times.
    pub period: Period,
    /// The counter that method `noise` reads.
    pub counter: Counter,
    /// The cycle whose due time the lab can move, in a guest that was started for this.
    pub movable: Option<u64>,
}

/// A setting that could not be made, or was not kept.
#[derive(Debug, thiserror::Error)]
pub enum SettingError {
    /// The policy was refused for lack of privilege.
    #[error("{0} needs CAP_SYS_NICE (or, for other, a start without nice); run as root")]
    PolicyPrivilege(Policy),
    /// A deadline policy was refused, by the admission test or for lack of privilege.
    #[error("cannot set {policy}: {source}; {advice}")]
    NotAdmitted {
        /// The policy asked for.
        policy: Policy,
        /// The kernel's reason.
        source: io::Error,
        /// Advice to the user.
        advice: &'static str,
    },
    /// The kernel refused a setting.
    #[error("cannot set {what}: {source}")]
    Refused {
        /// The setting and its value.
        what: String,
        /// The kernel's reason.
        source: io::Error,
    },
    /// The kernel accepted a setting and reports another.
    #[error("cannot set {what} to {asked}: the kernel reports {found}")]
    NotKept {
        /// The setting.
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

/// Compares a setting with the value asked for.
pub(crate) fn expect<T: PartialEq + ToString>(what: &'static str, asked: &T, found: &T) -> Result<(), SettingError> {
    if asked == found {
        return Ok(());
    }
    Err(SettingError::NotKept { what, asked: asked.to_string(), found: found.to_string() })
}

impl Settings {
    /// The timer slack that every program starts with: 50 us (`init_task`, init/init_task.c). It is set, not inherited,
    /// because the parent process may have changed its own.
    pub const KERNEL_SLACK: Span = Span(50_000);

    /// Makes the settings that only the calling thread can make for itself; returns its way to wait, and its timer
    /// slack as read back. Errors: when one is refused, or timer slack reads back differently.
    pub(crate) fn apply(&self, link: Option<LinkEnd>) -> Result<(AnyWait, Span), SettingError> {
        punctual_sys::thread::block_signals().map_err(SettingError::refused("the signal mask"))?;
        let slack = self.apply_timer_slack()?;
        let what = if link.is_some() { "a link".to_owned() } else { format!("method {}", self.method) };
        let wait = match self.movable {
            Some(cycle) => AnyWait::movable(self.method, cycle),
            None => AnyWait::new((self.method, self.counter), self.policy, self.period, link),
        };
        let wait = wait.map_err(SettingError::refused(what))?;
        punctual_sys::memory::touch_stack();
        Ok((wait, slack))
    }

    /// Sets the timer slack of the calling thread; returns the slack that it will have under its policy.
    fn apply_timer_slack(&self) -> Result<Span, SettingError> {
        let slack = self.timer_slack.unwrap_or(Self::KERNEL_SLACK);
        let is_realtime = self.policy.is_realtime();
        // A policy inherited from the parent (chrt, systemd's CPUSchedulingPolicy=). Since 6.12 the kernel ignores the
        // timer slack of a real-time thread and reports 0 (PR_SET_TIMERSLACK, kernel/sys.c).
        let inherited = punctual_sys::sched::policy(0).map_err(SettingError::refused("policy (reading)"))?;
        if !is_realtime && inherited.is_realtime() {
            punctual_sys::sched::set_policy(0, Policy::OTHER)
                .map_err(SettingError::refused(format!("leaving the inherited policy {inherited}")))?;
        }
        punctual_sys::thread::set_timer_slack(slack).map_err(SettingError::refused(format!("timer slack {slack}")))?;
        if is_realtime {
            // No slack, whatever was set (hrtimer_nanosleep, kernel/time/hrtimer.c).
            return Ok(Span(0));
        }
        let found = punctual_sys::thread::timer_slack().map_err(SettingError::refused("timer slack (reading)"))?;
        expect("timer slack", &slack, &found)?;
        Ok(found)
    }

    /// Sets the CPUs and the policy of thread `tid`, and reads both back. Errors: when one is refused, or reads back
    /// differently.
    pub(crate) fn place(&self, tid: u32, cpus: &CpuSet) -> Result<(Policy, CpuSet), SettingError> {
        punctual_sys::sched::set_affinity(tid, cpus)
            .map_err(SettingError::refused(format!("affinity to CPU {cpus}")))?;
        let found = punctual_sys::sched::affinity(tid).map_err(SettingError::refused("affinity (reading)"))?;
        expect("affinity", cpus, &found)?;
        punctual_sys::sched::set_policy(tid, self.policy).map_err(|source| self.refused(source))?;
        let policy = punctual_sys::sched::policy(tid).map_err(SettingError::refused("policy (reading)"))?;
        expect("policy", &self.policy.to_string(), &policy.to_string())?;
        Ok((self.policy, found))
    }

    /// Sets the CPU and the policy of thread `tid`, the waker of one on `cpus`, as [`Settings::place`] does.
    pub(crate) fn place_waker(&self, tid: u32, cpus: &CpuSet) -> Result<(), SettingError> {
        let (cpu, policy) = self.method.handoff().map_or((None, None), |handoff| (handoff.cpu, handoff.policy));
        // A place has become a CPU when the thread was specified.
        let own = cpu.and_then(|cpu| if let WakerCpu::Cpu(cpu) = cpu { Some(CpuSet::from_iter([cpu])) } else { None });
        let settings = Settings { policy: policy.unwrap_or(self.policy), ..*self };
        settings.place(tid, own.as_ref().unwrap_or(cpus)).map(drop)
    }

    /// The error for a refused policy.
    fn refused(&self, source: io::Error) -> SettingError {
        let policy = self.policy;
        let advice = match (source.raw_os_error(), policy) {
            (Some(libc::EBUSY), Policy::Deadline(_)) => "the CPUs lack the bandwidth (sched(7)); reduce the runtime",
            (Some(libc::EPERM), Policy::Deadline(_)) => "run as root, on all CPUs, outside any cpuset (sched(7))",
            (Some(libc::EINVAL), Policy::Deadline(_)) => {
                "a runtime is 1024 ns or more, a period 100us to 4194304us unless changed (sched_deadline_period_min_us)"
            }
            (Some(libc::EPERM), _) => return SettingError::PolicyPrivilege(policy),
            _ => return SettingError::Refused { what: format!("policy {policy}"), source },
        };
        SettingError::NotAdmitted { policy, source, advice }
    }
}
