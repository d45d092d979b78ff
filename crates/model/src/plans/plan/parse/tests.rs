//! Plans as people type them, right and wrong.

use super::super::{axes, keys};
use crate::plans::cell::tests::refusals;
use crate::{LoadCpus, Percent, Plan, PlanError, Policy, Span, Study};
use proptest::prelude::*;

fn mistake(text: &str) -> String {
    Plan::parse(text).expect_err("a mistake").to_string()
}

#[test]
fn an_empty_plan_is_the_default_without_a_title() {
    assert_eq!(Plan::parse("").unwrap(), Plan { title: String::new(), ..Plan::default() });
}

#[test]
fn every_key_is_read() {
    let plan = Plan::parse(
        r#"
        title = "Stock against PREEMPT_RT"
        study = "debian10-stock-vs-rt-2020"
        repetitions = 12
        duration = "10s"
        warm_up = "1s"
        seed = 42
        cpus = "0-1,3"
        timer_slack = "1us"
        cpu_dma_latency = "leave"
        [axes]
        kernel = ["running"]
        load = ["messaging:groups=4"]
        policy = ["other", "fifo:80"]
        period = ["1ms", "500us"]
        method = ["clock_nanosleep"]
        [require]
        max = "1ms"
        p999 = "200us"
        misses_per_hour = 1
        "#,
    )
    .unwrap();
    assert_eq!((plan.repetitions, plan.duration, plan.seed), (12, Span(10_000_000_000), Some(42)));
    assert_eq!(plan.study.map(Study::name), Some("debian10-stock-vs-rt-2020"));
    assert_eq!(plan.axes.load, ["messaging:groups=4".parse().unwrap()]);
    assert_eq!(plan.axes.policy[0], Policy::OTHER);
    assert_eq!(plan.axes.points().len(), 4);
    assert_eq!((plan.conditions.timer_slack, plan.conditions.cpu_dma_latency_us), (Some(Span(1000)), None));
    assert_eq!((plan.require.max, plan.require.misses_per_hour), (Some(Span(1_000_000)), Some(1.0)));
}

#[test]
fn late_wake_ups_are_explained_by_default_or_as_told() {
    use crate::Explain;
    let asked = |text: &str| Plan::parse(text).unwrap().conditions.explain;
    assert_eq!((asked(""), asked("explain = false"), asked("explain = true")), (None, None, Some(Explain::default())));
    let told = asked("[explain]\nabove = \"100us\"\nkeep = 3\nstacks = true\nwitness = \"50us\"\n").unwrap();
    let want = Explain {
        above: Some(Span(100_000)),
        keep: 3,
        stacks: true,
        witness: Some(Span(50_000)),
        ..Explain::default()
    };
    assert_eq!(told, want);
    assert_eq!(asked("explain = { above = \"auto\", keep = 1000 }").unwrap().keep, 1000);
    assert_eq!(mistake("explain = 5"), "1:11: expected true, false or a table like { above = \"100us\" }");
    assert_eq!(mistake("explain = { keep = 0 }"), "1:20: expected a whole number from 1 to 1000");
    assert_eq!(
        mistake("explain = { witness = \"1us\" }"),
        "1:23: invalid witness period `1us`: expected 20us to 100ms"
    );
    assert_eq!(
        mistake("explain = { abov = \"1us\" }"),
        "1:13: unknown key `abov` (did you mean `above`? known: above keep stacks witness captures)"
    );
    for text in [
        "explain = true",
        "stop_above = \"500us\"\non_spike = \"cat >/dev/null; echo 'late'\"",
        "[explain]\nabove = \"1ms\"\nstacks = true\nwitness = \"1ms\"",
    ] {
        let plan = Plan::parse(text).unwrap();
        assert_eq!(Plan::parse(&plan.to_toml()).unwrap(), plan);
    }
}

