//! One guest: started, waited for, and read.

use super::initramfs::Archive;
use super::{LabError, Ready, program, ready, shipped};
use model::{Cell, LabClock, LabKernel, LabRecord, Record, fnv1a_bytes};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::LazyLock;
use std::time::{Duration, Instant};

pub(super) const QEMU: &str = "qemu-system-x86_64";
const MACHINE: &str = "pc, qemu64, 1 CPU";
const MEMORY_MIB: u32 = 512;

/// How long a guest is left alone before its cell: kernels do the last of their start in the background. Nothing happens
/// meanwhile, so that it costs next to nothing.
const SETTLE: Duration = Duration::from_secs(2);
/// By how much longer in each further block: no multiple of a clock tick (4 ms) or of a usual period.
const PHASE: Duration = Duration::from_nanos(1_270_007);

/// A guest that gives no record is ended after this, however little of this machine it gets: a second of work in a guest
/// takes about one here, and more on a busy machine.
const AT_MOST: Duration = Duration::from_secs(120);
const TIMES_AS_LONG: u32 = 100;

/// What makes a guest the same to the bit each time: a clock that counts instructions, no random numbers from the
/// processor, a date that is always the same. `sleep=off` lets idle time pass at once.
const DETERMINISTIC: &[&str] = &[
    "-nodefaults",
    "-no-user-config",
    "-display",
    "none",
    "-no-reboot",
    "-M",
    "pc",
    "-accel",
    "tcg,thread=single",
    "-icount",
    "shift=0,sleep=off",
    "-cpu",
    "qemu64",
    "-smp",
    "1",
    "-rtc",
    "base=2026-01-01,clock=vm",
];

/// The kernel's command line. The layout in memory is always the same; clocks are told and not calibrated; devices that a
/// guest does not have are not waited for.
const ARGUMENTS: &str = "console=ttyS0 quiet panic=-1 nokaslr norandmaps random.trust_cpu=off tsc=reliable \
                         tsc_early_khz=1000000 lpj=4000000 no_timer_check cryptomgr.notests i8042.noaux i8042.nokbd \
                         i8042.nopnp";

/// Measures `cell` on `kernel`; ends early, without a record, when `is_asked` to. In another `block` everything happens at
/// other moments relative to the kernel's own clock ticks, so that blocks are not copies of each other.
///
/// # Errors
/// When there is no such kernel, or the guest gives no record.
pub(crate) fn carry_out(
    cell: &Cell,
    kernel: &LabKernel,
    block: u32,
    is_asked: &dyn Fn() -> bool,
) -> Result<Record, LabError> {
    let image = ready(&kernel.source)?;
    let settle = SETTLE + PHASE.saturating_mul(block);
    let dir = Scratch::new()?;
    let (archive, files) = (initramfs(cell, kernel, settle)?, Files::below(&dir.0));
    fs::write(&files.archive, &archive).map_err(|err| LabError::file(&files.archive, err))?;
    let command_line = format!("{ARGUMENTS} {}", kernel.arguments).trim_end().to_owned();
    let guest = start(&image, &files, &command_line)?;
    let busy = cell.duration.ns().saturating_add(cell.warm_up.ns());
    let limit = AT_MOST + Duration::from_nanos(busy).saturating_mul(TIMES_AS_LONG);
    let why = wait(guest, limit, is_asked).map_err(|err| LabError::program(QEMU, err))?;
    let mut record = files.record(&cell.kernel.to_string(), why)?;
    record.lab = Some(LabRecord {
        clock: LabClock::Virtual,
        kernel: image.name,
        kernel_hash: image.hash,
        command_line,
        initramfs_hash: format!("{:016x}", fnv1a_bytes(&archive)),
        qemu: version().unwrap_or_default().to_owned(),
        machine: MACHINE.to_owned(),
        memory_mib: MEMORY_MIB,
        settled_ns: u64::try_from(settle.as_nanos()).unwrap_or(u64::MAX),
    });
    Ok(record)
}

/// The version that QEMU gives itself, the first line of what it says; asked once. `None` when it cannot be started.
pub(super) fn version() -> Option<&'static str> {
    static SAID: LazyLock<Option<String>> = LazyLock::new(|| {
        let output = Command::new(QEMU).arg("--version").stdin(Stdio::null()).output().ok()?;
        Some(String::from_utf8_lossy(&output.stdout).lines().next().unwrap_or_default().to_owned())
    });
    SAID.as_deref()
}

