//! Text of cyclictest (rt-tests): `T:` lines, the histogram of `-h` and `-H` in each layout, and the values of `-v`.

use super::column::Column;
use super::cyclictest_json::one_policy;
use super::fields::{ns, number, period_us};
use super::{ImportOptions, ParseError, Unit, detect, samples};
use punctual_cyclictest::asked_there;
use punctual_model::{Beyond, Histogram, Imported, ImportedThread, Policy, RtPriority, Source, StatedConditions};
use std::collections::BTreeMap;

/// Limit of threads: no machine has more CPUs.
const MAX_THREADS: u32 = 4_096;

/// Parsed lines, combined at the end.
#[derive(Debug, Default)]
struct Parsed {
    /// The last `T:` line of each thread.
    status: BTreeMap<u32, Status>,
    /// Columns of the histogram; `-H` has one more than there are threads.
    columns: Vec<Column>,
    rows: u64,
    /// Values of `# Min Latencies:` and similar lines, by key.
    feet: BTreeMap<&'static str, Vec<i64>>,
    /// Values of `-v`: cycle and value.
    values: BTreeMap<u32, Vec<(u64, i64)>>,
    /// Intervals from `Thread 0 Interval: 1500`.
    intervals: BTreeMap<u32, u64>,
    /// Policy name in `policy: fifo:`.
    policy: Option<String>,
    /// Policy in `# Policies: fifo:80 fifo:80` of `punctual cyclictest`, as reported by the kernel.
    reported: Option<Policy>,
    has_histogram: bool,
    /// Command line in a copied console or a log.
    command_line: Option<String>,
    /// From `cyclictest V 2.40`.
    version: Option<String>,
    /// Whether a line of the tool was found: those before it, of a console or a container, are skipped.
    has_begun: bool,
    remarks: Vec<String>,
}

/// Fields of a `T:` line.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Status {
    priority: u32,
    interval_us: u64,
    cycles: u64,
    min: i64,
    avg: i64,
    max: i64,
    /// Whether the field width is that of `-N`; `None` when the number fills the field.
    nanoseconds: Option<bool>,
}

/// Parses a whole output.
pub(super) fn read(text: &str, name: &str, stated: &ImportOptions) -> Result<Imported, ParseError> {
    let mut parsed = Parsed::default();
    for (line, text) in text.lines().enumerate().map(|(i, text)| (i + 1, text)) {
        parsed.line(&without_escapes(text), line)?;
    }
    parsed.finish(name, stated)
}

/// Removes the terminal escape sequences that overwrite lines (ECMA-48, CSI).
fn without_escapes(text: &str) -> String {
    let mut parts = text.split("\x1b[");
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let end = part.find(|c: char| ('@'..='~').contains(&c)).map_or(part.len(), |at| at + 1);
        plain.push_str(part.get(end..).unwrap_or_default());
    }
    plain
}

impl Parsed {
    fn line(&mut self, text: &str, line: usize) -> Result<(), ParseError> {
        let whole = text.trim();
        let is_row = || whole.contains(' ') && whole.split_ascii_whitespace().all(|word| word.parse::<u64>().is_ok());
        // A histogram may lack its header.
        self.has_begun |= detect::is_of_cyclictest(whole) || is_row();
        if self.has_begun {
            return self.own(whole, line);
        }
        let command = behind_prompt(whole).filter(|command| !command.is_empty()).or_else(|| command_in(whole));
        if let Some(version) = whole.strip_prefix("cyclictest V ") {
            self.version = Some(version.trim().to_owned());
        } else if let Some(command) = command {
            self.command_line = Some(command.to_owned());
        }
        Ok(())
    }

