//! Definitions against the published numbers, and the tables of runs.

use super::fill::{column, published_in, theirs};
use super::*;
use crate::published::{self, Row};
use axes::Axis;
use punctual_analysis::testing::RunBuilder;
use punctual_model::{
    Censored, Ended, Histogram, Host, Preemption, Runtime, Statistic, StudyAxis, StudyCells, StudyConclusion,
    StudyDefinition, StudyKernel, Task,
};
use std::sync::Arc;

fn study(name: &str) -> Study {
    name.parse().unwrap()
}

/// A published number.
fn number(row: &Row, statistic: Statistic) -> Option<f64> {
    row.get(column(statistic))?.parse().ok()
}

/// Whether a published row of a kernel is among some cells.
fn is_in(cells: &StudyCells, kernel: &StudyKernel, row: &Row) -> bool {
    let load = row.get("our_load").and_then(|load| load.parse().ok());
    let policy = row.get("our_policy").and_then(|policy| policy.parse().ok());
    let period = row.get("period_us").and_then(|us| format!("{us}us").parse().ok());
    // A table without policies has one policy for all of its rows.
    let cells = match row.get("policy") {
        Some(_) => cells.clone(),
        None => StudyCells { policy: Vec::new(), ..cells.clone() },
    };
    cells.contain(&kernel.name, load.as_ref(), policy, period)
}

/// Values of a group by the axes that are not compared: the largest for a maximum, else the mean.
fn by_place(
    definition: &StudyDefinition,
    conclusion: &StudyConclusion,
    group: &StudyCells,
    compared: &[StudyAxis],
    rows: &[Row],
) -> std::collections::BTreeMap<String, Vec<f64>> {
    let mut places = std::collections::BTreeMap::<_, std::collections::BTreeMap<_, Vec<f64>>>::new();
    for (row, kernel) in rows.iter().flat_map(|row| definition.kernels.iter().map(move |kernel| (row, kernel))) {
        let is_published = kernel.published.iter().all(|(column, value)| row.get(column) == Some(value));
        let is_meant = is_published
            && !kernel.published.is_empty()
            && is_in(group, kernel, row)
            && is_in(&conclusion.only, kernel, row);
        let Some(value) = number(row, conclusion.statistic).filter(|_| is_meant) else { continue };
        let axes = [
            (StudyAxis::Kernel, kernel.name.as_str()),
            (StudyAxis::Load, row.text("load")),
            (StudyAxis::Policy, row.text("policy")),
            (StudyAxis::Period, row.text("period_us")),
        ];
        let same: Vec<_> = axes.iter().filter(|(axis, _)| !compared.contains(axis)).map(|(_, value)| *value).collect();
        let cell: Vec<_> = axes.iter().map(|(_, value)| *value).collect();
        places.entry(same.join("/")).or_default().entry(cell.join("/")).or_default().push(value);
    }
    let of_cell = |values: Vec<f64>| match conclusion.statistic {
        Statistic::Max => values.into_iter().fold(f64::NEG_INFINITY, f64::max),
        _ => values.iter().sum::<f64>() / values.len() as f64,
    };
    places.into_iter().map(|(place, cells)| (place, cells.into_values().map(of_cell).collect())).collect()
}

/// A run of the study of stock Debian against PREEMPT_RT on these kernels, planned and not measured.
fn planned(kernels: &[&str], repetitions: u32) -> RunBuilder {
    let mut run = RunBuilder::new();
    run.header.plan.repetitions = repetitions;
    for kernel in kernels {
        for (load, policy) in [("none", "other"), ("none", "fifo:49"), ("messaging", "other"), ("messaging", "fifo:49")]
        {
            run.cell(load, policy);
            run.header.cells.last_mut().unwrap().kernel = kernel.parse().unwrap();
        }
    }
    run
}

