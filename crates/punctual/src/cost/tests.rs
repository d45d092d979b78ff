//! What moves memory moves all of it; tests of the program itself count the rest (tests/cli/cost.rs).

use super::*;
use rt::sys::clock;

/// The shortest time of several for `n` operations, ns.
fn shortest(ready: &mut Ready, n: u64) -> u64 {
    let time = |ready: &mut Ready| {
        let began = clock::monotonic();
        ready.operation.run(n).unwrap();
        clock::monotonic().0 - began.0
    };
    (0..5).map(|_| time(ready)).min().unwrap()
}

#[test]
fn sixteen_times_the_blocks_take_several_times_as_long() {
    for name in ["copy", "read", "write"] {
        let mut ready = memory::make(name).unwrap_or_else(|err| panic!("{name}: {err}"));
        // All of it is touched once before.
        shortest(&mut ready, 16);
        let (one, sixteen) = (shortest(&mut ready, 1), shortest(&mut ready, 16));
        assert!(sixteen > 4 * one, "{name}: 1 in {one} ns, 16 in {sixteen} ns");
    }
}

#[test]
fn errors_say_what_to_do_and_what_is_missing_is_no_error() {
    let of = |errno| worded(io::Error::from_raw_os_error(errno));
    assert!(matches!(of(libc::ENOSYS), NotReady::Missing(why) if why.starts_with("this kernel has none")));
    assert!(matches!(of(libc::ENETUNREACH), NotReady::Missing(why) if why.starts_with("no loopback device")));
    assert!(of(libc::EMFILE).to_string().ends_with("raise `ulimit -n` to 256"));
    assert!(of(libc::EAGAIN).to_string().ends_with("raise `ulimit -u`"));
}
