//! Cells of a run named on the command line: by the printed name, by a part of it, or by values of axes.

use punctual_analysis::comparison;
use punctual_model::Selector;
use punctual_store::Run;
use std::error::Error;

/// Separator of the parts of a printed name, like `messaging/fifo:80/1ms`.
const SEPARATOR: char = '/';

/// A cell of a run, as the command line named it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct NamedCell {
    /// Index among the cells of the run.
    pub(super) index: usize,
    /// Axes that the command line restricts for this cell.
    pub(super) selector: Selector,
}

/// The cell of `run` that `word` names: a selector like `load=messaging,policy=fifo:80`, a printed name, or a part of a
/// printed name that no other cell has. Errors: if no cell, or more than one, matches.
pub(super) fn named(run: &Run, word: &str) -> Result<NamedCell, Box<dyn Error>> {
    let cells = run.header.first_cells();
    let all_names = punctual_analysis::cell_names(&run.header.cells);
    let name = |cell: usize| all_names.get(cell).map_or("", String::as_str);
    let names: Vec<&str> = cells.iter().map(|cell| name(*cell)).collect();
    // The name of a load may have an equals sign, too.
    if word.contains('=') && !names.contains(&word) && !has_part(&names, word) {
        let selector: Selector = word.parse()?;
        let index = selected(run, &selector)?;
        return Ok(NamedCell { index, selector });
    }
    let index = *cells.get(position(&names, word)?).ok_or("the cell is not in the run")?;
    let selector = run.header.cells.get(index).map(Selector::from).unwrap_or_default();
    Ok(NamedCell { index, selector })
}

/// The only cell that has all values of `selector`. Errors: if no cell, or more than one, matches.
pub(super) fn selected(run: &Run, selector: &Selector) -> Result<usize, String> {
    let all = run.header.first_cells();
    let matches = |cell: &usize| run.header.cells.get(*cell).is_some_and(|cell| selector.matches(cell));
    let matching: Vec<usize> = all.iter().copied().filter(matches).collect();
    match matching[..] {
        [one] => Ok(one),
        [] => Err(format!("no cell matches; the run has {}", list(run, &all))),
        _ => Err(format!("several cells match: {}; give more axes", list(run, &matching))),
    }
}

/// Two cells of one run: those that are named, or the only two; an only cell that was measured twice, with itself.
/// Errors: if the words do not name two cells.
pub(super) fn pair(run: &Run, words: &[String]) -> Result<(usize, usize), Box<dyn Error>> {
    let (a, b) = match (words, comparison::only_pair(&run.header)) {
        ([], Some(pair)) => pair,
        ([a, b], _) => (named(run, a)?.index, named(run, b)?.index),
        ([one], _) => {
            let name = list(run, &[named(run, one)?.index]);
            return Err(format!("name a second cell beside {name}: {}", list(run, &run.header.first_cells())).into());
        }
        _ => return Err(format!("name two cells of {}", list(run, &run.header.first_cells())).into()),
    };
    if a == b { Err(format!("both are the cell {}; name two cells", list(run, &[a])).into()) } else { Ok((a, b)) }
}

fn list(run: &Run, cells: &[usize]) -> String {
    let all = punctual_analysis::cell_names(&run.header.cells);
    cells.iter().filter_map(|cell| all.get(*cell).cloned()).collect::<Vec<_>>().join(", ")
}

fn has_part(names: &[&str], word: &str) -> bool {
    names.iter().any(|name| name.split(SEPARATOR).any(|part| part == word))
}

/// Index of the only name that `word` means: the name itself, some of its parts in their order, or beginnings of them.
/// Errors: if no name, or more than one, matches.
pub(super) fn position(names: &[&str], word: &str) -> Result<usize, String> {
    if let Some(exact) = names.iter().position(|name| *name == word) {
        return Ok(exact);
    }
    let matching = |is: fn(&str, &str) -> bool| -> Vec<usize> {
        (0..names.len()).filter(|index| has_parts(names[*index], word, is)).collect()
    };
    let equal = matching(|part, typed| part.eq_ignore_ascii_case(typed));
    let begin = |part: &str, typed: &str| part.get(..typed.len()).is_some_and(|part| part.eq_ignore_ascii_case(typed));
    let found = if equal.is_empty() { matching(begin) } else { equal };
    let some = |indices: &[usize]| indices.iter().map(|index| names[*index]).collect::<Vec<_>>().join(", ");
    match found[..] {
        [one] => Ok(one),
        [] => Err(format!("no cell matches `{word}`; the run has {}", names.join(", "))),
        _ => Err(format!("several cells match `{word}`: {}; name more of it", some(&found))),
    }
}

/// Whether the parts of `word` are parts of `name`, in this order.
fn has_parts(name: &str, word: &str, is: fn(&str, &str) -> bool) -> bool {
    let mut parts = name.split(SEPARATOR);
    !word.is_empty() && word.split(SEPARATOR).all(|typed| parts.any(|part| is(part, typed)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_names_a_cell_if_no_other_has_it() {
        let names = ["none/other/1ms", "none/fifo:80/1ms", "messaging/other/1ms", "messaging/fifo:80/1ms"];
        for (word, index) in
            [("messaging/other/1ms", 2), ("none/other", 0), ("messaging/FIFO:80", 3), ("mess/fifo", 3), ("none/f", 1)]
        {
            assert_eq!(position(&names, word), Ok(index), "{word}");
        }
        for (word, message) in [
            ("other", "several cells match `other`: none/other/1ms, messaging/other/1ms; name more of it"),
            ("1ms/other", "no cell matches `1ms/other`; the run has none/other/1ms, "),
            ("", "no cell matches ``; the run has "),
            ("rr:1", "no cell matches `rr:1`; the run has "),
        ] {
            assert!(position(&names, word).unwrap_err().starts_with(message), "{word}");
        }
        assert_eq!(position(&["other", "fifo:80"], "fifo"), Ok(1));
        assert_eq!(position(&["fifo:8", "fifo:80"], "fifo:8"), Ok(0), "a whole part goes before a beginning");
        assert_eq!(position(&["cpu:50", "\u{e9}t\u{e9}"], "\u{e9}"), Ok(1), "cut at characters only");
    }
}
