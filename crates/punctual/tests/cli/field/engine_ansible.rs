//! The playbook of `punctual export ansible`, carried out by the real program.
//!
//! On machines with sshd in network namespaces, and on emulated boards with busybox and dropbear.

use crate::field::board::Board;
use crate::life::roles::doing;
use crate::program::{
    MARK, ProgramOutput, Scratch, Start, command, finish, is_installed, is_root, machine, mark, run, running, set_mode,
    skip_unless, sshd_with_keys,
};
use crate::pure::engines::{expect_shards, of_python, plan};
use crate::real::response::{HOST, LOGGER, Network, TARGET};
use punctual_sys::testing::comes_true;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

/// Addresses of the machines of [`Network`].
pub(crate) const ADDRESSES: [&str; 3] = ["10.213.7.1", "10.213.7.2", "10.213.7.3"];

/// A playbook with its inventory.
struct Playbook {
    scratch: Scratch,
    ansible: PathBuf,
}

impl Playbook {
    /// Exports a plan of 6 measurements in `shards` shards; prints why and returns `None` without Ansible.
    fn export(name: &str, shards: u32, duration: &str) -> Option<Playbook> {
        let ansible = of_python("ansible-playbook", "ansible-core")?;
        let scratch = Scratch::new(name);
        let plan = scratch.file("plan.toml", plan("{{ lookup('pipe', 'exit 1') }}", duration));
        set_mode(&plan, 0o644);
        let mut export = command(&format!("export ansible --shards {shards}"));
        run(export.arg(&plan).arg("--out").arg(scratch.path("lab"))).expect_success();
        let playbook = Playbook { scratch, ansible };
        Some(playbook)
    }

    fn dir(&self) -> PathBuf {
        self.scratch.path("lab")
    }

    fn edit(&self, file: &str, from: &str, to: &str) {
        let path = self.dir().join(file);
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.contains(from), "{from}: {text}");
        std::fs::write(path, text.replace(from, to)).unwrap();
    }

    /// Replaces the inventory; each machine has a name and variables.
    fn inventory(&self, machines: &[(&str, String)]) {
        let hosts: String = machines.iter().map(|(name, variables)| format!("    {name}: {{{variables}}}\n")).collect();
        std::fs::write(self.dir().join("inventory.yml"), format!("all:\n  hosts:\n{hosts}")).unwrap();
    }

    /// `ansible-playbook`, behind `prefix`.
    fn command(&self, prefix: &[&str]) -> Command {
        let ansible = self.ansible.display().to_string();
        let words: Vec<&str> = prefix.iter().copied().chain([ansible.as_str()]).collect();
        let mut command = Command::new(words[0]);
        command.args(&words[1..]).args(["-i", "inventory.yml", "punctual.yml"]).current_dir(self.dir());
        command.env("ANSIBLE_HOME", self.scratch.path("home")).env("ANSIBLE_NOCOLOR", "1").env("LC_ALL", "C.UTF-8");
        command.env("ANSIBLE_SSH_CONTROL_PATH_DIR", self.scratch.path("cp")).env(MARK, mark());
        command.stdin(Stdio::null());
        command
    }
}

/// A server of ssh for each machine of a network.
pub(crate) struct Servers(Vec<Child>);

impl Servers {
    /// Starts them with keys in `scratch`; the files of a machine are kept in its own directory there.
    pub(crate) fn start(network: &Network, scratch: &Scratch) -> Option<Servers> {
        let sshd = sshd_with_keys(scratch)?;
        let dir = scratch.dir().display();
        let start = |(machine, address): (usize, &str)| {
            let own = scratch.path(&format!("machine{machine}"));
            std::fs::create_dir(&own).unwrap();
            let own = own.display();
            // A machine lock of its own, as a machine of its own would have.
            let config = format!(
                "ListenAddress {address}\nHostKey {dir}/host\nAuthorizedKeysFile {dir}/key.pub\nStrictModes no\nUsePAM no\n\
                 PidFile none\nPermitRootLogin yes\nPasswordAuthentication no\n\
                 SetEnv PUNCTUAL_LOCK={own}.lock TMPDIR={own} {MARK}={}\n",
                mark()
            );
            let config = scratch.file(&format!("sshd_config{machine}"), config);
            network.on(machine, sshd, &format!("-D -f {}", config.display())).start_silent()
        };
        let servers = Servers([HOST, TARGET, LOGGER].into_iter().zip(ADDRESSES).map(start).collect());
        for address in ADDRESSES {
            let probe =
                || run(&mut network.on(HOST, "ssh-keyscan", &format!("-T 1 {address}"))).stdout.contains(address);
            assert!(comes_true(probe), "sshd listens on {address}");
        }
        Some(servers)
    }
}

