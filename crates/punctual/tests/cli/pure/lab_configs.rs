//! Build configurations of kernels: like for like or not, and files that are damaged or never end.

use crate::program::{ProgramOutput, is_installed, run, skip_unless};
use crate::pure::lab_kernels::{CONFIG, System, expect_line, vmlinux};
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

const HEAD: &str = "#\n# Automatically generated file; DO NOT EDIT.\n# Linux/x86 6.12.117 Kernel Configuration\n#\n";
const LEAN: &str = "CONFIG_HZ=250\nCONFIG_EXT4_FS=y\n";

fn config(more: &str) -> String {
    format!("{HEAD}{LEAN}{more}\n")
}

/// The data, compressed by gzip(1).
fn gzip(content: &[u8]) -> Vec<u8> {
    let mut child = Command::new("gzip").arg("-c").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let content = content.to_owned();
    let writer = std::thread::spawn(move || stdin.write_all(&content));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    output.stdout
}

/// A vmlinux with this data where `CONFIG_IKCONFIG` puts the configuration.
fn with_data(data: &[u8]) -> Vec<u8> {
    [&vmlinux(62, true, 0), b"IKCFG_ST".as_slice(), data, b"IKCFG_ED"].concat()
}

/// A bzImage with this payload.
fn bzimage(payload: &[u8]) -> Vec<u8> {
    let mut kernel = vec![0; 3 * 512];
    kernel[0x1f1] = 2;
    kernel[0x202..0x206].copy_from_slice(b"HdrS");
    (kernel[0x206], kernel[0x207], kernel[0x236]) = (0x0f, 0x02, 1);
    kernel[0x24c..0x250].copy_from_slice(&u32::try_from(payload.len()).unwrap().to_le_bytes());
    [&kernel, payload].concat()
}

fn check(system: &System, a: &Path, b: &Path, more: &str) -> ProgramOutput {
    run(system.command(&format!("lab check-config {more}")).arg(a).arg(b))
}

/// The last line of the text.
fn answer(said: &ProgramOutput) -> &str {
    said.stdout.lines().last().unwrap_or_default()
}

#[test]
fn kernels_are_like_for_like_or_what_differs_is_named() {
    let system = System::new("configs-like");
    let none = system.scratch.file("none.config", config("CONFIG_PREEMPT_NONE=y\nCONFIG_TINY_RCU=y"));
    let rt = config("CONFIG_PREEMPT_RT=y\nCONFIG_TREE_RCU=y\nCONFIG_LOCALVERSION=\"-rt\"");
    let embedded = system.scratch.file("vmlinux-rt", with_data(&gzip(rt.as_bytes())));
    let packed = system.scratch.file("bzImage-rt", bzimage(&gzip(&with_data(&gzip(rt.as_bytes())))));
    let beside = system.scratch.file("vmlinux-beside", vmlinux(62, true, 0));
    system.scratch.file("config-beside", &rt);
    let compressed = system.scratch.file("config.gz", gzip(rt.as_bytes()));
    for rt in [&embedded, &packed, &beside, &compressed] {
        let said = check(&system, &none, rt, "");
        assert_eq!((said.status, said.stderr.as_str()), (0, ""), "{said:?}");
        assert!(answer(&said).starts_with("LIKE FOR LIKE but for the preemption model"), "{said:?}");
        assert_eq!(answer(&check(&system, rt, rt, "")), "LIKE FOR LIKE: both are built alike.");
    }

    let debug = config("CONFIG_PREEMPT_RT=y\nCONFIG_PROVE_LOCKING=y\nCONFIG_E1000=m").replace("HZ=250", "HZ=1000");
    let debug = system.scratch.file("debug.config", debug);
    let said = check(&system, &none, &debug, "--format json");
    assert_eq!(said.status, 2, "{said:?}");
    crate::pure::schema::assert_conforms("lab-check-config", &said.json());
    let json = said.json();
    let expected = "NOT LIKE FOR LIKE: timers and ticks (HZ: 250 and 1000), debugging (PROVE_LOCKING: not set and y), \
                    1 other option";
    assert_eq!(json["sentence"], expected);
    assert_eq!(json["kernels"][0]["version"], "6.12.117");
    let options: Vec<_> = json["options"].as_array().unwrap().iter().map(|one| one["option"].clone()).collect();
    assert_eq!(options, ["PREEMPT_NONE", "PREEMPT_RT", "TINY_RCU", "HZ", "PROVE_LOCKING", "E1000"]);

    let newer = system.scratch.file("newer.config", config("").replace("6.12.117", "6.18.1"));
    let said = check(&system, &none, &newer, "");
    assert!(said.stdout.contains("NOT LIKE FOR LIKE: version (6.12.117 and 6.18.1)"), "{said:?}");
}

#[test]
fn a_kernel_without_configuration_leaves_it_open() {
    let system = System::new("configs-unknown");
    let known = system.scratch.file("known.config", config(""));
    let unknown = system.scratch.file("vmlinux", vmlinux(62, true, 0));
    let said = check(&system, &known, &unknown, "");
    assert_eq!((said.status, said.stderr.as_str()), (3, ""), "{said:?}");
    assert!(said.stdout.contains("CANNOT TELL: no configuration of B"), "{said:?}");
    let said = check(&system, &unknown, &known, "--format json");
    assert_eq!(said.status, 3, "{said:?}");
    crate::pure::schema::assert_conforms("lab-check-config", &said.json());
    assert_eq!((&said.json()["options"], &said.json()["likeness"]["kind"]), (&().into(), &"unknown".into()));
}

