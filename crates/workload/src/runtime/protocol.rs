//! Protocol of the sleep programs: one line when ready, then one line for each sleep.
//!
//! ```text
//! ready PID VERSION                        once it has started up and slept a few times
//! BEGAN_NS ENDED_NS                        for each sleep; CLOCK_MONOTONIC, read just before and just after the call
//! ```
//!
//! The program waits for a line on its stdin before the first sleep, and sleeps forever: its parent ends it. Each line
//! is written on its own, after the second time was read. That is a copy into a pipe, which wakes no reader as long as
//! the pipe is only polled from time to time. No buffer has to be flushed, and no measured sleep is lost when the
//! program is killed.

use punctual_model::{MonoTime, Nanos, Span};

/// An invalid line.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProtocolError {
    /// Not two numbers, or no ready line.
    #[error("an invalid line `{0}`; is another program of that name started?")]
    Malformed(String),
    /// The sleep ended before it began.
    #[error("a sleep that ended {0} ns before it began; its clock is not CLOCK_MONOTONIC")]
    Backwards(u64),
    /// The sleep began before the previous one had ended, or before the release.
    #[error("a sleep that began {0} ns too early; its clock is not CLOCK_MONOTONIC")]
    TooEarly(u64),
    /// The sleep ended after its line was read.
    #[error("a sleep that ended {0} ns in the future; its clock is not CLOCK_MONOTONIC")]
    Future(u64),
}

/// One sleep, by the language's own clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sleep {
    /// Time just before the call.
    pub began: MonoTime,
    /// Time just after the call.
    pub ended: MonoTime,
}

impl Sleep {
    /// The time at which it should have ended.
    pub fn due(&self, asked: Span) -> MonoTime {
        self.began.plus(asked)
    }

    /// Its error: the time that it took beyond the requested one; negative when it was shorter.
    pub fn error(&self, asked: Span) -> Nanos {
        self.ended.since(self.due(asked))
    }
}

/// The line that a program writes when it is ready.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadyLine {
    /// The process that sleeps.
    pub pid: u32,
    /// Name and version of the language's implementation.
    pub version: String,
}

/// Parses the ready line, without its line feed.
pub(crate) fn ready(line: &str) -> Result<ReadyLine, ProtocolError> {
    let parse = || {
        let (pid, version) = line.strip_prefix("ready ")?.split_once(' ')?;
        let pid = pid.parse().ok().filter(|pid| *pid > 0)?;
        (!version.trim().is_empty()).then(|| ReadyLine { pid, version: version.trim().to_owned() })
    };
    parse().ok_or_else(|| ProtocolError::Malformed(line.to_owned()))
}

/// Parser of sleeps from pieces of text.
#[derive(Debug)]
pub(crate) struct Reader {
    /// The beginning of an incomplete line.
    torn: Vec<u8>,
    /// The earliest possible start of the next sleep.
    earliest: MonoTime,
}

/// Longest line, bytes: two numbers of at most 20 digits.
const LONGEST_LINE: usize = 64;

impl Reader {
    /// Creates a reader for a program that was released at `released`.
    pub(crate) fn new(released: MonoTime) -> Reader {
        Reader { torn: Vec::new(), earliest: released }
    }

    /// Parses the next piece, read at `now`; passes every complete sleep to `take`. Text after the last line feed is
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
mod tests {
    use super::*;

    /// The sleeps of `pieces`, read at 1000 by a reader of a program released at 100.
    fn read(pieces: &[&str]) -> Result<Vec<(u64, u64)>, ProtocolError> {
        let (mut reader, mut sleeps) = (Reader::new(MonoTime(100)), Vec::new());
        for piece in pieces {
            reader.feed(piece.as_bytes(), MonoTime(1000), |sleep| sleeps.push((sleep.began.0, sleep.ended.0)))?;
        }
        Ok(sleeps)
    }

    #[test]
    fn lines_are_read_wherever_they_are_torn() {
        for (pieces, sleeps) in [
            (&[][..], &[][..]),
            (&[""], &[]),
            (&["100 100\n"], &[(100, 100)]),
            (&["100 1000\n"], &[(100, 1000)]),
            (&["100 200\n200 300\n"], &[(100, 200), (200, 300)]),
            (&["100 200\n2", "00 300", "\n"], &[(100, 200), (200, 300)]),
            (&["100 200", "\n"], &[(100, 200)]),
            (&["100 200\n300 40"], &[(100, 200)]),
            (&["100 200\n300"], &[(100, 200)]),
        ] {
            assert_eq!(read(pieces), Ok(sleeps.to_vec()), "{pieces:?}");
        }
    }

    #[test]
    fn what_cannot_be_true_is_refused() {
        let malformed = |line: &str| ProtocolError::Malformed(line.to_owned());
        let endless = "7".repeat(LONGEST_LINE + 1);
        for (text, error) in [
            ("200 199\n", ProtocolError::Backwards(1)),
            ("99 200\n", ProtocolError::TooEarly(1)),
            ("100 200\n199 300\n", ProtocolError::TooEarly(1)),
            ("100 1001\n", ProtocolError::Future(1)),
            ("-100 200\n", malformed("-100 200")),
            ("100 -200\n", malformed("100 -200")),
            ("\n", malformed("")),
            ("100\n", malformed("100")),
            ("100 200 300\n", malformed("100 200 300")),
            ("100  200\n", malformed("100  200")),
            ("100 200\r\n", malformed("100 200")),
            ("1e2 200\n", malformed("1e2 200")),
            ("100 99999999999999999999\n", malformed("100 99999999999999999999")),
            ("ready 1 x\n", malformed("ready 1 x")),
            (&endless, malformed(&endless)),
        ] {
            assert_eq!(read(&[text]), Err(error), "{text}");
        }
    }

    #[test]
    fn a_ready_line_names_the_process_and_the_version() {
        let ready_as = |pid, version: &str| Some(ReadyLine { pid, version: version.to_owned() });
        for (line, expected) in [
            ("ready 1 go1.26.8", ready_as(1, "go1.26.8")),
            ("ready 4194304 OpenJDK 64-Bit Server VM 17", ready_as(4_194_304, "OpenJDK 64-Bit Server VM 17")),
            ("ready 0 x", None),
            ("ready -1 x", None),
            ("ready 1", None),
            ("ready 1 ", None),
            ("ready x y", None),
            ("ready", None),
            ("", None),
            ("100 200", None),
        ] {
            assert_eq!(ready(line).ok(), expected, "{line}");
        }
    }

    #[test]
    fn the_error_is_actual_minus_asked() {
        for (ended, error) in [(100, -50), (149, -1), (150, 0), (151, 1), (1_000_000_100, 999_999_950)] {
            let sleep = Sleep { began: MonoTime(100), ended: MonoTime(ended) };
            assert_eq!(sleep.error(Span(50)), Nanos(error), "{ended}");
        }
    }
}
