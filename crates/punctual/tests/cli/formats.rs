//! Every format of a run that was made here; what is in them is tested beside their code, against golden files.

use crate::program::{Scratch, a_cpu, machine, punctual};
use crate::schema::assert_conforms;

#[test]
fn a_run_is_shown_in_every_format() {
    let _machine = machine();
    let scratch = Scratch::new("formats");
    let plan = scratch.file("plan.toml", "[axes]\nload = [\"none\"]\npolicy = [\"other\", \"other:nice=5\"]\n");
    let dir = scratch.path("run");
    let measured = punctual(&format!(
        "run {} --wait --out {} --quick --duration 200ms --cpus {} --format junit --require max=10s",
        plan.display(),
        dir.display(),
        a_cpu()
    ));
    assert_eq!(measured.status, 0, "{measured:?}");
    assert!(measured.stdout.starts_with("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites "), "{measured:?}");
    let show = |format: &str| punctual(&format!("show {} --format {format}", dir.display()));
    assert_eq!(show("junit").stdout, measured.stdout, "the same records, the same report");
    for (format, start) in [
        ("text", "punctual "),
        ("json", "{\n"),
        ("csv", "started_unix_ms,hostname,kernel_release,name,"),
        ("md", "### punctual run\n\n**PASS** max "),
        ("tap", "TAP version 13\n1..3\nok 1 - run complete\n"),
        ("lava", "<LAVA_SIGNAL_TESTCASE TEST_CASE_ID=none-other-min RESULT=pass UNITS=us MEASUREMENT="),
        ("hgrm --cell none/other:nice=5", "# none/other:nice=5: latency by wake-up, us\n"),
        ("prom", "# HELP punctual_run_info "),
    ] {
        let said = show(format);
        assert!(said.stdout.starts_with(start) && said.stdout.ends_with('\n') && said.status == 0, "{said:?}");
        assert_eq!(said.stderr, "", "{format}");
    }
    assert_conforms("show", &show("json").json());
    let cells = "(cells: none/other, none/other:nice=5)";
    show("hgrm").expect_error(&format!("hgrm holds one cell; name it with --cell {cells}"));
    show("hgrm --cell x").expect_error(&format!("no cell is named `x` {cells}"));
    show("csv --cell x").expect_error("--cell is for --format hgrm, which holds one cell; the others hold all");
    punctual(&format!("run {} --format hgrm", plan.display())).expect_error(
        "hgrm holds one cell; measure now, and show each later: punctual show RUN --format hgrm --cell NAME",
    );
}
