//! Replacing, appending to and reading files in directories of any owner, without following planted links.

use crate::PrivateDirectory;
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, IsTerminal, Read, Write};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Permissions of files that this program creates, before the umask: only the user may write, others may read.
const MODE: u32 = 0o644;

/// A new file that gets its final name when it is complete; before, it has the name with a suffix. Dropping it
/// incomplete removes it.
#[derive(Debug)]
pub struct Replacement {
    file: File,
    unfinished: PathBuf,
    path: PathBuf,
    is_named: bool,
}

impl Replacement {
    /// Creates a file that is to replace `path`, under the name `path` + `suffix`.
    pub fn new(path: &Path, suffix: &str) -> io::Result<Replacement> {
        let unfinished = with_suffix(path, suffix);
        let file = create(&unfinished)?;
        Ok(Replacement { file, unfinished, path: path.to_owned(), is_named: false })
    }

    /// Gives the file its name once its content is on disk, and syncs the name, too. A previous file of any type with
    /// that name is replaced; of a link, the link itself. Errors: when the disk is full or fails, or a directory has
    /// the name.
    pub fn commit(&mut self) -> io::Result<()> {
        self.file.sync_all()?;
        fs::rename(&self.unfinished, &self.path)?;
        self.is_named = true;
        sync_directory_of(&self.path)
    }

    /// As [`Replacement::commit`]; returns the open file for further writes. Errors: as [`Replacement::commit`].
    pub fn commit_open(mut self) -> io::Result<File> {
        self.commit()?;
        self.file.try_clone()
    }
}

impl Write for Replacement {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Drop for Replacement {
    fn drop(&mut self) {
        if !self.is_named {
            let _ = fs::remove_file(&self.unfinished);
        }
    }
}

/// Creates a new file after removing a file or link of that name. With `O_EXCL` no link is followed, open(2).
pub fn create(path: &Path) -> io::Result<File> {
    match fs::remove_file(path) {
        Err(err) if err.kind() != io::ErrorKind::NotFound => return Err(err),
        _ => {}
    }
    // Appending, because the file of a run is written through this descriptor for as long as the run lasts.
    OpenOptions::new().read(true).append(true).create_new(true).mode(MODE).custom_flags(libc::O_NOFOLLOW).open(path)
}

/// Creates a file in `directory` that has no name, or none any more: it ends with its last descriptor.
pub fn without_name(directory: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).mode(0o600);
    match options.clone().custom_flags(libc::O_TMPFILE).open(directory) {
        // A file system without such files, open(2).
        Err(err) if matches!(err.raw_os_error(), Some(libc::EOPNOTSUPP | libc::EISDIR)) => {
            let hidden = PrivateDirectory::new(directory, "punctual-file")?;
            options.create_new(true).open(hidden.path().join("file"))
        }
        opened => opened,
    }
}

/// Replaces the file `path` by one with this content. Errors: when it cannot be created or written; the file is then
/// unchanged.
pub fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    replace_with(path, content, None)
}

/// As [`replace`], with the permissions of the file that was there.
pub(crate) fn replace_content(path: &Path, content: &[u8]) -> io::Result<()> {
    replace_with(path, content, fs::metadata(path).ok().map(|found| found.permissions()))
}

/// As [`replace`], with a program: it has its name only once it can be executed, also after a power cut.
pub fn replace_program(path: &Path, content: &[u8]) -> io::Result<()> {
    replace_with(path, content, Some(PermissionsExt::from_mode(0o755)))
}

fn replace_with(path: &Path, content: &[u8], permissions: Option<fs::Permissions>) -> io::Result<()> {
    let mut new = Replacement::new(path, ".new")?;
    permissions.map_or(Ok(()), |permissions| new.file.set_permissions(permissions))?;
    new.write_all(content)?;
    new.commit()
}

/// Writes to a `path` given by the user: own descriptors, pipes and devices are written to, other files are replaced.
/// Errors: as [`replace`].
pub fn write_named(path: &Path, content: &[u8]) -> io::Result<()> {
    // Descriptor paths are links, also to regular files, and must not be replaced.
    let is_descriptor = ["/dev/stdout", "/dev/stderr", "/dev/fd"].iter().any(|prefix| path.starts_with(prefix));
    if is_descriptor || fs::metadata(path).is_ok_and(|found| !found.is_file() && !found.is_dir()) {
        return OpenOptions::new().write(true).open(path)?.write_all(content);
    }
    replace(path, content)
}

/// Opens a regular file for reading. Other types are refused without waiting: a FIFO or a device has no end. Errors:
/// when it cannot be opened, or is not a regular file.
pub fn open(path: &Path) -> io::Result<File> {
    open_checked(path, regular)
}

/// Opens a file for reading that `check` accepts, without blocking. A refused file is not opened, if possible. Errors:
/// when it cannot be opened, or `check` refuses it.
pub fn open_checked(path: &Path, check: impl Fn(&fs::Metadata) -> io::Result<()>) -> io::Result<File> {
    // Checked before, because opening a device may have side effects, and after, because the file may be another one.
    check(&fs::metadata(path)?)?;
    let file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path)?;
    check(&file.metadata()?)?;
    Ok(file)
}

