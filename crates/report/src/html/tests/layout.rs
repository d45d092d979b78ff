//! Pages of large and of unusual runs: pivots, many CPUs, incomplete runs, answers, costs.

use super::*;
use punctual_analysis::testing::{host, response};
use punctual_model::{Failed, Planned};

/// Cells of these kernels and loads under two policies; `last` is the last latency of each cell by its number.
fn kernels_by_loads(kernels: &[&str], loads: &[&str], policies: &[&str]) -> RunBuilder {
    let mut run = RunBuilder::new();
    for kernel in kernels {
        for load in loads {
            for policy in policies {
                run.cell(load, policy);
                run.header.cells.last_mut().unwrap().kernel = kernel.parse().unwrap();
            }
        }
    }
    for cell in 0..run.header.cells.len() {
        let later = 1_000_000 * i64::try_from(cell + 1).unwrap();
        run.measure(0, cell, move |cpu, cycle| match (cpu, cycle) {
            (1, 1_500) => later,
            _ => 4_000 + i64::try_from(cycle % 97).unwrap() * 40,
        });
    }
    run
}

#[test]
fn a_pivot_of_kernels_by_loads_leads_and_its_cells_lead_on() {
    let kernels = ["debian:6.1", "debian:6.1-rt", "/k/a preempt=none", "/k/a preempt=full"];
    let loads = ["none", "cpu", "messaging", "disk", "pipe"];
    let page = page(&kernels_by_loads(&kernels, &loads, &["fifo:80"]));
    let (_, pivot) = page.split_once("<table class=pivot>").unwrap();
    let pivot = pivot.split("</table>").next().unwrap();
    let (head, body) = pivot.split_once("<tbody>").unwrap();
    assert_eq!(
        head,
        "<thead><tr><td colspan=1><th scope=colgroup colspan=5>load\n<tr><th scope=col>kernel<th scope=col>none<th scope=col>cpu\
         <th scope=col>messaging<th scope=col>disk<th scope=col>pipe</thead>"
    );
    assert_eq!(
        (body.matches("<tr>").count(), body.matches("<td>").count(), body.matches("p99.9 ").count()),
        (4, 20, 20)
    );
    // The kernel with PREEMPT_RT under messaging is the 8th cell, with its maximum of 8 ms.
    let rt = body.split("<tr>").nth(2).unwrap();
    assert!(rt.contains("<th scope=row>debian:6.1-rt<td>") && rt.contains("<a href=#c8 "), "{rt}");
    assert!(rt.contains(">8 ms</a>"), "{rt}");
    assert!(page.contains("<a href=#pivot>Overview: kernel x load</a>"));
    // The policy, which is the same for all, has no column.
    assert!(page.contains("<thead><tr><th scope=col>kernel<th scope=col>load<th scope=col class=n>max"));

    let third = self::page(&kernels_by_loads(&kernels[..2], &loads, &["other", "fifo:80"]));
    assert!(
        third.contains("<tr><th scope=col>kernel<th scope=col>policy<th scope=col>none"),
        "policies divide the rows"
    );
    assert!(third.contains("<tr><th scope=row>debian:6.1<th scope=row>fifo:80<td>"));
    let one = self::page(&kernels_by_loads(&kernels, &["none"], &["other"]));
    assert!(!one.contains("<table class=pivot>"), "a single axis is read from the table");
}

#[test]
fn all_cpus_of_a_cell_are_one_picture_and_a_list_of_maxima() {
    let mut run = RunBuilder::new();
    run.cell("none", "fifo:80");
    run.header.cells[0].cpus = (0..64).collect();
    run.measure(0, 0, |cpu, cycle| match (cpu, cycle) {
        (41, 700) => 7_000_000,
        _ => 4_000 + i64::from(cpu) * 100 + i64::try_from(cycle % 7).unwrap(),
    });
    let page = page(&run);
    for part in [
        "<figcaption>Latency histogram, all 64 CPUs</figcaption>",
        "<p class=note>Dashed: CPU 41, which has the maximum.</p>",
        "<h4>Maximum per CPU</h4>",
        ">CPU 41 <b>7 ms</b>",
    ] {
        assert!(page.contains(part), "{part}");
    }
    let maxima = page.split("<ul class=cpus>").nth(1).unwrap().split("</ul>").next().unwrap();
    assert_eq!((page.matches("<path class=all ").count(), maxima.matches(">CPU ").count()), (1, 64));
    let lines = page.split("<path class=all d=").nth(1).unwrap().split(' ').next().unwrap();
    assert_eq!(lines.matches('M').count(), 63);
    assert!(page.contains("48 CPUs with smaller maxima are left out."), "of the strip, which has a row for each");
    assert!(page.len() < 200_000, "{} bytes", page.len());
}