    /// Parses a line of the tool, or of the shell after it.
    fn own(&mut self, whole: &str, line: usize) -> Result<(), ParseError> {
        if let Some(command) = behind_prompt(whole) {
            self.command_line = self.command_line.take().or_else(|| Some(command.to_owned())).filter(|c| !c.is_empty());
            return Ok(());
        }
        if let Some(rest) = whole.strip_prefix("T:") {
            let (thread, status) = status(rest, line)?;
            self.status.insert(thread, status);
            return Ok(());
        }
        if let Some(rest) = whole.strip_prefix('#') {
            return self.remark(rest.trim_start(), line);
        }
        if let Some(rest) = whole.strip_prefix("policy:") {
            self.policy = rest.split(':').next().map(|word| word.trim().to_owned());
            return Ok(());
        }
        if let Some((thread, us)) = whole.strip_prefix("Thread ").and_then(|rest| rest.split_once(" Interval:")) {
            self.intervals.insert(thread_number(thread, line)?, number(us, line, "interval")?);
            return Ok(());
        }
        const IGNORED_LINES: [&str; 8] =
            ["Max CPUs", "Online CPUs", "INFO:", "WARN:", "WARNING:", "defaulting", "FATAL:", "running unlocked"];
        if whole.is_empty() || IGNORED_LINES.iter().any(|start| whole.starts_with(start)) {
            return Ok(());
        }
        let has_blank = || whole.contains([' ', '\t']);
        match whole.split(':').map(str::trim).collect::<Vec<_>>()[..] {
            [thread, cycle, value] => self.value(thread, cycle, value, line),
            [_] if has_blank() && whole.starts_with(|c: char| c.is_ascii_digit()) => self.row(whole, line),
            _ => Err(ParseError::at(line, "invalid line: expected output of cyclictest")),
        }
    }

    /// Parses a line of `-v`.
    fn value(&mut self, thread: &str, cycle: &str, value: &str, line: usize) -> Result<(), ParseError> {
        let (cycle, value) = (number(cycle, line, "cycle")?, number(value, line, "latency")?);
        self.values.entry(thread_number(thread, line)?).or_default().push((cycle, value));
        Ok(())
    }

    /// Parses a row of the histogram: value, blank, counts separated by tabs.
    fn row(&mut self, text: &str, line: usize) -> Result<(), ParseError> {
        let mut fields = text.split_ascii_whitespace();
        let value: u64 = number(fields.next().unwrap_or_default(), line, "latency")?;
        let counts: Vec<u64> = fields.map(|field| number(field, line, "count")).collect::<Result<_, _>>()?;
        if self.columns.is_empty() {
            self.columns.resize_with(counts.len(), Column::default);
        }
        if counts.len() != self.columns.len() {
            let expected = self.columns.len();
            return Err(ParseError::at(
                line,
                format!("expected as many counts as in the rows before ({expected}), found {}", counts.len()),
            ));
        }
        for (column, count) in self.columns.iter_mut().zip(counts) {
            column.add(value, count, line)?;
        }
        (self.has_histogram, self.rows) = (true, self.rows.max(value.saturating_add(1)));
        Ok(())
    }

    /// Parses the text after a `#`.
    fn remark(&mut self, text: &str, line: usize) -> Result<(), ParseError> {
        const FOOTER_LABELS: [(&str, &str); 6] = [
            ("min", "Min Latenc"),
            ("avg", "Avg Latenc"),
            ("max", "Max Latenc"),
            ("total", "Total:"),
            ("overflows", "Histogram Overflows:"),
            ("missed", "Missed Cycles:"),
        ];
        if self.has_histogram && text.trim_end() == "Histogram" {
            return Err(ParseError::several(line));
        }
        self.has_histogram |= text.starts_with("Histogram");
        if let Some((key, _)) = FOOTER_LABELS.iter().find(|(_, start)| text.starts_with(start)) {
            let values = text.split_once(':').map_or("", |(_, values)| values);
            let values = values.split_ascii_whitespace().map(|word| number(word, line, "number"));
            if self.feet.insert(key, values.collect::<Result<_, _>>()?).is_some() {
                return Err(ParseError::several(line));
            }
        } else if let Some(policies) = text.strip_prefix("Policies:") {
            self.reported = one_policy(policies.split_ascii_whitespace().map(Some));
        } else if let Some(value) = text.strip_prefix("Break value:") {
            let value: u64 = number(value, line, "latency")?;
            self.remarks.push(format!("stopped by -b at a latency of {value}: the maximum ended the measurement"));
        }
        Ok(())
    }