#[test]
fn what_no_result_of_a_plan_can_show_is_known_before_it_runs() {
    let definition = study("debian10-stock-vs-rt-2020").definition();
    let lacks = |kernels: &[&str], repetitions: u32| -> Option<Vec<String>> {
        let run = planned(kernels, repetitions);
        let here = Host { preemption: Some(Preemption::Full), ..Host::default() };
        let all = punctual_analysis::study::out_of_reach(definition, &[&run.header], &here)?;
        Some(all.into_iter().map(|one| one.lacks).collect())
    };
    let both = ["debian:6.1", "debian:6.1-rt"];
    let limit = "a limit is about real time; virtual time has no hardware";
    assert_eq!(lacks(&both, 8).unwrap(), [limit]);
    let too_few = "too few blocks to show a difference: --repetitions";
    assert_eq!(lacks(&both, 1).unwrap(), [too_few, too_few, too_few, limit]);
    let no_rt = "no cells with PREEMPT_RT";
    assert_eq!(lacks(&both[..1], 8).unwrap(), [no_rt, no_rt, no_rt, limit]);
    assert_eq!(lacks(&["running"], 8).unwrap(), [no_rt; 3]);
    // Whether it is one of the study's kernels is known when it has booted.
    assert_eq!(lacks(&["/path/of/bzImage"], 8), None);
    assert_eq!(lacks(&["/path/of/bzImage preempt=full", "debian:6.1-rt"], 8).unwrap(), [limit]);
}

#[test]
fn every_conclusion_holds_for_the_published_numbers() {
    let mut tested = 0;
    for study in Study::all() {
        let definition = study.definition();
        for conclusion in &definition.conclusions {
            let rows = if conclusion.statistic == Statistic::Cost {
                published::throughput(study)
            } else {
                published::rows(study)
            };
            for pair in conclusion.falls.windows(2) {
                let compared: Vec<_> = pair.iter().flat_map(StudyCells::axes).collect();
                let [larger, smaller] =
                    [&pair[0], &pair[1]].map(|group| by_place(definition, conclusion, group, &compared, &rows));
                for (place, larger) in &larger {
                    let Some(smaller) = smaller.get(place) else { continue };
                    let least = larger.iter().copied().fold(f64::INFINITY, f64::min);
                    let most = smaller.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                    assert!(least > most, "{study}: {}: {place}: {least} {most}", conclusion.says);
                    tested += 1;
                }
            }
            if let Some(limit) = conclusion.below {
                let kernels = || definition.kernels.iter();
                let meant = rows.iter().filter(|row| {
                    kernels().any(|kernel| {
                        kernel.published.iter().all(|(column, value)| row.get(column) == Some(value))
                            && is_in(&conclusion.only, kernel, row)
                    })
                });
                let largest = meant.filter_map(|row| number(row, conclusion.statistic)).fold(0.0, f64::max);
                assert!(largest > 0.0 && largest * 1e3 < limit.ns() as f64, "{study}: {}", conclusion.says);
                tested += 1;
            }
        }
    }
    assert!(tested > 60, "{tested}");
}

#[test]
fn every_published_row_of_a_repeated_study_is_in_a_table() {
    for study in Study::all().filter(|study| !study.definition().ways.is_empty()) {
        let definition = study.definition();
        let report = of_runs(study, &[], Vec::new());
        for (table, filled) in definition.tables.iter().zip(&report.tables) {
            let rows = published_in(study, table);
            let shown = filled.rows.iter().flat_map(|row| &row.published).filter(|value| value.is_some()).count();
            let known = |row: &Row| table.statistics.iter().filter(|one| theirs(row, **one).is_some()).count();
            assert_eq!(shown, rows.iter().map(known).sum::<usize>(), "{study}: {}", table.title);
        }
        for way in &definition.ways {
            let plans = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../plans");
            let text = std::fs::read_to_string(plans.join(format!("{}.toml", way.plan))).unwrap();
            let set: Vec<_> = way.set.iter().map(|setting| setting.parse().unwrap()).collect();
            let plan = punctual_model::Plan::parse_with(&text, &set)
                .unwrap_or_else(|err| panic!("{study} {}: {err}", way.name));
            assert_eq!(plan.study, Some(study), "{}", way.plan);
        }
    }
}

/// Changes the machine of all measurements of a run.
fn on(run: &mut RunBuilder, change: impl Fn(&mut Host)) {
    run.entries.iter_mut().for_each(|entry| change(Arc::make_mut(&mut entry.record.host_before)));
}

/// A run of the study of preemption models: a cell for each load, on a kernel with this model, `blocks` blocks.
fn run_of(model: Option<Preemption>, late_ns: i64, blocks: u32) -> RunBuilder {
    let mut run = RunBuilder::new();
    run.cell("light", "fifo:99").cell("cpu+sync+mmap", "fifo:99");
    for block in 0..blocks {
        for cell in 0..2 {
            let late = late_ns + i64::from(block * 10 + u32::try_from(cell).unwrap());
            run.measure(block, cell, move |cpu, cycle| late + i64::from(cpu) + i64::try_from(cycle % 7).unwrap());
        }
    }
    on(&mut run, |host| host.preemption = model);
    run
}

