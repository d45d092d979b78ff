//! The script of `punctual export labgrid`, with a real coordinator and exporter, and places in network namespaces.

use crate::field::engine_ansible::{ADDRESSES, Servers};
use crate::life::roles::doing;
use crate::program::{
    PROGRAM, Scratch, Start, command, finish, is_installed, is_root, machine, run, running, set_mode, skip_unless,
};
use crate::pure::engines::{expect_shards, of_python, plan};
use crate::real::response::{HOST, Network};
use punctual_sys::testing::comes_true;
use std::process::{Child, Command};

/// The address of the coordinator, in the namespace of the host.
const COORDINATOR: &str = "127.0.0.1:22408";

/// A program of labgrid in the namespace of the host, ended when dropped.
struct Service(Child);

impl Drop for Service {
    fn drop(&mut self) {
        drop(punctual_sys::process::signal(self.0.id(), libc::SIGTERM));
        drop(self.0.wait());
    }
}

/// A laboratory: a coordinator, and an exporter of two places.
struct Laboratory {
    network: Network,
    keys: Scratch,
    services: Vec<Service>,
    _servers: Servers,
}

impl Laboratory {
    /// Starts it; prints why and returns `None` where it cannot be had.
    fn start() -> Option<Laboratory> {
        of_python("labgrid-coordinator", "labgrid 24 or newer, of PyPI")?;
        let (network, keys) = (Network::new("labgrid")?, Scratch::new("labgrid-keys"));
        let servers = Servers::start(&network, &keys)?;
        let dir = keys.dir().display();
        keys.file(
            "config",
            format!(
                "Host *\nIdentityFile {dir}/key\nIdentitiesOnly yes\nUserKnownHostsFile {dir}/known\n\
                 StrictHostKeyChecking no\nLogLevel ERROR\n"
            ),
        );
        keys.executable("bin/ssh", format!("#!/bin/sh\nexec /usr/bin/ssh -F {dir}/config \"$@\"\n"));
        let place = |number: usize| {
            format!("place{number}:\n  NetworkService: {{address: {}, username: root}}\n", ADDRESSES[number])
        };
        let exported = keys.file("exported.yaml", place(1) + &place(2));
        let mut laboratory = Laboratory { network, keys, services: Vec::new(), _servers: servers };
        // An exporter exits if no coordinator listens.
        laboratory.serve("labgrid-coordinator", &format!("-l {COORDINATOR}"));
        assert!(comes_true(|| laboratory.client("resources").status == 0), "the coordinator answers");
        laboratory.serve("labgrid-exporter", &format!("-n lab -c {COORDINATOR} {}", exported.display()));
        let is_exported = || laboratory.client("resources").stdout.contains("lab/place2/NetworkService");
        assert!(comes_true(is_exported), "the places are exported");
        for number in [1, 2] {
            for words in
                ["create".to_owned(), format!("add-match lab/place{number}/*"), "set-tags punctual=yes".to_owned()]
            {
                laboratory.client(&format!("-p place{number} {words}")).expect_success();
            }
        }
        Some(laboratory)
    }

    /// Starts a program of labgrid that runs until the laboratory is dropped.
    fn serve(&mut self, program: &str, arguments: &str) {
        let program = of_python(program, "labgrid").expect("it was found before");
        let mut command = self.network.on(HOST, program.to_str().unwrap(), arguments);
        // The coordinator keeps its places in the current directory.
        self.services.push(Service(command.current_dir(self.keys.dir()).start_silent()));
    }

    /// A command in the namespace of the host, with labgrid's programs and the wrapper of ssh in the search path.
    fn on_host(&self, program: &str, arguments: &str) -> Command {
        let mut command = self.network.on(HOST, program, arguments);
        let client = of_python("labgrid-client", "labgrid").expect("it was found before");
        let bin = client.parent().unwrap().display().to_string();
        let path = std::env::var("PATH").unwrap();
        command.env("PATH", format!("{}/bin:{bin}:{path}", self.keys.dir().display()));
        command.env("LG_COORDINATOR", COORDINATOR).env("PUNCTUAL", PROGRAM);
        command
    }

    fn client(&self, arguments: &str) -> crate::program::ProgramOutput {
        run(&mut self.on_host("labgrid-client", arguments))
    }
}

#[test]
#[ignore = "field: labgrid"]
fn root_labgrid_reserves_places_and_measures_again_what_was_lost() {
    skip_unless!(is_root() && is_installed("ssh", "openssh-client"));
    let Some(laboratory) = Laboratory::start() else { return };
    let (_machine, scratch) = (machine(), Scratch::new("labgrid"));
    let file = scratch.file("plan.toml", plan("$(exit 1) \"x\" 'y'", "300ms"));
    set_mode(&file, 0o644);
    let out = scratch.path("lab files");
    run(command("export labgrid --shards 3").arg(&file).arg("--out").arg(&out)).expect_success();
    let script = out.join("measure");
    let measure = || {
        let mut command = laboratory.on_host(script.to_str().unwrap(), "");
        command.current_dir(&out);
        command
    };

    // Ended by a signal, it releases the places.
    let measuring = || -> Vec<u32> {
        let ours = running();
        doing("run", "plan.toml").into_iter().filter(|pid| ours.contains(pid)).collect()
    };
    let mut stopped = measure().start_piped();
    assert!(comes_true(|| !measuring().is_empty() || stopped.try_wait().unwrap().is_some()), "it measures");
    punctual_sys::process::signal(stopped.id(), libc::SIGTERM).unwrap();
    let said = finish(stopped);
    assert_eq!(said.status, 130, "{said:?}");
    assert!(comes_true(|| measuring().is_empty()), "no orphans: {:?}", measuring());
    assert!(comes_true(|| laboratory.client("who").stdout.lines().count() <= 1), "{:?}", laboratory.client("who"));

    // A campaign is killed: its shard is missing.
    let mut first = measure().start_piped();
    assert!(comes_true(|| !measuring().is_empty() || first.try_wait().unwrap().is_some()), "it measures");
    let victim = measuring().first().copied();
    victim.into_iter().for_each(|victim| punctual_sys::process::signal(victim, libc::SIGKILL).unwrap());
    let said = finish(first);
    assert!(victim.is_some(), "it measures: {said:?}");
    assert!(said.status == 1 && said.last_line().starts_with("measure: shards missing: "), "{said:?}");
    let missing = (1..=3).filter(|shard| !out.join(format!("shards/{shard}")).exists()).count();
    assert_eq!(missing, 1, "{said:?}");

    let said = run(&mut measure()).expect_success();
    assert!(said.stdout.contains("punctual show "), "{said:?}");
    expect_shards(&out, 3, 6);
    assert_eq!(laboratory.client("reservations").stdout, "", "no reservation is left");
}
