//! Tests of cells, and of the checks.

use super::*;
use crate::{Host, Method, OnCpus, Percent, Roles};
use serde_json::{Value, json};

pub(crate) fn cell() -> Cell {
    Cell {
        kernel: Kernel::Running,
        load: Load::NONE,
        policy: Policy::OTHER,
        period: Period::try_from(Span(1_000_000)).unwrap(),
        task: Task::CLOCK_NANOSLEEP,
        cpus: [0, 1].into_iter().collect(),
        duration: Span(2_000_000_000),
        deadline: None,
        lock_memory: true,
        load_cpus: None,
        conditions: Conditions { warm_up: Span(250_500_000), cpu_dma_latency_us: Some(0), ..Conditions::default() },
    }
}

/// The cases of a table in `tests/refusals`: lines of text up to one that begins with `=> `, and what is said of them.
pub(crate) fn refusals(table: &'static str) -> impl Iterator<Item = (String, &'static str)> {
    let mut text = Vec::new();
    table.lines().filter_map(move |line| match line.strip_prefix("=> ") {
        Some(message) => Some((std::mem::take(&mut text).join("\n"), message)),
        None => {
            text.push(line);
            None
        }
    })
}

fn traced() -> Cell {
    Cell {
        kernel: "debian:6.1-rt".parse().unwrap(),
        conditions: Conditions { tracers: true, ..cell().conditions },
        ..cell()
    }
}

