//! Latency of responses over wires: the kernel's own drivers in a guest, on simulated chips wired to each other.

use crate::guest::lab_explain::build_modules;
use crate::guest::vm::{self, Clock, INIT, run_seeded};
use crate::program::{Scratch, entries};
use punctual_model::TargetRecord;
use std::path::{Path, PathBuf};

/// A kernel with drivers for such chips, `boot/vmlinuz-RELEASE` beside `lib/modules/RELEASE`; prints that the test is
/// skipped and returns `None` without one.
fn kernel() -> Option<PathBuf> {
    vm::kernel()?;
    let kernel = std::env::var_os("PUNCTUAL_TEST_DEVICE_KERNEL").map(PathBuf::from);
    if kernel.is_none() {
        eprintln!("skipped: needs PUNCTUAL_TEST_DEVICE_KERNEL=/path/boot/vmlinuz-RELEASE with ../lib/modules/RELEASE");
    }
    kernel
}

/// Builds the module of `tests/wires` with this name in its own directory.
fn built(scratch: &Scratch, kernel: &Path, name: &str) -> Option<PathBuf> {
    let dir = scratch.path(&format!("{name}-built"));
    std::fs::create_dir(&dir).unwrap();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/wires").join(format!("{name}.c"));
    std::fs::copy(source, dir.join(format!("{name}.c"))).unwrap();
    std::fs::write(dir.join("Makefile"), format!("obj-m := {name}.o\n")).unwrap();
    build_modules(&dir, kernel)?;
    Some(dir.join(format!("{name}.ko")))
}

/// Console output of a guest.
pub(crate) struct GuestOutput(String);

/// Shell functions of a guest: `try NAME ARGUMENTS` runs this program to its end, `respond NAME ARGUMENTS` starts a
/// responder in the background, `ended` waits for it, `try_as_user` is `try` without privileges; all print the result,
/// as one of `$part`.
const FUNCTIONS: &str = r#"
said() {
  echo "$part/$1 status: $2"; echo "$part/$1 out: $(/busybox tr -d '\n' <$1.out)"
  echo "$part/$1 err: $(/busybox tail -n 1 $1.err)"
}
try() { name=$1; shift; /punctual "$@" >$name.out 2>$name.err; said $name $?; }
respond() {
  target=$1; shift; /punctual respond "$@" --format json >$target.out 2>$target.err &
  until /busybox grep -q 'answering on' $target.err; do /busybox sleep 0.1; done
}
ended() { wait $!; said $target $?; }
try_as_user() {
  /busybox mkdir -p /etc /bin; /busybox cp /busybox /bin/sh; echo 'user:x:1000:1000::/tmp:/bin/sh' >/etc/passwd; /busybox chmod 777 /tmp
  name=$1; shift; /busybox su user -c "/punctual $*" >$name.out 2>$name.err; said $name $?
}
"#;

/// Links over a simulated chip: a test's module of `tests/wires`, the kernel's own modules that it needs, below
/// `kernel/drivers`, and the shell script that tries them.
pub(crate) struct Part<'a> {
    pub(crate) module: &'static str,
    pub(crate) own: &'static [&'static str],
    pub(crate) script: &'a str,
}