/// The study filled with runs, each with its name.
fn filled_with(name: &str, runs: &[(&str, &RunBuilder)]) -> StudyReport {
    let summaries: Vec<_> =
        runs.iter().map(|(_, run)| punctual_analysis::summarise(&run.header, &run.entries)).collect();
    let own: Vec<_> = runs
        .iter()
        .zip(&summaries)
        .map(|((name, run), summary)| OwnRun { name, header: &run.header, entries: &run.entries, summary })
        .collect();
    of_runs(study(name), &own, Vec::new())
}

#[test]
fn values_of_runs_stand_below_the_published_ones() {
    let none = run_of(Some(Preemption::None), 400_000, 4);
    let report = filled_with("arm64-preemption-models", &[("runs/none", &none)]);
    let first = &report.tables[0].rows[0];
    assert_eq!(first.keys, ["light", "none", "0"]);
    assert_eq!(first.published, ["15", "19", "2292"].map(|value| Some(value.to_owned())));
    let [line] = first.runs.as_slice() else { panic!("{:?}", first.runs) };
    let values: Vec<_> = line.fields.iter().map(|field| field.as_ref().unwrap().value).collect();
    assert_eq!((line.run.as_str(), values[0], values[2]), ("none", Some(400.0), Some(400.036)));
    assert_eq!(line.fields[2].as_ref().unwrap().blocks, Some((400.006, 400.036)));
    let text = report.csv();
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some("table,load,kernel,cpu,values,\"min, us\",\"mean, us\",\"max, us\""));
    assert_eq!(lines.next(), Some("Wake-up latency by CPU,light,none,0,published,15,19,2292"));
    assert_eq!(lines.next(), Some("Wake-up latency by CPU,light,none,0,\"published, loops\",999998,999998,999998"));
    assert!(lines.next().unwrap().starts_with("Wake-up latency by CPU,light,none,0,none,400.000,400.0"));
    assert!(lines.next().unwrap().starts_with("Wake-up latency by CPU,light,none,0,\"none, smallest block\",400.000,"));
    assert!(text.contains("Wake-up latency by CPU,light,none,0,\"none, loops\",8000,8000,8000"), "{text}");
    assert_eq!(
        (first.published_loops[0].as_deref(), line.fields[0].as_ref().unwrap().loops),
        (Some("999998"), Some(8_000))
    );
}

/// Three boots of each kernel of the study of preemption models, with its latency.
fn boots(kernels: &[(Preemption, i64)]) -> Vec<(String, RunBuilder)> {
    let boot = |(kernel, (model, late)): (usize, &(Preemption, i64)), boot: usize| {
        let mut run = run_of(Some(*model), *late + i64::try_from(boot).unwrap(), 2);
        let name = format!("{kernel}-{boot}");
        on(&mut run, |host| host.boot_id = Some(name.clone()));
        (name, run)
    };
    kernels.iter().enumerate().flat_map(|kernel| (0..3).map(move |n| boot(kernel, n))).collect()
}

fn judged(runs: &[(String, RunBuilder)]) -> StudyReport {
    let runs: Vec<_> = runs.iter().map(|(name, run)| (name.as_str(), run)).collect();
    filled_with("arm64-preemption-models", &runs)
}

fn verdicts(report: &StudyReport) -> Vec<&str> {
    report.conclusions.iter().map(|one| one.verdict.words()).collect()
}

const FALLING: [(Preemption, i64); 4] = [
    (Preemption::None, 900_000),
    (Preemption::Voluntary, 600_000),
    (Preemption::Full, 60_000),
    (Preemption::Realtime, 6_000),
];

#[test]
fn kernels_of_separate_runs_are_judged_by_their_boots() {
    let all = boots(&FALLING);
    let whole = judged(&all);
    assert_eq!(verdicts(&whole), ["found again"; 4], "{:#?}", whole.conclusions);
    let why = &whole.conclusions[2].why;
    assert!(
        why.starts_with(
            "none (900 us) above PREEMPT_RT (6.01 us to 6.02 us), 12 measurements, 3 boots against 3 boots, p "
        ),
        "{why}"
    );
    let three = judged(&all[3..]);
    assert_eq!(verdicts(&three)[2], "not tested here");
    let why = &three.conclusions[2].why;
    assert!(why.starts_with("no cells with none; the rest is found again: voluntary (600 us) above "), "{why}");
    assert_eq!(verdicts(&judged(&[])), ["not tested here"; 4]);
    // The contrary: PREEMPT_RT is the slowest.
    let slow = boots(&[FALLING[0], FALLING[1], FALLING[2], (Preemption::Realtime, 2_000_000)]);
    let contrary = judged(&slow);
    assert_eq!(verdicts(&contrary), ["not found"; 4]);
    let why = &contrary.conclusions[0].why;
    assert!(why.starts_with("full (60 us) below PREEMPT_RT (2 ms)") && why.ends_with("; 2 other parts"), "{why}");
    // One boot is one measurement of its kernel, however many blocks it has.
    let one: Vec<_> = all.into_iter().step_by(3).collect();
    assert_eq!(verdicts(&judged(&one)), ["cannot tell"; 4]);
    let why = judged(&one).conclusions.remove(2).why;
    assert!(why.ends_with("boot each at least 3 times, in turn") && why.contains("1 boot against 1 boot"), "{why}");
}

