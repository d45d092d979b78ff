//! Ownership of files and of their places: whether another user may have written a plan or a run.

use punctual_sys::process;
use punctual_workload::instrument;
use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

/// Reason for which the file `opened` under the name `path` is not the user's own; `None` if it is. Errors: if its
/// owner cannot be read.
pub(super) fn why_foreign(path: &Path, opened: &File) -> io::Result<Option<String>> {
    let link = path.symlink_metadata().ok().filter(Metadata::is_symlink).map(|link| link.uid());
    let file = opened.metadata()?;
    let found = FileOwnership { is_file: file.is_file() || file.is_dir(), owner: file.uid(), mode: file.mode(), link };
    let users = users();
    Ok(found.why_foreign(&users).or_else(|| why_place_is_foreign(path, &users).filter(|_| file.is_file())))
}

/// Reason for which another user may have written a file that `command` names, with the name of the file: the program,
/// the script of an interpreter, a file of jobs. `None` where there is none, as far as the words tell.
pub(super) fn why_program_is_foreign(command: &str) -> Option<String> {
    // Root may write anything.
    let users: Vec<u32> = users().into_iter().chain([0]).collect();
    let is_between = |c: char| c.is_whitespace() || ";|&()<>`$\"'=".contains(c);
    let mut words = command.split(is_between).filter(|word| !word.is_empty()).peekable();
    let in_path = words.peek().filter(|word| !word.contains('/')).and_then(|word| instrument::find(word).ok());
    let why_place = |path: &Path| why_place_is_foreign(path, &users);
    // The directories of PATH are the user's own choice.
    let program = in_path.iter().map(|path| (path.as_path(), None));
    let named = words.map(Path::new).filter(|path| path.is_file()).map(|path| (path, why_place(path)));
    let why = |(path, place): (&Path, Option<String>)| {
        let file = path.metadata().ok()?;
        let link = path.symlink_metadata().ok().filter(Metadata::is_symlink).map(|link| link.uid());
        let found = FileOwnership { is_file: file.is_file(), owner: file.uid(), mode: file.mode(), link };
        found.why_foreign(&users).or(place).map(|why| format!("{} {why}", path.display()))
    };
    program.chain(named).find_map(why)
}

/// Ownership of a file, from which its possible authors follow.
#[derive(Debug)]
struct FileOwnership {
    /// Whether it lies in a file system; the origin of a pipe's content is unknown.
    is_file: bool,
    owner: u32,
    mode: u32,
    /// Owner of the symbolic link that leads to it.
    link: Option<u32>,
}

impl FileOwnership {
    /// Reason for which the file does not belong to one of `users`.
    fn why_foreign(&self, users: &[u32]) -> Option<String> {
        let is_foreign = |owner: &u32| !users.contains(owner);
        match self {
            FileOwnership { is_file: false, .. } => Some("is not a file, so its owner is unknown".to_owned()),
            FileOwnership { owner, .. } if is_foreign(owner) => Some(format!("is owned by user {owner}")),
            FileOwnership { link: Some(owner), .. } if is_foreign(owner) => Some(format!("is a link of user {owner}")),
            // Write permission of group and others (inode(7)).
            FileOwnership { mode, .. } if mode & 0o022 != 0 => {
                Some("is writable by other users (chmod go-w)".to_owned())
            }
            _ => None,
        }
    }
}

/// Reason for which another user may have placed the file at `path`, though it belongs to one of `users`: a link on its
/// path, or its directory. Root may place files anywhere.
fn why_place_is_foreign(path: &Path, users: &[u32]) -> Option<String> {
    let is_foreign = |owner: &u32| *owner != 0 && !users.contains(owner);
    if let Some(owner) = owners_of_links(path).into_iter().find(is_foreign) {
        return Some(format!("is reached through a link of user {owner}"));
    }
    let directory = path.canonicalize().ok()?.parent()?.metadata().ok()?;
    let (owner, mode) = (directory.uid(), directory.mode());
    if is_foreign(&owner) {
        return Some(format!("is in a directory of user {owner}"));
    }
    // The sticky bit prevents the replacement of other users' files (inode(7)).
    (mode & 0o022 != 0 && mode & 0o1000 == 0)
        .then(|| "is in a directory that other users may write (chmod go-w)".to_owned())
}

