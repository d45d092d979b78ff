//! Detection of the preemption model in force.

use super::Config;
use crate::HostFs;
use crate::kernel_log;
use punctual_model::Preemption;

/// The debug file with the models that `preempt=` accepts, the one in force in brackets (Linux 5.13).
const CHOICE: &str = "sys/kernel/debug/sched/preempt";

/// Reads the model from, in this order: the kernel itself, the debug file of `PREEMPT_DYNAMIC`, the kernel's log, the
/// command line, the name in the version, and the kernel's configuration, because each later source is less specific.
pub(super) fn read(
    fs: &HostFs,
    config: Option<&Config>,
    version: Option<&str>,
    command_line: Option<&str>,
) -> Option<Preemption> {
    let version = version?;
    if fs.number("sys/kernel/realtime") == Some(1) || version.contains("PREEMPT_RT") {
        return Some(Preemption::Realtime);
    }
    if version.contains("PREEMPT_DYNAMIC") {
        return chosen(&fs.text(CHOICE).unwrap_or_default())
            .and_then(Preemption::by_parameter)
            .or_else(|| Preemption::by_parameter(logged(&kernel_log::messages(fs))?))
            .or_else(|| asked(command_line.unwrap_or_default(), config))
            .or_else(|| configured(config))
            .or(Some(Preemption::Dynamic));
    }
    if version.contains("PREEMPT_LAZY") {
        return Some(Preemption::Lazy);
    }
    if version.split(' ').any(|word| word == "PREEMPT") {
        return Some(Preemption::Full);
    }
    // None and voluntary leave no mark in the version; only the configuration distinguishes them.
    configured(config)
}

/// The word in brackets of `none voluntary (full)`.
fn chosen(text: &str) -> Option<&str> {
    text.split_whitespace().find_map(|word| word.strip_prefix('(')?.strip_suffix(')'))
}

/// The last message of the kernel about its model (`sched_dynamic_update`, kernel/sched/core.c).
fn logged(log: &[String]) -> Option<&str> {
    let of_models = |message: &&String| !message.contains("unsupported mode");
    log.iter().rev().filter(of_models).find_map(|message| Some(message.split_once("Dynamic Preempt: ")?.1.trim()))
}

/// The reason why `preempt=asked` is not in force; `None` when it is.
pub(crate) fn why_not(fs: &HostFs, log: &[String], asked: &str) -> Option<String> {
    let choice = fs.text(CHOICE);
    match choice.as_deref().and_then(chosen).or_else(|| logged(log)) {
        Some(found) if found == asked => None,
        Some(found) => Some(match &choice {
            Some(choice) => format!("this kernel supports {} and uses {found}", choice.replace(['(', ')'], "").trim()),
            None => format!("this kernel uses {found}"),
        }),
        None => Some("the preemption model of this kernel is built in".to_owned()),
    }
}

/// The last `preempt=` of the kernel command line that the kernel accepts: it ignores unknown values.
fn asked(command_line: &str, config: Option<&Config>) -> Option<Preemption> {
    let has_lazy = config.is_some_and(|config| config.value("ARCH_HAS_PREEMPT_LAZY") == Some("y"));
    Preemption::asked_by(command_line).rfind(|model| *model != Preemption::Lazy || has_lazy)
}

/// The default of the kernel's configuration.
fn configured(config: Option<&Config>) -> Option<Preemption> {
    let config = config?;
    let options = [
        // Linux 5.16 alone has names of their own for the default of PREEMPT_DYNAMIC (kernel/Kconfig.preempt).
        ("PREEMPT_NONE_BEHAVIOUR", Preemption::None),
        ("PREEMPT_VOLUNTARY_BEHAVIOUR", Preemption::Voluntary),
        ("PREEMPT_RT", Preemption::Realtime),
        ("PREEMPT_LAZY", Preemption::Lazy),
        ("PREEMPT", Preemption::Full),
        ("PREEMPT_VOLUNTARY", Preemption::Voluntary),
        ("PREEMPT_NONE", Preemption::None),
    ];
    options.into_iter().find_map(|(option, preemption)| (config.value(option) == Some("y")).then_some(preemption))
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
            // Not known to every kernel: it may have been ignored.
            ("#1 SMP PREEMPT_DYNAMIC @0", "preempt=lazy", Some(Preemption::Dynamic)),
            ("#1 SMP PREEMPT_DYNAMIC @0", "preempt=full preempt=lazy", Some(Preemption::Full)),
            ("#1 SMP PREEMPT_LAZY @0", "", Some(Preemption::Lazy)),
            ("#1 SMP PREEMPT Tue", "", Some(Preemption::Full)),
            ("#1 SMP Debian 5.10", "", None),
        ] {
            assert_eq!(read(&fs, None, Some(version), Some(command_line)), expected, "{version}");
        }
        assert_eq!(chosen("none voluntary (full)"), Some("full"));
        assert_eq!(chosen("(none) voluntary full lazy"), Some("none"));
        assert_eq!(chosen("none voluntary full"), None);
        let log =
            ["Dynamic Preempt: none", "Dynamic Preempt: voluntary", "Dynamic Preempt: unsupported mode: lazy", "x"];
        assert_eq!(logged(&log.map(str::to_owned)), Some("voluntary"));
        assert_eq!(logged(&[]), None);
    }

    #[test]
    fn a_dynamic_kernel_without_parameter_has_its_configured_default() {
        // preempt_dynamic_init, kernel/sched/core.c, Linux 5.17 to 6.18.
        let fs = HostFs { root: "/does-not-exist".into() };
        for (config, command_line, expected) in [
            ("CONFIG_PREEMPT_BUILD=y\nCONFIG_PREEMPT_NONE=y\nCONFIG_PREEMPTION=y", "quiet", Preemption::None),
            ("CONFIG_PREEMPT_BUILD=y\nCONFIG_PREEMPT_NONE=y\nCONFIG_PREEMPTION=y", "preempt=full", Preemption::Full),
            ("CONFIG_PREEMPT_VOLUNTARY=y", "", Preemption::Voluntary),
            ("CONFIG_PREEMPT_LAZY=y", "", Preemption::Lazy),
            ("CONFIG_PREEMPT_VOLUNTARY=y", "preempt=lazy", Preemption::Voluntary),
            ("CONFIG_PREEMPT=y\nCONFIG_ARCH_HAS_PREEMPT_LAZY=y", "preempt=lazy", Preemption::Lazy),
            ("CONFIG_PREEMPT=y", "", Preemption::Full),
            ("CONFIG_PREEMPT=y\nCONFIG_PREEMPT_VOLUNTARY_BEHAVIOUR=y", "", Preemption::Voluntary),
            ("CONFIG_HZ=250", "", Preemption::Dynamic),
        ] {
            let config = Config::of(String::new(), &format!("CONFIG_PREEMPT_DYNAMIC=y\n{config}"));
            let read = read(&fs, Some(&config), Some("#1 SMP PREEMPT_DYNAMIC @0"), Some(command_line));
            assert_eq!(read, Some(expected), "{config:?} {command_line}");
        }
    }
}
