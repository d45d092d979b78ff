//! What was asked, and how to ask it again.

use super::markup::{Markup, Text};
use super::{Shown, shown};

pub(super) fn write(page: &mut Markup, runs: &[Shown<'_>]) {
    for (index, run) in shown::ours(runs) {
        let letter = super::letter(runs, index);
        let heading = letter.map(|letter| format!(" <b class=run>{letter}</b>")).unwrap_or_default();
        let file = letter
            .map_or_else(|| "plan.toml".to_owned(), |letter| format!("plan-{}.toml", letter.to_ascii_lowercase()));
        let header = run.header;
        let samples = if header.samples { " --samples" } else { "" };
        page.add(format_args!(
            "<section class=later>\n<h2>Again{heading}</h2>\n<p>Save the plan as <code>{file}</code>, then:</p>\n\
             <pre tabindex=0><code>punctual run {file} --seed {}{samples}</code></pre>\n\
             <p class=quiet>The seed gives the cells the same order in every block. Leave it out for another order, which is the \
             better second experiment.</p>\n",
            header.seed
        ));
        if !header.skipped.is_empty() {
            page.add(format_args!(
                "<p>{} combinations of the plan could not be measured here; see what stands out.</p>\n",
                header.skipped.len()
            ));
        }
        page.add(format_args!("<pre tabindex=0><code>{}</code></pre>\n", Text(header.plan.to_toml())));
        page.raw("</section>\n");
    }
}
