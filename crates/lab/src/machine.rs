//! The machine of a guest, and everything else that determines its snapshot.

use super::devices::Devices;
use super::guest_threads;
use super::initramfs::{Archive, stripped_program};
use super::platform::{Channel, Platform};
use super::protocol::{
    FAILED, Job, MACHINE_SETTLE_TIME, MACHINE_TIME_VARIABLE, READY, RECORD, REFUSED, SETTLE_TIME, SHARED_RESULT, TARGET,
};
use super::qemu::{Limits, Qemu, QemuError, version};
use super::{BootableKernel, LabError, Monitor, directories, disk, guest_files, hash, memory, ready, shared_memory};
use punctual_model::{
    Architecture, GuestThread, GuestThreads, GuestTids, LabClock, LabKernel, LabRecord, Record, TargetRecord,
};
use punctual_sys::guest_ports::MOVE_FILE;
use std::collections::HashMap;
use std::ffi::OsString;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// Words of a line with which a kernel says that it cannot go on.
const DYING_WORDS: [&str; 3] = ["Kernel panic - ", "BUG: ", "Oops: "];

/// Command-line arguments of the lab itself, not of a plan, in guests of this program's architecture.
pub(super) fn own_arguments() -> String {
    let platform = Architecture::OWN.map(Platform::of);
    platform.map(|own| format!("{} {} {}", own.arguments, own.virtual_arguments, machine_time())).unwrap_or_default()
}

/// Word of the command line in machine time.
fn machine_time() -> String {
    format!("{MACHINE_TIME_VARIABLE}=1")
}

/// A machine with its kernel, kernel arguments and initramfs.
#[derive(Debug)]
pub(super) struct Setup {
    /// The kernel as named in the plan.
    name: String,
    platform: &'static Platform,
    /// Devices in addition to those of every guest.
    devices: Devices,
    pub(super) clock: LabClock,
    cpus: u32,
    threads: GuestThreads,
    kernel: BootableKernel,
    command_line: String,
    archive: Vec<u8>,
    archive_hash: String,
}

/// Input and output files of a guest.
#[derive(Debug)]
pub(super) struct Files {
    archive: PathBuf,
    job: PathBuf,
    console: PathBuf,
    result: PathBuf,
    channel: Channel,
    /// Serial port of the console.
    port: &'static str,
}

impl Setup {
    /// The setup of a kernel with these devices, created once: its input files are read, packed and hashed for all
    /// guests.
    pub(super) fn of(
        name: String,
        kernel: &LabKernel,
        devices: Devices,
        monitor: Monitor<'_>,
    ) -> Result<Arc<Setup>, LabError> {
        type Setups = HashMap<(LabKernel, Devices), Arc<Setup>>;
        static CACHE: Mutex<Option<Setups>> = Mutex::new(None);
        let mut made = CACHE.lock().unwrap_or_else(PoisonError::into_inner);
        let made = made.get_or_insert_default();
        if let Some(setup) = made.get(&(kernel.clone(), devices)) {
            return Ok(Arc::clone(setup));
        }
        let setup = Arc::new(Setup::make(name, kernel, devices, monitor)?);
        made.insert((kernel.clone(), devices), Arc::clone(&setup));
        Ok(setup)
    }

    fn make(name: String, kernel: &LabKernel, devices: Devices, monitor: Monitor<'_>) -> Result<Setup, LabError> {
        let bootable = ready(&kernel.source, monitor)?;
        let platform = Platform::of(bootable.architecture);
        let archive = initramfs(kernel, platform, devices, monitor)?;
        let is_virtual = kernel.clock == LabClock::Virtual;
        let of_clock = if is_virtual { platform.virtual_arguments.to_owned() } else { machine_time() };
        let words = [platform.arguments, &of_clock, &kernel.arguments];
        let words = words.into_iter().filter(|words| !words.is_empty());
        Ok(Setup {
            name,
            platform,
            devices,
            clock: kernel.clock,
            cpus: kernel.cpus,
            threads: kernel.threads.clone(),
            kernel: bootable,
            command_line: words.collect::<Vec<_>>().join(" "),
            archive_hash: hash(&archive),
            archive,
        })
    }