/// Owners of all symbolic links on the way from the root to `path` (path_resolution(7)).
fn owners_of_links(path: &Path) -> Vec<u32> {
    /// Limit of the kernel for followed links.
    const MOST: usize = 40;
    let Ok(absolute) = std::path::absolute(path) else { return Vec::new() };
    let components = |path: &Path| path.components().rev().map(|part| part.as_os_str().to_owned()).collect::<Vec<_>>();
    let (mut left, mut at, mut owners) = (components(&absolute), PathBuf::new(), Vec::new());
    while let Some(part) = left.pop() {
        match Path::new(&part).components().next() {
            Some(Component::ParentDir) => drop(at.pop()),
            _ => at.push(part),
        }
        let Some(link) = at.symlink_metadata().ok().filter(Metadata::is_symlink) else { continue };
        owners.push(link.uid());
        let Some(target) = std::fs::read_link(&at).ok().filter(|_| owners.len() < MOST) else { break };
        at.pop();
        left.extend(components(&target));
    }
    owners
}

/// User IDs of the user: the effective one, and under sudo that of the caller.
fn users() -> Vec<u32> {
    let effective = process::effective_user_id();
    let caller = std::env::var("SUDO_UID").ok().filter(|_| effective == 0).and_then(|id| id.parse().ok());
    [effective].into_iter().chain(caller).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_own_when_nobody_else_can_have_written_it() {
        let root = &[0][..];
        let sudo = &[0, 1000][..];
        let no_file = Some("is not a file, so its owner is unknown");
        let open = Some("is writable by other users (chmod go-w)");
        for (is_file, owner, mode, link, users, why) in [
            (true, 0, 0o100_644, None, root, None),
            (true, 0, 0o100_600, Some(0), root, None),
            (true, 1000, 0o100_644, None, root, Some("is owned by user 1000")),
            (true, 1000, 0o100_644, None, sudo, None),
            (true, 1001, 0o100_644, None, sudo, Some("is owned by user 1001")),
            (true, 0, 0o100_644, None, &[1000], Some("is owned by user 0")),
            (true, 0, 0o100_664, None, root, open),
            (true, 0, 0o100_646, None, root, open),
            (true, 0, 0o040_777, None, root, open),
            (true, 0, 0o100_644, Some(1000), root, Some("is a link of user 1000")),
            (true, 0, 0o100_644, Some(1000), sudo, None),
            (true, 1001, 0o100_644, Some(0), root, Some("is owned by user 1001")),
            (false, 0, 0o010_600, None, root, no_file),
            (false, 0, 0o010_600, Some(0), root, no_file),
        ] {
            let found = FileOwnership { is_file, owner, mode, link };
            assert_eq!(found.why_foreign(users).as_deref(), why, "{found:?} of {users:?}");
        }
    }

    #[test]
    fn a_program_is_foreign_when_others_may_write_a_file_of_its_command() {
        use std::os::unix::fs::PermissionsExt;
        let root =
            std::env::temp_dir().canonicalize().unwrap().join(format!("punctual-programs-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&root);
        std::fs::create_dir_all(&root).unwrap();
        let file = root.join("ev.sh");
        std::fs::write(&file, "").unwrap();
        let mode = |path: &Path, mode| std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
        mode(&root, 0o755);
        let commands = [
            "FILE -x",
            "sh FILE",
            "sh -c 'FILE a; b'",
            "A=FILE true",
            "fio FILE",
            "awk \"{print}\" <FILE",
            "--job=FILE",
        ];
        let why = |command: &str| why_program_is_foreign(&command.replace("FILE", &file.display().to_string()));
        for command in commands {
            mode(&file, 0o755);
            assert_eq!(why(command), None, "{command}");
            for open in [0o777, 0o775, 0o666] {
                mode(&file, open);
                let expected = format!("{} is writable by other users (chmod go-w)", file.display());
                assert_eq!(why(command), Some(expected), "{command}");
            }
        }
        mode(&file, 0o755);
        mode(&root, 0o777);
        let expected = format!("{} is in a directory that other users may write (chmod go-w)", file.display());
        assert_eq!(why("FILE"), Some(expected));
        for command in ["", "true", "no-such-program --x", "/no/such/file"] {
            assert_eq!(why(command), None, "{command}");
        }
        std::fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn links_are_followed_one_by_one() {
        let root = std::env::temp_dir().canonicalize().unwrap().join(format!("punctual-links-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&root);
        std::fs::create_dir_all(root.join("a/b")).unwrap();
        std::fs::write(root.join("a/b/plan"), "").unwrap();
        let link = |name: &str, target: &str| std::os::unix::fs::symlink(target, root.join(name)).unwrap();
        link("to-b", "a/b");
        link("to-plan", "to-b/../b/plan");
        link("absolute", &root.join("to-plan").display().to_string());
        link("loop", "loop");
        let user = process::effective_user_id();
        for (path, links) in
            [("a/b/plan", 0), ("to-b/plan", 1), ("to-plan", 2), ("absolute", 3), ("a/../to-b/./plan", 1), ("loop", 40)]
        {
            assert_eq!(owners_of_links(&root.join(path)), vec![user; links], "{path}");
        }
        std::fs::remove_dir_all(root).unwrap();
    }
}
