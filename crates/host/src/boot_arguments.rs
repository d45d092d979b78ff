//! Kernel command line arguments without effect, as far as the kernel reports it.

use super::snapshot::preemption;
use super::{HostFs, kernel_log};
use punctual_model::CpuSet;

/// One sentence with the reason for each kernel argument that has no effect; words in `ours` are skipped.
pub fn without_effect(ours: &str) -> Vec<String> {
    let fs = HostFs::running();
    let line = fs.text("proc/cmdline").unwrap_or_default();
    let ours: Vec<_> = ours.split_whitespace().collect();
    let words: Vec<_> = line.split_whitespace().filter(|word| !ours.contains(word)).collect();
    if words.is_empty() {
        return Vec::new();
    }
    complaints(&fs, &words, &kernel_log::messages(&fs))
}

fn complaints(fs: &HostFs, words: &[&str], log: &[String]) -> Vec<String> {
    let last = |key: &str| words.iter().rev().find_map(|word| Some((*word, word.strip_prefix(key)?)));
    let mut complaints = Vec::new();
    if let Some((word, asked)) = last("preempt=")
        && let Some(why) = preemption::why_not(fs, log, asked)
    {
        complaints.push(format!("{word} has no effect: {why}"));
    }
    for (key, file) in [("isolcpus=", "isolated"), ("nohz_full=", "nohz_full")] {
        let Some((word, asked)) = last(key) else { continue };
        let set = fs.cpu_list(&format!("sys/devices/system/cpu/{file}")).unwrap_or_default();
        if let Some(missing) = not_in(asked, &set) {
            complaints.push(format!("{word} has no effect on {missing}, which /sys/devices/system/cpu/{file} lacks"));
        }
    }
    let known: Vec<_> = complaints.iter().filter_map(|said| said.split(' ').next()).map(str::to_owned).collect();
    let unknown = log.iter().filter_map(|message| unknown_words(message)).flatten();
    let unknown = unknown.filter(|word| words.contains(word) && known.iter().all(|before| before != word));
    complaints.extend(unknown.map(|word| format!("{word} has no effect: unknown to this kernel")));
    complaints
}

/// The CPUs that were asked for and are not in `set`, as text. Of `isolcpus=` only the scheduler domains are visible.
fn not_in(asked: &str, set: &CpuSet) -> Option<String> {
    let is_flag = |word: &&str| word.starts_with(|c: char| c.is_ascii_alphabetic());
    let flags: Vec<_> = asked.split(',').filter(is_flag).collect();
    if !flags.is_empty() && !flags.contains(&"domain") {
        return None;
    }
    let list = asked.split(',').filter(|word| !is_flag(word)).collect::<Vec<_>>().join(",");
    match list.parse::<CpuSet>() {
        Ok(asked) => {
            Some(asked.minus(set)).filter(|missing| !missing.is_empty()).map(|missing| format!("CPU {missing}"))
        }
        // Lists may have forms of their own, like 0-8:2/4 (kernel-parameters.rst).
        Err(_) => set.is_empty().then(|| format!("CPUs {list}")),
    }
}

/// The unknown words that the kernel passed on (`print_unknown_bootoptions`, init/main.c, since 5.14).
fn unknown_words(message: &str) -> Option<impl Iterator<Item = &str>> {
    let (_, rest) = message.split_once("Unknown kernel command line parameters \"")?;
    Some(rest.split('"').next()?.split_whitespace())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Scratch;

    #[test]
    fn words_that_did_nothing_are_named_with_what_the_kernel_says() {
        let scratch = Scratch::make();
        scratch.file("sys/kernel/debug/sched/preempt", "none (voluntary) full \n");
        scratch.file("sys/devices/system/cpu/isolated", "2-3\n");
        scratch.file("sys/devices/system/cpu/nohz_full", "  (null)\n");
        let here = scratch.machine();
        let unknown = "Unknown kernel command line parameters \"nokaslr frobnicate=1 preempt=lazy\", will be passed to user space.";
        let said = |words: &str, log: &[&str]| {
            let log: Vec<_> = log.iter().map(|line| (*line).to_owned()).collect();
            complaints(&here, &words.split(' ').collect::<Vec<_>>(), &log)
        };
        let lazy = "preempt=lazy has no effect: this kernel supports none voluntary full and uses voluntary";
        for (words, log, expected) in [
            ("preempt=voluntary quiet", vec![], vec![]),
            ("preempt=voluntary preempt=lazy", vec![unknown], vec![lazy]),
            (
                "preempt=ful",
                vec![],
                vec!["preempt=ful has no effect: this kernel supports none voluntary full and uses voluntary"],
            ),
            ("frobnicate=1", vec!["other", unknown], vec!["frobnicate=1 has no effect: unknown to this kernel"]),
            ("threadirqs", vec![unknown], vec![]),
            ("isolcpus=2-3", vec![], vec![]),
            ("isolcpus=managed_irq,0", vec![], vec![]),
            ("isolcpus=domain,managed_irq,3", vec![], vec![]),
            (
                "isolcpus=0",
                vec![],
                vec!["isolcpus=0 has no effect on CPU 0, which /sys/devices/system/cpu/isolated lacks"],
            ),
            (
                "nohz_full=1",
                vec![],
                vec!["nohz_full=1 has no effect on CPU 1, which /sys/devices/system/cpu/nohz_full lacks"],
            ),
        ] {
            assert_eq!(said(words, &log), expected, "{words}");
        }
        // A kernel without the debug file logs its model; one that logs nothing does not have the argument.
        std::fs::remove_dir_all(scratch.path("sys/kernel/debug")).unwrap();
        assert_eq!(said("preempt=full", &["Dynamic Preempt: none", "Dynamic Preempt: full"]), Vec::<String>::new());
        assert_eq!(
            said("preempt=full", &["Dynamic Preempt: none"]),
            ["preempt=full has no effect: this kernel uses none"]
        );
        assert_eq!(
            said("preempt=full", &[]),
            ["preempt=full has no effect: the preemption model of this kernel is built in"]
        );
    }
}
