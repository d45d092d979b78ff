//! Findings about kernels that are compared: their loads' work, and how they are built.

use super::Finding;
use crate::machine::config::{Likeness, compare_summaries, without_choice};
use crate::summary::work::{ComparedLoad, compared};
use crate::wording::different_work;
use punctual_model::{Cell, ConfigSummary, Entry, Header, Kernel, LabClock, Order};
use std::collections::HashMap;

finding!(
    /// The same load did clearly different work on two kernels.
    pub struct LoadRatesDiffer {
        /// Part of the load.
        pub load: String,
        /// Meaning of one operation.
        pub operation: String,
        /// The kernel on which it did more.
        pub more_on: String,
        /// Operations a second there.
        pub more_per_second: f64,
        /// The kernel on which it did less.
        pub less_on: String,
        /// Operations a second there.
        pub less_per_second: f64,
        /// The former rate divided by the latter.
        pub factor: f64,
    },
    importance = 2,
    {
        let (more, less) = ((more_on.as_str(), *more_per_second), (less_on.as_str(), *less_per_second));
        format!("different work: {}", different_work((load, operation), *factor, more, less, "on"))
    },
    [LoadRatesDiffer {
        load: "mmap".into(),
        operation: "mapping".into(),
        more_on: "/k/lean".into(),
        more_per_second: 440.0,
        less_on: "debian:6.1".into(),
        less_per_second: 199.0,
        factor: 440.0 / 199.0,
    }]
);

finding!(
    /// Two kernels are not built alike, apart from preemption model and co-kernel.
    pub struct KernelsNotAlike {
        /// The first kernel.
        pub a: String,
        /// The other.
        pub b: String,
        /// What differs, the most important first.
        pub reasons: Vec<String>,
    },
    importance = 5,
    {
        let mut named: Vec<String> = reasons.iter().take(NAMED).cloned().collect();
        if reasons.len() > NAMED {
            named.push(format!("{} more", reasons.len() - NAMED));
        }
        format!("not like for like: {a} and {b} differ in {}; see punctual lab check-config", named.join(", "))
    },
    [KernelsNotAlike {
        a: "debian:6.1".into(),
        b: "debian:6.12".into(),
        reasons: vec!["version (6.1.192 and 6.12.117)".into(), "tracing (2 options)".into(), "13 other options".into()],
    }]
);

/// Largest number of differences of two kernels that a finding names.
const NAMED: usize = 5;

/// Findings about the kernels of a run.
pub(super) fn findings(header: &Header, entries: &[Entry]) -> Vec<Finding> {
    let rates = different_rates(header, entries).into_iter().map(Finding::from);
    rates.chain(not_alike(entries).into_iter().map(Finding::from)).collect()
}

/// For each load whose work differs between cells that are otherwise equal, the two kernels that are furthest apart.
fn different_rates(header: &Header, entries: &[Entry]) -> Vec<LoadRatesDiffer> {
    let mut measured: HashMap<usize, Vec<&Entry>> = HashMap::new();
    for entry in entries {
        measured.entry(entry.planned.cell_index).or_default().push(entry);
    }
    // Kernels with different clocks are not compared.
    let mut groups: HashMap<(Option<LabClock>, Cell), Vec<usize>> = HashMap::new();
    let mut found: Vec<LoadRatesDiffer> = Vec::new();
    for index in header.first_cells() {
        let (Some(cell), Some(here)) = (header.cells.get(index), measured.get(&index)) else { continue };
        let key = (cell.kernel.clock(), Cell { kernel: Kernel::Running, ..cell.clone() });
        let others = groups.entry(key).or_default();
        for other in others.iter() {
            let (Some(there), Some(there_cell)) = (measured.get(other), header.cells.get(*other)) else { continue };
            let differ = compared(there, here).into_iter().filter(|load| load.differs);
            for new in differ.filter_map(|load| finding_of(load, &there_cell.kernel, &cell.kernel)) {
                match found.iter_mut().find(|known| known.load == new.load) {
                    Some(known) if known.factor < new.factor => *known = new,
                    Some(_) => {}
                    None => found.push(new),
                }
            }
        }
        others.push(index);
    }
    found
}

fn finding_of(load: ComparedLoad, a: &Kernel, b: &Kernel) -> Option<LoadRatesDiffer> {
    let factor = load.factor()?;
    let (of_a, of_b) = (load.a_per_second?, load.b_per_second?);
    let ((more, more_per_second), (less, less_per_second)) =
        if of_a > of_b { ((a, of_a), (b, of_b)) } else { ((b, of_b), (a, of_a)) };
    Some(LoadRatesDiffer {
        load: load.load,
        operation: load.operation,
        more_on: more.to_string(),
        more_per_second,
        less_on: less.to_string(),
        less_per_second,
        factor,
    })
}

