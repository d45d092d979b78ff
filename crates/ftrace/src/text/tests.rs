//! Lines of every form.

use super::*;
use punctual_analysis::explain::CpuEvents;
use punctual_analysis::recorded::Recording;
use std::io::Cursor;

fn opened(text: &str) -> TextFile<Cursor<Vec<u8>>> {
    open(Parser::new(Cursor::new(text.as_bytes().to_vec())).unwrap()).unwrap().expect("text of ftrace")
}

fn read(text: &str) -> (Trace, Stream<Cursor<Vec<u8>>, TextRecords>) {
    let (mut stream, _) = opened(text);
    let mut all = Trace { cpus: vec![CpuEvents::default(); stream.n_cpus()], ..Trace::default() };
    while stream.next(&mut all).unwrap().is_some() {}
    (all, stream)
}

#[test]
fn columns_are_found_whatever_the_name_looks_like() {
    let line = |text: &'static str| {
        let line = Line::parse(text)?;
        Some((line.pid, line.cpu, line.flags, line.at_ns, line.resolution_ns, line.event, line.fields))
    };
    let us = |pid, flags: u8| Some((pid, 1, Some(flags), 4_423_450_467_000, 1000, "sched_waking", "comm=a pid=7"));
    for (text, want) in [
        ("           servo-2714    [001] d..3.  4423.450467: sched_waking: comm=a pid=7", us(2714, 1)),
        (
            "          servo-2714  [001]  4423.450467: sched_waking:         comm=a pid=7",
            us(2714, 0).map(|line| (line.0, line.1, None, line.3, line.4, line.5, line.6)),
        ),
        ("          <idle>-0       (-------) [001] dNh4.  4423.450467: sched_waking: comm=a pid=7", us(0, 13)),
        ("           servo-2714    (   2711) [001] ..s1   4423.450467: sched_waking: comm=a pid=7", us(2714, 16)),
        ("    a-1 [0] 1.2: b-2714  [001] .bH..  4423.450467: sched_waking: comm=a pid=7", us(2714, 28)),
        ("x-1 [001] 1.000000-2714    [001] .....  4423.450467: sched_waking: comm=a pid=7", us(2714, 0)),
        (
            "           servo-2714  [001]  4423.450467123: sys_exit:             NR 1 = 2",
            Some((2714, 1, None, 4_423_450_467_123, 1, "sys_exit", "NR 1 = 2")),
        ),
        (
            "     servo 1 [0]  2714 [001]  4423.450467123: raw_syscalls:sys_exit: NR 1 = 2",
            Some((2714, 1, None, 4_423_450_467_123, 1, "sys_exit", "NR 1 = 2")),
        ),
        ("     servo  2714 [001]  4423.450467:    1 cycles:  ffffffff8 [unknown] ([kernel])", None),
        ("           servo-2714    [001] .....  44234504: sys_exit: NR 1 = 2", None),
        ("           servo-2714    [001] .....  4423.4504: sys_exit: NR 1 = 2", None),
        ("           servo-2714    [001] .....  99999999999999999999.450467: sys_exit: NR 1 = 2", None),
        ("           servo-2714    [001] .....  4423.+50467: sys_exit: NR 1 = 2", None),
        ("           servo-2714    [001] .....  4423.450467: not an event", None),
        (" => ret_from_fork-1", None),
        ("#           TASK-PID     CPU#  |||||  TIMESTAMP  FUNCTION", None),
        ("", None),
    ] {
        assert_eq!(line(text), want, "{text}");
    }
    let long = |name: usize| "x".repeat(name) + "-1 [0] 1.000000: sched_waking: comm=a pid=7";
    let fits = (16 << 10) - long(0).len();
    assert!(Line::parse(&long(fits)).is_some() && Line::parse(&long(fits + 1)).is_none());
    for (text, cpu) in [
        ("CPU:1 [LOST 123 EVENTS]", Some(1)),
        ("CPU:12 [1153112 EVENTS DROPPED]", Some(12)),
        ("CPU:0 [EVENTS DROPPED]", Some(0)),
        ("##### CPU 3 buffer started ####", Some(3)),
        ("CPU:x [LOST 1 EVENTS]", None),
        ("cpus=2", None),
    ] {
        assert_eq!(line::gap(text), cpu, "{text}");
    }
}

