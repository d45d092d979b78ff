//! Campaigns with a fake executor: order, resumption, failure, interruption; no real measurement.

use super::carry_out::{IsOver, Rules, carry_out};
use super::executor::Failure;
use super::*;
use punctual_analysis::testing::RunBuilder;
use punctual_host::testing::Scratch;
use punctual_model::{Cell, Entry, Failed, Header, Plan, Planned, Progress, Record, Until, planned_order};
use std::path::{Path, PathBuf};

/// Everything is measured.
fn all() -> Rules<'static> {
    Rules { is_over: &|_, _| false, now: None }
}

/// Executor that returns at once; it fails or is interrupted as configured.
#[derive(Default)]
struct Fake {
    executed: Vec<String>,
    calls: usize,
    /// Numbers of the calls that fail.
    fail: Vec<usize>,
    /// The call that fails with [`Failure::Unsupported`].
    mistake_at: Option<usize>,
    interrupt_at: Option<usize>,
}

impl Executor for Fake {
    fn execute(
        &mut self,
        cell: &Cell,
        _: u32,
        samples: Option<&Path>,
        stop: &Stop,
        _: &mut dyn FnMut(&Progress),
    ) -> Result<Record, Failure> {
        if let Some(samples) = samples {
            assert!(!samples.exists(), "nothing of an earlier try is in the way");
            std::fs::write(samples, cell.label()).unwrap();
        }
        let n = self.executed.len();
        let call = self.calls;
        self.calls += 1;
        if self.fail.contains(&call) {
            return Err(Failure::Reported("the load died".to_owned()));
        }
        if self.mistake_at == Some(call) {
            return Err(Failure::Unsupported("no such load".to_owned()));
        }
        if self.interrupt_at == Some(n) {
            stop.request();
            return Err(Failure::Reported("interrupted before the first measured cycle".to_owned()));
        }
        self.executed.push(cell.label());
        Ok(record(cell))
    }
}

fn record(cell: &Cell) -> Record {
    let mut run = RunBuilder::new();
    run.cell("none", "other").header.cells[0].duration = punctual_model::Span(20_000_000);
    let record = run.measure(0, 0, |_, _| 1).entries.remove(0).record;
    Record { cell: cell.clone(), cell_id: cell.id(), measured: cell.duration, threads: Vec::new(), ..record }
}

/// The measurements of a run, to compare two runs of the same fake.
fn made(entries: &[Entry]) -> Vec<Planned> {
    entries.iter().map(|entry| entry.planned).collect()
}

struct Silent;

impl Observer for Silent {
    fn starts(&mut self, _: &Planned, _: usize) {}
    fn progress(&mut self, _: &Progress) {}
    fn recorded(&mut self, _: &Entry) {}
    fn failed(&mut self, _: &Failed, _: bool) {}
}

/// A run of the default plan in a scratch directory, which is removed with it.
struct Campaign {
    dir: PathBuf,
    _scratch: Scratch,
    header: Header,
}

impl Campaign {
    fn new() -> Self {
        let scratch = Scratch::make();
        let plan = Plan { repetitions: 3, ..Plan::default() };
        let machine = Machine {
            cpus: [0].into_iter().collect(),
            lock_memory: true,
            dma_latency: true,
            may_have: &|_| true,
            why_not: &|_| None,
            why_no_load: &|_| None,
        };
        let (cells, skipped) = expand(&plan, &machine).unwrap();
        let header = Header { plan, seed: 42, cells, skipped, ..RunBuilder::new().header };
        Campaign { dir: scratch.path("run"), _scratch: scratch, header }
    }

    fn begin(&self, fake: &mut Fake) -> Result<Vec<Entry>, CampaignError> {
        self.try_all(fake).map(|(entries, _)| entries)
    }

    /// The measurements made, and those that failed twice.
    fn try_all(&self, fake: &mut Fake) -> Result<(Vec<Entry>, Vec<Failed>), CampaignError> {
        let mut writer = punctual_store::create(&self.dir, &self.header).unwrap();
        let (mut entries, stop) = (Vec::new(), Stop::new().unwrap());
        let failed = carry_out(&self.header, &mut entries, Some(&mut writer), fake, &mut Silent, &stop, all())?;
        Ok((entries, failed))
    }

