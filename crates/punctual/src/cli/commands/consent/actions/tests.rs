//! The actions of cells, one kind after the other.

use super::*;
use punctual_analysis::testing::cell;
use punctual_model::Policy;

/// The actions of a cell with this change.
fn of_changed(change: impl FnOnce(&mut Cell)) -> Vec<Action> {
    let mut one = cell("none", "other");
    one.conditions = Conditions::default();
    change(&mut one);
    of([&one])
}

fn started(text: &str, command: &str) -> Action {
    Action::Run(Started::new(text.to_owned(), command.to_owned()))
}

fn other(clause: &str) -> Action {
    Action::Other(clause.to_owned())
}

#[test]
fn a_cell_of_our_own_threads_does_nothing_else() {
    for method in ["clock_nanosleep", "timerfd", "deadline", "cost", "cost:syscall", "cobalt:kernel", "response:uio"] {
        assert_eq!(of_changed(|cell| cell.task = method.parse().unwrap()), [], "{method}");
    }
    for watched in ["watch,pid=1", "watch,cgroup=/robot", "watch,unit=robot", "watch,thread=control"] {
        assert_eq!(of_changed(|cell| cell.task = watched.parse().unwrap()), [], "{watched}");
    }
    for load in ["none", "cpu+messaging+pipe+light", "disk+files+cost", "high"] {
        assert_eq!(of_changed(|cell| cell.load = load.parse().unwrap()), [], "{load}");
    }
}

#[test]
fn each_program_is_listed_with_its_command() {
    for (method, command) in [
        ("program:cyclictest:/tmp/ev.sh -x", "/tmp/ev.sh -x"),
        ("program:oslat,output=o.txt,files=/lib/a:oslat -D 1", "oslat -D 1"),
        ("watch:./servo --rate 1000", "./servo --rate 1000"),
    ] {
        assert_eq!(of_changed(|cell| cell.task = method.parse().unwrap()), [started(method, command)]);
    }
    for (load, command) in [
        ("cmd:a + b", "a + b"),
        ("stress-ng:--cpu 1", "stress-ng --cpu 1"),
        ("hackbench:-g 1", "hackbench -g 1"),
        ("fio:job.fio", "fio job.fio"),
    ] {
        assert_eq!(of_changed(|cell| cell.load = load.parse().unwrap()), [started(load, command)]);
    }
    let ping = Started {
        floods: Some("192.0.2.1".to_owned()),
        ..Started::new("ping:192.0.2.1".into(), "ping 192.0.2.1".into())
    };
    assert_eq!(of_changed(|cell| cell.load = "cpu+ping:192.0.2.1".parse().unwrap()), [Action::Run(ping)]);
    let at_spikes = of_changed(|cell| cell.conditions.on_spike = Some("mail me".to_owned()));
    assert_eq!(at_spikes, [Action::AtSpikes("mail me".to_owned())]);
    assert_eq!(at_spikes[0].command(), Some("mail me"));
    let sleep = of_changed(|cell| cell.task = "sleep:python3".parse().unwrap());
    assert_eq!(sleep, [Action::Harmless(Harmless::Language(Runtime::Python3))]);
}

#[test]
fn each_program_is_listed_once() {
    let loads = ["none", "cpu+cmd:a + b", "disk+stress-ng:--cpu 1", "x=cmd:a + b"];
    let cells = loads.map(|load| cell(load, "other"));
    let programs: Vec<_> = of(&cells).into_iter().filter(|action| matches!(action, Action::Run(_))).collect();
    assert_eq!(programs, [started("cmd:a + b", "a + b"), started("stress-ng:--cpu 1", "stress-ng --cpu 1")]);
}

