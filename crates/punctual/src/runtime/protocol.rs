//! What a sleeping program says: one line when it is ready, then one line a sleep.
//!
//! ```text
//! ready PID VERSION                        once it has started up and slept a few times
//! BEGAN_NS ENDED_NS                        for each sleep; CLOCK_MONOTONIC, read just before and just after the call
//! ```
//!
//! It waits for a line on its stdin before the first sleep, and sleeps for ever: whoever started it ends it. Each line is
//! written on its own, after the second time was read. That is a copy into a pipe, which wakes nobody as long as the
//! reader looks only now and then; no buffer has to be flushed, and nothing that was measured is lost when it is killed.

use model::{MonoTime, Nanos, Span};

/// A line that cannot be true.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ProtocolError {
    /// Not two numbers, or no ready line.
    #[error("`{0}`, which is not what our program says; is another program of that name started?")]
    Malformed(String),
    /// It ended before it began.
    #[error("that a sleep ended {0} ns before it began; its clock is not CLOCK_MONOTONIC")]
    Backwards(u64),
    /// It began before the one before it had ended, or before it was let go.
    #[error("that a sleep began {0} ns too early; its clock is not CLOCK_MONOTONIC")]
    TooEarly(u64),
    /// It ended after its line was read.
    #[error("that a sleep ended {0} ns from now; its clock is not CLOCK_MONOTONIC")]
    Future(u64),
}

/// One sleep, as the language's own clock has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sleep {
    /// Just before the call.
    pub(crate) began: MonoTime,
    /// Just after it.
    pub(crate) ended: MonoTime,
}

impl Sleep {
    /// When it should have ended, had it been as long as asked.
    pub(crate) fn due(&self, asked: Span) -> MonoTime {
        self.began.plus(asked)
    }

    /// Its error: how much longer it took than asked; negative when it was shorter.
    pub(crate) fn error(&self, asked: Span) -> Nanos {
        self.ended.since(self.due(asked))
    }
}

/// What a program says of itself when it is ready.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Ready {
    /// The process that sleeps.
    pub(crate) pid: u32,
    /// Name and version of the language's implementation.
    pub(crate) version: String,
}

/// Reads the ready line, without its line feed.
pub(crate) fn ready(line: &str) -> Result<Ready, ProtocolError> {
    let parse = || {
        let (pid, version) = line.strip_prefix("ready ")?.split_once(' ')?;
        let pid = pid.parse().ok().filter(|pid| *pid > 0)?;
        (!version.trim().is_empty()).then(|| Ready { pid, version: version.trim().to_owned() })
    };
    parse().ok_or_else(|| ProtocolError::Malformed(line.to_owned()))
}

/// Reads sleeps out of pieces of text.
#[derive(Debug)]
pub(crate) struct Reader {
    /// The beginning of a line whose rest has not come yet.
    torn: Vec<u8>,
    /// No sleep can have begun before.
    earliest: MonoTime,
}

/// No line of ours is longer: two numbers of 20 digits.
const LONGEST_LINE: usize = 64;

impl Reader {
    /// For a program that was let go at `released`.
    pub(crate) fn new(released: MonoTime) -> Reader {
        Reader { torn: Vec::new(), earliest: released }
    }

    /// Takes the next piece, read at `now`; hands every whole sleep to `take`. What stands behind the last line feed is
    /// kept for the next piece.
    pub(crate) fn feed(
        &mut self,
        piece: &[u8],
        now: MonoTime,
        mut take: impl FnMut(Sleep),
    ) -> Result<(), ProtocolError> {
        let mut lines = piece.split_inclusive(|byte| *byte == b'\n');
        lines.try_for_each(|part| {
            self.torn.extend_from_slice(part);
            let is_whole = part.ends_with(b"\n");
            if is_whole || self.torn.len() > LONGEST_LINE {
                let line = std::mem::take(&mut self.torn);
                take(self.sleep(&line, now)?);
            }
            Ok(())
        })
    }

    /// The sleep of one line.
    fn sleep(&mut self, line: &[u8], now: MonoTime) -> Result<Sleep, ProtocolError> {
        let text = String::from_utf8_lossy(line);
        let number = |text: &str| text.parse().ok().map(MonoTime);
        let parse = || {
            let (began, ended) = text.strip_suffix('\n')?.split_once(' ')?;
            Some(Sleep { began: number(began)?, ended: number(ended)? })
        };
        let sleep = parse().ok_or_else(|| ProtocolError::Malformed(text.trim().to_owned()))?;
        if sleep.ended < sleep.began {
            return Err(ProtocolError::Backwards(sleep.began.0 - sleep.ended.0));
        }
        if sleep.began < self.earliest {
            return Err(ProtocolError::TooEarly(self.earliest.0 - sleep.began.0));
        }
        if sleep.ended > now {
            return Err(ProtocolError::Future(sleep.ended.0 - now.0));
        }
        self.earliest = sleep.ended;
        Ok(sleep)
    }
}

#[cfg(test)]
mod tests;
