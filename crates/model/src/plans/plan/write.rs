//! Writing a plan as TOML, so that a run can be repeated from its record alone.

use super::keys::KEYS;
use super::values::quoted;
use super::{Knob, Plan};
use crate::{Captures, Prepare, Roles};
use std::fmt::{Display, Write};

impl Plan {
    /// The plan as text from which [`Plan::parse`] reads the same plan. Every value is written, including defaults of
    /// this version.
    pub fn to_toml(&self) -> String {
        let asked = &self.conditions;
        let mut out = String::new();
        for (key, value) in KEYS.iter().filter_map(|key| Some((key.name, (key.write)(self)?))) {
            let _ = writeln!(out, "{key} = {value}");
        }
        if !asked.roles.is_empty() {
            let Roles { target, target_cpu, target_link, logger, host } = &asked.roles;
            out.push_str("\n[roles]\n");
            text(&mut out, "target", target.as_ref());
            number(&mut out, "target_cpu", target_cpu.map(u64::from));
            text(&mut out, "target_link", *target_link);
            text(&mut out, "logger", logger.as_ref());
            text(&mut out, "host", host.as_ref());
        }
        self.write_axes(&mut out);
        if !asked.prepare.is_empty() {
            out.push_str("\n[prepare]\n");
            prepare(&mut out, &asked.prepare);
        }
        if let Some(explain) = &asked.explain {
            out.push_str("\n[explain]\n");
            text(&mut out, "above", Some(explain.above.map_or_else(|| "auto".to_owned(), |above| above.to_string())));
            number(&mut out, "keep", Some(explain.keep.into()));
            let _ = writeln!(out, "stacks = {}", explain.stacks);
            text(&mut out, "witness", explain.witness);
            text(&mut out, "captures", Some(explain.captures).filter(|captures| *captures != Captures::default()));
        }
        if !self.require.is_empty() {
            out.push_str("\n[require]\n");
            // A bare key of TOML has no dot.
            self.require.limits().for_each(|(name, limit)| text(&mut out, &name.replace('.', ""), Some(limit)));
            if let Some(rate) = self.require.misses_per_hour {
                // A whole number is not a float in TOML; the parser accepts both.
                let _ = writeln!(out, "misses_per_hour = {rate}");
            }
            text(&mut out, "waiting", self.require.waiting_percent.map(|percent| format!("{percent}%")));
        }
        out
    }

    fn write_axes(&self, out: &mut String) {
        out.push_str("\n[axes]\n");
        list(out, "kernel", &self.axes.kernel);
        list(out, "load", &self.axes.load);
        list(out, "policy", &self.axes.policy);
        list(out, "period", &self.axes.period);
        // `runtime` replaces `method`.
        if self.axes.runtime.is_empty() {
            list(out, "method", &self.axes.task);
        } else {
            list(out, "runtime", &self.axes.runtime);
        }
        if !self.axes.prepare.is_empty() {
            list(out, "prepare", &self.axes.prepare);
        }
        if !self.axes.only.is_empty() {
            list(out, "only", &self.axes.only);
        }

        if !self.knobs.is_empty() {
            out.push_str("\n[knobs]\n");
            for knob in &self.knobs {
                let in_table = |prefix: &str| Some(format!("{prefix}{}", quoted(knob.key.strip_prefix(prefix)?)));
                let key = [Knob::PREPARE, Knob::BOOT].into_iter().find_map(in_table);
                list(out, &key.unwrap_or_else(|| knob.key.clone()), &knob.values().collect::<Vec<_>>());
            }
        }
    }
}

/// Settings in their typed form, one a line; a list of CPUs contains commas.
fn prepare(out: &mut String, prepare: &Prepare) {
    let typed = prepare.to_string();
    let starts = |part: &str| {
        let is_known = |key: &str| Prepare::KNOWN.contains(&key) || Prepare::file_of(key).is_some();
        part.split_once('=').is_some_and(|(key, _)| is_known(key))
    };
    let mut settings: Vec<String> = Vec::new();
    for part in typed.split(',') {
        match settings.last_mut() {
            Some(last) if !starts(part) => *last = format!("{last},{part}"),
            _ => settings.push(part.to_owned()),
        }
    }
    for (key, value) in settings.iter().filter_map(|setting| setting.split_once('=')) {
        let is_bare = Prepare::KNOWN.contains(&key);
        text(out, &if is_bare { key.to_owned() } else { quoted(key) }, Some(value));
    }
}

fn text(out: &mut String, key: &str, value: Option<impl Display>) {
    if let Some(value) = value {
        // Writing to a String never fails.
        let _ = writeln!(out, "{key} = {}", quoted(&value.to_string()));
    }
}

fn number(out: &mut String, key: &str, value: Option<u64>) {
    if let Some(value) = value {
        let _ = writeln!(out, "{key} = {value}");
    }
}

fn list(out: &mut String, key: &str, values: &[impl Display]) {
    let values: Vec<_> = values.iter().map(|value| quoted(&value.to_string())).collect();
    let _ = writeln!(out, "{key} = [{}]", values.join(", "));
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_plan_is_read_back_as_it_was() {
        let full = r#"
            title = "a \"b\" \\ <c>\n"
            study = "toshiba-periodic-2010"
            repetitions = 7
            duration = "1500ms"
            min_cycles = 3
            warm_up = "0s"
            seed = 18446744073709551615
            cpus = "0-1,3"
            timer_slack = "1us"
            align = "10us"
            distance = "20us"
            period_step = "500us"
            cpu_dma_latency = "leave"
            load_cpus = "others"
            load_policy = "batch"
            load_must_hold = 40
            tracers = true
            prepare = { governor = "performance", irq_cpus = "0,2-3", timer_migration = false, cgroup = "/a=b,c",
                        "sysctl:vm.stat_interval" = "120", "/sys/kernel/mm/ksm/run" = "0" }
            [axes]
            load = ["build", "high", "cmd:say \"x\" + y"]
            policy = ["other:nice=-20", "deadline:200us/1ms/1ms"]
            period = ["1ms", "250us"]
            method = ["timerfd:boottime"]
            [loads]
            build = "cmd:make -j4"
            [require]
            max = "1ms"
            p999 = "200us"
            misses_per_hour = 0.5
            waiting = "2.5%"
        "#;
        let with_cycles = "cycles = 5000\ncpu_dma_latency = \"3us\"\n[require]\nmisses_per_hour = 2\n";
        let roles = "[roles]\ntarget = \"ssh:root@board\"\ntarget_cpu = 3\ntarget_link = \"udp:0.0.0.0:4000\"\nlogger = \"here\"\n\
                     host = \"exec:ip netns exec host\"\n";
        let arms = "[axes]\nprepare = [\"leave\", \"irq_cpus=0,2-3,timer_migration=off,sysctl:a.b=x y\"]\n\
                    only = [\"load=none\", \"prepare=leave,policy=other\"]\n";
        for text in [full, with_cycles, roles, arms, "", "[axes]\nruntime = [\"c\", \"python3\"]\n"] {
            let plan = Plan::parse(text).unwrap();
            let written = plan.to_toml();
            assert_eq!(Plan::parse(&written).as_ref(), Ok(&plan), "{written}");
        }
        let default = Plan::default();
        assert_eq!(Plan::parse(&default.to_toml()), Ok(default));
    }

    proptest! {
        #[test]
        fn any_title_is_read_back(title: String) {
            // Control characters are removed from a title when it is read.
            let plan = Plan { title: crate::plain(&title).into_owned(), ..Plan::default() };
            prop_assert_eq!(Plan::parse(&plan.to_toml()), Ok(plan));
        }
    }
}
