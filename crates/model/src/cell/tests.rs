//! Tests of cells, and of the checks.

use super::*;
use crate::{Explain, Method, Percent, Prepare, Roles};

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

#[test]
fn warm_up_is_rounded_up_to_whole_cycles() {
    assert_eq!((cell().first_cycle(), cell().end_cycle()), (251, 2251));
}

#[test]
fn the_id_follows_from_every_dimension() {
    let id = cell().id();
    assert_eq!(id.to_string(), "6f3d3a950f31d5ee");
    let others = [
        Cell { load: Load::messaging(), ..cell() },
        Cell { cpus: [0].into_iter().collect(), ..cell() },
        Cell { conditions: Conditions { warm_up: Span(0), ..cell().conditions }, ..cell() },
        Cell { deadline: Some(Span(1)), ..cell() },
        Cell { conditions: Conditions { timer_slack: Some(Span(1)), ..cell().conditions }, ..cell() },
        Cell { conditions: Conditions { align: Some(Span(0)), ..cell().conditions }, ..cell() },
        Cell { conditions: Conditions { distance: Some(Span(0)), ..cell().conditions }, ..cell() },
        Cell { load_cpus: Some([0].into_iter().collect()), ..cell() },
        Cell { conditions: Conditions { load_policy: Some(Policy::OTHER), ..cell().conditions }, ..cell() },
        Cell { conditions: Conditions { load_must_hold: Some(Percent::HALF), ..cell().conditions }, ..cell() },
        Cell { conditions: Conditions { explain: Some(Explain::default()), ..cell().conditions }, ..cell() },
        Cell { conditions: Conditions { stop_above: Some(Span(1)), ..cell().conditions }, ..cell() },
        Cell { conditions: Conditions { on_spike: Some("true".to_owned()), ..cell().conditions }, ..cell() },
        Cell {
            conditions: Conditions {
                prepare: Prepare { timer_migration: Some(false), ..Prepare::default() },
                ..cell().conditions
            },
            ..cell()
        },
        Cell { conditions: Conditions { tracers: true, ..cell().conditions }, ..cell() },
        Cell {
            conditions: Conditions { roles: Roles { target_cpu: Some(1), ..Roles::default() }, ..cell().conditions },
            ..cell()
        },
        Cell { lock_memory: false, ..cell() },
        Cell { conditions: Conditions { cpu_dma_latency_us: None, ..cell().conditions }, ..cell() },
    ];
    assert!(others.iter().all(|other| other.id() != id));
}

