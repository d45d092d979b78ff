//! The edge rules on small trees.

use super::super::lines;
use super::*;

const MODEL: (&str, &str) = ("crates/model/Cargo.toml", "[dependencies]\nserde = \"1\"\n");

#[test]
fn crate_edges_agree_in_both_directions() {
    let rt = "[package]\nname = \"punctual-rt\"\n[dependencies]\nlibc = \"0.2\"\nmodel.workspace = true\n";
    let printed = "# A\n```text crates\nrt -> model   # words\nmodel\n```\n";
    for (document, manifest, want) in [
        (printed, rt, vec![]),
        (
            printed,
            "[dev-dependencies]\nmodel = \"1\"\n",
            vec!["ARCHITECTURE.md:3: edge rt -> model does not exist; take it out of the block"],
        ),
        (printed, "[dependencies.model]\npath = \"x\"\n", vec![]),
        (printed, "[target.'cfg(unix)'.dependencies]\nmodel = { path = \"x\" }\n", vec![]),
        (
            "```text crates\n```\n",
            rt,
            vec![
                "crates/rt/Cargo.toml:5: edge rt -> model is not printed in ARCHITECTURE.md; remove the use, or argue for it there",
            ],
        ),
        (
            "```text modules\n```\n",
            rt,
            vec![
                "ARCHITECTURE.md:1: has no block that starts with ```text crates; print the edges there, one `from -> to, to` a line",
            ],
        ),
    ] {
        let files = [("ARCHITECTURE.md", document), MODEL, ("crates/rt/Cargo.toml", manifest)];
        assert_eq!(lines(crates, &files), want, "{manifest}");
    }
}

#[test]
fn module_edges_agree_in_both_directions() {
    let printed = "```text modules\ncli -> host, load\n```\n";
    for (cli, want) in [
        ("use crate::host::Facts;\nuse crate::load;\n", vec![]),
        ("use crate::{host::{Facts, store}, load};\n", vec![]),
        ("use crate::host;\nfn f() { crate::load::g(); }\n", vec![]),
        (
            "use crate::host; // crate::store\nconst S: &str = \"crate::store\";\nuse crate::load;\nuse crate::cli::x;\n",
            vec![],
        ),
        ("use crate::host;\n", vec!["ARCHITECTURE.md:2: edge cli -> load does not exist; take it out of the block"]),
        (
            "use crate::{\n    host,\n    load, store::Run,\n};\n",
            vec![
                "crates/punctual/src/cli/mod.rs:1: edge cli -> store is not printed in ARCHITECTURE.md; remove the use, or argue for it there",
            ],
        ),
    ] {
        let files = [
            ("ARCHITECTURE.md", printed),
            ("crates/punctual/src/main.rs", "mod store;\nuse crate::store::Run;\n"),
            ("crates/punctual/src/cli/mod.rs", cli),
            ("crates/punctual/src/cli/tests.rs", "use crate::store::Run;\n"),
            ("crates/punctual/src/host.rs", ""),
            ("crates/punctual/src/load/cpu.rs", "use crate::load::Load;\n"),
            ("crates/punctual/src/store.rs", ""),
        ];
        assert_eq!(lines(modules, &files), want, "{cli}");
    }
}
