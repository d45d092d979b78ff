//! Form of CHANGELOG.md: <https://keepachangelog.com>.

use super::Violation;
use super::tree::Tree;

const PATH: &str = "CHANGELOG.md";
const KINDS: [&str; 6] = ["Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"];

/// Title, then `[Unreleased]`, then versions from the newest to the oldest, each change under one of six headings.
pub(super) fn form(tree: &Tree) -> Vec<Violation> {
    let Some(file) = tree.file(PATH) else {
        return vec![Violation::new(PATH, 1, "is missing", "start it with `# Changelog` and `## [Unreleased]`")];
    };
    let mut found = Vec::new();
    let mut add = |line, what: String, remedy: &str| found.push(Violation::new(PATH, line, what, remedy));
    if file.text.lines().next() != Some("# Changelog") {
        add(1, "the title is not `# Changelog`".to_owned(), "write it as the first line");
    }
    let mut last: Option<[u32; 3]> = None;
    let mut n_sections = 0;
    for (line, text) in file.lines() {
        if let Some(kind) = text.strip_prefix("### ") {
            if !KINDS.contains(&kind) {
                add(
                    line,
                    format!("unknown heading `{kind}`"),
                    "use Added, Changed, Deprecated, Removed, Fixed or Security",
                );
            }
        } else if let Some(heading) = text.strip_prefix("## ") {
            n_sections += 1;
            match version(heading) {
                _ if heading == "[Unreleased]" && n_sections == 1 => {}
                None => add(line, format!("invalid version heading `{heading}`"), "write `## [1.2.3] - 2026-01-31`"),
                Some(version) if last.is_some_and(|last| version >= last) => {
                    add(line, format!("`{heading}` is out of order"), "put the newest version first");
                }
                Some(version) => last = Some(version),
            }
        }
    }
    if n_sections == 0 {
        add(1, "no section".to_owned(), "add `## [Unreleased]`");
    }
    found
}

/// The numbers of `[1.2.3] - 2026-01-31`.
fn version(heading: &str) -> Option<[u32; 3]> {
    let (version, date) = heading.strip_prefix('[')?.split_once("] - ")?;
    let is_date = numbers::<3>(date, '-')? != [0; 3] && date.len() == 10;
    is_date.then(|| numbers(version, '.'))?
}

fn numbers<const N: usize>(text: &str, between: char) -> Option<[u32; N]> {
    let parts: Option<Vec<u32>> = text.split(between).map(|part| part.parse().ok()).collect();
    parts?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::super::lines;
    use super::*;

    #[test]
    fn the_form_is_kept() {
        for (text, want) in [
            ("# Changelog\n\n## [Unreleased]\n\n### Added\n- x\n", vec![]),
            ("# Changelog\n## [1.0.0] - 2026-01-31\n## [0.9.10] - 2026-01-30\n## [0.9.9] - 2025-01-30\n", vec![]),
            ("# Changelog\n", vec!["CHANGELOG.md:1: no section; add `## [Unreleased]`"]),
            (
                "# Changes\n## [Unreleased]\n",
                vec!["CHANGELOG.md:1: the title is not `# Changelog`; write it as the first line"],
            ),
            (
                "# Changelog\n## [0.1.0] - 2026-01-30\n## [0.2.0] - 2026-01-31\n",
                vec!["CHANGELOG.md:3: `[0.2.0] - 2026-01-31` is out of order; put the newest version first"],
            ),
            (
                "# Changelog\n## 0.1.0\n### New\n",
                vec![
                    "CHANGELOG.md:2: invalid version heading `0.1.0`; write `## [1.2.3] - 2026-01-31`",
                    "CHANGELOG.md:3: unknown heading `New`; use Added, Changed, Deprecated, Removed, Fixed or Security",
                ],
            ),
            (
                "# Changelog\n## [0.1.0] - 2026-1-30\n",
                vec!["CHANGELOG.md:2: invalid version heading `[0.1.0] - 2026-1-30`; write `## [1.2.3] - 2026-01-31`"],
            ),
        ] {
            assert_eq!(lines(form, &[("CHANGELOG.md", text)]), want, "{text}");
        }
        assert_eq!(lines(form, &[]).len(), 1);
    }
}
