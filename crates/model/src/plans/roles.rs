//! Roles of machines in a measurement of response times: target, logger, host.

use crate::words::word::as_text;
use crate::{CpuSet, Link, Load, LoadPart, Tool, UnknownWord};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// A machine and the way to reach it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[schemars(with = "String")]
#[serde(try_from = "String", into = "String")]
pub enum Site {
    /// This machine.
    Here,
    /// A destination of `ssh`: `HOST`, `USER@HOST`, or a name from its configuration.
    Ssh(String),
    /// A command prefix that starts the words after it unchanged: `ip netns exec target`.
    Exec(String),
}

impl Site {
    /// Every site in its typed form.
    pub const KNOWN: &[&str] = &["here", "ssh:HOST", "exec:COMMAND"];
}

/// Parse error of a site.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SiteError {
    /// Unknown kind of site.
    #[error(transparent)]
    Unknown(#[from] UnknownWord),
    /// Missing or malformed text after the word.
    #[error("invalid machine `{given}`: expected {form}")]
    Form {
        /// The site as typed.
        given: String,
        /// The expected form.
        form: &'static str,
    },
}

impl FromStr for Site {
    type Err = SiteError;

    fn from_str(text: &str) -> Result<Self, SiteError> {
        let wrong = |form| SiteError::Form { given: text.to_owned(), form };
        let is_one_line = !text.contains(char::is_control);
        let is_none = |c: char| c.is_whitespace() || c.is_control();
        let is_host = |host: &str| !host.is_empty() && !host.starts_with('-') && !host.contains(is_none);
        let word = text.split(':').next().unwrap_or_default();
        match text.split_once(':') {
            None if text == "here" => Ok(Site::Here),
            // A host that begins with `-` would be an option of ssh.
            Some(("ssh", host)) if is_host(host) => Ok(Site::Ssh(host.to_owned())),
            Some(("exec", command)) if is_one_line && !command.trim().is_empty() => Ok(Site::Exec(command.to_owned())),
            _ if word == "ssh" => Err(wrong("ssh:HOST, ssh:USER@HOST, or a name of ~/.ssh/config")),
            _ if word == "exec" => Err(wrong("exec:COMMAND, like exec:ip netns exec target")),
            _ => Err(UnknownWord::new("machine", text, Site::KNOWN).into()),
        }
    }
}

impl fmt::Display for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Site::Here => f.pad("here"),
            Site::Ssh(host) => f.pad(&format!("ssh:{host}")),
            Site::Exec(command) => f.pad(&format!("exec:{command}")),
        }
    }
}

as_text!(Site, SiteError);

/// The machines of a measurement of response times. A role without a machine is not started by this program, except the
/// logger, which runs here.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Roles {
    /// Machine that answers and is measured. `null`: a responder that is already running.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<Site>,
    /// CPU that answers. `null`: the last usable CPU of the target.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target_cpu: Option<u32>,
    /// Name of the link on the target. `null`: the same as on the logger.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target_link: Option<Link>,
    /// Machine that sends triggers and keeps the time. `null`: this machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub logger: Option<Site>,
    /// Machine that loads the target from outside: the source of load `ping`. `null`: none; `ping` then runs like other
    /// loads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<Site>,
}

/// The load of a cell, by machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shares {
    /// Load on the target.
    pub target: Load,
    /// Load on the logger.
    pub logger: Load,
    /// Load on the host.
    pub host: Load,
}

impl Roles {
    /// Every key in its form in a plan.
    pub const KNOWN: &[&str] = &["target", "target_cpu", "target_link", "logger", "host"];

    /// Whether no role is given.
    pub fn is_empty(&self) -> bool {
        *self == Roles::default()
    }

    /// Whether answers are logged on another machine.
    pub fn is_logged_elsewhere(&self) -> bool {
        self.logger.as_ref().is_some_and(|site| *site != Site::Here)
    }

    /// The roles with programs on other machines, with their names.
    pub fn elsewhere(&self) -> impl Iterator<Item = (&'static str, &Site)> {
        let named = [("target", &self.target), ("logger", &self.logger), ("host", &self.host)];
        let named = named.into_iter().filter_map(|(role, site)| Some((role, site.as_ref()?)));
        named.filter(|(_, site)| **site != Site::Here)
    }

