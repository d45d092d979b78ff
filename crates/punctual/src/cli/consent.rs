//! Actions that need the user's consent: programs and settings of a foreign file, floods of other machines.

mod ownership;

use super::note;
use model::{Cell, Header, Kernel, KernelSource, Link, Load, LoadPart, Program, Site, Tool};
use std::fs::File;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, ToSocketAddrs, UdpSocket};
use std::path::{Path, PathBuf};
use sys::process;

/// A plan or a run as a source of programs and settings.
#[derive(Debug)]
pub(super) struct Origin {
    path: PathBuf,
    /// Reason for which it is not the user's own; `None` if it is.
    foreign: Option<String>,
    /// Whether the command line replaces its settings.
    settings_are_typed: bool,
    /// The machine that measures, if it is not this one.
    on: Option<Site>,
}

impl Origin {
    /// The file `opened` under the name `path`. The checks use the open file, because the name may lead to another one
    /// by now.
    pub(super) fn of(path: &Path, opened: &File) -> io::Result<Origin> {
        let foreign = ownership::why_foreign(path, opened)?;
        Ok(Origin { path: path.to_owned(), foreign, settings_are_typed: false, on: None })
    }

    /// Records whether the settings come from the command line (`typed`).
    pub(super) fn with_settings(self, typed: bool) -> Origin {
        Origin { settings_are_typed: typed, ..self }
    }

    /// Records the machine that measures.
    pub(super) fn on(self, site: Option<&Site>) -> Origin {
        Origin { on: site.cloned(), ..self }
    }

    /// Refuses to copy a file that is not the user's own, unless `yes`: the copy would be.
    ///
    /// # Errors
    /// One line with the remedy.
    pub(super) fn permit_copy(&self, yes: bool) -> Result<(), String> {
        let Some(why) = self.foreign.as_ref().filter(|_| !yes) else { return Ok(()) };
        Err(format!("{} {why}, and would run from files of your own; read it, then add --yes", self.path.display()))
    }

    /// Refuses programs and settings of a file that is not the user's own, unless `yes`.
    ///
    /// # Errors
    /// One line with the intended actions and the remedy.
    pub(super) fn permit(&self, header: &Header, yes: bool) -> Result<(), String> {
        let Some(why) = self.foreign.as_ref().filter(|_| !yes) else { return Ok(()) };
        let on = self.on.as_ref();
        let programs = programs(loads(header));
        let would_run = programs.split_first().map(|(first, others)| {
            let more = if others.is_empty() { String::new() } else { format!(" and {} more", others.len()) };
            format!("run `{first}`{more} {}", actor(on))
        });
        let at_spikes = on_spike(header).map(|command| format!("run `{command}` {} at spikes", actor(on)));
        let would_set = settings(header)
            .filter(|_| !self.settings_are_typed)
            .map(|settings| format!("set {settings} on {}", on.map_or("this machine".to_owned(), ToString::to_string)));
        let would_reach = sites(header).map(|(role, site)| format!("reach its {role} by `{site}` {}", actor(on)));
        let would = would_run.into_iter().chain(would_reach).chain(at_spikes).chain(would_set);
        let would: Vec<_> = would.chain(effects(header)).collect();
        if would.is_empty() {
            return Ok(());
        }
        Err(format!("{} would {}, and {why}; read it, then add --yes", self.path.display(), would.join(" and ")))
    }
}

/// Permits the continuation of the run in `dir`, whose programs and settings are announced; `on`: the machine that
/// measures, if it is not this one.
///
/// # Errors
/// One line, if its files are not the user's own, unless `yes`.
pub(super) fn permit_resumption(dir: &Path, header: &Header, on: Option<&Site>, yes: bool) -> Result<(), String> {
    let file = store::file_of(dir);
    // Another user with write permission on the directory can replace the file.
    let parent = file.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    for path in [parent, &file] {
        let origin = File::open(path).and_then(|opened| Origin::of(path, &opened));
        let origin = origin.map_err(|err| format!("{}: {err}", path.display()))?;
        origin.on(on).permit(header, yes)?;
    }
    permit_floods(header, yes)?;
    announce(dir, header, on);
    announce_settings(dir, header, on);
    Ok(())
}

/// Prints one line for each program that the plan or run `from` starts, and for each machine that it reaches; `on`: the
/// machine that measures, if it is not this one.
pub(super) fn announce(from: &Path, header: &Header, on: Option<&Site>) {
    for program in programs(loads(header)) {
        note(format_args!("punctual: {} runs {}: {program}", from.display(), actor(on)));
    }
    for (role, site) in sites(header) {
        note(format_args!("punctual: {} reaches its {role} {}: {site}", from.display(), actor(on)));
    }
    if let Some(command) = on_spike(header) {
        note(format_args!("punctual: {} runs {} at spikes: {command}", from.display(), actor(on)));
    }
}

