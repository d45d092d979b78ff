//! `punctual cyclictest` against the installed cyclictest, and under the parsers that read its output.

use crate::program::{
    PROGRAM, ProgramOutput, Scratch, Start, a_cpu, a_cpu_and_the_others, command, finish, inconclusive, is_installed,
    is_root, is_stopped, machine, machine_and_scratch, punctual, read_json, run, skip_unless,
};
use punctual_sys::process;
use punctual_sys::testing::comes_true;
use serde_json::Value;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

/// Lines of `punctual cyclictest` that the original lacks.
const OURS: [&str; 5] = ["# Missed Cycles:", "# Policies:", "# Lost Samples:", "# Early Wakeups:", "# Still Waiting:"];

fn original(line: &str) -> ProgramOutput {
    run(Command::new("cyclictest").args(line.split_whitespace()))
}

fn ours(line: &str) -> ProgramOutput {
    punctual(&format!("cyclictest {line}"))
}

/// Whether both programs can run here.
fn can_compare() -> bool {
    is_root() && is_installed("cyclictest", "rt-tests")
}

/// The text with every digit as 0 and without the lines in [`OURS`]. Blanks that pad numbers (status lines, `-v`)
/// become 0, which leaves the columns.
fn columns(text: &str) -> String {
    let lines = text.lines().filter(|line| !OURS.iter().any(|ours| line.starts_with(ours)));
    lines.map(|line| columns_of(line) + "\n").collect()
}

fn columns_of(line: &str) -> String {
    let line = without_ids(line);
    let is_padded = line.starts_with("T:") || line.starts_with(' ');
    let mut line: Vec<char> = line.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
    for index in (1..line.len()).rev() {
        if is_padded && line[index] == '0' && line[index - 1] == ' ' && !ends_a_field(&line[..index - 1]) {
            line[index - 1] = '0';
        }
    }
    let line: String = line.into_iter().collect();
    // The footer pads to five digits; latencies in ns may have more.
    if let Some(thread_or_value) = line.strip_prefix("# Break ") {
        return format!("# Break {}", thread_or_value.trim_end_matches('0'));
    }
    if !line.contains("Latencies:") {
        return line;
    }
    line.split(' ')
        .map(|word| if word.len() > 5 && word.starts_with("00000") { "00000" } else { word })
        .collect::<Vec<_>>()
        .join(" ")
}

/// The line with process IDs of five characters: longer ones move what follows.
fn without_ids(line: &str) -> String {
    match line.split_once('(').and_then(|(head, rest)| Some((head, rest.split_once(')')?))) {
        Some((head, (id, rest))) if id.trim_start().bytes().all(|byte| byte.is_ascii_digit()) => {
            format!("{head}(00000){rest}")
        }
        _ => line.to_owned(),
    }
}

/// The latencies that a text tells, in the unit of its options.
fn latencies(text: &str) -> Vec<u64> {
    let mut found = Vec::new();
    for line in text.lines() {
        // Lines of -v: thread, cycle and latency.
        let fields: Vec<_> = line.split(':').map(|field| field.trim().parse::<u64>()).collect();
        if let [Ok(_), Ok(_), Ok(latency)] = fields[..] {
            found.push(latency);
        }
        for key in ["Min:", "Max:", "# Min Latencies:", "# Max Latencies:"] {
            let numbers = line.split_once(key).into_iter().flat_map(|(_, rest)| rest.split_whitespace());
            found.extend(numbers.map_while(|word| word.parse::<u64>().ok()));
        }
    }
    found
}

/// Whether every latency of a text is between what the timer slack and the shortest histogram allow, and one period:
/// then no cycle is missed, and the numbers have their usual width.
fn is_usual(text: &str, line: &str) -> bool {
    let (unit, period_us) =
        (if line.contains("-N") { 1000 } else { 1 }, if line.contains("-i 200") { 200 } else { 1000 });
    let least = if line.contains("-h ") || line.contains("-H ") { 13 * unit } else { 0 };
    latencies(text).into_iter().all(|latency| (least..period_us * unit).contains(&latency))
}