/// One event of each kind, as the kernel prints it, and as trace-cmd does where that differs.
#[test]
fn every_kind_of_event_is_read() {
    let switch = What::Switch { prev: 7, prev_priority: 120, prev_state: 1, next: 8, next_priority: -1 };
    let preempted = What::Switch { prev: 7, prev_priority: 120, prev_state: 0x100, next: 0, next_priority: 120 };
    let start = What::TimerStart { timer: 0xabc, expires_ns: 50_000, soft_ns: 10 };
    let mut known = Known::default();
    let marks = punctual_analysis::explain::MarkNames::new(&["marker:frame".parse().unwrap()]);
    let mut trace = Trace { marks, ..Trace::default() };
    for (text, want) in [
        (
            "sched_switch: prev_comm=a ==> b:1 prev_pid=7 prev_prio=120 prev_state=S ==> next_comm=c d next_pid=8 next_prio=-1",
            Some(switch),
        ),
        ("sched_switch: a ==> b:1:7 [120] S ==> c d:8 [-1]", Some(switch)),
        (
            "sched_switch: prev_comm=a prev_pid=7 prev_prio=120 prev_state=R+ ==> next_comm=swapper/0 next_pid=0 next_prio=120",
            Some(preempted),
        ),
        ("sched_switch: a:7 [120] R+ ==> swapper/0:0 [120]", Some(preempted)),
        ("sched_switch: prev_comm=a prev_pid=7 prev_prio=120", None),
        (
            "sched_switch: prev_comm=a prev_pid=7 prev_prio=120 prev_state=256 next_comm=swapper/0 next_pid=0 next_prio=120",
            Some(preempted),
        ),
        ("sched_wakeup: comm=a pid=9 prio=120 success=1 target_cpu=1", Some(What::Waking { pid: 9 })),
        ("sched_waking: comm=a pid=1 pid=9 prio=120 target_cpu=001", Some(What::Waking { pid: 9 })),
        ("sched_wakeup: comm=a pid=9 prio=120 target_cpu=001", None),
        ("sched_waking: a:1:9 [120] CPU:001", Some(What::Waking { pid: 9 })),
        ("sched_migrate_task: comm=a pid=9 prio=120 orig_cpu=0 dest_cpu=1", Some(What::Migrate { pid: 9, cpu: 1 })),
        ("sched_pi_setprio: comm=a pid=9 oldprio=120 newprio=9", Some(What::Inherit { pid: 9, priority: 9 })),
        ("sched_stat_runtime: comm=a pid=9 runtime=77 [ns] vruntime=1 [ns]", Some(What::Ran { pid: 9, ran_ns: 77 })),
        ("sched_process_exit: comm=a pid=9 prio=120", Some(What::Exit)),
        (
            "hrtimer_start: hrtimer=0000000000000abc function=hrtimer_wakeup expires=50000 softexpires=10 mode=ABS",
            Some(start),
        ),
        ("hrtimer_start: hrtimer=0xabc function=hrtimer_wakeup/0x0 expires=50000 softexpires=10", Some(start)),
        ("hrtimer_start: hrtimer=0xabc function=tick_nohz_handler expires=50000 softexpires=10", None),
        (
            "hrtimer_expire_entry: hrtimer=0xabc now=1 function=hrtimer_wakeup/0x0",
            Some(What::TimerExpire { timer: 0xabc, function: Some(1) }),
        ),
        ("timer_expire_entry: timer=0xabc function=it_fn now=1 baseclk=1", Some(What::WheelExpire { function: 2 })),
        ("workqueue_execute_start: work struct 0000000000000abc: function work_fn", Some(What::Work { function: 3 })),
        ("irq_handler_entry: irq=36 name=virtio1-req a", Some(What::Enter(Context::Interrupt(36)))),
        ("irq_handler_exit: irq=36 ret=handled", Some(What::Leave(Context::Interrupt(36)))),
        ("softirq_entry: vec=9 [action=RCU]", Some(What::Enter(Context::Softirq(9)))),
        ("softirq_exit: vec=9 [action=RCU]", Some(What::Leave(Context::Softirq(9)))),
        ("softirq_exit: vec=900", None),
        ("local_timer_entry: vector=236", Some(What::Enter(Context::Vector(0)))),
        ("reschedule_entry: vector=253", Some(What::Enter(Context::Vector(1)))),
        ("local_timer_exit: vector=236", Some(What::Leave(Context::Vector(0)))),
        ("nmi_handler: perf_event_nmi_handler() delta_ns: 65000 handled: 1", Some(What::Nmi { length_ns: 65_000 })),
        ("cpu_idle: state=2 cpu_id=0", Some(What::Idle { state: Some(2) })),
        ("cpu_idle: state=4294967295 cpu_id=0", Some(What::Idle { state: None })),
        ("page_fault_user: address=0x1 ip=0x2 error_code=0x4", Some(What::PageFault)),
        ("sys_enter: NR 1 (b, 1f, 2, 0, 0, 0)", Some(What::SysEnter { number: 1, arguments: [11, 31, 2] })),
        ("sys_enter: NR 1 (b)", None),
        ("sys_exit: NR 1 = -4", Some(What::SysExit { number: 1, result: -4 })),
        ("tracing_mark_write: anything", None),
        ("tracing_mark_write: frame: 7", Some(What::Pass(0))),
        ("print: tracing_mark_write: frame 8", Some(What::Pass(0))),
    ] {
        let line = format!("           servo-9       [001] .....  1.000000: {text}");
        let line = Line::parse(&line).expect(text);
        assert_eq!(known.what(&line, &mut trace), want, "{text}");
    }
    assert_eq!(trace.names.get(&7).map(String::as_str), Some("a"));
    assert_eq!(trace.interrupts.get(&36).map(String::as_str), Some("virtio1-req a"));
    assert_eq!((known.function(3).as_deref(), known.function(4), known.function(0)), (Some("work_fn"), None, None));
    assert_eq!(known.vectors, ["local_timer", "reschedule"]);
}