    /// The measurements of a run that is not stored and ends when `is_over`.
    fn until(&self, fake: &mut Fake, is_over: IsOver<'_>) -> Vec<Entry> {
        let (mut entries, stop) = (Vec::new(), Stop::new().unwrap());
        carry_out(&self.header, &mut entries, None, fake, &mut Silent, &stop, Rules { is_over, now: None }).unwrap();
        entries
    }

    fn resume(&self, fake: &mut Fake) -> Result<Vec<Entry>, CampaignError> {
        let run = punctual_store::read(&self.dir).unwrap();
        let mut writer = punctual_store::append(&self.dir, run.entries.len()).unwrap();
        let stop = Stop::new().unwrap();
        let mut entries = run.entries;
        carry_out(&run.header, &mut entries, Some(&mut writer), fake, &mut Silent, &stop, all())?;
        Ok(entries)
    }

    fn file(&self) -> PathBuf {
        self.dir.join("run.jsonl")
    }
}

#[test]
fn records_that_only_the_report_needs_are_not_held_while_measuring() {
    for (until, held) in [(None, 0), (Some(Until::Enough), 3 * 4)] {
        let mut campaign = Campaign::new();
        campaign.header.plan.until = until;
        let mut writer = punctual_store::create(&campaign.dir, &campaign.header).unwrap();
        let (mut entries, stop, seen) = (Vec::new(), Stop::new().unwrap(), std::cell::Cell::new(0));
        let is_over = |_: u32, entries: &[Entry]| {
            seen.set(seen.get() + entries.len());
            false
        };
        let fake = &mut Fake::default();
        carry_out(
            &campaign.header,
            &mut entries,
            Some(&mut writer),
            fake,
            &mut Silent,
            &stop,
            Rules { is_over: &is_over, now: None },
        )
        .unwrap();
        assert_eq!((seen.get(), entries.len()), (held, 12), "{until:?}");
    }
}

#[test]
fn records_that_vanish_while_measuring_are_an_error() {
    let campaign = Campaign::new();
    let mut writer = punctual_store::create(&campaign.dir, &campaign.header).unwrap();
    let (mut entries, stop) = (Vec::new(), Stop::new().unwrap());
    let damage = |blocks: u32, _: &[Entry]| {
        if blocks == 2 {
            let text = std::fs::read_to_string(campaign.file()).unwrap();
            std::fs::write(campaign.file(), text.replacen("\"block\":0", "\"block\":1", 1)).unwrap();
        }
        false
    };
    let fake = &mut Fake::default();
    let made = carry_out(
        &campaign.header,
        &mut entries,
        Some(&mut writer),
        fake,
        &mut Silent,
        &stop,
        Rules { is_over: &damage, now: None },
    );
    let error = made.unwrap_err().to_string();
    assert_eq!(error, "11 of 12 measurements of this run can be read; punctual show names the damaged lines");
    assert_eq!(entries.len(), 11);
}

#[test]
fn records_of_an_unchanged_machine_share_it() {
    let campaign = Campaign::new();
    let entries = campaign.begin(&mut Fake::default()).unwrap();
    let first = &entries[0].record.host_before;
    let is_first = |entry: &Entry| {
        std::sync::Arc::ptr_eq(&entry.record.host_before, first)
            && std::sync::Arc::ptr_eq(&entry.record.host_after, first)
    };
    assert!(entries.len() > 2 && entries.iter().all(is_first), "each record keeps a machine of its own");
}

#[test]
fn every_cell_is_measured_once_a_block_in_the_planned_order() {
    let campaign = Campaign::new();
    let mut fake = Fake::default();
    let entries = campaign.begin(&mut fake).unwrap();
    let planned: Vec<_> = planned_order(4, 3, 42);
    assert_eq!(made(&entries), planned);
    let labels: Vec<_> = planned.iter().map(|p| campaign.header.cells[p.cell_index].label()).collect();
    assert_eq!(fake.executed, labels);
    let run = punctual_store::read(&campaign.dir).unwrap();
    assert!(run.header == campaign.header && run.entries == entries && run.damage.is_empty());
}

