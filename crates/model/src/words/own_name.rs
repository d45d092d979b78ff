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
        /// Names of code are read in a watched program.
        Names = "punctual-names",
        /// A trace is recorded into a file.
        Record = "punctual-record",
    }
}

impl OwnName {
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
        assert!(OwnName::is_own("punctual-trace") && !OwnName::is_own("measured/0") && !OwnName::is_own("exe"));
    }
}
