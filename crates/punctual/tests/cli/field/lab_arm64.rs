//! Guests of arm64 on this machine: the same to the bit, kernels ranked, and one line for what is missing.

use crate::program::{
    Scratch, beside_a_load, entries, is_installed, machine_and_scratch, punctual, run_seeded, skip_unless,
};
use punctual_model::{Entry, LabClock};

/// Latencies are multiples of the period of the guests' timer, ns.
const TIMER_STEP_NS: i64 = 16;

/// Whether guests can be booted: QEMU and this program for arm64.
fn can_boot() -> bool {
    let is_here = is_installed("qemu-system-aarch64", "qemu-system-arm");
    let program = punctual_host::program_of(punctual_model::Architecture::Aarch64);
    if let Err(reason) = &program {
        eprintln!("skipped: {reason}");
    }
    is_here && program.is_ok()
}

/// Kernels from the least to the most preemptible one. Debian has two of them; the others are those of an Image with
/// PREEMPT_DYNAMIC.
fn models() -> Option<Vec<String>> {
    let fetched = punctual("lab fetch debian:6.1-arm64 debian:6.1-rt-arm64");
    if fetched.status != 0 {
        eprintln!("skipped: {}", fetched.stderr.trim_end());
        return None;
    }
    let Ok(image) = std::env::var("PUNCTUAL_TEST_ARM64_KERNEL") else {
        eprintln!("skipped: none and full: PUNCTUAL_TEST_ARM64_KERNEL=/path/to/Image with PREEMPT_DYNAMIC");
        return Some(["debian:6.1-arm64", "debian:6.1-rt-arm64"].map(str::to_owned).into());
    };
    let of_image = ["none", "voluntary", "full"].map(|model| format!("{image} preempt={model}"));
    Some(of_image.into_iter().chain(["debian:6.1-rt-arm64".to_owned()]).collect())
}

fn heavy_plan(scratch: &Scratch, kernels: &[String]) -> String {
    let plan = format!(
        "repetitions = 2\nduration = \"300ms\"\nwarm_up = \"50ms\"\n[axes]\nkernel = {kernels:?}\n\
         load = [\"heavy\", \"tcp\"]\npolicy = [\"fifo:99\"]\nperiod = [\"1ms\"]\n\
         [loads]\nheavy = \"cpu+sync+mmap\"\n"
    );
    scratch.file("plan.toml", plan).display().to_string()
}

/// Asserts that each phase of the cell `less` has a higher maximum than every phase of `more`.
#[track_caller]
fn expect_order(entries: &[Entry], less: usize, more: usize) {
    let maxima = |cell_index: usize| -> Vec<i64> {
        let of_cell = entries.iter().filter(|entry| entry.planned.cell_index == cell_index);
        of_cell.map(|entry| entry.record.threads[0].histogram.max_ns.unwrap()).collect()
    };
    let [less, more] = [maxima(less), maxima(more)];
    assert!(less.iter().min() > more.iter().max(), "{less:?} {more:?}");
}

#[test]
#[ignore = "field: guests of arm64"]
fn vm_arm64_guests_are_the_same_to_the_bit_and_rank_preemption_models() {
    skip_unless!(can_boot());
    let Some(models) = models() else { return };
    let (_machine, scratch) = machine_and_scratch("lab-arm64");
    let plan = heavy_plan(&scratch, &models);
    let [quiet, busy] = ["quiet", "busy"].map(|name| scratch.path(name));
    run_seeded(&plan, &quiet);
    beside_a_load(|| run_seeded(&plan, &busy));
    let [entries, of_busy] = [quiet, busy].map(|run| entries(&run));
    assert_eq!(entries.len(), 2 * 2 * models.len());
    assert!(entries == of_busy, "virtual time does not depend on what else the machine does");
    for entry in &entries {
        let lab = entry.record.lab.as_ref().unwrap();
        let machine = (lab.clock, lab.machine.as_str());
        assert_eq!(machine, (LabClock::Virtual, "virt, cortex-a72, 1 CPU, 62.5 MHz timer (16 ns)"));
        let thread = &entry.record.threads[0];
        assert!(thread.is_consistent() && thread.recorded == 300, "{thread:?}");
        let [min, max] = [thread.histogram.min_ns, thread.histogram.max_ns].map(Option::unwrap);
        assert!(min > 0 && [min, max].iter().all(|latency| latency % TIMER_STEP_NS == 0), "{min} {max}");
    }
    // Cells are in plan order: `heavy` and `tcp` of each model. Under `heavy` the two models without preemption hardly
    // differ, as in the study; under `tcp` they do. PREEMPT_RT is another build, so its short latencies are, too.
    let [heavy, tcp] = [0, 1].map(|load| move |model: usize| 2 * model + load);
    let last = models.len() - 1;
    (0..last).for_each(|model| expect_order(&entries, heavy(model), heavy(last)));
    if models.len() > 2 {
        (0..2).for_each(|model| expect_order(&entries, heavy(model), heavy(2)));
        (0..2).for_each(|model| expect_order(&entries, tcp(model), tcp(model + 1)));
    }
}
