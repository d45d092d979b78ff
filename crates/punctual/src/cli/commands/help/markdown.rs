//! The Markdown of the guides as plain text for a terminal.

use super::guides;
use crate::cli::arguments::{COLUMNS, wrapped};

/// Indent of quoted output and code.
const CODE: &str = "    ";

/// Renders the Markdown that the pages of docs/ use: headings, paragraphs, lists, tables, code, links.
pub(super) fn plain(markdown: &str) -> String {
    let mut text = String::new();
    let mut paragraph = String::new();
    let (mut is_code, mut columns) = (false, Vec::new());
    for line in markdown.lines() {
        let trimmed = line.trim_start();
        if trimmed.starts_with("```") {
            end(&mut paragraph, &mut text);
            is_code = !is_code;
        } else if is_code {
            text += format!("{CODE}{line}").trim_end();
            text.push('\n');
        } else if let Some(row) = trimmed.strip_prefix('|') {
            end(&mut paragraph, &mut text);
            let cells: Vec<_> = cells(row).iter().map(|cell| inline(cell)).collect();
            match () {
                () if columns.is_empty() => columns = cells,
                () if cells.iter().all(|cell| cell.chars().all(|c| "-: ".contains(c))) => {}
                () => text += &row_of(&columns, &cells),
            }
            continue;
        } else if let Some(heading) = trimmed.strip_prefix('#') {
            end(&mut paragraph, &mut text);
            text += &format!("{}\n", inline(heading.trim_start_matches('#').trim()).to_uppercase());
        } else if trimmed.is_empty() {
            end(&mut paragraph, &mut text);
            text.push('\n');
        } else if trimmed.starts_with("![") || trimmed.starts_with("<!--") {
            // A picture.
        } else {
            let is_item = ["* ", "- "].iter().any(|mark| trimmed.starts_with(mark))
                || trimmed.split_once(". ").is_some_and(|(n, _)| n.parse::<u32>().is_ok());
            if is_item {
                end(&mut paragraph, &mut text);
                // Two blanks after the mark: `wrapped` indents what follows to there.
                let (mark, rest) = trimmed.split_once(' ').unwrap_or((trimmed, ""));
                paragraph = format!("{}  {mark}  {rest}", &line[..line.len() - trimmed.len()]);
            } else {
                let gap = if paragraph.is_empty() { "" } else { " " };
                paragraph += gap;
                paragraph += trimmed;
            }
        }
        columns.clear();
    }
    end(&mut paragraph, &mut text);
    while text.contains("\n\n\n") {
        text = text.replace("\n\n\n", "\n\n");
    }
    text
}

/// Ends a paragraph or an item of a list.
fn end(paragraph: &mut String, text: &mut String) {
    if !paragraph.is_empty() {
        *text += &wrapped(&inline(&std::mem::take(paragraph)));
    }
}

/// The cells of a row after its first `|`.
fn cells(row: &str) -> Vec<String> {
    let row = row.trim_end().trim_end_matches('|').replace("\\|", "\u{1}");
    row.split('|').map(|cell| cell.trim().replace('\u{1}', "|")).collect()
}

/// A row of a table: its first cell, and below it the others with the heads of their columns.
fn row_of(columns: &[String], cells: &[String]) -> String {
    let (first, others) = cells.split_first().map_or(("", cells), |(first, others)| (first.as_str(), others));
    let others: Vec<_> = columns.iter().skip(1).zip(others).filter(|(_, cell)| !cell.is_empty()).collect();
    let short = format!("  {first}  ");
    match &others[..] {
        [(_, only)] if columns.len() == 2 && short.chars().count() <= COLUMNS / 3 => {
            wrapped(&format!("  {first:22}  {only}"))
        }
        others => {
            let line = |(head, cell): &(&String, &String)| {
                wrapped(&if head.is_empty() { format!("      {cell}") } else { format!("      {head}:  {cell}") })
            };
            wrapped(&format!("  {first}")) + &others.iter().map(line).collect::<String>()
        }
    }
}

/// Text within a line: without marks of emphasis, links with the name of the guide or the address they lead to.
fn inline(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(['`', '[', '*']) {
        let (before, from) = rest.split_at(at);
        plain += before;
        let code = from.strip_prefix('`').and_then(|from| from.split_once('`'));
        let link = from.strip_prefix('[').and_then(|from| from.split_once("](")).and_then(|(name, from)| {
            let is_link = !name.contains('[');
            from.split_once(')').filter(|_| is_link).map(|(target, after)| (name, target, after))
        });
        rest = if let Some((code, after)) = code {
            plain += &format!("`{code}`");
            after
        } else if let Some((name, target, after)) = link {
            plain += &linked(&inline(name), target);
            after
        } else if let Some(after) = from.strip_prefix("**") {
            after
        } else {
            plain += &from[..1];
            &from[1..]
        };
    }
    plain + rest
}

/// A link: the command that shows the guide, or the address.
fn linked(name: &str, target: &str) -> String {
    let guide = target.split('#').next().unwrap_or_default().trim_end_matches(".md");
    match () {
        () if guides::NAMES.contains(&guide) && name == format!("{guide}.md") => {
            format!("`punctual help guide {guide}`")
        }
        () if guides::NAMES.contains(&guide) => format!("{name} (guide {guide})"),
        () if target.contains("://") => format!("{name} <{target}>"),
        () => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    #[test]
    fn marks_become_layout() {
        let page = "# Tails **of** x\n\nOne [statistic](statistics.md#p99) and\n[findings.md](findings.md), \
                    [other](../README.md), [site](https://x.example), `a*b [c](d)`.\n\n* one\n  more\n- two\n1. three\n\n\
                    | key | values | default |\n| --- | --- | --- |\n| `a` | x \\| y | |\n| `b` | z | 1 |\n\n\
                    ```sh\n$ punctual  run # a\n```\n\n| a | b |\n| --- | --- |\n| `c` | d |\n";
        expect![[r#"
            TAILS OF X

            One statistic (guide statistics) and `punctual help guide findings`, other, site
            <https://x.example>, `a*b [c](d)`.

              *  one more
              -  two
              1.  three

              `a`
                  values:  x | y
              `b`
                  values:  z
                  default:  1

                $ punctual  run # a

              `c`                     d
        "#]]
        .assert_eq(&plain(page));
    }

    #[test]
    fn no_guide_points_to_a_file_that_is_not_installed() {
        for name in guides::NAMES {
            let text = plain(guides::markdown(name).unwrap().unwrap());
            let pointers: Vec<_> =
                text.lines().filter(|line| line.contains("docs/") || line.contains(".md)")).collect();
            assert!(pointers.is_empty(), "{name}: {pointers:#?}");
        }
    }
}
