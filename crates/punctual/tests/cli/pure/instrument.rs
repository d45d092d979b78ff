//! Outside programs in plans that are refused before anything runs.

use crate::program::{Scratch, punctual};
use crate::real::instrument::plan;

#[test]
fn a_wrong_program_in_a_plan_stops_before_anything_runs() {
    let scratch = Scratch::new("instrument-plan");
    for (table, expected) in [
        ("program = \"x\"", "missing key `program` or `read`"),
        ("program = \"x\", read = \"cyclic\"", "unknown format of a result `cyclic` (did you mean `cyclictest`?"),
        ("program = \"'x\", read = \"oslat\"", "invalid command `'x`"),
        ("program = \"x {cpuz}\", read = \"oslat\"", "unknown name `cpuz` (did you mean `cpu`?"),
        ("program = \"x\", read = \"oslat\", output = \"../x\"", "invalid output `../x`: expected the name of a file"),
        ("program = \"x\", read = \"oslat\", files = [\"x\"]", "invalid file `x`: expected an absolute path"),
        ("program = \"x\", read = \"oslat\", tiemout = \"1s\"", "unknown key `tiemout` (did you mean `timeout`?"),
    ] {
        let plan = scratch.file("plan.toml", plan("1s", "", &[table]));
        let said = punctual(&format!("run {} --dry-run", plan.display()));
        assert!(said.status == 1 && said.stderr.contains(expected), "{table}: {}", said.stderr);
        assert_eq!(said.stderr.trim_end().lines().count(), 1, "{}", said.stderr);
    }
}
