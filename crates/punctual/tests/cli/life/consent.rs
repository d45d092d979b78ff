//! Programs of a plan of another user run only with consent, and so does a flood of another machine.

use crate::program::{
    PROGRAM, ProgramOutput, Scratch, a_cpu_and_the_others, command, install, is_installed, is_root,
    machine_and_scratch, punctual, run, set_mode, skip_unless,
};
use std::fs::{File, Permissions};
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A plan of one short cell that runs a command.
const PLAN: &str = "repetitions = 1\nduration = \"100ms\"\n[loads]\nquiet = \"cmd:sleep 60\"\n\
                    [axes]\nload = [\"quiet\"]\npolicy = [\"other\"]\n";

/// Makes a file that only its owner may write, whatever the umask.
fn own(plan: PathBuf) -> PathBuf {
    set_mode(&plan, 0o644);
    set_mode(plan.parent().unwrap(), 0o755);
    plan
}

/// Runs `punctual run` of a plan into a new directory `out`, with more `options`.
fn run_plan(scratch: &Scratch, plan: &Path, out: &str, options: &str) -> ProgramOutput {
    run(run_command(scratch, out, options).arg(plan))
}

fn run_command(scratch: &Scratch, out: &str, options: &str) -> Command {
    let mut command = command(&format!("run --wait {options} --out"));
    command.arg(scratch.path(out));
    command
}

/// The user as which programs run, as messages name it.
fn actor() -> String {
    let user = sys::process::effective_user_id();
    if user == 0 { "as root".to_owned() } else { format!("as user {user}") }
}

#[track_caller]
fn expect_run(said: &ProgramOutput, from: &Path) {
    assert_eq!(said.status, 0, "{said:?}");
    let told = said.stderr.lines().filter(|line| line.contains(" runs as ")).collect::<Vec<_>>();
    assert_eq!(told, [format!("punctual: {} runs {}: cmd:sleep 60", from.display(), actor())]);
}

#[track_caller]
fn expect_refusal(said: &ProgramOutput, from: &Path, why: &str) {
    assert_eq!((said.status, said.stderr.lines().count(), said.stdout.as_str()), (1, 1, ""), "{said:?}");
    let begin = format!("punctual: {} would run `cmd:sleep 60` as ", from.display());
    assert!(said.stderr.starts_with(&begin), "{said:?}");
    assert!(said.stderr.ends_with(&format!(", and {why}; read it, then add --yes\n")), "{said:?}");
}

#[test]
fn a_plan_writable_by_others_runs_no_program_without_yes() {
    let (_machine, scratch) = machine_and_scratch("consent");
    let plan = own(scratch.file("plan.toml", PLAN));
    expect_run(&run_plan(&scratch, &plan, "own", ""), &plan);

    set_mode(&plan, 0o646);
    expect_refusal(&run_plan(&scratch, &plan, "open", ""), &plan, "is writable by other users (chmod go-w)");
    assert!(!scratch.path("open").exists());
    expect_run(&run_plan(&scratch, &plan, "open", "--yes"), &plan);

    let harmless = scratch.file("harmless.toml", PLAN.replace("cmd:sleep 60", "light"));
    set_mode(&harmless, 0o666);
    let said = run_plan(&scratch, &harmless, "harmless", "");
    assert!(said.status == 0 && !said.stderr.contains(" runs as "), "{said:?}");
}

#[test]
fn a_plan_in_a_directory_of_others_runs_no_program_without_yes() {
    let (_machine, scratch) = machine_and_scratch("consent-place");
    std::fs::create_dir(scratch.path("open")).unwrap();
    let plan = own(scratch.file("open/plan.toml", PLAN));
    expect_run(&run_plan(&scratch, &plan, "own", ""), &plan);
    let directory = |mode| std::fs::set_permissions(scratch.path("open"), Permissions::from_mode(mode)).unwrap();
    directory(0o777);
    expect_refusal(
        &run_plan(&scratch, &plan, "a", ""),
        &plan,
        "is in a directory that other users may write (chmod go-w)",
    );
    // The sticky bit, as on /tmp: no other user can replace the file.
    directory(0o1777);
    expect_run(&run_plan(&scratch, &plan, "sticky", ""), &plan);
    directory(0o755);
    if is_root() {
        std::os::unix::fs::symlink(scratch.path("open"), scratch.path("link")).unwrap();
        std::os::unix::fs::lchown(scratch.path("link"), Some(65534), None).unwrap();
        let linked = scratch.path("link/plan.toml");
        expect_refusal(&run_plan(&scratch, &linked, "b", ""), &linked, "is reached through a link of user 65534");
        chown(scratch.path("open"), Some(65534), None).unwrap();
        expect_refusal(&run_plan(&scratch, &plan, "c", ""), &plan, "is in a directory of user 65534");
        expect_run(&run_plan(&scratch, &plan, "yes", "--yes"), &plan);
    }
}

