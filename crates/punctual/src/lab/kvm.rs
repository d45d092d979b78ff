//! Whether guests can be run by the processor (KVM): that its device is there says little, so it is tried.

use super::qemu::QEMU;
use std::io::Write;
use std::process::{Command, Stdio};
use std::sync::LazyLock;

/// How long a machine that is made and let go again may take, for timeout(1); it takes a fifth of a second.
const AT_MOST: &str = "20";
const LET_IT_GO: &[u8] = b"{\"execute\":\"qmp_capabilities\"}\n{\"execute\":\"quit\"}\n";

/// Why there is no KVM here, in QEMU's words; `None` where a machine could be made. Tried once.
pub(super) fn why_not() -> Option<&'static str> {
    static TRIED: LazyLock<Option<String>> = LazyLock::new(|| tried().err());
    TRIED.as_deref()
}

fn tried() -> Result<(), String> {
    let mut command = Command::new("timeout");
    command.args([AT_MOST, QEMU, "-nodefaults", "-no-user-config", "-display", "none", "-S"]);
    command.args(["-accel", "kvm", "-cpu", "host", "-qmp", "stdio"]);
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|err| err.to_string())?;
    // One that has failed does not listen.
    let _ = child.stdin.as_mut().map(|stdin| stdin.write_all(LET_IT_GO));
    let output = child.wait_with_output().map_err(|err| err.to_string())?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let mut lines =
        said.lines().map(|line| line.trim_start_matches(QEMU).trim_start_matches(": ").trim_start_matches("error: "));
    // The first line is the reason; what follows are its consequences.
    Err(lines.next().map_or_else(|| format!("no machine within {AT_MOST} s"), str::to_owned))
}
