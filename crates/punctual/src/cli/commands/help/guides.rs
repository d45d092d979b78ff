//! The guides: the pages of docs/ that users read, compiled into the program.

/// Name and Markdown of each guide in the program, and the names of all.
macro_rules! guides {
    (always: [$($kept:literal),* $(,)?], full: [$($name:literal),* $(,)?] $(,)?) => {
        const ALL: &[(&str, &str)] = &[
            $(($kept, include_str!(concat!("../../../../../../docs/", $kept, ".md"))),)*
            $(
                #[cfg(feature = "guides")]
                ($name, include_str!(concat!("../../../../../../docs/", $name, ".md"))),
            )*
        ];
        /// Names of all guides, those included that a program for boards leaves out.
        pub(super) const NAMES: &[&str] = &[$($kept,)* $($name,)*];
    };
}

guides![
    always: ["findings", "prepare", "statistics"],
    full: [
        "boards", "ci", "compare", "containers", "cost", "cyclictest", "doctor", "engines", "explain", "formats",
        "frontier", "history", "import", "instruments", "lab", "loads", "monitor", "packages", "plans",
        "report", "response", "samples", "shards", "sleep", "studies", "tune", "watch", "xenomai",
    ],
];

/// The Markdown of a guide; `None` for a name that no guide has. Errors: where this program was built without it.
pub(super) fn markdown(name: &str) -> Option<Result<&'static str, String>> {
    NAMES.contains(&name).then(|| {
        let kept = ALL.iter().find(|(known, _)| *known == name).map(|(_, text)| *text);
        kept.ok_or_else(|| punctual_model::left_out(&format!("guide {name}"), "guides"))
    })
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
        // A list of the pages, and reasons for those who change the program.
        pages.retain(|page| page != "README" && page != "decisions");
        pages.sort_unstable();
        let mut names = NAMES.to_vec();
        names.sort_unstable();
        assert_eq!(pages, names, "add the new page to the list of guides.rs");
    }
}
