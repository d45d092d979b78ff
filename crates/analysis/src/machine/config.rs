//! Build configurations of two kernels: what differs, and whether their latencies are like for like.

use crate::wording::{count, things};
use punctual_model::{ConfigGroup, ConfigSummary, KernelConfig, Order, Preemption};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// An option with different values in two configurations.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct ConfigDifference {
    /// Its group.
    pub group: ConfigGroup,
    /// Its name, without `CONFIG_`.
    pub option: String,
    /// Its value in the first; `null`: not set.
    pub a: Option<String>,
    /// Its value in the second; `null`: not set.
    pub b: Option<String>,
}

/// A fact other than an option that differs between two kernels.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct KernelDifference {
    /// Its name.
    pub fact: &'static str,
    /// Its value for the first.
    pub a: String,
    /// Its value for the second.
    pub b: String,
}

/// A kernel to be compared: its configuration, and the words that a plan adds to it.
#[derive(Debug, Clone, Copy)]
pub struct ConfiguredKernel<'a> {
    /// The configuration.
    pub config: &'a KernelConfig,
    /// Words after the kernel, as in a plan; may be empty.
    pub words: &'a str,
}

/// Whether latencies of two kernels are like for like.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Likeness {
    /// Nothing differs but preemption model and co-kernel, which may be under comparison.
    LikeForLike {
        /// Those of the two that differ, in words; empty for kernels that are built alike.
        but: Vec<String>,
    },
    /// Something else differs, too.
    NotLikeForLike {
        /// What differs, in words, the most important first.
        reasons: Vec<String>,
    },
    /// A configuration is unknown.
    Unknown {
        /// The reason.
        reason: String,
    },
}

/// Everything that differs between two configurations.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct ConfigComparison {
    /// Facts besides options.
    pub facts: Vec<KernelDifference>,
    /// Options, by group, the most important first.
    pub options: Vec<ConfigDifference>,
    /// Whether the kernels are like for like.
    pub likeness: Likeness,
}

impl Likeness {
    /// Exit status of the program: 0 like for like, 2 not, 3 unknown.
    pub fn exit_status(&self) -> u8 {
        match self {
            Likeness::LikeForLike { .. } => 0,
            Likeness::NotLikeForLike { .. } => 2,
            Likeness::Unknown { .. } => 3,
        }
    }

    /// The verdict: words in capitals, and what differs.
    pub fn sentence(&self) -> String {
        match self {
            Likeness::LikeForLike { but } if but.is_empty() => "LIKE FOR LIKE: both are built alike".to_owned(),
            Likeness::LikeForLike { but } => format!("LIKE FOR LIKE but for the {}", but.join(" and the ")),
            Likeness::NotLikeForLike { reasons } => format!("NOT LIKE FOR LIKE: {}", reasons.join(", ")),
            Likeness::Unknown { reason } => format!("CANNOT TELL: {reason}"),
        }
    }
}

/// Compares two kernels.
pub fn compare_configs(a: ConfiguredKernel<'_>, b: ConfiguredKernel<'_>) -> ConfigComparison {
    let options = differing(&a.config.options, &b.config.options);
    let versions = [a, b].map(|kernel| kernel.config.version.as_deref());
    let facts: Vec<_> = version(versions).into_iter().chain(words(a.words, b.words)).collect();
    let models = [a, b].map(|kernel| model(&kernel.config.options, kernel.words));
    let others = options.iter().filter(|one| one.group == ConfigGroup::OtherOptions).count();
    let others = (others > 0).then(|| things(others.try_into().unwrap_or(u64::MAX), "other option"));
    let likeness = likeness(versions, &facts, &options, models, others);
    ConfigComparison { facts, options, likeness }
}

/// Compares the summaries of two kernels that records keep, with the words that the plan adds to each.
pub(crate) fn compare_summaries(
    (a, a_words): (&ConfigSummary, &str),
    (b, b_words): (&ConfigSummary, &str),
) -> Likeness {
    let options = differing(&a.options, &b.options);
    let versions = [a.version.as_deref(), b.version.as_deref()];
    let facts: Vec<_> = version(versions).into_iter().chain(words(a_words, b_words)).collect();
    let models = [model(&a.options, a_words), model(&b.options, b_words)];
    let others = (a.others_hash != b.others_hash)
        .then(|| format!("other options ({} and {} set)", count(a.others), count(b.others)));
    likeness(versions, &facts, &options, models, others)
}

