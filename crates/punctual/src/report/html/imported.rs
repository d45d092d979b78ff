//! Under which conditions imported measurements were made, as far as the files say it.

use super::markup::{Markup, Text};
use super::{Shown, shown};
use analysis::wording::duration;
use model::{Imported, Load};

const HEAD: [&str; 11] = [
    "file", "tool", "latency of", "policy", "period", "load", "measured", "values in", "began", "added by hand",
    "command",
];

/// A row for each measurement; nothing on a page without one.
pub(super) fn write(page: &mut Markup, runs: &[Shown<'_>]) {
    if shown::imports(runs).next().is_none() {
        return;
    }
    page.raw(
        "<section id=conditions class=later>\n<h2>Where it comes from</h2>\n<div class=scroll tabindex=0 role=region \
         aria-label=\"Files and conditions\"><table class=host><thead><tr>",
    );
    HEAD.iter().for_each(|head| page.add(format_args!("<th scope=col>{head}")));
    page.raw("</thead><tbody>\n");
    for (index, name, imported) in shown::imports(runs) {
        let name = super::letter(runs, index).map_or_else(|| name.to_owned(), |letter| format!("{letter} {name}"));
        page.add(format_args!("<tr><th scope=row>{}", Text(name)));
        row(imported).iter().for_each(|value| page.add(format_args!("<td>{}", Text(value))));
        page.raw("\n");
    }
    page.raw("</tbody></table></div>\n<p class=quiet>- is not known.</p>\n</section>\n");
}

fn row(imported: &Imported) -> [String; HEAD.len() - 1] {
    let Imported { conditions, source, .. } = imported;
    let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    let began = imported.started_unix_ms.map(|ms| humantime::format_rfc3339_seconds(super::unix(ms)).to_string());
    [
        source.version.as_ref().map_or_else(|| source.tool.clone(), |version| format!("{} {version}", source.tool)),
        conditions.what.clone(),
        or_dash(crate::report::imported::policy(conditions)),
        or_dash(conditions.period.map(|period| duration(period.ns() as f64))),
        or_dash(conditions.load.as_ref().map(Load::label)),
        or_dash(imported.measured.map(|measured| duration(measured.ns() as f64))),
        duration(imported.resolution.ns() as f64),
        or_dash(began),
        conditions.stated.join(", "),
        or_dash(source.command_line.clone()),
    ]
}
