//! Every built-in load in virtual time, where it works at each reading or at none.

use crate::guest::vm::{kernel, run_seeded};
use crate::program::{Scratch, entries};
use crate::real::loads::built_in;

/// The loads that differ in their work: without other words for the same. A single CPU has no room for 400 processes.
fn loads() -> Vec<&'static str> {
    let alone = built_in().filter(|load| !load.contains([':', '+']) && !["high", "half", "low"].contains(load));
    alone.map(|load| if load == "messaging" { "messaging:groups=1" } else { load }).collect()
}

#[test]
fn vm_every_load_works_all_the_time_beside_a_measurement() {
    let Some(kernel) = kernel() else { return };
    let scratch = Scratch::new("loads");
    let plan = format!(
        "repetitions = 1\nduration = \"100ms\"\nwarm_up = \"0ms\"\n[axes]\nkernel = [\"{} preempt=full\"]\nload = {:?}\n\
         policy = [\"fifo:90\"]\nperiod = [\"1ms\"]\n",
        kernel.display(),
        loads()
    );
    let (plan, out) = (scratch.file("plan.toml", plan), scratch.path("run"));
    run_seeded(&plan.display().to_string(), &out);
    let entries = entries(&out);
    assert_eq!(entries.len(), loads().len());
    for entry in entries {
        assert_eq!(entry.record.loads.len(), entry.record.cell.load.parts().len());
        for load in &entry.record.loads {
            assert!(load.workers > 0 && load.failure.is_none() && !load.seconds.is_empty(), "{load:?}");
            assert!(load.seconds.iter().all(|second| second.operations > Some(0)), "{load:?}");
        }
    }
}