#[test]
fn an_incomplete_run_has_a_banner_at_the_place_of_the_verdict() {
    let mut run = super::run();
    assert!(!page(&run).contains("INCOMPLETE"));
    run.entries.truncate(3);
    let banner = "<p class=\"verdict open\"><strong>INCOMPLETE</strong> 3 of 4 measurements";
    assert!(page(&run).contains(&format!("{banner}; resume with punctual run")), "aborted");
    run.entries[2].record.ended = Ended::Interrupted;
    assert!(page(&run).contains("</strong> 2 of 4 measurements;"), "interrupted");
    let planned = Planned { block: 1, position: 1, cell_index: 1 };
    run.header.failed.push(Failed { planned, reason: "no <power>".to_owned() });
    assert!(page(&run).contains("</strong> 2 of 4 measurements; 1 failed;"), "failed");
    run.entries.clear();
    assert!(page(&run).contains("</strong> 0 of 4 measurements;"), "nothing measured");
}

#[test]
fn pages_of_answers_count_answers_and_name_the_target() {
    let mut run = RunBuilder::new();
    run.header.plan.title.clear();
    run.header.host.hostname = Some("logger".to_owned());
    for policy in ["other", "fifo:80"] {
        run.cell("none", policy);
        run.header.cells.last_mut().unwrap().task = "response:udp:board:4001".parse().unwrap();
    }
    let board = punctual_model::Host {
        hostname: Some("board".to_owned()),
        command_line: Some("isolcpus=1".to_owned()),
        ..host()
    };
    for cell in 0..2 {
        run.measure(0, cell, |_, cycle| 40_000 + i64::try_from(cycle % 97).unwrap() * 40);
        let answered = run.entries.last_mut().unwrap().record.response.as_mut().unwrap();
        answered.target = response(board.clone()).target;
    }
    let page = page(&run);
    for part in [
        "<h1>How soon does board answer?</h1>",
        "<li>target: board, ",
        "<details class=\"quiet wide\"><summary>Kernel command line</summary><code>isolcpus=1</code>",
        "<th scope=col class=n>not sent<th scope=col class=n>answers",
        "<figcaption>Response time histogram</figcaption>",
        ">answers per bin</text>",
        ">response time</text>",
        "Share of answers later than a response time (CCDF)",
        "data-kind=n",
    ] {
        assert!(page.contains(part), "{part}");
    }
    let header = page.split("</header>").next().unwrap();
    assert!(!header.contains("logger"), "{header}");
}

#[test]
fn pages_of_costs_have_no_table_of_latencies() {
    let mut run = RunBuilder::new();
    run.header.plan.title.clear();
    run.cell("none", "other");
    run.header.cells[0].task = "cost".parse().unwrap();
    let page = page(&run);
    assert!(page.contains("<h1>What do operations cost?</h1>"));
    for absent in ["id=cells", "id=parts", "50 % probability", "This run has no cells"] {
        assert!(!page.contains(absent), "{absent}");
    }
}

#[test]
fn contents_link_to_every_section_in_order() {
    let page = page(&super::run());
    let (_, nav) = page.split_once("<nav class=contents").unwrap();
    let nav = nav.split("</nav>").next().unwrap();
    let titles: Vec<_> = nav.split("</a>").filter_map(|link| link.rsplit_once('>')).map(|(_, title)| title).collect();
    assert_eq!(
        titles[..7],
        ["Overlay", "Cells", "Findings", "Details per cell", "Load and CPU", "Machine", "Reproduce"]
    );
    assert_eq!(page.matches("<h2>").count(), 7);
}