#[test]
fn a_plan_writable_by_others_reaches_nothing_without_yes() {
    let scratch = Scratch::new("consent-effects");
    let kernel = scratch.file("vmlinuz", "no kernel").display().to_string();
    let directory = scratch.dir().display().to_string();
    let actor = actor();
    for (axes, top, would) in [
        (format!("load = [\"disk:{directory}\"]"), "", format!("write files in {directory}")),
        (format!("load = [\"pipe+files:{directory}\"]"), "", format!("write files in {directory}")),
        ("load = [\"pipe\"]".to_owned(), "load_policy = \"rr:1\"\n", "run its load as rr:1".to_owned()),
        ("method = [\"response:udp:192.0.2.1:4001\"]".to_owned(), "", "send to udp:192.0.2.1:4001".to_owned()),
        ("method = [\"response:serial:/dev/ttyS0\"]".to_owned(), "", "send to serial:/dev/ttyS0".to_owned()),
        (format!("kernel = [\"{kernel}\"]"), "", format!("boot {kernel}")),
        (
            format!("kernel = [\"{kernel} clock=emulated host_load=cmd:true\"]"),
            "",
            format!("run `cmd:true` {actor} and boot {kernel}"),
        ),
        (
            "method = [{ program = \"true\", read = \"oslat\" }]".to_owned(),
            "",
            format!("run `program:oslat:true` {actor}"),
        ),
        (
            "method = [\"program:cyclictest:true -x\"]".to_owned(),
            "",
            format!("run `program:cyclictest:true -x` {actor}"),
        ),
        ("method = [\"watch:true\"]".to_owned(), "", format!("run `watch:true` {actor}")),
        (
            "load = [\"pipe\"]".to_owned(),
            "stop_above = \"1ms\"\non_spike = \"true\"\n",
            format!("run `true` {actor} at spikes"),
        ),
    ] {
        let is_possible = match () {
            () if axes.starts_with("kernel") => is_installed("qemu-system-x86_64", "qemu-system-x86"),
            // The command runs beside the measured CPU.
            () if top.contains("on_spike") => a_cpu_and_the_others().is_some(),
            () => true,
        };
        if !is_possible {
            continue;
        }
        let text = format!("repetitions = 1\nduration = \"100ms\"\n{top}[axes]\npolicy = [\"other\"]\n{axes}\n");
        let plan = own(scratch.file("plan.toml", text));
        set_mode(&plan, 0o666);
        let refused = run_plan(&scratch, &plan, "out", "--cpus 0");
        let why = "and is writable by other users (chmod go-w); read it, then add --yes";
        refused.expect_error(&format!("{} would {would}, {why}", plan.display()));
        assert!(!scratch.path("out").exists());
    }
}

/// A program that measures nothing, and leaves a file beside itself where it runs.
fn instrument(scratch: &Scratch) -> PathBuf {
    let program = scratch.file("ev.sh", "#!/bin/sh\n: >\"${0%/*}/ran\"\n");
    set_mode(&program, 0o755);
    program
}

