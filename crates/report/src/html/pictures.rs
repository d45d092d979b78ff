//! The pictures of a page as SVG files, one a plot: each with its title, its key and the light colors, for a paper.
//!
//! They are cut out of the page, so there is one drawing code. Variables of the style become colors and attributes get
//! quotes: programs that convert SVG know neither.

use std::fmt::Write;

/// A picture as a file.
#[derive(Debug, PartialEq, Eq)]
pub struct Picture {
    /// Its name, without directory and suffix: `1-percentiles`.
    pub name: String,
    /// The file.
    pub svg: String,
}

/// Height above a picture, for its title, and of a line of its key; width of the mark before a name.
const ABOVE: u32 = 90;
const LINE: u32 = 64;
const MARK: u32 = 128;

/// Style of the title and of the key.
const LETTERS: &str = "svg > .heading, svg > .key { font-size: 40px; text-anchor: start; fill: var(--ink); }\
                       svg > .heading { font-weight: 600; } .spike > .heading, .spike > .key { font-size: 30px; }";

/// Returns the pictures of a page, in its order.
pub(super) fn of(page: &str) -> Vec<Picture> {
    let style = light();
    let mut before = "";
    let mut pictures = Vec::new();
    for part in page.split_inclusive("</figure>") {
        let (text, figure) = part.rsplit_once("<figure").unwrap_or((part, ""));
        if let Some((_, key)) = text.rsplit_once("<ul class=key>") {
            before = key;
        }
        let Some((class, rest)) = figure.split_once("><figcaption>") else { continue };
        let Some((title, rest)) = rest.split_once("</figcaption>") else { continue };
        let Some((drawing, rest)) = balanced(rest) else { continue };
        let key = match rest.split_once("<ul class=key>") {
            Some((_, key)) => key,
            None if drawing.starts_with("<svg class=plot") => before,
            None => "",
        };
        let defs = page.split_once("<defs>").map_or("", |(_, defs)| defs);
        let name = format!("{}-{}", pictures.len() + 1, slug(title));
        let class = class.trim().trim_start_matches("class=").trim_matches('"');
        pictures.extend(standalone(title, class, drawing, key, defs, &style).map(|svg| Picture { name, svg }));
    }
    pictures
}

/// Returns a picture with all that it refers to.
fn standalone(title: &str, class: &str, drawing: &str, key: &str, defs: &str, style: &str) -> Option<String> {
    let (head, body) = drawing.split_once('>')?;
    let mut size = head.split_once("viewBox=\"0 0 ")?.1.split_once('"')?.0.split(' ');
    let (width, height) = (size.next()?.parse::<u32>().ok()?, size.next()?.parse::<u32>().ok()?);
    let items = key.split_once("</ul>").map_or("", |(items, _)| items).split("<li>").skip(1);
    let mut below = String::new();
    let mut y = height;
    for item in items {
        y += LINE;
        let (mark, name) = balanced(item).unwrap_or(("", item));
        if let Some((_, mark)) = mark.split_once(' ') {
            let _ = write!(below, "<svg x=60 y={} width={MARK} height=40 {mark}", y - 36);
        }
        let _ = write!(below, "<text class=key x={} y={y}>{}</text>", 60 + MARK + 20, without_tags(name));
    }
    let referred = drawing.split("<use href=#").nth(1).and_then(|rest| rest.split([' ', '>']).next());
    let axes = referred.and_then(|id| defs.split_once(&format!("<g id={id}>")));
    let axes =
        axes.map(|(_, group)| group.split("<g id=").next().unwrap_or(group).split("</defs>").next().unwrap_or(group));
    // The group's own end is the last of the text.
    let axes = axes.map(|group| format!("<g>{group}")).unwrap_or_default();
    let used = referred.map(|id| format!("<use href=#{id} />")).unwrap_or_default();
    let all = ABOVE + y + LINE;
    let text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"{class}\" width={} height={} viewBox=\"0 -{ABOVE} {width} {all}\">\n\
         <style>{style}</style>\n<rect y=-{ABOVE} width={width} height={all} fill=white />\n\
         <text class=heading x=0 y=-36>{title}</text>\n{head} width={width} height={height} overflow=visible>{axes}{}\n{below}</svg>\n",
        width / 2,
        all / 2,
        body.replace(&used, "")
    );
    Some(quoted(&text))
}

