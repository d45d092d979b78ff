//! The program from outside: real runs of the real binary on this machine's kernel.
#![expect(clippy::unwrap_used, clippy::disallowed_macros, reason = "a panic in a test is its failure")]

mod places;
mod program;
mod series;
mod servo;
mod session;

mod pure {
    pub(crate) mod bad_input;
    pub(crate) mod check;
    pub(crate) mod cobalt;
    pub(crate) mod comparability;
    pub(crate) mod compare;
    pub(crate) mod completion;
    pub(crate) mod doctor;
    pub(crate) mod engines;
    pub(crate) mod foreign;
    pub(crate) mod formats;
    pub(crate) mod import;
    pub(crate) mod lab_architectures;
    pub(crate) mod lab_configs;
    pub(crate) mod lab_kernels;
    pub(crate) mod lab_refused;
    pub(crate) mod lab_untrusted;
    pub(crate) mod plan;
    pub(crate) mod recorded;
    pub(crate) mod replays;
    pub(crate) mod report;
    pub(crate) mod schema;
    pub(crate) mod slurm;
    pub(crate) mod store;
    pub(crate) mod store_kills;
    pub(crate) mod study;
}

mod life {
    pub(crate) mod campaign;
    pub(crate) mod consent;
    pub(crate) mod containers;
    pub(crate) mod cost_runs;
    pub(crate) mod faults;
    pub(crate) mod full_disk;
    pub(crate) mod lab_left;
    pub(crate) mod languages;
    pub(crate) mod launch;
    pub(crate) mod leftovers;
    pub(crate) mod on_board;
    pub(crate) mod on_spike;
    pub(crate) mod planted;
    pub(crate) mod prepare;
    pub(crate) mod programs;
    pub(crate) mod roles;
    pub(crate) mod samples;
    pub(crate) mod shards;
    pub(crate) mod tune_kills;
    pub(crate) mod unprivileged;
    pub(crate) mod waiting;
}

mod real {
    pub(crate) mod capture;
    pub(crate) mod cobalt;
    pub(crate) mod compare;
    pub(crate) mod cost;
    pub(crate) mod cyclictest;
    pub(crate) mod decided;
    pub(crate) mod engine_logs;
    pub(crate) mod explain;
    pub(crate) mod floor;
    pub(crate) mod frontier;
    pub(crate) mod handoff;
    pub(crate) mod import;
    pub(crate) mod inherited;
    pub(crate) mod instrument;
    pub(crate) mod live;
    pub(crate) mod load_alone;
    pub(crate) mod loads;
    pub(crate) mod measured_thread;
    pub(crate) mod monitor;
    pub(crate) mod noise;
    pub(crate) mod placement;
    pub(crate) mod recipes;
    pub(crate) mod report;
    pub(crate) mod response;
    pub(crate) mod response_late;
    pub(crate) mod sleep;
    pub(crate) mod stalls;
    pub(crate) mod study;
    pub(crate) mod tune;
    pub(crate) mod verify;
    pub(crate) mod watch;
    pub(crate) mod watch_account;
    pub(crate) mod watch_hangs;
    pub(crate) mod watch_marks;
    pub(crate) mod watch_packets;
    pub(crate) mod watch_places;
}

mod guest {
    pub(crate) mod cost;
    pub(crate) mod culprits;
    pub(crate) mod instrument;
    pub(crate) mod kernels;
    pub(crate) mod lab;
    pub(crate) mod lab_explain;
    pub(crate) mod lab_host;
    pub(crate) mod lab_response;
    pub(crate) mod lab_search;
    pub(crate) mod lab_sleep;
    pub(crate) mod lab_tracers;
    pub(crate) mod loads;
    pub(crate) mod machine_time;
    pub(crate) mod noise;
    pub(crate) mod response_wires;
    pub(crate) mod shards;
    pub(crate) mod stalls;
    pub(crate) mod tune;
    pub(crate) mod vm;
    pub(crate) mod watch;
}

mod host {
    pub(crate) mod alignment;
    pub(crate) mod captures;
    pub(crate) mod effects;
    pub(crate) mod explain;
    pub(crate) mod instrument;
    pub(crate) mod kills;
    pub(crate) mod lab_host;
    pub(crate) mod live;
    pub(crate) mod loads;
    pub(crate) mod monitor;
    pub(crate) mod noise;
    pub(crate) mod on_spike;
    pub(crate) mod programs;
    pub(crate) mod response;
    pub(crate) mod spinner;
    pub(crate) mod tune;
    pub(crate) mod watch;
    pub(crate) mod watch_account;
    pub(crate) mod watch_faults;
    pub(crate) mod watch_kinds;
    pub(crate) mod watch_stacks;
}

mod field {
    pub(crate) mod board;
    pub(crate) mod board_cells;
    pub(crate) mod board_tries;
    pub(crate) mod boots;
    pub(crate) mod browser;
    pub(crate) mod engine_ansible;
    pub(crate) mod engine_labgrid;
    pub(crate) mod engine_slurm;
    pub(crate) mod lab_arm64;
    pub(crate) mod lab_cobalt;
    pub(crate) mod lab_oob;
    pub(crate) mod lab_pairs;
    pub(crate) mod lab_riscv64;
    pub(crate) mod lab_sleep;
    pub(crate) mod lab_timerbench;
    pub(crate) mod prometheus;
    pub(crate) mod stick;
    pub(crate) mod store_postgres;
    pub(crate) mod webdriver;
    pub(crate) mod wires;
}
