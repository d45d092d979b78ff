//! Files that make confirmed settings permanent, and files that undo them. Nothing is installed.

use crate::cli::commands::new_directory::NewDirectory;
use crate::cli::terminal::note;
use punctual_analysis::tune::{Tuned, TunedKnob};
use punctual_model::{Entry, Kernel, Knob, Plan, Policy, PreparedSetting, Span};
use std::fmt::Write;
use std::path::Path;

/// The file of a profile of tuned, below its directory.
const PROFILE: &str = "tuned/punctual/tuned.conf";

/// Which value of a setting a file has.
type Value = fn(&PreparedSetting) -> &String;

/// Writes the files of the knobs that were confirmed to be better. Errors: if there is nothing to keep, or the
/// directory cannot be made.
pub(super) fn write(dir: &Path, plan: &Plan, tuned: &Tuned, confirmed: &[Entry]) -> Result<(), String> {
    let advised = tuned.advised();
    if advised.is_empty() {
        note("nothing was confirmed to be better: there is nothing to keep");
        return Ok(());
    }
    let value = |knob: &Knob| {
        let better = advised.iter().find(|one| one.knob.key == knob.key);
        better.map_or(knob.as_is.as_str(), |one| &one.knob.changed).to_owned()
    };
    let values: Vec<String> = plan.knobs.iter().map(value).collect();
    let kept = plan.with_values(&values.iter().map(String::as_str).collect::<Vec<_>>())?;
    let as_is = plan.with_knobs(&vec![false; plan.knobs.len()])?;
    let new = NewDirectory::make(dir)?;
    new.write("plan.toml", kept.to_toml().as_bytes(), false)?;
    let settings = settings(&advised, plan, tuned, confirmed);
    let mut written = Vec::new();
    let sides: [(_, _, Value); 2] =
        [("keep", &kept, |setting| &setting.during), ("undo", &as_is, |setting| &setting.before)];
    for (which, plan, value) in sides {
        let files = punctual_host::permanent(&settings, value);
        let is_keep = which == "keep";
        let profile = Some(files.tuned).filter(|text| is_keep && !text.is_empty());
        let profile =
            profile.map_or(String::new(), |text| format!("[main]\nsummary=confirmed by punctual tune\n{text}"));
        for (name, text) in [
            ("sysctl.conf", files.sysctl),
            ("tmpfiles.conf", files.tmpfiles),
            (PROFILE, profile),
            ("service.conf", service(&advised, plan)),
            ("cmdline", command_line(&advised, plan)),
        ] {
            if !text.is_empty() {
                new.write(&format!("{which}/{name}"), text.as_bytes(), false)?;
                written.push(format!("{which}/{name}"));
            }
        }
    }
    new.write("README", readme(&advised, tuned, &written).as_bytes(), false)?;
    new.finish()?;
    note(format_args!("how to keep it: {}", dir.join("README").display()));
    Ok(())
}

/// Settings of the machine that the advised values make, as the cells of the confirmation recorded them.
fn settings(advised: &[&TunedKnob], plan: &Plan, tuned: &Tuned, confirmed: &[Entry]) -> Vec<PreparedSetting> {
    let cells = punctual_analysis::tune::confirmation(&plan.knobs, &tuned.screening.candidates());
    let mut settings: Vec<PreparedSetting> = Vec::new();
    for knob in advised {
        // Every other knob is as it is there.
        let values = plan
            .knobs
            .iter()
            .map(|other| if other.key == knob.knob.key { knob.knob.changed.as_str() } else { other.as_is.as_str() });
        let values: Vec<&str> = values.collect();
        let cell = cells.iter().position(|cell| *cell == values);
        let entry = confirmed.iter().find(|entry| Some(entry.planned.cell_index) == cell);
        for setting in entry.into_iter().flat_map(|entry| &entry.record.prepared) {
            if settings.iter().all(|known| known.what != setting.what) {
                settings.push(setting.clone());
            }
        }
    }
    settings
}

fn has(advised: &[&TunedKnob], key: &str) -> bool {
    advised.iter().any(|knob| knob.knob.key == key)
}

/// A drop-in of a service (systemd.exec(5)) with the properties of the program that `plan` gives it.
fn service(advised: &[&TunedKnob], plan: &Plan) -> String {
    let mut text = String::new();
    if let (true, [policy]) = (has(advised, "policy"), &plan.axes.policy[..]) {
        let (name, priority, nice) = match policy {
            Policy::Other(nice) => ("other", None, Some(nice.get())),
            Policy::Batch => ("batch", None, None),
            Policy::Idle => ("idle", None, None),
            Policy::Fifo(priority) => ("fifo", Some(priority.get()), None),
            Policy::RoundRobin(priority) => ("rr", Some(priority.get()), None),
            // systemd cannot set it.
            Policy::Deadline(_) => ("", None, None),
        };
        if !name.is_empty() {
            let _ = writeln!(text, "CPUSchedulingPolicy={name}");
        }
        let _ = priority.map(|priority| writeln!(text, "CPUSchedulingPriority={priority}"));
        let _ = nice.map(|nice| writeln!(text, "Nice={nice}"));
    }
    if let (true, Some(Span(ns))) = (has(advised, "timer_slack"), plan.conditions.timer_slack) {
        let _ = writeln!(text, "TimerSlackNSec={ns}");
    }
    if let (true, Some(cpus)) = (has(advised, "cpus"), &plan.cpus) {
        let _ = writeln!(text, "CPUAffinity={cpus}");
    }
    if text.is_empty() { text } else { format!("[Service]\n{text}") }
}

