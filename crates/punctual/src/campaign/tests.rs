//! Campaigns with a fake executor: order, resumption, failure, interruption; no cell is really measured.

use super::*;
use crate::store;
use model::{Cell, Plan, Record};
use std::path::{Path, PathBuf};

/// Carries out cells in no time, until told to fail or to be interrupted.
#[derive(Default)]
struct Fake {
    executed: Vec<String>,
    fail_at: Option<usize>,
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
        if self.fail_at == Some(n) {
            return Err(Failure::Said("the load died".to_owned()));
        }
        if self.interrupt_at == Some(n) {
            stop.ask();
            return Err(Failure::Said("interrupted before the first measured cycle".to_owned()));
        }
        self.executed.push(cell.label());
        Ok(record(cell))
    }
}

fn record(cell: &Cell) -> Record {
    Record {
        format: model::RECORD_FORMAT,
        tool: "test".to_owned(),
        cell: cell.clone(),
        cell_id: cell.id(),
        started_unix_ms: 0,
        started: model::MonoTime(0),
        measured: cell.duration,
        ended: Ended::Completed,
        threads: Vec::new(),
        clock_steps: Vec::new(),
        runtime: None,
        response: None,
        loads: Vec::new(),
        lab: None,
        explained: None,
        on_spike: None,
        tracers: None,
        cost: None,
        prepared: Vec::new(),
        machine: Vec::new(),
        host_before: model::Host::default().into(),
        host_after: model::Host::default().into(),
    }
}

/// Which measurements there are: what two runs of the same fake are compared by.
fn made(entries: &[Entry]) -> Vec<Planned> {
    entries.iter().map(|entry| entry.planned).collect()
}

struct Silent;

impl Observer for Silent {
    fn starts(&mut self, _: &Planned, _: usize) {}
    fn progress(&mut self, _: &Progress) {}
    fn recorded(&mut self, _: &Entry) {}
}

/// A run of the default plan in a directory of its own, which goes with it.
struct Campaign {
    dir: PathBuf,
    header: Header,
}

