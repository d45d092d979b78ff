//! Files that a plan gives its guests: files, directories, and the libraries and interpreters of their programs.

use super::elf::{self, Elf};
use super::initramfs::Archive;
use super::platform::Platform;
use super::{LabError, Monitor, kernels, modules, regular_file};
use punctual_model::LabKernel;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Program search path of a guest.
pub(super) const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Size limit of all files, bytes: they are in memory twice while the kernel unpacks them.
const MAX_BYTES: usize = 160 << 20;

/// Paths reserved for the lab.
const RESERVED_PATHS: [&str; 2] = ["/init", modules::PLACE];

/// The loader's cache of further directories.
const LIBRARY_CACHE: &str = "/etc/ld.so.cache";

/// Adds the files of `kernel` to the initramfs, and the modules of its own with these names. Errors: if a file is
/// missing, cannot be in a guest, or all files together are too large.
pub(super) fn add(
    archive: &mut Archive,
    kernel: &LabKernel,
    platform: &'static Platform,
    own: &[&str],
    monitor: Monitor<'_>,
) -> Result<(), LabError> {
    let mut files = GuestFiles { platform, entries: BTreeMap::new(), bytes: 0 };
    for (name, content) in kernels::modules(kernel, own, monitor)? {
        files.put(&format!("{}/{name}", modules::PLACE), Entry::File(content), Path::new(&name))?;
    }
    if let Some(path) = &kernel.modules {
        for (name, content) in modules::below(Path::new(path))? {
            files.put(&format!("{}/{name}", modules::PLACE), Entry::File(content), Path::new(path))?;
        }
    }
    for file in &kernel.files {
        // These mount points would hide files of the archive.
        let taken =
            punctual_host::mount_points().chain(RESERVED_PATHS).find(|place| Path::new(&file.to).starts_with(place));
        if let Some(place) = taken {
            let reason = format!("reserved path {place} of a guest; choose another path, like {}:/opt/it", file.from);
            return Err(LabError::file(Path::new(&file.to), reason));
        }
        files.tree(Path::new(&file.from), &file.to, true)?;
    }
    files.into_archive(archive);
    Ok(())
}

#[derive(Debug)]
enum Entry {
    Directory,
    Program(Vec<u8>),
    File(Vec<u8>),
    /// Target of the link.
    Link(String),
}

/// GuestFiles files by their path in the guest; sorted, so that archives are reproducible.
#[derive(Debug)]
struct GuestFiles {
    platform: &'static Platform,
    entries: BTreeMap<String, Entry>,
    bytes: usize,
}

impl GuestFiles {
    /// Adds a file, or a directory with its content. Missing libraries are an error only for programs that the plan
    /// names itself: a directory may hold programs that do not run on this machine either.
    fn tree(&mut self, from: &Path, to: &str, is_named: bool) -> Result<(), LabError> {
        let failed = |err| LabError::file(from, err);
        let about = fs::metadata(from).map_err(failed)?;
        if !about.is_dir() {
            return self.file(from, to, is_named);
        }
        self.put(to, Entry::Directory, from)?;
        let entries = fs::read_dir(from).map_err(failed)?.map(|entry| entry.map(|entry| entry.path()));
        let mut paths = entries.collect::<Result<Vec<_>, _>>().map_err(failed)?;
        paths.sort();
        for path in paths {
            let to = format!("{to}/{}", path.file_name().unwrap_or_default().display());
            // A link to a directory may lead back up, and a dangling one is kept as it is.
            match fs::read_link(&path) {
                Ok(target) if !path.is_file() => self.put(&to, Entry::Link(target.display().to_string()), &path)?,
                _ => self.tree(&path, &to, false)?,
            }
        }
        Ok(())
    }

