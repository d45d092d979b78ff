//! Everything that cells do besides measuring with this program's own threads and files.
//!
//! The one list that permission, announcement, resumption and dry run share. [`of_cell`] names every field and every
//! kind of a cell, so that a new one does not compile until it is listed here.

use punctual_model::{
    Cell, Conditions, Explain, FileLoad, Instrument, Kernel, KernelLoad, KernelSource, LabKernel, Link, Load, LoadPart,
    Program, Roles, Runtime, Site, Task, Tool, WatchTarget,
};
use std::net::IpAddr;

/// One effect of a cell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Action {
    /// Starts a program of the plan.
    Run(Started),
    /// Starts a program of the plan in a guest.
    RunInGuest(Started),
    /// Starts a shell command at spikes.
    AtSpikes(String),
    /// Reaches another machine in this role, with the privileges there.
    Reach(&'static str, Site),
    /// Changes a setting of the machine, `KEY=VALUE`.
    Set(String),
    /// Another effect that the plan names: bytes and files written, a policy, a kernel. A clause after `would`.
    Other(String),
    /// An effect that needs no consent.
    Harmless(Harmless),
}

/// An effect that a plan of any user may have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Harmless {
    /// Starts the programs of a language.
    Language(Runtime),
    /// Starts a guest with this kernel.
    Guest(String),
    /// Holds this value in `/dev/cpu_dma_latency`, us.
    Hold(u32),
    /// Traces the kernel.
    Trace,
}

/// A program of a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Started {
    /// The program as typed in the plan.
    pub(super) text: String,
    /// The command, in whose words files may be named.
    pub(super) command: String,
    /// Host that it floods, if it does.
    pub(super) floods: Option<String>,
}

impl Started {
    fn new(text: String, command: String) -> Started {
        Started { text, command, floods: None }
    }
}

impl Action {
    /// The command that it starts on this machine, if it does.
    pub(super) fn command(&self) -> Option<&str> {
        match self {
            Action::Run(started) => Some(&started.command),
            Action::AtSpikes(command) | Action::Reach(_, Site::Exec(command)) => Some(command),
            Action::Reach(_, Site::Here | Site::Ssh(_)) => None,
            Action::RunInGuest(_) | Action::Set(_) | Action::Other(_) | Action::Harmless(_) => None,
        }
    }
}

/// The actions of these cells, each once, in the order of the cells.
pub(super) fn of<'a>(cells: impl IntoIterator<Item = &'a Cell>) -> Vec<Action> {
    let mut all = Vec::new();
    for action in cells.into_iter().flat_map(of_cell) {
        if !all.contains(&action) {
            all.push(action);
        }
    }
    all
}

fn of_cell(cell: &Cell) -> Vec<Action> {
    let Cell {
        kernel,
        load,
        task,
        conditions,
        policy: _,
        period: _,
        cpus: _,
        duration: _,
        deadline: _,
        lock_memory: _,
        load_cpus: _,
    } = cell;
    let here =
        of_task(task).into_iter().chain(of_load(load)).chain(of_conditions(conditions, !load.parts().is_empty()));
    let Kernel::Lab(guest) = kernel else { return here.collect() };
    let inside = here.filter_map(|action| match action {
        Action::Run(started) => Some(Action::RunInGuest(started)),
        Action::AtSpikes(command) => Some(Action::RunInGuest(Started::new(command.clone(), command))),
        // The host of a guest may be traced, too.
        Action::Harmless(Harmless::Trace) => Some(Action::Harmless(Harmless::Trace)),
        // Stays in the guest.
        Action::RunInGuest(_) | Action::Reach(..) | Action::Set(_) | Action::Other(_) | Action::Harmless(_) => None,
    });
    let boots = Action::Harmless(Harmless::Guest(kernel.to_string()));
    std::iter::once(boots).chain(of_guest(guest)).chain(files_of(task)).chain(inside).collect()
}

/// The files that a guest boots and takes along, its threads, and what runs on this machine beside it.
fn of_guest(guest: &LabKernel) -> Vec<Action> {
    let LabKernel { source, arguments: _, modules, files, clock: _, cpus: _, threads, host_load, libvirt: _ } = guest;
    let boots = match source {
        KernelSource::File(path) => Some(Action::Other(format!("boot {path}"))),
        KernelSource::Debian { .. } => None,
    };
    let copied = modules.iter().chain(files.iter().map(|file| &file.from)).map(|path| copied(path));
    let threads = Some(threads.to_string()).filter(|words| !words.is_empty());
    let threads = threads.map(|words| Action::Other(format!("run a guest's threads with {words}")));
    boots.into_iter().chain(copied).chain(threads).chain(of_load(host_load)).collect()
}

fn copied(path: &str) -> Action {
    Action::Other(format!("copy {path} into a guest"))
}

/// The files that the task takes along into a guest.
fn files_of(task: &Task) -> Vec<Action> {
    task.instrument().iter().flat_map(|instrument| &instrument.files).map(|path| copied(path)).collect()
}

