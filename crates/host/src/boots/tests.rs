//! Tests of boots on a recorded machine: kernels, entries of GRUB, sessions, the unit.

use super::common::{AFTER_PANIC, with_arguments};
use super::*;
use crate::testing::Scratch;
use punctual_model::InstalledKernel;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// What grub-mkconfig 2.06 of Debian 12 writes, shortened.
const CONFIGURATION: &str = include_str!("tests/grub.cfg");

fn kernel(text: &str) -> InstalledKernel {
    let kernel: punctual_model::Kernel = text.parse().unwrap();
    kernel.installed().unwrap().clone()
}

fn is_root() -> bool {
    punctual_sys::process::effective_user_id() == 0
}

fn machine() -> Scratch {
    let scratch = Scratch::make();
    scratch.file("boot/grub/grub.cfg", CONFIGURATION);
    scratch.file("boot/vmlinuz-6.1.0-13-amd64", "");
    scratch.file("boot/vmlinuz-6.1.0-13-rt-amd64", "");
    scratch.file("boot/vmlinuz-6.5.0", "");
    scratch.file("lib/modules/6.1.0-13-amd64/modules.dep", "");
    scratch.file("lib/modules/6.1.0-13-rt-amd64/modules.dep", "");
    scratch.file("proc/mounts", "/dev/sda1 / ext4 rw 0 0\ntmpfs /tmp tmpfs rw 0 0\n");
    scratch
}

#[test]
fn kernels_are_those_with_an_image_and_modules() {
    assert_eq!(installed_kernels(&machine().machine()), ["6.1.0-13-amd64", "6.1.0-13-rt-amd64"]);
}

#[test]
fn an_entry_of_grub_boots_the_kernel_with_its_arguments_and_leaves_the_rest_as_it_was() {
    let scratch = machine();
    let fs = scratch.machine();
    let asked = kernel("installed:6.1.0-13-amd64 isolcpus=1");
    assert_eq!(way_to_boot(&fs, &asked).unwrap(), BootWay::Grub);
    let custom = scratch.file("boot/grub/custom.cfg", "set timeout=3\n");
    for _ in 0..2 {
        grub::write_entry(&fs, &asked, &["threadirqs", "isolcpus=1", AFTER_PANIC]).unwrap();
        assert_eq!(
            fs::read_to_string(&custom).unwrap(),
            "set timeout=3\n\
             ### BEGIN punctual: removed by `punctual recover`\n\
             menuentry 'punctual: 6.1.0-13-amd64' --id punctual {\n\
             \tinsmod ext2\n\
             \tlinux /boot/vmlinuz-6.1.0-13-amd64 root=UUID=5c2f ro quiet isolcpus=1 panic=30\n\
             \tinitrd\t/boot/initrd.img-6.1.0-13-amd64\n\
             }\n\
             ### END punctual\n"
        );
    }
    assert_eq!(grub::forget(&fs).unwrap(), Some(custom.clone()));
    assert_eq!(fs::read_to_string(&custom).unwrap(), "set timeout=3\n");
    assert_eq!(grub::forget(&fs).unwrap(), None);
    fs::remove_file(&custom).unwrap();
    grub::write_entry(&fs, &asked, &[]).unwrap();
    grub::forget(&fs).unwrap();
    assert!(!custom.exists(), "a file that only we wrote is gone");
    assert_eq!(fs::read_to_string(scratch.path("boot/grub/grub.cfg")).unwrap(), CONFIGURATION);
}

#[test]
fn a_chosen_boot_is_taken_back_and_only_ours() {
    let scratch = machine();
    let fs = scratch.machine();
    scratch.file("proc/sys/kernel/random/boot_id", "this-boot\n");
    scratch.file("sys/kernel/kexec_loaded", "1\n");
    // Another program has loaded one since: the boot that the note names is over.
    let note = scratch.file("var/lib/punctual/kexec", "that-boot");
    assert_eq!((kexec::forget(&fs).unwrap(), kexec::forget(&fs).unwrap()), (Some(note), None));
    let environment = |content: &str| scratch.file("boot/grub/grubenv", content);
    let other = environment("# GRUB Environment Block\nnext_entry=other\n####");
    assert_eq!(grub::forget(&fs).unwrap(), None);
    assert!(fs::read_to_string(&other).unwrap().contains("next_entry=other"));
    let ours = environment(&format!("{:#<1024}", "# GRUB Environment Block\nsaved_entry=a\nnext_entry=punctual\n"));
    match grub::forget(&fs) {
        Ok(_) => assert!(fs::read_to_string(ours).unwrap().contains("saved_entry=a\n###")),
        Err(err) => assert!(err.to_string().contains("grub-editenv"), "{err}: it is not installed"),
    }
}

