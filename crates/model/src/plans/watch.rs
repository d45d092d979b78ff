//! Threads of other programs that a cell watches: which ones, and what is expected of them.

use crate::words::word::{as_text, words};
use crate::{Period, Span, SpanError, UnknownWord};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Threads that are watched.
///
/// Its text form is `watch[,KEY=VALUE]...[:COMMAND]`, like `watch,thread=control*,period=1ms:./servo --rate 1000` or
/// `watch,pid=4711`. Blanks, commas, colons, `+` and `%` of a name are `%20`, `%2C`, `%3A`, `%2B` and `%25`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[schemars(with = "String")]
#[serde(try_from = "String", into = "String")]
pub struct Watch {
    /// The processes.
    pub target: WatchTarget,
    /// Pattern of the names of the threads, with `*` and `?`; `None`: all of them.
    pub thread: Option<String>,
    /// Period of the threads; `None`: found from their activations.
    pub period: Option<Period>,
    /// Longest response time that is not a miss; `None`: the period.
    pub deadline: Option<Span>,
    /// Name of the system call in which the threads wait for their next activation; `None`: found.
    pub wait: Option<String>,
    /// Names of threads that wake each other, from the first to the last; empty: no chain.
    pub chain: Vec<String>,
    /// The time that is the sample of the cell.
    pub sample: WatchSample,
}

/// Processes that are watched.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum WatchTarget {
    /// A program that the cell starts and ends: words as in a shell, but no shell runs them.
    Command(String),
    /// A running process.
    Pid(u32),
    /// All processes of a control group: a path below the root of the cgroup hierarchy, like `/robot`.
    Cgroup(String),
    /// All processes of a unit of systemd.
    Unit(String),
    /// All processes of this machine that have a thread with the wanted name.
    #[default]
    Everywhere,
}

words! {
    /// The time that is the sample of a watched activation.
    #[derive(Default)]
    WatchSample, "sample" {
        /// From the release to the end of the activation.
        #[default]
        Response = "response",
        /// From the release until the program runs.
        Latency = "latency",
    }
}