impl Campaign {
    fn new(name: &str) -> Self {
        let dir = std::env::temp_dir().join(format!("punctual-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&dir);
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
        let header = Header {
            format: model::RUN_FORMAT,
            tool: "test".to_owned(),
            started_unix_ms: 0,
            plan,
            seed: 42,
            host: model::Host::default(),
            cells,
            skipped,
            samples: false,
        };
        Campaign { dir, header }
    }

    fn begin(&self, fake: &mut Fake) -> Result<Vec<Entry>, CampaignError> {
        let mut writer = store::create(&self.dir, &self.header).unwrap();
        carry_out(&self.header, Vec::new(), Some(&mut writer), fake, &mut Silent, &Stop::new().unwrap(), &|_| false)
    }

    fn resume(&self, fake: &mut Fake) -> Result<Vec<Entry>, CampaignError> {
        let run = store::read(&self.dir).unwrap();
        let mut writer = store::append(&self.dir, run.entries.len()).unwrap();
        carry_out(&run.header, run.entries, Some(&mut writer), fake, &mut Silent, &Stop::new().unwrap(), &|_| false)
    }

    fn file(&self) -> PathBuf {
        self.dir.join("run.jsonl")
    }
}

impl Drop for Campaign {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

#[test]
fn every_cell_is_measured_once_a_block_in_the_planned_order() {
    let campaign = Campaign::new("whole");
    let mut fake = Fake::default();
    let entries = campaign.begin(&mut fake).unwrap();
    let planned: Vec<_> = planned(4, 3, 42);
    assert_eq!(made(&entries), planned);
    let labels: Vec<_> = planned.iter().map(|p| campaign.header.cells[p.cell_index].label()).collect();
    assert_eq!(fake.executed, labels);
    let run = store::read(&campaign.dir).unwrap();
    assert!(run.header == campaign.header && run.entries == entries && run.damage.is_empty());
}

#[test]
fn a_resumed_run_equals_an_uninterrupted_one() {
    let campaign = Campaign::new("resumed");
    let whole = Campaign::new("uninterrupted").begin(&mut Fake::default()).unwrap();
    let mut first = Fake { fail_at: Some(5), ..Fake::default() };
    let failed = campaign.begin(&mut first).unwrap_err().to_string();
    assert!(failed.ends_with("the load died"), "{failed}");
    let mut second = Fake::default();
    let entries = campaign.resume(&mut second).unwrap();
    assert_eq!(made(&entries), made(&whole));
    assert_eq!((first.executed.len(), second.executed.len()), (5, 7));
}

#[test]
fn an_interrupted_measurement_is_not_recorded() {
    let campaign = Campaign::new("interrupted");
    let mut fake = Fake { interrupt_at: Some(2), ..Fake::default() };
    let stopped = campaign.begin(&mut fake).unwrap_err();
    assert_eq!(stopped.to_string(), "interrupted after 2 of 12 measurements");
    assert_eq!(store::read(&campaign.dir).unwrap().entries.len(), 2);
}

#[test]
fn samples_are_kept_to_the_end_and_those_that_were_not_recorded_make_way() {
    let mut campaign = Campaign::new("samples");
    campaign.header.samples = true;
    let files = || std::fs::read_dir(campaign.dir.join("samples")).unwrap().count();
    campaign.begin(&mut Fake { fail_at: Some(5), ..Fake::default() }).unwrap_err();
    assert_eq!(files(), 6, "one of a measurement that was not recorded");
    // The fake executor insists that nothing is in its way.
    campaign.resume(&mut Fake::default()).unwrap();
    assert_eq!(files(), 12);
}

#[test]
fn a_run_cut_off_anywhere_is_read_up_to_there_and_completed() {
    let campaign = Campaign::new("torn");
    let entries = campaign.begin(&mut Fake::default()).unwrap();
    let bytes = std::fs::read(campaign.file()).unwrap();
    let header_len = bytes.iter().position(|byte| *byte == b'\n').unwrap() + 1;
    for cut in (header_len..bytes.len()).step_by(bytes.len() / 23).chain([header_len, bytes.len() - 1]) {
        std::fs::write(campaign.file(), &bytes[..cut]).unwrap();
        let run = store::read(&campaign.dir).unwrap();
        // A line is whole when only its line feed is missing.
        let is_line_end = |at: usize| bytes[at] == b'\n';
        let whole = (header_len..=cut).filter(|at| *at < bytes.len() && is_line_end(*at)).count();
        assert_eq!(made(&run.entries), made(&entries[..whole]), "cut at {cut}");
        assert_eq!(run.damage.is_empty(), is_line_end(cut - 1) || is_line_end(cut), "cut at {cut}");
        assert_eq!(made(&campaign.resume(&mut Fake::default()).unwrap()), made(&entries), "cut at {cut}");
        let again = store::read(&campaign.dir).unwrap();
        assert_eq!((made(&again.entries), again.damage.len()), (made(&entries), run.damage.len()));
    }
}

#[test]
fn a_damaged_line_costs_only_itself_and_is_named() {
    let campaign = Campaign::new("damaged");
    campaign.begin(&mut Fake::default()).unwrap();
    let text = std::fs::read_to_string(campaign.file()).unwrap();
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    lines[3] = lines[3].replace("\"threads\"", "\"thraeds\"");
    lines[5] = "\u{0}\u{0}\u{0}".to_owned();
    lines[7] = lines[7].replacen("\"cell_index\":", "\"cell_index\":9", 1);
    lines[9] = lines[8].clone();
    lines[11] = lines[11].replacen("\"block\":", "\"block\":9", 1);
    std::fs::write(campaign.file(), lines.join("\n") + "\n").unwrap();
    let run = store::read(&campaign.dir).unwrap();
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
    let campaign = Campaign::new("refused");
    let message = |result: Result<(), store::StoreError>| result.unwrap_err().to_string();
    let create = || store::create(&campaign.dir, &campaign.header).map(drop);
    let dir = campaign.dir.display();
    assert!(message(store::read(&campaign.dir).map(drop)).contains("is no run: it has no run.jsonl"));
    std::fs::create_dir_all(&campaign.dir).unwrap();
    std::fs::write(campaign.dir.join("notes.txt"), "mine").unwrap();
    assert_eq!(message(create()), format!("{dir} exists and is not a run; name a new directory with --out"));
    std::fs::remove_file(campaign.dir.join("notes.txt")).unwrap();
    create().unwrap();
    assert!(message(create()).contains("holds a run already"));
    let endless =
        serde_json::to_string(&campaign.header).unwrap().replace("\"repetitions\":3", "\"repetitions\":4000000000");
    for (text, reason) in [
        ("", "cut off"),
        ("{}\n", "names no format"),
        ("{\"format\":99}\n", "newer"),
        (&(endless + "\n"), "impossible"),
    ] {
        std::fs::write(campaign.file(), text).unwrap();
        let refused = message(store::read(&campaign.dir).map(drop));
        assert!(refused.contains(reason), "{refused}");
    }
}

#[test]
fn a_run_may_be_over_between_blocks_only() {
    let campaign = Campaign::new("over");
    let over = |after: usize, fake: &mut Fake| {
        let is_over = |entries: &[Entry]| entries.len() >= after;
        carry_out(&campaign.header, Vec::new(), None, fake, &mut Silent, &Stop::new().unwrap(), &is_over).unwrap()
    };
    for (after, made) in [(0, 0), (1, 4), (4, 4), (5, 8), (9, 12), (100, 12)] {
        assert_eq!(over(after, &mut Fake::default()).len(), made, "after {after}");
    }
}