#[test]
fn what_no_machine_can_do_is_refused() {
    assert_eq!(cell().check(), Ok(()));
    let fifo = Policy::Fifo(crate::RtPriority::new(80).unwrap());
    for (impossible, reason) in [
        (Cell { cpus: CpuSet::default(), ..cell() }, "no CPU is selected; name at least one, like 0"),
        (
            Cell { duration: Span(999_999), ..cell() },
            "duration 999999ns is shorter than the period of 1ms; measure at least 1ms",
        ),
        (
            Cell { conditions: Conditions { timer_slack: Some(Span(0)), ..cell().conditions }, ..cell() },
            "invalid timer slack: expected 1ns to 1s; to the kernel 0 means \"the default\"",
        ),
        (
            Cell { policy: fifo, conditions: Conditions { timer_slack: Some(Span(1)), ..cell().conditions }, ..cell() },
            "timer slack does not apply to fifo:80: real-time threads have none",
        ),
        (
            Cell { conditions: Conditions { align: Some(Span::SECOND), ..cell().conditions }, ..cell() },
            "invalid align: expected an offset into a second, from 0us to below 1s",
        ),
        (
            Cell {
                task: Task::Cyclic(Method::Nanosleep),
                conditions: Conditions { align: Some(Span(0)), ..cell().conditions },
                ..cell()
            },
            "align and distance do not apply to method nanosleep: its due times depend on when it starts to wait",
        ),
        (
            Cell { conditions: Conditions { distance: Some(Span(1_000_000)), ..cell().conditions }, ..cell() },
            "invalid distance: expected less than the period of 1ms",
        ),
        (
            Cell { task: Task::Cyclic(Method::Deadline), ..cell() },
            "method deadline needs policy SCHED_DEADLINE, like deadline:200us/1ms/1ms",
        ),
        (
            Cell { task: Task::Cyclic(Method::Deadline), policy: "deadline:1ms/2ms/2ms".parse().unwrap(), ..cell() },
            "invalid period `1ms` for method deadline: expected 2ms, the period of policy deadline:1ms/2ms/2ms",
        ),
        (
            Cell { task: Task::Cyclic(Method::Itimer), period: "10500ns".parse().unwrap(), ..cell() },
            "invalid period `10500ns` for method itimer: expected whole microseconds",
        ),
        (
            Cell { task: Task::Sleep(crate::Runtime::C), ..cell() },
            "lock_memory does not apply to method sleep, where the program decides; set it to false",
        ),
        (
            Cell { task: Task::Cost(crate::CostScope::All), ..cell() },
            "lock_memory does not apply to method cost, which has no due times; leave it out",
        ),
        (
            Cell { task: Task::Cost(crate::CostScope::Total), lock_memory: false, ..cell() },
            "method cost:total runs on one CPU, not on 0-1; name one",
        ),
        (
            Cell {
                conditions: Conditions {
                    load_policy: Some("deadline:1ms/2ms/2ms".parse().unwrap()),
                    ..cell().conditions
                },
                ..cell()
            },
            "a load cannot run under SCHED_DEADLINE: it has many processes; choose another policy",
        ),
        (
            Cell {
                conditions: Conditions {
                    explain: Some(Explain { keep: 0, ..Explain::default() }),
                    ..cell().conditions
                },
                ..cell()
            },
            "invalid number of explanations `0`: expected 1 to 1000",
        ),
        (
            Cell { conditions: Conditions { on_spike: Some("true".to_owned()), ..cell().conditions }, ..cell() },
            "on_spike needs a definition of a spike; add stop_above or explain",
        ),
        (
            Cell {
                task: Task::Cyclic(Method::Itimer),
                conditions: Conditions { stop_above: Some(Span(1)), ..cell().conditions },
                ..cell()
            },
            "stop_above does not apply to method itimer, whose processes cannot stop each other; leave it out",
        ),
        (
            Cell {
                task: Task::Cyclic(Method::Itimer),
                conditions: Conditions { explain: Some(Explain::default()), ..cell().conditions },
                ..cell()
            },
            "explain does not apply to method itimer, which measures in other processes; leave it out",
        ),
        (
            Cell { task: "response:uio".parse().unwrap(), ..cell() },
            "response:uio needs a lab guest in virtual time; name a kernel like debian:6.1, or another link",
        ),
        (
            Cell { task: "response:uio".parse().unwrap(), kernel: "debian:6.1".parse().unwrap(), ..cell() },
            "invalid period `1ms` for response:uio: expected one of 5ms 10ms 20ms 25ms 50ms 100ms",
        ),
        (
            Cell { task: "response:udp:h:1".parse().unwrap(), cpus: "0-1".parse().unwrap(), ..cell() },
            "method response measures on one CPU; name one (cpus, --cpus)",
        ),
        (
            Cell {
                task: "response:udp:h:1".parse().unwrap(),
                conditions: Conditions { align: Some(Span(0)), ..cell().conditions },
                ..cell()
            },
            "align and distance do not apply to method response:udp:h:1: its due times depend on when it starts to wait",
        ),
        (
            Cell { conditions: Conditions { tracers: true, ..cell().conditions }, ..cell() },
            "tracers run in lab guests only, not on the running kernel; name kernels like debian:6.1-rt, or \
             leave `tracers` out",
        ),
        (
            Cell { period: "99us".parse().unwrap(), ..traced() },
            "invalid period `99us` for timerlat: expected 100us to 1s in whole microseconds",
        ),
        (
            Cell { period: "1001ms".parse().unwrap(), ..traced() },
            "invalid period `1001ms` for timerlat: expected 100us to 1s in whole microseconds",
        ),
        (
            Cell { period: "100500ns".parse().unwrap(), ..traced() },
            "invalid period `100500ns` for timerlat: expected 100us to 1s in whole microseconds",
        ),
        (
            Cell { policy: "deadline:1ms/2ms/2ms".parse().unwrap(), ..traced() },
            "tracers cannot run under SCHED_DEADLINE: their threads are bound to CPUs; leave `tracers` out",
        ),
    ] {
        assert_eq!(impossible.check(), Err(reason.to_owned()));
    }
    for period in ["100us", "1s"] {
        assert_eq!(Cell { period: period.parse().unwrap(), ..traced() }.check(), Ok(()));
    }
    assert_eq!(
        Cell {
            duration: Span(1_000_000),
            conditions: Conditions { timer_slack: Some(Span::SECOND), ..cell().conditions },
            ..cell()
        }
        .check(),
        Ok(())
    );
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
            "[roles] does not apply to lab guests, which have their own (docs/response.md); leave it out",
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
