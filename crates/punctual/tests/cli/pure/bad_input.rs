//! Invalid input: one line with value, place and remedy; exit status 1; nothing measured, no file left.

use crate::program::{Scratch, command, run};
use crate::session::is_like;
use std::process::Stdio;

/// Commands and plans with their messages; its first lines describe the form.
const REFUSALS: &str = include_str!("refusals.txt");

#[test]
fn what_cannot_be_done_is_refused_in_one_line_before_anything_is_measured() {
    let scratch = Scratch::new("refusals");
    let (mut plan, mut asked, mut n) = (String::new(), None, 0);
    for line in REFUSALS.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let Some(arguments) = asked.take() else {
            match line.strip_prefix("$ ") {
                Some(arguments) => asked = Some(arguments.to_owned()),
                None => plan += &format!("{line}\n"),
            }
            continue;
        };
        if !plan.is_empty() {
            scratch.file("plan.toml", &plan);
        }
        let said = run(command(&arguments).current_dir(scratch.dir()));
        assert_eq!((said.status, said.stdout.as_str()), (1, ""), "{arguments}: {said:?}");
        let expected = format!("punctual: {line}\n");
        let is_one = said.stderr.matches('\n').count() == 1;
        assert!(is_one && is_like(&said.stderr, &expected), "{arguments}:\n{}{expected}", said.stderr);
        let files = usize::from(!std::mem::take(&mut plan).is_empty());
        assert_eq!(std::fs::read_dir(scratch.dir()).unwrap().count(), files, "{arguments}");
        if files > 0 {
            std::fs::remove_file(scratch.path("plan.toml")).unwrap();
        }
        n += 1;
    }
    assert!(n > 100 && asked.is_none() && plan.is_empty(), "{n}");
}

#[test]
fn a_plan_is_utf8() {
    let scratch = Scratch::new("plan-utf8");
    let plan = scratch.file("plan.toml", b"title = \"a\"\ntitle = \"\xff\"\n");
    run(command("run").arg(&plan))
        .expect_error(&format!("{}:2: not UTF-8; save the plan as UTF-8 text", plan.display()));
}

#[test]
fn a_cell_that_is_no_cell_is_refused() {
    let said = run(command("cell").stdin(Stdio::null()));
    assert!(said.stderr.starts_with("punctual: stdin: EOF while parsing"), "{said:?}");
    assert_eq!((said.status, said.stderr.lines().count()), (1, 1));
}
