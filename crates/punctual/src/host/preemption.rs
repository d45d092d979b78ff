//! Which preemption model is in force.

use super::HostFs;
use model::Preemption;

/// Asks, in this order: the kernel's own word, the debug file of `PREEMPT_DYNAMIC`, the command line, the name in the
/// version, and the configuration in `/boot`, because each later source says less about now.
pub(super) fn read(
    fs: &HostFs,
    release: Option<&str>,
    version: Option<&str>,
    command_line: Option<&str>,
) -> Option<Preemption> {
    let version = version?;
    if fs.number("sys/kernel/realtime") == Some(1) || version.contains("PREEMPT_RT") {
        return Some(Preemption::Realtime);
    }
    if version.contains("PREEMPT_DYNAMIC") {
        return chosen(&fs.text("sys/kernel/debug/sched/preempt").unwrap_or_default())
            .or_else(|| asked(command_line.unwrap_or_default()))
            .or_else(|| configured(fs, release))
            .or(Some(Preemption::Dynamic));
    }
    if version.contains("PREEMPT_LAZY") {
        return Some(Preemption::Lazy);
    }
    if version.split(' ').any(|word| word == "PREEMPT") {
        return Some(Preemption::Full);
    }
    // None and voluntary leave no mark in the version; only the configuration tells them apart.
    configured(fs, release)
}

fn named(name: &str) -> Option<Preemption> {
    match name {
        "none" => Some(Preemption::None),
        "voluntary" => Some(Preemption::Voluntary),
        "full" => Some(Preemption::Full),
        "lazy" => Some(Preemption::Lazy),
        _ => None,
    }
}

/// The word in brackets of `none voluntary (full)`.
fn chosen(text: &str) -> Option<Preemption> {
    text.split_whitespace().find_map(|word| named(word.strip_prefix('(')?.strip_suffix(')')?))
}

/// The last `preempt=` of the kernel command line.
fn asked(command_line: &str) -> Option<Preemption> {
    command_line.split(' ').filter_map(|word| named(word.strip_prefix("preempt=")?)).next_back()
}

/// The default of the kernel's configuration, where the distribution keeps it in `/boot`.
fn configured(fs: &HostFs, release: Option<&str>) -> Option<Preemption> {
    let config = fs.text(format!("boot/config-{}", release?))?;
    let set = |option: &str| config.lines().any(|line| line.strip_suffix("=y") == Some(option));
    let options = [
        ("CONFIG_PREEMPT_RT", Preemption::Realtime),
        ("CONFIG_PREEMPT_LAZY", Preemption::Lazy),
        ("CONFIG_PREEMPT", Preemption::Full),
        ("CONFIG_PREEMPT_VOLUNTARY", Preemption::Voluntary),
        ("CONFIG_PREEMPT_NONE", Preemption::None),
    ];
    options.into_iter().find_map(|(option, preemption)| set(option).then_some(preemption))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_and_the_command_line_are_read() {
        let fs = HostFs { root: "/does-not-exist".into() };
        for (version, command_line, expected) in [
            ("#1 SMP PREEMPT_RT Debian 6.1.0", "quiet", Some(Preemption::Realtime)),
            ("#1 SMP PREEMPT_DYNAMIC @0", "preempt=none preempt=full", Some(Preemption::Full)),
            ("#1 SMP PREEMPT_DYNAMIC @0", "quiet", Some(Preemption::Dynamic)),
            ("#1 SMP PREEMPT_LAZY @0", "", Some(Preemption::Lazy)),
            ("#1 SMP PREEMPT Tue", "", Some(Preemption::Full)),
            ("#1 SMP Debian 5.10", "", None),
        ] {
            assert_eq!(read(&fs, Some("6.1"), Some(version), Some(command_line)), expected, "{version}");
        }
        assert_eq!(chosen("none voluntary (full)"), Some(Preemption::Full));
        assert_eq!(chosen("none voluntary full"), None);
    }
}
