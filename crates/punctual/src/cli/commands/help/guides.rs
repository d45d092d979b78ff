//! The guides: the pages of docs/ that users read, compiled into the program.

/// Names of the guides, and their Markdown in the same order; none in a program for boards.
macro_rules! guides {
    ($($name:literal),* $(,)?) => {
        pub(super) const NAMES: &[&str] = &[$($name),*];
        #[cfg(feature = "guides")]
        const TEXTS: &[&str] = &[$(include_str!(concat!("../../../../../../docs/", $name, ".md"))),*];
        #[cfg(not(feature = "guides"))]
        const TEXTS: &[&str] = &[];
    };
}

guides![
    "boards", "boots", "ci", "compare", "containers", "cost", "cyclictest", "doctor", "engines", "explain", "findings",
    "formats", "frontier", "handoff", "history", "import", "instruments", "lab", "loads", "monitor", "noise",
    "packages", "plans", "prepare", "report", "response", "samples", "shards", "sleep", "statistics", "stick",
    "studies", "tune", "verify", "watch", "xenomai",
];

/// The Markdown of a guide; `None` for a name that no guide has. Errors: where this program was built without it.
pub(super) fn markdown(name: &str) -> Option<Result<&'static str, String>> {
    let place = NAMES.iter().position(|known| *known == name)?;
    let left_out = || punctual_model::left_out(&format!("guide {name}"), "guides");
    Some(TEXTS.get(place).copied().ok_or_else(left_out))
}

/// The title of a guide; empty where this program was built without it.
pub(super) fn title(name: &str) -> &'static str {
    let text = markdown(name).and_then(Result::ok).unwrap_or_default();
    text.lines().next().unwrap_or_default().trim_start_matches("# ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn every_page_of_docs_for_users_is_a_guide() {
        let pages = std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs")).unwrap();
        let pages = pages.map(|page| page.unwrap().file_name().into_string().unwrap());
        let mut pages: Vec<_> = pages.filter_map(|page| page.strip_suffix(".md").map(str::to_owned)).collect();
        // A list of the pages, and reasons for maintainers.
        pages.retain(|page| page != "README" && page != "decisions");
        pages.sort_unstable();
        assert_eq!(pages, NAMES, "add the new page to the list of guides.rs");
    }
}