    /// The kernel as named in the plan.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Hash of all inputs of the snapshot: 16 hexadecimal digits.
    pub(super) fn key(&self) -> String {
        let Setup { kernel, command_line, archive_hash, clock, .. } = self;
        let (qemu, kernel, machine) = (self.qemu_version(), &kernel.hash, self.machine());
        let (processor, memory_mib) = (self.platform.processor(*clock).join(" "), memory::MIB);
        let text = format!("{qemu}\n{machine}\n{memory_mib}\n{processor}\n{kernel}\n{command_line}\n{archive_hash}");
        hash(text.as_bytes())
    }

    /// Writes the input files of the guest into `dir`: the initramfs, and the job if it is known.
    pub(super) fn files_below(&self, dir: &Path, job: Option<&Job>) -> Result<Files, LabError> {
        let [archive, job_file, console, result] = ["initramfs", "job", "console", "result"].map(|name| dir.join(name));
        let text = job.map_or(Ok(Vec::new()), serde_json::to_vec).map_err(|err| LabError::file(&job_file, err))?;
        let Platform { channel, console: port, .. } = *self.platform;
        let written = match channel {
            Channel::Ports => directories::write_new(&job_file, &text),
            Channel::SharedMemory => shared_memory::write(&result, &text),
        };
        written.map_err(|err| LabError::file(&job_file, err))?;
        directories::write_new(&archive, &self.archive).map_err(|err| LabError::file(&archive, err))?;
        let files = Files { archive, job: job_file, console, result, channel, port };
        if self.devices.has_disk {
            disk::make(&files.disk())?;
        }
        Ok(files)
    }

    /// Starts QEMU for a guest, with `more` arguments.
    pub(super) fn start(&self, files: &Files, more: impl IntoIterator<Item = OsString>) -> Result<Qemu, LabError> {
        Qemu::start(self.qemu(), self.arguments(files).into_iter().chain(more).collect())
    }

    fn arguments(&self, files: &Files) -> Vec<OsString> {
        // Not divided at commas, which must not be doubled here.
        let console = format!("file:{}", files.console.display());
        let [cpus, memory_mib] = [self.cpus, memory::MIB].map(|number| number.to_string());
        let words = ["-smp", &cpus, "-m", &memory_mib, "-serial", &console, "-append", &self.command_line];
        let machine = [self.platform.machine, &self.platform.processor(self.clock)].concat();
        let words = machine.into_iter().chain(words).map(OsString::from);
        let words = words.chain(self.platform.channel(&files.job, &files.result));
        let kernel =
            ["-kernel".into(), self.kernel.file.clone().into(), "-initrd".into(), files.archive.clone().into()];
        let disk = self.devices.has_disk.then(|| disk::arguments(&files.disk())).into_iter().flatten();
        words.chain(kernel).chain(self.devices.arguments()).chain(disk).chain(self.platform.pause()).collect()
    }

    /// Boots a guest of machine time to its rest, with `more` arguments, and schedules its threads as the plan says.
    pub(super) fn boot(&self, files: &Files, more: Vec<OsString>, limits: Limits<'_>) -> Result<AtRest, LabError> {
        let mut qemu = self.start(files, more)?;
        match guest_threads::settle(&mut qemu, &self.threads, limits.booting(&files.console)) {
            Ok((tids, threads)) => Ok(AtRest { qemu, tids, threads }),
            Err(QemuError::Refused(reason)) => Err(self.unusable(reason)),
            Err(gone) => Err(self.not_at_rest(files, gone)),
        }
    }

    /// Lets a guest go on from its rest.
    pub(super) fn go_on(&self, qemu: &mut Qemu, files: &Files, limits: Limits<'_>) -> Result<(), LabError> {
        qemu.go_on(limits).map_err(|gone| self.not_at_rest(files, gone))
    }

    /// Creates the memory for the guest's clock marks; returns the QEMU arguments for it.
    pub(super) fn marks(&self, files: &Files) -> Result<Vec<OsString>, LabError> {
        let file = files.marks();
        if self.platform.channel == Channel::Ports {
            let sized = File::create_new(&file).and_then(|made| made.set_len(SHARED_RESULT as u64));
            sized.map_err(|err| LabError::file(&file, err))?;
        }
        Ok(self.platform.marks(&file))
    }

    fn machine(&self) -> String {
        let Platform { names: [machine, processor], remark, .. } = self.platform;
        let (processor, remark) = if self.clock == LabClock::Kvm { ("host", "") } else { (*processor, *remark) };
        let cpus = format!("{} CPU{}", self.cpus, if self.cpus == 1 { "" } else { "s" });
        format!("{machine}, {processor}, {cpus}{remark}{}", self.devices)
    }