/// Parse error of watched threads.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WatchError {
    /// Neither a command nor a process.
    #[error(
        "invalid method `{0}`: expected watch:COMMAND, like watch:./servo, or watch with pid=, cgroup=, unit= or thread="
    )]
    Form(String),
    /// More than one of a command, a process, a cgroup and a unit.
    #[error("invalid method watch: give one of a command, pid, cgroup and unit")]
    Targets,
    /// A malformed command.
    #[error("invalid command `{0}`: expected one line of words, with both quotation marks of a pair")]
    Command(String),
    /// Unknown key or word.
    #[error(transparent)]
    Unknown(#[from] UnknownWord),
    /// A malformed process ID.
    #[error("invalid pid `{0}`: expected a number above 0")]
    Pid(String),
    /// A malformed name.
    #[error("invalid {0} `{1}`: expected a name in one line")]
    Name(&'static str, String),
    /// A malformed period.
    #[error("invalid period: {0}")]
    Period(SpanError),
    /// A malformed deadline.
    #[error("invalid deadline: {0}")]
    Deadline(SpanError),
    /// A chain of fewer than two threads.
    #[error("invalid chain `{0}`: expected the names of two threads or more, like sensor+controller+actuator")]
    Chain(String),
    /// The same key twice.
    #[error("duplicate key `{0}`; give each once")]
    Twice(String),
}

/// Keys of the text form.
const KEYS: &[&str] = &["pid", "cgroup", "unit", "thread", "period", "deadline", "wait", "chain", "sample"];

impl Watch {
    /// Watches all threads of `target`.
    pub fn new(target: WatchTarget) -> Watch {
        Watch { target, ..Watch::default() }
    }

    /// The words of the command, if the cell starts one.
    pub fn words(&self) -> Option<Vec<String>> {
        match &self.target {
            WatchTarget::Command(command) => shlex::split(command),
            _ => None,
        }
    }

    /// Name of the watched program or processes, for tables.
    pub fn name(&self) -> String {
        let mut name = match &self.target {
            WatchTarget::Command(_) => {
                let program = self.words().and_then(|words| words.into_iter().next()).unwrap_or_default();
                program.rsplit('/').next().unwrap_or_default().to_owned()
            }
            WatchTarget::Pid(pid) => format!("pid {pid}"),
            WatchTarget::Cgroup(path) | WatchTarget::Unit(path) => path.clone(),
            WatchTarget::Everywhere => String::new(),
        };
        if let Some(thread) = &self.thread {
            let gap = if name.is_empty() { "" } else { " " };
            name.push_str(&format!("{gap}{thread}"));
        }
        name
    }

    /// Whether a thread of this name is meant: one that matches the pattern, or is part of the chain. Without either,
    /// all are.
    pub fn is_meant(&self, name: &str) -> bool {
        let is_named = self.thread.as_ref().map_or(self.chain.is_empty(), |pattern| matches(pattern, name));
        is_named || self.chain.iter().any(|one| matches(one, name))
    }

    /// Sets one key of the text form. Errors: when the key is unknown or its value malformed.
    pub fn set(&mut self, key: &str, value: &str) -> Result<(), WatchError> {
        let named = |what: &'static str| named(what, value);
        match key {
            "pid" => {
                let pid = value.parse().ok().filter(|pid| *pid > 0 && i32::try_from(*pid).is_ok());
                self.aim(WatchTarget::Pid(pid.ok_or_else(|| WatchError::Pid(value.to_owned()))?))?;
            }
            "cgroup" => self.aim(WatchTarget::Cgroup(named("cgroup")?))?,
            "unit" => self.aim(WatchTarget::Unit(named("unit")?))?,
            "thread" => self.thread = Some(named("thread")?),
            "period" => self.period = Some(value.parse().map_err(WatchError::Period)?),
            "deadline" => self.deadline = Some(value.parse().map_err(WatchError::Deadline)?),
            "wait" => self.wait = Some(named("wait")?),
            "chain" => {
                self.chain = value.split('+').map(|name| self::named("chain", name)).collect::<Result<_, _>>()?;
                if self.chain.len() < 2 {
                    return Err(WatchError::Chain(value.to_owned()));
                }
            }
            "sample" => self.sample = value.parse()?,
            other => return Err(UnknownWord::new("key", other, KEYS).into()),
        }
        Ok(())
    }

    fn aim(&mut self, target: WatchTarget) -> Result<(), WatchError> {
        if self.target != WatchTarget::Everywhere {
            return Err(WatchError::Targets);
        }
        self.target = target;
        Ok(())
    }
}

/// Characters of a name that separate its parts in the text form, and their form there.
const ESCAPED: [(char, &str); 5] = [('%', "%25"), (' ', "%20"), (',', "%2C"), (':', "%3A"), ('+', "%2B")];

/// The name with this text form, like `CPU%200/KVM`.
fn named(what: &'static str, value: &str) -> Result<String, WatchError> {
    let is_name = !value.is_empty() && !value.contains(char::is_control);
    // `%` last: what it becomes is not looked at again.
    let name =
        || ESCAPED.iter().rev().fold(value.to_owned(), |name, (plain, form)| name.replace(form, &plain.to_string()));
    is_name.then(name).ok_or_else(|| WatchError::Name(what, value.to_owned()))
}

/// The text form of a name.
fn escaped(name: &str) -> String {
    ESCAPED.iter().fold(name.to_owned(), |name, (plain, form)| name.replace(*plain, form))
}

/// Whether `name` matches a pattern in which `*` stands for any text and `?` for one character.
fn matches(pattern: &str, name: &str) -> bool {
    let (pattern, name): (Vec<char>, Vec<char>) = (pattern.chars().collect(), name.chars().collect());
    // The last `*`, and the first character of the name that it does not stand for.
    let (mut at, mut from, mut star) = (0, 0, None);
    while from < name.len() {
        match pattern.get(at) {
            Some('*') => {
                star = Some((at, from));
                at += 1;
            }
            Some(wanted) if *wanted == '?' || Some(wanted) == name.get(from) => {
                at += 1;
                from += 1;
            }
            _ => {
                let Some((back, so_far)) = star else { return false };
                star = Some((back, so_far + 1));
                (at, from) = (back + 1, so_far + 1);
            }
        }
    }
    pattern.get(at..).unwrap_or_default().iter().all(|rest| *rest == '*')
}

impl FromStr for Watch {
    type Err = WatchError;

    fn from_str(text: &str) -> Result<Self, WatchError> {
        let form = || WatchError::Form(text.to_owned());
        let rest = text.strip_prefix("watch").ok_or_else(form)?;
        let (keys, command) = rest.split_once(':').map_or((rest, None), |(keys, command)| (keys, Some(command.trim())));
        let mut watch = Watch::new(WatchTarget::Everywhere);
        let mut seen = Vec::new();
        for part in keys.split(',').skip(1) {
            let (key, value) = part.split_once('=').ok_or_else(form)?;
            watch.set(key, value)?;
            if seen.contains(&key) {
                return Err(WatchError::Twice(key.to_owned()));
            }
            seen.push(key);
        }
        if !keys.is_empty() && !keys.starts_with(',') {
            return Err(form());
        }
        if let Some(command) = command {
            let words = shlex::split(command).filter(|_| !command.contains(char::is_control)).unwrap_or_default();
            if words.first().is_none_or(String::is_empty) {
                return Err(WatchError::Command(command.to_owned()));
            }
            watch.aim(WatchTarget::Command(command.to_owned()))?;
        }
        if watch.target == WatchTarget::Everywhere && watch.thread.is_none() {
            return Err(form());
        }
        Ok(watch)
    }
}

impl fmt::Display for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Watch { target, thread, period, deadline, wait, chain, sample } = self;
        f.write_str("watch")?;
        match target {
            WatchTarget::Pid(pid) => write!(f, ",pid={pid}")?,
            WatchTarget::Cgroup(path) => write!(f, ",cgroup={}", escaped(path))?,
            WatchTarget::Unit(unit) => write!(f, ",unit={}", escaped(unit))?,
            WatchTarget::Command(_) | WatchTarget::Everywhere => {}
        }
        thread.as_ref().map_or(Ok(()), |thread| write!(f, ",thread={}", escaped(thread)))?;
        period.map_or(Ok(()), |period| write!(f, ",period={period}"))?;
        deadline.map_or(Ok(()), |deadline| write!(f, ",deadline={deadline}"))?;
        wait.as_ref().map_or(Ok(()), |wait| write!(f, ",wait={wait}"))?;
        if !chain.is_empty() {
            write!(f, ",chain={}", chain.iter().map(|name| escaped(name)).collect::<Vec<_>>().join("+"))?;
        }
        if *sample != WatchSample::default() {
            write!(f, ",sample={}", sample.name())?;
        }
        match target {
            WatchTarget::Command(command) => write!(f, ":{command}"),
            _ => Ok(()),
        }
    }
}

