//! A report for issue trackers: verdict, table, findings and machine in GitHub-flavored Markdown.

use super::super::table::Table;
use super::page::Page;
use punctual_analysis::Verdict;
use std::fmt::Write;

/// The run in Markdown.
pub fn markdown(page: &Page<'_>) -> String {
    let mut text = format!("### {}\n\n", escaped(page.title));
    let _ = match page.verdict {
        Verdict::NoneAsked => writeln!(text, "{}", escaped(&page.answer.to_string())),
        verdict => {
            let (word, sentence) = (verdict.word(), verdict.sentence());
            writeln!(text, "**{word}**{}", escaped(sentence.strip_prefix(word).unwrap_or(&sentence)))
        }
    };
    if !page.table.rows.is_empty() {
        table(&mut text, &page.table);
        let _ = writeln!(text, "\n{}", page.legend);
    }
    for section in page.threads.iter().chain(&page.traced) {
        section.table.iter().for_each(|seen| table(&mut text, seen));
        let _ = writeln!(text, "\n{}", escaped(&section.notes.join(" ")));
    }
    if !page.sentences.is_empty() {
        text.push_str("\n**What stands out**\n\n");
        page.sentences.iter().for_each(|sentence| {
            let _ = writeln!(text, "- {}", escaped(sentence));
        });
    }
    let _ = writeln!(text, "\n{}", escaped(&page.about));
    text
}

fn table(text: &mut String, Table { columns, rows, .. }: &Table) {
    let line = |fields: Vec<String>| format!("| {} |\n", fields.join(" | "));
    text.push('\n');
    text.push_str(&line(columns.iter().map(|column| column.head.to_string()).collect()));
    let ruler = columns.iter().map(|column| if column.is_text { "---" } else { "--:" }.to_owned());
    text.push_str(&line(ruler.collect()));
    for row in rows {
        text.push_str(&line(row.iter().map(|field| escaped(field)).collect()));
    }
}

/// Literal text: characters with a meaning in Markdown or HTML get a backslash.
fn escaped(text: &str) -> String {
    let mut escaped = String::new();
    let mut before = ' ';
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        // An underscore within a word has no meaning (GitHub Flavored Markdown, 6.2).
        let is_within = before.is_alphanumeric() && rest.peek().is_some_and(|next| next.is_alphanumeric());
        match c {
            '_' if is_within => escaped.push(c),
            '<' if rest.peek().is_none_or(|next| !next.is_ascii_alphabetic() && !"/!?".contains(*next)) => {
                escaped.push(c)
            }
            '\\' | '`' | '*' | '_' | '|' | '<' | '~' => escaped.extend(['\\', c]),
            // The middle of a link, an image or a link definition.
            ']' if rest.peek().is_some_and(|next| "([:".contains(*next)) => escaped.push_str("\\]"),
            // An entity.
            '&' if rest.peek().is_some_and(|next| next.is_ascii_alphabetic() || *next == '#') => {
                escaped.push_str("\\&")
            }
            c if c.is_control() => escaped.push(' '),
            c => escaped.push(c),
        }
        before = c;
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_means_itself() {
        assert_eq!(
            escaped("clock_nanosleep <b> a|b _c_\n*x* 1 <= 2"),
            "clock_nanosleep \\<b> a\\|b \\_c\\_ \\*x\\* 1 <= 2"
        );
        // Links and images are disarmed.
        assert_eq!(
            escaped("[x](javascript:alert(1)) ![](http://a/b.png) [x][y] [y]: http://a [22-72] &lt;"),
            "[x\\](javascript:alert(1)) ![\\](http://a/b.png) [x\\][y] [y\\]: http://a [22-72] \\&lt;"
        );
    }
}