impl Drop for Servers {
    fn drop(&mut self) {
        for server in &mut self.0 {
            drop(server.kill());
            drop(server.wait());
        }
    }
}

#[test]
#[ignore = "field: Ansible"]
fn root_ansible_measures_on_three_machines_and_again_what_was_lost() {
    skip_unless!(is_root() && is_installed("ssh", "openssh-client"));
    let Some(playbook) = Playbook::export("ansible", 3, "300ms") else { return };
    let Some(network) = Network::new("ansible") else { return };
    let _machine = machine();
    let keys = Scratch::new("ansible-keys");
    let Some(_servers) = Servers::start(&network, &keys) else { return };
    let dir = keys.dir().display();
    let variables = |address: &str| {
        format!(
            "ansible_host: {address}, ansible_user: root, ansible_ssh_private_key_file: {dir}/key, \
             ansible_ssh_common_args: '-F /dev/null -o UserKnownHostsFile={dir}/known -o StrictHostKeyChecking=no'"
        )
    };
    let of = |addresses: &[&str]| {
        let named =
            addresses.iter().enumerate().map(|(number, address)| (format!("board{number}"), variables(address)));
        let named: Vec<_> = named.collect();
        playbook.inventory(&named.iter().map(|(name, text)| (name.as_str(), text.clone())).collect::<Vec<_>>());
    };
    let prefix = ["ip", "netns", "exec", &network.names[HOST]];
    of(&ADDRESSES);

    // One of the measurements is killed.
    let mut first = playbook.command(&prefix).start_piped();
    let measuring = || -> Vec<u32> {
        let ours = running();
        doing("run", "plan.toml").into_iter().filter(|pid| ours.contains(pid)).collect()
    };
    assert!(comes_true(|| measuring().len() == 3 || first.try_wait().unwrap().is_some()), "three machines measure");
    let victim = *measuring().first().expect("it measures");
    let lost = std::fs::read_link(format!("/proc/{victim}/cwd")).unwrap();
    punctual_sys::process::signal(victim, libc::SIGKILL).unwrap();
    let said = finish(first);
    assert_ne!(said.status, 0, "{said:?}");
    let number = (0..3).find(|number| lost.starts_with(keys.path(&format!("machine{number}")))).unwrap() + 1;
    assert!(said.stdout.contains(&format!("shards missing: {number};")), "{said:?}");
    let kept = |shard: i32| playbook.dir().join(format!("shards/{shard}/run.jsonl"));
    let kept_before: Vec<_> =
        (1..=3).map(|shard| std::fs::metadata(kept(shard)).ok().map(|file| file.modified().unwrap())).collect();
    assert_eq!(kept_before.iter().flatten().count(), 2, "a lost machine costs its shard");

    // Without one of the machines, and with one that does not answer.
    of(&[ADDRESSES[0], ADDRESSES[1], "10.213.7.77"]);
    let mut second = playbook.command(&prefix);
    second.env("ANSIBLE_TIMEOUT", "3");
    let said = run(&mut second).expect_success();
    assert!(said.stdout.contains("punctual show "), "{said:?}");
    for shard in 1..=3 {
        let after = std::fs::metadata(kept(shard)).unwrap().modified().unwrap();
        let before = kept_before[usize::try_from(shard - 1).unwrap()];
        assert!(before.is_none_or(|before| before == after), "shard {shard} is measured once");
    }
    expect_shards(&playbook.dir(), 3, 6);
    for number in 0..3 {
        let left = std::fs::read_dir(keys.path(&format!("machine{number}"))).unwrap().count();
        assert_eq!(left, 0, "nothing is left on machine {number}");
    }
    // Nothing is measured again.
    let said = run(&mut playbook.command(&prefix)).expect_success();
    assert!(!said.stdout.contains("TASK [Start]"), "{said:?}");
}

