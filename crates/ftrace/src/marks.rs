//! Phases and causes of a spike as events of the user, so that trace-cmd and KernelShark show them beside the others.

use super::format::Format;
use super::layouts::Layouts;
use super::timeline::Spike;
use punctual_analysis::explain::cause_name;
use punctual_analysis::wording::duration;
use punctual_model::Order;

/// Name of their buffer.
pub const MARKS: &str = "punctual";
/// Where the text of the event `ftrace/print` is, and the longest that is written, bytes.
const TEXT_AT: usize = 16;
const MOST_TEXT: usize = 300;

/// The pages of each CPU with the phases of a spike and the longest intervals in them, each with its cause; `None`
/// where the kernel of the trace has no such events.
pub fn marks(layouts: &Layouts, spike: &Spike<'_>) -> Option<Vec<Vec<u8>>> {
    let format =
        layouts.formats.iter().find_map(|(path, text)| (path == "ftrace/print").then(|| Format::parse(text)))??;
    let decoder = layouts.decoder().ok()?;
    let is_known = decoder.layout.commit_bytes == 8 && decoder.layout.data_at == TEXT_AT;
    let text_at = format.field("buf").filter(|buf| is_known && buf.at == TEXT_AT)?.at;
    let mut pages: Vec<Vec<u8>> = Vec::new();
    let mut records = Vec::new();
    let mut begins_ns = None;
    let page_bytes = decoder.layout.page_bytes;
    let mut finish = |begins_ns: u64, records: &mut Vec<u8>| {
        let mut page = begins_ns.to_ne_bytes().to_vec();
        page.extend((records.len() as u64).to_ne_bytes());
        page.append(records);
        page.resize(page_bytes, 0);
        pages.push(page);
    };
    for (at_ns, mut text) in texts(spike) {
        text.truncate((0..=MOST_TEXT.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0));
        let mut data = format.id.to_ne_bytes().to_vec();
        data.resize(text_at, 0);
        data.extend(text.as_bytes());
        data.extend(b"\n\0");
        data.resize(data.len().next_multiple_of(4), 0);
        let needed = data.len() + 16;
        if let Some(first_ns) = begins_ns.filter(|_| TEXT_AT + records.len() + needed > page_bytes) {
            finish(first_ns, &mut records);
            begins_ns = None;
        }
        let first_ns = *begins_ns.get_or_insert(at_ns);
        // Of the record: an absolute time, and an event of any length.
        records.extend(super::pages::absolute_time(at_ns.max(first_ns)));
        records.extend(super::pages::long_event(&data));
    }
    if let Some(first_ns) = begins_ns {
        finish(first_ns, &mut records);
    }
    let cpu = usize::try_from(spike.explanation.cpu).ok()?;
    let mut cpus = vec![Vec::new(); spike.trace.cpus.len().max(cpu + 1)];
    if let Some(slot) = cpus.get_mut(cpu) {
        *slot = pages.concat();
    }
    Some(cpus)
}

/// The texts in the order of time.
fn texts(spike: &Spike<'_>) -> Vec<(u64, String)> {
    let Spike { explanation, subject, .. } = spike;
    let length = |ns: u64| duration(ns as f64);
    let mut texts = vec![(subject.due_ns, format!("{} due", spike.track()))];
    let mut at_ns = subject.due_ns;
    for phase in &explanation.phases {
        texts.push((at_ns, format!("phase {}, {}", phase.phase, length(phase.length.ns()))));
        at_ns = at_ns.saturating_add(phase.length.ns());
    }
    texts.push((at_ns, format!("{} late by {}", spike.track(), length(explanation.latency.ns()))));
    texts.extend(explanation.segments.iter().map(|segment| {
        let (cause, evidence) = (cause_name(segment.cause, segment.or), segment.evidence);
        let text = format!("{cause} by {}, {} [{evidence}]", segment.owner.name, length(segment.length.ns()));
        (subject.due_ns.saturating_add(segment.at.ns()), text)
    }));
    texts.order_by_key(|(at_ns, _)| *at_ns);
    texts
}

#[cfg(test)]
mod tests {
    use super::super::capture::tests::capture;
    use super::*;
    use crate::pages::read_page;

    #[test]
    fn the_texts_are_events_of_the_cpu_in_the_order_of_time() {
        let capture = capture();
        let trace = capture.trace().unwrap();
        let (case, explanation) = capture.cases().next().unwrap();
        let spike = Spike { explanation, subject: &case.subject, trace: &trace };
        let mut layouts = crate::testing::layouts();
        assert_eq!(marks(&layouts, &spike), None, "a format without a text");
        for (path, text) in &mut layouts.formats {
            if path == "ftrace/print" {
                text.push_str("\tfield:unsigned long ip;\toffset:8;\tsize:8;\tsigned:0;\n\tfield:char buf[];\toffset:16;\tsize:0;\tsigned:0;\n");
            }
        }
        let cpus = marks(&layouts, &spike).unwrap();
        let decoder = layouts.decoder().unwrap();
        let mut read = Vec::new();
        for page in cpus[0].chunks(decoder.page_bytes()) {
            read_page(page, &decoder.layout, |at_ns, data| {
                let text = data[TEXT_AT..].split(|byte| *byte == b'\n').next().unwrap();
                read.push((at_ns, String::from_utf8(text.to_vec()).unwrap()));
            })
            .unwrap();
        }
        assert_eq!(read, texts(&spike));
        assert_eq!(read.len(), 2 + explanation.phases.len() + explanation.segments.len());
    }
}