#[test]
fn a_resumed_run_equals_an_uninterrupted_one() {
    let campaign = Campaign::new();
    let whole = Campaign::new().begin(&mut Fake::default()).unwrap();
    let mut first = Fake { mistake_at: Some(5), ..Fake::default() };
    let failed = campaign.begin(&mut first).unwrap_err().to_string();
    assert!(failed.ends_with("no such load"), "{failed}");
    let mut second = Fake::default();
    let entries = campaign.resume(&mut second).unwrap();
    assert_eq!(made(&entries), made(&whole));
    assert_eq!((first.executed.len(), second.executed.len()), (5, 7));
}

#[test]
fn a_measurement_that_fails_is_tried_once_more_when_all_others_are_made() {
    let campaign = Campaign::new();
    let mut fake = Fake { fail: vec![2, 5], ..Fake::default() };
    let all = planned_order(4, 3, 42);
    let (entries, failed) = campaign.try_all(&mut fake).unwrap();
    let is_other = |at: &usize| ![2, 5].contains(at);
    let order: Vec<_> = (0..12).filter(is_other).chain([2, 5]).map(|at| all[at]).collect();
    assert_eq!((made(&entries), failed), (order, Vec::new()));
    assert!(punctual_store::read(&campaign.dir).unwrap().header.failed.is_empty());
}

#[test]
fn a_cell_that_fails_twice_is_named_and_measured_again_on_resume() {
    let campaign = Campaign::new();
    let whole = planned_order(4, 3, 42);
    let (entries, failed) = campaign.try_all(&mut Fake { fail: vec![2, 5, 12], ..Fake::default() }).unwrap();
    assert_eq!((entries.len(), failed.len(), failed[0].planned), (11, 1, whole[2]));
    let run = punctual_store::read(&campaign.dir).unwrap();
    assert_eq!((run.header.failed.clone(), run.damage.len()), (failed, 0));
    let said = punctual_analysis::summarise(&run.header, &run.entries).findings;
    assert!(said.iter().any(|finding| finding.to_string().contains("twice: the load died")), "{said:?}");
    assert_eq!(campaign.resume(&mut Fake::default()).unwrap().len(), 12);
    assert!(punctual_store::read(&campaign.dir).unwrap().header.failed.is_empty());
}

#[test]
fn a_campaign_in_which_nothing_can_be_measured_ends_soon() {
    let campaign = Campaign::new();
    let mut fake = Fake { fail: (0..100).collect(), ..Fake::default() };
    let failed = campaign.try_all(&mut fake).unwrap_err().to_string();
    assert!(failed.ends_with("the load died"), "{failed}");
    assert_eq!(fake.calls, 8, "twice as many as there are cells");
}

#[test]
fn what_failed_is_tried_again_also_where_a_run_is_over_before_its_end() {
    let campaign = Campaign::new();
    let mut fake = Fake { fail: vec![1], ..Fake::default() };
    let is_over = |_: u32, entries: &[Entry]| !entries.is_empty();
    let of_block = campaign.until(&mut fake, &is_over);
    assert_eq!((of_block.len(), fake.calls), (4, 5));
}

#[test]
fn an_interrupted_measurement_is_not_recorded() {
    let campaign = Campaign::new();
    let mut fake = Fake { interrupt_at: Some(2), ..Fake::default() };
    let stopped = campaign.begin(&mut fake).unwrap_err();
    assert_eq!(stopped.to_string(), "interrupted after 2 of 12 measurements");
    assert_eq!(punctual_store::read(&campaign.dir).unwrap().entries.len(), 2);
}

#[test]
fn samples_are_kept_to_the_end_and_those_that_were_not_recorded_make_way() {
    let mut campaign = Campaign::new();
    campaign.header.samples = true;
    let files = || std::fs::read_dir(campaign.dir.join("samples")).unwrap().count();
    campaign.begin(&mut Fake { mistake_at: Some(3), ..Fake::default() }).unwrap_err();
    assert_eq!(files(), 3, "none of a measurement that failed");
    campaign.resume(&mut Fake { interrupt_at: Some(2), ..Fake::default() }).unwrap_err();
    assert_eq!(files(), 6, "one of a measurement that was not recorded");
    // The fake executor does not accept an existing sample file.
    campaign.resume(&mut Fake::default()).unwrap();
    assert_eq!(files(), 12);
}