#[test]
#[ignore = "field: Ansible"]
fn root_ansible_refuses_what_a_machine_lacks() {
    skip_unless!(is_root());
    let Some(playbook) = Playbook::export("ansible-refused", 2, "100ms") else { return };
    // The machine is this one, without ssh.
    playbook.inventory(&[("board", "ansible_connection: local".to_owned())]);
    std::fs::remove_dir_all(playbook.dir().join("bin")).unwrap();
    let said: ProgramOutput = run(&mut playbook.command(&["env"]));
    let arch = std::env::consts::ARCH;
    assert!(said.stdout.contains(&format!("no bin/punctual-{arch}: copy punctual for {arch} there")), "{said:?}");
    assert!(said.status != 0 && !playbook.dir().join("shards").exists(), "{said:?}");
}

/// Two emulated boards with busybox and dropbear only: arm64, and one of another architecture where its program is at
/// hand, else of the same.
#[test]
#[ignore = "field: Ansible"]
fn vm_ansible_measures_on_boards_without_python() {
    skip_unless!(is_installed("ssh", "openssh-client"));
    if let Err(reason) = punctual_host::program_of(punctual_model::Architecture::Aarch64) {
        eprintln!("skipped: {reason}");
        return;
    }
    let Some(playbook) = Playbook::export("ansible-boards", 2, "2s") else { return };
    let riscv64 = punctual_host::program_of(punctual_model::Architecture::Riscv64).is_ok();
    let names = ["arm64", if riscv64 { "riscv64" } else { "arm64" }];
    let boards: Vec<Option<Board>> = std::thread::scope(|scope| {
        let boards = names.map(|name| scope.spawn(move || Board::start(name)));
        boards.into_iter().map(|board| board.join().unwrap()).collect()
    });
    let [Some(first), Some(second)] = &boards[..] else { return };
    // A real-time policy, and CPUs of the boards.
    playbook.edit("plan.toml", "policy = [\"other\"]", "policy = [\"fifo:80\"]");
    let variables = |board: &Board| {
        // Both boards have the same host name: by default Ansible would use one SSH control socket for both.
        let dir = board.directory().display();
        format!("ansible_host: board, ansible_ssh_common_args: '-F {dir}/config', ansible_control_path: '{dir}/shared'")
    };
    playbook.inventory(&[("first", variables(first)), ("second", variables(second))]);
    let said = run(&mut playbook.command(&["env"]));
    if riscv64 {
        // Both boards measured, each with its own program; `merge` refuses machines that differ in their architecture.
        assert!(said.status != 0 && said.stdout.contains("their machines differ: kernel ("), "{said:?}");
    } else {
        said.expect_success();
        expect_shards(&playbook.dir(), 2, 6);
    }
    let of = |shard: u32| crate::program::entries(&playbook.dir().join(format!("shards/{shard}")));
    for (shard, name) in [(1, "aarch64"), (2, if riscv64 { "riscv64" } else { "aarch64" })] {
        for entry in of(shard) {
            assert_eq!(entry.record.host_before.architecture.as_deref(), Some(name));
            let [thread] = &entry.record.threads[..] else { panic!("one thread") };
            assert!(thread.is_consistent() && thread.achieved.policy == entry.record.cell.policy, "{thread:?}");
        }
    }
    for board in [first, second] {
        let left = || board.ssh("ls -d /tmp/punctual-* /var/tmp/punctual-* 2>/dev/null; pidof punctual").stdout;
        assert!(comes_true(|| left().is_empty()), "left there: {}", left());
    }
}