#[test]
fn each_other_effect_is_listed() {
    let fifo: Policy = "fifo:1".parse().unwrap();
    let with_load = |cell: &mut Cell, load: &str| cell.load = load.parse().unwrap();
    let export = Explain { export: Some("/srv/spikes".into()), ..Explain::default() };
    type Change = Box<dyn FnOnce(&mut Cell)>;
    let cases: Vec<(Change, Vec<Action>)> = vec![
        (Box::new(move |cell| with_load(cell, "pipe+disk:/srv")), vec![other("write files in /srv")]),
        (
            Box::new(move |cell| {
                with_load(cell, "cpu");
                cell.conditions.load_policy = Some(fifo);
            }),
            vec![other("run its load as fifo:1")],
        ),
        (Box::new(move |cell| cell.conditions.load_policy = Some(fifo)), vec![]),
        (
            Box::new(|cell| cell.conditions.explain = Some(export)),
            vec![Action::Harmless(Harmless::Trace), other("write files in /srv/spikes")],
        ),
        (Box::new(|cell| cell.conditions.tracers = true), vec![Action::Harmless(Harmless::Trace)]),
        (Box::new(|cell| cell.conditions.cpu_dma_latency_us = Some(3)), vec![Action::Harmless(Harmless::Hold(3))]),
        (
            Box::new(|cell| cell.task = "response:udp:192.0.2.1:4001".parse().unwrap()),
            vec![other("send to udp:192.0.2.1:4001")],
        ),
        (
            Box::new(|cell| {
                let roles = &mut cell.conditions.roles;
                roles.target = Some("exec:env".parse().unwrap());
                roles.logger = Some(Site::Here);
                roles.target_link = Some("serial:/dev/ttyS0".parse().unwrap());
            }),
            vec![Action::Reach("target", "exec:env".parse().unwrap()), other("send to serial:/dev/ttyS0")],
        ),
    ];
    for (change, expected) in cases {
        assert_eq!(of_changed(change), expected);
    }
    let reach = |site: &str| Action::Reach("target", site.parse().unwrap());
    assert_eq!((reach("exec:ip netns exec x").command(), reach("ssh:x").command()), (Some("ip netns exec x"), None));
    let set = of_changed(|cell| {
        let prepare = &mut cell.conditions.prepare;
        for (key, value) in [("governor", "performance"), ("rt_runtime", "unlimited"), ("sysctl:vm.stat_interval", "9")]
        {
            prepare.set(key, value).unwrap();
        }
    });
    let words = ["governor=performance", "rt_runtime=unlimited", "sysctl:vm.stat_interval=9"];
    assert_eq!(set, words.map(|word| Action::Set(word.to_owned())));
}

#[test]
fn programs_stay_in_a_guest_but_not_what_runs_beside_it() {
    let kernel = "/boot/vmlinuz clock=emulated vcpu_policy=fifo:50 host_load=cmd:/tmp/ev.sh modules=/m file=/etc/a:/b";
    let all = of_changed(|cell| {
        cell.kernel = kernel.parse().unwrap();
        cell.load = "disk:/srv+cmd:inside".parse().unwrap();
        cell.task = "program:oslat,files=/lib/c:oslat".parse().unwrap();
        cell.conditions.prepare.set("governor", "performance").unwrap();
        cell.conditions.on_spike = Some("beep".to_owned());
    });
    let (outside, inside): (Vec<_>, Vec<_>) = all.iter().partition(|action| !matches!(action, Action::RunInGuest(_)));
    let clauses = |all: &[&Action]| {
        crate::cli::commands::consent::clauses(&all.iter().map(|one| (*one).clone()).collect::<Vec<_>>(), None)
    };
    let outside = clauses(&outside);
    assert!(outside[0].starts_with("run `cmd:/tmp/ev.sh` as "), "{outside:?}");
    let others = [
        "boot /boot/vmlinuz",
        "copy /etc/a into a guest",
        "copy /lib/c into a guest",
        "copy /m into a guest",
        "run a guest's threads with vcpu_policy=fifo:50",
    ];
    assert_eq!(outside[1..], others);
    let names =
        |action: &&Action| if let Action::RunInGuest(started) = action { started.text.clone() } else { String::new() };
    let inside: Vec<String> = inside.iter().map(names).collect();
    assert!(inside.iter().any(|text| text == "program:oslat,files=/lib/c:oslat"), "{inside:?}");
    assert!(
        inside.iter().any(|text| text.contains("inside")) && inside.iter().any(|text| text == "beep"),
        "{inside:?}"
    );
}

#[test]
fn only_udp_to_this_machine_stays_here() {
    for (link, stays) in [
        ("uio", true),
        ("oob", true),
        ("udp:127.0.0.1:4001", true),
        ("udp:localhost:4001", true),
        ("udp:[::1]:4001", true),
        ("udp:192.0.2.1:4001", false),
        ("udp:localhost.example:4001", false),
        ("serial:/dev/ttyS0", false),
        ("serial-loop:/dev/ttyS0", false),
    ] {
        assert_eq!(stays_here(link.parse().unwrap()), stays, "{link}");
    }
}