/// The first file system of a guest: this program as its init, the cell, and for how long to wait before it.
fn initramfs(cell: &Cell, kernel: &LabKernel, settle: Duration) -> Result<Vec<u8>, LabError> {
    let mut archive = Archive::default();
    for directory in ["dev", "proc", "run", "sys", "tmp", "var", "var/tmp"] {
        archive.directory(directory);
    }
    archive.program("init", &program::stripped()?);
    archive.file("cell.json", &serde_json::to_vec(cell).map_err(|err| LabError::program("cell", err))?);
    archive.file("settle_ns", settle.as_nanos().to_string().as_bytes());
    shipped::add(&mut archive, kernel)?;
    Ok(archive.finish())
}

/// The files that a guest is given and that it writes.
struct Files {
    archive: PathBuf,
    console: PathBuf,
    result: PathBuf,
}

impl Files {
    fn below(dir: &Path) -> Files {
        Files { archive: dir.join("initramfs"), console: dir.join("console"), result: dir.join("result") }
    }

    /// The record that the guest has written; `why` it is there no more, if it was ended.
    fn record(&self, kernel: &str, why: Option<String>) -> Result<Record, LabError> {
        let result = fs::read_to_string(&self.result).unwrap_or_default();
        let line = result.lines().find_map(|line| line.strip_prefix(super::guest::RECORD));
        if let Some(record) = line.and_then(|line| serde_json::from_str(line).ok()) {
            return Ok(record);
        }
        let said = result.lines().find_map(|line| line.strip_prefix(super::guest::FAILED)).map(str::to_owned);
        let reason = said.or(why).unwrap_or_else(|| format!("ended without a record; {}", self.last_words()));
        Err(LabError::Guest { kernel: kernel.to_owned(), reason })
    }

    fn last_words(&self) -> String {
        let console = fs::read(&self.console).unwrap_or_default();
        let console = String::from_utf8_lossy(&console).into_owned();
        let lines: Vec<_> = console.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        match lines.len() {
            0 => "its console (ttyS0) stayed empty".to_owned(),
            n => format!("its console ends with: {}", lines.get(n.saturating_sub(3)..).unwrap_or_default().join(" | ")),
        }
    }
}

/// Starts QEMU as a process that ends with this one.
fn start(image: &Ready, files: &Files, command_line: &str) -> Result<Child, LabError> {
    let serial = |path: &Path| format!("file:{}", path.display());
    let mut command = Command::new(crate::host::THIS_PROGRAM);
    command.args(["launch", "--parent", &std::process::id().to_string(), "--", QEMU]);
    command.args(DETERMINISTIC).args(["-m", &MEMORY_MIB.to_string()]);
    command.arg("-kernel").arg(&image.file).arg("-initrd").arg(&files.archive);
    command.args(["-serial", &serial(&files.console), "-serial", &serial(&files.result)]);
    command.args(["-append", command_line]);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    command.spawn().map_err(|err| LabError::program(QEMU, err))
}

/// Waits for a guest to end, and ends it when it is asked to or takes too long. Why it gave nothing, if that is known.
fn wait(mut guest: Child, limit: Duration, is_asked: &dyn Fn() -> bool) -> io::Result<Option<String>> {
    const LOOK: Duration = Duration::from_millis(20);
    let began = Instant::now();
    loop {
        if let Some(status) = guest.try_wait()? {
            let mut said = String::new();
            if let Some(mut stderr) = guest.stderr.take() {
                let _ = io::Read::read_to_string(&mut stderr, &mut said);
            }
            let last = said.lines().last().unwrap_or("nothing");
            return Ok((!status.success()).then(|| format!("ended with {QEMU}, {status}, which said: {last}")));
        }
        let why = match () {
            () if is_asked() => "was ended by a signal".to_owned(),
            () if began.elapsed() > limit => format!("gave no record within {} s; ended", limit.as_secs()),
            () => {
                std::thread::sleep(LOOK);
                continue;
            }
        };
        guest.kill()?;
        guest.wait()?;
        return Ok(Some(why));
    }
}

/// A directory for one guest, gone with it.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Result<Scratch, LabError> {
        let dir = std::env::temp_dir().join(format!("punctual-guest-{}", std::process::id()));
        fs::create_dir_all(&dir).map_err(|err| LabError::file(&dir, err))?;
        Ok(Scratch(dir))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
