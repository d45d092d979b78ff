//! The way to another machine: a program of the user's choice, which starts ours there, or a copy of ours.

use super::Asked;
use model::{Site, TOOL};
use std::env::consts::ARCH;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

/// How the line begins that says whether this program is there, and what it says when it is not: which machine it is, and
/// which version is there instead.
pub(super) const GREETING: &str = "punctual-role ";
pub(super) const LACKS: &str = "lacks ";

/// For a shell over there: starts this program if it has just this version, and otherwise the bytes that come on stdin, which
/// have a name only until they are started. `$1` is the version, `$2` how many bytes, the rest is the command. One line
/// without `!`, which csh(1) would take for its own.
const SCRIPT: &str = "v=$(punctual --version 2>/dev/null); \
    if [ \"$v\" = \"$1\" ]; then shift 2; echo punctual-role has; exec punctual \"$@\"; fi; \
    echo \"punctual-role lacks $(uname -m) $v\"; \
    f=$(mktemp) || exit 1; head -c \"$2\" >\"$f\"; \
    [ \"$(wc -c <\"$f\")\" -eq \"$2\" ] || { rm -f \"$f\"; exit 1; }; \
    chmod 700 \"$f\"; exec 3<\"$f\"; rm -f \"$f\"; shift 2; exec /proc/self/fd/3 \"$@\"";

/// Options for ssh(1): never ask, notice a lost connection within 15 s, leave no master behind.
const SSH: [&str; 11] = [
    "-T",
    "-o",
    "BatchMode=yes",
    "-o",
    "ConnectTimeout=10",
    "-o",
    "ServerAliveInterval=5",
    "-o",
    "ServerAliveCountMax=3",
    "-o",
    "ControlMaster=no",
];

/// The command that starts what is asked for, and whether it greets first.
///
/// # Errors
/// When this program cannot be looked at.
pub(super) fn to(asked: &Asked<'_>) -> io::Result<(Command, bool)> {
    let mut words = vec!["leash".to_owned(), "--for".to_owned(), asked.at_most.to_string()];
    words.extend(asked.input.iter().flat_map(|input| ["--input".to_owned(), input.clone()]));
    words.push("--".to_owned());
    words.extend(asked.command.iter().cloned());
    let there = || -> io::Result<Vec<String>> {
        let size = std::fs::metadata(host::THIS_PROGRAM)?.len().to_string();
        let start = ["sh", "-c", SCRIPT, "punctual", TOOL].map(str::to_owned);
        Ok(start.into_iter().chain([size]).chain(words.iter().cloned()).collect())
    };
    let (mut command, greets) = match asked.site {
        Site::Here => {
            let mut command = Command::new(host::THIS_PROGRAM);
            command.args(&words);
            (command, false)
        }
        Site::Ssh(host) => {
            let mut command = Command::new("ssh");
            let line = there()?.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ");
            command.args(SSH).args(["--", host, &line]);
            (command, true)
        }
        Site::Exec(prefix) => {
            let mut prefix = prefix.split_whitespace();
            let mut command = Command::new(prefix.next().unwrap_or_default());
            command.args(prefix).args(there()?);
            (command, true)
        }
    };
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    // A group of its own: Ctrl-C reaches this process only, which then lets it come to its end.
    command.process_group(0);
    Ok((command, greets))
}

/// Whether this program runs on the machine that lacks it: `x86_64`, and what it has instead, if anything.
///
/// # Errors
/// One line that says what to do.
pub(super) fn can_send(lacks: &str) -> Result<(), String> {
    let (architecture, version) = lacks.split_once(' ').unwrap_or((lacks, ""));
    match version.trim() {
        _ if architecture == ARCH => Ok(()),
        "" => Err(format!(
            "there is no punctual in its PATH, and this one is for {ARCH}, not {architecture}; install {TOOL} there"
        )),
        version => Err(format!(
            "{version} is in its PATH, this is {TOOL}, and for {ARCH}, not {architecture}; install the same version there"
        )),
    }
}

/// One word for any shell: between single quotes nothing has a meaning.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_takes_a_quoted_word_for_what_it_is() {
        for word in ["", "a b", "it's", "$HOME `date` \\ \"x\"", "'", "cmd:a + b; c & d", "*", "~", "-n", "a\nb"] {
            let echo = Command::new("sh").arg("-c").arg(format!("printf %s {}", quoted(word))).output().unwrap();
            assert_eq!(String::from_utf8(echo.stdout).unwrap(), if word == "-n" { "-n" } else { word });
        }
    }

    #[test]
    fn this_program_is_sent_only_where_it_runs() {
        assert_eq!(can_send(&format!("{ARCH} ")), Ok(()));
        assert_eq!(can_send(&format!("{ARCH} punctual 0.0.1")), Ok(()));
        assert_eq!(
            can_send("s390x").unwrap_err(),
            format!("there is no punctual in its PATH, and this one is for {ARCH}, not s390x; install {TOOL} there")
        );
        assert_eq!(
            can_send("s390x punctual 0.0.1").unwrap_err(),
            format!(
                "punctual 0.0.1 is in its PATH, this is {TOOL}, and for {ARCH}, not s390x; install the same version there"
            )
        );
    }
}
