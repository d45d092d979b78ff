//! PID 1 of a machine that runs from a stick: a menu, measurements, and their results on the stick.

use super::choices::{Action, CHOICES};
use super::names::{KERNEL, KERNELS, STICK};
use super::terminals::Terminals;
use super::tour::{Step, Tour};
use super::volume::PLACE;
use super::{fit, names, tour_file, volume};
use crate::{STARTS_GUESTS, guest_files, modules};
use punctual_host::file;
use punctual_sys::{boot, mount};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

/// Directory of the runs on the stick, and the files of one: `run.jsonl` is there from its beginning on, the answer
/// from its end on.
const RUNS: &str = "runs";
const RUN: &str = "run.jsonl";
const ANSWER: &str = "answer.txt";

/// Lines of a screen of text, with one for the question below it.
const SCREEN_LINES: usize = 23;
/// Answers above the menu.
const MAX_ANSWERS: usize = 5;
/// Time to stop a tour before it goes on.
const TOUR_PAUSE: Duration = Duration::from_secs(10);
/// Time in which a serial port sends the last lines.
const LAST_LINES: Duration = Duration::from_secs(1);

/// Whether this process is the init process of a machine that runs from a stick.
pub fn is_stick() -> bool {
    let is_named = || std::env::args_os().next().is_some_and(|name| name == "/init");
    STARTS_GUESTS && std::process::id() == 1 && is_named() && std::env::var_os(STICK).is_some()
}

/// Runs as PID 1. It returns only where a machine cannot be restarted.
pub fn run() -> ExitCode {
    let ready = punctual_host::make_system().and_then(|()| {
        fs::create_dir_all("/dev/pts")?;
        mount::file_system("devpts", "/dev/pts")
    });
    let mut stick = Stick::start();
    if let Err(err) = ready {
        stick.terminals.say(&format!("this kernel lacks a file system: {err}"));
    }
    stick.go_on_with_tour();
    loop {
        stick.menu();
    }
}

/// The machine.
struct Stick {
    terminals: Terminals,
    /// Names of the kernels.
    kernels: Vec<String>,
    /// The running one.
    running: usize,
    /// Whether results go to the stick, and not to memory only.
    is_kept: bool,
}

impl Stick {
    fn start() -> Stick {
        let mut terminals = Terminals::open();
        let kernels = fs::read_to_string(Path::new("/").join(KERNELS)).unwrap_or_default();
        let kernels: Vec<String> = kernels.lines().map(str::to_owned).collect();
        let running = std::env::var(KERNEL).ok().and_then(|place| place.parse().ok()).unwrap_or(0);
        let name = kernels.get(running).map_or("an unknown kernel", String::as_str);
        terminals.say(&format!("\npunctual {} on {name}: looking for the stick", env!("CARGO_PKG_VERSION")));
        for (module, err) in modules::load() {
            // A PC without the device.
            if err.raw_os_error() != Some(libc::ENODEV) {
                terminals.say(&format!("driver {module} is not loaded: {}", modules::why(&err)));
            }
        }
        for complaint in punctual_host::without_effect(&own_words(running)) {
            terminals.say(&complaint);
        }
        let mounted = volume::mount(&std::env::var(STICK).unwrap_or_default());
        if let Err(reason) = &mounted {
            terminals.say(reason);
            terminals.say("results stay in memory, and are lost when this PC is switched off");
        }
        Stick { terminals, kernels, running, is_kept: mounted.is_ok() }
    }