    /// The architecture of its kernel.
    pub(super) fn architecture(&self) -> Architecture {
        self.platform.architecture
    }

    /// The rest of the line of the result that begins so.
    pub(super) fn result(&self, files: &Files, begin: &str) -> Result<String, LabError> {
        files.result_line(begin).ok_or_else(|| self.missing_result(files, "exited without a result"))
    }

    /// The error of a cell that ended before this cycle.
    pub(super) fn not_reached(&self, cycle: u64) -> LabError {
        self.error(format!("cycle {cycle} was missed or is not part of the cell"))
    }

    /// Errors: if a record is from another guest: of another kernel, program or QEMU.
    pub(super) fn is_of(&self, record: &Record) -> Result<(), LabError> {
        let Some(lab) = &record.lab else { return Err(LabError::program("lab film", "no record of the lab")) };
        let pairs = [
            ("kernel", &lab.kernel_hash, &self.kernel.hash),
            ("command line", &lab.command_line, &self.command_line),
            ("program or its files (initramfs)", &lab.initramfs_hash, &self.archive_hash),
            ("QEMU", &lab.qemu, &self.qemu_version()),
        ];
        match pairs.into_iter().find(|(_, then, now)| then != now) {
            None => Ok(()),
            Some((what, then, now)) => Err(LabError::program(
                "lab film",
                format!("cannot repeat the record: another {what}: {then} then, {now} now; measure again"),
            )),
        }
    }

    /// The error of a kernel that does not tell its functions.
    pub(super) fn without_symbols(&self) -> LabError {
        self.unusable("reports no functions; it needs CONFIG_KALLSYMS".to_owned())
    }

    /// QEMU's program.
    pub(super) fn qemu(&self) -> &'static str {
        self.platform.qemu
    }

    fn qemu_version(&self) -> String {
        version(self.platform.qemu).unwrap_or_default()
    }

    /// The record of a responder guest, written at its end.
    pub(super) fn target(&self, files: &Files) -> Result<TargetRecord, LabError> {
        let record = files.result_line(TARGET).and_then(|json| punctual_model::json::target(json.as_bytes()).ok());
        record.ok_or_else(|| self.missing_result(files, "exited without a record of its answers"))
    }

    /// The record written by the guest.
    pub(super) fn record(&self, files: &Files, job: &Job) -> Result<Record, LabError> {
        let record = files.result_line(RECORD).and_then(|json| punctual_model::json::record(json.as_bytes()).ok());
        let mut record = record.ok_or_else(|| self.missing_result(files, "exited without a record"))?;
        let settle_time = if self.clock == LabClock::Virtual { SETTLE_TIME } else { MACHINE_SETTLE_TIME };
        record.lab = Some(LabRecord {
            clock: self.clock,
            kernel: self.kernel.name.clone(),
            kernel_hash: self.kernel.hash.clone(),
            config: self.kernel.config.clone(),
            command_line: self.command_line.clone(),
            initramfs_hash: self.archive_hash.clone(),
            qemu: self.qemu_version(),
            machine: self.machine(),
            memory_mib: memory::MIB,
            threads: Vec::new(),
            host: None,
            settled_ns: u64::try_from(settle_time.as_nanos()).unwrap_or(u64::MAX).saturating_add(job.wait_ns),
        });
        Ok(record)
    }

    /// The error of a guest without a record: the guest's own message, else the end of QEMU.
    pub(super) fn failed(&self, files: &Files, gone: QemuError) -> LabError {
        if let Some(reason) = files.result_line(REFUSED) {
            return self.unusable(reason);
        }
        match files.result_line(FAILED) {
            Some(said) => self.error(said),
            None if matches!(gone, QemuError::Stopped | QemuError::Refused(_) | QemuError::Silent(_)) => {
                self.error(gone.to_string())
            }
            None => self.error(format!("{gone}; {}", files.console_tail())),
        }
    }

    /// The error of a guest that ended without its output: the guest's own message, else `what`.
    fn missing_result(&self, files: &Files, what: &str) -> LabError {
        match files.result_line(REFUSED) {
            Some(reason) => self.unusable(reason),
            None => {
                self.error(files.result_line(FAILED).unwrap_or_else(|| format!("{what}; {}", files.console_tail())))
            }
        }
    }

    /// The error of a guest that did not come to rest. If it exited by itself or printed nothing, it would do so again,
    /// whatever is measured on it.
    pub(super) fn not_at_rest(&self, files: &Files, gone: QemuError) -> LabError {
        let is_its_own = match &gone {
            QemuError::Exited { status, .. } => status.code().is_some(),
            gone => matches!(gone, QemuError::Silent(_)),
        };
        match self.failed(files, gone) {
            LabError::Guest { reason, .. } if is_its_own => self.unusable(reason),
            err => err,
        }
    }

    fn unusable(&self, reason: String) -> LabError {
        LabError::Kernel { kernel: self.name.clone(), reason }
    }

    pub(super) fn error(&self, reason: String) -> LabError {
        LabError::Guest { kernel: self.name.clone(), reason }
    }
}