#[test]
fn a_run_cut_off_anywhere_is_read_up_to_there_and_completed() {
    let campaign = Campaign::new();
    let entries = campaign.begin(&mut Fake::default()).unwrap();
    let bytes = std::fs::read(campaign.file()).unwrap();
    let header_len = bytes.iter().position(|byte| *byte == b'\n').unwrap() + 1;
    for cut in (header_len..bytes.len()).step_by(bytes.len() / 23).chain([header_len, bytes.len() - 1]) {
        std::fs::write(campaign.file(), &bytes[..cut]).unwrap();
        let run = punctual_store::read(&campaign.dir).unwrap();
        // A line that lacks only its line feed is complete.
        let is_line_end = |at: usize| bytes[at] == b'\n';
        let whole = (header_len..=cut).filter(|at| *at < bytes.len() && is_line_end(*at)).count();
        assert_eq!(made(&run.entries), made(&entries[..whole]), "cut at {cut}");
        assert_eq!(run.damage.is_empty(), is_line_end(cut - 1) || is_line_end(cut), "cut at {cut}");
        assert_eq!(made(&campaign.resume(&mut Fake::default()).unwrap()), made(&entries), "cut at {cut}");
        let again = punctual_store::read(&campaign.dir).unwrap();
        assert_eq!((made(&again.entries), again.damage.len()), (made(&entries), run.damage.len()));
    }
}

#[test]
fn a_damaged_line_costs_only_itself_and_is_named() {
    let campaign = Campaign::new();
    campaign.begin(&mut Fake::default()).unwrap();
    let text = std::fs::read_to_string(campaign.file()).unwrap();
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    lines[3] = lines[3].replace("\"threads\"", "\"thraeds\"");
    lines[5] = "\u{0}\u{0}\u{0}".to_owned();
    lines[7] = lines[7].replacen("\"cell_index\":", "\"cell_index\":9", 1);
    lines[9] = lines[8].clone();
    lines[11] = lines[11].replacen("\"block\":", "\"block\":9", 1);
    std::fs::write(campaign.file(), lines.join("\n") + "\n").unwrap();
    let run = punctual_store::read(&campaign.dir).unwrap();
    assert_eq!(run.entries.len(), 7);
    let named: Vec<_> = run.damage.iter().map(ToString::to_string).collect();
    assert_eq!(named.len(), 5);
    for (line, damage) in [4, 6, 8, 10, 12].iter().zip(&named) {
        assert!(damage.starts_with(&format!("{}:{line}: ", campaign.file().display())), "{damage}");
    }
    assert_eq!(campaign.resume(&mut Fake::default()).unwrap().len(), 12);
}

#[test]
fn what_is_no_run_is_refused() {
    let campaign = Campaign::new();
    let message = |result: Result<(), punctual_store::StoreError>| result.unwrap_err().to_string();
    let create = || punctual_store::create(&campaign.dir, &campaign.header).map(drop);
    let dir = campaign.dir.display();
    assert!(message(punctual_store::read(&campaign.dir).map(drop)).contains(": it has no run.jsonl"));
    std::fs::create_dir_all(&campaign.dir).unwrap();
    std::fs::write(campaign.dir.join("notes.txt"), "mine").unwrap();
    assert_eq!(
        message(create()),
        format!("cannot create {dir}: it exists and is not a run; name a new directory with --out")
    );
    std::fs::remove_file(campaign.dir.join("notes.txt")).unwrap();
    create().unwrap();
    assert!(message(create()).contains("it holds a run"));
    let endless =
        serde_json::to_string(&campaign.header).unwrap().replace("\"repetitions\":3", "\"repetitions\":4000000000");
    for (text, reason) in [
        ("", "truncated line"),
        ("{}\n", "no format number"),
        ("{\"format\":99}\n", "newer"),
        (&(endless + "\n"), "invalid number of repetitions"),
    ] {
        std::fs::write(campaign.file(), text).unwrap();
        let refused = message(punctual_store::read(&campaign.dir).map(drop));
        assert!(refused.contains(reason), "{refused}");
    }
}

#[test]
fn a_run_may_be_over_between_blocks_only() {
    let campaign = Campaign::new();
    let over = |after: usize, fake: &mut Fake| {
        let is_over = |_: u32, entries: &[Entry]| entries.len() >= after;
        campaign.until(fake, &is_over)
    };
    for (after, made) in [(0, 0), (1, 4), (4, 4), (5, 8), (9, 12), (100, 12)] {
        assert_eq!(over(after, &mut Fake::default()).len(), made, "after {after}");
    }
}