fn of_task(task: &Task) -> Vec<Action> {
    match task {
        Task::Cyclic(_) | Task::Cost(_) | Task::Timerbench(_) => Vec::new(),
        Task::Sleep(runtime) => vec![Action::Harmless(Harmless::Language(*runtime))],
        Task::Response(link) => of_link(*link),
        Task::Program(instrument) => {
            // Files are for guests and other machines, and `output` is in a directory of its own.
            let Instrument { command, read: _, output: _, files: _, timeout: _, is_interrupted: _ } = &**instrument;
            vec![Action::Run(Started::new(instrument.to_string(), command.clone()))]
        }
        Task::Watch(watch) => match &watch.target {
            WatchTarget::Command(command) => vec![Action::Run(Started::new(watch.to_string(), command.clone()))],
            WatchTarget::Pid(_) | WatchTarget::Cgroup(_) | WatchTarget::Unit(_) | WatchTarget::Everywhere => Vec::new(),
        },
    }
}

/// The actions of a load on the machine that it runs on.
pub(super) fn of_load(load: &Load) -> Vec<Action> {
    let of_part = |part: &LoadPart| match part {
        LoadPart::Cpu { percent: _ } | LoadPart::Messaging { groups: _ } => None,
        LoadPart::Kernel(
            KernelLoad::Pipe
            | KernelLoad::Mmap
            | KernelLoad::Fork
            | KernelLoad::Exec
            | KernelLoad::Tcp
            | KernelLoad::Udp
            | KernelLoad::Sync
            | KernelLoad::Memory
            | KernelLoad::Timers
            | KernelLoad::Signals
            | KernelLoad::Proc
            | KernelLoad::Interrupts
            | KernelLoad::Light,
        ) => None,
        LoadPart::Files { work: FileLoad::Disk | FileLoad::Files | FileLoad::Cost, directory } => {
            directory.as_ref().map(|directory| writes_in(directory))
        }
        LoadPart::Program(program) => Some(Action::Run(of_program(program))),
    };
    load.parts().iter().filter_map(of_part).collect()
}

fn of_program(program: &Program) -> Started {
    let Program { tool, arguments } = program;
    let (command, floods) = match tool {
        Tool::Command => (arguments.clone(), None),
        Tool::StressNg | Tool::Hackbench | Tool::Fio => (format!("{} {arguments}", tool.command()), None),
        Tool::Ping => (format!("{} {arguments}", tool.command()), Some(arguments.clone())),
    };
    Started { text: program.to_string(), command, floods }
}

fn writes_in(directory: &str) -> Action {
    Action::Other(format!("write files in {directory}"))
}

fn of_conditions(conditions: &Conditions, is_loaded: bool) -> Vec<Action> {
    let Conditions {
        warm_up: _,
        timer_slack: _,
        align: _,
        distance: _,
        period_step: _,
        cpu_dma_latency_us,
        load_policy,
        load_must_hold: _,
        prepare,
        explain,
        stop_above: _,
        on_spike,
        marks,
        tracers,
        roles,
    } = conditions;
    let load_policy = load_policy.filter(|policy| policy.is_realtime() && is_loaded);
    let mut all: Vec<Action> = prepare.words().into_iter().map(Action::Set).collect();
    all.extend(cpu_dma_latency_us.map(|us| Action::Harmless(Harmless::Hold(us))));
    all.extend(load_policy.map(|policy| Action::Other(format!("run its load as {policy}"))));
    all.extend((explain.is_some() || *tracers || !marks.is_empty()).then_some(Action::Harmless(Harmless::Trace)));
    if let Some(Explain { above: _, keep: _, stacks: _, witness: _, export, for_host: _, captures: _ }) = explain {
        all.extend(export.iter().map(|directory| writes_in(&directory.display().to_string())));
    }
    all.extend(on_spike.clone().map(Action::AtSpikes));
    all.extend(of_roles(roles));
    all
}

fn of_roles(roles: &Roles) -> Vec<Action> {
    let Roles { target, target_cpu: _, target_link, logger, host } = roles;
    let sites = [("target", target), ("logger", logger), ("host", host)];
    let of_site = |(role, site): (&'static str, &Option<Site>)| match site {
        None | Some(Site::Here) => None,
        Some(site @ (Site::Ssh(_) | Site::Exec(_))) => Some(Action::Reach(role, site.clone())),
    };
    let sent = target_link.iter().flat_map(|link| of_link(*link));
    sites.into_iter().filter_map(of_site).chain(sent).collect()
}

fn of_link(link: Link) -> Vec<Action> {
    if stays_here(link) { Vec::new() } else { vec![Action::Other(format!("send to {link}"))] }
}

/// Whether `link` reaches only programs on this machine.
fn stays_here(link: Link) -> bool {
    let place = match link {
        Link::Uio | Link::Oob => return true,
        Link::SerialLoop(_)
        | Link::Serial { .. }
        | Link::Gpio(_)
        | Link::GpioLoop(_)
        | Link::Parport(_)
        | Link::UioDevice(_) => return false,
        Link::Udp(place) => place,
    };
    let host = place.as_str().rsplit_once(':').map_or(place.as_str(), |(host, _)| host);
    let host = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || host.parse().is_ok_and(|address: IpAddr| address.to_canonical().is_loopback())
}

#[cfg(test)]
mod tests;