/// Boots a guest with the modules of all parts and runs their scripts in it; returns what each said.
pub(crate) fn guest<const N: usize>(parts: [Part<'_>; N], clock: Clock) -> Option<[GuestOutput; N]> {
    let kernel = kernel()?;
    let (scratch, modules) = (Scratch::new("wires-files"), Scratch::new("wires"));
    let release = kernel.file_name().unwrap().to_str().unwrap().strip_prefix("vmlinuz-").unwrap();
    let drivers = kernel.parent().unwrap().join(format!("../lib/modules/{release}/kernel/drivers"));
    let mut init = format!("{INIT}{FUNCTIONS}cd /tmp; echo\n");
    for Part { module, own, script } in &parts {
        let paths = own.iter().map(|path| drivers.join(path)).chain([built(&modules, &kernel, module)?]);
        for path in paths {
            let name = path.file_name().unwrap().to_str().unwrap();
            std::fs::copy(&path, scratch.path(name)).unwrap_or_else(|err| panic!("{path:?}: {err}"));
            init += &format!("/busybox insmod /{name}\n");
        }
        init += &format!("part={module}\n{script}\n");
    }
    init += "/busybox poweroff -f\n";
    let said = vm::boot(&scratch, &kernel, &init, clock);
    Some(parts.map(|part| {
        let begin = format!("{}/", part.module);
        let lines = said.lines().filter_map(|line| line.trim().strip_prefix(&begin));
        let lines: Vec<_> = lines.collect();
        assert!(!lines.is_empty(), "nothing of {begin} in {said}");
        GuestOutput(lines.join("\n"))
    }))
}

impl GuestOutput {
    /// The result `what` of `name`: status, out or err.
    #[track_caller]
    fn line(&self, name: &str, what: &str) -> &str {
        let begin = format!("{name} {what}: ");
        let line = self.0.lines().find_map(|line| line.trim().strip_prefix(&begin));
        line.unwrap_or_else(|| panic!("no `{begin}` in {}", self.0)).trim()
    }

    #[track_caller]
    fn json(&self, name: &str, schema: &str) -> serde_json::Value {
        assert_eq!(self.line(name, "status"), "0", "{}", self.line(name, "err"));
        let json = serde_json::from_str(self.line(name, "out")).unwrap();
        crate::pure::schema::assert_conforms(schema, &json);
        json
    }

    /// The summary of the only cell of the measurement `name`.
    #[track_caller]
    fn summary(&self, name: &str) -> serde_json::Value {
        self.json(name, "show")["cells"][0]["summary"].clone()
    }

    /// The record of the target `name`.
    #[track_caller]
    fn target(&self, name: &str) -> TargetRecord {
        serde_json::from_value(self.json(name, "respond")).unwrap()
    }

    /// What a logger and a target say of their exchange, checked: it adds up, and no trigger was lost on the way.
    #[track_caller]
    pub(crate) fn exchange(&self, logger: &str, target: &str) -> (serde_json::Value, TargetRecord) {
        let (seen, record) = (self.summary(logger), self.target(target));
        let response = |key: &str| seen["response"][key].as_u64().unwrap();
        assert_eq!(response("lost"), 0, "{seen:#}");
        assert_eq!(Some(response("unsent")), seen["missed"].as_u64(), "{seen:#}");
        assert!(seen["min_ns"].as_i64() > Some(0), "{seen:#}");
        // The target also answered the triggers of the warm-up.
        assert!(record.triggers >= response("triggers"), "{seen:#} {record:?}");
        assert_eq!((record.answered, record.own.n), (record.triggers - record.too_soon, record.answered), "{record:?}");
        assert_eq!((record.foreign, record.duplicate, record.line_errors), (0, 0, None), "{record:?}");
        assert_eq!(record.achieved.policy.to_string(), "fifo:80");
        (seen, record)
    }

    #[track_caller]
    fn expect_error(&self, name: &str, expected: &str) {
        let said = (self.line(name, "status"), self.line(name, "err"));
        assert_eq!(said, ("1", format!("punctual: {expected}").as_str()));
    }
}

/// Asserts that a target has answered each of 100 triggers of a logger.
#[track_caller]
fn expect_exchange(said: &GuestOutput, logger: &str, target: &str) -> (serde_json::Value, TargetRecord) {
    let (seen, record) = said.exchange(logger, target);
    assert_eq!((&seen["samples"], &seen["missed"], &seen["response"]["unsent"]), (&100.into(), &0.into(), &0.into()));
    (seen, record)
}

const MEASURE: &str =
    "measure response --policy fifo:80 --cpus 0 --period 20ms --warm-up 200ms --duration 2s --format json --to";
const RESPOND: &str = "--policy fifo:80 --cpu 0 --until-silent 5s --on";

#[test]
fn vm_edges_and_interrupts_of_wires_are_answered() {
    let [gpio, parport, uio] = [gpio_script(), parport_script(), uio_script()];
    let parts = [
        Part { module: "wired_gpio", own: &[], script: &gpio },
        Part { module: "wired_parport", own: &["parport/parport.ko", "char/ppdev.ko"], script: &parport },
        Part { module: "ticking_uio", own: &["uio/uio.ko"], script: &uio },
    ];
    let Some([gpio, parport, uio]) = guest(parts, Clock::Virtual) else { return };
    expect_gpio_answers(&gpio);
    expect_parport_answers(&parport);
    expect_uio_answers(&uio);
}

fn gpio_script() -> String {
    format!(
        "respond target {RESPOND} gpio:gpiochip0/2,3\n\
         try held {MEASURE} gpio:gpiochip0/2,5\n\
         try logger {MEASURE} gpio:gpiochip0/0,1\n\
         ended\n\
         try nobody {MEASURE} gpio:gpiochip0/0,1\n\
         try loop {MEASURE} gpio-loop:gpiochip0/4,5\n\
         try unwired {MEASURE} gpio-loop:gpiochip0/0,5\n\
         try taken {MEASURE} gpio:gpiochip0/7,1\n\
         try beyond {MEASURE} gpio:gpiochip0/0,8\n\
         try mute {MEASURE} gpio:gpiochip0/6,1\n\
         try deaf {MEASURE} gpio:gpiochip0/0,2\n\
         try null {MEASURE} gpio:null/0,1\n\
         try absent {MEASURE} gpio:gpiochip9/0,1\n\
         try_as_user denied respond --on gpio:gpiochip0/2,3\n\
         try loops respond --on gpio-loop:gpiochip0/4,5\n\
         try peer respond --on gpio:gpiochip0/2,3 --peer here\n\
         respond killed {RESPOND} gpio:gpiochip0/2,3\n\
         (until /busybox grep -q ' max ' silent.err; do /busybox sleep 0.1; done; /busybox kill -9 $!) &\n\
         try silent measure response --to gpio:gpiochip0/0,1 --duration 1min\n"
    )
}

#[track_caller]
fn expect_gpio_answers(said: &GuestOutput) {
    let (seen, record) = expect_exchange(said, "logger", "target");
    // From the kernel's time stamps of edges: on both sides, the interval from interrupt to thread.
    let parts = seen["response"]["parts"].as_array().unwrap();
    let of = |part: usize, key: &str| parts[part][key].as_i64();
    assert_eq!((of(0, "n"), of(1, "n"), of(2, "n")), (Some(0), seen["samples"].as_i64(), seen["samples"].as_i64()));
    assert!(of(1, "min_ns") > Some(0) && of(2, "min_ns") > Some(0), "{parts:?}");
    assert!(of(1, "max_ns") <= seen["max_ns"].as_i64() && of(2, "max_ns") <= seen["max_ns"].as_i64(), "{seen:#}");
    let waking = record.waking.as_ref().unwrap();
    assert!(waking.n == record.triggers && waking.min_ns > Some(0), "{record:?}");

    let seen = said.summary("loop");
    assert_eq!((&seen["samples"], &seen["response"]["own"]), (&100.into(), &serde_json::Value::Null));

    said.expect_error(
        "held",
        "gpio:gpiochip0/2,5: line 2 is used by `punctual`; free it, or name another (gpioinfo lists them)",
    );
    said.expect_error(
        "nobody",
        "gpio:gpiochip0/0,1: timeout: no answer within 3s; is `punctual respond --on gpio:CHIP/IN,OUT` running on the peer, \
         and OUT of each end wired to IN of the other?",
    );
    said.expect_error("unwired", "gpio-loop:gpiochip0/0,5: timeout: no answer within 3s; is line 5 wired to line 0?");
    said.expect_error(
        "taken",
        "gpio:gpiochip0/7,1: line 7 is used by `panel reset`; free it, or name another (gpioinfo lists them)",
    );
    said.expect_error("beyond", "gpio:gpiochip0/0,8: invalid line 8: gpiochip0 has lines 0 to 7");
    let refused = |input, output| {
        format!(
            "gpio:gpiochip0/{input},{output}: cannot request line {input} as an input with an interrupt and line {output} as an output: "
        )
    };
    for (name, input, output) in [("mute", 6, 1), ("deaf", 0, 2)] {
        assert!(said.line(name, "err").contains(&refused(input, output)), "{}", said.line(name, "err"));
        assert_eq!(said.line(name, "status"), "1");
    }
    said.expect_error("null", "gpio:null/0,1: /dev/null is not a GPIO chip");
    said.expect_error("absent", "gpio:gpiochip9/0,1: cannot open it: No such file or directory (os error 2)");
    said.expect_error(
        "denied",
        "gpio:gpiochip0/2,3: cannot open it: Permission denied (os error 13); run as root, or join the group that owns it (gpio)",
    );
    said.expect_error(
        "loops",
        "gpio-loop:gpiochip0/4,5 needs no responder; measure it with: punctual measure response --to gpio-loop:gpiochip0/4,5",
    );
    said.expect_error("peer", "gpio:gpiochip0/2,3: a wire has one peer; leave --peer out");
    said.expect_error("silent", "gpio:gpiochip0/0,1 has stopped answering: no answer to any trigger of the last 3s");
}

fn parport_script() -> String {
    format!(
        "respond target {RESPOND} parport:/dev/parport1\n\
         try held {MEASURE} parport:/dev/parport1\n\
         try logger {MEASURE} parport:/dev/parport0\n\
         ended\n\
         try nobody {MEASURE} parport:/dev/parport0\n\
         try mute {MEASURE} parport:/dev/parport2\n\
         try null {MEASURE} parport:/dev/null\n\
         try absent respond --on parport:/dev/parport3\n\
         try_as_user denied respond --on parport:/dev/parport1\n"
    )
}

#[track_caller]
fn expect_parport_answers(said: &GuestOutput) {
    let (seen, record) = expect_exchange(said, "logger", "target");
    assert_eq!(
        (&seen["response"]["parts"], record.waking),
        (&serde_json::Value::Null, None),
        "a port has no time stamps"
    );
    said.expect_error("held", "parport:/dev/parport1: cannot claim it: used by ppdev1; unload or stop the user");
    said.expect_error(
        "nobody",
        "parport:/dev/parport0: timeout: no answer within 3s; is `punctual respond --on parport:/dev/parportN` running on the \
         peer, and pin 2 of each wired to pin 10 of the other?",
    );
    said.expect_error(
        "mute",
        "parport:/dev/parport2: the port has no interrupt; load its driver with one: modprobe parport_pc io=0x378 irq=7",
    );
    said.expect_error("null", "parport:/dev/null: /dev/null is not a parallel port (ppdev)");
    said.expect_error(
        "denied",
        "parport:/dev/parport1: cannot open it: Permission denied (os error 13); run as root, or join the group that owns it (lp)",
    );
    said.expect_error("absent", "parport:/dev/parport3: cannot open it: No such file or directory (os error 2)");
}

fn uio_script() -> String {
    format!(
        "respond target {RESPOND} uio:/dev/uio0 --for 4s\n\
         ended\n\
         try logger {MEASURE} uio:/dev/uio0\n\
         try mute respond --on uio:/dev/uio1\n\
         try foreign respond --on uio:/dev/uio2\n\
         try null respond --on uio:/dev/null\n\
         try absent respond --on uio:/dev/uio3\n\
         try_as_user denied respond --on uio:/dev/uio0\n"
    )
}

#[track_caller]
fn expect_uio_answers(said: &GuestOutput) {
    let record = said.target("target");
    // Each interrupt was answered before the next; one in a hundred arrives with another and counts as missed. More
    // interrupts arrive during shutdown.
    assert!(record.answered > 200 && (record.answered..record.answered + 100).contains(&record.triggers), "{record:?}");
    assert!(record.missed.abs_diff(record.triggers / 100) <= 2, "{record:?}");
    assert!(record.own.n == record.answered && record.own.min_ns > Some(0) && record.waking.is_none(), "{record:?}");
    said.expect_error(
        "logger",
        "unsupported: uio:/dev/uio0 as a link, whose interrupts have no known due times; measure its answers with: punctual \
         respond --on uio:/dev/uio0",
    );
    said.expect_error("mute", "uio:/dev/uio1: the device has no interrupt");
    said.expect_error(
        "foreign",
        "uio:/dev/uio2: unsupported: uio_pci_generic masks each interrupt until a program for the device has acknowledged it; \
         use a driver that acknowledges interrupts itself",
    );
    said.expect_error("null", "uio:/dev/null: /dev/null is not a UIO device");
    said.expect_error(
        "denied",
        "uio:/dev/uio0: cannot open it: Permission denied (os error 13); run as root, or get permission from its owner",
    );
    said.expect_error("absent", "uio:/dev/uio3: cannot open it: No such file or directory (os error 2)");
}

#[test]
fn vm_a_gpio_line_wired_to_another_is_exact_in_virtual_time() {
    let Some(kernel) = kernel() else { return };
    let scratch = Scratch::new("lab-gpio-loop");
    let Some(module) = built(&scratch, &kernel, "wired_gpio") else { return };
    let kernel = format!("{} modules={}", kernel.display(), module.display());
    let plan = scratch.file(
        "loop.toml",
        format!(
            "repetitions = 1\nduration = \"100ms\"\nwarm_up = \"20ms\"\n[axes]\nkernel = [\"{kernel}\"]\n\
             load = [\"pipe\"]\npolicy = [\"fifo:90\"]\nperiod = [\"1ms\"]\nmethod = [\"response:gpio-loop:gpiochip0/4,5\"]\n"
        ),
    );
    let [once, again] = ["once", "again"].map(|name| {
        let run = scratch.path(name);
        run_seeded(plan.to_str().unwrap(), &run);
        entries(&run)
    });
    assert!(once == again, "virtual time has no chance in it");
    let record = &once[0].record;
    let (thread, response) = (&record.threads[0], record.response.as_ref().unwrap());
    assert_eq!((thread.recorded, thread.missed, response.triggers, response.foreign), (100, 0, 100, 0), "{thread:?}");
    let parts = response.parts.as_ref().unwrap();
    assert_eq!((parts.sending.n, parts.away.n, parts.waking.n), (0, 100, 100), "{parts:?}");
    assert!(parts.away.min_ns > Some(0) && parts.away.max_ns < thread.histogram.max_ns, "{parts:?} {thread:?}");
}
