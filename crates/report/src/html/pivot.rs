//! Pivot of two axes as a heat map: the maximum and the p99.9 of each pair.

use super::columns::{self, Column, REPEAT};
use super::markup::{Markup, Name, Text};
use super::matrix::{Heat, max, quantile};
use super::table::framed;
use crate::cells::Member;
use crate::sections::intensity;
use punctual_analysis::Level;
use punctual_model::Order;
use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};

/// Cells of the largest run with a pivot. More are read from the table.
const CELLS: usize = 400;

/// The axes of a pivot.
#[derive(Debug)]
struct Pivot<'a> {
    /// The first leads the rows; each further one divides them.
    rows: Vec<&'a Column>,
    columns: &'a Column,
}

impl<'a> Pivot<'a> {
    /// Chooses the two axes with most values. Loads are columns, kernels rows. `None` with fewer than two axes.
    fn of(axes: &'a [Column]) -> Option<Pivot<'a>> {
        let mut chosen: Vec<_> = axes.iter().filter(|axis| axis.head != REPEAT && axis.distinct().len() > 1).collect();
        chosen.order_by_key(|axis| Reverse(axis.distinct().len()));
        let [a, b] = *chosen.get(..2)? else { return None };
        let position = |axis: &Column| axes.iter().position(|other| other.head == axis.head);
        let (a, b) = if position(a) < position(b) { (a, b) } else { (b, a) };
        let (row, columns) = if a.head == "load" { (b, a) } else { (a, b) };
        let others = axes.iter().filter(|axis| axis.head != row.head && axis.head != columns.head);
        Some(Pivot { rows: std::iter::once(row).chain(others).collect(), columns })
    }

    /// Returns the heads of all rows, grouped by their first value.
    fn row_heads(&self) -> Vec<Vec<&'a str>> {
        let n = self.columns.values.len();
        let all = (0..n).map(|index| self.row_head(index));
        let mut seen = HashSet::new();
        let mut heads: Vec<_> = all.filter(|head| seen.insert(head.clone())).collect();
        let first = self.rows.first().map(|axis| axis.distinct()).unwrap_or_default();
        heads.order_by_key(|head| first.iter().position(|value| Some(value) == head.first()));
        heads
    }

    /// Returns the head of the row of a cell.
    fn row_head(&self, cell: usize) -> Vec<&'a str> {
        self.rows.iter().filter_map(|axis| axis.values.get(cell).map(String::as_str)).collect()
    }
}

/// Writes the pivot; nothing where fewer than two axes vary.
pub(super) fn write(page: &mut Markup, members: &[Member<'_>], axes: &[Column], heat: Option<Heat>) {
    let Some(pivot) = Pivot::of(axes).filter(|_| members.len() <= CELLS) else { return };
    let columns = pivot.columns.distinct();
    let has_rates = columns::has_kernel_rates(members, axes);
    let row = pivot.rows.first().map_or("", |axis| axis.head);
    let title = format!("Overview: {row} x {}", pivot.columns.head);
    page.section("pivot", "", &title, None);
    let mut cells: HashMap<(Vec<&str>, &str), &Member<'_>> = HashMap::new();
    for (index, (member, column)) in members.iter().zip(&pivot.columns.values).enumerate() {
        cells.entry((pivot.row_head(index), column)).or_insert(member);
    }
    framed(page, "scroll", &title, |page| {
        page.add(format_args!(
            "<table class=pivot><thead><tr><td colspan={}><th scope=colgroup colspan={}>{}\n<tr>",
            pivot.rows.len(),
            columns.len(),
            Text(pivot.columns.head)
        ));
        pivot.rows.iter().for_each(|axis| page.add(format_args!("<th scope=col>{}", Text(axis.head))));
        columns.iter().for_each(|value| page.add(format_args!("<th scope=col>{}", Name(value))));
        page.raw("</thead><tbody>\n");
        for head in pivot.row_heads() {
            page.raw("<tr>");
            head.iter().for_each(|value| page.add(format_args!("<th scope=row>{}", Name(value))));
            for column in &columns {
                match cells.get(&(head.clone(), *column)) {
                    Some(member) => pair(page, member, heat, has_rates),
                    None => page.raw("<td><div>-</div>"),
                }
            }
            page.raw("\n");
        }
        page.raw("</tbody></table>");
    });
    let rates = if has_rates { " load: its operations a second." } else { "" };
    page.add(format_args!(
        "<p class=quiet>Each cell: maximum, below it p99.9. Darker color: longer latency (logarithmic scale). ~ is an estimate, \
         \u{2265} a lower limit, - not measured.{rates}</p>\n</section>\n",
    ));
}

/// Writes the numbers of one pair.
fn pair(page: &mut Markup, member: &Member<'_>, heat: Option<Heat>, has_rate: bool) {
    let Some(max) = max(&member.row) else { return page.raw("<td><div>-</div>") };
    let class = |ns: Option<i64>| ns.zip(heat).map(|(ns, heat)| format!(" class=t{}", heat.of(ns))).unwrap_or_default();
    page.add(format_args!("<td><div{}>", class(member.row.max_ns)));
    match &member.curves {
        Some(_) => page.add(format_args!(
            "<a href=#c{} aria-label=\"{}: {}\">{}</a>",
            member.id,
            Text(member.name()),
            Text(&max),
            Text(&max)
        )),
        None => page.add(format_args!("{}", Text(&max))),
    }
    let (p999, ns) = quantile(member.row.quantiles.at(Level::P999));
    page.add(format_args!("</div><div{}><small><span>p99.9 </span>{}</small></div>", class(ns), Text(p999)));
    if let Some(cell) = member.row.own().filter(|cell| has_rate && !cell.loads.is_empty()) {
        page.add(format_args!("<div><small>load {}/s</small></div>", Text(intensity::rates(cell))));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn axis(head: &'static str, values: &[&str]) -> Column {
        Column { head, values: values.iter().map(|value| (*value).to_owned()).collect() }
    }

    #[test]
    fn the_two_longest_axes_are_chosen_and_the_others_divide_rows() {
        let kernel = axis("kernel", &["a", "b", "c", "a", "b", "c", "a", "b", "c"]);
        let load = axis("load", &["none", "none", "none", "cpu", "cpu", "cpu", "disk", "disk", "disk"]);
        let policy = axis("policy", &["other", "other", "other", "other", "other", "other", "other", "other", "fifo"]);
        let axes = [kernel, load, policy];
        let pivot = Pivot::of(&axes).unwrap();
        assert_eq!(
            (pivot.columns.head, pivot.rows.iter().map(|axis| axis.head).collect::<Vec<_>>()),
            ("load", vec!["kernel", "policy"])
        );
        assert_eq!(pivot.row_heads(), [["a", "other"], ["b", "other"], ["c", "other"], ["c", "fifo"]]);
        assert!(Pivot::of(&axes[..1]).is_none(), "one axis is a table");
        let loads_first = [axis("load", &["none", "cpu"]), axis("policy", &["other", "fifo"])];
        assert_eq!(Pivot::of(&loads_first).unwrap().columns.head, "load");
    }
}
