//! The execution of one late wake-up: text, and a timeline for Perfetto.

use punctual_model::{Cell, DelayKind, Film};
use serde_json::{Value, json};
use std::fmt::Write as _;

/// Limits of what such results mean, said before each.
pub const SEARCH_LIMITS: &str = "One CPU in virtual time: no lock held on another CPU, no IPI, no cache, no firmware; \
    instructions are not nanoseconds of a machine.";

/// Functions listed.
const LISTED: usize = 10;
/// What a film of a run shows: its cell, its block and its cycle.
pub fn film_title(cell: &Cell, block: u32, cycle: u64) -> String {
    format!("{}, {}, {}, block {block}, cycle {cycle}", cell.kernel, cell.load, cell.policy)
}

/// The kinds of a delay and its ten longest functions.
pub fn film_text(film: &Film) -> String {
    let all = film.instructions();
    let mut text = format!("{all} instructions from the due time to the wake-up, {} ns late\n", all);
    for (kind, instructions) in DelayKind::ALL.into_iter().zip(film.kinds).filter(|(_, n)| *n > 0) {
        let _ = writeln!(text, "  {instructions:>9}  {}", kind.name().replace('-', " "));
    }
    if film.path.len() > 1 {
        let _ = writeln!(text, "called by {}", film.path.join(" > "));
    }
    let _ = writeln!(text, "begins in {}; functions by their own instructions:", film.begins);
    for (function, instructions) in film.functions().into_iter().take(LISTED) {
        let share = instructions as f64 * 100.0 / all.max(1) as f64;
        let _ = writeln!(text, "  {instructions:>9}  {share:>3.0} %  {function}");
    }
    text
}

/// The film as a timeline in the "Trace Event Format" of Perfetto; an instruction is a nanosecond.
pub fn film_timeline(film: &Film, title: &str) -> Value {
    let us = |instructions: u64| instructions as f64 / 1000.0;
    let name =
        |what: &str, name: &str| json!({ "ph": "M", "name": what, "pid": 1, "tid": 1, "args": { "name": name } });
    let slices = film.frames().into_iter().map(|frame| {
        let length = us(frame.to - frame.from);
        json!({ "ph": "X", "name": frame.function, "pid": 1, "tid": 1, "ts": us(frame.from), "dur": length })
    });
    let heads = [name("process_name", title), name("thread_name", "instructions, 1 ns each")].into_iter();
    json!({ "displayTimeUnit": "ns", "traceEvents": heads.chain(slices).collect::<Vec<_>>(),
        "otherData": { "tool": punctual_model::TOOL, "limits": SEARCH_LIMITS } })
}

#[cfg(test)]
mod tests {
    use super::*;
    use punctual_model::Piece;

    #[test]
    fn a_film_has_the_same_instructions_in_each_form() {
        let piece =
            |function: &str, from, instructions, depth| Piece { function: function.into(), from, instructions, depth };
        let pieces = vec![
            piece("planted", 0, 37_000, 0),
            piece("asm_sysvec", 37_000, 900, 0),
            piece("__schedule", 37_900, 100, 1),
        ];
        let film = Film { pieces, kinds: [37_000, 100, 0, 900, 0], begins: "planted".to_owned(), path: Vec::new() };
        let text = film_text(&film);
        assert!(text.starts_with("38000 instructions from the due time"), "{text}");
        assert!(
            text.contains("\n      37000  interrupts off\n") && text.contains("\n      37000   97 %  planted\n"),
            "{text}"
        );
        let timeline = film_timeline(&film, "a <b>");
        let slices: Vec<_> =
            timeline["traceEvents"].as_array().unwrap().iter().filter(|event| event["ph"] == "X").collect();
        assert_eq!((slices.len(), &slices[0]["dur"], &slices[1]["ts"]), (3, &json!(37.0), &json!(37.0)));
    }
}