    /// Shows the menu, and does what is chosen.
    fn menu(&mut self) {
        let answers = answers();
        let shown = answers.len().saturating_sub(MAX_ANSWERS);
        answers[shown..].iter().for_each(|(name, answer)| self.terminals.say(&format!("\n{name}\n  {answer}")));
        let unfinished = last_unfinished();
        let name = self.name().to_owned();
        self.terminals.say(&format!("\nIs this PC any good?  Linux {name}; its disks are not touched\n"));
        let has_others = self.kernels.len() > 1 && self.is_kept;
        let offered = |does: Action| has_others || !matches!(does, Action::EachKernel(_));
        for choice in CHOICES.iter().filter(|choice| offered(choice.does)) {
            self.terminals.say(&format!("  {}  {}", choice.key, choice.title));
        }
        if let Some(run) = &unfinished {
            self.terminals.say(&format!("  c  Continue {}", run_name(run)));
        }
        self.terminals.say("\nPress a key. Ctrl-C ends a measurement early.");
        let Some(key) = self.terminals.key(None) else {
            std::thread::sleep(LAST_LINES);
            return;
        };
        match (CHOICES.iter().find(|choice| choice.key == key && offered(choice.does)), key, unfinished) {
            (Some(choice), ..) => self.carry_out(choice.does),
            (None, 'c', Some(run)) => drop(self.measure("", &run)),
            _ => {}
        }
    }

    fn carry_out(&mut self, action: Action) {
        match action {
            Action::Show(words) => self.show(words),
            Action::Measure(plan) => drop(self.measure(plan, &self.new_run(plan))),
            Action::EachKernel(plan) => self.tour(Tour::new(plan, &self.kernels)),
            Action::Restart => self.leave(boot::restart),
            Action::PowerOff => self.leave(boot::power_off),
        }
    }

    /// Shows the output of a command, a screen at a time, and keeps it on the stick.
    fn show(&mut self, words: &[&str]) {
        let mut command = Command::new(punctual_host::THIS_PROGRAM);
        let output = command.args(words).env("PATH", guest_files::PATH).stdin(Stdio::null()).output();
        let text = match output {
            Ok(output) => {
                [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).concat()
            }
            Err(err) => err.to_string(),
        };
        let lines: Vec<_> = text.lines().collect();
        for (n, screen) in lines.chunks(SCREEN_LINES).enumerate() {
            if n > 0 {
                self.terminals.say("-- press a key --");
                self.terminals.key(None);
            }
            screen.iter().for_each(|line| self.terminals.say(line));
        }
        let path = Path::new(PLACE).join(format!("{}-{}.txt", words.join("-"), plain(self.name())));
        if let Err(err) = file::replace(&path, text.as_bytes()) {
            self.terminals.say(&format!("cannot write {}: {err}", path.display()));
        }
    }

    /// Measures a plan, or what is missing of a run that has begun; returns the answer, `None` if it is not complete.
    fn measure(&mut self, plan: &str, run: &Path) -> Option<String> {
        let (name, plan) = (run.display().to_string(), format!("/plans/{plan}.toml"));
        let words = match run.join(RUN).exists() {
            true => vec!["run", "--resume", "--out", &name],
            false => vec!["run", &plan, "--out", &name],
        };
        self.terminals.say(&format!("\n{}", run_name(run)));
        let made = fs::create_dir_all(Path::new(PLACE).join(RUNS)).and_then(|()| self.terminals.run(&words));
        match made {
            // Passed, a limit violated, or inconclusive: the run is whole.
            Ok(status) if matches!(status.code(), Some(0 | 2 | 3)) => {}
            Ok(_) => {
                if let Err(err) = volume::probe() {
                    self.terminals
                        .say(&format!("the stick cannot be written: {err}; if it was pulled out, restart with it"));
                }
                return None;
            }
            Err(err) => {
                self.terminals.say(&format!("cannot measure: {err}"));
                return None;
            }
        }
        let answer = fit::answer(&name);
        if let Err(err) = file::replace(&run.join(ANSWER), format!("{answer}\n").as_bytes()) {
            self.terminals.say(&format!("cannot write the answer: {err}"));
        }
        Some(answer)
    }

    /// Goes on with a tour that a restart is part of, unless a key is pressed.
    fn go_on_with_tour(&mut self) {
        let Some(tour) = tour_file::read().filter(|tour| tour.kernels.len() == self.kernels.len()) else { return };
        self.terminals.say(&format!(
            "all kernels in turn: goes on in {} s; press a key to end it and see the menu",
            TOUR_PAUSE.as_secs()
        ));
        if self.terminals.key(Some(TOUR_PAUSE)).is_some() {
            tour_file::remove();
            return;
        }
        self.tour(tour);
    }

