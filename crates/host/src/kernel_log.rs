//! The kernel's log, as far as it is kept and readable.

use super::HostFs;

/// Messages of the log, the oldest first; none where it may not be read (`dmesg_restrict`), and none of a recorded
/// machine.
pub(super) fn messages(fs: &HostFs) -> Vec<String> {
    let text = if fs.is_running() { punctual_sys::boot::kernel_log().unwrap_or_default() } else { Vec::new() };
    String::from_utf8_lossy(&text).lines().map(|line| message(line).to_owned()).collect()
}

/// The message of `<PRIORITY>[TIME][CALLER] MESSAGE`, where time and caller depend on the configuration
/// (`print_prefix`, kernel/printk/printk.c).
fn message(line: &str) -> &str {
    let mut rest = line.split_once('>').map_or(line, |(_, rest)| rest);
    let is_prefix = |words: &str| words.chars().all(|c| c.is_ascii_digit() || " .TC".contains(c));
    while let Some((_, after)) =
        rest.strip_prefix('[').and_then(|rest| rest.split_once(']')).filter(|(words, _)| is_prefix(words))
    {
        rest = after;
    }
    rest.strip_prefix(' ').unwrap_or(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_what_follows_the_prefix() {
        for (line, expected) in [
            ("<6>[    0.424069] pci_root PNP0A03:00: host bridge; ok", "pci_root PNP0A03:00: host bridge; ok"),
            ("<6>[    5.140900][    T1] Dynamic Preempt: full", "Dynamic Preempt: full"),
            ("<12>[   99.000001][   C12] [drm] ready", "[drm] ready"),
            ("<4>Command line: a>b", "Command line: a>b"),
            ("", ""),
        ] {
            assert_eq!(message(line), expected);
        }
        assert_eq!(messages(&HostFs { root: "/does-not-exist".into() }), Vec::<String>::new());
    }
}
