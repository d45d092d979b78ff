//! The command that reaches another machine and starts this program, or a copy of it, there.
//!
//! The command is chosen by the user.

use super::RoleCommand;
use model::{Site, TOOL};
use std::env::consts::ARCH;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

/// Prefixes of the handshake line: it shows whether this version is installed there, and otherwise the architecture and
/// the installed version.
pub(super) const HANDSHAKE: &str = "punctual-role ";
pub(super) const LACKS: &str = "lacks ";

/// Shell script for the other machine: it starts this program if the same version is installed, and otherwise the
/// program received on stdin, from an unlinked temporary file. `$1` is the version, `$2` the size in bytes, the rest is
/// the command. It is one line without `!`, which csh(1) would expand.
const SCRIPT: &str = "v=$(punctual --version 2>/dev/null); \
    if [ \"$v\" = \"$1\" ]; then shift 2; echo punctual-role has; exec punctual \"$@\"; fi; \
    echo \"punctual-role lacks $(uname -m) $v\"; \
    f=$(mktemp) || exit 1; head -c \"$2\" >\"$f\"; \
    [ \"$(wc -c <\"$f\")\" -eq \"$2\" ] || { rm -f \"$f\"; exit 1; }; \
    chmod 700 \"$f\"; exec 3<\"$f\"; rm -f \"$f\"; shift 2; exec /proc/self/fd/3 \"$@\"";

/// Options for ssh(1): no prompts, detection of a lost connection within 15 s, no control master.
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

/// The command that starts the role, and whether it sends a handshake.
///
/// # Errors
/// If the size of this program cannot be read.
pub(super) fn command(role: &RoleCommand<'_>) -> io::Result<(Command, bool)> {
    let mut words = vec!["supervise-role".to_owned(), "--for".to_owned(), role.at_most.to_string()];
    words.extend(role.input.iter().flat_map(|input| ["--input".to_owned(), input.clone()]));
    words.push("--".to_owned());
    words.extend(role.command.iter().cloned());
    let there = || -> io::Result<Vec<String>> {
        let size = std::fs::metadata(host::THIS_PROGRAM)?.len().to_string();
        let start = ["sh", "-c", SCRIPT, "punctual", TOOL].map(str::to_owned);
        Ok(start.into_iter().chain([size]).chain(words.iter().cloned()).collect())
    };
    let (mut command, has_handshake) = match role.site {
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
    // A process group of its own: Ctrl-C reaches this process only, which then ends the role in order.
    command.process_group(0);
    Ok((command, has_handshake))
}

/// Checks that this program can run on a machine that lacks it; `lacks` is the architecture (`x86_64`) and the
/// installed version, if any.
///
/// # Errors
/// One line with advice.
pub(super) fn can_send(lacks: &str) -> Result<(), String> {
    let (architecture, version) = lacks.split_once(' ').unwrap_or((lacks, ""));
    match version.trim() {
        _ if architecture == ARCH => Ok(()),
        "" => Err(format!(
            "no punctual in its PATH, and this binary is for {ARCH}, not {architecture}; install {TOOL} there"
        )),
        version => Err(format!(
            "{version} is in its PATH, this is {TOOL} for {ARCH}, not {architecture}; install the same version there"
        )),
    }
}

/// A word quoted for any shell: between single quotes no character is special.
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
            format!("no punctual in its PATH, and this binary is for {ARCH}, not s390x; install {TOOL} there")
        );
        assert_eq!(
            can_send("s390x punctual 0.0.1").unwrap_err(),
            format!(
                "punctual 0.0.1 is in its PATH, this is {TOOL} for {ARCH}, not s390x; install the same version there"
            )
        );
    }
}
