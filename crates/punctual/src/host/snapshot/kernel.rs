//! Reading how the kernel was built, and what of it costs time.

use super::config::Config;
use crate::host::HostFs;
use model::KernelFacts;

pub(super) fn read(fs: &HostFs, config: Option<&Config>) -> KernelFacts {
    KernelFacts {
        config_file: config.map(|config| config.file.clone()),
        options: config.map(Config::options).unwrap_or_default(),
        tick_hz: config.and_then(|config| config.value("HZ")?.parse().ok()),
        tainted: fs.number("proc/sys/kernel/tainted"),
        tracer: fs
            .text("sys/kernel/tracing/current_tracer")
            .or_else(|| fs.text("sys/kernel/debug/tracing/current_tracer")),
        lockdep: fs.exists("proc/sys/kernel").then(|| fs.exists("proc/lockdep_stats")),
        rcu_normal: fs.switch("sys/kernel/rcu_normal"),
        rcu_expedited: fs.switch("sys/kernel/rcu_expedited"),
        consoles: words(fs.text("sys/class/tty/console/active")),
        console_level: fs
            .text("proc/sys/kernel/printk")
            .and_then(|levels| levels.split_whitespace().next()?.parse().ok()),
        efi: fs.exists("sys/firmware").then(|| fs.exists("sys/firmware/efi")),
    }
}

fn words(text: Option<String>) -> Vec<String> {
    text.unwrap_or_default().split_whitespace().map(str::to_owned).collect()
}