/// Whether a blank after `before` separates two fields instead of padding one.
fn ends_a_field(before: &[char]) -> bool {
    before.last().is_some_and(|last| last.is_ascii_digit() || *last == ')')
}

#[test]
fn root_the_output_differs_from_the_original_in_numbers_and_extra_lines() {
    skip_unless!(can_compare());
    let _machine = machine();
    // Without -p every latency exceeds the timer slack of 50 us, which fixes the histogram overflows.
    for line in [
        "-q -l 10",
        "-q -l 10 -p 80",
        "-q -l 10 -t2 -d 0",
        "-q -l 10 -t2 -i 200",
        "-q -l 10 -S -p 5 -m",
        "-q -l 10 -N",
        "-q -l 10 -h 3",
        "-q -l 10 -H 3",
        "-q -l 200 -t2 -h 3",
        "-q -l 200 -t2 -H 3",
        "-q -l 10 -t1 -H 12 -a",
        "-q -l 200 -S -h 2 -N",
        "-v -l 10",
        "-v -q -l 10",
        "-v -N -l 10",
        "-v -o 5 -l 10",
        "-q -l 10 -r",
        "-q -l 10 -s",
        "-q -l 10 -x",
        "-q -l 10 -c 1",
        "-q -l 10 -A",
        "-q -l 10 --secaligned",
        "-q -l 10 --latency 50",
        "-q -l 10 --default-system",
        "-q -l 10 --laptop",
        "-q -l 10 --policy=rr",
        "-q -l 10 --priospread -t2",
        "-q -D 1 -i 10000",
        "-q -l 10 -p 0",
        "-q -l 10 -p 0 -t2",
        "-q -l 1000 -b 1",
        "-q -l 1000 -b 1 -h 2",
        "-q -l 10 -b 1000000000",
        "-q -l 10 -S -t1",
        "-q -l 10 -d 3 -h 1",
    ] {
        let (theirs, ours) = (original(line), ours(line));
        // At its end the original may not print all values of -v.
        let values = |text: &str| text.lines().filter(|line| line.starts_with(' ')).count();
        let are_usual = is_usual(&theirs.stdout, line) && is_usual(&ours.stdout, line);
        if !are_usual || line.starts_with("-v") && values(&ours.stdout) != values(&theirs.stdout) {
            inconclusive(&format!("{line}: wake-ups were late"));
        } else {
            assert_eq!(columns(&ours.stdout), columns(&theirs.stdout), "{line}");
        }
        assert_eq!(columns(&ours.stderr), columns(&theirs.stderr), "{line}");
        let broke = ours.stdout.contains("# Break value:");
        assert_eq!((ours.status, theirs.status), (if broke { 2 } else { 0 }, 0), "{line}");
        assert_eq!(broke, line.contains("-b 1 ") || line.ends_with("-b 1"), "{line}");
    }
}

