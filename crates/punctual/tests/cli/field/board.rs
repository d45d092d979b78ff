//! Emulated boards of other architectures: busybox and dropbear on QEMU's machine `virt`, reached by ssh.

use crate::program::{MARK, ProgramOutput, Scratch, is_installed, mark, run, skip_unless};
use punctual_sys::testing::comes_true;
use std::fs::File;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// Upper limit of the life of a board, should its test be killed.
const LARGEST_LIFE: &str = "1200";

/// The port on which a board answers UDP, forwarded from [`Board::udp`].
pub(crate) const UDP_PORT: u16 = 4000;

/// A machine of `scripts/board`: QEMU's program with its package, the processor and the console.
struct Machine {
    name: &'static str,
    qemu: &'static str,
    package: &'static str,
    processor: &'static str,
    console: &'static str,
}

const MACHINES: [Machine; 4] = [
    Machine::of("arm64", "qemu-system-aarch64", "qemu-system-arm", "cortex-a72", "ttyAMA0"),
    // The cortex-a72 has no 16 KiB pages.
    Machine::of("arm64-16k", "qemu-system-aarch64", "qemu-system-arm", "max,pauth=off", "ttyAMA0"),
    Machine::of("armhf", "qemu-system-arm", "qemu-system-arm", "cortex-a15", "ttyAMA0"),
    Machine::of("riscv64", "qemu-system-riscv64", "qemu-system-misc", "rv64", "ttyS0"),
];

impl Machine {
    const fn of(
        name: &'static str,
        qemu: &'static str,
        package: &'static str,
        processor: &'static str,
        console: &'static str,
    ) -> Machine {
        Machine { name, qemu, package, processor, console }
    }
}

/// A running board with 2 CPUs and 1 GiB. Its address is 10.0.2.15, that of this machine is 10.0.2.2. Dropping it ends
/// QEMU.
#[derive(Debug)]
pub(crate) struct Board {
    qemu: Child,
    /// Holds the console's output, the configuration of ssh and a wrapper.
    scratch: Scratch,
    /// The port of 127.0.0.1 that is forwarded to [`UDP_PORT`] of the board.
    pub(crate) udp: u16,
}

impl Board {
    /// Boots the board `name` and waits until it is reachable; prints why the test is skipped and returns `None` where
    /// it cannot be made.
    ///
    /// # Panics
    /// If it does not become reachable.
    pub(crate) fn start(name: &str) -> Option<Board> {
        let machine = MACHINES.iter().find(|machine| machine.name == name).expect("a board of scripts/board");
        if !is_installed(machine.qemu, machine.package) {
            return None;
        }
        let files = made(name)?;
        let scratch = Scratch::new(&format!("board-{name}"));
        let [ssh, udp] = [free_tcp_port(), free_udp_port()];
        let console = File::create(scratch.path("console")).expect("a scratch file");
        let errors = console.try_clone().expect("a file");
        let mut command = Command::new("timeout");
        command.args(["--kill-after=5", LARGEST_LIFE, machine.qemu]);
        command.args(["-M", "virt", "-cpu", machine.processor, "-smp", "2", "-m", "1024"]);
        command.args(["-accel", "tcg,thread=multi", "-nographic", "-no-reboot"]);
        command.arg("-kernel").arg(files.join("kernel")).arg("-initrd").arg(files.join("initramfs"));
        command.args(["-append", &format!("console={} quiet panic=-1", machine.console)]);
        let forwarded = format!("hostfwd=tcp:127.0.0.1:{ssh}-:22,hostfwd=udp:127.0.0.1:{udp}-:{UDP_PORT}");
        command.args(["-netdev", &format!("user,id=net,{forwarded}"), "-device", "virtio-net-device,netdev=net"]);
        let qemu = command
            .env(MARK, mark())
            .stdin(Stdio::null())
            .stdout(console)
            .stderr(errors)
            .spawn()
            .expect("timeout starts");
        let mut board = Board { qemu, scratch, udp };
        board.prepare_ssh(ssh, &files.join("key"));
        board.wait_until_reachable();
        Some(board)
    }

