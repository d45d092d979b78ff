//! `punctual doctor`: settings of this machine that cause latency, with commands to change them.

use crate::cli::arguments::{DoctorArguments, Format};
use crate::cli::terminal::{Outcome, output};
use punctual_analysis::doctor;
use punctual_host::HostFs;
use punctual_model::{TOOL, UnknownWord};
use punctual_report::Examination;
use std::sync::LazyLock;

/// Exit status if some setting will cause latency, equal to that of a violated verdict.
const LATE: u8 = 2;

pub(super) fn doctor(arguments: &DoctorArguments) -> Outcome {
    static NAMES: LazyLock<Vec<&str>> = LazyLock::new(|| doctor::checks().map(|check| check.name).collect());
    if let Some(unknown) = arguments.checks.iter().find(|name| !NAMES.contains(&name.as_str())) {
        let begins = NAMES.iter().find(|name| unknown.len() > 2 && name.starts_with(unknown.as_str()));
        let near =
            begins.map(|name| (*name).to_owned()).or_else(|| UnknownWord::new("check", unknown, &NAMES).nearest());
        let near = near.map(|word| format!("did you mean `{word}`? ")).unwrap_or_default();
        return Err(format!("unknown check `{unknown}` ({near}see punctual help checks)").into());
    }
    punctual_host::check_proc()?;
    let host = punctual_host::snapshot(&HostFs::here());
    let is_asked = |name: &str| arguments.checks.is_empty() || arguments.checks.iter().any(|asked| asked == name);
    let checks = doctor::examine(&host).into_iter().filter(|check| is_asked(check.name)).collect();
    let examination = Examination { tool: TOOL, host: &host, checks };
    let mut text = Vec::new();
    match arguments.format {
        Format::Json => output::json(&mut text, &examination.json())?,
        Format::Text if arguments.checks.is_empty() => examination.text(&mut text, output::style(arguments.all))?,
        Format::Text => examination.explained(&mut text, output::style(arguments.all))?,
    }
    output::write(&text)?;
    Ok(if examination.will_be_late() { LATE } else { 0 })
}

#[cfg(test)]
mod tests {
    use super::*;
    use doctor::{Examined, Severity};
    use expect_test::{expect, expect_file};
    use punctual_host::recorded::{self, MACHINES};
    use punctual_report::Style;
    use std::collections::BTreeMap;
    use std::path::Path;

    const STYLE: Style =
        Style { width: 100, colour: false, unicode: false, all_findings: true, spikes: 0, columns: None };

    fn examined(machine: &str) -> Vec<Examined> {
        doctor::examine(&recorded::host(machine))
    }

    #[test]
    fn recorded_machines_are_examined() {
        for machine in MACHINES {
            let host = recorded::host(machine);
            let mut text = Vec::new();
            let examination = Examination { tool: "punctual", host: &host, checks: doctor::examine(&host) };
            examination.text(&mut text, STYLE).unwrap();
            let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/golden/doctor/{machine}.txt"));
            expect_file![golden].assert_eq(&String::from_utf8(text).unwrap());
        }
    }

    #[test]
    fn each_check_fires_on_one_recorded_machine_and_not_on_another() {
        let mut fires: BTreeMap<&str, (bool, bool)> = BTreeMap::new();
        for one in MACHINES.iter().flat_map(|machine| examined(machine)) {
            let (on, off) = fires.entry(one.name).or_default();
            match one.outcome.severity {
                Severity::Will | Severity::May => *on = true,
                Severity::Ok | Severity::NotApplicable => *off = true,
                Severity::Unknown => {}
            }
        }
        // Its facts are those of a driver, which a recorded machine does not have.
        let is_recorded = |name: &str| name != "network-interrupts";
        let missing: Vec<_> = fires.iter().filter(|(name, (on, off))| is_recorded(name) && (!on || !off)).collect();
        assert!(missing.is_empty(), "{missing:?}");
        assert_eq!(fires.len(), doctor::checks().count());
    }

