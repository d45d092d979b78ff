//! Sessions: commands and what they print, in a text file beside the module whose test plays them.
//!
//! ```text
//! == A title
//! Comments are not indented.
//!
//!   $ punctual show run --format csv \
//!   >   --cell none/other
//!   started,...
//!   $ punctual list --format json
//!   {list}
//!   /runs/*/path "b" "a"
//! ```
//!
//! The commands of a session are run by sh(1) in a directory of its own, with `$FILES` for those of `import` and a CPU
//! in `$CPU`. Below a command is its whole output, in which `...` is any text: stdout; a line `! MESSAGE` for each of
//! the program on stderr, `| LINE` for others; the exit status, as `[2]`, but for 0 and for the 1 of a message alone.
//! JSON that conforms to a schema is `{SCHEMA}`, or `{}`, with values at its pointers, in which `*` is any index. A
//! title may begin with what its session needs, like `needs root: `. `UPDATE_EXPECT=1` rewrites what is not expected.

use crate::program::{
    PROGRAM, ProgramOutput, Scratch, a_cpu, a_cpu_and_the_others, ended, import_fixture, in_test, is_installed,
    is_root, may_mount,
};
use crate::pure::schema::assert_conforms;
use serde_json::Value;
use std::fmt::Write;
use std::panic::Location;
use std::path::Path;
use std::process::Command;

/// Plays every session of the file beside the calling one; `prepare` makes what it needs, by its title.
#[track_caller]
pub(crate) fn play(prepare: impl Fn(&Scratch, &str)) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let path = root.join(Location::caller().file()).with_extension("txt");
    let text = std::fs::read_to_string(&path).unwrap_or_else(|err| panic!("{}: {err}", path.display()));
    let (mut played, mut wrong, mut n) = (String::new(), Vec::new(), 0);
    let mut scratch = None;
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        played += &format!("{line}\n");
        if let Some(title) = line.strip_prefix("== ") {
            scratch = can_play(title).then(|| Scratch::new("session"));
            scratch.iter().for_each(|scratch| prepare(scratch, title));
        }
        let (Some(first), Some(scratch)) = (line.strip_prefix("  $ "), &scratch) else { continue };
        let mut command = first.to_owned();
        while let Some(more) = lines.next_if(|line| line.starts_with("  > ")) {
            played += &format!("{more}\n");
            command += &format!("\n{}", &more[4..]);
        }
        let is_output = |line: &&str| line.is_empty() || line.starts_with("  ") && !line.starts_with("  $ ");
        let output: Vec<&str> = std::iter::from_fn(|| lines.next_if(is_output)).collect();
        let blanks = output.iter().rev().take_while(|line| line.is_empty()).count();
        let expected = output.iter().map(|line| line.get(2..).unwrap_or_default()).collect::<Vec<_>>().join("\n");
        let expected = expected.trim_end();
        let found = found(scratch, &command, expected);
        let is_right = is_like(&found, expected);
        for line in if is_right { expected } else { &found }.lines() {
            played += &format!("{}\n", format!("  {line}").trim_end());
        }
        played += &"\n".repeat(blanks);
        n += 1;
        if !is_right {
            wrong.push(format!("$ {command}\n{found}\nexpected\n{expected}\n"));
        }
    }
    assert!(n > 0, "{}: no commands", path.display());
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        std::fs::write(path, played).expect("a file of tests");
    } else {
        assert!(wrong.is_empty(), "{}:\n{}", path.display(), wrong.join("\n"));
    }
}

/// Whether this machine permits a session with this title; otherwise prints that it is skipped.
fn can_play(title: &str) -> bool {
    match title.split_once(": ") {
        Some(("needs root", _)) => is_root(),
        Some(("needs mounts", _)) => may_mount(),
        Some(("needs QEMU", _)) => is_installed("qemu-system-x86_64", "qemu-system-x86"),
        Some(("needs two CPUs", _)) => a_cpu_and_the_others().is_some(),
        _ => true,
    }
}

/// Runs a command; returns what it did in the form of a session, with the parts of its JSON that are expected.
fn found(scratch: &Scratch, command: &str, expected: &str) -> String {
    let mut shell = Command::new("sh");
    let path =
        format!("{}:{}", Path::new(PROGRAM).parent().expect("a directory").display(), std::env::var("PATH").unwrap());
    in_test(shell.args(["-c", command]).current_dir(scratch.dir()).env("PATH", path));
    shell.env("FILES", import_fixture("")).env("CPU", a_cpu().to_string()).env("LC_ALL", "C.UTF-8");
    let ProgramOutput { status, stdout, stderr } = ended(&mut shell);
    let mut lines = expected.lines();
    let schema = lines.next().and_then(|line| line.strip_prefix('{')?.strip_suffix('}'));
    let mut text = String::new();
    match (schema, serde_json::from_str::<Value>(&stdout)) {
        (Some(schema), Ok(document)) => {
            if !schema.is_empty() {
                assert_conforms(schema, &document);
            }
            writeln!(text, "{{{schema}}}").unwrap();
            for pointer in lines.filter_map(|line| line.strip_prefix('/')?.split_whitespace().next()) {
                write!(text, "/{pointer}").unwrap();
                for value in values(&document, pointer) {
                    write!(text, " {value}").unwrap();
                }
                text.push('\n');
            }
        }
        _ => text.push_str(&stdout),
    }
    let is_message = stdout.is_empty() && stderr.starts_with("punctual: ") && stderr.matches('\n').count() == 1;
    for line in stderr.lines() {
        assert!(line.chars().all(punctual_model::is_plain), "it acts upon a terminal: {line:?}");
        let (mark, line) = line.strip_prefix("punctual: ").map_or(('|', line), |line| ('!', line));
        writeln!(text, "{mark} {line}").unwrap();
    }
    if status != i32::from(is_message) {
        writeln!(text, "[{status}]").unwrap();
    }
    let lines = text.replace(&scratch.dir().display().to_string(), "DIR");
    lines.lines().map(str::trim_end).collect::<Vec<_>>().join("\n").trim_end().to_owned()
}

/// The values at a pointer, in which `*` is any index.
fn values<'a>(document: &'a Value, pointer: &str) -> Vec<&'a Value> {
    pointer.split('/').fold(vec![document], |values, word| {
        let below = |value: &'a Value| match (word, value.as_array()) {
            ("*", Some(items)) => items.iter().collect(),
            _ => value.pointer(&format!("/{word}")).into_iter().collect::<Vec<_>>(),
        };
        values.into_iter().flat_map(below).collect()
    })
}

/// Whether `text` is `pattern`, in which `...` is any text.
pub(crate) fn is_like(text: &str, pattern: &str) -> bool {
    let parts: Vec<&str> = pattern.split("...").collect();
    let [first, middle @ .., last] = &parts[..] else { return text == pattern };
    let Some(mut rest) = text.strip_prefix(first) else { return false };
    for part in middle {
        let Some((_, after)) = rest.split_once(part) else { return false };
        rest = after;
    }
    rest.ends_with(last)
}

#[test]
fn three_dots_are_any_text() {
    for (text, pattern, is_so) in [
        ("", "", true),
        ("a", "", false),
        ("", "...", true),
        ("a\nb", "...", true),
        ("ab", "a...b", true),
        ("a", "a...a", false),
        ("abcbd", "a...b...d", true),
        ("abd", "a...b...bd", false),
        ("abc", "a...b", false),
        ("xabc", "a...", false),
    ] {
        assert_eq!(is_like(text, pattern), is_so, "{text:?} {pattern:?}");
    }
}