    /// Adds a file, with its libraries or its interpreter if it is a program.
    fn file(&mut self, from: &Path, to: &str, is_named: bool) -> Result<(), LabError> {
        if self.entries.contains_key(to) {
            return Ok(());
        }
        let about = fs::metadata(from).map_err(|err| LabError::file(from, err))?;
        if !about.is_file() {
            return Err(LabError::file(from, "expected a file or a directory; leave it out of `files`"));
        }
        let more = usize::try_from(about.len()).unwrap_or(usize::MAX);
        if self.bytes.saturating_add(more) > MAX_BYTES {
            return Err(self.too_large(from, more));
        }
        let content = regular_file::read(from, MAX_BYTES as u64)?;
        let is_program = about.permissions().mode() & 0o111 != 0;
        let elf = elf::read(&content);
        let script = content.strip_prefix(b"#!").filter(|_| is_program).map(|rest| {
            String::from_utf8_lossy(rest.split(|byte| *byte == b'\n').next().unwrap_or_default()).into_owned()
        });
        self.put(to, if is_program { Entry::Program(content) } else { Entry::File(content) }, from)?;
        if let Some(elf) = elf {
            self.libraries(&elf, from, to).or_else(|err| if is_named { Err(err) } else { Ok(()) })?;
        }
        match script.as_deref().and_then(interpreter).filter(|path| is_named || path.is_file()) {
            Some(path) => self.file(&path, &path.display().to_string(), true),
            None => Ok(()),
        }
    }

    /// Adds the loader and the libraries of a program or a library.
    fn libraries(&mut self, elf: &Elf, from: &Path, to: &str) -> Result<(), LabError> {
        let architecture = self.platform.architecture;
        if elf.machine != architecture.elf_machine() {
            let reason = format!("unsupported: program for another processor; the guest is {}", architecture.name());
            return Err(LabError::file(from, reason));
        }
        if let Some(loader) = &elf.interpreter {
            self.file(Path::new(loader), loader, true)?;
        }
        let origin = |path: &Path| path.parent().unwrap_or(Path::new("/")).display().to_string();
        let own = elf.places.iter().map(|place| {
            let at = |origin: &str| place.replace("${ORIGIN}", origin).replace("$ORIGIN", origin);
            (at(&origin(from)), at(&origin(Path::new(to))))
        });
        let usual = self.platform.libraries.iter().map(|place| ((*place).to_owned(), (*place).to_owned()));
        let further = configured_library_directories(self.platform);
        let told = further.iter().map(|place| (place.clone(), place.clone()));
        let places: Vec<(String, String)> = own.chain(usual).chain(told).collect();
        for name in &elf.needed {
            // The loader is a library, too, at the path that programs name.
            if self.entries.keys().any(|path| path.starts_with("/lib64/") && path.ends_with(&format!("/{name}"))) {
                continue;
            }
            let found = places.iter().find(|(here, _)| Path::new(here).join(name).is_file());
            let Some((here, there)) = found else {
                let reason =
                    format!("requires {name}, which is not in a standard directory; add it to `files` as well");
                let is_listed = self.entries.keys().any(|path| path.ends_with(&format!("/{name}")));
                if is_listed {
                    continue;
                }
                return Err(LabError::file(from, reason));
            };
            self.file(&Path::new(here).join(name), &format!("{there}/{name}"), true)?;
            if further.contains(here) {
                self.file(Path::new(LIBRARY_CACHE), LIBRARY_CACHE, true)?;
            }
        }
        Ok(())
    }

    fn put(&mut self, to: &str, entry: Entry, from: &Path) -> Result<(), LabError> {
        if let Entry::Program(content) | Entry::File(content) = &entry {
            self.bytes += content.len();
        }
        if self.bytes > MAX_BYTES {
            return Err(self.too_large(from, 0));
        }
        let _ = self.entries.insert(to.to_owned(), entry);
        Ok(())
    }