#[test]
fn loads_have_names_places_and_promises() {
    let plan = Plan::parse(
        r#"
        load_cpus = "others"
        load_policy = "batch"
        load_must_hold = true
        prepare = { timer_migration = false, irq_cpus = "others" }
        [axes]
        load = ["all-at-once", "noisy", "noisy+cpu:50"]
        [loads]
        noisy = "messaging+disk"
        all-at-once = "noisy+cmd:make -j4"
        "#,
    )
    .unwrap();
    let loads: Vec<_> = plan.axes.load.iter().map(ToString::to_string).collect();
    assert_eq!(loads, ["all-at-once=messaging+disk+cmd:make -j4", "noisy=messaging+disk", "messaging+disk+cpu:50"]);
    assert_eq!((plan.load_cpus, plan.conditions.load_must_hold), (LoadCpus::Others, Some(Percent::HALF)));
    assert_eq!(plan.conditions.prepare.to_string(), "timer_migration=off,irq_cpus=others");
    assert_eq!(plan.conditions.load_policy, Some("batch".parse().unwrap()));
    assert_eq!(Plan::parse("load_must_hold = 80").unwrap().conditions.load_must_hold, Percent::new(80));
    assert_eq!(Plan::parse("load_must_hold = false").unwrap().conditions.load_must_hold, None);
}

#[test]
fn numbers_keep_their_value_in_any_base() {
    let plan = Plan::parse("seed = 0x10\nrepetitions = 0b11\n[require]\nmisses_per_hour = 0x10").unwrap();
    assert_eq!((plan.seed, plan.repetitions, plan.require.misses_per_hour), (Some(16), 3, Some(16.0)));
    assert_eq!(Plan::parse("seed = 1_000").unwrap().seed, Some(1000));
}

#[test]
fn a_mistake_is_named_with_its_place() {
    for (text, message) in refusals(include_str!("../../../../tests/refusals/plans.txt")) {
        assert_eq!(mistake(&text), message);
    }
}

#[test]
fn columns_count_characters_not_bytes() {
    assert_eq!(mistake("# ä\ntitle = \"ä\"; x"), mistake("# a\ntitle = \"a\"; x"));
}

proptest! {
    #[test]
    fn any_text_gives_a_plan_or_a_place_inside_it(text in "(title|axes|load|\\[|\\]|\"|=|\n|\\.|ä|[a-z0-9 ]){0,30}") {
        if let Err(PlanError { line, column, .. }) = Plan::parse(&text) {
            prop_assert!(line <= text.matches('\n').count() + 1);
            prop_assert!(column <= text.chars().count() + 1);
        }
    }
}

#[test]
fn a_plan_can_select_combinations() {
    let axes =
        "[axes]\nload = [\"none\", \"cost\"]\npolicy = [\"other\", \"fifo:90\"]\nmethod = [\"cost\", \"poll\"]\n";
    let only = "only = [\"load=none,policy=other,method=cost\", \"load=cost,policy=fifo:90,method=poll\"]\n";
    let plan = Plan::parse(&format!("{axes}{only}")).unwrap();
    let points: Vec<_> =
        plan.axes.points().iter().map(|(_, load, policy, _, task, _)| format!("{load} {policy} {task}")).collect();
    assert_eq!(points, ["none other cost", "cost fifo:90 poll"]);
    assert_eq!(Plan::parse(&plan.to_toml()), Ok(plan));
    assert_eq!(Plan::parse(axes).unwrap().axes.points().len(), 8);
    assert_eq!(
        mistake(&format!("{axes}only = [\"load=none\", \"load=udp\"]")),
        "5:8: `only`: `load=udp` matches no combination of the axes; change it or an axis"
    );
    assert!(mistake(&format!("{axes}only = []")).starts_with("5:8: "));
    assert!(mistake(&format!("{axes}only = [\"none\"]")).starts_with("5:9: invalid selector `none`"));
}

#[test]
fn a_plan_can_ask_for_a_a() {
    assert!(!Plan::parse("").unwrap().aa && Plan::parse("aa = true").unwrap().aa);
}

#[test]
fn lists_in_the_table_of_a_kernel_are_combined() {
    let plan = Plan::parse(
        "[axes]\nkernel = [\"running\", { image = \"/k\", clock = \"emulated\", cpus = 2, vcpu_cpus = \"1\", \
         vcpu_policy = [\"other\", \"fifo:50\"], emulator_policy = [\"other\", \"fifo:51\"] }]",
    )
    .unwrap();
    let kernels: Vec<_> = plan.axes.kernel.iter().map(ToString::to_string).collect();
    let expected = [("other", "other"), ("fifo:50", "other"), ("other", "fifo:51"), ("fifo:50", "fifo:51")];
    let expected: Vec<_> = expected
        .map(|(vcpu, emulator)| {
            format!("/k clock=emulated cpus=2 vcpu_policy={vcpu} vcpu_cpus=1 emulator_policy={emulator}")
        })
        .into();
    assert_eq!(kernels[0], "running");
    let sorted = |mut all: Vec<String>| {
        all.sort();
        all
    };
    assert_eq!(sorted(kernels[1..].to_vec()), sorted(expected));
    for (table, message) in [
        ("vcpu_policy = []", "`vcpu_policy` is empty"),
        ("vcpu_policy = [\"fifo:50 quiet\"]", "invalid vcpu_policy `fifo:50 quiet`: expected no blanks"),
        ("vcpu_policy = \"fifo:0\"", "vcpu_policy: invalid policy `fifo:0`"),
        ("vcpu_cpus = [1]", "expected text"),
    ] {
        let text = format!("[axes]\nkernel = [{{ image = \"/k\", clock = \"emulated\", {table} }}]");
        assert!(mistake(&text).contains(message), "{}", mistake(&text));
    }
}

