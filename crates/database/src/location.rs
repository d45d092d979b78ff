//! Where a store is: a file of SQLite, or a database of PostgreSQL by URL.

use crate::DatabaseError;
use std::fmt;
use std::path::{Path, PathBuf};

/// Name of the file in a directory.
const FILE: &str = "store.sqlite";

/// Where a store is.
#[derive(Clone, PartialEq, Eq)]
pub enum Location {
    /// A file of SQLite.
    File(PathBuf),
    /// A database of PostgreSQL: its URL.
    Server(String),
}

impl Location {
    /// Reads a name: a URL of PostgreSQL, a file, or a directory that holds or gets the file `store.sqlite`. Errors: if
    /// it is a URL of something else, or empty.
    pub fn parse(named: &str) -> Result<Location, DatabaseError> {
        let invalid =
            |reason: &str| Err(DatabaseError::Location { named: without_password(named), reason: reason.to_owned() });
        match named.split_once("://") {
            _ if named.is_empty() => invalid("expected a file, a directory or postgresql://USER@HOST/DATABASE"),
            Some(("postgres" | "postgresql", _)) => Ok(Location::Server(named.to_owned())),
            Some((scheme, _)) if !scheme.contains('/') => {
                invalid("expected a file, a directory or postgresql://USER@HOST/DATABASE")
            }
            _ => Ok(Location::of_path(Path::new(named))),
        }
    }

    /// The store of this user: `$XDG_DATA_HOME/punctual` or `~/.local/share/punctual`. Errors: if neither variable is
    /// set.
    pub fn of_user() -> Result<Location, DatabaseError> {
        // Relative paths are invalid (XDG Base Directory Specification).
        let set = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let base = set("XDG_DATA_HOME").or_else(|| set("HOME").map(|home| home.join(".local/share")));
        Ok(Location::File(base.ok_or(DatabaseError::NoHome)?.join("punctual").join(FILE)))
    }

    /// The named store, that of `PUNCTUAL_STORE`, or that of this user. A variable hides the password of a URL from
    /// `ps`. Errors: as [`Location::parse`] and [`Location::of_user`].
    pub fn named_or_of_user(named: Option<&str>) -> Result<Location, DatabaseError> {
        let of_environment = std::env::var("PUNCTUAL_STORE").ok().filter(|named| !named.is_empty());
        named.or(of_environment.as_deref()).map_or_else(Location::of_user, Location::parse)
    }

    fn of_path(path: &Path) -> Location {
        let is_directory = path.is_dir() || path.as_os_str().as_encoded_bytes().ends_with(b"/");
        Location::File(if is_directory { path.join(FILE) } else { path.to_owned() })
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Location::File(path) => path.display().fmt(f),
            Location::Server(url) => f.write_str(&without_password(url)),
        }
    }
}

impl fmt::Debug for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A URL without its password, and without parameters, which may hold one.
fn without_password(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return url.to_owned() };
    let rest = rest.split(['?', '#']).next().unwrap_or_default();
    match rest.rsplit_once('@') {
        Some((user, server)) => {
            let user = user.split(':').next().unwrap_or_default();
            format!("{scheme}://{user}@{server}")
        }
        None => format!("{scheme}://{rest}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_files_directories_or_urls() {
        let file = |path: &str| Location::File(path.into());
        assert_eq!(Location::parse("lab.sqlite").unwrap(), file("lab.sqlite"));
        assert_eq!(Location::parse("/tmp").unwrap(), file("/tmp/store.sqlite"));
        assert_eq!(Location::parse("new/").unwrap(), file("new/store.sqlite"));
        assert_eq!(Location::parse("a/b://c").unwrap(), file("a/b://c"));
        for bad in ["", "mysql://h/d", "http://h:p@x/"] {
            let err = Location::parse(bad).unwrap_err().to_string();
            assert!(err.starts_with("invalid store `") && !err.contains(":p@"), "{err}");
        }
    }

    #[test]
    fn a_password_is_not_shown() {
        for (url, shown) in [
            ("postgresql://me:secret@db/lab?password=secret", "postgresql://me@db/lab"),
            ("postgres://me:se@cret@db:5432/lab", "postgres://me@db:5432/lab"),
            ("postgresql:///lab?host=/run&password=secret", "postgresql:///lab"),
        ] {
            let location = Location::parse(url).unwrap();
            assert_eq!((location.to_string(), format!("{location:?}")), (shown.to_owned(), shown.to_owned()));
        }
    }
}
