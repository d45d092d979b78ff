//! Threads, interrupts and the driver `timerbench` of Cobalt, the co-kernel of Xenomai: refusals where it cannot be.

use crate::program::{Scratch, punctual};

#[test]
fn cobalt_is_refused_in_one_line_where_it_cannot_be() {
    let scratch = Scratch::new("cobalt-refused");
    let plan = |policy: &str, more: &str| {
        let text = format!(
            "repetitions = 1\nduration = \"100ms\"\n{more}\n[axes]\nload = [\"none\"]\npolicy = [\"{policy}\"]\n\
             period = [\"1ms\"]\nmethod = [\"cobalt\"]\n"
        );
        let plan = scratch.file("plan.toml", text);
        punctual(&format!("run {} --dry-run", plan.display()))
    };
    for (policy, more, expected) in [
        ("other", "", "method cobalt needs policy fifo, like fifo:80, not other"),
        ("rr:80", "", "method cobalt needs policy fifo, like fifo:80, not rr:80"),
        ("fifo:80", "[explain]\nabove = \"1ms\"", "explain does not apply to method cobalt"),
        ("fifo:80", "[prepare]\ncobalt_gravity = \"2s\"", "invalid setting `cobalt_gravity = 2s`: expected a time"),
    ] {
        let said = plan(policy, more);
        // Without the right to lock memory that comes first.
        let is_expected = said.stderr.contains(expected) || said.stderr.contains("method cobalt needs locked memory");
        assert!(said.status == 1 && is_expected, "{policy} {more}: {}", said.stderr);
        assert_eq!(said.stderr.trim_end().lines().count(), 1, "{}", said.stderr);
    }
}

#[test]
fn out_of_band_responses_are_refused_in_one_line_where_they_cannot_be() {
    let scratch = Scratch::new("oob-refused");
    let dry_run = |kernel: &str, policy: &str, period: &str, more: &str| {
        let text = format!(
            "repetitions = 1\nduration = \"1s\"\n{more}\n[axes]\nkernel = [\"{kernel}\"]\nload = [\"none\"]\n\
             policy = [\"{policy}\"]\nperiod = [\"{period}\"]\nmethod = [\"response:oob\"]\n"
        );
        punctual(&format!("run {} --dry-run", scratch.file("plan.toml", text).display()))
    };
    for (kernel, policy, period, more, expected) in [
        ("running", "other", "10ms", "", "response:oob needs policy fifo, like fifo:80, not other"),
        ("running", "rr:80", "10ms", "", "response:oob needs policy fifo, like fifo:80, not rr:80"),
        ("running", "fifo:80", "10ms", "[explain]\nabove = \"1ms\"", "explain does not apply to response:oob"),
        ("running", "fifo:80", "10ms", "", "response:oob needs a lab guest in virtual time"),
        ("/k clock=emulated", "fifo:80", "10ms", "", "response:oob needs a lab guest in virtual time"),
        ("/k", "fifo:80", "3ms", "", "invalid period `3ms` for response:oob: expected one of 5ms 10ms"),
    ] {
        let said = dry_run(kernel, policy, period, more);
        // Without the right to lock memory that comes first.
        let is_expected = said.stderr.contains(expected) || said.stderr.contains("response:oob needs locked memory");
        assert!(said.status == 1 && is_expected, "{kernel} {policy} {period}: {}", said.stderr);
        assert_eq!(said.stderr.trim_end().lines().count(), 1, "{}", said.stderr);
    }
}

#[test]
fn the_driver_of_cobalt_is_refused_in_one_line_where_it_cannot_measure() {
    let scratch = Scratch::new("timerbench-refused");
    let plan = |method: &str, policy: &str, period: &str, more: &str, arguments: &str| {
        let text = format!(
            "repetitions = 1\nduration = \"1s\"\n{more}\n[axes]\nload = [\"none\"]\npolicy = [\"{policy}\"]\n\
             period = [\"{period}\"]\nmethod = [\"{method}\"]\n"
        );
        let plan = scratch.file("plan.toml", text);
        punctual(&format!("run {} --dry-run {arguments}", plan.display()))
    };
    let (kernel, handler, fifo) = ("cobalt:kernel", "cobalt:handler", "fifo:80");
    for (method, policy, period, more, arguments, expected) in [
        (kernel, "other", "1ms", "", "", "method cobalt:kernel needs policy fifo, like fifo:80, not other"),
        (handler, "rr:80", "1ms", "", "", "method cobalt:handler needs policy fifo, like fifo:80, not rr:80"),
        (kernel, fifo, "10us", "", "", "invalid period `10us` for method cobalt:kernel: expected 20us to 1s"),
        (kernel, fifo, "1ms", "[explain]\nabove = \"1ms\"", "", "explain does not apply to method cobalt:kernel"),
        (handler, fifo, "1ms", "stop_above = \"1ms\"", "", "stop_above does not apply to method cobalt:handler"),
        (handler, fifo, "1ms", "align = \"1us\"", "", "align does not apply to method cobalt:handler"),
        (kernel, fifo, "1ms", "", "--samples", "unsupported: samples of cobalt:kernel"),
        ("cobalt:irq", fifo, "1ms", "", "", "unknown context of Cobalt `irq`"),
    ] {
        let said = plan(method, policy, period, more, arguments);
        assert!(said.status != 0 && said.stderr.contains(expected), "{method} {policy} {more}: {}", said.stderr);
        if method != "cobalt:irq" {
            assert_eq!(said.stderr.trim_end().lines().count(), 1, "{}", said.stderr);
        }
    }
}