#[test]
fn an_instrument_of_others_runs_by_no_command_without_yes() {
    let (_machine, scratch) = machine_and_scratch("consent-instrument");
    let program = instrument(&scratch);
    let method = format!("program:cyclictest:{}", program.display());
    let text = |duration: &str, more: &str| {
        format!(
            "repetitions = 2\nduration = \"{duration}\"\n{more}[axes]\nload = [\"none\"]\npolicy = [\"other\"]\nmethod = [\"{method}\"]\n"
        )
    };
    let plan = own(scratch.file("plan.toml", text("100ms", "")));
    let knobs = own(scratch.file("knobs.toml", text("100ms", "[knobs]\nwarm_up = [\"0s\", \"1ms\"]\n")));
    let ran = scratch.path("ran");
    let out = scratch.path("out");
    // Where it is installed, `--on` sends nothing.
    std::fs::create_dir(scratch.path("bin")).unwrap();
    install(PROGRAM, scratch.path("bin/punctual"));
    let path = format!("{}:/usr/bin:/bin", scratch.path("bin").display());
    let by = |options: &str, plan: &Path| run(command(options).arg(plan).arg("--out").arg(&out).env("PATH", &path));
    let open = "is writable by other users (chmod go-w)";
    let foreign = |plan: &Path, mode: u32, program_mode: u32, why: &str| {
        set_mode(plan, mode);
        set_mode(&program, program_mode);
        for (options, actor) in
            [("run", actor()), ("run --shard 1/2", actor()), ("run --on exec:env", "on exec:env".into())]
        {
            let refusal =
                format!("{} would run `{method}` {actor}, and {why}; read it, then add --yes", plan.display());
            let said = by(&format!("{options} --wait --cpus 0"), plan);
            assert!(said.status == 1 && said.stderr.ends_with(&format!("punctual: {refusal}\n")), "{said:?}");
        }
        let refusal =
            format!("{} would run `{method}` {}, and {why}; read it, then add --yes", knobs.display(), actor());
        set_mode(&knobs, mode);
        by("tune --cpus 0 --wait --response max", &knobs).expect_error(&refusal);
        assert!(!ran.exists() && !out.exists(), "nothing ran");
    };
    foreign(&plan, 0o646, 0o755, open);
    // A plan of one's own, with a program that others may write.
    foreign(&plan, 0o644, 0o777, &format!("{} {open}", program.display()));
    set_mode(&program, 0o755);

    let said = by("run --dry-run --format json", &plan).expect_success().json();
    assert_eq!(said["programs"], serde_json::json!([method]));
    let said = by("run --wait --cpus 0", &plan);
    assert!(ran.exists() && said.status == 1, "it ran, and gave no result: {said:?}");
    let announced = format!("punctual: {} runs {}: {method}\n", plan.display(), actor());
    assert!(said.stderr.starts_with(&announced), "{said:?}");
    let said = by("tune --cpus 0 --wait --response max", &knobs);
    assert!(said.stderr.contains(&format!(" runs {}: {method}\n", actor())), "{said:?}");

    // The run that has begun has the program, too.
    let resume = |options: &str| run(&mut run_command(&scratch, "out", &format!("--resume {options}")));
    std::fs::remove_file(&ran).unwrap();
    set_mode(&program, 0o777);
    let refused = resume("");
    let why = format!(" would run `{method}` {}, and {} {open}; read it, then add --yes\n", actor(), program.display());
    assert!(refused.status == 1 && refused.stderr.ends_with(&why) && !ran.exists(), "{refused:?}");
    set_mode(&program, 0o755);
    set_mode(out.join("run.jsonl"), 0o646);
    let refused = resume("");
    assert!(refused.status == 1 && refused.stderr.contains(&format!(" would run `{method}` ")), "{refused:?}");
    assert!(!ran.exists());
    resume("--yes");
    assert!(ran.exists());
}

#[test]
fn a_plan_writable_by_others_changes_no_setting_without_yes() {
    let (_machine, scratch) = machine_and_scratch("consent-settings");
    let setting = scratch.file("proc/sys/kernel/timer_migration", "1\n");
    let with_settings = |text: &str| text.replace("[loads]", "[prepare]\ntimer_migration = false\n[loads]");
    let plan = own(scratch.file("plan.toml", with_settings(PLAN).replace("cmd:sleep 60", "light")));
    let both = own(scratch.file("both.toml", with_settings(PLAN)));
    let measure = |plan: &Path, out: &str, options: &str| {
        let mut command = run_command(&scratch, out, &format!("--cpus 0 {options}"));
        run(command.arg(plan).env("PUNCTUAL_ROOT", scratch.dir()))
    };
    let told = format!("punctual: {} sets for the length of each cell: timer_migration=off\n", plan.display());
    let said = measure(&plan, "own", "");
    assert!(said.status == 0 && said.stderr.contains(&told), "{said:?}");

    for plan in [&plan, &both] {
        set_mode(plan, 0o646);
    }
    let why = "and is writable by other users (chmod go-w); read it, then add --yes";
    let would = "set timer_migration=off on this machine";
    measure(&plan, "open", "").expect_error(&format!("{} would {would}, {why}", plan.display()));
    let refused = measure(&both, "open", "");
    assert!(
        refused.stderr.contains(" would run `cmd:sleep 60` as ")
            && refused.stderr.contains(&format!(" and {would}, {why}"))
    );
    assert!(!scratch.path("open").exists());
    let said = measure(&plan, "yes", "--yes");
    assert!(said.status == 0 && said.stderr.contains(&told), "{said:?}");
    // Settings on the command line are the user's own.
    let said = measure(&plan, "typed", "--prepare timer_migration=on");
    assert!(said.status == 0 && !said.stderr.contains(" sets for "), "{said:?}");
    assert_eq!(std::fs::read_to_string(&setting).unwrap(), "1\n");

    // A resumed run applies the settings of its file.
    if is_root() {
        chown(scratch.path("yes/run.jsonl"), Some(65534), None).unwrap();
        let mut resume = run_command(&scratch, "yes", "--resume");
        let refused = run(resume.env("PUNCTUAL_ROOT", scratch.dir()));
        assert_eq!(refused.status, 1, "{refused:?}");
        assert!(
            refused.stderr.contains(&format!(" would {would}, and is owned by user 65534; read it")),
            "{refused:?}"
        );
    }
}