/// Prints the settings that the plan or run `from` makes on this machine, or on the machine `on`.
pub(super) fn announce_settings(from: &Path, header: &Header, on: Option<&Site>) {
    if let Some(settings) = settings(header) {
        let there = on.map(|site| format!(" on {site}")).unwrap_or_default();
        note(format_args!("punctual: {} sets{there} for the length of each cell: {settings}", from.display()));
    }
}

/// Everything that a run does to the system besides measuring: settings and devices, then programs and other effects.
pub(super) fn actions(header: &Header) -> (Vec<String>, Vec<String>) {
    let latency = header.cells.iter().filter(|cell| cell.kernel == Kernel::Running);
    let latency = latency.filter_map(|cell| cell.conditions.cpu_dma_latency_us).min();
    let held = latency.map(|us| format!("/dev/cpu_dma_latency held at {us} us"));
    let is_traced = header.cells.iter().any(|cell| cell.conditions.explain.is_some() || cell.conditions.tracers);
    let traced = is_traced.then(|| "a trace instance of the kernel".to_owned());
    let programs = programs(loads(header)).into_iter().map(ToString::to_string);
    let reached = sites(header).map(|(role, site)| format!("{role} by {site}"));
    let at_spikes = on_spike(header).map(|command| format!("at spikes: {command}"));
    let mut guests: Vec<_> =
        header.cells.iter().filter(|cell| cell.kernel != Kernel::Running).map(|cell| cell.kernel.to_string()).collect();
    guests.dedup();
    let guests =
        (!guests.is_empty()).then(|| format!("QEMU with {}, fetched unless they are in the cache", guests.join(", ")));
    let others = guests.into_iter().chain(programs).chain(reached).chain(at_spikes).chain(effects(header));
    (settings(header).into_iter().chain(held).chain(traced).collect(), others.collect())
}

/// The settings that the cells change, in the syntax of `--prepare`.
fn settings(header: &Header) -> Option<String> {
    let prepare = header.cells.iter().map(|cell| &cell.conditions.prepare).find(|prepare| !prepare.is_empty());
    prepare.map(ToString::to_string)
}

/// The command that the cells run at spikes, from the plan.
fn on_spike(header: &Header) -> Option<&str> {
    header.cells.iter().find_map(|cell| cell.conditions.on_spike.as_deref())
}

/// The other machines that the cells use, with their roles, from the plan.
fn sites(header: &Header) -> impl Iterator<Item = (&'static str, &Site)> {
    header.cells.first().into_iter().flat_map(|cell| cell.conditions.roles.elsewhere())
}

/// Other effects of the cells beyond this program's own files and threads, without duplicates: files in directories
/// named by the plan, bytes sent to devices and machines, real-time loads, kernels from files.
fn effects(header: &Header) -> Vec<String> {
    let mut all: Vec<String> = header.cells.iter().flat_map(effects_of).collect();
    all.sort_unstable();
    all.dedup();
    all
}

fn effects_of(cell: &Cell) -> Vec<String> {
    if let Kernel::Lab(kernel) = &cell.kernel {
        // All other effects stay in the guest.
        return match &kernel.source {
            KernelSource::File(path) => vec![format!("boot {path}")],
            KernelSource::Debian { .. } => Vec::new(),
        };
    }
    let files = cell.load.parts().iter().filter_map(|part| match part {
        LoadPart::Files { directory: Some(directory), .. } => Some(format!("write files in {directory}")),
        _ => None,
    });
    let links = cell.task.link().into_iter().chain(cell.conditions.roles.target_link).filter(|link| !stays_here(*link));
    let policy = cell.conditions.load_policy.filter(|policy| policy.is_realtime() && !cell.load.parts().is_empty());
    let load = policy.map(|policy| format!("run its load as {policy}"));
    files.chain(links.map(|link| format!("send to {link}"))).chain(load).collect()
}

/// Whether `link` reaches only programs on this machine.
fn stays_here(link: Link) -> bool {
    let Link::Udp(place) = link else { return link.is_timers() };
    let host = place.as_str().rsplit_once(':').map_or(place.as_str(), |(host, _)| host);
    let host = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || host.parse().is_ok_and(|address: IpAddr| address.to_canonical().is_loopback())
}

/// User as which programs run, or the machine `on`, whose user is its own matter.
fn actor(on: Option<&Site>) -> String {
    match (on, process::effective_user_id()) {
        (Some(site), _) => format!("on {site}"),
        (None, 0) => "as root".to_owned(),
        (None, id) => format!("as user {id}"),
    }
}

fn loads(header: &Header) -> impl Iterator<Item = &Load> {
    header.cells.iter().map(|cell| &cell.load)
}