#[test]
fn json_has_units_in_its_keys_and_reads_back() {
    let json = serde_json::to_string(&cell()).unwrap();
    assert_eq!(
        json,
        r#"{"kernel":"running","load":"none","policy":"other","period_ns":1000000,"method":"clock_nanosleep","cpus":"0-1","duration_ns":2000000000,"deadline_ns":null,"lock_memory":true,"load_cpus":null,"warm_up_ns":250500000,"timer_slack_ns":null,"align_ns":null,"distance_ns":null,"cpu_dma_latency_us":0,"load_policy":null,"load_must_hold_percent":null,"prepare":{},"explain":null,"stop_above_ns":null}"#
    );
    assert_eq!(serde_json::from_str::<Cell>(&json).unwrap(), cell());
    let json_of_traced = serde_json::to_string(&traced()).unwrap();
    assert!(json_of_traced.ends_with(r#""stop_above_ns":null,"tracers":true}"#), "{json_of_traced}");
    assert_eq!(serde_json::from_str::<Cell>(&json_of_traced).unwrap(), traced());
    assert!(serde_json::from_str::<Cell>(&json.replace("lock_memory", "lock")).is_err());
    assert!(serde_json::from_str::<Cell>(&json.replace(":1000000,", ":0,")).is_err());
}

fn with_step(ns: u64) -> Cell {
    Cell { conditions: Conditions { period_step: Some(Span(ns)), ..cell().conditions }, ..cell() }
}

#[test]
fn each_thread_has_the_cycles_of_its_period_in_the_window_of_the_first() {
    // 250.5 ms of warm-up are 251 cycles of 1 ms; the window is 251 ms to 2251 ms.
    let step = with_step(500_000);
    let of = |n: usize| {
        let period = step.period_of(n);
        (period.ns(), step.cycles_of(period), step.lead_of(period).ns(), step.deadline_at(period).ns())
    };
    assert_eq!(of(0), (1_000_000, 251..2251, 0, 1_000_000));
    // The first due time from 251 ms on is 252 ms, the last 2250 ms.
    assert_eq!(of(1), (1_500_000, 168..1501, 1_000_000, 1_500_000));
    assert_eq!((step.period_on(0).ns(), step.period_on(1).ns(), step.cycles_of_all()), (1_000_000, 1_500_000, 3333));
    assert!(step.has_several_periods() && !cell().has_several_periods());
    assert_eq!(
        (cell().period_of(1), cell().cycles_of(cell().period), cell().cycles_of_all()),
        (cell().period, 251..2251, 4000)
    );
    let apart = Cell { cpus: "1,3-4".parse().unwrap(), ..with_step(250_000) };
    assert_eq!([1, 3, 4].map(|cpu| apart.period_on(cpu).ns()), [1_000_000, 1_250_000, 1_500_000]);
    let json = serde_json::to_string(&step).unwrap();
    assert!(
        json.contains(r#""period_step_ns":500000"#) && serde_json::from_str::<Cell>(&json).unwrap() == step,
        "{json}"
    );
}

#[test]
fn periods_that_no_thread_can_have_are_refused() {
    let with = |change: &dyn Fn(&mut Cell)| {
        let mut cell = with_step(500_000);
        change(&mut cell);
        cell.check()
    };
    assert_eq!(with(&|_| ()), Ok(()));
    let of_method = |method: &str| {
        let task: Task = method.parse().unwrap();
        with(&|cell| {
            (cell.task, cell.lock_memory) = (task.clone(), !task.is_in_other_processes());
            if !task.has_latencies() {
                (cell.cpus, cell.lock_memory) = ([0].into_iter().collect(), false);
            }
        })
    };
    for method in ["clock_nanosleep:relative", "nanosleep", "timerfd", "itimer", "posix_timer", "futex", "poll"] {
        assert_eq!(of_method(method), Ok(()), "{method}");
    }
    for method in ["sleep:c", "response:udp:h:1", "cobalt:kernel", "program:cyclictest:cyclictest -q"] {
        let refused = of_method(method).unwrap_err();
        assert!(refused.starts_with("period_step does not apply to method "), "{method}: {refused}");
    }
    assert_eq!(
        of_method("cost"),
        Err("period_step does not apply to method cost, which has no due times; leave it out".to_owned())
    );
    type Change = fn(&mut Cell);
    let refused: [(Change, &str); 7] = [
        (
            |cell: &mut Cell| cell.conditions.period_step = Some(Span(0)),
            "invalid period_step: expected more than 0, like 500us; leave it out for equal periods",
        ),
        (
            |cell: &mut Cell| cell.cpus = [1].into_iter().collect(),
            "period_step needs 2 CPUs or more, not only 1; name more (cpus, --cpus), or leave it out",
        ),
        (
            |cell: &mut Cell| cell.conditions.distance = Some(Span(1)),
            "period_step and distance cannot be combined: due times of different periods have no constant offset; \
             leave one out",
        ),
        (
            |cell: &mut Cell| (cell.kernel, cell.conditions.tracers) = ("debian:6.1-rt".parse().unwrap(), true),
            "period_step does not apply to tracers, whose threads have one period; leave it out",
        ),
        (
            |cell: &mut Cell| cell.conditions.period_step = Some(Span(99_999_000_001)),
            "invalid period_step 99999000001ns: the thread on the last CPU would have a period of 100000000001ns, the \
             longest is 100s",
        ),
        (
            |cell: &mut Cell| cell.duration = Span(1_499_999),
            "duration 1499999ns is shorter than the longest period, 1500us; measure at least 1500us",
        ),
        (
            |cell: &mut Cell| {
                (cell.task, cell.conditions.period_step) = (Task::Cyclic(Method::Itimer), Some(Span(500_001)));
            },
            "invalid period_step `500001ns` for method itimer: expected whole microseconds",
        ),
    ];
    for (change, reason) in refused {
        assert_eq!(with(&change), Err(reason.to_owned()));
    }
    assert_eq!(with(&|cell| cell.duration = Span(1_500_000)), Ok(()));
    assert_eq!(
        with(&|cell| cell.conditions.period_step = Some(Span(99_999_000_000))).map_err(|why| why.contains("duration")),
        Err(true)
    );
}

#[test]
fn warm_up_is_rounded_up_to_whole_cycles() {
    assert_eq!((cell().first_cycle(), cell().end_cycle()), (251, 2251));
}

#[test]
fn the_id_follows_from_every_dimension() {
    let id = cell().id();
    assert_eq!(id.to_string(), "6f3d3a950f31d5ee");
    let others = [
        json!({"load": "messaging"}),
        json!({"cpus": "0"}),
        json!({"warm_up_ns": 0}),
        json!({"deadline_ns": 1}),
        json!({"timer_slack_ns": 1}),
        json!({"align_ns": 0}),
        json!({"distance_ns": 0}),
        json!({"period_step_ns": 500_000}),
        json!({"period_step_ns": 500_001}),
        json!({"load_cpus": "0"}),
        json!({"load_policy": "other"}),
        json!({"load_must_hold_percent": 50}),
        json!({"explain": {"above_ns": null, "keep": 1}}),
        json!({"stop_above_ns": 1}),
        json!({"on_spike": "true"}),
        json!({"prepare": {"timer_migration": false}}),
        json!({"tracers": true}),
        json!({"roles": {"target_cpu": 1}}),
        json!({"lock_memory": false}),
        json!({"cpu_dma_latency_us": null}),
    ];
    let mut ids: Vec<_> = others.map(|changes| changed(&cell(), changes).id()).into_iter().chain([id]).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), 21);
}

/// The cell of these tests with other values in its JSON.
fn changed(cell: &Cell, changes: Value) -> Cell {
    let mut json = serde_json::to_value(cell).unwrap();
    json.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
    serde_json::from_value(json).unwrap()
}

#[test]
fn what_no_machine_can_do_is_refused() {
    assert_eq!(cell().check(), Ok(()));
    for (changes, reason) in refusals(include_str!("../../../tests/refusals/cells.txt")) {
        assert_eq!(changed(&cell(), serde_json::from_str(&changes).unwrap()).check(), Err(reason.to_owned()));
    }
    let [min, max] = [100_000, 1_000_000_000].map(|ns| changed(&traced(), json!({"period_ns": ns})).check());
    assert_eq!((min, max), (Ok(()), Ok(())));
    for (changes, reason) in refusals(include_str!("../../../tests/refusals/traced-cells.txt")) {
        assert_eq!(changed(&traced(), serde_json::from_str(&changes).unwrap()).check(), Err(reason.to_owned()));
    }
    let slow = json!({"duration_ns": 1_000_000, "timer_slack_ns": 1_000_000_000});
    assert_eq!(changed(&cell(), slow).check(), Ok(()));
}

#[test]
fn roles_that_nobody_can_have_are_refused() {
    let cell = || {
        let mut cell = cell();
        (cell.task, cell.cpus) = ("response:udp:h:1".parse().unwrap(), "0".parse().unwrap());
        cell.conditions.roles.target = Some("ssh:board".parse().unwrap());
        cell
    };
    assert_eq!(cell().check(), Ok(()));
    let changed = |change: &dyn Fn(&mut Cell)| {
        let mut cell = cell();
        change(&mut cell);
        cell.check().unwrap_err()
    };
    type Change<'a> = (&'a dyn Fn(&mut Cell), &'a str);
    let changes: [Change<'_>; 6] = [
        (
            &|cell| cell.task = "response:gpio-loop:gpiochip0/1,2".parse().unwrap(),
            "[roles] needs a link between machines, like response:udp:HOST:PORT, not response:gpio-loop:gpiochip0/1,2; \
             leave it out",
        ),
        (
            &|cell| cell.task = Task::CLOCK_NANOSLEEP,
            "[roles] needs a link between machines, like response:udp:HOST:PORT, not clock_nanosleep; leave it out",
        ),
        (
            &|cell| cell.kernel = "debian:6.1".parse().unwrap(),
            "[roles] does not apply to lab guests, which have their own (punctual help guide response); leave it out",
        ),
        (
            &|cell| cell.conditions.roles = Roles { target_cpu: Some(1), ..Roles::default() },
            "target_cpu and target_link need a target; name it, like target = \"ssh:HOST\"",
        ),
        (
            &|cell| cell.conditions.roles.target_link = Some("serial:/dev/ttyS0".parse().unwrap()),
            "invalid target_link: expected the other end of response:udp:h:1",
        ),
        (
            &|cell| cell.conditions.load_must_hold = Some(Percent::HALF),
            "load_must_hold does not apply to the target or the host; leave it out",
        ),
    ];
    for (change, reason) in changes {
        assert_eq!(changed(change), reason);
    }
}

#[test]
fn a_real_time_loop_leaves_a_housekeeping_cpu_and_runs_with_throttling_only() {
    let on = |policy: &str, cpus: &str| Cell {
        task: "noise".parse().unwrap(),
        policy: policy.parse().unwrap(),
        cpus: cpus.parse().unwrap(),
        ..cell()
    };
    let host = |online: &str, isolated: &str, runtime: i64| Host {
        cpus_online: Some(online.parse().unwrap()),
        cpus_isolated: (!isolated.is_empty()).then(|| isolated.parse().unwrap()),
        rt_runtime_us: Some(runtime),
        rt_period_us: Some(1_000_000),
        ..Host::default()
    };
    let why = |cell: &Cell, host: &Host| cell.check_on_host(host).err().unwrap_or_default();
    for (policy, cpus, online, isolated, runtime, refusal) in [
        ("fifo:1", "1", "0-1", "", 950_000, ""),
        ("fifo:1", "0-1", "0-1", "", 950_000, "(0-1)"),
        ("rr:1", "0", "0", "", 950_000, "(0)"),
        ("fifo:1", "1-3", "0-3", "1-3", 950_000, ""),
        ("fifo:1", "0", "0-3", "1-3", 950_000, "(0)"),
        ("fifo:1", "1", "0-1", "", -1, "throttling"),
        ("fifo:1", "1", "0-1", "", 1_000_000, "throttling"),
        ("fifo:1", "1", "0-1", "", 999_999, ""),
        ("other", "0-1", "0-1", "", -1, ""),
    ] {
        let message = why(&on(policy, cpus), &host(online, isolated, runtime));
        assert!(message.contains(refusal) && message.is_empty() == refusal.is_empty(), "{policy} {cpus}: {message}");
    }
    let mut unserved = host("0-1", "", 950_000);
    unserved.scheduling.fair_server_runtime_us = vec![OnCpus { cpus: [1].into_iter().collect(), value: 0 }];
    assert!(why(&on("fifo:1", "1"), &unserved).contains("fair_server"));
    assert_eq!(why(&on("fifo:1", "0"), &unserved), "");
    assert!(why(&on("fifo:1", "1"), &Host::default()).contains("throttling"), "unknown is not on");
    let allowed = |cpus: &str| on("fifo:1", "1").check_on(&cpus.parse().unwrap());
    assert!(allowed("1").is_err_and(|err| err.contains("housekeeping")) && allowed("0-1").is_ok());
}