#[test]
fn kernels_may_be_tables_and_guests_be_given_files() {
    let plan = Plan::parse(
        r#"
        files = ["/usr/bin/dash:/bin/sh"]
        [axes]
        kernel = [
            "running",
            "debian:6.1",
            { image = "debian:6.1", append = "preempt=none  quiet" },
            { image = "/k/bzImage", modules = "/k/modules", files = ["/usr/bin/fio"] },
        ]
        "#,
    )
    .unwrap();
    let kernels: Vec<_> = plan.axes.kernel.iter().map(ToString::to_string).collect();
    assert_eq!(
        kernels,
        [
            "running",
            "debian:6.1 file=/usr/bin/dash:/bin/sh",
            "debian:6.1 preempt=none quiet file=/usr/bin/dash:/bin/sh",
            "/k/bzImage modules=/k/modules file=/usr/bin/fio file=/usr/bin/dash:/bin/sh",
        ]
    );
    assert_eq!(Plan::parse(&plan.to_toml()), Ok(plan));
    for (text, expected) in [
        ("files = [\"/x\"]", "1:9: `files` applies to lab kernels only; name one in axis `kernel`, or leave it out"),
        ("files = \"/x\"", "1:9: expected a list of paths, found text"),
        (
            "[axes]\nkernel = [{ append = \"quiet\" }]",
            "2:11: missing key `image`; write { image = \"/path/of/vmlinuz\" }",
        ),
        (
            "[axes]\nkernel = [{ image = \"/k quiet\" }]",
            "2:21: invalid image `/k quiet`: expected no blanks; kernel arguments go into `append`",
        ),
        (
            "[axes]\nkernel = [{ image = \"running\" }]",
            "2:21: invalid image `running`: expected a path or debian:VERSION; write the running kernel as \"running\"",
        ),
        (
            "[axes]\nkernel = [{ image = \"/k\", apend = \"\" }]",
            "2:27: unknown key `apend` (did you mean `append`? known: image append modules files clock cpus vcpu_policy \
             vcpu_cpus io_policy io_cpus emulator_policy emulator_cpus host_load libvirt)",
        ),
        (
            "[axes]\nkernel = [\"/k quiet\", { image = \"/k\", append = \"quiet\" }]",
            "2:23: duplicate value `/k quiet` in axis `kernel`",
        ),
    ] {
        assert_eq!(mistake(text), expected);
    }
    assert!(mistake("[axes]\nkernel = [{ image = \"/k\", files = [\"x\"] }]").contains("invalid guest path `x`: "));
}

#[test]
fn the_documentation_has_every_key_and_its_example_is_a_plan() {
    const DOCUMENTED: &str = include_str!("../../../../../../docs/plans.md");
    let rows: Vec<&str> = DOCUMENTED.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next()).collect();
    let keys = keys::KEYS.iter().map(|key| key.name).filter(|key| *key != "axes");
    let known: Vec<&str> = keys.chain(axes::KEYS.iter().copied()).collect();
    assert_eq!(known.iter().filter(|key| !rows.contains(key)).collect::<Vec<_>>(), Vec::<&&str>::new(), "missing");
    assert_eq!(rows.iter().filter(|key| !known.contains(key)).collect::<Vec<_>>(), Vec::<&&str>::new(), "unknown");
    for name in crate::Requirement::KNOWN.iter().chain(crate::Roles::KNOWN) {
        assert!(DOCUMENTED.contains(&format!("`{name}`")), "{name}");
    }
    let example = DOCUMENTED.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    assert_eq!(Plan::parse(example).unwrap().axes.points().len(), 6, "two of eight combinations are left out");
}