/// Opens a regular file for reading, and follows no link. Errors: when it cannot be opened, or is not a regular file.
pub fn open_without_link(path: &Path) -> io::Result<File> {
    regular(&fs::symlink_metadata(path)?)?;
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    regular(&file.metadata()?)?;
    Ok(file)
}

/// The regular files below a directory, with their paths from there on and their sizes, and at most `most` of them. No
/// link is followed. Errors: when a directory cannot be read, or more files are below it.
pub fn below(directory: &Path, most: usize) -> io::Result<Vec<(PathBuf, u64)>> {
    let (mut files, mut directories) = (Vec::new(), vec![PathBuf::new()]);
    while let Some(path) = directories.pop() {
        for entry in fs::read_dir(directory.join(&path))? {
            let entry = entry?;
            let (path, found) = (path.join(entry.file_name()), entry.metadata()?);
            match found.file_type() {
                kind if kind.is_dir() => directories.push(path),
                kind if kind.is_file() => files.push((path, found.len())),
                _ => {}
            }
            if files.len() + directories.len() > most {
                return Err(io::Error::other(format!("a directory with more than {most} files")));
            }
        }
    }
    Ok(files)
}

/// Opens a regular file for reading and appending, and follows no link. Errors: when it cannot be opened, or is not a
/// regular file.
pub fn open_to_append(path: &Path) -> io::Result<File> {
    regular(&fs::symlink_metadata(path)?)?;
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
    let file = OpenOptions::new().read(true).append(true).custom_flags(flags).open(path)?;
    regular(&file.metadata()?)?;
    Ok(file)
}

fn regular(found: &fs::Metadata) -> io::Result<()> {
    if found.is_file() {
        Ok(())
    } else {
        Err(io::Error::other(format!("expected a regular file, found {}", kind(found))))
    }
}

fn kind(found: &fs::Metadata) -> &'static str {
    let kind = found.file_type();
    match () {
        () if kind.is_dir() => "a directory",
        () if kind.is_symlink() => "a link",
        () if kind.is_fifo() => "a pipe",
        () if kind.is_socket() => "a socket",
        () => "a device",
    }
}

/// Opens and reads a file given by the user.
///
/// A pipe and a terminal are read to their end, so that `/dev/stdin` can be given. Errors: when it cannot be read, is a
/// directory or a device, or holds more than `most` bytes.
pub fn read_named(path: &Path, most: u64) -> io::Result<(File, Vec<u8>)> {
    let found = fs::metadata(path)?;
    let is_device = found.file_type().is_block_device() || found.file_type().is_char_device() && !is_terminal(path);
    if is_device {
        return Err(io::Error::other("expected a file or a pipe, found a device"));
    }
    let file = File::open(path)?;
    let mut bytes = Vec::new();
    (&file).take(most + 1).read_to_end(&mut bytes)?;
    if u64::try_from(bytes.len()).is_ok_and(|length| length <= most) {
        return Ok((file, bytes));
    }
    Err(io::Error::other(format!("larger than {} MiB", most >> 20)))
}

fn is_terminal(path: &Path) -> bool {
    File::open(path).is_ok_and(|file| file.is_terminal())
}

/// A path with a suffix appended to its name.
pub fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(suffix);
    name.into()
}