fn likeness(
    versions: [Option<&str>; 2],
    facts: &[KernelDifference],
    options: &[ConfigDifference],
    models: [String; 2],
    others: Option<String>,
) -> Likeness {
    let mut reasons: Vec<String> =
        facts.iter().map(|KernelDifference { fact, a, b }| format!("{fact} ({a} and {b})")).collect();
    let groups: BTreeSet<ConfigGroup> = options.iter().map(|one| one.group).collect();
    let asked = [ConfigGroup::PreemptionModel, ConfigGroup::CoKernel];
    for group in groups.iter().filter(|group| !asked.contains(group) && **group < ConfigGroup::OtherOptions) {
        let of_group: Vec<_> = options.iter().filter(|one| one.group == *group).collect();
        reasons.push(match of_group[..] {
            [ConfigDifference { option, a, b, .. }] => {
                let [a, b] = [a, b].map(|value| value.as_deref().unwrap_or("not set"));
                format!("{} ({option}: {a} and {b})", group.name())
            }
            _ => format!("{} ({})", group.name(), things(of_group.len().try_into().unwrap_or(u64::MAX), "option")),
        });
    }
    reasons.extend(others);
    if !reasons.is_empty() {
        return Likeness::NotLikeForLike { reasons };
    }
    // Two unknown versions are not equal.
    if versions == [None, None] {
        return Likeness::Unknown { reason: "the versions of both kernels are unknown".to_owned() };
    }
    let [a, b] = models;
    let mut but = Vec::new();
    if a != b {
        but.push(format!("preemption model ({a} and {b})"));
    } else if groups.contains(&ConfigGroup::PreemptionModel) {
        but.push("options of the preemption model".to_owned());
    }
    if groups.contains(&ConfigGroup::CoKernel) {
        but.push(ConfigGroup::CoKernel.name().to_owned());
    }
    Likeness::LikeForLike { but }
}

/// Options with different values, by group and name; those that choose the preemption model come before those that
/// follow from it. Names of the build are left out.
fn differing(a: &BTreeMap<String, String>, b: &BTreeMap<String, String>) -> Vec<ConfigDifference> {
    let names: BTreeSet<&String> = a.keys().chain(b.keys()).collect();
    let values = names.into_iter().map(|option| (option, a.get(option), b.get(option)));
    let of = |(option, a, b): (&String, Option<&String>, Option<&String>)| {
        let group = a.into_iter().chain(b).map(|value| ConfigGroup::of(option, value)).min()?;
        let is_different = a != b && group != ConfigGroup::NamesOfTheBuild;
        is_different.then(|| ConfigDifference { group, option: option.clone(), a: a.cloned(), b: b.cloned() })
    };
    let mut options: Vec<ConfigDifference> = values.filter_map(of).collect();
    options.order_by_key(|one| (one.group, !one.option.starts_with("PREEMPT"), one.option.clone()));
    options
}

fn version([a, b]: [Option<&str>; 2]) -> Option<KernelDifference> {
    let text = |version: Option<&str>| version.unwrap_or("unknown").to_owned();
    (a != b).then(|| KernelDifference { fact: "version", a: text(a), b: text(b) })
}

/// Words that only one of both has. The argument that chooses the preemption model is left out.
fn words(a: &str, b: &str) -> Option<KernelDifference> {
    let (a, b): (Vec<_>, Vec<_>) = (without_choice(a).collect(), without_choice(b).collect());
    let only = |words: &[&str], others: &[&str]| {
        let only: Vec<_> = words.iter().filter(|word| !others.contains(word)).copied().collect();
        if only.is_empty() { "none".to_owned() } else { only.join(" ") }
    };
    let (only_a, only_b) = (only(&a, &b), only(&b, &a));
    (only_a != only_b).then_some(KernelDifference { fact: "arguments", a: only_a, b: only_b })
}

/// The words without those that choose a preemption model.
pub(crate) fn without_choice(words: &str) -> impl Iterator<Item = &str> {
    words.split_whitespace().filter(|word| !word.starts_with(PREEMPT))
}

