//! Lines as a program writes them, and as it must not.

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
    let ready_as = |pid, version: &str| Some(Ready { pid, version: version.to_owned() });
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