    #[test]
    fn a_machine_set_up_with_care_will_not_be_late() {
        let will = |machine| examined(machine).iter().any(|one| one.outcome.severity == Severity::Will);
        assert_eq!(
            MACHINES.map(|machine| (machine, will(machine))).into_iter().filter(|(_, will)| !will).collect::<Vec<_>>(),
            [("evl", false), ("rt", false)]
        );
        assert_eq!(doctor::in_brief(&recorded::host("rt")), None);
    }

    #[test]
    fn every_check_and_every_fact_of_a_fingerprint_is_known() {
        let mut text: String = doctor::checks().map(|check| format!("{}: {}\n", check.name, check.why)).collect();
        text += "\nFacts of a fingerprint, in this order:\n";
        text.extend(punctual_analysis::facts::of_fingerprint().map(|fact| format!("{fact}\n")));
        expect_file!["../../../tests/golden/doctor/checks.txt"].assert_eq(&text);
    }

    #[test]
    fn a_check_is_explained_in_full() {
        let host = recorded::host("laptop");
        let asked = ["governor", "smi", "swap"];
        let checks = doctor::examine(&host).into_iter().filter(|check| asked.contains(&check.name)).collect();
        let mut text = Vec::new();
        let examination = Examination { tool: "punctual", host: &host, checks };
        examination.explained(&mut text, Style { width: 80, ..STYLE }).unwrap();
        expect![[r#"
            governor: will cause latency
              found   CPUs 0-7 powersave
              why     A CPU that was idle begins at a low frequency, and changing it takes
                      time: the first work after a sleep is the slowest.
              source  Documentation/admin-guide/pm/cpufreq.rst,
                      core-api/real-time/kernel-configuration.rst (CPU_FREQ: high)
              change  echo performance | tee /sys/devices/system/cpu/cpufreq/policy*/scaling_governor
              undo    echo powersave | tee /sys/devices/system/cpu/cpufreq/policy*/scaling_governor

            swap: may
              found   8 GiB
              why     Pages that are not locked may be swapped out; reading one back takes
                      milliseconds.
              source  mlockall(2), swapon(8)
              change  swapoff -a
              undo    swapon -a

            smi: unknown
              found   the counter cannot be read; `modprobe msr`, as root
              why     The firmware stops all CPUs for a system management interrupt, unseen
                      by the kernel, for up to milliseconds.
              source  Documentation/trace/hwlat_detector.rst, Intel SDM volume
                      4 (MSR_SMI_COUNT)
        "#]]
        .assert_eq(&String::from_utf8(text).unwrap());
    }

    #[test]
    fn without_all_only_what_matters_is_listed() {
        let host = recorded::host("rt");
        let mut text = Vec::new();
        let examination = Examination { tool: "punctual", host: &host, checks: doctor::examine(&host) };
        examination.text(&mut text, Style { all_findings: false, width: 80, ..STYLE }).unwrap();
        expect![[r#"
            no setting found that causes latency; 2 may; 1 unknown
            punctual  |  cell4  |  4 x Intel Atom(R) x6425E Processor @ 2.00GHz
              Linux 6.1.0-28-rt-amd64 (PREEMPT_RT)  |  bare metal
            2 may  |  1 unknown  |  53 ok  |  20 not applicable
              fingerprint 58505ffd1e9dfc0a

             ! tick-rate               CONFIG_HZ=250: normal threads take turns of 4 ms or
                                       more
                                       boot a kernel built with CONFIG_HZ=1000
                                       undo: boot the former kernel
             ! tsc-watchdog            hpet watches it
                                       kernel parameter tsc=nowatchdog
                                       (only where the counters of all CPUs are known to
                                       agree: nothing would notice otherwise)
                                       undo: boot without tsc=nowatchdog
             ? unknown: smi
            punctual doctor NAME explains a check; --all shows every one.
        "#]]
        .assert_eq(&String::from_utf8(text).unwrap());
    }
}
