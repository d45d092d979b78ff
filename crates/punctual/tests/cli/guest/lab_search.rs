//! Planted stretches without interrupts or preemption: the search finds each to the instruction, and shows it.

use crate::guest::lab_explain::build_modules;
use crate::guest::vm::{in_virtual_time, kernel};
use crate::program::{Scratch, run};
use serde_json::Value;

/// Length of the planted stretches, us of virtual time.
const PLANTED_US: [u64; 3] = [37, 100, 300];
/// One part of the time that each takes.
const SHARE: &str = "500";

#[test]
fn vm_planted_stretches_are_found_to_the_instruction_and_filmed() {
    let Some(kernel) = kernel() else { return };
    let scratch = Scratch::new("lab-search");
    let source = include_str!("../../culprits/culprit_planted.c")
        .replace("#define SHARE 10000", &format!("#define SHARE {SHARE}"));
    let dir = scratch.path("planted");
    std::fs::create_dir(&dir).unwrap();
    std::fs::write(dir.join("culprit_planted.c"), source).unwrap();
    std::fs::write(dir.join("Makefile"), "obj-m := culprit_planted.o\n").unwrap();
    let Some(()) = build_modules(&dir, &kernel) else { return };
    let kernel = format!("{} preempt=full modules={}/culprit_planted.ko", kernel.display(), dir.display());
    let search = in_virtual_time(&scratch, "lab worst --load none --budget 600ms --format json").arg(&kernel).output();
    let search = search.unwrap();
    assert!(search.status.success(), "{}", String::from_utf8_lossy(&search.stderr));
    let found: Value = serde_json::from_slice(&search.stdout).unwrap();
    let delays = found["delays"].as_array().unwrap();
    let mut planted = 0;
    for delay in delays {
        let name = delay["begins"].as_str().unwrap();
        let Some(us) = PLANTED_US.into_iter().find(|us| name.ends_with(&format!("off_{us} [culprit_planted]"))) else {
            continue;
        };
        let kind = if name.starts_with("irqs") { "interrupts_off" } else { "preemption_off" };
        assert_eq!((&delay["kind"], &delay["is_whole"]), (&kind.into(), &true.into()), "{delay}");
        // The loop, to the 16 instructions of the timer's steps, and what turns interrupts or preemption on again.
        let instructions = delay["kind_instructions"].as_u64().unwrap();
        assert!((us * 1000 - 16..us * 1000 + 1_100).contains(&instructions), "{delay}");
        planted += 1;
    }
    assert!(planted >= 1, "{found}");
    let longest = &delays[0];
    let witness = longest["witness"].as_str().unwrap();
    let options = format!("lab film --load none --witness {witness} --out {}", scratch.path("film").display());
    let film = run(in_virtual_time(&scratch, &options).arg(&kernel)).expect_success().stdout;
    let latency = longest["latency_ns"].as_u64().unwrap();
    assert!(film.contains(&format!("\n{latency} instructions from the due time to the wake-up")), "{film}");
    let timeline = std::fs::read(scratch.path("film/film.perfetto.json")).unwrap();
    let timeline: Value = serde_json::from_slice(&timeline).unwrap();
    let slices = timeline["traceEvents"].as_array().unwrap().iter().filter(|event| event["ph"] == "X");
    let longest_slice = slices.map(|event| event["dur"].as_f64().unwrap()).fold(0.0, f64::max);
    assert!(longest_slice * 1000.0 >= longest["kind_instructions"].as_f64().unwrap() / 2.0, "{longest_slice}");
    assert!(std::fs::read_to_string(scratch.path("film/film.svg")).unwrap().contains("</svg>"));
}
