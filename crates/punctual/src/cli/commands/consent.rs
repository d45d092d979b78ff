//! Consent to what a foreign plan or run does, to programs that others may write, and to floods of other machines.

mod actions;
mod ownership;

use crate::cli::terminal::note;
use actions::{Action, Harmless, Started};
use punctual_model::{Header, Load, Site};
use punctual_sys::process;
use std::fs::File;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, ToSocketAddrs, UdpSocket};
use std::path::{Path, PathBuf};

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

    /// Refuses to copy a file that is not the user's own, unless `yes`: the copy would be. Errors: one line with the
    /// remedy.
    pub(super) fn permit_copy(&self, yes: bool) -> Result<(), String> {
        let Some(why) = self.foreign.as_ref().filter(|_| !yes) else { return Ok(()) };
        Err(format!("{} {why}, and would run from files of your own; read it, then add --yes", self.path.display()))
    }

    /// Refuses the actions of a file that is not the user's own, and programs that other users may have written, unless
    /// `yes`. Errors: one line with the intended actions and the remedy.
    pub(super) fn permit(&self, header: &Header, yes: bool) -> Result<(), String> {
        if yes {
            return Ok(());
        }
        let mut all = actions::of(&header.cells).into_iter();
        let is_meant = |action: &Action| !self.settings_are_typed || !matches!(action, Action::Set(_));
        let foreign_program = |action: Action| {
            let why = ownership::why_program_is_foreign(action.command()?)?;
            Some((vec![action], why))
        };
        let found = match &self.foreign {
            Some(why) => Some((all.filter(is_meant).collect(), why.clone())),
            None => all.find_map(foreign_program),
        };
        let Some((actions, why)) = found else { return Ok(()) };
        let would = clauses(&actions, self.on.as_ref());
        if would.is_empty() {
            return Ok(());
        }
        Err(format!("{} would {}, and {why}; read it, then add --yes", self.path.display(), would.join(" and ")))
    }
}

/// The actions as clauses after `would`: those of one kind together.
fn clauses(all: &[Action], on: Option<&Site>) -> Vec<String> {
    let (actor, machine) = (actor(on), on.map_or("this machine".to_owned(), ToString::to_string));
    let (mut programs, mut in_guests, mut reach, mut at_spikes) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let (mut settings, mut others) = (Vec::new(), Vec::new());
    for action in all {
        match action {
            Action::Run(Started { text, .. }) => programs.push(text.as_str()),
            Action::RunInGuest(Started { text, .. }) => in_guests.push(text.as_str()),
            Action::Reach(role, site) => reach.push(format!("reach its {role} by `{site}` {actor}")),
            Action::AtSpikes(command) => at_spikes.push(format!("run `{command}` {actor} at spikes")),
            Action::Set(setting) => settings.push(setting.as_str()),
            Action::Other(clause) => others.push(clause.clone()),
            Action::Harmless(_) => {}
        }
    }
    others.sort_unstable();
    let run = |programs: &[&str], by: &str| {
        let (first, others) = programs.split_first()?;
        let more = if others.is_empty() { String::new() } else { format!(" and {} more", others.len()) };
        Some(format!("run `{first}`{more} {by}"))
    };
    let set = (!settings.is_empty()).then(|| format!("set {} on {machine}", settings.join(",")));
    let programs = run(&programs, &actor).into_iter().chain(run(&in_guests, "in a guest"));
    programs.chain(reach).chain(at_spikes).chain(set).chain(others).collect()
}

/// Permits the continuation of the run in `dir`, whose programs and settings are announced; `on`: the machine that
/// measures, if it is not this one. Errors: one line, if its files are not the user's own, unless `yes`.
pub(super) fn permit_resumption(dir: &Path, header: &Header, on: Option<&Site>, yes: bool) -> Result<(), String> {
    let file = punctual_store::file_of(dir);
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
    let (from, actor) = (from.display(), actor(on));
    for action in actions::of(&header.cells) {
        match action {
            Action::Run(Started { text, .. }) => note(format_args!("punctual: {from} runs {actor}: {text}")),
            Action::RunInGuest(Started { text, .. }) => {
                note(format_args!("punctual: {from} runs in a guest: {text}"));
            }
            Action::Reach(role, site) => note(format_args!("punctual: {from} reaches its {role} {actor}: {site}")),
            Action::AtSpikes(command) => note(format_args!("punctual: {from} runs {actor} at spikes: {command}")),
            Action::Set(_) | Action::Other(_) | Action::Harmless(_) => {}
        }
    }
}

