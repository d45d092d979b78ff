//! Differences between the runs of a page: conditions and facts, and those that prevent a comparison.

use super::markup::{Markup, Prose};
use super::{OwnRun, Results, runs};
use punctual_analysis::comparability::{self, Role};

/// The most differences listed for a pair of runs; the table of the machine has all facts.
const LISTED: usize = 8;

/// Writes the differences of each further run from the first; nothing where there is one run, or all are alike.
pub(super) fn write(page: &mut Markup, runs: &[Results<'_>]) {
    let ours: Vec<_> = runs::own(runs).collect();
    let Some((first, others)) = ours.split_first() else { return };
    let sentences: Vec<(bool, String)> = others.iter().flat_map(|run| pair(*first, *run, runs)).collect();
    if sentences.is_empty() {
        return;
    }
    page.section("joined", "", "Differences between the runs", None);
    page.raw("<ul class=findings>\n");
    for (prevents, sentence) in sentences {
        let strong = if prevents { "<strong>Not comparable.</strong> " } else { "" };
        page.add(format_args!("<li>{strong}{}\n", Prose(sentence)));
    }
    page.raw("</ul>\n</section>\n");
}

/// Returns the differences of two runs in sentences, each with whether it prevents a comparison; those that do come
/// first.
fn pair((a, first): (usize, &OwnRun<'_>), (b, run): (usize, &OwnRun<'_>), runs: &[Results<'_>]) -> Vec<(bool, String)> {
    let letters = [a, b].map(|index| super::letter(runs, index).unwrap_or('?'));
    let differences = comparability::of_runs(first.header, run.header);
    let of_role = |role| differences.iter().filter(move |one| one.role == role).map(ToString::to_string);
    let sentence = |all: Vec<String>| {
        let more = match all.len().saturating_sub(LISTED) {
            0 => String::new(),
            more => format!(", and {more} more"),
        };
        let listed = all.iter().take(LISTED).map(String::as_str).collect::<Vec<_>>().join(", ");
        format!("{} and {} differ in {listed}{more}.", letters[0], letters[1])
    };
    let both = [(true, of_role(Role::Prevents).collect()), (false, of_role(Role::Beside).collect::<Vec<_>>())];
    both.into_iter().filter(|(_, all)| !all.is_empty()).map(|(prevents, all)| (prevents, sentence(all))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use punctual_analysis::testing::RunBuilder;
    use punctual_analysis::{RunSummary, summarise};

    fn page(runs: &[RunBuilder]) -> String {
        let summaries: Vec<RunSummary> = runs.iter().map(|run| summarise(&run.header, &run.entries)).collect();
        let shown = runs.iter().zip(&summaries).map(|(run, summary)| {
            Results::Own(OwnRun { name: "runs/<x>", header: &run.header, entries: &run.entries, summary })
        });
        let mut page = Markup::default();
        write(&mut page, &shown.collect::<Vec<_>>());
        page.into_string()
    }

    #[test]
    fn only_runs_that_differ_have_a_section() {
        let mut run = RunBuilder::new();
        run.cell("none", "other");
        let (mut slow, mut patched) = (run.clone(), run.clone());
        slow.header.cells[0].period = "2ms".parse().unwrap();
        slow.header.host.kernel_release = Some("6.12 <rt>".to_owned());
        patched.header.host.kernel_release = Some("6.13".to_owned());
        assert_eq!((page(&[]), page(&[run.clone()]), page(&[run.clone(), run.clone()])), Default::default());
        assert_eq!(
            page(&[run, slow, patched]),
            "<section id=joined>\n<h2>Differences between the runs \
             <a class=here href=#joined aria-label=\"Link to Differences between the runs\">#</a></h2>\n<ul class=findings>\n\
             <li><strong>Not comparable.</strong> A and B differ in period (1ms and 2ms).\n\
             <li>A and B differ in deadline (1ms and 2ms), kernel (6.1.0-21-rt-arm64 and 6.12 &lt;rt&gt;).\n\
             <li>A and C differ in kernel (6.1.0-21-rt-arm64 and 6.13).\n</ul>\n</section>\n"
        );
    }
}
