//! Kernels of the lab in guests: files for them, the check of virtual time, and the step of a bisection.

use crate::guest::vm::{in_virtual_time, kernel};
use crate::program::{Scratch, entries, run};
use crate::pure::lab_kernels::plan;
use punctual_model::GuestFile;

#[test]
fn vm_programs_work_in_guests_that_are_given_them() {
    let Some(kernel) = kernel() else { return };
    let scratch = Scratch::new("kernels-files");
    let greeting = scratch.file("greeting", "hello\n");
    let kernel = kernel.display();
    // The shell exits with an error unless it finds the file.
    let load = "cmd:read word </opt/greeting && [ $word = hello ] && while :; do :; done";
    let files = format!("files = [\"/bin/sh\", \"{}:/opt/greeting\"]", greeting.display());
    let plan = scratch.file("plan.toml", plan(&format!("{kernel} preempt=none"), load, &files));
    let out = scratch.path("out");
    run(in_virtual_time(&scratch, "run --wait --yes --out").arg(&out).arg(plan)).expect_success();
    let entry = &entries(&out)[0];
    let [load] = &entry.record.loads[..] else { panic!("one load") };
    assert_eq!((load.program.as_ref().map(|program| program.path.as_str()), &load.failure), (Some("/bin/sh"), &None));
    let punctual_model::Kernel::Lab(kernel) = &entry.record.cell.kernel else { panic!("a kernel of the lab") };
    assert_eq!(kernel.files[1], GuestFile { from: greeting.display().to_string(), to: "/opt/greeting".to_owned() });
    assert_eq!(kernel.arguments, "preempt=none");
    assert_eq!(
        entry.record.host_before.preemption,
        Some(punctual_model::Preemption::None),
        "as the kernel itself says"
    );
}

#[test]
fn vm_a_check_finds_virtual_time_the_same_beside_a_load() {
    let Some(kernel) = kernel() else { return };
    let scratch = Scratch::new("kernels-check");
    let kernel = format!("{} preempt=full", kernel.display());
    let said = run(in_virtual_time(&scratch, "lab check --wait --format json").arg(&kernel)).expect_success();
    let document = said.json();
    crate::pure::schema::assert_conforms("lab-check", &document);
    assert_eq!((&document["identical"], &document["alone"]), (&true.into(), &document["loaded"]));
    assert_eq!(document["alone"]["threads"][0]["cycles_due"], 300);
    assert_eq!(document["differences"], serde_json::json!([]));
}

#[test]
fn vm_a_step_of_a_bisection_tells_git_what_it_wants_to_hear() {
    let Some(kernel) = kernel() else { return };
    let scratch = Scratch::new("kernels-bisect");
    let step = |kernel: &str, options: &str| {
        let options = format!("lab bisect-step --load none --phases 2 --duration 50ms {options} --kernel");
        run(in_virtual_time(&scratch, &options).arg(kernel))
    };
    let kernel = format!("{} preempt=full", kernel.display());
    // Without a load every kernel stays below a millisecond, and none needs as few as 100 instructions.
    for (limit, status, begins) in
        [("--max 1ms --p99 1ms", 0, "good: max "), ("--p99 100ns", 1, "bad: p99 "), ("--max 100ns", 1, "bad: max ")]
    {
        let said = step(&kernel, limit);
        assert_eq!((said.status, said.stdout.lines().count()), (status, 1), "{said:?}");
        assert!(said.stdout.starts_with(begins) && said.stdout.contains(&kernel), "{said:?}");
    }
    // A kernel that panics at once: its argument moves the search for the init program.
    for lost in ["/nowhere/bzImage", &format!("{kernel} rdinit=/nowhere root=/dev/nowhere")] {
        let said = step(lost, "--max 1ms");
        assert_eq!((said.status, said.stdout.lines().count()), (125, 1), "{said:?}");
        assert!(said.stdout.starts_with("cannot test: "), "{said:?}");
    }
}
