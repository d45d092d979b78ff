//! What one pastes into an issue: verdict, table, findings and machine in GitHub-flavoured Markdown.

use super::page::Page;
use analysis::Verdict;
use std::fmt::Write;

/// The run in Markdown.
pub(crate) fn markdown(page: &Page<'_>) -> String {
    let mut text = format!("### {}\n\n", escaped(page.title));
    let _ = match page.verdict {
        Verdict::NoneAsked => writeln!(text, "{}", escaped(&page.answer)),
        verdict => {
            let said = verdict.to_string();
            let said = said.strip_prefix("Verdict: ").unwrap_or(&said);
            let word = ["NOT SHOWN", "PASS", "FAIL"].into_iter().find(|word| said.starts_with(word)).unwrap_or("");
            writeln!(text, "**{word}**{}", escaped(&said[word.len()..]))
        }
    };
    let (heads, rows) = &page.table;
    if !rows.is_empty() {
        table(&mut text, heads, rows);
        let _ = writeln!(text, "\n{}", page.legend);
    }
    if let Some(traced) = &page.traced {
        table(&mut text, &traced.heads, &traced.rows);
        let _ = writeln!(text, "\n{}", escaped(&traced.notes.join(" ")));
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

fn table(text: &mut String, heads: &[(&str, bool)], rows: &[Vec<String>]) {
    let line = |fields: Vec<String>| format!("| {} |\n", fields.join(" | "));
    text.push('\n');
    text.push_str(&line(heads.iter().map(|(head, _)| (*head).to_owned()).collect()));
    let ruler = heads.iter().map(|(_, is_text)| if *is_text { "---" } else { "--:" }.to_owned());
    text.push_str(&line(ruler.collect()));
    for row in rows {
        text.push_str(&line(row.iter().map(|field| escaped(field)).collect()));
    }
}

/// Text that means itself: what Markdown and HTML would read otherwise gets a backslash.
fn escaped(text: &str) -> String {
    let mut escaped = String::new();
    let mut before = ' ';
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        // An underscore within a word marks nothing (GitHub Flavored Markdown, 6.2).
        let is_within = before.is_alphanumeric() && rest.peek().is_some_and(|next| next.is_alphanumeric());
        match c {
            '_' if is_within => escaped.push(c),
            '<' if rest.peek().is_none_or(|next| !next.is_ascii_alphabetic() && !"/!?".contains(*next)) => {
                escaped.push(c)
            }
            '\\' | '`' | '*' | '_' | '|' | '<' | '~' => escaped.extend(['\\', c]),
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
    }
}
