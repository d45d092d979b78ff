//! Without privileges: what can be measured is, and the rest is named with the command that would allow it.

use crate::program::{PROGRAM, Said, Scratch, is_installed, is_root, machine, run};
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

/// `punctual ARGUMENTS` as the user nobody, in a directory of theirs.
fn as_nobody(scratch: &Scratch, arguments: &str) -> Said {
    let program = scratch.path("punctual");
    std::fs::copy(PROGRAM, &program).unwrap();
    std::fs::set_permissions(scratch.dir(), PermissionsExt::from_mode(0o777)).unwrap();
    let mut command = Command::new("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups", "--bounding-set=-all", "--inh-caps=-all"]);
    run(command.arg(program).args(arguments.split_whitespace()).current_dir(scratch.dir()))
}

#[test]
fn root_nobody_measures_normal_threads_and_is_told_what_the_rest_needs() {
    if !is_root() || !is_installed("setpriv", "util-linux") {
        return;
    }
    let _machine = machine();
    let scratch = Scratch::new("nobody");
    let said = as_nobody(&scratch, "run --wait --quick --format json --require max=1h --out run");
    let json = said.json();
    let policies: Vec<_> =
        json["cells"].as_array().unwrap().iter().map(|cell| cell["cell"]["policy"].clone()).collect();
    assert_eq!(policies, ["other", "other"]);
    assert_eq!(said.status, 3, "a requirement on cells that were skipped cannot be judged");
    let advice = format!("setcap cap_sys_nice,cap_ipc_lock+ep {}", scratch.path("punctual").display());
    assert!(said.stderr.contains(&advice), "{}", said.stderr);

    let refused = as_nobody(&scratch, "measure --wait --policy fifo:80 --duration 100ms");
    refused.expect_error(&format!(
        "nothing can be measured: fifo:80 needs CAP_SYS_NICE; run as root, or once, as root: {advice}"
    ));
}