#[test]
fn what_the_administrator_wrote_is_kept_whatever_it_is() {
    let (scratch, asked) = (machine(), kernel("installed:6.1.0-13-amd64"));
    let fs = scratch.machine();
    let custom = scratch.file("boot/grub/custom.cfg", b"password_pbkdf2 \xff\n");
    fs::set_permissions(&custom, fs::Permissions::from_mode(0o600)).unwrap();
    grub::write_entry(&fs, &asked, &[]).unwrap();
    assert!(fs::read(&custom).unwrap().starts_with(b"password_pbkdf2 \xff\n### BEGIN punctual"));
    grub::forget(&fs).unwrap();
    let mode = fs::metadata(&custom).unwrap().permissions().mode() & 0o7777;
    assert_eq!((fs::read(&custom).unwrap(), mode), (b"password_pbkdf2 \xff\n".to_vec(), 0o600));
    // A file that cannot be read, also by root.
    fs::remove_file(&custom).unwrap();
    fs::create_dir(&custom).unwrap();
    assert!(grub::write_entry(&fs, &asked, &[]).is_err() && grub::forget(&fs).is_err() == is_root());
}

#[test]
fn what_cannot_boot_a_kernel_once_is_named() {
    let asked = kernel("installed:6.1.0-13-amd64");
    let why_not = |change: &dyn Fn(&Scratch)| {
        let scratch = machine();
        change(&scratch);
        way_to_boot(&scratch.machine(), &asked).unwrap_err().to_string()
    };
    let mounted = |line: &'static str| move |scratch: &Scratch| drop(scratch.file("proc/mounts", line));
    let without = |word: &'static str| {
        move |scratch: &Scratch| drop(scratch.file("boot/grub/grub.cfg", CONFIGURATION.replace(word, "")))
    };
    for (message, grub) in [
        (why_not(&without("6.1.0-13-amd64")), "no entry of /boot/grub/grub.cfg boots 6.1.0-13-amd64"),
        (why_not(&without("next_entry")), "/boot/grub/grub.cfg does not know grub-reboot"),
        (
            why_not(&without("custom.cfg")),
            "/boot/grub/grub.cfg does not read custom.cfg; install /etc/grub.d/41_custom",
        ),
        (
            why_not(&mounted("/dev/mapper/vg-root / ext4 rw 0 0\n")),
            "GRUB cannot write to /boot/grub (ext4 on /dev/mapper/vg-root), and would boot the kernel each time",
        ),
        (
            why_not(&mounted("/dev/sda1 / ext4 rw 0 0\n/dev/sda2 /boot btrfs rw 0 0\n")),
            "GRUB cannot write to /boot/grub (btrfs on /dev/sda2), and would boot the kernel each time",
        ),
        (why_not(&mounted("/dev/sda2 /boot ext4 ro,noatime 0 0\n")), "/boot (/dev/sda2) is mounted read-only"),
        (why_not(&|scratch| fs::remove_dir_all(scratch.path("boot/grub")).unwrap()), "no /boot/grub/grub.cfg"),
    ] {
        let kexec = "the running kernel has no kexec (CONFIG_KEXEC_FILE)";
        assert_eq!(message, format!("neither GRUB nor kexec can boot installed:6.1.0-13-amd64 here: {grub}; {kexec}"));
    }
    let no_grub = machine();
    fs::remove_dir_all(no_grub.path("boot/grub")).unwrap();
    no_grub.file("sys/kernel/kexec_loaded", "0\n");
    assert_eq!(way_to_boot(&no_grub.machine(), &asked).unwrap(), BootWay::Kexec);
    no_grub.file("proc/sys/kernel/kexec_load_disabled", "1\n");
    let message = way_to_boot(&no_grub.machine(), &asked).unwrap_err().to_string();
    assert!(message.ends_with("; kexec_load_disabled forbids kexec until the next boot"), "{message}");
}