/// Syncs the directory of `path`, so that its names are on disk. Errors: when the disk fails.
pub fn sync_directory_of(path: &Path) -> io::Result<()> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    match File::open(parent.unwrap_or(Path::new("."))) {
        // A directory may be open for writing only.
        Err(err) if err.kind() == io::ErrorKind::PermissionDenied => Ok(()),
        directory => directory?.sync_all(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Scratch;
    use std::os::unix::fs::{MetadataExt, symlink};

    fn text(path: &Path) -> String {
        fs::read_to_string(path).unwrap()
    }

    #[test]
    fn a_file_without_name_is_in_no_directory() {
        let scratch = Scratch::make();
        let mut file = without_name(scratch.dir()).unwrap();
        file.write_all(b"pages").unwrap();
        assert_eq!((scratch.names().len(), file.metadata().unwrap().len()), (0, 5));
        assert_eq!(without_name(&scratch.path("absent")).unwrap_err().kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn what_is_planted_is_replaced_and_never_written_through() {
        let scratch = Scratch::make();
        let victim = scratch.file("victim", "precious");
        let (page, unfinished) = (scratch.path("page"), scratch.path("page.new"));
        // Under the final name, under the temporary name, and both.
        let plants: [fn(&Scratch, &Path, &Path); 5] = [
            |_, victim, at| symlink(victim, at).unwrap(),
            |_, _, at| symlink("/dev/null", at).unwrap(),
            |scratch, _, at| drop(scratch.fifo(at.file_name().unwrap().to_str().unwrap())),
            |_, _, at| fs::write(at, "old").unwrap(),
            |_, _, at| symlink("nowhere", at).unwrap(),
        ];
        for plant in plants {
            for at in [&page, &unfinished] {
                plant(&scratch, &victim, at);
                replace(&page, b"new").unwrap();
                let found = fs::symlink_metadata(&page).unwrap();
                assert!(found.is_file() && found.mode() & 0o777 & !0o644 == 0, "{found:?}");
                assert_eq!((text(&page).as_str(), text(&victim).as_str()), ("new", "precious"));
                assert_eq!(scratch.names(), ["page", "victim"]);
                fs::remove_file(&page).unwrap();
            }
        }
        // A directory is not removed.
        fs::create_dir(&unfinished).unwrap();
        assert!(replace(&page, b"new").is_err());
        assert_eq!(scratch.names(), ["page.new", "victim"]);
    }

    #[test]
    fn files_below_a_directory_are_listed_without_links() {
        let scratch = Scratch::make();
        fs::create_dir_all(scratch.path("a/b")).unwrap();
        for (name, text) in [("a/b/one", "1"), ("two", "22")] {
            scratch.file(name, text);
        }
        scratch.fifo("pipe");
        symlink("two", scratch.path("link")).unwrap();
        symlink("/proc", scratch.path("a/proc")).unwrap();
        let mut found = below(&scratch.path(""), 3).unwrap();
        found.sort();
        assert_eq!(found, [(PathBuf::from("a/b/one"), 1), (PathBuf::from("two"), 2)]);
        assert!(below(&scratch.path(""), 1).unwrap_err().to_string().contains("more than 1 files"));
        assert!(below(&scratch.path("nothing"), 1).is_err());
    }

    #[test]
    fn what_fails_leaves_the_file_as_it_was() {
        let scratch = Scratch::make();
        let page = scratch.file("page", "old");
        let mut new = Replacement::new(&page, ".new").unwrap();
        new.write_all(b"half").unwrap();
        drop(new);
        assert_eq!((text(&page).as_str(), scratch.names()), ("old", vec!["page".to_owned()]));
        assert!(replace(&scratch.path("none/page"), b"new").is_err());
    }

    #[test]
    fn a_named_stream_is_written_to_and_a_named_file_replaced() {
        let scratch = Scratch::make();
        let page = scratch.path("page");
        symlink("/dev/null", &page).unwrap();
        write_named(&page, b"new").unwrap();
        assert!(fs::symlink_metadata(&page).unwrap().is_symlink(), "written to the device");
        let pipe = scratch.fifo("pipe");
        let reader = std::thread::spawn({
            let pipe = pipe.clone();
            move || text(&pipe)
        });
        write_named(&pipe, b"new").unwrap();
        assert_eq!(reader.join().unwrap(), "new");
        let victim = scratch.file("victim", "precious");
        fs::remove_file(&page).unwrap();
        symlink(&victim, &page).unwrap();
        write_named(&page, b"new").unwrap();
        assert_eq!((text(&page).as_str(), text(&victim).as_str()), ("new", "precious"));
    }

    #[test]
    fn only_regular_files_are_opened_and_no_pipe_is_waited_for() {
        let scratch = Scratch::make();
        let file = scratch.file("file", "text");
        let (link, zero, pipe) = (scratch.path("link"), scratch.path("zero"), scratch.fifo("pipe"));
        symlink(&file, &link).unwrap();
        symlink("/dev/zero", &zero).unwrap();
        let said = |opened: io::Result<File>| opened.map(drop).map_err(|err| err.to_string());
        assert_eq!((said(open(&file)), said(open(&link)), said(open_to_append(&file))), (Ok(()), Ok(()), Ok(())));
        for (path, kind, kind_to_append) in [
            (&zero, "a device", "a link"),
            (&pipe, "a pipe", "a pipe"),
            (&scratch.dir().to_owned(), "a directory", "a directory"),
        ] {
            assert_eq!(said(open(path)), Err(format!("expected a regular file, found {kind}")));
            assert_eq!(said(open_to_append(path)), Err(format!("expected a regular file, found {kind_to_append}")));
        }
        assert_eq!(said(open_without_link(&file)), Ok(()));
        assert_eq!(said(open_without_link(&link)), Err("expected a regular file, found a link".to_owned()));
        assert_eq!(said(open_to_append(&link)), Err("expected a regular file, found a link".to_owned()));
    }

    #[test]
    fn a_named_file_has_an_end_and_a_size() {
        let scratch = Scratch::make();
        let file = scratch.file("file", "x".repeat(1 << 20));
        let read =
            |path: &Path, most| read_named(path, most).map(|(_, bytes)| bytes.len()).map_err(|err| err.to_string());
        assert_eq!(read(&file, 1 << 20), Ok(1 << 20));
        assert_eq!(read(&file, (1 << 20) - 1), Err("larger than 0 MiB".to_owned()));
        assert_eq!(read(Path::new("/dev/zero"), 1 << 20), Err("expected a file or a pipe, found a device".to_owned()));
        assert_eq!(read(scratch.dir(), 1 << 20), Err("Is a directory (os error 21)".to_owned()));
        let pipe = scratch.fifo("pipe");
        let writer = std::thread::spawn({
            let pipe = pipe.clone();
            move || fs::write(pipe, "text")
        });
        assert_eq!(read(&pipe, 10), Ok(4));
        writer.join().unwrap().unwrap();
    }
}
