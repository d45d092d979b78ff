//! The local command that reaches another machine. It is chosen by the user.

use punctual_model::Site;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

/// Options for ssh(1): no prompts, no control master, and detection of a lost connection within 90 s. More frequent
/// probes would disturb what is measured there.
const SSH: [&str; 11] = [
    "-T",
    "-o",
    "BatchMode=yes",
    "-o",
    "ConnectTimeout=10",
    "-o",
    "ServerAliveInterval=30",
    "-o",
    "ServerAliveCountMax=3",
    "-o",
    "ControlMaster=no",
];

/// The command that starts `program` with arguments at `site`, with piped stdio.
pub(super) fn command(site: &Site, program: &str, arguments: &[String]) -> Command {
    let mut command = match site {
        Site::Here => {
            let mut command = Command::new(program);
            command.args(arguments);
            command
        }
        Site::Ssh(host) => {
            let mut command = Command::new("ssh");
            let words = std::iter::once(program).chain(arguments.iter().map(String::as_str));
            let line = words.map(quoted).collect::<Vec<_>>().join(" ");
            command.args(SSH).args(["--", host, &line]);
            command
        }
        Site::Exec(prefix) => {
            let mut prefix = prefix.split_whitespace();
            let mut command = Command::new(prefix.next().unwrap_or_default());
            command.args(prefix).arg(program).args(arguments);
            command
        }
    };
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    // A process group of its own: Ctrl-C reaches this process only, which then ends the command in order.
    command.process_group(0);
    command
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
}
