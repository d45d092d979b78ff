//! Reading the build of the kernel, and the parts of it that cost time.

use super::config::Config;
use crate::HostFs;
use punctual_model::KernelFacts;

pub(super) fn read(fs: &HostFs, config: Option<&Config>, command_line: Option<&str>) -> KernelFacts {
    KernelFacts {
        config_file: config.map(|config| config.file.clone()),
        options: config.map(Config::options).unwrap_or_default(),
        tick_hz: config.and_then(|config| config.value("HZ")?.parse().ok()),
        tainted: fs.number("proc/sys/kernel/tainted"),
        tracer: fs
            .text("sys/kernel/tracing/current_tracer")
            .or_else(|| fs.text("sys/kernel/debug/tracing/current_tracer")),
        lockdep: fs.exists("proc/sys/kernel").then(|| fs.exists("proc/lockdep_stats")),
        lockdown: lockdown(fs, config, command_line),
        rcu_normal: fs.switch("sys/kernel/rcu_normal"),
        rcu_expedited: fs.switch("sys/kernel/rcu_expedited"),
        consoles: words(fs.text("sys/class/tty/console/active")),
        console_level: fs
            .text("proc/sys/kernel/printk")
            .and_then(|levels| levels.split_whitespace().next()?.parse().ok()),
        efi: fs.exists("sys/firmware").then(|| fs.exists("sys/firmware/efi")),
    }
}

/// The lockdown mode that the kernel reports, the one in brackets of `none [integrity] confidentiality`. Without
/// securityfs it follows from the build and the command line: nothing can lower that (security/lockdown/lockdown.c,
/// Linux 6.18).
fn lockdown(fs: &HostFs, config: Option<&Config>, command_line: Option<&str>) -> Option<String> {
    let own = fs.text("sys/kernel/security/lockdown");
    let chosen = own.as_deref().and_then(|text| text.split_whitespace().find_map(|word| word.strip_prefix('[')));
    if let Some(word) = chosen {
        return word.strip_suffix(']').map(str::to_owned);
    }
    let has = |option: &str| config.is_some_and(|config| config.value(option) == Some("y"));
    let asked = |level: &str| {
        let is_it = |word: &str| word.strip_prefix("lockdown=") == Some(level);
        command_line.is_some_and(|words| words.split_whitespace().any(is_it))
    };
    let is_forced = |level: &str, option: &str| has("SECURITY_LOCKDOWN_LSM_EARLY") && (has(option) || asked(level));
    match () {
        () if is_forced("confidentiality", "LOCK_DOWN_KERNEL_FORCE_CONFIDENTIALITY") => {
            Some("confidentiality".to_owned())
        }
        () if is_forced("integrity", "LOCK_DOWN_KERNEL_FORCE_INTEGRITY") => Some("integrity".to_owned()),
        () => config.filter(|_| !has("SECURITY_LOCKDOWN_LSM")).map(|_| "none".to_owned()),
    }
}

fn words(text: Option<String>) -> Vec<String> {
    text.unwrap_or_default().split_whitespace().map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_is_locked_down_as_it_was_built_or_started() {
        let fs = HostFs { root: "/does-not-exist".into() };
        let early = "CONFIG_SECURITY_LOCKDOWN_LSM=y\nCONFIG_SECURITY_LOCKDOWN_LSM_EARLY=y\n";
        let (integrity, confidentiality) =
            ("CONFIG_LOCK_DOWN_KERNEL_FORCE_INTEGRITY=y", "CONFIG_LOCK_DOWN_KERNEL_FORCE_CONFIDENTIALITY=y");
        for (config, command_line, expected) in [
            (None, None, None),
            (None, Some("lockdown=integrity"), None),
            (Some("CONFIG_HZ=250".to_owned()), Some("lockdown=integrity"), Some("none")),
            (Some(early.to_owned()), Some("quiet"), None),
            (Some(early.to_owned()), Some("quiet lockdown=integrity"), Some("integrity")),
            (Some(format!("{early}{integrity}")), None, Some("integrity")),
            (Some(format!("{early}{integrity}")), Some("lockdown=confidentiality"), Some("confidentiality")),
            (Some(format!("{early}{confidentiality}")), Some("lockdown=integrity"), Some("confidentiality")),
            // Effective only if the list of security modules contains it.
            (Some(format!("CONFIG_SECURITY_LOCKDOWN_LSM=y\n{integrity}")), None, None),
        ] {
            let config = config.as_deref().map(|text| Config::of(String::new(), text));
            assert_eq!(
                lockdown(&fs, config.as_ref(), command_line).as_deref(),
                expected,
                "{config:?} {command_line:?}"
            );
        }
    }
}