#[test]
fn every_member_of_a_group_is_tested_alone() {
    // Full preemption is as late as PREEMPT_RT, which the other two must not outweigh.
    let alike = boots(&[FALLING[0], FALLING[1], (Preemption::Full, 6_000), FALLING[3]]);
    let report = judged(&alike);
    let last = &report.conclusions[2];
    assert_eq!(last.verdict.words(), "cannot tell", "{last:?}");
    assert!(last.why.starts_with("full (6.01 us to 6.02 us) not shown to differ from PREEMPT_RT"), "{}", last.why);
    assert!(last.why.contains("; 2 other parts shown; "), "{}", last.why);
    let below = boots(&[FALLING[0], FALLING[1], (Preemption::Full, 3_000), FALLING[3]]);
    assert_eq!(judged(&below).conclusions[2].verdict.words(), "not found");
}

#[test]
fn kernels_of_different_machines_are_not_compared() {
    let mut runs = boots(&FALLING);
    for (_, run) in &mut runs[9..] {
        on(run, |host| host.cpu_model = Some("Cortex-A72".to_owned()));
    }
    let last = judged(&runs).conclusions.remove(2);
    assert_eq!(last.verdict.words(), "not tested here", "{last:?}");
    assert_eq!(last.why, "no cells that differ in nothing else, machine and kind of time included");
}

#[test]
fn blocks_of_one_kernel_are_judged_by_their_number() {
    let policies = |blocks: u32, fifo_ns: i64| {
        let mut run = RunBuilder::new();
        run.cell("none", "other").cell("none", "fifo:49");
        for block in 0..blocks {
            for (cell, late) in [(0, 90_000), (1, fifo_ns)] {
                run.measure(block, cell, move |_, cycle| late + i64::from(block) + i64::try_from(cycle % 7).unwrap());
            }
        }
        on(&mut run, |host| host.preemption = Some(Preemption::Voluntary));
        filled_with("debian10-stock-vs-rt-2020", &[("here", &run)]).conclusions.remove(1)
    };
    let found = policies(4, 5_000);
    assert_eq!(found.verdict.words(), "not tested here");
    let why = "no cells with PREEMPT_RT; the rest is found again: stock: other (90 us) above fifo:49 (5.01 us), 8 measurements";
    assert!(found.why.starts_with(why), "{}", found.why);
    assert!(policies(4, 89_999).why.contains("stock: other (90 us) by less than 25 % above fifo:49 (90 us)"));
    assert_eq!(policies(4, 89_999).verdict.words(), "not found");
    let few = policies(2, 5_000);
    assert!(!few.why.contains("found again") && few.why.contains("not shown to differ from"), "{}", few.why);
}

#[test]
fn a_limit_is_found_again_only_by_whole_measurements() {
    let judged = |edit: fn(&mut RunBuilder)| {
        let mut run = RunBuilder::new();
        run.cell("none", "fifo:49");
        run.measure(0, 0, |_, _| 80_000).measure(1, 0, |_, _| 80_000);
        on(&mut run, |host| host.preemption = Some(Preemption::Voluntary));
        edit(&mut run);
        let judged = filled_with("debian10-stock-vs-rt-2020", &[("here", &run)]).conclusions;
        judged.into_iter().find(|one| one.says.contains("enough for a period of 1 ms")).unwrap()
    };
    type Edit = fn(&mut RunBuilder);
    let edits: [(Edit, &str, &str); 6] = [
        (|_| (), "found again", "measurements"),
        (|run| run.entries[1].record.threads[0].lost = 3, "cannot tell", "wake-ups were lost or not seen"),
        (|run| run.entries[1].record.ended = Ended::Interrupted, "cannot tell", "did not run to its end"),
        (|run| run.entries[0].record.threads[1].passed_over = 1, "cannot tell", "wake-ups were lost or not seen"),
        (|run| run.entries[0].record.threads[1].histogram = Histogram::of(&[2_000_000]), "not found", "2 measurements"),
        (
            |run| run.entries[1].record.threads[0].censored = Some(Censored { cycle: 1_999, at_least_ns: 30_000 }),
            "cannot tell",
            "a wait still open",
        ),
    ];
    for (edit, verdict, why) in edits {
        let found = judged(edit);
        assert_eq!((found.verdict.words(), found.why.contains(why)), (verdict, true), "{}", found.why);
    }
}

