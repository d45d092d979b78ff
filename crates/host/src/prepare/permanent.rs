//! Texts that make settings of the machine permanent.

use punctual_model::PreparedSetting;
use std::fmt::Write;

/// Texts for the files of other programs, which make settings at each start of the machine.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Permanent {
    /// Lines of sysctl.d(5).
    pub sysctl: String,
    /// Lines of tmpfiles.d(5), for files that are no sysctl.
    pub tmpfiles: String,
    /// Sections of a profile of tuned (tuned.conf of tuned-profiles(7)), with all of them.
    pub tuned: String,
}

/// The texts for `settings`, with the value of each by `value`. Processes that were stopped are left out.
pub fn permanent(settings: &[PreparedSetting], value: fn(&PreparedSetting) -> &String) -> Permanent {
    let mut texts = Permanent::default();
    let (mut sysctls, mut files) = (String::new(), String::new());
    for setting in settings {
        let value = value(setting);
        // Writing to a String never fails.
        if let Some(name) = setting.what.strip_prefix("/proc/sys/") {
            let _ = writeln!(texts.sysctl, "{name} = {value}");
            // As of sysctl(8): dots between names, and a dot in a name is a slash.
            let dotted: String = name
                .chars()
                .map(|c| {
                    if c == '/' {
                        '.'
                    } else if c == '.' {
                        '/'
                    } else {
                        c
                    }
                })
                .collect();
            let _ = writeln!(sysctls, "{dotted}={value}");
        } else if setting.what.starts_with("/sys/") || setting.what.starts_with("/proc/") {
            let _ = writeln!(texts.tmpfiles, "w {} - - - - {}", setting.what, value.replace('%', "%%"));
            let _ = writeln!(files, "{}={value}", setting.what);
        }
    }
    for (section, lines) in [("sysctl", sysctls), ("sysfs", files)] {
        if !lines.is_empty() {
            let _ = write!(texts.tuned, "\n[{section}]\n{lines}");
        }
    }
    texts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_get_lines_and_processes_none() {
        let setting = |what: &str, before: &str, during: &str| PreparedSetting {
            what: what.to_owned(),
            before: before.to_owned(),
            during: during.to_owned(),
            at_end: None,
        };
        let settings = [
            setting("/proc/sys/kernel/timer_migration", "1", "0"),
            setting("/sys/kernel/mm/transparent_hugepage/enabled", "madvise", "never"),
            setting("/proc/irq/24/smp_affinity_list", "0-1", "0"),
            setting("irqbalance (process 7)", "runs", "stopped"),
        ];
        let texts = permanent(&settings, |setting| &setting.during);
        assert_eq!(texts.sysctl, "kernel/timer_migration = 0\n");
        assert_eq!(
            texts.tmpfiles,
            "w /sys/kernel/mm/transparent_hugepage/enabled - - - - never\nw /proc/irq/24/smp_affinity_list - - - - 0\n"
        );
        assert_eq!(
            texts.tuned,
            "\n[sysctl]\nkernel.timer_migration=0\n\n[sysfs]\n/sys/kernel/mm/transparent_hugepage/enabled=never\n\
             /proc/irq/24/smp_affinity_list=0\n"
        );
        let dotted = permanent(&[setting("/proc/sys/net/ipv4/conf/eth0.1/arp_filter", "0", "1")], |one| &one.during);
        assert_eq!(dotted.tuned, "\n[sysctl]\nnet.ipv4.conf.eth0/1.arp_filter=1\n");
        assert_eq!(permanent(&settings[..1], |setting| &setting.before).sysctl, "kernel/timer_migration = 1\n");
    }
}