    /// Takes the steps of a tour: it restarts the machine until all kernels have had their turn.
    fn tour(&mut self, mut tour: Tour) {
        let Some(running) = punctual_host::running_kernel() else {
            return self.terminals.say("cannot read the identity of this boot; the tour ends");
        };
        loop {
            let step = tour.next(self.running, &running);
            if let Step::Measure(kernel) = step
                && tour.kernels[kernel].run.is_none()
            {
                tour.kernels[kernel].run = Some(self.new_run(&tour.plan).display().to_string());
            }
            let next = if let Step::Boot(next) = step { Some(next) } else { None };
            if let Err(err) = tour_file::write(&tour, next) {
                return self.terminals.say(&format!("cannot write to the stick: {err}; the tour ends"));
            }
            match step {
                Step::Measure(kernel) => {
                    let run = PathBuf::from(tour.kernels[kernel].run.clone().unwrap_or_default());
                    let plan = tour.plan.clone();
                    let answer = self.measure(&plan, &run);
                    tour.end(
                        kernel,
                        answer.unwrap_or_else(|| "not complete: ended early, or a cell failed".to_owned()),
                    );
                }
                Step::Boot(_) => self.leave(boot::restart),
                Step::Finished => break,
            }
        }
        self.terminals.say("\nall kernels in turn:");
        for turn in &tour.kernels {
            self.terminals.say(&format!("  {}: {}", turn.kernel, turn.outcome.as_deref().unwrap_or("no result")));
        }
        tour_file::remove();
    }

    /// Ends this system.
    fn leave(&mut self, how: fn() -> io::Result<()>) {
        if self.is_kept
            && let Err(err) = mount::leave(PLACE)
        {
            self.terminals.say(&format!("cannot unmount the stick: {err}; its files are synced"));
        }
        std::thread::sleep(LAST_LINES);
        if let Err(err) = how() {
            self.terminals.say(&format!("{err}; switch this PC off"));
        }
    }

    fn name(&self) -> &str {
        self.kernels.get(self.running).map_or("unknown", String::as_str)
    }

    /// The directory of the next run: numbered, because the clock of a PC may be wrong.
    fn new_run(&self, plan: &str) -> PathBuf {
        let number = runs().iter().filter_map(|run| run_name(run).split('-').next()?.parse::<u32>().ok()).max();
        let name = format!("{:03}-{plan}-{}", number.unwrap_or(0) + 1, plain(self.name()));
        Path::new(PLACE).join(RUNS).join(name)
    }
}

/// Words of the command line that are not of the user.
fn own_words(running: usize) -> String {
    let identity = std::env::var(STICK).unwrap_or_default();
    // The boot loader adds its own.
    let image = format!("BOOT_IMAGE=/kernels/{running}/vmlinuz");
    format!("{} {STICK}={identity} {KERNEL}={running} {image}", names::ARGUMENTS)
}

/// The runs on the stick, in the order of their numbers.
fn runs() -> Vec<PathBuf> {
    let entries = fs::read_dir(Path::new(PLACE).join(RUNS)).into_iter().flatten().flatten();
    let mut runs: Vec<_> = entries.map(|entry| entry.path()).collect();
    runs.sort();
    runs
}

fn run_name(run: &Path) -> String {
    run.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// The names of complete runs, with their answers.
fn answers() -> Vec<(String, String)> {
    let answer = |run: PathBuf| Some((run_name(&run), fs::read_to_string(run.join(ANSWER)).ok()?.trim().to_owned()));
    runs().into_iter().filter_map(answer).collect()
}

/// The last run, if it has begun and is not complete.
fn last_unfinished() -> Option<PathBuf> {
    runs().pop().filter(|run| run.join(RUN).exists() && !run.join(ANSWER).exists())
}

/// A name as part of the name of a file.
fn plain(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() || ".+-".contains(c) { c } else { '_' }).collect()
}