    /// The unit: as stated by the user, else by the field width, else the tool's default.
    fn unit(&mut self, stated: &ImportOptions) -> Unit {
        let seen = self.status.values().find_map(|status| status.nanoseconds);
        let unit = stated.unit.or(seen.map(|nanoseconds| if nanoseconds { Unit::Ns } else { Unit::Us }));
        unit.unwrap_or_else(|| {
            self.remarks.push(
                "the file does not state its unit, us or ns (-N): taken as us, the tool's default; \
                 if they are ns: --unit ns"
                    .to_owned(),
            );
            Unit::Us
        })
    }

    fn finish(mut self, name: &str, stated: &ImportOptions) -> Result<Imported, ParseError> {
        let unit = self.unit(stated);
        let threads = self.threads(unit)?;
        let mut conditions = StatedConditions::of("wake-up");
        let intervals: Vec<u64> = if self.intervals.is_empty() {
            self.status.values().map(|status| status.interval_us).collect()
        } else {
            self.intervals.values().copied().collect()
        };
        match intervals.first() {
            Some(first) if intervals.iter().all(|us| us == first) => conditions.period = period_us(*first),
            Some(_) => self.remarks.push("its threads have different periods (-d)".to_owned()),
            None => {}
        }
        let priorities: Vec<u32> = self.status.values().map(|status| status.priority).collect();
        conditions.priority = priorities.first().copied().filter(|first| priorities.iter().all(|p| p == first));
        conditions.policy =
            self.reported.or(match (self.policy.as_deref(), conditions.priority.map(RtPriority::new)) {
                (Some("fifo"), Some(Some(priority))) => Some(Policy::Fifo(priority)),
                (Some("rr"), Some(Some(priority))) => Some(Policy::RoundRobin(priority)),
                // Without a priority the policy is inherited, whatever name is printed.
                _ => None,
            });
        let program = self.command_line.as_deref().and_then(|line| Some(&line[line.find("cyclictest")?..]));
        let asked = program.and_then(|line| asked_there(line, u32::try_from(threads.len()).ok()?));
        // A command line that contradicts the table is that of something else.
        let is_known =
            |policy: &Policy| conditions.priority.is_none_or(|known| known == policy.priority().unwrap_or(0));
        conditions.policy = conditions.policy.or(asked.as_ref().and_then(|asked| asked.policy).filter(is_known));
        conditions.period = conditions.period.or(asked.as_ref().and_then(|asked| asked.period));
        if !self.feet.contains_key("missed") {
            self.remarks.push(
                "cyclictest skips missed periods and does not count them: a stall of many periods is \
                 one sample"
                    .to_owned(),
            );
        }
        if threads.iter().all(|thread| thread.histogram.is_none()) {
            self.remarks.push(super::NO_HISTOGRAM.to_owned());
        }
        Ok(Imported {
            conditions,
            threads,
            remarks: self.remarks,
            ..Imported::of(
                Source { version: self.version, command_line: self.command_line, ..Source::of("cyclictest", name) },
                unit.ns(),
            )
        })
    }