#[test]
fn root_the_view_and_the_status_by_signal_are_the_originals() {
    skip_unless!(can_compare());
    let _machine = machine();
    let line = "-l 300 -p 80 -t2";
    let first_view = |said: &ProgramOutput| {
        let view = said.stdout.split("\u{1b}[4A").next().unwrap_or_default().to_owned();
        // Numbers in /proc/loadavg have no fixed width.
        let collapsed = |line: &str| match line.split_once("loadavg: ") {
            Some((head, load)) => format!("{head}loadavg: {}", load.replace(|c: char| c.is_ascii_digit(), "")),
            None => columns_of(line),
        };
        view.lines().map(collapsed).collect::<Vec<_>>()
    };
    let said = [ours(line), original(line)];
    // Before the first wake-up the shortest latency is shown as 1 000 000.
    let is_usual = |text: &str| latencies(text).iter().all(|latency| *latency < 100_000 || *latency == 1_000_000);
    if said.iter().any(|said| !said.stdout.contains("\u{1b}[4A") || !is_usual(&said.stdout)) {
        inconclusive("the machine let no view be drawn again, or was late");
    } else {
        assert_eq!(first_view(&said[0]), first_view(&said[1]));
    }

    let scratch = Scratch::new("cyclictest-status");
    let status = |mut command: Command, name: &str| {
        let path = scratch.path(name);
        let stderr = std::fs::File::create(&path).unwrap();
        let mut child = command.args(["-q", "-p80", "-t2"]).stdout(Stdio::null()).stderr(stderr).spawn().unwrap();
        // Before its handler is installed, the signal would kill the process.
        let catches = || {
            let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap_or_default();
            let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:\t")).unwrap_or("0");
            u64::from_str_radix(caught, 16).unwrap_or(0) & (1 << (libc::SIGUSR1 - 1)) != 0
        };
        assert!(comes_true(catches), "{name}");
        // The original prints its initial values until all threads have woken: it is asked again.
        let printed = || std::fs::read_to_string(&path).unwrap();
        let mut last = String::new();
        let has_woken = comes_true(|| {
            process::signal(child.id(), libc::SIGUSR1).unwrap();
            let text = printed();
            let blocks: Vec<&str> = text.split("#-----").collect();
            // Each is between two marks.
            let mut whole = blocks.iter().skip(1).step_by(2).take(blocks.len() / 2);
            let woken = |block: &&&str| block.matches("C:").count() == 2 && !block.contains("Min:1000000");
            last = whole.rfind(woken).unwrap_or(&"").to_string();
            !last.is_empty()
        });
        assert!(has_woken, "{name}: {}", printed());
        process::signal(child.id(), libc::SIGINT).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(0), "{name}");
        last
    };
    let said = [status(command("cyclictest"), "ours"), status(Command::new("cyclictest"), "theirs")];
    if said.iter().any(|text| !is_usual(text)) {
        return inconclusive("the machine was late");
    }
    let [ours, theirs] = said.map(|text| text.lines().map(columns_of).collect::<Vec<_>>());
    assert_eq!(ours, theirs);
}

/// Asserts that `ours` has every key of `theirs`, with values of the same type.
fn assert_has_all(ours: &Value, theirs: &Value, path: &str) {
    match (ours, theirs) {
        (_, Value::Object(theirs)) if path.ends_with("/histogram") => {
            let numbers = |keys: Vec<&String>| keys.iter().all(|key| key.parse::<u64>().is_ok());
            assert!(numbers(ours.as_object().unwrap().keys().collect()) && numbers(theirs.keys().collect()), "{path}");
        }
        (Value::Object(ours), Value::Object(theirs)) => {
            for (key, value) in theirs {
                let found = ours.get(key).unwrap_or_else(|| panic!("{path}/{key} is missing"));
                assert_has_all(found, value, &format!("{path}/{key}"));
            }
        }
        _ => assert_eq!(std::mem::discriminant(ours), std::mem::discriminant(theirs), "{path}: {ours} {theirs}"),
    }
}

#[test]
fn root_the_json_has_all_that_the_originals_has() {
    skip_unless!(can_compare());
    let _machine = machine();
    for line in ["-q -l 20 -t2 -h 1000 --json=", "-q -l 20 --json="] {
        let scratch = Scratch::new("cyclictest-json");
        let path = |name: &str| scratch.path(name).display().to_string();
        let json = |name: &str| -> Value { read_json(scratch.path(name)) };
        // The file is truncated first.
        scratch.file("ours", "x".repeat(100_000));
        assert_eq!(original(&format!("{line}{}", path("theirs"))).status, 0);
        assert_eq!(ours(&format!("{line}{}", path("ours"))).status, 0);
        let ours = json("ours");
        // The original waits for its loops; ours ends with their time.
        if ours["thread"].as_object().unwrap().values().any(|thread| thread["cycles"] == 0) {
            return inconclusive("a thread never woke: the machine stood still");
        }
        assert_has_all(&ours, &json("theirs"), "");
    }
}

