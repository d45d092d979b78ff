//! Threads, interrupts, responses and the driver of Cobalt, the co-kernel of Xenomai: refused where they cannot be.

use crate::program::{Scratch, punctual};

#[test]
fn cobalt_and_out_of_band_responses_are_refused_in_one_line_where_they_cannot_be() {
    let scratch = Scratch::new("cobalt-refused");
    let (kernel, handler, oob, fifo) = ("cobalt:kernel", "cobalt:handler", "response:oob", "policy = [\"fifo:80\"]\n");
    let with = |top: &str, axes: &str| (top.to_owned(), axes.to_owned());
    let policy = |policy: &str| with("", &format!("policy = [\"{policy}\"]\n"));
    let top = |top: &str| with(top, fifo);
    let axes = |axes: &str| with("", &format!("{fifo}{axes}\n"));
    let explain = top("[explain]\nabove = \"1ms\"");
    for (method, (top, axes), expected) in [
        ("cobalt", policy("other"), "method cobalt needs policy fifo, like fifo:80, not other"),
        ("cobalt", policy("rr:80"), "method cobalt needs policy fifo, like fifo:80, not rr:80"),
        ("cobalt", explain.clone(), "explain does not apply to method cobalt"),
        ("cobalt", top("[prepare]\ncobalt_gravity = \"2s\""), "invalid setting `cobalt_gravity = 2s`: expected a time"),
        (kernel, policy("other"), "method cobalt:kernel needs policy fifo, like fifo:80, not other"),
        (handler, policy("rr:80"), "method cobalt:handler needs policy fifo, like fifo:80, not rr:80"),
        (kernel, axes("period = [\"10us\"]"), "invalid period `10us` for method cobalt:kernel: expected 20us to 1s"),
        (kernel, explain.clone(), "explain does not apply to method cobalt:kernel"),
        (handler, top("stop_above = \"1ms\""), "stop_above does not apply to method cobalt:handler"),
        (handler, top("align = \"1us\""), "align does not apply to method cobalt:handler"),
        (oob, policy("other"), "response:oob needs policy fifo, like fifo:80, not other"),
        (oob, policy("rr:80"), "response:oob needs policy fifo, like fifo:80, not rr:80"),
        (oob, explain, "explain does not apply to response:oob"),
        (oob, axes("kernel = [\"running\"]"), "response:oob needs a lab guest in virtual time"),
        (oob, axes("kernel = [\"/k clock=emulated\"]"), "response:oob needs a lab guest in virtual time"),
        (
            oob,
            axes("kernel = [\"/k\"]\nperiod = [\"3ms\"]"),
            "invalid period `3ms` for response:oob: expected one of 5ms 10ms",
        ),
    ] {
        let period = if axes.contains("period") { "" } else { "period = [\"10ms\"]\n" };
        let text = format!(
            "repetitions = 1\nduration = \"1s\"\n{top}\n[axes]\nload = [\"none\"]\n{period}{axes}method = [\"{method}\"]\n"
        );
        let said = punctual(&format!("run {} --dry-run", scratch.file("plan.toml", text).display()));
        // Without the right to lock memory that comes first.
        let is_expected =
            said.stderr.contains(expected) || said.stderr.contains(&format!("{method} needs locked memory"));
        assert!(said.status == 1 && is_expected, "{method} {axes}: {}", said.stderr);
        assert_eq!(said.stderr.trim_end().lines().count(), 1, "{}", said.stderr);
    }
}
