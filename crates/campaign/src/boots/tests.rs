//! Tests of runs over boots: kernels that come up, do not, or go down, played without a machine.

use super::*;
use punctual_analysis::testing::RunBuilder;

const STOCK: &str = "installed:6.1-amd64";
const RT: &str = "installed:6.1-rt-amd64";
/// What the machine boots by default.
const OTHER: &str = "installed:6.5";
const THREADED: &str = "installed:6.1-rt-amd64 threadirqs";

/// A run of two loads on three kernels in 3 blocks, played over boots.
struct Play {
    header: Header,
    entries: Vec<Entry>,
    log: Vec<BootLine>,
    n_boots: usize,
}

impl Play {
    fn new() -> Play {
        let mut run = RunBuilder::new();
        for kernel in [STOCK, RT, THREADED] {
            for load in ["none", "cpu"] {
                run.cell(load, "other").header.cells.last_mut().unwrap().kernel = kernel.parse().unwrap();
            }
        }
        run.header.plan.repetitions = 3;
        Play { header: run.header, entries: Vec::new(), log: Vec::new(), n_boots: 0 }
    }

    /// Boots this kernel and measures what it can: the first `most` cells. Returns the next boot.
    fn boot(&mut self, kernel: &str, most: usize) -> Option<NextBoot> {
        let (release, words) = kernel.split_once(' ').unwrap_or((kernel, ""));
        self.n_boots += 1;
        let running = RunningKernel {
            boot_id: format!("boot {}", self.n_boots),
            release: release.trim_start_matches("installed:").to_owned(),
            command_line: format!("root=/dev/sda1 ro {words} panic=30"),
        };
        let boots = Boots::of(&self.header, &self.entries, &self.log, &running);
        let (now, given_up) = (boots.now(), boots.given_up());
        let line = now.map(|step| boots.began(step));
        let made: HashSet<Planned> = self.entries.iter().map(|entry| entry.planned).collect();
        let possible = |planned: &Planned| !made.contains(planned) && is_possible(&self.header, now, planned);
        let new: Vec<Planned> = self.header.measurements().into_iter().filter(possible).take(most).collect();
        self.log.extend(line);
        self.header.failed.extend(given_up);
        self.entries.extend(new.into_iter().map(|planned| entry(&self.header, planned, &running.boot_id)));
        let boots = Boots::of(&self.header, &self.entries, &self.log, &running);
        let next = boots.next()?;
        let kernel = Kernel::Installed(Box::new(next.kernel.clone()));
        self.log.push(BootLine { event: BootEvent::Asked, block: next.block, kernel, running: running.clone() });
        Some(next)
    }

    /// Lets `boot` do what the run asks for until it asks for nothing; returns how often it asked.
    fn until_the_end(&mut self, boot: impl Fn(&mut Play, &str) -> Option<NextBoot>) -> usize {
        let mut next = self.boot(OTHER, 9);
        let mut n = 0;
        while let Some(asked) = next {
            n += 1;
            assert!(n < 40, "no boot loop");
            next = boot(self, &asked.kernel.to_string());
        }
        n
    }
}

fn entry(header: &Header, planned: Planned, boot_id: &str) -> Entry {
    let mut run = RunBuilder::new();
    let mut record = run.cell("none", "other").measure(0, 0, |_, _| 1).entries.remove(0).record;
    record.cell = header.cells[planned.cell_index].clone();
    let mut host = (*record.host_before).clone();
    host.boot_id = Some(boot_id.to_owned());
    record.host_before = host.into();
    Entry { planned, record }
}