    /// Runs a shell command on the board.
    pub(crate) fn ssh(&self, command: &str) -> ProgramOutput {
        run(self.ssh_command(command).stdin(Stdio::null()))
    }

    /// Copies a file to the board, with the mode of a program.
    #[track_caller]
    pub(crate) fn copy(&self, from: &Path, to: &str) {
        let file = File::open(from).expect("a file to copy");
        run(self.ssh_command(&format!("cat >{to} && chmod 755 {to}")).stdin(file)).expect_success();
    }

    /// The directory of a program `ssh` that knows the host `board`, for the first place in `PATH`.
    pub(crate) fn directory(&self) -> &Path {
        self.scratch.dir()
    }

    fn ssh_command(&self, command: &str) -> Command {
        let mut ssh = Command::new(self.scratch.path("ssh"));
        ssh.args(["board", command]);
        ssh
    }

    /// Writes the configuration of ssh, and the wrapper that passes it.
    fn prepare_ssh(&self, port: u16, key: &Path) {
        let dir = self.scratch.dir().display();
        let config = format!(
            "Host board\nHostName 127.0.0.1\nPort {port}\nUser root\nIdentityFile {}\nIdentitiesOnly yes\n\
             UserKnownHostsFile {dir}/known\nStrictHostKeyChecking no\nConnectTimeout 60\nLogLevel ERROR\n",
            key.display()
        );
        let config = self.scratch.file("config", config);
        let ssh = format!("#!/bin/sh\nexec /usr/bin/ssh -F {} \"$@\"\n", config.display());
        self.scratch.executable("ssh", ssh);
    }

    fn wait_until_reachable(&mut self) {
        let console = self.scratch.path("console");
        let read = || String::from_utf8_lossy(&std::fs::read(&console).expect("a console")).into_owned();
        let mut is_reachable = false;
        comes_true(|| {
            is_reachable = read().contains("board: ready") && self.ssh("true").status == 0;
            is_reachable || self.qemu.try_wait().expect("a child").is_some()
        });
        assert!(is_reachable, "the board is not reachable: {}", read());
    }
}

impl Drop for Board {
    /// `timeout` passes the signal on.
    fn drop(&mut self) {
        drop(punctual_sys::process::signal(self.qemu.id(), libc::SIGTERM));
        drop(self.qemu.wait());
    }
}

/// The directory of the kernel and initramfs of a board, made where they are missing; `None` if they cannot be made.
pub(crate) fn made(name: &str) -> Option<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let directory = root.join("target/boards").join(name);
    let made = run(Command::new(root.join("scripts/board")).arg(name).arg(&directory).stdin(Stdio::null()));
    if made.status != 0 {
        eprintln!("skipped: no board {name}: {}", made.last_line());
        return None;
    }
    Some(directory)
}

fn free_tcp_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").and_then(|socket| socket.local_addr()).expect("a port").port()
}

fn free_udp_port() -> u16 {
    std::net::UdpSocket::bind("127.0.0.1:0").and_then(|socket| socket.local_addr()).expect("a port").port()
}

#[test]
#[ignore = "field: an emulated board"]
fn vm_a_board_is_reached_by_ssh() {
    skip_unless!(is_installed("ssh", "openssh-client"));
    let Some(board) = Board::start("arm64") else { return };
    let script =
        board.scratch.file("script", "#!/bin/sh\nuname -m; nproc; cat /sys/class/net/lo/operstate; hostname\n");
    board.copy(&script, "/tmp/script");
    let said = board.ssh("/tmp/script; ls -d /sys/kernel/tracing/events/sched").expect_success();
    assert_eq!(said.stdout, "aarch64\n2\nunknown\nboard\n/sys/kernel/tracing/events/sched\n");
    assert!(board.directory().join("ssh").exists() && board.udp > 0);
}