as_text!(Watch, WatchError);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn watched_threads_print_as_they_are_typed() {
        for text in [
            "watch:./servo --rate 1000",
            "watch,thread=control*,period=1ms,deadline=800us:sh -c 'exec ./servo, now: 1'",
            "watch,pid=4711,wait=futex",
            "watch,cgroup=/robot/arm,thread=c?ntrol",
            "watch,unit=servo.service,chain=sensor+controller+actuator",
            "watch,thread=measured/*,sample=latency",
            "watch,cgroup=/pod%3Aa%2Cb,thread=CPU%20?/KVM,chain=rtapi_app%3AT#0+50%25%2B",
        ] {
            assert_eq!(text.parse::<Watch>().map(|watch| watch.to_string()), Ok(text.to_owned()));
        }
        let watch: Watch = "watch,thread=a*:/opt/x/servo -v".parse().unwrap();
        assert_eq!(watch.name(), "servo a*");
        assert_eq!("watch,pid=7".parse::<Watch>().unwrap().name(), "pid 7");
        let mut typed = Watch::default();
        typed.set("thread", "CPU ?/KVM").unwrap();
        typed.set("chain", "rtapi_app:T#0+5%").unwrap();
        assert_eq!(typed.to_string(), "watch,thread=CPU%20?/KVM,chain=rtapi_app%3AT#0+5%25");
        assert_eq!(typed.to_string().parse(), Ok(typed));
    }

    #[test]
    fn a_wrong_watch_is_one_line() {
        for (text, message) in [
            ("watch", "invalid method `watch`: expected watch:COMMAND"),
            ("watch:", "invalid command ``"),
            ("watch:'x", "invalid command `'x`"),
            ("watch,pid=0", "invalid pid `0`"),
            ("watch,pid=7:./x", "invalid method watch: give one of"),
            ("watch,pid=7,unit=x", "invalid method watch: give one of"),
            ("watch,thread=:x", "invalid thread ``"),
            ("watch,chain=a:x", "invalid chain `a`"),
            ("watch,period=1:x", "invalid period: "),
            ("watch,sample=mean:x", "unknown sample `mean`"),
            ("watch,tread=a:x", "unknown key `tread` (did you mean `thread`?"),
            ("watch,thread=a,thread=b", "duplicate key `thread`"),
            ("watchpid=7", "invalid method `watchpid=7`"),
        ] {
            let error = text.parse::<Watch>().unwrap_err().to_string();
            assert!(error.starts_with(message), "{text}: {error}");
        }
    }

    #[test]
    fn patterns_have_stars_and_question_marks() {
        for (pattern, name, is_match) in [
            ("control", "control", true),
            ("control", "control2", false),
            ("c*l", "control", true),
            ("c*l", "controlx", false),
            ("*", "", true),
            ("?", "", false),
            ("*a*b", "xaxxbxb", true),
            ("a?c", "abc", true),
        ] {
            assert_eq!(matches(pattern, name), is_match, "{pattern} {name}");
        }
    }
}