#[test]
fn a_command_line_has_no_words_of_other_kernels_and_none_twice() {
    let asked = kernel("installed:6.1 threadirqs");
    let line = "root=/dev/sda1 ro nohz_full=1 panic=30 threadirqs";
    let words = with_arguments(line.split(' '), &asked, &["nohz_full=1", "threadirqs", AFTER_PANIC]);
    assert_eq!(words.join(" "), "root=/dev/sda1 ro threadirqs panic=30");
}

#[test]
fn sessions_of_others_are_found_and_services_are_none() {
    let scratch = machine();
    scratch.file("run/systemd/sessions/1", "UID=1000\nUSER=anna\nCLASS=user\n");
    scratch.file("run/systemd/sessions/2", "UID=1001\nUSER=ben\nCLASS=user\n");
    scratch.file("run/systemd/sessions/3", "UID=114\nUSER=sddm\nCLASS=greeter\n");
    scratch.file("run/systemd/sessions/2.ref", "");
    let fs = scratch.machine();
    assert_eq!((other_users(&fs, 1000), other_users(&fs, 0).len()), (vec!["ben".to_owned()], 2));
}

#[test]
fn a_run_that_a_boot_would_lose_is_known() {
    let fs = machine();
    let fs = fs.machine();
    assert_eq!(is_lost_by_a_boot(&fs, Path::new("/tmp/run")), Some("tmpfs".to_owned()));
    assert_eq!(is_lost_by_a_boot(&fs, Path::new("/root/run")), None);
}

#[test]
fn a_directory_that_another_user_can_change_is_found() {
    let scratch = Scratch::make();
    fs::create_dir(scratch.path("run")).unwrap();
    let open = fs::Permissions::from_mode(0o777);
    fs::set_permissions(scratch.dir(), open).unwrap();
    assert_eq!(
        changeable_by_others(&scratch.path("run")).unwrap().file_name(),
        scratch.dir().file_name().filter(|_| is_root()).or(Some("run".as_ref()))
    );
    assert_eq!(changeable_by_others(Path::new("/proc")), None);
}

#[test]
fn root_a_unit_goes_on_after_a_boot_and_leaves_nothing() {
    if !is_root() {
        return println!("skipped: needs root");
    }
    let scratch = machine();
    let fs = scratch.machine();
    let unit = |run: &str| {
        let words = ["run", "--out", run].map(str::to_owned);
        ResumeUnit { run: Path::new(run), words: &words }.install(&fs).map_err(|err| err.to_string())
    };
    assert!(unit("/srv/run").unwrap_err().contains("no systemd"));
    fs::create_dir_all(scratch.path("run/systemd/system")).unwrap();
    fs::create_dir_all(scratch.path("etc/systemd/system")).unwrap();
    for run in ["/srv/a\"b", "/srv/100%", "/srv/$x"] {
        assert!(unit(run).unwrap_err().contains("a unit of systemd cannot hold this name"), "{run}");
    }
    unit("/srv/my run").unwrap();
    unit("/srv/my run").unwrap();
    let text = fs::read_to_string(scratch.path("etc/systemd/system/punctual-resume.service")).unwrap();
    let start = "\nExecStart=/var/lib/punctual/punctual \"run\" \"--out\" \"/srv/my run\"\n";
    assert!(text.contains(start), "{text}");
    let link = scratch.path("etc/systemd/system/multi-user.target.wants/punctual-resume.service");
    assert_eq!(fs::read_link(&link).unwrap(), Path::new("/etc/systemd/system/punctual-resume.service"));
    let program = fs::metadata(scratch.path("var/lib/punctual/punctual")).unwrap();
    assert_eq!(program.permissions().mode() & 0o7777, 0o755);
    assert_eq!(forget_boots(&fs).unwrap().len(), 3);
    assert_eq!(forget_boots(&fs).unwrap().len(), 0);
}