    /// The error that `from`, with `more` bytes, does not fit; it names the largest files already added.
    fn too_large(&self, from: &Path, more: usize) -> LabError {
        const NAMED: usize = 3;
        let size = |entry: &Entry| match entry {
            Entry::Program(content) | Entry::File(content) => content.len(),
            Entry::Directory | Entry::Link(_) => 0,
        };
        let mut sizes: Vec<_> = self.entries.iter().map(|(path, entry)| (size(entry), path.as_str())).collect();
        sizes.sort_unstable();
        let shown = |(bytes, path): &(usize, &str)| format!("{path} ({} MiB)", bytes >> 20);
        let largest: Vec<_> = sizes.iter().rev().take(NAMED).map(shown).collect();
        let beside = if largest.is_empty() { String::new() } else { format!(" after {}", largest.join(", ")) };
        let (more, most) = (more >> 20, MAX_BYTES >> 20);
        LabError::file(from, format!("too large for a guest: {more} MiB{beside}; the limit is {most} MiB in all"))
    }

    /// Writes the entries, each after its parent directories.
    fn into_archive(self, archive: &mut Archive) {
        let mut made: BTreeSet<PathBuf> = BTreeSet::new();
        for (path, entry) in self.entries {
            let name = path.trim_start_matches('/');
            let above: Vec<_> = Path::new(name).ancestors().skip(1).filter(|above| *above != Path::new("")).collect();
            for directory in above.into_iter().rev() {
                if made.insert(directory.to_owned()) {
                    archive.directory(&directory.display().to_string());
                }
            }
            match entry {
                Entry::Directory => {
                    if made.insert(PathBuf::from(name)) {
                        archive.directory(name);
                    }
                }
                Entry::Program(content) => archive.program(name, &content),
                Entry::File(content) => archive.file(name, &content),
                Entry::Link(target) => archive.link(name, &target),
            }
        }
    }
}

/// The interpreter of a script with this first line (execve(2)); for `env`, the program found in PATH.
fn interpreter(line: &str) -> Option<PathBuf> {
    let mut words = line.split_whitespace();
    let first = words.next()?;
    if !first.ends_with("/env") {
        return Some(PathBuf::from(first));
    }
    let name = words.find(|word| !word.starts_with('-') && !word.contains('='))?;
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|directory| directory.join(name)).find(|path| path.is_file())
}

/// Further library directories of this machine (ldconfig(8)).
fn configured_library_directories(platform: &Platform) -> Vec<String> {
    let files = fs::read_dir("/etc/ld.so.conf.d").into_iter().flatten().flatten().map(|entry| entry.path());
    let mut files: Vec<_> = files.collect();
    files.sort();
    let texts = files.iter().filter_map(|path| fs::read_to_string(path).ok());
    let places = texts.flat_map(|text| text.lines().map(|line| line.trim().to_owned()).collect::<Vec<_>>());
    places.filter(|place| place.starts_with('/') && !platform.libraries.contains(&place.as_str())).collect()
}

