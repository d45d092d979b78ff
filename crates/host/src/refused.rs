//! The limits by which the kernel refused a system call of another process.

use super::HostFs;
use super::snapshot::engine_in;
use super::snapshot::read::{CAP_IPC_LOCK, CAP_SYS_NICE, capabilities, field, soft_limit};
use super::watched::lineages;
use punctual_model::{CallLimit, RefusedCall, StartPlace};
use std::path::PathBuf;

/// capabilities(7).
const CAP_SYS_RESOURCE: u32 = 24;
/// Files of pam_limits(8), the first of which are read last.
const PAM_LIMITS: [&str; 2] = ["etc/security/limits.d", "etc/security"];

/// What is known of a refused call besides its record.
#[derive(Debug, Clone, Copy)]
pub struct RefusedBy {
    /// The thread that called.
    pub caller: u32,
    /// The thread for which it asked.
    pub target: u32,
    /// Whether it was refused before the kernel looked at it.
    pub is_filtered: bool,
    /// Bytes that it wanted to lock.
    pub bytes: u64,
}

/// The limit that refused a call, by what is known of its process now; `None` where several could have, or nothing is
/// known: the process has ended.
pub fn limit_of(call: &RefusedCall, by: RefusedBy) -> Option<CallLimit> {
    Refusal::of(&HostFs::running(), by)?.limit(call)
}

/// A refused call with the facts of its process.
struct Refusal<'a> {
    fs: &'a HostFs,
    by: RefusedBy,
    status: String,
    limits: String,
    capabilities: u64,
}