    /// The parts of `load` by machine: `ping` runs on the host, all others on the target, as far as these roles are
    /// given.
    pub fn shares(&self, load: &Load) -> Shares {
        let of_host = |part: &LoadPart| self.host.is_some() && is_ping(part);
        let others = load.only(|part| !of_host(part));
        let host = load.only(of_host);
        match self.target {
            Some(_) => Shares { target: others, logger: Load::NONE, host },
            None => Shares { target: Load::NONE, logger: others, host },
        }
    }

    /// Checks the roles against a plan that measures on `cpus` under these `loads`. Errors: one line: the error and the
    /// remedy.
    pub fn check_plan(&self, cpus: Option<&CpuSet>, loads: &[Load]) -> Result<(), String> {
        if self.is_logged_elsewhere() && cpus.is_none() {
            return Err("a remote logger needs a CPU to log on; name it, like cpus = \"1\"".to_owned());
        }
        if self.host.is_some() && !loads.iter().flat_map(Load::parts).any(is_ping) {
            return Err("role host applies to load ping:HOST only; leave host out".to_owned());
        }
        Ok(())
    }
}

/// The roles in their typed form, each after its name.
impl fmt::Display for Roles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Roles { target, target_cpu, target_link, logger, host } = self;
        let mut words = Vec::new();
        words.extend(target.as_ref().map(|site| format!("target {site}")));
        words.extend(target_cpu.map(|cpu| format!("target_cpu {cpu}")));
        words.extend(target_link.map(|link| format!("target_link {link}")));
        words.extend(logger.as_ref().map(|site| format!("logger {site}")));
        words.extend(host.as_ref().map(|site| format!("host {site}")));
        f.pad(&words.join(", "))
    }
}

fn is_ping(part: &LoadPart) -> bool {
    matches!(part, LoadPart::Program(program) if program.tool == Tool::Ping)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sites_print_as_they_are_typed() {
        for text in ["here", "ssh:board", "ssh:root@192.0.2.7", "exec:ip netns exec target", "exec:docker exec -i box"]
        {
            assert_eq!(text.parse::<Site>().map(|site| site.to_string()), Ok(text.to_owned()));
        }
    }

    #[test]
    fn a_wrong_site_is_one_line() {
        let ssh = "ssh:HOST, ssh:USER@HOST, or a name of ~/.ssh/config";
        let exec = "exec:COMMAND, like exec:ip netns exec target";
        for (text, form) in [
            ("ssh", ssh),
            ("ssh:", ssh),
            ("ssh:-oProxyCommand=x", ssh),
            ("ssh:a b", ssh),
            ("exec", exec),
            ("exec: ", exec),
            ("exec:a\nb", exec),
        ] {
            let message = text.parse::<Site>().unwrap_err().to_string();
            assert_eq!(message, format!("invalid machine `{text}`: expected {form}"));
        }
        assert_eq!(
            "shs:board".parse::<Site>().unwrap_err().to_string(),
            "unknown machine `shs:board` (did you mean `ssh:board`? known: here ssh:HOST exec:COMMAND)"
        );
    }

    #[test]
    fn each_part_of_a_load_runs_on_one_machine() {
        let load: Load = "study=cost+disk+ping:192.0.2.7".parse().unwrap();
        let site = || Some(Site::Here);
        for (roles, expected) in [
            (Roles::default(), ["none", "cost+disk+ping:192.0.2.7", "none"]),
            (Roles { target: site(), ..Roles::default() }, ["cost+disk+ping:192.0.2.7", "none", "none"]),
            (Roles { target: site(), host: site(), ..Roles::default() }, ["cost+disk", "none", "ping:192.0.2.7"]),
            (Roles { host: site(), ..Roles::default() }, ["none", "cost+disk", "ping:192.0.2.7"]),
        ] {
            let Shares { target, logger, host } = roles.shares(&load);
            assert_eq!([target, logger, host].map(|load| load.definition()), expected, "{roles:?}");
        }
    }

    #[test]
    fn roles_that_a_plan_cannot_have_are_refused() {
        let elsewhere = Roles { logger: Some("ssh:pc".parse().unwrap()), ..Roles::default() };
        let message = elsewhere.check_plan(None, &[]).unwrap_err();
        assert_eq!(message, "a remote logger needs a CPU to log on; name it, like cpus = \"1\"");
        let host = Roles { host: Some(Site::Here), ..Roles::default() };
        let message = host.check_plan(None, &[Load::messaging()]).unwrap_err();
        assert_eq!(message, "role host applies to load ping:HOST only; leave host out");
    }
}