/// By the name of oslat: the same lines, of which only numbers differ, the same keys, and `import` reads it.
#[test]
fn root_oslat_has_the_lines_and_keys_of_the_original() {
    skip_unless!(is_root() && is_installed("oslat", "rt-tests"));
    let (_machine, scratch) = machine_and_scratch("oslat");
    let link = scratch.path("oslat");
    std::os::unix::fs::symlink(PROGRAM, &link).unwrap();
    let Some((cpu, _)) = a_cpu_and_the_others() else { return };
    for options in [vec![], vec!["-B", "-b", "8", "-q"], vec!["-f", "1", "-s"]] {
        let json = |name: &str| scratch.path(name);
        let output = |program: &mut Command, name: &str| {
            let said = run(program.args(&options).arg(format!("-c{cpu}")).arg("--json").arg(json(name)));
            assert_eq!(said.status, 0, "{said:?}");
            said
        };
        let ours = output(&mut Command::new(&link), "ours.json");
        let theirs = output(&mut Command::new("oslat"), "theirs.json");
        let lines = |said: &ProgramOutput| {
            let lines = said.stdout.lines().filter(|line| !line.starts_with("# Lost"));
            lines.map(|line| line.replace(|c: char| c.is_ascii_digit(), "").replace('.', "")).collect::<Vec<_>>()
        };
        assert_eq!(lines(&ours), lines(&theirs), "{options:?}");
        assert_has_all(&read_json(json("ours.json")), &read_json(json("theirs.json")), "");
        let imported = run(command("import --format json").arg(json("ours.json")).arg("-o").arg(scratch.path("run")));
        assert_eq!(imported.status, 0, "{imported:?}");
        std::fs::remove_dir_all(scratch.path("run")).unwrap();
    }
}

