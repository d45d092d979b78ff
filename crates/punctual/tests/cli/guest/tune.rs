//! `punctual tune` in guests: words of the kernel as knobs.

use crate::guest::vm::{in_virtual_time, kernel};
use crate::program::{Scratch, run};

#[test]
fn vm_words_of_the_kernel_have_the_same_answer_twice() {
    let Some(kernel) = kernel() else { return };
    let scratch = Scratch::new("tune-lab");
    let plan = format!(
        "duration = \"40ms\"\nwarm_up = \"10ms\"\nseed = 5\n[knobs]\nboot.preempt = [\"none\", \"full\"]\n\
         [axes]\nkernel = [\"{}\"]\nload = [\"cpu\"]\npolicy = [\"fifo:90\"]\nperiod = [\"1ms\"]\n",
        kernel.display()
    );
    let plan = scratch.file("plan.toml", plan).display().to_string();
    let answers = ["a", "b"].map(|name| {
        let options = "--blocks 2 --confirm 6 --response p50 --wait --format json --out";
        let said =
            run(&mut in_virtual_time(&scratch, &format!("tune {plan} {options} {}", scratch.path(name).display())));
        let mut json = said.json();
        assert!(said.status == 0 || said.status == 3, "{said:?}");
        let fields = json.as_object_mut().unwrap();
        // `host` has counters of this machine.
        for key in ["dir", "started_unix_ms", "host"] {
            fields.remove(key).expect(key);
        }
        json
    });
    assert_eq!(answers[0], answers[1], "to the bit");
    let knob = &answers[0]["knobs"][0];
    // Which answer it is depends on the instructions of this very build: virtual time counts them.
    assert_eq!(knob["key"], "boot.preempt", "{knob}");
    assert_ne!(knob["answer"]["kind"], "undecided", "{knob}");
}