/// Argument that chooses the model of a kernel with `PREEMPT_DYNAMIC` (kernel-parameters.txt).
const PREEMPT: &str = "preempt=";

/// The preemption model that these options and words choose.
fn model(options: &BTreeMap<String, String>, words: &str) -> String {
    let is_set = |option: &str| options.get(option).is_some_and(|value| value == "y");
    let chosen = words.split_whitespace().filter_map(|word| word.strip_prefix(PREEMPT)).next_back();
    let chosen = chosen.filter(|_| is_set("PREEMPT_DYNAMIC"));
    let built = [
        ("PREEMPT_LAZY", Preemption::Lazy),
        ("PREEMPT", Preemption::Full),
        ("PREEMPT_VOLUNTARY", Preemption::Voluntary),
        ("PREEMPT_NONE", Preemption::None),
    ];
    let built = built.into_iter().find(|(option, _)| is_set(option)).map(|(_, model)| model.name());
    let is_rt = is_set("PREEMPT_RT") || is_set("PREEMPT_RT_FULL");
    match (is_rt, chosen) {
        (true, Some(chosen)) => format!("{} {chosen}", Preemption::Realtime.name()),
        (true, None) => Preemption::Realtime.name().to_owned(),
        (false, Some(chosen)) => format!("{} {chosen}", Preemption::Dynamic.name()),
        (false, None) => built.unwrap_or("unknown").to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEAN: &str = "# Linux/x86 6.12.117 Kernel Configuration\nCONFIG_HZ=250\nCONFIG_SMP=y\nCONFIG_EXT4_FS=y\n\
                        CONFIG_LOCALVERSION=\"-lean\"\n";

    fn config(more: &str) -> KernelConfig {
        KernelConfig::parse(&format!("{LEAN}{more}\n")).unwrap()
    }

    /// The verdict on two configurations, which has to be the same on their summaries.
    fn verdict((a, a_words): (&KernelConfig, &str), (b, b_words): (&KernelConfig, &str)) -> String {
        let kernels = [(a, a_words), (b, b_words)].map(|(config, words)| ConfiguredKernel { config, words });
        let likeness = compare_configs(kernels[0], kernels[1]).likeness;
        let summaries = [a, b].map(|config| config.summary(String::new()));
        let of_summaries = compare_summaries((&summaries[0], a_words), (&summaries[1], b_words));
        assert_eq!(of_summaries.exit_status(), likeness.exit_status(), "{}", of_summaries.sentence());
        likeness.sentence()
    }

    fn of(a: &str, b: &str) -> String {
        verdict((&config(a), ""), (&config(b), ""))
    }

    #[test]
    fn only_model_and_co_kernel_may_differ() {
        let rt = "CONFIG_PREEMPT_RT=y\nCONFIG_PREEMPTION=y\nCONFIG_PREEMPT_COUNT=y\nCONFIG_TREE_RCU=y";
        for (a, b, expected) in [
            ("", "", "LIKE FOR LIKE: both are built alike"),
            ("CONFIG_BUILD_SALT=\"1\"", "CONFIG_BUILD_SALT=\"2\"", "LIKE FOR LIKE: both are built alike"),
            (
                "CONFIG_PREEMPT_NONE=y\nCONFIG_TINY_RCU=y",
                rt,
                "LIKE FOR LIKE but for the preemption model (PREEMPT_NONE and PREEMPT_RT)",
            ),
            (
                "CONFIG_PREEMPT=y\nCONFIG_DOVETAIL=y\nCONFIG_XENOMAI=y",
                rt,
                "LIKE FOR LIKE but for the preemption model (PREEMPT and PREEMPT_RT) and the co-kernel",
            ),
            ("CONFIG_PREEMPT=y", "CONFIG_PREEMPT=y\nCONFIG_EVL=y", "LIKE FOR LIKE but for the co-kernel"),
            (
                "CONFIG_PREEMPT=y",
                "CONFIG_PREEMPT=y\nCONFIG_PREEMPT_DYNAMIC=y",
                "LIKE FOR LIKE but for the options of the preemption model",
            ),
            ("", "CONFIG_KASAN=y", "NOT LIKE FOR LIKE: debugging (KASAN: not set and y)"),
            (
                "CONFIG_PREEMPT=y",
                "CONFIG_KASAN=y\nCONFIG_PROVE_LOCKING=y\nCONFIG_XFS_FS=y\nCONFIG_E1000=m",
                "NOT LIKE FOR LIKE: debugging (2 options), 2 other options",
            ),
            ("CONFIG_KVM=m", "CONFIG_KVM=y", "NOT LIKE FOR LIKE: virtualization (KVM: m and y)"),
            ("CONFIG_KVM=m", "", "NOT LIKE FOR LIKE: 1 other option"),
        ] {
            assert_eq!(of(a, b), expected);
        }
    }

    #[test]
    fn versions_and_arguments_count_but_the_choice_of_a_model_does_not() {
        let dynamic = config("CONFIG_PREEMPT_DYNAMIC=y\nCONFIG_PREEMPT=y");
        for (a, b, expected) in [
            ("preempt=none quiet", "quiet preempt=none", "LIKE FOR LIKE: both are built alike"),
            (
                "preempt=none",
                "preempt=full",
                "LIKE FOR LIKE but for the preemption model (PREEMPT_DYNAMIC none and PREEMPT_DYNAMIC full)",
            ),
            ("preempt=none", "threadirqs", "NOT LIKE FOR LIKE: arguments (none and threadirqs)"),
        ] {
            assert_eq!(verdict((&dynamic, a), (&dynamic, b)), expected);
        }
        let older = KernelConfig { version: Some("6.1.192".to_owned()), ..dynamic.clone() };
        assert_eq!(verdict((&older, ""), (&dynamic, "")), "NOT LIKE FOR LIKE: version (6.1.192 and 6.12.117)");
        let unknown = KernelConfig { version: None, ..dynamic.clone() };
        assert_eq!(verdict((&unknown, ""), (&dynamic, "")), "NOT LIKE FOR LIKE: version (unknown and 6.12.117)");
        assert_eq!(verdict((&unknown, ""), (&unknown, "")), "CANNOT TELL: the versions of both kernels are unknown");
        assert_eq!(verdict((&unknown, "a"), (&unknown, "")), "NOT LIKE FOR LIKE: arguments (a and none)");
    }

    #[test]
    fn models_are_those_of_options_and_arguments() {
        for (more, words, expected) in [
            ("CONFIG_PREEMPT_VOLUNTARY=y", "", "PREEMPT_VOLUNTARY"),
            ("CONFIG_PREEMPT=y\nCONFIG_PREEMPT_LAZY=y", "", "PREEMPT_LAZY"),
            ("CONFIG_PREEMPT=y", "preempt=none", "PREEMPT"),
            ("CONFIG_PREEMPT=y\nCONFIG_PREEMPT_DYNAMIC=y", "preempt=none preempt=full", "PREEMPT_DYNAMIC full"),
            ("CONFIG_PREEMPT_RT=y\nCONFIG_PREEMPT_LAZY=y", "", "PREEMPT_RT"),
            ("CONFIG_PREEMPT_RT=y\nCONFIG_PREEMPT_DYNAMIC=y", "preempt=lazy", "PREEMPT_RT lazy"),
            ("", "", "unknown"),
        ] {
            assert_eq!(model(&config(more).options, words), expected);
        }
    }

    #[test]
    fn options_come_by_group_and_the_choice_of_a_model_first() {
        let more = "CONFIG_AAA=y\nCONFIG_PREEMPT=y\nCONFIG_CONTEXT_TRACKING=y\nCONFIG_KASAN=y\nCONFIG_NO_HZ_FULL=y";
        let (a, b) = (config(""), config(more));
        let kernels = [&a, &b].map(|config| ConfiguredKernel { config, words: "" });
        let found = compare_configs(kernels[0], kernels[1]).options;
        let names: Vec<_> = found.iter().map(|one| one.option.as_str()).collect();
        assert_eq!(names, ["PREEMPT", "CONTEXT_TRACKING", "NO_HZ_FULL", "KASAN", "AAA"]);
        assert_eq!((found[0].a.as_deref(), found[0].b.as_deref()), (None, Some("y")));
    }
}
