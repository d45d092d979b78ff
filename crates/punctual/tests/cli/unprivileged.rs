//! Without privileges: what can be measured is, and the rest is named with the command that would allow it.

use crate::program::{Scratch, UNPRIVILEGED, is_installed, is_root, machine, run, wrapped};

#[test]
fn root_nobody_measures_normal_threads_and_is_told_what_the_rest_needs() {
    if !is_root() || !is_installed("setpriv", "util-linux") {
        return;
    }
    let _machine = machine();
    let scratch = Scratch::new("nobody");
    let said = run(&mut wrapped(&scratch, UNPRIVILEGED, "run --wait --quick --format json --require max=1h --out run"));
    let json = said.json();
    let policies: Vec<_> =
        json["cells"].as_array().unwrap().iter().map(|cell| cell["cell"]["policy"].clone()).collect();
    assert_eq!(policies, ["other", "other"]);
    assert_eq!(said.status, 3, "a requirement on cells that were skipped cannot be judged");
    let advice = format!("setcap cap_sys_nice,cap_ipc_lock+ep {}", scratch.path("punctual").display());
    assert!(said.stderr.contains(&advice), "{}", said.stderr);

    let refused = run(&mut wrapped(&scratch, UNPRIVILEGED, "measure --wait --policy fifo:80 --duration 100ms"));
    refused.expect_error(&format!(
        "nothing can be measured: fifo:80 needs CAP_SYS_NICE; run as root, or once, as root: {advice}"
    ));
}
