//! A boot by the running kernel (kexec_file_load(2)).

use super::common::{NoBoot, with_arguments, write};
use crate::HostFs;
use punctual_model::InstalledKernel;
use std::fs::File;
use std::path::PathBuf;

/// Names the boot in which we have loaded a kernel, beside the program that goes on.
const LOADED: &str = "var/lib/punctual/kexec";

/// Reason why the running kernel cannot boot another one.
pub(super) fn check(fs: &HostFs, kernel: &InstalledKernel) -> Result<(), String> {
    let [image, _] = files(fs, kernel);
    if fs.text("sys/kernel/kexec_loaded").is_none() {
        return Err("the running kernel has no kexec (CONFIG_KEXEC_FILE)".to_owned());
    }
    if fs.text("proc/sys/kernel/kexec_load_disabled").as_deref() == Some("1") {
        return Err("kexec_load_disabled forbids kexec until the next boot".to_owned());
    }
    if !image.is_file() {
        return Err(format!("no {}", image.display()));
    }
    Ok(())
}

/// Image and initial file system.
fn files(fs: &HostFs, kernel: &InstalledKernel) -> [PathBuf; 2] {
    ["vmlinuz", "initrd.img"].map(|name| fs.root.join(format!("boot/{name}-{}", kernel.release)))
}

pub(super) fn boot_next(fs: &HostFs, kernel: &InstalledKernel, without: &[&str]) -> Result<(), NoBoot> {
    let open = |path: &PathBuf| File::open(path).map_err(|err| NoBoot::Io(path.clone(), err));
    let [image, initrd] = files(fs, kernel);
    let initrd = initrd.is_file().then(|| open(&initrd)).transpose()?;
    let running = fs.text("proc/cmdline").unwrap_or_default();
    let words = running.split_whitespace().filter(|word| !word.starts_with("BOOT_IMAGE="));
    let line = with_arguments(words, kernel, without).join(" ");
    punctual_sys::boot::load_next_kernel(&open(&image)?, initrd.as_ref(), &line).map_err(|err| {
        let locked = fs.text("sys/kernel/security/lockdown").is_some_and(|modes| !modes.contains("[none]"));
        let why =
            if locked { " (Secure Boot has locked the kernel down, which takes signed kernels only)" } else { "" };
        NoBoot::Failed(format!("kexec of {kernel}: {err}{why}"))
    })?;
    // Not before: until then, the kernel of another program may be loaded.
    let noted = write(&fs.root.join(LOADED), fs.boot_id().unwrap_or_default().as_bytes());
    noted.inspect_err(|_| drop(punctual_sys::boot::unload_next_kernel()))
}

/// Unloads the kernel that we have loaded.
pub(super) fn forget(fs: &HostFs) -> Result<Option<PathBuf>, NoBoot> {
    let path = fs.root.join(LOADED);
    let Some(boot) = fs.text(LOADED) else { return Ok(None) };
    // A kernel that another program has loaded after a boot is not ours.
    let is_loaded = fs.text("sys/kernel/kexec_loaded").as_deref() == Some("1");
    if is_loaded && fs.boot_id().as_ref() == Some(&boot) {
        punctual_sys::boot::unload_next_kernel().map_err(|err| NoBoot::Failed(format!("unloading a kernel: {err}")))?;
    }
    write(&path, b"").map(|()| Some(path))
}
