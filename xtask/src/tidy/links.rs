//! Local links in Markdown must point to existing files.

use super::Violation;
use super::tree::{File, Tree};

/// Links to missing files of the repository.
pub(super) fn targets(tree: &Tree) -> Vec<Violation> {
    let mut found = Vec::new();
    for file in tree.files(".md") {
        for (line, target) in links(file) {
            if !resolve(&file.path, &target).is_some_and(|path| tree.has(&path)) {
                let what = format!("the link to `{target}` leads nowhere");
                found.push(Violation::new(&file.path, line, what, "correct it, or add the file"));
            }
        }
    }
    found
}

/// The targets of `[text](target)` and `[name]: target` that are paths, without their anchors.
fn links(file: &File) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut fenced = false;
    for (line, text) in file.lines() {
        if text.trim_start().starts_with("```") {
            fenced = !fenced;
        }
        if fenced {
            continue;
        }
        let prose: String = text.split('`').step_by(2).collect::<Vec<_>>().join("`");
        let inline = prose.split("](").skip(1).filter_map(|rest| rest.split(')').next());
        let reference = prose.starts_with('[').then(|| prose.split_once("]: ")).flatten().map(|(_, target)| target);
        for target in inline.chain(reference) {
            let target = target.trim().trim_start_matches('<').split([' ', '>', '#']).next().unwrap_or_default();
            if !target.is_empty() && !target.contains("://") && !target.starts_with("mailto:") {
                found.push((line, target.to_owned()));
            }
        }
    }
    found
}

/// The path relative to the root of `target` in the document `from`; `None` when it leaves the repository.
fn resolve(from: &str, target: &str) -> Option<String> {
    let mut parts: Vec<&str> = if target.starts_with('/') { Vec::new() } else { from.split('/').collect() };
    parts.pop();
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::super::lines;
    use super::*;

    #[test]
    fn links_lead_somewhere() {
        for (text, want) in [
            ("[a](b.md) and ![a](pictures/c.svg \"title\")\n", vec![]),
            ("[a](../README.md#part), [a](#here), [a](https://x.org/b), [a](mailto:a@b.c), [a](pictures/)\n", vec![]),
            ("[a](/docs/b.md) [a](..) [a](<b.md>)\n", vec![]),
            ("```text\n[a](c.md)\n```\nand `x[1](c.md)`\n", vec![]),
            ("[a](c.md)\n", vec!["docs/a.md:1: the link to `c.md` leads nowhere; correct it, or add the file"]),
            ("\n[a]: c.md\n", vec!["docs/a.md:2: the link to `c.md` leads nowhere; correct it, or add the file"]),
            ("[a](../../b)\n", vec!["docs/a.md:1: the link to `../../b` leads nowhere; correct it, or add the file"]),
        ] {
            let files = [("README.md", ""), ("docs/a.md", text), ("docs/b.md", ""), ("docs/pictures/c.svg", "")];
            assert_eq!(lines(targets, &files), want, "{text}");
        }
    }
}