/// Returns the first SVG element of a text, with those within it, and the text after it.
fn balanced(text: &str) -> Option<(&str, &str)> {
    let start = text.find("<svg")?;
    let (mut depth, mut at) = (0_u32, start);
    loop {
        let (open, close) = (text.get(at..)?.find("<svg"), text.get(at..)?.find("</svg>")?);
        match open.filter(|open| *open < close) {
            Some(open) => (depth, at) = (depth + 1, at + open + 4),
            None => (depth, at) = (depth - 1, at + close + 6),
        }
        if depth == 0 {
            return Some((text.get(start..at)?, text.get(at..)?));
        }
    }
}

fn without_tags(markup: &str) -> String {
    markup
        .split('<')
        .map(|part| part.split_once('>').map_or(part, |(_, text)| text))
        .collect::<String>()
        .trim()
        .to_owned()
}

/// Returns a title as the name of a file.
fn slug(title: &str) -> String {
    let words = title.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    words.take(6).collect::<Vec<_>>().join("-").to_ascii_lowercase()
}

/// Returns markup with quotes around all values of attributes, as XML needs them.
fn quoted(markup: &str) -> String {
    let mut text = String::with_capacity(markup.len() + markup.len() / 8);
    let (mut in_tag, mut in_quotes, mut in_value) = (false, false, false);
    let mut previous = ' ';
    for c in markup.chars() {
        let ends = in_value && !in_quotes && (c.is_whitespace() || c == '>');
        if ends || in_tag && previous == '=' && !in_quotes && c != '"' {
            text.push('"');
            in_value = !ends;
        }
        match c {
            '<' => in_tag = true,
            '>' if !in_quotes => in_tag = false,
            '"' if in_tag => in_quotes = !in_quotes,
            _ => {}
        }
        text.push(c);
        previous = c;
    }
    text
}

/// Returns the rules of the page's style for pictures, with the light colors in place of variables.
fn light() -> String {
    let css = include_str!("style.css");
    let (_, root) = css.split_once(":root {").unwrap_or_default();
    let (root, _) = root.split_once('}').unwrap_or_default();
    let variables: Vec<(&str, &str)> = root
        .split(';')
        .filter_map(|one| one.trim().strip_prefix("--")?.split_once(':'))
        .map(|(name, value)| (name, value.trim()))
        .collect();
    let draws = |rule: &&str| ["fill", "stroke", "text-anchor", "text {"].iter().any(|word| rule.contains(word));
    // Rules of narrow windows and of paper follow.
    let screen = css.split_once("* { box-sizing").map_or("", |(_, rules)| rules);
    let screen = screen.split("@media (max-width: 900px)").next().unwrap_or_default();
    let rules = screen.split_inclusive('}').map(str::trim).filter(|rule| !rule.starts_with('@')).filter(draws);
    let mut rules = rules.collect::<String>() + LETTERS;
    for (name, value) in variables {
        rules = rules.replace(&format!("var(--{name})"), value);
    }
    rules
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_becomes_xml() {
        for (markup, xml) in [
            ("<path class=s1 d=M1,2h3 />", "<path class=\"s1\" d=\"M1,2h3\" />"),
            ("<g class=\"a b\"><text x=1>a=b</text></g>", "<g class=\"a b\"><text x=\"1\">a=b</text></g>"),
            ("<a title=\"x=1 > y\" y=2>", "<a title=\"x=1 > y\" y=\"2\">"),
        ] {
            assert_eq!(quoted(markup), xml);
        }
        assert_eq!(balanced("a<svg x><svg></svg></svg>b"), Some(("<svg x><svg></svg></svg>", "b")));
        assert_eq!((balanced("<svg>"), balanced("")), (None, None));
        assert_eq!(without_tags("<a href=#c1>none/fifo:80</a>\n"), "none/fifo:80");
        assert_eq!(slug("Share of wake-ups later than a latency (CCDF)"), "share-of-wake-ups-later-than");
        assert!(!light().contains("var(") && !light().contains("@media"));
    }
}
