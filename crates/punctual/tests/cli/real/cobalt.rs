//! Threads and the driver of Cobalt on a kernel without it.

use crate::program::{machine, punctual, skip_unless};

fn has_no_cobalt() -> bool {
    let has_cobalt = std::path::Path::new("/proc/xenomai").exists();
    if has_cobalt {
        eprintln!("skipped: needs a kernel without Cobalt");
    }
    !has_cobalt
}

#[test]
fn root_a_kernel_without_cobalt_says_so() {
    skip_unless!(has_no_cobalt());
    let _machine = machine();
    let said = punctual("measure cobalt --policy fifo:80 --duration 100ms --wait");
    let last = said.stderr.trim_end().lines().last().unwrap_or_default().to_owned();
    assert_eq!(said.status, 1, "{}", said.stderr);
    let may_not = last.contains("locked memory") || last.contains("CAP_SYS_NICE");
    assert!(may_not || last.contains("this kernel has no Cobalt; boot one of Xenomai 3.2 or 3.3"), "{last}");
}

#[test]
fn root_a_kernel_without_the_driver_of_cobalt_says_so() {
    skip_unless!(has_no_cobalt());
    let _machine = machine();
    for method in ["cobalt:kernel", "cobalt:handler"] {
        let said = punctual(&format!("measure {method} --policy fifo:80 --cpus 0 --duration 1s --wait"));
        let last = said.stderr.trim_end().lines().last().unwrap_or_default().to_owned();
        assert_eq!(said.status, 1, "{}", said.stderr);
        let is_expected =
            last.contains("this kernel has no Cobalt; boot one of Xenomai") || last.contains("CAP_SYS_NICE");
        assert!(is_expected, "{last}");
    }
}