/// A guest of machine time that has booted and is paused.
#[derive(Debug)]
pub(super) struct AtRest {
    pub(super) qemu: Qemu,
    /// Its threads.
    pub(super) tids: GuestTids,
    /// Those whose scheduling the plan sets.
    pub(super) threads: Vec<GuestThread>,
}

impl Files {
    /// The image of the guest's disk.
    fn disk(&self) -> PathBuf {
        self.result.with_file_name("disk")
    }

    /// The file of the memory with the guest's clock marks.
    pub(super) fn marks(&self) -> PathBuf {
        match self.channel {
            Channel::Ports => self.result.with_file_name("marks"),
            Channel::SharedMemory => self.result.clone(),
        }
    }

    /// Whether a responder guest is ready.
    pub(super) fn is_ready(&self) -> bool {
        self.result_line(READY).is_some()
    }

    /// The rest of the result line that begins with `begin`.
    fn result_line(&self, begin: &str) -> Option<String> {
        let result = match self.channel {
            Channel::Ports => fs::read_to_string(&self.result).ok()?,
            Channel::SharedMemory => shared_memory::read(&self.result).ok()?,
        };
        result.lines().find_map(|line| line.strip_prefix(begin)).map(str::to_owned)
    }

    /// The rest of each result line that begins with `begin`.
    pub(super) fn result_lines(&self, begin: &str) -> Vec<String> {
        let result = fs::read_to_string(&self.result).unwrap_or_default();
        result.lines().filter_map(|line| line.strip_prefix(begin)).map(str::to_owned).collect()
    }

    /// A further file of the guest.
    pub(super) fn beside(&self, name: &str) -> PathBuf {
        self.result.with_file_name(name)
    }

    /// QEMU arguments for a guest with a due time that is moved earlier by so much, and that may end after it.
    pub(super) fn moving(&self, earlier_ns: u64, is_last: bool) -> Result<[OsString; 2], LabError> {
        let path = self.beside("move");
        let content = [&earlier_ns.to_le_bytes()[..], &[u8::from(is_last)]].concat();
        directories::write_new(&path, &content).map_err(|err| LabError::file(&path, err))?;
        Ok(["-fw_cfg".into(), format!("name={MOVE_FILE},file={}", directories::as_value(&path)).into()])
    }

    /// The file of the console.
    pub(super) fn console(&self) -> &Path {
        &self.console
    }

    fn console_tail(&self) -> String {
        let console = fs::read(&self.console).unwrap_or_default();
        let console = String::from_utf8_lossy(&console).into_owned();
        let lines: Vec<_> = console.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        if let Some(line) = lines.iter().find(|line| DYING_WORDS.iter().any(|words| line.contains(words))) {
            return format!("its console says: {line}");
        }
        match lines.len() {
            0 => format!("its console ({}) is empty", self.port),
            n => format!("its console ends with: {}", lines.get(n.saturating_sub(3)..).unwrap_or_default().join(" | ")),
        }
    }
}

/// The initramfs of a guest: this program for its architecture as init, and the files of the plan.
fn initramfs(
    kernel: &LabKernel,
    platform: &'static Platform,
    devices: Devices,
    monitor: Monitor<'_>,
) -> Result<Vec<u8>, LabError> {
    let mut archive = Archive::default();
    for directory in ["dev", "proc", "run", "sys", "tmp", "var", "var/tmp"] {
        archive.directory(directory);
    }
    archive.program("init", &stripped_program(platform.architecture)?);
    guest_files::add(&mut archive, kernel, platform, &devices.modules(), monitor)?;
    Ok(archive.finish())
}