/// Output of the shell `script` with `text` as its standard input.
fn shell(script: &str, text: &str) -> String {
    let mut shell = Command::new("sh");
    let mut child =
        shell.args(["-e", "-c", script]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("a shell");
    child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{script}");
    String::from_utf8(output.stdout).unwrap().trim_end().to_owned()
}

/// A run of two threads with a histogram, as text and as JSON; `None` if one of them did not wake up.
fn measured(options: &str) -> Option<(String, Value)> {
    let (_machine, scratch) = machine_and_scratch("cyclictest-parsers");
    let json = scratch.path("json");
    let said = ours(&format!("-q -l 200 -t2 {options} --json={}", json.display())).expect_success();
    let json: Value = read_json(json);
    let have_woken = (0..2).all(|index| json["thread"][index.to_string()]["cycles"].as_u64() > Some(0));
    if !have_woken {
        inconclusive("a thread has not woken up");
    }
    have_woken.then_some((said.stdout, json))
}

fn of_threads(json: &Value, key: &str) -> Vec<i64> {
    (0..2).map(|index| json["thread"][index.to_string()][key].as_i64().expect(key)).collect()
}

fn numbers(text: &str) -> Vec<i64> {
    text.split_whitespace().map(|word| word.parse().unwrap_or_else(|_| panic!("{word} in {text}"))).collect()
}

#[test]
fn parsers_of_status_lines_find_what_the_json_says() {
    let Some((text, json)) = measured("") else { return };
    // oe-core rt_bmark.py: C:\s*(\d+).*Min:\s*(\d+).*Avg:\s*(\d+).*Max:\s*(\d+)
    let rule = r"sed -nE 's/^T:.*C:\s*([0-9]+).*Min:\s*([0-9]+).*Avg:\s*([0-9]+).*Max:\s*([0-9]+)$/\1 \2 \4/p'";
    let [cycles, min, max] = ["cycles", "min", "max"].map(|key| of_threads(&json, key));
    assert_eq!(numbers(&shell(rule, &text)), [cycles[0], min[0], max[0], cycles[1], min[1], max[1]]);
    // LAVA parse_rt_tests_results.py
    assert_eq!((json["num_threads"].as_u64(), json["return_code"].as_u64()), (Some(2), Some(0)));
    for index in 0..2 {
        let thread = &json["thread"][index.to_string()];
        assert!(["min", "avg", "max"].iter().all(|key| thread[key].is_number()), "{thread}");
    }
}

#[test]
fn parsers_of_histograms_find_what_the_json_says() {
    let Some((text, json)) = measured("-h 5000") else { return };
    let max = of_threads(&json, "max");
    let largest = *max.iter().max().unwrap();

    // OSADL: the maximum over all CPUs, then one data file per CPU, cut at TABs.
    let rule = r#"grep "Max Latencies" | tr " " "\n" | sort -n | tail -1 | sed s/^0*//"#;
    assert_eq!(numbers(&shell(rule, &text)), [largest]);
    let rule = r#"grep -v -e "^#" -e "^$" | tr " " "\t" > "$0.data"; cut -f1,3 "$0.data" | wc -l; cut -f3 "$0.data""#;
    let scratch = Scratch::new("osadl");
    let rule = rule.replace("$0", &scratch.path("histogram").display().to_string());
    let second = numbers(&shell(&rule, &text));
    assert_eq!((second[0], second.len()), (5000, 5001));
    assert_eq!(second[1..].iter().sum::<i64>(), in_histogram(&json, 1));

    // rteval: rows split at white space, first the row's value, then column i for CPU i; two `#` lines are read, others
    // skipped.
    let mut counts = [0, 0];
    let mut maxima = Vec::new();
    for line in text.lines() {
        if let Some(values) = line.strip_prefix("# Max Latencies: ") {
            maxima = numbers(values);
        } else if !line.starts_with('#') && !line.is_empty() {
            let row = numbers(line);
            assert_eq!(row.len(), 3, "{line}");
            counts.iter_mut().zip(&row[1..]).for_each(|(count, n)| *count += n);
        }
    }
    assert_eq!((counts, maxima), ([in_histogram(&json, 0), in_histogram(&json, 1)], max.clone()));

    // lkp-tests: /^# (.*):(.+)/, the key in lower case with underscores. Lines that are printed only for nonzero counts
    // depend on the machine.
    let rule = r"sed -nE 's/^# (.*):(.+)/\1/p' | grep -vE '^(Thread|Lost|Early|Still)' | tr 'A-Z ' 'a-z_'";
    let keys = "total min_latencies avg_latencies max_latencies histogram_overflows missed_cycles policies";
    assert_eq!(shell(rule, &text).split_whitespace().collect::<Vec<_>>().join(" "), keys);
    assert!(text.is_empty() || !crate::program::is_root() || text.starts_with("# /dev/cpu_dma_latency set to 0us\n"));

    // mmtests extract-report.pl: /^# (...) Latencies: (.*)/; single blanks between overflows.
    let rule = r"sed -nE 's/^# (Min|Avg|Max) Latencies: ([0-9]+( [0-9]+)*)$/\2/p' | tail -1";
    assert_eq!(numbers(&shell(rule, &text)), max);
    let rule = r"sed -nE 's/^# Histogram Overflows: ([0-9]+( [0-9]+)*)$/\1/p'";
    assert_eq!(numbers(&shell(rule, &text)), of_threads(&json, "histogram_overflows"));

    // NI run-cyclictest: from the fourth field on. OpenShift: the rest of the line, split at blanks, each a number.
    let rule = r##"grep -sw "# Max Latencies:" | awk '{for (i = 4; i <= NF; i++) print $i + 0}'"##;
    assert_eq!(numbers(&shell(rule, &text)), max);
    let rule = r"sed -nE 's/^# Max Latencies:\t*\s*(.*)\s*\t*$/\1/p'";
    assert_eq!(numbers(&shell(rule, &text)), max);

    // Ad-hoc scripts: the number of samples; plots rely on the order and on rows of zeros.
    let totals = [in_histogram(&json, 0), in_histogram(&json, 1)];
    assert_eq!(numbers(&shell(r"sed -n 's/^# Total: //p'", &text)), totals);
    assert!(text.ends_with("\n\n"), "a blank line ends the histogram");
}

/// Number of values in the histogram of a thread.
fn in_histogram(json: &Value, index: usize) -> i64 {
    let rows = json["thread"][index.to_string()]["histogram"].as_object().expect("a histogram");
    rows.values().map(|count| count.as_i64().expect("a count")).sum()
}

#[test]
fn crucible_finds_the_maximum_of_all_threads_in_the_histogram_file() {
    let scratch = Scratch::new("cyclictest-histfile");
    let file = scratch.path("histogram");
    let Some((text, json)) = measured(&format!("-H 5000 --histfile={}", file.display())) else { return };
    let table = std::fs::read_to_string(file).unwrap();
    assert!(!text.contains("Histogram") && table.starts_with("# Histogram\n"), "{text}");
    let rule = r"sed -nE 's/^# Max Latencies:\s+(.*)/\1/p' | awk '{print $NF}'";
    let max = of_threads(&json, "max");
    assert_eq!(numbers(&shell(rule, &table)), [*max.iter().max().unwrap()]);
    let rows = table.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    for row in rows {
        let row = numbers(row);
        assert_eq!((row.len(), row[1] + row[2]), (4, row[3]));
    }
}

#[test]
fn layouts_can_be_chosen_and_quotes_in_options_keep_json_valid() {
    let (_machine, scratch) = machine_and_scratch("cyclictest-quote");
    let nowhere = scratch.path("missing/file").display().to_string();
    for option in ["--json", "--histfile"] {
        let line = format!("-q -l 3 -h 2 {option} {nowhere}");
        let message = format!("cyclictest: {option} {nowhere}: No such file or directory (os error 2)");
        ours(&line).expect_error(&message);
    }
    let file = scratch.path("a\"b\\c");
    let said = run(command("cyclictest -q -l 3 -h 2 --json=-").arg(format!("--histfile={}", file.display())));
    let json = said.stdout.split_once('{').map(|(_, rest)| rest.rsplit_once('}').unwrap().0).expect("JSON");
    let json: Value = serde_json::from_str(&format!("{{{json}}}")).unwrap();
    assert!(json["cmdline:"].as_str().unwrap().contains("a\"b\\c"), "{json}");
    let newer = run(command("cyclictest -q -l 3 -h 2").env("PUNCTUAL_CYCLICTEST_COMPAT", "2.7"));
    for said in [newer, ours("-q -l 3 -h 2 --compat 2.7")] {
        assert!(!said.stdout.contains("# Total:") && said.stdout.contains("# Max Latencies:"), "{said:?}");
    }
}

#[test]
fn it_is_also_called_by_its_name_and_fails_where_the_original_hangs() {
    let named = |line: &str| run(Command::new(PROGRAM).arg0("/usr/bin/cyclictest").args(line.split_whitespace()));
    assert!(named("--help").stdout.starts_with("How late threads wake up"));
    assert!(ours("--help").stdout.starts_with("How late threads wake up"));
    for (line, what) in [
        ("-D foo", "-D: invalid duration `foo`: expected seconds, or a number with s, m, h or d, like 90s"),
        ("-i 0", "-i: invalid interval in us `0`: expected a number from 10 to 100000000"),
        ("--nosuch", "unknown option `--nosuch`; see --help"),
        ("-q word", "unexpected argument `word`; see --help"),
        ("-h", "-h needs a value; see --help"),
    ] {
        named(line).expect_error(&format!("cyclictest: {what}"));
        ours(line).expect_error(&format!("cyclictest: {what}"));
    }
}

/// The program under the name cyclictest, without the break status of the test's environment.
fn drop_in(line: &str) -> Command {
    let mut command = Command::new(PROGRAM);
    command.arg0("cyclictest").args(line.split_whitespace()).env_remove("PUNCTUAL_CYCLICTEST_BREAK_STATUS");
    command
}

#[test]
fn a_break_is_no_failure_under_the_name_of_cyclictest_unless_asked_for() {
    let (_machine, scratch) = machine_and_scratch("cyclictest-break");
    // Because of the timer slack no wake-up is as early as 1 us.
    for (index, (named, variable, status)) in
        [(true, None, 0), (true, Some("2"), 2), (false, None, 2), (false, Some("0"), 0), (true, Some(""), 0)]
            .into_iter()
            .enumerate()
    {
        let path = scratch.path(&format!("json-{index}"));
        let line = format!("-q -t1 -l 1000 -b 1 --json={}", path.display());
        let mut called = if named { drop_in(&line) } else { command(&format!("cyclictest {line}")) };
        called.env_remove("PUNCTUAL_CYCLICTEST_BREAK_STATUS");
        let said = run(called.envs(variable.map(|value| ("PUNCTUAL_CYCLICTEST_BREAK_STATUS", value))));
        let json: Value = read_json(path);
        assert_eq!((said.status, json["return_code"].as_i64()), (status, Some(status.into())), "{named} {variable:?}");
        assert!(json["break_value"].as_i64().is_some_and(|value| value > 1), "{json}");
    }
    let said = run(drop_in("-q -l 1").env("PUNCTUAL_CYCLICTEST_BREAK_STATUS", "1"));
    said.expect_error("cyclictest: PUNCTUAL_CYCLICTEST_BREAK_STATUS: invalid exit status `1`: expected 0 or 2");
}

#[test]
fn a_reader_that_goes_ends_it_as_the_original_without_a_word() {
    let _machine = machine();
    for line in ["-t1 -v", "-t1", "--help"] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let said = finish(drop_in(line).stdin(Stdio::null()).stdout(writer).stderr(Stdio::piped()).spawn().unwrap());
        // Without root, stderr has a warning about idle states.
        assert!(said.status == 141 && !said.stderr.contains("punctual:"), "{line}: {said:?}");
    }
}