    /// All threads, from any of the three layouts.
    fn threads(&mut self, unit: Unit) -> Result<Vec<ImportedThread>, ParseError> {
        let mut threads: BTreeMap<u32, ImportedThread> = BTreeMap::new();
        let of = |number| ImportedThread { number, ..ImportedThread::default() };
        let scaled = |value: i64| ns(value, unit.ns()).ok();
        for (&number, status) in &self.status {
            let thread = threads.entry(number).or_insert_with(|| of(number));
            thread.samples = Some(status.cycles);
            if status.cycles > 0 {
                (thread.min_ns, thread.max_ns) = (scaled(status.min), scaled(status.max));
                thread.mean_ns = scaled(status.avg).map(|ns| ns as f64);
            }
        }
        if self.has_histogram {
            self.histograms(unit, &mut threads)?;
        }
        let values = std::mem::take(&mut self.values);
        for (number, values) in values {
            let thread = threads.entry(number).or_insert_with(|| of(number));
            let lost = gaps(&values);
            if lost > 0 {
                self.remarks.push(format!("thread {number}: {lost} values are missing from the output of -v"));
            }
            let values = values.into_iter().map(|(_, value)| ns(value, unit.ns()).map_err(ParseError::of_file));
            let listed = samples::thread(number, values.len(), values)?;
            // The last status line of `-v` may be older than the last values.
            thread.samples = thread.samples.max(listed.samples.map(|n| n.saturating_add(lost)));
            (thread.min_ns, thread.max_ns) =
                (thread.min_ns.into_iter().chain(listed.min_ns).min(), thread.max_ns.max(listed.max_ns));
            (thread.histogram, thread.slices) = (listed.histogram, listed.slices);
        }
        if threads.is_empty() {
            return Err(ParseError::of_file("no thread: no T: line, no histogram, no values"));
        }
        Ok(threads.into_values().collect())
    }

    fn histograms(&mut self, unit: Unit, threads: &mut BTreeMap<u32, ImportedThread>) -> Result<(), ParseError> {
        let lengths = ["min", "avg"].iter().filter_map(|key| self.feet.get(key)).map(Vec::len);
        let n = lengths.max().unwrap_or(self.columns.len());
        // A histogram without rows has all its samples beyond it (rt-tests 2.7 leaves out rows of zeros).
        let is_empty = self.columns.is_empty();
        let (columns, of_all) = self.columns.split_at(n.min(self.columns.len()));
        let has_sum = of_all.len() == 1
            && columns.iter().try_fold(0_u64, |all, column| all.checked_add(column.n)) == Some(of_all[0].n);
        if !is_empty && (columns.len() != n || !(of_all.is_empty() || has_sum)) {
            let all = self.columns.len();
            return Err(ParseError::of_file(format!("the rows have {all} counts, the lines below them {n} threads")));
        }
        let foot = |key, i: usize| self.feet.get(key).and_then(|values| values.get(i)).copied();
        let scaled = |value: i64| ns(value, unit.ns()).ok();
        for i in 0..n {
            let number = u32::try_from(i).ok().filter(|number| *number < MAX_THREADS);
            let number = number.ok_or_else(|| ParseError::of_file(format!("too many threads: {n}")))?;
            let thread =
                threads.entry(number).or_insert_with(|| ImportedThread { number, ..ImportedThread::default() });
            let histogram = columns.get(i).map_or(Ok(Histogram::default()), |column| column.histogram(unit.ns()))?;
            let overflows = foot("overflows", i).and_then(|n| u64::try_from(n).ok());
            let total = overflows.and_then(|overflows| histogram.n.checked_add(overflows));
            // The last status line of a run without -q is up to 10 ms older than the histogram and its footer.
            if let Some((status, total)) = thread.samples.zip(total).filter(|(status, total)| status > total) {
                return Err(ParseError::of_file(format!(
                    "thread {number}: its T: line has {status} cycles, its histogram {total}"
                )));
            }
            thread.samples = total.or(thread.samples.map(|samples| samples.max(histogram.n)));
            thread.beyond = overflows.filter(|samples| *samples > 0).map(|samples| Beyond {
                samples: Some(samples),
                at_least_ns: i64::try_from(self.rows).ok().and_then(scaled).unwrap_or(0),
            });
            if total.is_none_or(|total| total > 0) {
                thread.min_ns = foot("min", i).and_then(scaled).or(thread.min_ns);
                thread.max_ns = foot("max", i).and_then(scaled).or(thread.max_ns);
                thread.mean_ns = foot("avg", i).and_then(scaled).map(|ns| ns as f64).or(thread.mean_ns);
            }
            thread.missed = foot("missed", i).and_then(|n| u64::try_from(n).ok());
            thread.histogram = Some(histogram);
        }
        Ok(())
    }
}

