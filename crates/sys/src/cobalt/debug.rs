//! Cobalt's signal when a thread leaves primary mode, and its reason.

use crate::signal::SignalSet;
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// Asks Cobalt for a signal whenever the calling thread leaves primary mode, whose first reason is kept for
/// [`debug_reason`], or ends that. Enters primary mode. Errors: the errno: `EPERM` outside of Cobalt threads.
pub fn warn_of_switches(is_on: bool) -> Result<(), i32> {
    if is_on {
        DEBUG_REASON.with(|reason| reason.store(0, Relaxed));
        take_debug_signals();
    }
    super::calls::set_mode(if is_on { [0, WARN_OF_SWITCHES] } else { [WARN_OF_SWITCHES, 0] })
}

/// The reason of the first signal since [`warn_of_switches`]: a number of `SIGDEBUG_*` (`cobalt/uapi/signal.h`); `None`
/// without any.
pub fn debug_reason() -> Option<u8> {
    let marked = DEBUG_REASON.with(|reason| reason.load(Relaxed));
    (marked & DEBUG_MARK_BITS == DEBUG_MARK).then_some(marked.to_le_bytes()[0])
}

/// Mode bit of a thread: Cobalt sends a signal when it leaves primary mode (`XNWARN`).
const WARN_OF_SWITCHES: u32 = 0x4000;
/// Cobalt sends this signal for its own reasons, too (`SIGDEBUG`); its value has the mark then.
const DEBUG_SIGNAL: i32 = libc::SIGXCPU;
const DEBUG_MARK: u32 = 0xfccf_0000;
const DEBUG_MARK_BITS: u32 = 0xffff_0000;

thread_local! {
    /// Value of the first signal of Cobalt in this thread; 0 before. Constant and without a destructor, so that a
    /// signal handler may use it.
    static DEBUG_REASON: AtomicU32 = const { AtomicU32::new(0) };
}

/// Installs the handler of [`DEBUG_SIGNAL`] and unblocks the signal in the calling thread.
fn take_debug_signals() {
    // SAFETY: all zeroes is a valid sigaction.
    let mut action: libc::sigaction = unsafe { MaybeUninit::zeroed().assume_init() };
    action.sa_sigaction = on_debug_signal as *const () as usize;
    action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
    // SAFETY: the action is initialized, with an empty mask; the handler is safe in signals; a null old one is allowed.
    unsafe { libc::sigaction(DEBUG_SIGNAL, &raw const action, std::ptr::null_mut()) };
    SignalSet::new(DEBUG_SIGNAL).unblock();
}

/// Keeps the reason, if Cobalt is the sender. The kernel sends the signal at a limit of CPU time, too: that one has its
/// default effect, which ends the process.
extern "C" fn on_debug_signal(signal: i32, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
    // SAFETY: the kernel hands over a valid siginfo.
    let info = unsafe { &*info };
    // SAFETY: a queued signal has a value; the bytes of any other are integers, too.
    let value = unsafe { info.si_value() }.sival_ptr as usize as u64;
    let value = u32::try_from(value & 0xffff_ffff).unwrap_or(0);
    if value & DEBUG_MARK_BITS == DEBUG_MARK {
        DEBUG_REASON.with(|reason| reason.compare_exchange(0, value, Relaxed, Relaxed).ok());
        return;
    }
    crate::signal::take_by_default(signal);
    // SAFETY: raise takes any signal; both calls are safe in handlers (signal-safety(7)). It ends the process once the
    // handler has returned.
    unsafe { libc::raise(signal) };
}

#[cfg(all(test, target_pointer_width = "64"))]
mod tests {
    use super::*;

    /// Queues a signal with a value to this thread, as the kernel of Cobalt does.
    fn queue_to_this_thread(value: u32) {
        // SAFETY: all zeroes is a valid siginfo.
        let mut info: libc::siginfo_t = unsafe { MaybeUninit::zeroed().assume_init() };
        (info.si_signo, info.si_code) = (DEBUG_SIGNAL, libc::SI_QUEUE);
        // SAFETY: a siginfo has 128 bytes; its value is at 24 on 64-bit machines (`struct siginfo`).
        unsafe { (&raw mut info).cast::<u32>().wrapping_add(6).write(value) };
        let tid = crate::thread::id();
        // SAFETY: the kernel reads one siginfo, which outlives the call.
        let result = unsafe {
            libc::syscall(libc::SYS_rt_tgsigqueueinfo, std::process::id(), tid, DEBUG_SIGNAL, &raw const info)
        };
        assert_eq!(result, 0);
    }

    #[test]
    fn the_first_reason_of_cobalt_is_kept() {
        take_debug_signals();
        assert_eq!(debug_reason(), None);
        for (reason, expected) in [(3, 3), (1, 3)] {
            queue_to_this_thread(DEBUG_MARK | reason);
            assert_eq!(debug_reason(), Some(expected));
        }
    }
}
