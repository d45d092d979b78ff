//! Films of late wake-ups: callers above what they call, instructions from left to right.

use super::explained::{LEFT, WIDTH, axis, boxed};
use super::markup::{Markup, Text};
use super::{Results, pictures, runs};
use crate::film::{SEARCH_LIMITS, film_text, film_title};
use punctual_model::{Film, Frame, KeptFilm};

/// Height of a call, and of what is below the lowest.
const ROW: u32 = 40;
const BELOW: u32 = 64;
/// Shorter calls are left out, and rows without a longer one.
const NARROWEST: f64 = 1.0;
const SHOWN: f64 = 20.0;
/// Colors of functions.
const COLORS: u32 = 7;

/// Writes the films that are kept with the runs.
pub(super) fn write(page: &mut Markup, all: &[Results<'_>]) {
    for (index, run) in runs::own(all) {
        let films = &run.header.films;
        if films.is_empty() {
            continue;
        }
        page.section(&format!("films{index}"), "", "Films of late wake-ups", super::letter(all, index));
        page.add(format_args!("<p class=quiet>{SEARCH_LIMITS}</p>\n"));
        for KeptFilm { planned, cycle, film } in films {
            let Some(cell) = run.header.cells.get(planned.cell_index) else { continue };
            figure(page, film, &film_title(cell, planned.block, *cycle));
            page.folded("Its functions", |page| {
                page.add(format_args!("<pre tabindex=0>{}</pre>\n", Text(film_text(film))))
            });
        }
        page.raw("</section>\n");
    }
}

/// The film as a picture.
pub fn film_svg(film: &Film, title: &str) -> String {
    let mut page = Markup::default();
    figure(&mut page, film, title);
    pictures::of(&page.into_string()).pop().map(|picture| picture.svg).unwrap_or_default()
}

fn figure(page: &mut Markup, film: &Film, title: &str) {
    let all = film.instructions();
    let scale = WIDTH / all.max(1) as f64;
    let frames = film.frames();
    let top = frames.iter().map(|frame| frame.depth).min().unwrap_or(0);
    let row = |depth: usize| u32::try_from(depth - top).unwrap_or(u32::MAX);
    let width = |frame: &Frame<'_>| (frame.to - frame.from) as f64 * scale;
    let shown = frames.iter().filter(|frame| width(frame) >= SHOWN);
    let rows = shown.map(|frame| row(frame.depth) + 1).max().unwrap_or(0);
    page.add(format_args!(
        "<figure class=\"spike film\"><figcaption>{}: {all} instructions</figcaption>\
         <svg viewBox=\"0 0 1760 {}\" role=img aria-label=\"Functions over instructions\"><g transform=\"translate({LEFT})\">",
        Text(title),
        rows * ROW + BELOW
    ));
    for frame in frames {
        let (length, width) = (frame.to - frame.from, width(&frame));
        if width < NARROWEST || row(frame.depth) >= rows {
            continue;
        }
        let at = frame.from as f64 * scale;
        let class = format!("\"w{}\"", color(frame.function));
        let words = format!("{}: {length} instructions from {}", frame.function, frame.from);
        boxed(page, &class, (at, width), (row(frame.depth) * ROW, ROW - 4), frame.function, &words);
    }
    axis(page, all, scale, rows * ROW + 16);
    page.raw("</g></svg></figure>\n");
}

/// The color of a function, the same in each picture.
fn color(function: &str) -> u32 {
    function.bytes().fold(7_u32, |hash, byte| hash.wrapping_mul(31).wrapping_add(byte.into())) % COLORS
}

#[cfg(test)]
mod tests {
    use super::*;
    use punctual_model::Piece;

    #[test]
    fn each_long_call_is_a_box_below_its_caller() {
        let piece =
            |function: &str, from, instructions, depth| Piece { function: function.into(), from, instructions, depth };
        let pieces = vec![
            piece("f", 0, 9_000, 2),
            piece("<b>", 9_000, 990, 3),
            piece("g", 9_990, 1, 3),
            piece("f", 9_991, 9, 2),
        ];
        let film = Film { pieces, ..Film::default() };
        let svg = film_svg(&film, "a <b>");
        assert!(svg.starts_with("<svg xmlns") && svg.contains("a &lt;b&gt;: 10000 instructions"), "{svg}");
        // White, f, <b>; g is too short.
        assert_eq!(svg.matches("<rect").count(), 3, "{svg}");
        assert!(
            svg.contains("y=\"0\" width=\"1720.0\"") && svg.contains("x=\"1548.0\" y=\"40\" width=\"170.3\""),
            "{svg}"
        );
    }
}
