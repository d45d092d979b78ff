//! Latency of responses over simulated wires in machine time, where target and logger have a CPU each.

use crate::guest::response_wires::{Part, guest};
use crate::guest::vm::Clock;

#[test]
#[ignore = "field: a guest in machine time, which a busy machine gives too little of"]
fn vm_edges_of_gpio_lines_are_answered_from_another_cpu() {
    let script = "respond target --policy fifo:80 --cpu 1 --until-silent 5s --on gpio:gpiochip0/2,3\n\
        try logger measure response --policy fifo:80 --cpus 0 --period 20ms --warm-up 200ms --duration 20s --format json \
        --to gpio:gpiochip0/0,1\n\
        ended\n";
    let part = Part { module: "wired_gpio", own: &[], script };
    let Some([said]) = guest([part], Clock::Machine) else { return };
    let (seen, record) = said.exchange("logger", "target");
    let count = |key: &str| seen[key].as_u64().unwrap();
    assert_eq!(count("samples") + count("missed"), 1000, "{seen:#}");
    assert!(count("samples") > 500, "{seen:#}");
    let waking = record.waking.as_ref().unwrap();
    assert!(waking.n == record.triggers && waking.min_ns > Some(0), "{record:?}");
}
