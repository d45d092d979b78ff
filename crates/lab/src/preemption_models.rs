//! Preemption models of a kernel, derived from its build configuration.

/// The preemption models of a kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PreemptionModels {
    /// Whether it is PREEMPT_RT.
    pub(super) is_rt: bool,
    /// Values of its argument `preempt=` (kernel-parameters.txt); empty when the model is built in.
    pub(super) arguments: Vec<String>,
}

/// Derives the models from a configuration (kernel/Kconfig.preempt, and sched_dynamic_mode() in kernel/sched/core.c).
pub(super) fn of_config(config: &str) -> PreemptionModels {
    let has = |option: &str| config.lines().any(|line| line.strip_prefix(option) == Some("=y"));
    let is_rt = has("CONFIG_PREEMPT_RT");
    let others: &[&str] = if is_rt { &[] } else { &["none", "voluntary"] };
    let lazy: &[&str] = if has("CONFIG_ARCH_HAS_PREEMPT_LAZY") { &["lazy"] } else { &[] };
    let arguments = [others, &["full"], lazy].concat();
    let is_chosen = has("CONFIG_PREEMPT_DYNAMIC") && arguments.len() > 1;
    PreemptionModels { is_rt, arguments: arguments.into_iter().filter(|_| is_chosen).map(str::to_owned).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn models_follow_from_the_configuration() {
        for (config, is_rt, arguments) in [
            ("CONFIG_PREEMPT_DYNAMIC=y\n", false, "none voluntary full"),
            ("CONFIG_PREEMPT_DYNAMIC=y\nCONFIG_ARCH_HAS_PREEMPT_LAZY=y", false, "none voluntary full lazy"),
            ("# CONFIG_PREEMPT_DYNAMIC is not set\nCONFIG_PREEMPT=y\n", false, ""),
            ("CONFIG_PREEMPT_RT=y\n", true, ""),
            ("CONFIG_PREEMPT_RT=y\nCONFIG_PREEMPT_DYNAMIC=y\nCONFIG_ARCH_HAS_PREEMPT_LAZY=y\n", true, "full lazy"),
            ("CONFIG_PREEMPT_RT=y\nCONFIG_PREEMPT_DYNAMIC=y\n", true, ""),
        ] {
            let modes = of_config(config);
            assert_eq!((modes.is_rt, modes.arguments.join(" ").as_str()), (is_rt, arguments), "{config}");
        }
    }
}
