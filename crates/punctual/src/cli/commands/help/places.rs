//! Files and environment variables of this program, for man pages and `punctual help files|environment`.

/// A file or variable.
pub(super) struct Place {
    pub(super) name: &'static str,
    pub(super) about: &'static str,
    /// First words of the commands whose pages name it; empty for all.
    commands: &'static [&'static str],
}

const fn place(name: &'static str, about: &'static str, commands: &'static [&'static str]) -> Place {
    Place { name, about, commands }
}

/// Commands that measure.
const MEASURING: &[&str] =
    &["run", "measure", "explain", "watch", "monitor", "floor", "frontier", "tune", "study", "recover"];
/// Commands that keep or read runs.
const OF_RUNS: &[&str] = &[
    "run", "measure", "explain", "watch", "floor", "frontier", "tune", "study", "show", "report", "compare", "check",
    "list", "merge", "import", "store", "export",
];

/// Files and directories, and what they hold.
pub(super) const FILES: &[Place] = &[
    place("runs/DATE-TIME/", "a run: run.jsonl (records), report.html, samples/, captures/", OF_RUNS),
    place("monitor/", "the history of punctual monitor", &["monitor"]),
    place("~/.local/share/punctual/store.sqlite", "the store of punctual store", &["store", "check"]),
    place("~/.cache/punctual/", "kernels and images of the lab", &["lab", "run", "study"]),
    place("/tmp/punctual.lock", "one measurement at a time; also in /run/lock or /dev/shm", MEASURING),
    place(
        "/run/punctual/",
        "settings that punctual recover restores after a kill, and the floor of this boot",
        MEASURING,
    ),
    place("/dev/cpu_dma_latency", "held open while a cell is measured", MEASURING),
];

/// Environment variables, and what they change.
pub(super) const ENVIRONMENT: &[Place] = &[
    place("PUNCTUAL_STORE", "the store, as --store names it", &["store", "check"]),
    place("PUNCTUAL_LOCK", "the lock file of this machine's measurements", MEASURING),
    place("PUNCTUAL_BINARIES", "directory of programs for other architectures", &["run", "lab", "study", "capture"]),
    place("PUNCTUAL_CYCLICTEST_COMPAT", "layout: 2.4 or 2.7", &["cyclictest"]),
    place("PUNCTUAL_CYCLICTEST_BREAK_STATUS", "exit status after -b: 0 or 2", &["cyclictest"]),
    place("PUNCTUAL_ROOT", "directory with the /proc and /sys of another machine", &["doctor", "run"]),
    place("XDG_DATA_HOME", "base directory of the store", &["store", "check"]),
    place("XDG_CACHE_HOME", "base directory of kernels and images", &["lab", "run", "study"]),
    place("TMPDIR", "directory of temporary files", &["measure", "capture"]),
    place("PGPASSWORD", "password of a store in PostgreSQL", &["store", "check"]),
    place("NO_COLOR", "no colors on a terminal", &[]),
    place("LC_ALL, LC_CTYPE, LANG", "characters beyond ASCII only with UTF-8", &[]),
];

/// Those of a command, whose words after `punctual` are given; without words all.
pub(super) fn of<'a>(places: &'a [Place], words: &'a [&str]) -> impl Iterator<Item = &'a Place> {
    let is_of =
        |place: &&Place| words.first().is_none_or(|word| place.commands.contains(word)) || place.commands.is_empty();
    places.iter().filter(is_of)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::path::Path;

    /// Set by this program for itself, in guests and child processes; or read by its tests.
    const INTERNAL: &[&str] = &[
        "PUNCTUAL_FILES",
        "PUNCTUAL_GUEST",
        "PUNCTUAL_MOVABLE_CYCLE",
        "PUNCTUAL_STICK",
        "PUNCTUAL_STICK_KERNEL",
        "PUNCTUAL_MACHINE_TIME",
        "PUNCTUAL_LOAD",
        "PUNCTUAL_FAIL_AT",
        "PUNCTUAL_FAIL_LOG",
        "PUNCTUAL_TRACE_EXCHANGES",
    ];

    fn sources(dir: &Path, into: &mut Vec<String>) {
        for entry in fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()) {
            let name = entry.file_name().unwrap().to_string_lossy().into_owned();
            if entry.is_dir() && name != "tests" && name != "testing" {
                sources(&entry, into);
            } else if name.ends_with(".rs") && !["tests.rs", "testing.rs", "fuzz.rs"].contains(&name.as_str()) {
                into.push(fs::read_to_string(entry).unwrap());
            }
        }
    }

    #[test]
    fn every_command_of_a_place_exists() {
        let root = crate::cli::arguments::command();
        for word in FILES.iter().chain(ENVIRONMENT).flat_map(|place| place.commands) {
            assert!(root.find_subcommand(word).is_some(), "{word}");
        }
        assert_eq!(of(FILES, &[]).count(), FILES.len());
        assert_eq!(of(FILES, &["doctor"]).count(), 0);
    }

    #[test]
    fn every_variable_of_the_program_is_described() {
        let mut texts = Vec::new();
        for dir in fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("..")).unwrap() {
            sources(&dir.unwrap().path().join("src"), &mut texts);
        }
        let mut n = 0;
        for text in &texts {
            let code = text.split("#[cfg(test)]\nmod tests").next().unwrap();
            for (at, _) in code.match_indices("\"PUNCTUAL_") {
                let name = code[at + 1..].split('"').next().unwrap();
                let is_known = ENVIRONMENT.iter().any(|place| place.name == name) || INTERNAL.contains(&name);
                assert!(is_known, "{name}: add it to ENVIRONMENT of places.rs");
                n += 1;
            }
        }
        assert!(n > 8, "{n}");
    }
}
