//! The dashboard of `punctual monitor` on a real Prometheus.

use crate::program::{
    MARK, Start, inconclusive, is_installed, is_root, kill_and_wait, machine_and_scratch, mark, skip_unless,
};
use crate::real::explain::instances;
use crate::real::monitor::{ENOUGH, Running, get, n_windows, packaging};
use punctual_sys::testing::comes_true;
use serde_json::Value;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Command;

/// The queries of the dashboard, with its variables replaced, and where they come from.
fn queries() -> Vec<(String, String)> {
    let dashboard: Value =
        serde_json::from_str(&std::fs::read_to_string(packaging("grafana/punctual-monitor.json")).unwrap()).unwrap();
    let replaced =
        |text: &str| text.replace("$__rate_interval", "10s").replace("$__range", "1h").replace("$instance", ".+");
    let mut queries = Vec::new();
    for panel in dashboard["panels"].as_array().unwrap() {
        let title = panel["title"].as_str().unwrap();
        for key in ["id", "type", "gridPos", "fieldConfig", "options", "datasource", "description"] {
            assert!(!panel[key].is_null(), "{title}: {key}");
        }
        for target in panel["targets"].as_array().unwrap() {
            assert_eq!(target["datasource"]["uid"], "${datasource}", "{title}");
            queries.push((title.to_owned(), replaced(target["expr"].as_str().unwrap())));
        }
    }
    let mut places: Vec<_> =
        dashboard["panels"].as_array().unwrap().iter().map(|panel| panel["gridPos"].to_string()).collect();
    places.sort();
    places.dedup();
    assert_eq!(places.len(), dashboard["panels"].as_array().unwrap().len(), "two panels in one place");
    let names: Vec<_> =
        dashboard["templating"]["list"].as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["datasource", "instance"]);
    queries
}

#[test]
#[ignore = "field: Prometheus"]
fn root_each_query_of_the_dashboard_has_data_in_a_real_prometheus() {
    skip_unless!(is_root() && instances().is_some() && is_installed("prometheus", "prometheus"));
    let (_machine, scratch) = machine_and_scratch("prometheus");
    let dir = scratch.path("m");
    let mut running = Running::start(&dir, "--above 1us --listen 127.0.0.1:0");
    let monitor = running.address();
    let config = format!(
        "global: {{scrape_interval: 1s, scrape_timeout: 1s}}\nscrape_configs:\n- {{job_name: punctual, static_configs: [{{targets: ['{monitor}']}}]}}\n"
    );
    let config = scratch.file("prometheus.yml", config);
    // A free port; another process could take it before Prometheus does.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut prometheus = Command::new("prometheus");
    prometheus
        .arg(format!("--config.file={}", config.display()))
        .arg(format!("--storage.tsdb.path={}", scratch.path("tsdb").display()));
    prometheus.arg(format!("--web.listen-address={port}")).env(MARK, mark());
    let mut prometheus = prometheus.start_silent();
    let query = |expression: &str| -> Value {
        let escaped: String = expression
            .bytes()
            .map(
                |byte| if byte.is_ascii_alphanumeric() { char::from(byte).to_string() } else { format!("%{byte:02X}") },
            )
            .collect();
        let Ok(mut stream) = TcpStream::connect(port) else { return Value::Null };
        if write!(stream, "GET /api/v1/query?query={escaped} HTTP/1.0\r\n\r\n").is_err() {
            return Value::Null;
        }
        let mut answer = String::new();
        let _ = stream.read_to_string(&mut answer);
        answer.split_once("\r\n\r\n").and_then(|(_, body)| serde_json::from_str(body).ok()).unwrap_or_default()
    };
    let rows = |answer: &Value| answer["data"]["result"].as_array().map_or(0, Vec::len);
    // Two scrapes and a window with an explained wake-up, which come sooner or later.
    for (title, expression) in queries() {
        let (mut last, until) = (Value::Null, n_windows(&dir) + ENOUGH);
        comes_true(|| {
            last = query(&expression);
            rows(&last) > 0 || last["status"] == "error" || n_windows(&dir) >= until
        });
        assert_ne!(last["status"], "error", "{title}: {expression}: {last}");
        let is_explained = || get(&monitor, "/metrics").contains("punctual_spikes_total{cause=\"");
        if rows(&last) == 0 && (rows(&query("count_over_time(up[10s]) >= 3")) == 0 || !is_explained()) {
            inconclusive("no late wake-up was explained, or Prometheus had no time to read the metrics");
            break;
        }
        assert!(rows(&last) > 0, "{title}: {expression}: {last}");
    }
    kill_and_wait(&mut prometheus);
    running.end(libc::SIGTERM);
}