/// A kernel of the lab with its configuration.
struct Configured<'a> {
    /// Its name without the choice of a preemption model.
    name: String,
    clock: LabClock,
    words: String,
    config: &'a ConfigSummary,
}

/// Kernels that are built in another way than the first one of their clock; those of unknown configuration are left
/// out.
fn not_alike(entries: &[Entry]) -> Vec<KernelsNotAlike> {
    let mut kernels: Vec<Configured<'_>> = Vec::new();
    for entry in entries {
        let Kernel::Lab(kernel) = &entry.record.cell.kernel else { continue };
        let Some(config) = entry.record.lab.as_ref().and_then(|lab| lab.config.as_ref()) else { continue };
        let words = kernel.words();
        let words = without_choice(&words).collect::<Vec<_>>().join(" ");
        let name = format!("{} {words}", kernel.source).trim_end().to_owned();
        if !kernels.iter().any(|known| known.name == name) {
            kernels.push(Configured { name, clock: kernel.clock, words, config });
        }
    }
    // In the order of their names, because blocks measure the cells in random order.
    kernels.order_by(|a, b| a.name.cmp(&b.name));
    let mut found = Vec::new();
    for (index, b) in kernels.iter().enumerate() {
        let Some(a) = kernels.iter().take(index).find(|a| a.clock == b.clock) else { continue };
        if let Likeness::NotLikeForLike { reasons } = compare_summaries((a.config, &a.words), (b.config, &b.words)) {
            found.push(KernelsNotAlike { a: a.name.clone(), b: b.name.clone(), reasons });
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use crate::findings::Finding;
    use crate::summarise;
    use crate::testing::{RunBuilder, lab};
    use punctual_model::{KernelConfig, LabRecord, LoadRecord, LoadSecond, Span};

    /// Findings of a run on these kernels, each with its load's operations a second and its configuration.
    fn said(kernels: &[(&str, u64, &str)]) -> Vec<String> {
        let mut run = RunBuilder::new();
        run.header.plan.repetitions = 2;
        for (kernel, ..) in kernels {
            for policy in ["other", "fifo:80"] {
                run.cell("messaging", policy);
                run.header.cells.last_mut().unwrap().kernel = kernel.parse().unwrap();
            }
        }
        for block in 0..2 {
            for index in 0..run.header.cells.len() {
                let (_, rate, config) = kernels[index / 2];
                run.measure(block, index, |_, _| 5_000);
                let record = &mut run.entries.last_mut().unwrap().record;
                let second = LoadSecond { elapsed: Span::SECOND, operations: Some(rate), cpu_us: None };
                record.loads = vec![LoadRecord {
                    load: "mmap".to_owned(),
                    operation: "mapping".to_owned(),
                    seconds: vec![second; 2],
                    ..LoadRecord::default()
                }];
                let config = KernelConfig::parse(config).ok().map(|config| config.summary(String::new()));
                record.lab = Some(LabRecord { config, ..lab() });
            }
        }
        let findings = summarise(&run.header, &run.entries).findings;
        let is_of_kernels =
            |finding: &&Finding| matches!(finding, Finding::LoadRatesDiffer(_) | Finding::KernelsNotAlike(_));
        findings.iter().filter(is_of_kernels).map(ToString::to_string).collect()
    }

    #[test]
    fn different_work_is_named_once_for_each_load_with_the_kernels_furthest_apart() {
        assert_eq!(
            said(&[("/a", 199, ""), ("/b", 300, ""), ("/c", 440, "")]),
            ["different work: load mmap did 2.21 times as much on /c as on /a (440 and 199 mappings/s); part of a \
              difference in latency may be due to that"]
        );
        for kernels in [
            &[("/a", 400, ""), ("/b", 440, "")][..],
            &[("/a", 199, ""), ("/b clock=emulated", 440, "")],
            &[("running", 199, "")],
        ] {
            assert_eq!(said(kernels), Vec::<String>::new());
        }
    }

    #[test]
    fn kernels_that_are_built_in_another_way_are_named_once() {
        let (none, rt) = ("CONFIG_HZ=250\nCONFIG_PREEMPT_NONE=y\n", "CONFIG_HZ=250\nCONFIG_PREEMPT_RT=y\n");
        assert_eq!(said(&[("/a", 999, none), ("/b", 999, rt), ("/b quiet", 999, "")]), Vec::<String>::new());
        let fast = "CONFIG_HZ=1000\nCONFIG_PREEMPT_DYNAMIC=y\nCONFIG_KASAN=y\nCONFIG_KCSAN=y\nCONFIG_EXT4_FS=m\n";
        let models = ["/b preempt=none", "/b preempt=full"].map(|kernel| (kernel, 999, fast));
        assert_eq!(
            said(&[("/a", 999, none), models[0], models[1]]),
            [
                "not like for like: /a and /b differ in timers and ticks (HZ: 250 and 1000), debugging (2 options), other \
              options (0 and 1 set); see punctual lab check-config"
            ]
        );
    }
}
