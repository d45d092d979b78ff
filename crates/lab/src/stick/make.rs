//! Making a stick: its boot files, the image with two file systems, and its name at the end.

use super::boot_loader::{DIRECTORY, Item, bios_code, menu};
use super::choices::plans;
use super::layout::{Partition, add_table, partitions, text_of};
use super::names::{EFI_FILES, KERNELS};
use super::tools::Tools;
use crate::initramfs::{Archive, stripped_program};
use crate::stick_modules::STICK_MODULES;
use crate::{Fetching, LabError, Monitor, kernels};
use flate2::Compression;
use flate2::write::GzEncoder;
use punctual_host::PrivateDirectory;
use punctual_model::{Architecture, InstalledKernel, LabKernel};
use std::fs::{self, File};
use std::hash::{BuildHasher, RandomState};
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Label of the second partition.
const LABEL: &str = "PUNCTUAL";

/// Most kernels of a menu; they have keys of one digit.
const MAX_KERNELS: usize = 9;

/// A file of the first partition, and its content.
type BootFile = (String, Vec<u8>);

/// Writes the image of a stick that boots these kernels to the new file `output`, or replaces it. Errors: if a kernel
/// is not one of a PC or cannot be fetched, a program fails, or the image cannot be written; nothing is left then.
pub fn make(
    asked: &[LabKernel],
    output: &Path,
    monitor: Monitor<'_>,
    observe: &mut dyn FnMut(Fetching<'_>),
) -> Result<u64, LabError> {
    check(asked, output)?;
    let failed = |err: io::Error| LabError::file(output, err);
    let parent = output.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let scratch = PrivateDirectory::new(parent, ".punctual-stick").map_err(failed)?;
    let tools = Tools::find(monitor)?;
    let (mut files, mut items) = (Vec::new(), Vec::new());
    for (n, kernel) in asked.iter().enumerate() {
        let (item, of_kernel) = boot_files(n, kernel, monitor, observe)?;
        items.push(item);
        files.extend(of_kernel);
    }
    files.push(("kernels/punctual.gz".to_owned(), program(&items)?));
    for (name, from) in EFI_FILES {
        let path = tools.file(from);
        files.push((name.to_owned(), fs::read(&path).map_err(|err| LabError::file(&path, err))?));
    }
    // It distinguishes the stick from another one, and from the disks of the PC.
    let identity = u32::try_from(RandomState::new().hash_one(output) >> 32).unwrap_or(1).max(1);
    files.push((format!("{DIRECTORY}/grub.cfg"), menu(&text_of(identity), &items).into_bytes()));
    let image = scratch.path().join("image");
    let bytes = write(&image, identity, &files, &tools, scratch.path())?;
    let synced = File::open(&image).and_then(|image| image.sync_all());
    synced.and_then(|()| fs::rename(&image, output)).map_err(failed)?;
    Ok(bytes)
}

/// Refuses what a stick cannot boot, and an output that is not an ordinary file.
fn check(asked: &[LabKernel], output: &Path) -> Result<(), LabError> {
    if asked.len() > MAX_KERNELS {
        return Err(LabError::program("stick", format!("at most {MAX_KERNELS} kernels; leave some out")));
    }
    if fs::metadata(output).is_ok_and(|found| !found.is_file()) {
        let path = output.display();
        let reason = format!("expected a file; write the image to a device with dd: dd if=stick.img of={path} bs=4M");
        return Err(LabError::file(output, reason));
    }
    for kernel in asked {
        let LabKernel { source, arguments, .. } = kernel;
        let plain: Option<punctual_model::Kernel> = format!("{source} {arguments}").trim().parse().ok();
        let name = source.to_string();
        if plain != Some(punctual_model::Kernel::Lab(Box::new(kernel.clone()))) {
            let reason = "unsupported on a stick: clock=, cpus=, modules= and files; leave them out";
            return Err(LabError::program(&name, reason));
        }
        InstalledKernel::check_arguments(arguments).map_err(|err| LabError::program(&name, err))?;
        if kernels::architecture_of(source).is_some_and(|found| found != Architecture::X86_64) {
            return Err(LabError::program(&name, "unsupported: a stick for another machine than a PC (x86-64)"));
        }
    }
    Ok(())
}

/// The item of a kernel in the menu, and its files.
fn boot_files(
    n: usize,
    kernel: &LabKernel,
    monitor: Monitor<'_>,
    observe: &mut dyn FnMut(Fetching<'_>),
) -> Result<(Item, [BootFile; 2]), LabError> {
    let (name, path) = kernels::as_packaged(&kernel.source, monitor, observe)?;
    let content = fs::read(&path).map_err(|err| LabError::file(&path, err))?;
    // GRUB starts a bzImage (Documentation/arch/x86/boot.rst).
    if content.get(0x202..0x206) != Some(b"HdrS") {
        return Err(LabError::file(&path, "expected a bzImage for x86; name another file"));
    }
    let mut archive = Archive::default();
    archive.directory(crate::modules::PLACE.trim_start_matches('/'));
    for (module, content) in kernels::modules(kernel, &STICK_MODULES, monitor)? {
        archive.file(&format!("{}/{module}", crate::modules::PLACE.trim_start_matches('/')), &content);
    }
    let drivers = compressed(&archive.finish()).map_err(|err| LabError::file(&path, err))?;
    let name = Path::new(&name).file_name().unwrap_or_default().to_string_lossy().into_owned();
    let name = name.trim_start_matches("linux-image-").trim_start_matches("vmlinuz-");
    let name = format!("{name} {}", kernel.arguments).trim_end().to_owned();
    let item = Item { name, arguments: kernel.arguments.clone() };
    Ok((item, [(format!("kernels/{n}/vmlinuz"), content), (format!("kernels/{n}/drivers.gz"), drivers)]))
}

/// The initramfs of all kernels: this program as init, the names of the kernels, and the plans of the menu.
fn program(items: &[Item]) -> Result<Vec<u8>, LabError> {
    let mut archive = Archive::default();
    for directory in ["dev", "proc", "results", "run", "sys", "tmp", "var", "var/tmp", "plans"] {
        archive.directory(directory);
    }
    archive.program("init", &stripped_program(Architecture::X86_64)?);
    let names: Vec<_> = items.iter().map(|item| format!("{}\n", item.name)).collect();
    archive.file(KERNELS, names.concat().as_bytes());
    for (name, text) in plans() {
        archive.file(&format!("plans/{name}.toml"), text.as_bytes());
    }
    compressed(&archive.finish()).map_err(|err| LabError::program("stick", err))
}

/// Firmware reads a few MB a second; the kernel unpacks a compressed archive faster.
fn compressed(archive: &[u8]) -> io::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(archive)?;
    encoder.finish()
}

/// Writes the whole image; returns its size in bytes.
fn write(path: &Path, identity: u32, files: &[BootFile], tools: &Tools, scratch: &Path) -> Result<u64, LabError> {
    let failed = |err: io::Error| LabError::file(path, err);
    let [boot, results] = partitions(files.iter().map(|(_, content)| content.len() as u64).sum());
    let mut code = bios_code(tools, scratch)?;
    add_table(&mut code, identity, [boot, results]);
    let image = File::create_new(path).map_err(failed)?;
    image.set_len(results.end()).and_then(|()| image.write_all_at(&code, 0)).map_err(failed)?;
    let file_system = |of: Partition, label: &str, serial: u32| {
        let (sectors, hidden) = (of.sectors.to_string(), of.first_sector.to_string());
        let serial = text_of(serial);
        let place = place(path, of);
        let words = ["-c", "mformat", "-i", &place, "-F", "-T", &sectors, "-h", "255", "-s", "63"];
        tools.run("mtools", &[&words[..], &["-H", &hidden, "-v", label, "-N", &serial, "::"]].concat())
    };
    file_system(boot, "BOOT", identity)?;
    file_system(results, LABEL, identity.wrapping_add(1))?;
    put(path, boot, files, tools, scratch)?;
    Ok(results.end())
}

/// Copies files into the file system of a partition.
fn put(image: &Path, to: Partition, files: &[BootFile], tools: &Tools, scratch: &Path) -> Result<(), LabError> {
    let tree = scratch.join("boot");
    let failed = |err: io::Error| LabError::file(&tree, err);
    for (name, content) in files {
        let path = tree.join(name);
        path.parent().map_or(Ok(()), fs::create_dir_all).and_then(|()| fs::write(&path, content)).map_err(failed)?;
    }
    let mut words = ["-c", "mcopy", "-i", &place(image, to), "-s", "-Q"].map(str::to_owned).to_vec();
    for entry in fs::read_dir(&tree).map_err(failed)? {
        words.push(entry.map_err(failed)?.path().display().to_string());
    }
    words.push("::".to_owned());
    tools.run("mtools", &words.iter().map(String::as_str).collect::<Vec<_>>())
}

/// A partition in the words of mtools.
fn place(image: &Path, of: Partition) -> String {
    format!("{}@@{}", image.display(), of.offset())
}

#[cfg(test)]
mod tests {
    use super::*;
    use punctual_model::Kernel;

    #[test]
    fn what_a_stick_cannot_boot_is_refused() {
        let checked = |kernel: &str, output: &str| {
            let Kernel::Lab(kernel) = kernel.parse().unwrap() else { panic!("{kernel} is of the lab") };
            check(&[*kernel], Path::new(output)).map_err(|err| err.to_string())
        };
        assert_eq!(checked("debian:6.12", "/nowhere/stick.img"), Ok(()));
        assert_eq!(checked("debian:6.12-rt-amd64 preempt=full  isolcpus=1", "stick.img"), Ok(()));
        for (kernel, expected) in [
            ("debian:6.12-arm64", "debian:6.12-arm64: unsupported: a stick for another machine than a PC (x86-64)"),
            ("debian:6.12 clock=emulated", "unsupported on a stick: clock=, cpus=, modules= and files; leave them out"),
            (
                "debian:6.12 file=/etc/fstab",
                "unsupported on a stick: clock=, cpus=, modules= and files; leave them out",
            ),
            ("debian:6.12 a=}b", "of a kernel to boot: expected a word of its command line, like threadirqs"),
        ] {
            let reason = checked(kernel, "stick.img").unwrap_err();
            assert!(reason.ends_with(expected), "{kernel}: {reason}");
        }
        assert!(checked("debian:6.12", "/dev/null").unwrap_err().starts_with("/dev/null: expected a file; "));
        let Kernel::Lab(kernel) = "debian:6.12".parse().unwrap() else { panic!("of the lab") };
        assert_eq!(check(&vec![*kernel.clone(); MAX_KERNELS], Path::new("stick.img")).ok(), Some(()));
        let many = check(&vec![*kernel; MAX_KERNELS + 1], Path::new("stick.img")).unwrap_err().to_string();
        assert!(many.ends_with("at most 9 kernels; leave some out"), "{many}");
    }

    #[test]
    fn the_initramfs_has_all_plans_and_names() {
        let item = |name: &str| Item { name: name.to_owned(), arguments: String::new() };
        let packed = program(&[item("6.12-rt"), item("6.12 preempt=full")]).unwrap();
        let unpacked = crate::image::piped("gzip", &["-dc"], &packed).unwrap();
        let has = |text: &str| memchr::memmem::find(&unpacked, text.as_bytes()).is_some();
        assert!(has("6.12-rt\n6.12 preempt=full\n") && has("plans/ten-minutes.toml") && has("TRAILER!!!"));
        assert!(unpacked.starts_with(b"070701"), "the kernel's form of cpio");
    }
}