#[test]
fn each_block_has_a_boot_of_each_kernel() {
    let mut play = Play::new();
    let mut next = play.boot(OTHER, 9);
    let mut booted = Vec::new();
    while let Some(boot) = next {
        assert_eq!((boot.done, boot.all), (booted.len(), 9));
        booted.push((boot.block, boot.kernel.to_string()));
        next = play.boot(&boot.kernel.to_string(), 9);
    }
    assert_eq!((booted.len(), play.entries.len(), play.header.failed.len()), (9, 18, 0));
    let blocks: Vec<u32> = booted.iter().map(|(block, _)| *block).collect();
    assert_eq!(blocks, [0, 0, 0, 1, 1, 1, 2, 2, 2]);
    let by_boot = play.entries.chunk_by(|a, b| a.record.host_before.boot_id == b.record.host_before.boot_id);
    assert!(by_boot.clone().all(|boot| boot.len() == 2), "a boot measures the cells of one block");
    assert_eq!(by_boot.count(), 9);
}

#[test]
fn a_boot_measures_its_kernel_only_and_one_with_other_words_is_another() {
    let mut play = Play::new();
    play.boot(RT, 9);
    assert!(play.entries.iter().all(|entry| entry.record.cell.kernel.to_string() == RT));
    assert_eq!(play.entries.len(), 2);
    play.boot(THREADED, 9);
    assert_eq!(play.entries.len(), 4);
    assert_eq!(play.entries[3].record.cell.kernel.to_string(), THREADED);
    let next = play.boot(OTHER, 9).unwrap();
    assert_eq!(next.without, if next.kernel.arguments.is_empty() { vec!["threadirqs".to_owned()] } else { Vec::new() });
}

#[test]
fn a_kernel_that_does_not_come_up_is_tried_twice_and_the_others_go_on() {
    let mut play = Play::new();
    let n = play.until_the_end(|play, kernel| play.boot(if kernel == RT { OTHER } else { kernel }, 9));
    assert_eq!((play.entries.len(), play.header.failed.len(), n), (12, 6, 2 + 6));
    assert!(play.header.failed.iter().all(|failed| {
        failed.reason.starts_with(&format!("{RT}: booted 2 times, and another kernel ran afterwards"))
    }));
}

/// The machine goes down after `of_stock` cells of the first kernel, and comes up with its usual one.
fn going_down(of_stock: usize) -> Play {
    let mut play = Play::new();
    play.until_the_end(|play, kernel| {
        play.boot(kernel, if kernel == STOCK { of_stock } else { 9 });
        play.log.pop_if(|line| line.event == BootEvent::Asked);
        play.boot(OTHER, 9)
    });
    play
}

#[test]
fn a_machine_that_goes_down_goes_on_where_it_was_and_gives_up_after_two_times() {
    // The second boot makes the cell that the first one did not.
    let play = going_down(1);
    assert_eq!((play.entries.len(), play.header.failed.len()), (18, 0));
    let play = going_down(0);
    assert_eq!((play.entries.len(), play.header.failed.len()), (12, 6));
    let reason = format!("{STOCK}: booted 2 times, and the machine went down 2 times while it was measured");
    assert_eq!(play.header.failed[0].reason, reason);
}

#[test]
fn a_plan_with_the_running_kernel_is_refused_and_absent_kernels_are_skipped() {
    let mut plan = Plan::default();
    plan.axes.kernel.push(RT.parse().unwrap());
    assert!(check_plan(&plan).unwrap_err().starts_with("kernels `running` and `installed:6.1-rt-amd64` cannot be"));
    plan.axes.kernel = vec!["installed:current quiet".parse().unwrap()];
    let plan = with_release(plan, Some("6.1-amd64")).unwrap();
    assert_eq!(plan.axes.kernel[0].to_string(), "installed:6.1-amd64 quiet");
    let cells = Play::new().header.cells;
    let (cells, skipped) = without_absent((cells, Vec::new()), &["6.1-rt-amd64".to_owned()]);
    assert_eq!((cells.len(), skipped.len()), (4, 2));
    assert_eq!(skipped[0].reason, "installed:6.1-amd64 is not in /boot with its modules; there are 6.1-rt-amd64");
}