#[test]
fn a_plan_from_a_pipe_runs_no_program_without_yes() {
    let (_machine, scratch) = machine_and_scratch("consent-pipe");
    let plan = own(scratch.file("plan.toml", PLAN));
    let stdin = Path::new("/dev/stdin");
    let from_pipe = |out: &str, options: &str| {
        let mut cat = Command::new("cat").arg(&plan).stdout(Stdio::piped()).spawn().unwrap();
        let said = run(run_command(&scratch, out, options).arg(stdin).stdin(cat.stdout.take().unwrap()));
        cat.wait().unwrap();
        said
    };
    let refused = from_pipe("pipe", "");
    expect_refusal(&refused, stdin, "is not a file, so its owner is unknown");
    // A pipe can be read only once.
    expect_run(&from_pipe("permitted", "--yes"), stdin);
    // The file behind /dev/stdin belongs to the user; for root, so does the name.
    if is_root() {
        let said = run(run_command(&scratch, "file", "").arg(stdin).stdin(File::open(&plan).unwrap()));
        expect_run(&said, stdin);
    }
}

#[test]
fn root_a_plan_or_run_of_another_user_runs_no_program_without_yes() {
    skip_unless!(is_root());
    let (_machine, scratch) = machine_and_scratch("consent-other");
    let plan = own(scratch.file("plan.toml", PLAN));
    let link = scratch.path("link.toml");
    std::os::unix::fs::symlink(&plan, &link).unwrap();
    expect_run(&run_plan(&scratch, &link, "linked", ""), &link);
    chown(&plan, Some(65534), None).unwrap();
    for named in [&plan, &link] {
        expect_refusal(&run_plan(&scratch, named, "other", ""), named, "is owned by user 65534");
    }
    // The user that calls sudo has written the plan.
    let said = run(run_command(&scratch, "sudo", "").arg(&plan).env("SUDO_UID", "65534"));
    expect_run(&said, &plan);

    let resume = |options: &str| run(&mut run_command(&scratch, "sudo", &format!("--resume {options}")));
    let (dir, file) = (scratch.path("sudo"), scratch.path("sudo/run.jsonl"));
    expect_run(&resume(""), &dir);
    chown(&file, Some(65534), None).unwrap();
    expect_refusal(&resume(""), &file, "is owned by user 65534");
    expect_run(&resume("--yes"), &dir);
    chown(&file, Some(0), None).unwrap();
    set_mode(&dir, 0o777);
    expect_refusal(&resume(""), &dir, "is writable by other users (chmod go-w)");
}

#[test]
fn root_another_machine_is_not_flooded_by_accident() {
    skip_unless!(is_root() && is_installed("ping", "iputils-ping"));
    let scratch = Scratch::new("flood");
    let plan = scratch.file("plan.toml", PLAN.replace("cmd:sleep 60", "ping:192.0.2.1"));
    let out = scratch.path("run").display().to_string();
    let plan = plan.display();
    for arguments in [
        "measure --load ping:192.0.2.1".to_owned(),
        "measure sleep --runtime c --load ping:192.0.2.1".to_owned(),
        "frontier --load ping:192.0.2.1".to_owned(),
        format!("run {plan} --out {out}"),
    ] {
        punctual(&arguments).expect_error(
            "ping:192.0.2.1 would flood 192.0.2.1, which is not this machine; use ping:127.0.0.1, or add --yes if you are permitted to",
        );
    }
}