impl Refusal<'_> {
    fn of(fs: &HostFs, by: RefusedBy) -> Option<Refusal<'_>> {
        let caller = by.caller;
        let status = fs.text(format!("proc/{caller}/status"))?;
        let limits = fs.text(format!("proc/{caller}/limits"))?;
        let capabilities = capabilities(&status)?;
        let user_namespace = |of: &str| fs.root.join(format!("proc/{of}/ns/user")).read_link().ok();
        // Those of another user namespace do not count (capable, kernel/capability.c).
        let is_ours = user_namespace(&caller.to_string()) == user_namespace("self");
        Some(Refusal { fs, by, status, limits, capabilities: if is_ours { capabilities } else { 0 } })
    }

    /// Whether the process has ended and is not reaped: it has left its control groups.
    fn has_ended(&self) -> bool {
        field(&self.status, "State").is_some_and(|state| state.starts_with(['Z', 'X']))
    }

    fn has(&self, capability: u32) -> bool {
        self.capabilities >> capability & 1 == 1
    }

    fn limit(&self, call: &RefusedCall) -> Option<CallLimit> {
        if self.by.is_filtered {
            return (field(&self.status, "Seccomp") == Some("2")).then(|| CallLimit::Seccomp { place: self.place() });
        }
        match (call.call.as_str(), call.error.as_deref()?) {
            ("sched_setaffinity", "EINVAL") if !self.has_ended() => self.cpuset(),
            ("sched_setscheduler" | "sched_setparam" | "sched_setattr", "EINVAL") => Some(CallLimit::Argument),
            ("sched_setscheduler" | "sched_setattr", "EBUSY") => Some(CallLimit::Bandwidth),
            ("sched_setscheduler" | "sched_setattr" | "sched_setparam", "EPERM") => self.policy(call),
            ("sched_setaffinity" | "setpriority", "EPERM") => {
                self.is_of_other_user()?.then(|| self.lacks(CAP_SYS_NICE, "CAP_SYS_NICE"))?
            }
            ("mlockall" | "mlock" | "mlock2", error) => self.memory(call, error),
            ("setpriority", "EACCES") if !self.has(CAP_SYS_NICE) => self.resource("RLIMIT_NICE"),
            ("prlimit64", "EPERM") if self.is_of_other_user() == Some(false) => {
                self.lacks(CAP_SYS_RESOURCE, "CAP_SYS_RESOURCE")
            }
            _ => None,
        }
    }

    /// By `user_check_sched_setscheduler` and `__sched_setscheduler` (kernel/sched/syscalls.c).
    fn policy(&self, call: &RefusedCall) -> Option<CallLimit> {
        let is_realtime = call.call == "sched_setparam" || matches!(call.asked.as_deref(), Some("fifo" | "rr"));
        if self.has(CAP_SYS_NICE) {
            let mut files = self.without_rt_budget().into_iter().filter(|_| is_realtime);
            let file = files.next()?;
            return Some(CallLimit::RtBudget { file, above: files.collect() });
        }
        if self.is_of_other_user()? || !is_realtime {
            // A policy of no known name may be deadline, which no resource limit allows.
            let may_be_deadline = call.call == "sched_setattr" || self.is_of_other_user()?;
            return may_be_deadline.then(|| self.lacks(CAP_SYS_NICE, "CAP_SYS_NICE"))?;
        }
        // With a limit above 0, the priority may be above it, which is in memory, or else another reason remains.
        let is_alone = || {
            let before = punctual_sys::sched::policy(self.by.target).ok();
            !self.has_ended()
                && self.without_rt_budget().is_empty()
                && before.is_some_and(|policy| !policy.resets_on_fork())
        };
        (self.soft("RLIMIT_RTPRIO")? == 0 || is_alone()).then(|| self.resource("RLIMIT_RTPRIO"))?
    }

    /// By `can_do_mlock`, `mlockall` and `do_mlock` (mm/mlock.c).
    fn memory(&self, call: &RefusedCall, error: &str) -> Option<CallLimit> {
        let limit = self.soft("RLIMIT_MEMLOCK").filter(|_| !self.has(CAP_IPC_LOCK))?;
        let locked = || field(&self.status, "VmLck")?.strip_suffix("kB")?.trim().parse::<u64>().ok();
        let is_it = match (call.call.as_str(), error) {
            (_, "EPERM") => limit == 0,
            ("mlockall", "ENOMEM") => limit < u64::MAX,
            (_, "ENOMEM" | "EAGAIN") => locked()?.saturating_mul(1024).saturating_add(self.by.bytes) > limit,
            _ => false,
        };
        is_it.then(|| self.resource("RLIMIT_MEMLOCK"))?
    }

    /// By `__sched_setaffinity` (kernel/sched/syscalls.c): only CPUs that the group allows and that are online remain.
    fn cpuset(&self) -> Option<CallLimit> {
        let of_dir = |dir: &PathBuf| {
            let names = ["cpuset.cpus.effective", "cpuset.effective_cpus"];
            let cpus = names.into_iter().find_map(|name| self.fs.cpu_list(dir.join(name).to_str()?))?;
            Some((cpus, dir.join("cpuset.cpus").display().to_string()))
        };
        let groups = lineages(self.fs, self.by.target, "cpuset");
        let allowed = groups.iter().flatten().find_map(of_dir);
        let online = self.fs.cpu_list("sys/devices/system/cpu/online")?;
        let limited = allowed.filter(|(cpus, _)| *cpus != online);
        let (cpus, file) = limited.map_or_else(|| (online.clone(), None), |(cpus, file)| (cpus, Some(file)));
        Some(CallLimit::Cpuset { cpus, online, file })
    }

    /// The files of real-time budgets of 0, that of the process first and those of the groups around it, if it has one
    /// (`CONFIG_RT_GROUP_SCHED`, version 1).
    fn without_rt_budget(&self) -> Vec<String> {
        let groups = lineages(self.fs, self.by.target, "cpu");
        let of = |lineage: &Vec<PathBuf>| {
            let files = lineage.iter().map(|group| group.join("cpu.rt_runtime_us"));
            let empty = files.take_while(|file| self.fs.number::<i64>(file) == Some(0));
            empty.map(|file| file.display().to_string()).collect::<Vec<_>>()
        };
        groups.iter().map(of).find(|files| !files.is_empty()).unwrap_or_default()
    }

    /// Whether the target belongs to another user than the caller (`check_same_owner`); `None` when it has ended.
    fn is_of_other_user(&self) -> Option<bool> {
        let target = self.fs.text(format!("proc/{}/status", self.by.target))?;
        let user = |status: &str, nth: usize| field(status, "Uid")?.split_whitespace().nth(nth).map(str::to_owned);
        let own = user(&self.status, 1)?;
        Some(user(&target, 0)? != own && user(&target, 1)? != own)
    }

    fn lacks(&self, capability: u32, name: &str) -> Option<CallLimit> {
        let program = self.fs.root.join(format!("proc/{}/exe", self.by.caller)).read_link().ok();
        let program = program.map(|path| path.display().to_string());
        let name = name.to_owned();
        (!self.has(capability)).then(|| CallLimit::Capability { name, program, place: self.place() })
    }

    fn resource(&self, name: &str) -> Option<CallLimit> {
        Some(CallLimit::Resource { name: name.to_owned(), value: self.soft(name)?, place: self.place() })
    }

    /// A soft limit; the highest number for none.
    fn soft(&self, name: &str) -> Option<u64> {
        let label = match name {
            "RLIMIT_RTPRIO" => "Max realtime priority",
            "RLIMIT_NICE" => "Max nice priority",
            _ => "Max locked memory",
        };
        let value = soft_limit(&self.limits, label)?;
        if value == "unlimited" { Some(u64::MAX) } else { value.parse().ok() }
    }

    fn place(&self) -> StartPlace {
        let groups = self.fs.text(format!("proc/{}/cgroup", self.by.caller)).unwrap_or_default();
        // A machine that is itself a container has the engine in all its groups.
        let is_inside = field(&self.status, "NSpid").is_some_and(|ids| ids.split_whitespace().count() > 1);
        if let Some(engine) = engine_in(&groups).filter(|_| is_inside) {
            return StartPlace::Container { engine: engine.to_owned() };
        }
        let unit = groups.lines().find_map(|line| {
            let path = line.split_once(":/system.slice/")?.1;
            path.split('/').find(|part| part.ends_with(".service")).map(str::to_owned)
        });
        unit.map_or_else(|| StartPlace::Session { granted_by: self.granted_by() }, |unit| StartPlace::Unit { unit })
    }

    /// The file of pam_limits(8) that grants the user of the process a real-time priority.
    fn granted_by(&self) -> Option<String> {
        let uid = field(&self.status, "Uid")?.split_whitespace().next()?;
        let groups: Vec<&str> = field(&self.status, "Groups").map_or_else(Vec::new, |ids| ids.split(' ').collect());
        let name_of = |file: &str, is_meant: &dyn Fn(&str) -> bool| -> Vec<String> {
            let text = self.fs.text(file).unwrap_or_default();
            let name = |line: &str| {
                let mut parts = line.split(':');
                let name = parts.next()?;
                is_meant(parts.nth(1)?).then(|| name.to_owned())
            };
            text.lines().filter_map(name).collect()
        };
        let users = name_of("etc/passwd", &|id| id == uid);
        let groups = name_of("etc/group", &|id| groups.contains(&id));
        let is_grant = |line: &str| {
            let words: Vec<&str> = line.split('#').next().unwrap_or_default().split_whitespace().collect();
            let [domain, _, "rtprio", value] = words[..] else { return false };
            let of_group = domain.strip_prefix('@').is_some_and(|group| groups.iter().any(|known| known == group));
            let is_meant = of_group || domain == "*" && uid != "0" || users.iter().any(|user| user == domain);
            is_meant && (value == "unlimited" || value.parse().is_ok_and(|value: u32| value > 0))
        };
        let files = PAM_LIMITS.into_iter().flat_map(|directory| {
            let names = self.fs.names_in(directory).into_iter().filter(|name| name.ends_with(".conf"));
            names.map(move |name| format!("{directory}/{name}"))
        });
        let grants = |file: &String| self.fs.text(file).is_some_and(|text| text.lines().any(is_grant));
        files.into_iter().find(grants).map(|file| format!("/{file}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Scratch;

    const NICE: u64 = 1 << CAP_SYS_NICE;

    /// A process with this number, for which it is known that it has no flag to reset its policy.
    fn pid() -> u32 {
        std::process::id()
    }

    fn machine(capabilities: u64, limits: [&str; 3], more: &str) -> Scratch {
        let scratch = Scratch::make();
        let status =
            format!("Name:\tx\nUid:\t7\t7\t7\t7\nGroups:\t5 9 \nVmLck:\t 8 kB\nCapEff:\t{capabilities:016x}\n{more}");
        scratch.file(&format!("proc/{}/status", pid()), status);
        let [rtprio, memlock, nice] = limits;
        let limits = format!(
            "Limit  Soft Limit  Hard Limit  Units\nMax locked memory  {memlock} {memlock} bytes\nMax nice priority  {nice} {nice} \nMax realtime priority {rtprio} {rtprio}"
        );
        scratch.file(&format!("proc/{}/limits", pid()), limits);
        scratch.file(&format!("proc/{}/cgroup", pid()), "3:cpu:/robot\n2:cpuset:/robot\n0::/user.slice/x");
        let mounts = "1 2 0:3 / /cpu rw - cgroup cgroup rw,cpu\n1 2 0:4 / /set rw - cgroup cgroup rw,cpuset";
        scratch.file("proc/self/mountinfo", mounts);
        scratch.file("sys/devices/system/cpu/online", "0-3");
        scratch
    }

    fn limit(scratch: &Scratch, (call, asked, error): (&str, Option<&str>, &str)) -> Option<CallLimit> {
        let by = RefusedBy { caller: pid(), target: pid(), is_filtered: error == "filtered", bytes: 4096 };
        let (call, asked, error) = (call.to_owned(), asked.map(str::to_owned), Some(error.to_owned()));
        let call = RefusedCall { call, asked, error, ..RefusedCall::default() };
        Refusal::of(&scratch.machine(), by).unwrap().limit(&call)
    }

    const FIFO: (&str, Option<&str>, &str) = ("sched_setscheduler", Some("fifo"), "EPERM");
    const ATTR: (&str, Option<&str>, &str) = ("sched_setattr", None, "EPERM");

    /// The limit without its place, as text.
    fn short(limit: Option<CallLimit>) -> String {
        match limit {
            Some(CallLimit::Resource { name, value, .. }) => format!("{name} {value}"),
            Some(CallLimit::Capability { name, .. }) => name,
            Some(CallLimit::RtBudget { file, above }) => {
                let below = |file: &String| file.rsplit_once("/cpu/").map(|(_, file)| file.to_owned()).unwrap();
                [file].iter().chain(&above).map(below).collect::<Vec<_>>().join(" ")
            }
            Some(CallLimit::Cpuset { cpus, file, .. }) => format!("{cpus} {}", file.is_some()),
            Some(CallLimit::Seccomp { .. }) => "seccomp".to_owned(),
            Some(CallLimit::Bandwidth) => "bandwidth".to_owned(),
            Some(CallLimit::Argument) => "argument".to_owned(),
            None => "unknown".to_owned(),
        }
    }

    #[test]
    fn the_limit_that_refused_a_call_is_found_and_else_unknown() {
        let none = ["0", "0", "0"];
        let some = ["20", "8192", "30"];
        let all = ["99", "unlimited", "40"];
        for (capabilities, limits, call, expected) in [
            (0, none, FIFO, "RLIMIT_RTPRIO 0"),
            (0, some, FIFO, "RLIMIT_RTPRIO 20"),
            (0, none, ("sched_setparam", None, "EPERM"), "RLIMIT_RTPRIO 0"),
            (NICE, none, FIFO, "unknown"),
            (0, none, ATTR, "CAP_SYS_NICE"),
            (NICE, none, ATTR, "unknown"),
            (0, none, ("sched_setscheduler", Some("batch"), "EPERM"), "unknown"),
            (0, none, ("sched_setscheduler", Some("fifo"), "EINVAL"), "argument"),
            (0, none, ("sched_setattr", None, "EBUSY"), "bandwidth"),
            (0, none, ("sched_setscheduler", Some("fifo"), "EACCES"), "unknown"),
            (0, none, ("mlockall", None, "EPERM"), "RLIMIT_MEMLOCK 0"),
            (0, some, ("mlockall", None, "ENOMEM"), "RLIMIT_MEMLOCK 8192"),
            (0, all, ("mlockall", None, "ENOMEM"), "unknown"),
            (1 << CAP_IPC_LOCK, some, ("mlockall", None, "ENOMEM"), "unknown"),
            // 8 KiB are locked.
            (0, some, ("mlock", None, "ENOMEM"), "RLIMIT_MEMLOCK 8192"),
            (0, ["0", "12288", "0"], ("mlock", None, "ENOMEM"), "unknown"),
            (0, some, ("setpriority", Some("nice -10"), "EACCES"), "RLIMIT_NICE 30"),
            (NICE, some, ("setpriority", Some("nice -10"), "EACCES"), "unknown"),
            (0, none, ("prlimit64", Some("RLIMIT_RTPRIO"), "EPERM"), "CAP_SYS_RESOURCE"),
            (1 << CAP_SYS_RESOURCE, none, ("prlimit64", Some("RLIMIT_RTPRIO"), "EPERM"), "unknown"),
            (0, none, ("sched_setaffinity", None, "EINVAL"), "0-3 false"),
            (0, none, ("sched_setaffinity", None, "EPERM"), "unknown"),
        ] {
            let scratch = machine(capabilities, limits, "");
            assert_eq!(short(limit(&scratch, call)), expected, "{capabilities:x} {limits:?} {call:?}");
        }
    }

    #[test]
    fn groups_filters_and_namespaces_limit_a_process_with_capabilities() {
        let scratch = machine(NICE, ["0"; 3], "Seccomp:\t2");
        assert_eq!(short(limit(&scratch, ("sched_setscheduler", None, "filtered"))), "seccomp");
        assert_eq!(short(limit(&machine(NICE, ["0"; 3], "Seccomp:\t0"), ("mlockall", None, "filtered"))), "unknown");
        scratch.file("cpu/robot/cpu.rt_runtime_us", "0");
        assert_eq!(short(limit(&scratch, FIFO)), "robot/cpu.rt_runtime_us");
        scratch.file("cpu/cpu.rt_runtime_us", "0");
        assert_eq!(short(limit(&scratch, FIFO)), "robot/cpu.rt_runtime_us cpu.rt_runtime_us");
        // It may also be deadline, and then have another reason.
        assert_eq!(short(limit(&scratch, ATTR)), "unknown");
        scratch.file("set/cpuset.effective_cpus", "0-3");
        assert_eq!(short(limit(&scratch, ("sched_setaffinity", None, "EINVAL"))), "0-3 false");
        scratch.file("set/robot/cpuset.effective_cpus", "2");
        assert_eq!(short(limit(&scratch, ("sched_setaffinity", None, "EINVAL"))), "2 true");
        // With a limit above 0, the budget or the priority may be the reason.
        let ended = machine(0, ["20", "0", "0"], "State:\tZ (zombie)");
        assert_eq!(short(limit(&ended, FIFO)), "unknown", "it has left its control groups");
        assert_eq!(short(limit(&ended, ("sched_setaffinity", None, "EINVAL"))), "unknown");
        let both = machine(0, ["20", "0", "0"], "");
        both.file("cpu/robot/cpu.rt_runtime_us", "0");
        assert_eq!(short(limit(&both, FIFO)), "unknown");
        for (name, file) in [("self", "user:[1]"), (&*pid().to_string(), "user:[2]")] {
            std::fs::create_dir_all(scratch.path(&format!("proc/{name}/ns"))).unwrap();
            std::os::unix::fs::symlink(file, scratch.path(&format!("proc/{name}/ns/user"))).unwrap();
        }
        assert_eq!(short(limit(&scratch, FIFO)), "RLIMIT_RTPRIO 0");
    }

    #[test]
    fn the_place_decides_the_remedy() {
        let place = |scratch: &Scratch| match limit(scratch, FIFO) {
            Some(CallLimit::Resource { place, .. }) => place,
            other => panic!("{other:?}"),
        };
        let scratch = machine(0, ["0"; 3], "NSpid:\t7");
        assert_eq!(place(&scratch), StartPlace::Session { granted_by: None });
        scratch.file("etc/passwd", "root:x:0:0\nrobot:x:7:7:::");
        scratch.file("etc/group", "audio:x:9:\nrealtime:x:8:");
        scratch.file(
            "etc/security/limits.conf",
            "# * - rtprio 9\n@realtime - rtprio 99\nrobot - memlock 9\nrobot - rtprio 0",
        );
        assert_eq!(place(&scratch), StartPlace::Session { granted_by: None });
        scratch.file("etc/security/limits.d/audio.conf", "@audio - rtprio 95");
        let granted_by = Some("/etc/security/limits.d/audio.conf".to_owned());
        assert_eq!(place(&scratch), StartPlace::Session { granted_by });
        let group = format!("proc/{}/cgroup", pid());
        scratch.file(&group, "0::/system.slice/robot.service");
        assert_eq!(place(&scratch), StartPlace::Unit { unit: "robot.service".to_owned() });
        let inside = machine(0, ["0"; 3], "NSpid:\t7 1");
        inside.file(&group, "0::/system.slice/docker-0123.scope");
        assert_eq!(place(&inside), StartPlace::Container { engine: "docker".to_owned() });
        scratch.file(&group, "0::/docker/0123");
        assert!(matches!(place(&scratch), StartPlace::Session { .. }), "the whole machine is in a container");
    }
}