/// The words of the kernel's command line that `plan` boots with.
fn command_line(advised: &[&TunedKnob], plan: &Plan) -> String {
    let is_about_it = advised.iter().any(|knob| knob.knob.key == "kernel" || knob.knob.key.starts_with(Knob::BOOT));
    match &plan.axes.kernel[..] {
        [Kernel::Lab(kernel)] if is_about_it => format!("{}\n", kernel.arguments),
        _ => String::new(),
    }
}

fn readme(advised: &[&TunedKnob], tuned: &Tuned, written: &[String]) -> String {
    let mut text = String::from("Settings that were confirmed to be better, and how to keep or undo them.\n\n");
    advised.iter().for_each(|knob| text += &format!("{}.\n", knob.sentence));
    if let Some(added) = &tuned.added {
        let _ = writeln!(text, "\n{}.", added.sentence);
    }
    text += "\nplan.toml measures with them: punctual run plan.toml\n";
    for (name, how) in [
        ("sysctl.conf", "copy it to /etc/sysctl.d/99-punctual.conf; sysctl --system"),
        ("tmpfiles.conf", "copy it to /etc/tmpfiles.d/99-punctual.conf; systemd-tmpfiles --create"),
        (PROFILE, "instead of both, with tuned: copy the directory to /etc/tuned; tuned-adm profile punctual"),
        ("service.conf", "copy it to /etc/systemd/system/NAME.service.d/99-punctual.conf; systemctl daemon-reload"),
        ("cmdline", "words of the kernel's command line; in GRUB_CMDLINE_LINUX of /etc/default/grub; update-grub"),
    ] {
        if written.iter().any(|file| *file == format!("keep/{name}")) {
            let _ = writeln!(text, "keep/{name}: {how}");
        }
    }
    text += "To undo: remove the copies, and apply the files of undo/ once in the same way. With tuned: note the profile that\n\
             tuned-adm active names before, and choose it again.\n";
    for knob in advised {
        let Knob { key, as_is, changed, .. } = &knob.knob;
        match key.as_str() {
            "kernel" => text += &format!("kernel: boot `{changed}` instead of `{as_is}`.\n"),
            "period" | "method" => {
                text += &format!("{key}: a property of the program; set {changed} in its code instead of {as_is}.\n");
            }
            "load_cpus" => {
                text += &format!("load_cpus: run other work on the CPUs `{changed}` instead of `{as_is}`.\n")
            }
            "cpu_dma_latency" => {
                text += "cpu_dma_latency: the program holds /dev/cpu_dma_latency open with this value.\n";
            }
            _ => {}
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use punctual_analysis::tune::{KnobAnswer, ScreenedKnob};

    fn advised(key: &str) -> TunedKnob {
        TunedKnob {
            knob: Knob::of(key.to_owned(), vec!["a".to_owned(), "b".to_owned()]).unwrap(),
            screened: ScreenedKnob { ratio: 0.5, interval: (0.4, 0.6), p: 0.01, is_candidate: true, work: None },
            confirmed: None,
            answer: KnobAnswer::Better,
            sentence: String::new(),
        }
    }

    #[test]
    fn properties_of_the_program_are_a_drop_in() {
        let plan = |text: &str| Plan::parse(text).unwrap();
        let (policy, slack) = (advised("policy"), advised("timer_slack"));
        for (text, lines) in [
            ("[axes]\npolicy = [\"fifo:70\"]", "[Service]\nCPUSchedulingPolicy=fifo\nCPUSchedulingPriority=70\n"),
            ("[axes]\npolicy = [\"other\"]", "[Service]\nCPUSchedulingPolicy=other\nNice=0\n"),
            ("[axes]\npolicy = [\"deadline:1ms/2ms/2ms\"]", ""),
        ] {
            assert_eq!(service(&[&policy], &plan(text)), lines);
        }
        let text = "timer_slack = \"50us\"\n[axes]\npolicy = [\"other\"]";
        assert_eq!(service(&[&slack], &plan(text)), "[Service]\nTimerSlackNSec=50000\n");
        assert_eq!(service(&[], &plan(text)), "");
    }

    #[test]
    fn boot_words_are_those_of_the_kernel_of_the_plan() {
        let plan = Plan::parse("[axes]\nkernel = [\"debian:6.1 quiet preempt=full\"]").unwrap();
        assert_eq!(command_line(&[&advised("boot.preempt")], &plan), "quiet preempt=full\n");
        assert_eq!(command_line(&[&advised("policy")], &plan), "");
    }
}