#[test]
fn unknown_models_decide_nothing() {
    let unknown = run_of(None, 5_000, 4);
    let report = filled_with("arm64-preemption-models", &[("a", &unknown)]);
    assert!(report.tables[0].rows.iter().all(|row| row.runs.is_empty()));
}

#[test]
fn axes_have_published_values_first() {
    let study = study("python-sleep-2021");
    let rows = published::rows(study);
    let axis = Axis::of(StudyAxis::Policy, study.definition(), &rows, &[]);
    let labels: Vec<_> = (0..3).flat_map(|key| axes::labels(std::slice::from_ref(&axis), &[key])).collect();
    assert_eq!(labels, ["other", "nice:-20", "fifo:99"]);
}

/// A run of sleeps, each cell with its kernel, policy, language, load and error.
fn sleeps(cells: &[(&str, &str, Runtime, &str, i64)]) -> RunBuilder {
    let mut run = RunBuilder::new();
    for (index, (kernel, policy, runtime, load, error_ns)) in cells.iter().enumerate() {
        run.cell(load, policy);
        let cell = run.header.cells.last_mut().unwrap();
        (cell.kernel, cell.task, cell.cpus) =
            (kernel.parse().unwrap(), Task::Sleep(*runtime), [0].into_iter().collect());
        run.measure(0, index, |_, _| *error_ns);
    }
    on(&mut run, |host| host.preemption = Some(Preemption::Full));
    run
}

#[test]
fn only_what_a_study_measured_fills_its_table() {
    let emulated = "debian:6.1 clock=emulated";
    let run = sleeps(&[
        ("running", "other", Runtime::Python3, "pipe", 61_000),
        (emulated, "other", Runtime::Python3, "pipe", 420_000),
        (&format!("{emulated} vcpu_policy=fifo:50"), "other", Runtime::Python3, "pipe", 310_000),
        // None of these is what the study measured.
        ("running", "fifo:99", Runtime::C, "pipe", 900_000),
        ("running", "fifo:99", Runtime::Python3, "none", 900_000),
        ("debian:6.1 clock=emulated host_load=pipe", "idle", Runtime::Python3, "pipe", 900_000),
        // In virtual time it is a kernel of the study, not its guest.
        ("debian:6.1", "fifo:99", Runtime::Python3, "pipe", 7_000),
    ]);
    let report = filled_with("python-sleep-2021", &[("guest", &run)]);
    let [table] = report.tables.as_slice() else { panic!("one table") };
    let at_1_ms = table.columns.iter().position(|head| head == "1 ms, us").unwrap();
    let mut found = Vec::new();
    for row in &table.rows {
        for line in &row.runs {
            let value = line.fields[at_1_ms].as_ref().unwrap().value.unwrap();
            found.push(format!("{}: {}: {value:.1}", row.keys.join(" "), line.run));
        }
    }
    let expected = [
        "other stock: guest: 61.0",
        "other QEMU: guest: 420.0",
        "other QEMU: guest vcpu_policy=fifo:50: 310.0",
        "fifo:99 stock: guest in virtual time: 7.0",
        "idle QEMU, loaded host: guest: 900.0",
    ];
    assert_eq!(found, expected);
    let left_out: Vec<_> = report.left_out.iter().map(|one| (one.cells.as_str(), one.measurements, one.why)).collect();
    let expected = [
        ("running as fifo:99 under none, sleep:python3", 1, "another load or policy than those of the study"),
        ("running as fifo:99 under pipe, sleep:c", 1, "another method than those of the study"),
    ];
    assert_eq!(left_out, expected);
    let line = &table.rows.iter().find(|row| !row.runs.is_empty()).unwrap().runs[0];
    assert_eq!(line.load.as_deref(), Some("pipe"), "the study ran stress-ng --class pipe");
}