/// The programs of `loads`, without duplicates.
fn programs<'a>(loads: impl Iterator<Item = &'a Load>) -> Vec<&'a Program> {
    let mut programs = Vec::new();
    for part in loads.flat_map(Load::parts) {
        match part {
            LoadPart::Program(program) if !programs.contains(&program) => programs.push(program),
            _ => {}
        }
    }
    programs
}

/// Refuses to flood another machine unless `yes`.
///
/// # Errors
/// One line that names the host and the remedy.
pub(super) fn permit_floods(header: &Header, yes: bool) -> Result<(), String> {
    permit_floods_of(loads(header), yes)
}

/// Refuses to flood another machine by loads of the command line, unless `yes`.
///
/// # Errors
/// As [`permit_floods`].
pub(super) fn permit_floods_of<'a>(loads: impl Iterator<Item = &'a Load>, yes: bool) -> Result<(), String> {
    let floods = programs(loads).into_iter().filter(|program| program.tool == Tool::Ping && !yes);
    for program in floods {
        let host = &program.arguments;
        let addresses = (host.as_str(), 0).to_socket_addrs().map_err(|err| format!("{program}: {err}"))?;
        // All addresses: ping may choose any of them.
        if let Some(other) = addresses.map(|address| address.ip().to_canonical()).find(|address| !is_here(*address)) {
            let what = if other.to_string() == *host { String::new() } else { format!(" ({other})") };
            return Err(format!(
                "{program} would flood {host}{what}, which is not this machine; use ping:127.0.0.1, or add --yes if \
                 you are permitted to"
            ));
        }
    }
    Ok(())
}

/// Whether packets to `address` stay on this machine: then the kernel chooses that address as the source. Nothing is
/// sent.
fn is_here(address: IpAddr) -> bool {
    let any: IpAddr = if address.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    // Discard port (RFC 863); any port would do.
    let connected = UdpSocket::bind((any, 0)).and_then(|socket| socket.connect((address, 9)).map(|()| socket));
    address.is_loopback() || connected.and_then(|socket| socket.local_addr()).is_ok_and(|own| own.ip() == address)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_udp_to_this_machine_stays_here() {
        for (link, stays) in [
            ("uio", true),
            ("oob", true),
            ("udp:127.0.0.1:4001", true),
            ("udp:localhost:4001", true),
            ("udp:[::1]:4001", true),
            ("udp:192.0.2.1:4001", false),
            ("udp:localhost.example:4001", false),
            ("serial:/dev/ttyS0", false),
            ("serial-loop:/dev/ttyS0", false),
        ] {
            assert_eq!(stays_here(link.parse().unwrap()), stays, "{link}");
        }
    }

    #[test]
    fn each_program_is_told_once() {
        let loads = ["none", "cpu+cmd:a + b", "disk+stress-ng:--cpu 1", "x=cmd:a + b"];
        let loads: Vec<Load> = loads.iter().map(|text| text.parse().unwrap()).collect();
        let told: Vec<_> = programs(loads.iter()).iter().map(ToString::to_string).collect();
        assert_eq!(told, ["cmd:a + b", "stress-ng:--cpu 1"]);
    }

    #[test]
    fn only_this_machine_is_flooded_unless_the_user_says_yes() {
        let permit = |text: &str, yes| permit_floods_of([text.parse::<Load>().unwrap()].iter(), yes);
        for text in ["none", "messaging", "cmd:ping -f 192.0.2.1", "ping:127.0.0.1", "ping:127.1.2.3", "ping:localhost"]
        {
            assert_eq!(permit(text, false), Ok(()), "{text}");
        }
        // Addresses for documentation (RFC 5737, RFC 3849), a multicast group, broadcast.
        for host in ["192.0.2.1", "2001:db8::1", "224.0.0.1", "255.255.255.255", "::ffff:192.0.2.1"] {
            let refused = permit(&format!("cpu+ping:{host}"), false).unwrap_err();
            let says = format!("ping:{host} would flood {host}");
            assert!(refused.starts_with(&says) && refused.contains("which is not this machine; use "), "{refused}");
            assert_eq!(permit(&format!("ping:{host}"), true), Ok(()));
        }
        let unknown = permit("ping:no-such-host.invalid", false).unwrap_err();
        assert!(unknown.starts_with("ping:no-such-host.invalid: "), "{unknown}");
    }

    #[test]
    fn an_address_of_this_machine_is_here() {
        // Source address for another machine; without a route there is none.
        let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).unwrap();
        if socket.connect((Ipv4Addr::new(192, 0, 2, 1), 9)).is_ok() {
            assert!(is_here(socket.local_addr().unwrap().ip()));
        }
        assert!(is_here(Ipv6Addr::LOCALHOST.into()));
    }
}
