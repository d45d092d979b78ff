//! Planted stretches without interrupts or preemption: the search finds each to the instruction, and shows it.

use crate::guest::lab_explain::build_modules;
use crate::guest::vm::{in_virtual_time, kernel, run_seeded};
use crate::program::{Scratch, entries, run};
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
    let search = |options: &str| -> Value {
        let options = format!("lab worst --load none --format json --budget {options}");
        let found = run(in_virtual_time(&scratch, &options).arg(&kernel)).expect_success().stdout;
        serde_json::from_str(&found).unwrap()
    };
    // A search that goes on after its first guest has the result of one without an interruption.
    let state = format!("--state {}", scratch.path("state.json").display());
    let first = search(&format!("600ms {state}"));
    let budget = "1110ms";
    let found = search(&format!("{budget} {state}"));
    assert_eq!([&first["guests"], &found["guests"]], [1, 2]);
    assert_eq!(found, search(budget));
    crate::pure::schema::assert_conforms("lab-worst", &found);
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
    assert_eq!(found["failed"], serde_json::json!([]), "what is repeated is what was sampled, to the nanosecond");
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
    let begins = first["delays"][0]["begins"].as_str().unwrap().split(' ').next().unwrap();
    let path = longest["path"].as_array().unwrap();
    assert_eq!(path.last(), Some(&longest["begins"]), "{longest}");
    let options = format!("lab worst --load exec --budget 1s {state}");
    let other = run(in_virtual_time(&scratch, &options).arg(&kernel));
    assert!(other.status == 1 && other.stderr.contains("is of a search with other arguments"), "{}", other.stderr);

    for (options, status, said) in [
        (format!("{begins} --max 1us"), 1, "bad: "),
        (format!("{begins} --max 1ms"), 0, "good: no delay above 1ms in "),
        ("no_function_of_linux --max 1us".to_owned(), 125, "cannot test: no function no_function_of_linux"),
    ] {
        let options = format!("lab bisect-step --load none --budget 600ms --stretch {options} --kernel");
        let step = run(in_virtual_time(&scratch, &options).arg(&kernel));
        assert!(step.status == status && step.stdout.starts_with(said), "{}{}", step.stdout, step.stderr);
    }
}

#[test]
fn vm_the_latest_wake_up_of_a_run_is_filmed_and_its_record_stays_the_same() {
    let Some(kernel) = kernel() else { return };
    let scratch = Scratch::new("lab-film");
    let plan = format!(
        "repetitions = 1\nduration = \"10ms\"\nwarm_up = \"1ms\"\n[axes]\n\
         kernel = [\"{} preempt=none\"]\nload = [\"exec\"]\npolicy = [\"fifo:90\"]\nperiod = [\"100us\"]\n",
        kernel.display()
    );
    let dir = scratch.path("run");
    run_seeded(&scratch.file("plan.toml", plan).display().to_string(), &dir);
    let latest = &entries(&dir)[0].record.threads[0].worst[0];
    // It fails unless the record of the guest that is logged is the same to the byte.
    let mut film = in_virtual_time(&scratch, &format!("lab film {} exec", dir.display()));
    let film = run(&mut film).expect_success().stdout;
    let said = format!("\n{} instructions from the due time to the wake-up, {0} ns late\n", latest.latency_ns);
    assert!(film.contains(&said) && film.contains("\nbegins in "), "{film}");
    assert!(film.contains(&format!("cycle {}\n", latest.cycle)), "{film}");
    let page = std::fs::read_to_string(dir.join("report.html")).unwrap();
    let title = format!("cycle {}: {} instructions</figcaption>", latest.cycle, latest.latency_ns);
    assert!(page.contains("Films of late wake-ups") && page.contains(&title), "the film is in the page of its run");
}