/// Whether the files of `kernel` provide the program `name` in a guest's PATH.
pub(super) fn has_program(kernel: &LabKernel, name: &str) -> bool {
    PATH.split(':').any(|directory| {
        let program = Path::new(directory).join(name);
        kernel.files.iter().any(|file| {
            let rest = program.strip_prefix(&file.to).ok();
            rest.is_some_and(
                |rest| if rest == Path::new("") { true } else { Path::new(&file.from).join(rest).is_file() },
            )
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use punctual_host::testing::Scratch;
    use punctual_model::{Architecture, Kernel};

    fn kernel(words: &str) -> LabKernel {
        match format!("/k {words}").parse() {
            Ok(Kernel::Lab(kernel)) => *kernel,
            other => panic!("{other:?}"),
        }
    }

    fn added(words: &str) -> Result<Vec<String>, String> {
        let mut archive = Archive::default();
        add(
            &mut archive,
            &kernel(words),
            Platform::of(Architecture::OWN.unwrap()),
            &[],
            Monitor { is_stopped: &|| false, say: &|_| () },
        )
        .map_err(|err| err.to_string())?;
        Ok(archive.names().to_vec())
    }

    #[test]
    fn a_program_is_shipped_with_what_it_needs() {
        let names = added("file=/bin/sh:/opt/bin/sh").unwrap();
        assert!(names.starts_with(&["lib".to_owned()]) || names.contains(&"opt/bin/sh".to_owned()), "{names:?}");
        assert!(names.iter().position(|name| name == "opt/bin") < names.iter().position(|name| name == "opt/bin/sh"));
        let shell = elf::read(&fs::read("/bin/sh").unwrap()).unwrap();
        for needed in shell.needed.iter().chain(&shell.interpreter) {
            let end = needed.rsplit('/').next().unwrap();
            assert!(names.iter().any(|name| name.ends_with(end)), "{needed} is missing: {names:?}");
        }
        assert_eq!(added("file=/bin/sh:/opt/bin/sh").unwrap(), names, "the same each time");
        assert_eq!(added("").unwrap(), Vec::<String>::new());
    }

    #[test]
    fn a_directory_is_shipped_whole_with_its_links_as_they_are() {
        let scratch = Scratch::make();
        scratch.file("a/b/text", "x");
        std::os::unix::fs::symlink("..", scratch.path("a/b/up")).unwrap();
        for (script, text) in [("a/run", "#!/bin/sh\n"), ("a/lost", "#!/no/such/interpreter\n")] {
            fs::set_permissions(scratch.file(script, text), fs::Permissions::from_mode(0o755)).unwrap();
        }
        let names = added(&format!("file={}:/opt/a", scratch.path("a").display())).unwrap();
        for expected in ["opt", "opt/a", "opt/a/b", "opt/a/b/text", "opt/a/b/up", "opt/a/run", "bin/sh"] {
            assert!(names.contains(&expected.to_owned()), "{expected}: {names:?}");
        }
        let named = added(&format!("file={}:/opt/lost", scratch.path("a/lost").display())).unwrap_err();
        assert!(named.contains("/no/such/interpreter"), "{named}");
    }

    #[test]
    fn files_too_large_for_a_guest_are_refused_unread_and_named() {
        let scratch = Scratch::make();
        let (large, endless) = (scratch.file("large", vec![0; 2 << 20]), scratch.path("endless"));
        fs::File::create(&endless).unwrap().set_len(1 << 40).unwrap();
        let said = added(&format!("file={}:/opt/a file={}:/opt/b", large.display(), endless.display())).unwrap_err();
        let expected = "too large for a guest: 1048576 MiB after /opt/a (2 MiB); the limit is 160 MiB in all";
        assert_eq!(said, format!("{}: {expected}", endless.display()));
    }

    #[test]
    fn what_cannot_be_in_a_guest_is_one_line() {
        for (words, expected) in [
            ("file=/nowhere/x", "/nowhere/x: No such file or directory"),
            ("file=/bin/sh:/tmp/sh", "reserved path /tmp of a guest"),
            ("file=/bin/sh:/init", "reserved path /init of a guest"),
            ("file=/dev/null:/opt/null", "expected a file or a directory"),
            ("modules=/nowhere", "/nowhere: No such file or directory"),
            ("modules=/etc/hostname", "expected a module"),
        ] {
            let said = added(words).unwrap_err();
            assert!(said.contains(expected), "{words}: {said}");
        }
    }

    #[test]
    fn a_program_is_found_where_a_guest_looks_for_it() {
        for (words, name, is_there) in [
            ("file=/usr/bin/dash:/bin/sh", "sh", true),
            ("file=/usr/bin/dash", "sh", false),
            ("file=/usr/bin/dash:/opt/sh", "sh", false),
            ("file=/bin:/bin", "sh", true),
            ("file=/bin:/bin", "no-such-program", false),
            ("", "sh", false),
        ] {
            assert_eq!(has_program(&kernel(words), name), is_there, "{words} {name}");
        }
    }
}