#[test]
fn lines_of_the_same_microsecond_stay_in_their_order_and_lost_events_are_gaps() {
    let text = "# entries-in-buffer/entries-written: 4/9   #P:4\n\
                CPU:0 [LOST 5 EVENTS]\n\
                           servo-9       [000] d..1.  1.000001: sched_waking: comm=a pid=1 prio=1 target_cpu=001\n\
                           servo-9       [001] d..1.  1.000001: sched_waking: comm=a pid=2 prio=1 target_cpu=001\n\
                CPU:1 [LOST 5 EVENTS]\n\
                           servo-9       [001] d..1.  1.000003: sched_waking: comm=a pid=3 prio=1 target_cpu=001\n\
                           servo-9       [000] d..1.  1.000003: sched_waking: comm=a pid=4 prio=1 target_cpu=001\n\
                           servo-9       [000] d..1.  1.000009: sched_waking: comm=a pid=5 prio=1 targ";
    let (all, mut stream) = read(text);
    let times = |cpu: usize| all.cpus[cpu].events.iter().map(|event| event.at_ns - 1_000_000_000).collect::<Vec<_>>();
    assert_eq!((all.cpus.len(), times(0), times(1)), (4, vec![1000, 3001], vec![1001, 3000]), "a cut line is left out");
    assert_eq!((all.cpus[0].is_cut, &all.cpus[0].lost_ns, &all.cpus[1].lost_ns), (true, &vec![], &vec![1_000_001_002]));
    let window = stream.window(&(1_000_003_000..1_000_004_000)).unwrap().unwrap();
    assert_eq!((window.cpus[0].events.len(), window.cpus[1].events.len()), (2, 2));
    assert_eq!(opened(text).1, 1000);
    assert!(open(Parser::new(Cursor::new(b"a text\n".to_vec())).unwrap()).unwrap().is_none());
}

/// A file of several blocks, of which a window reads few; a CPU without events in them has its last one.
#[test]
fn a_window_of_a_long_file_has_the_last_event_before_of_each_cpu() {
    let line = |at_us: u64, cpu: u32| {
        let (s, us) = (at_us / 1_000_000, at_us % 1_000_000);
        format!(
            "           servo-9       [00{cpu}] d..1.  {s}.{us:06}: sched_waking: comm=a pid={cpu} prio=1 target_cpu=001\n"
        )
    };
    let text: String =
        std::iter::once(line(1_000_000, 1)).chain((1..20_000).map(|n| line(1_000_000 + n * 100, 0))).collect();
    let (all, mut stream) = read(&text);
    assert_eq!((all.cpus[0].events.len(), all.cpus[1].events.len()), (19_999, 1));
    let window = stream.window(&(2_500_000_000..2_500_100_000)).unwrap().unwrap();
    let first = |cpu: usize| window.cpus[cpu].events.first().map(|event| event.at_ns);
    assert_eq!((first(0), first(1)), (Some(2_499_900_000), Some(1_000_000_000)));
    assert!(window.cpus.iter().all(|cpu| cpu.is_cut) && window.cpus[0].events.len() < 5000);
}

#[test]
fn interrupts_tell_the_flags_of_a_text_without_them() {
    let text: String = [
        "sched_process_exit: a",
        "local_timer_entry: vector=236",
        "softirq_entry: vec=1",
        "local_timer_exit: vector=236",
    ]
    .map(|event| format!("           servo-9  [000]  1.000001: {event}\n"))
    .concat();
    let (all, _) = read(&text);
    let shown: Vec<u8> = all.cpus[0].events.iter().map(|event| event.flags).collect();
    assert_eq!(shown, [0, flags::HARDIRQ, flags::HARDIRQ | flags::SOFTIRQ, flags::SOFTIRQ]);
}