#[test]
fn the_running_kernel_is_one_of_two() {
    let system = System::new("configs-running");
    let lean = system.scratch.file("root/proc/config.gz", gzip(config("").as_bytes()));
    let mut command = system.command("lab check-config running");
    let said = run(command.arg(&lean).env("PUNCTUAL_ROOT", system.scratch.path("root")));
    assert_eq!(said.status, 0, "{said:?}");
    assert!(said.stdout.contains("A  running: Linux 6.12.117, 2 options, /proc/config.gz"), "{said:?}");
    let empty = run(system.command("lab check-config running running").env("PUNCTUAL_ROOT", system.scratch.path("no")));
    assert_eq!(empty.status, 3, "{empty:?}");
}

#[test]
fn a_package_keeps_its_configuration_in_the_cache() {
    skip_unless!(is_installed("dpkg-deb", "dpkg"));
    let system = System::new("configs-package");
    let package = system.package_with("k.deb", &vmlinux(62, true, 0), "true");
    let same = system.scratch.file("same.config", CONFIG);
    let said = check(&system, &package, &same, "");
    assert_eq!(said.status, 0, "{said:?}");
    let text = said.stdout;
    assert!(text.contains("/cache/punctual/kernels/deb-") && text.contains("/config"), "{text}");

    // An entry from before configurations were kept is built again, as is one with a damaged configuration.
    let name = system.cached().into_iter().find(|name| name.starts_with("deb-")).unwrap();
    let kept = system.scratch.path(&format!("cache/punctual/kernels/{name}"));
    let metadata = std::fs::read_to_string(kept.join("kept.json")).unwrap();
    let mut before: serde_json::Value = serde_json::from_str(&metadata).unwrap();
    before.as_object_mut().unwrap().remove("config");
    for (file, content) in [("kept.json", before.to_string()), ("config", "CONFIG_PREEMPT_RT=y\n".to_owned())] {
        std::fs::write(kept.join(file), content).unwrap();
        let said = check(&system, &package, &same, "");
        assert_eq!(said.status, 0, "{said:?}");
        assert!(said.stderr.contains("has no configuration; building it again"), "{said:?}");
        assert_eq!(std::fs::read_to_string(kept.join("config")).unwrap(), CONFIG);
        assert_eq!(check(&system, &package, &same, "").stderr, "");
    }
    // It comes back when its package cannot be unpacked again.
    std::fs::write(kept.join("kept.json"), before.to_string()).unwrap();
    system.program("dpkg-deb", "echo broken >&2; exit 2");
    let said = check(&system, &package, &same, "");
    assert!(said.status == 1 && said.stderr.contains("broken"), "{said:?}");
    assert!(kept.join("vmlinuz").is_file() && system.cached().contains(&name), "{:?}", system.cached());
}

#[test]
fn a_package_without_configuration_leaves_it_open() {
    skip_unless!(is_installed("dpkg-deb", "dpkg"));
    let system = System::new("configs-absent");
    let same = system.scratch.file("same.config", CONFIG);
    let without = system.package_with("without.deb", &vmlinux(62, true, 1), "rm boot/config-*");
    let said = check(&system, &without, &same, "");
    assert_eq!((said.status, said.stderr.as_str()), (3, ""), "{said:?}");
}

#[test]
fn files_that_are_damaged_or_never_end_are_one_line() {
    let system = System::new("configs-hostile");
    let known = system.scratch.file("known.config", config(""));
    let packed = gzip(config("").as_bytes());
    let bomb = gzip(&[b"# ".as_slice(), &vec![b'x'; 64 << 20]].concat());
    for (name, content, expected) in [
        ("cut", with_data(&packed[..20]), "configuration in it: damaged gzip data"),
        ("bomb", with_data(&bomb), "configuration in it: larger than 4 MiB"),
        ("bomb.gz", bomb, "larger than 4 MiB"),
        ("cut.gz", packed[..packed.len() - 4].to_vec(), "damaged gzip data"),
        ("binary", vec![0xff; 100], "expected a kernel (bzImage, vmlinux, Image) or a configuration (.config)"),
        ("comment", b"# nothing\n".to_vec(), "expected the configuration of a kernel, with lines like CONFIG_HZ=250"),
    ] {
        let path = system.scratch.file(name, content);
        let said = check(&system, &known, &path, "");
        expect_line(&said, &format!("{}: {expected}", path.display()));
    }
    let fifo = system.scratch.path("fifo");
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    for (path, expected) in [
        (Path::new("/dev/zero"), "expected a regular file"),
        (fifo.as_path(), "expected a regular file"),
        (system.scratch.dir(), "expected a regular file"),
        (Path::new("/nowhere/bzImage"), "No such file or directory"),
        (Path::new("runing"), "unknown kernel `runing`"),
    ] {
        let said = check(&system, &known, path, "");
        assert!(said.status == 1 && said.stderr.contains(expected), "{said:?}");
    }
}
