//! Names of this program's own processes and threads, by which traces and ps(1) show them.

use crate::words::word::words;

words! {
    /// The name of one of this program's processes or threads. The kernel keeps 15 bytes.
    OwnName {
        /// A command that a user typed.
        Main = "punctual",
        /// One cell is measured.
        Cell = "punctual-cell",
        /// Load and trace of this machine beside a guest that measures.
        Host = "punctual-host",
        /// A load without a measurement, and the load of a role.
        Load = "punctual-load",
        /// Another program is about to be executed.
        Launch = "punctual-launch",
        /// A role of a plan runs on its machine.
        Role = "punctual-role",
        /// Cells of a campaign are measured for another machine.
        Serve = "punctual-serve",
        /// One operation of the cost suite is repeated.
        Cost = "punctual-cost",
        /// The trace is read.
        Trace = "punctual-trace",
        /// Late wake-ups are explained.
        Explain = "punctual-expl",
        /// A watched program is followed.
        Watch = "punctual-watch",
        /// A trace is recorded into a file.
        Record = "punctual-record",
    }
}

impl OwnName {
    /// The name of a process with these words after the program's.
    pub fn of_command<'a>(mut words: impl Iterator<Item = &'a str>) -> OwnName {
        match words.next() {
            Some("cell") if words.any(|word| word == "--beside-guest") => OwnName::Host,
            Some("cell") => OwnName::Cell,
            Some("load") => OwnName::Load,
            Some("launch") => OwnName::Launch,
            Some("supervise-role") => OwnName::Role,
            Some("serve-cells") => OwnName::Serve,
            Some("operation") => OwnName::Cost,
            _ => OwnName::Main,
        }
    }

    /// Whether a thread of this name is one that this program needs to measure: not a measured one, and not a load.
    pub fn is_own(name: &str) -> bool {
        OwnName::KNOWN.contains(&name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_keeps_every_name() {
        assert!(OwnName::KNOWN.iter().all(|name| name.len() <= 15));
        for (words, name) in [
            ("", "punctual"),
            ("run gate", "punctual"),
            ("cell", "punctual-cell"),
            ("cell --beside-guest", "punctual-host"),
            ("load cpu", "punctual-load"),
        ] {
            assert_eq!(OwnName::of_command(words.split_whitespace()).name(), name, "{words}");
        }
        assert!(OwnName::is_own("punctual-trace") && !OwnName::is_own("measured/0") && !OwnName::is_own("exe"));
    }
}