/// The command after a shell prompt, `root@board:~# cyclictest -q`; empty for a prompt without a command, and `None`
/// for any other line.
fn behind_prompt(line: &str) -> Option<&str> {
    // The terminal echoes an interrupt before the next prompt.
    let line = line.strip_prefix("^C").unwrap_or(line);
    if line.is_empty() {
        return Some("");
    }
    let (end, _) = line.match_indices(['$', '#', '%', '>']).find(|(at, _)| {
        let rest = &line[at + 1..];
        rest.is_empty() || rest.starts_with(' ')
    })?;
    let (prompt, command) = (&line[..end], line[end + 1..].trim());
    let is_of_a_host = prompt.contains('@');
    let starts_it = || {
        let mut words = command.split_whitespace();
        words.any(|word| word.rsplit('/').next() == Some("cyclictest"))
    };
    // `# ...` alone is a comment of the tool.
    let is_prompt = if command.is_empty() { is_of_a_host } else { !line.starts_with('#') && starts_it() };
    is_prompt.then_some(command)
}

/// The command in a line of a log, `cmd to run: cyclictest -q`; only with an option, because prose names the program,
/// too.
fn command_in(line: &str) -> Option<&str> {
    let is_name = |(at, _): &(usize, &str)| line[..*at].ends_with([' ', '/']) || *at == 0;
    let (at, name) = line.match_indices("cyclictest").find(is_name)?;
    line[at + name.len()..].starts_with(" -").then(|| &line[at..])
}

/// Number of missing cycles between the first and the last one.
fn gaps(values: &[(u64, i64)]) -> u64 {
    let (first, last) = (values.iter().map(|v| v.0).min(), values.iter().map(|v| v.0).max());
    let span = last.zip(first).map_or(0, |(last, first)| (last - first).saturating_add(1));
    span.saturating_sub(u64::try_from(values.len()).unwrap_or(u64::MAX))
}

fn thread_number(word: &str, line: usize) -> Result<u32, ParseError> {
    let thread: u32 = number(word, line, "thread")?;
    if thread < MAX_THREADS {
        Ok(thread)
    } else {
        Err(ParseError::at(line, format!("invalid thread number `{thread}`")))
    }
}

/// Parses the text after `T:`.
fn status(rest: &str, line: usize) -> Result<(u32, Status), ParseError> {
    let missing = |key: &str| ParseError::at(line, format!("T: line without {key}"));
    let field = |key: &str| -> Result<i64, ParseError> {
        let (_, after) = rest.split_once(key).ok_or_else(|| missing(key))?;
        number(after.split_ascii_whitespace().next().unwrap_or_default(), line, "number")
    };
    let count = |key: &str| field(key).and_then(|n| u64::try_from(n).map_err(|_| missing(key)));
    let thread = rest.split('(').next().unwrap_or_default();
    // `Avg:%5ld Max:` of us, `Avg:%8ld Max:` of ns: a number padded with blanks reveals the unit.
    let width = rest.split_once("Avg:").and_then(|(_, after)| after.split_once(" Max:")).map(|(avg, _)| avg);
    let nanoseconds = width.filter(|avg| avg.starts_with(' ')).map(|avg| avg.len() > 5);
    let status = Status {
        priority: u32::try_from(count("P:")?).map_err(|_| missing("P:"))?,
        interval_us: count("I:")?,
        cycles: count("C:")?,
        min: field("Min:")?,
        avg: field("Avg:")?,
        max: field("Max:")?,
        nanoseconds,
    };
    Ok((thread_number(thread, line)?, status))
}