#[test]
fn root_the_place_of_the_trace_is_named_as_the_original_does() {
    skip_unless!(is_root());
    let _machine = machine();
    let said = ours("-q -l 3 -b 1000000000 --tracemark");
    match said.status {
        0 => assert!(said.stderr.starts_with("INFO: debugfs mountpoint: /sys/kernel/"), "{said:?}"),
        _ => assert!(said.stderr.starts_with("punctual: cyclictest: --tracemark: cannot write to"), "{said:?}"),
    }
}

#[test]
fn root_each_due_time_has_woken_the_thread_or_is_counted() {
    skip_unless!(is_root());
    let (_machine, scratch) = machine_and_scratch("cyclictest-due");
    let path = scratch.path("json");
    let said = ours(&format!("-q -D 2 -p 80 --json={}", path.display())).expect_success();
    let json: Value = read_json(path);
    let number = |key: &str| json["thread"]["0"][key].as_u64().unwrap_or(0);
    let waits = u64::from(json["thread"]["0"]["still_waiting"].is_number());
    assert_eq!(number("cycles") + number("missed") + number("lost") + waits, 2000, "{said:?} {json}");
    assert!(said.stdout.contains(&format!("# Missed Cycles: {:05}\n", number("missed"))), "{said:?}");
}

#[test]
fn root_a_stop_is_one_late_wake_up_and_many_missed_cycles() {
    skip_unless!(is_root());
    let (_machine, scratch) = machine_and_scratch("cyclictest-stop");
    let path = scratch.path("json");
    let mut child = command(&format!("cyclictest -v -p 80 --json={}", path.display())).start_piped();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    // Thread, cycle and latency.
    let mut values = lines.filter(|line| line.split(':').count() == 3 && line.starts_with(' '));
    assert!(values.next().is_some(), "it goes on until it is told");
    process::signal(child.id(), libc::SIGSTOP).unwrap();
    assert!(comes_true(|| is_stopped(child.id())), "each thread stops when it gets to run");
    // At least so long.
    assert!(Command::new("sleep").arg("0.2").status().unwrap().success());
    process::signal(child.id(), libc::SIGCONT).unwrap();
    assert_eq!(values.by_ref().take(300).count(), 300, "it goes on until it is told");
    process::signal(child.id(), libc::SIGINT).unwrap();
    // What it still writes must be read.
    values.for_each(drop);
    assert!(child.wait().unwrap().success());
    let json: Value = read_json(path);
    let thread = &json["thread"]["0"];
    if thread["still_waiting"].is_number() || thread["lost"] != 0 {
        return inconclusive(&format!("the stop is not in the tables: {thread}"));
    }
    let number = |key: &str| thread[key].as_u64().expect(key);
    assert!(number("missed") >= 198 && number("max") >= 199_000, "{json}");
}

#[test]
fn management_interrupts_are_counted_or_refused() {
    let _machine = machine();
    let said = punctual(&format!("cyclictest -q -l 10 -a {} --smi", a_cpu()));
    if said.status == 0 {
        assert!(said.stdout.contains(" SMI:"), "{said:?}");
    } else {
        let why = format!("cyclictest: --smi: cannot count system management interrupts of CPU {}: ", a_cpu());
        assert!(said.status == 1 && said.stderr.contains(&why) && said.stderr.lines().count() == 1, "{said:?}");
    }
}