/// Prints the settings that the plan or run `from` makes on this machine, or on the machine `on`.
pub(super) fn announce_settings(from: &Path, header: &Header, on: Option<&Site>) {
    if let Some(settings) = settings(&actions::of(&header.cells)) {
        let there = on.map(|site| format!(" on {site}")).unwrap_or_default();
        let of = if header.plan.axes.prepare.is_empty() { "each cell" } else { "the cells with that `prepare`" };
        note(format_args!("punctual: {} sets{there} for the length of {of}: {settings}", from.display()));
    }
}

/// Everything that a run does to the system besides measuring: settings and devices, then programs and other effects.
pub(super) fn actions(header: &Header) -> (Vec<String>, Vec<String>) {
    let all = actions::of(&header.cells);
    let (mut held_us, mut is_traced) = (None, false);
    let (mut guests, mut programs, mut others) = (Vec::new(), Vec::new(), Vec::new());
    for action in &all {
        match action {
            Action::Run(Started { text, .. }) => programs.push(text.clone()),
            Action::RunInGuest(Started { text, .. }) => programs.push(format!("{text} (in a guest)")),
            Action::Reach(role, site) => programs.push(format!("{role} by {site}")),
            Action::AtSpikes(command) => programs.push(format!("at spikes: {command}")),
            Action::Other(clause) => others.push(clause.clone()),
            Action::Set(_) => {}
            Action::Harmless(Harmless::Guest(kernel)) => guests.push(kernel.as_str()),
            Action::Harmless(Harmless::Language(runtime)) => programs.push(format!("sleep:{runtime}")),
            Action::Harmless(Harmless::Hold(us)) => held_us = held_us.into_iter().chain([*us]).min(),
            Action::Harmless(Harmless::Trace) => is_traced = true,
        }
    }
    let held = held_us.map(|us| format!("/dev/cpu_dma_latency held at {us} us"));
    let traced = is_traced.then(|| "a trace instance of the kernel".to_owned());
    others.sort_unstable();
    let guests =
        (!guests.is_empty()).then(|| format!("QEMU with {}, fetched unless they are in the cache", guests.join(", ")));
    let others = guests.into_iter().chain(programs).chain(others);
    (settings(&all).into_iter().chain(held).chain(traced).collect(), others.collect())
}

/// The settings of the machine among these actions, in the syntax of `--prepare`.
fn settings(all: &[Action]) -> Option<String> {
    let words: Vec<&str> = all
        .iter()
        .filter_map(|action| if let Action::Set(word) = action { Some(word.as_str()) } else { None })
        .collect();
    (!words.is_empty()).then(|| words.join(","))
}

/// User as which programs run, or the machine `on`, whose user is its own matter.
fn actor(on: Option<&Site>) -> String {
    match (on, process::effective_user_id()) {
        (Some(site), _) => format!("on {site}"),
        (None, 0) => "as root".to_owned(),
        (None, id) => format!("as user {id}"),
    }
}

/// Refuses to flood another machine unless `yes`. Errors: one line that names the host and the remedy.
pub(super) fn permit_floods(header: &Header, yes: bool) -> Result<(), String> {
    permit_floods_by(actions::of(&header.cells), yes)
}

/// Refuses to flood another machine by loads of the command line, unless `yes`. Errors: as [`permit_floods`].
pub(super) fn permit_floods_of<'a>(loads: impl Iterator<Item = &'a Load>, yes: bool) -> Result<(), String> {
    permit_floods_by(loads.flat_map(actions::of_load).collect(), yes)
}

fn permit_floods_by(all: Vec<Action>, yes: bool) -> Result<(), String> {
    for action in all.into_iter().filter(|_| !yes) {
        let (Action::Run(started) | Action::RunInGuest(started)) = action else { continue };
        let Started { text: program, floods: Some(host), .. } = started else { continue };
        let addresses = (host.as_str(), 0).to_socket_addrs().map_err(|err| format!("{program}: {err}"))?;
        // All addresses: ping may choose any of them.
        if let Some(other) = addresses.map(|address| address.ip().to_canonical()).find(|address| !is_here(*address)) {
            let what = if other.to_string() == host { String::new() } else { format!(" ({other})") };
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
