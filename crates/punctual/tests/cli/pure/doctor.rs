//! `punctual doctor` on this machine: output, exit status, and no changes.

use crate::program::{PROGRAM, punctual, run};
use serde_json::Value;

#[test]
fn the_exit_status_says_whether_anything_will_make_it_late() {
    let said = punctual("doctor --format json");
    assert_eq!(said.stderr, "");
    let document = said.json();
    crate::pure::schema::assert_conforms("doctor", &document);
    let will = document["totals"]["will"].as_u64().expect("a count");
    assert_eq!(said.status, if will > 0 { 2 } else { 0 });
    let checks = document["checks"].as_array().expect("a list");
    let total: u64 = document["totals"].as_object().unwrap().values().filter_map(Value::as_u64).sum();
    assert_eq!(u64::try_from(checks.len()).unwrap(), total);
    assert!(checks.len() >= 35);
    for check in checks {
        let severity = check["severity"].as_str().unwrap();
        assert!(check["remedy"].is_null() || matches!(severity, "will" | "may"), "{check}");
    }
    assert_eq!(document["fingerprint"].as_str().map(str::len), Some(16));
}

#[test]
fn one_check_is_explained_and_decides_alone() {
    let all = punctual("doctor --format json").json();
    for check in all["checks"].as_array().unwrap().iter().take(8) {
        let name = check["name"].as_str().unwrap();
        let said = punctual(&format!("doctor {name}"));
        assert!(said.stdout.starts_with(&format!("{name}: ")), "{said:?}");
        assert!(said.stdout.contains("\n  source  "), "{said:?}");
        assert_eq!(said.status, if check["severity"] == "will" { 2 } else { 0 }, "{said:?}");
    }
}

#[test]
fn it_writes_to_no_file() {
    if !std::path::Path::new("/usr/bin/strace").exists() {
        println!("skipped: needs strace");
        return;
    }
    let mut traced = std::process::Command::new("/usr/bin/strace");
    traced.args(["-f", "-qq", "-e", "trace=openat,open,creat,write,pwrite64,mknod,unlink", PROGRAM, "doctor"]);
    let said = run(&mut traced);
    let opened_to_write =
        |line: &&str| line.contains("O_WRONLY") || line.contains("O_RDWR") || line.contains("O_CREAT");
    let written = |line: &&str| line.contains("write(") && !line.contains("write(1,");
    let wrong: Vec<_> = said.stderr.lines().filter(|line| opened_to_write(line) || written(line)).collect();
    assert!(said.stderr.contains("openat(") && wrong.is_empty(), "{wrong:?}");
}
