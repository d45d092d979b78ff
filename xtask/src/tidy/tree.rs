//! The repository as input of the rules: paths, and the texts of its sources and documents.

use std::collections::BTreeSet;
use std::path::Path;
use std::{fs, io};

/// A source, manifest or document. `path` is relative to the root and uses `/`.
pub(super) struct File {
    pub(super) path: String,
    pub(super) text: String,
}

impl File {
    /// Whether it holds only tests: named `tests.rs`, or below a `tests/` directory.
    pub(super) fn is_test(&self) -> bool {
        let path = format!("/{}", self.path);
        path.ends_with("/tests.rs") || path.contains("/tests/")
    }

    /// Its lines, numbered from 1.
    pub(super) fn lines(&self) -> impl Iterator<Item = (usize, &str)> {
        self.text.lines().enumerate().map(|(idx, line)| (idx + 1, line))
    }
}

/// All files that belong to the repository, sorted by path.
pub(super) struct Tree {
    files: Vec<File>,
    /// Every file and directory of any kind.
    paths: BTreeSet<String>,
}

impl Tree {
    /// Reads the repository, without artifacts of builds and measurements.
    pub(super) fn read(root: &Path) -> io::Result<Tree> {
        let mut tree = Tree { files: Vec::new(), paths: BTreeSet::new() };
        tree.walk(root, "")?;
        tree.files.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(tree)
    }

    fn walk(&mut self, root: &Path, below: &str) -> io::Result<()> {
        for entry in fs::read_dir(root.join(below))? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let path = if below.is_empty() { name.clone() } else { format!("{below}/{name}") };
            if name == ".git" || name == "target" || path == "runs" {
                continue;
            }
            // The type of the entry itself, not of a link's target: recorded /sys trees have cycles.
            let kind = entry.file_type()?;
            self.paths.insert(path.clone());
            if kind.is_dir() {
                self.walk(root, &path)?;
            } else if kind.is_file() && [".rs", ".md", ".toml"].iter().any(|end| name.ends_with(end)) {
                self.files.push(File { text: fs::read_to_string(root.join(&path))?, path });
            }
        }
        Ok(())
    }

    /// The files with this suffix, without expected outputs of tests, which are text of other programs.
    pub(super) fn files(&self, end: &str) -> impl Iterator<Item = &File> {
        self.files.iter().filter(move |file| file.path.ends_with(end) && !file.path.contains("/golden/"))
    }

    pub(super) fn file(&self, path: &str) -> Option<&File> {
        self.files.iter().find(|file| file.path == path)
    }

    pub(super) fn has(&self, path: &str) -> bool {
        path.is_empty() || self.paths.contains(path)
    }

    /// For tests: creates a tree of these files.
    #[cfg(test)]
    pub(super) fn of(files: &[(&str, &str)]) -> Tree {
        let mut paths = BTreeSet::new();
        for (path, _) in files {
            let parents = path.match_indices('/').map(|(idx, _)| path[..idx].to_owned());
            paths.extend(parents.chain([(*path).to_owned()]));
        }
        let files = files.iter().map(|(path, text)| File { path: (*path).to_owned(), text: (*text).to_owned() });
        Tree { files: files.collect(), paths }
    }
}
