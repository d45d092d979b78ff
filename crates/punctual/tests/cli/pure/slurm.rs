//! The scripts of `punctual export slurm`, with programs in the place of a cluster.

use crate::program::{ProgramOutput, Scratch, command, run};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Exports the plan to the directory `job`.
pub(crate) fn export(scratch: &Scratch, plan: &str, shards: u32) -> PathBuf {
    let job = scratch.path("job 1");
    let mut export = command(&format!("export slurm {plan} --shards {shards}"));
    run(export.arg("--out").arg(&job)).expect_success();
    job
}

/// Programs of a cluster that does not answer, or has a node: what `submit` and a task do with them.
#[test]
fn the_scripts_report_what_is_missing_and_resume_what_is_there() {
    let scratch = Scratch::new("slurm-scripts");
    let plan = scratch.file("plan.toml", "title = \"a\"\nrepetitions = 4\n").display().to_string();
    let job = export(&scratch, &plan, 2);
    let with = |script: &str, sinfo: Option<&str>| -> ProgramOutput {
        let bin = scratch.path("bin");
        let _ = fs::remove_dir_all(&bin);
        fs::create_dir(&bin).unwrap();
        for tool in ["sh", "dirname", "mkdir", "uname", "cat"] {
            let path = ["/usr/bin", "/bin"].iter().map(|dir| Path::new(dir).join(tool)).find(|path| path.exists());
            std::os::unix::fs::symlink(path.unwrap(), bin.join(tool)).unwrap();
        }
        if let Some(sinfo) = sinfo {
            scratch.executable("bin/sinfo", format!("#!/bin/sh\n{sinfo}\n"));
            scratch.executable("bin/sbatch", "#!/bin/sh\necho \"Submitted $*\"\n");
        }
        let echo = scratch.executable("punctual-echo", "#!/bin/sh\necho \"$@\"\nexit 3\n");
        let mut command = Command::new("sh");
        command.arg(job.join(script)).env("PATH", &bin).env("PUNCTUAL", echo);
        run(command.env("SLURM_SUBMIT_DIR", &job).env("SLURM_ARRAY_TASK_ID", "2"))
    };
    with("submit", None).expect_line(1, "submit: no sbatch here: submit on a machine of the cluster\n");
    with("submit", Some("exit 1")).expect_line(1, "submit: no answer from Slurm; nothing was submitted\n");
    let said = with("submit", Some("case $* in *--noheader*) ;; *) echo 'n1 down*' ;; esac"));
    let refusal = "submit: no node is up, the job would wait without an end; nothing was submitted\nn1 down*\n";
    said.expect_line(1, refusal);
    assert_eq!(with("submit", Some("echo n1")).expect_success().stdout, "Submitted job.sh\n");

    // The exit status 3 is a verdict.
    let task = || with("job.sh", None).expect_success().stdout;
    assert_eq!(task(), "run plan.toml --shard 2/2 --wait --out shards/2\n");
    scratch.file("job 1/shards/2/run.jsonl", "");
    assert_eq!(task(), "run --resume --wait --out shards/2\n");
    assert_eq!(with("collect", None).stdout, "merge shards/2 --out run\n");
}

impl ProgramOutput {
    #[track_caller]
    fn expect_line(&self, status: i32, line: &str) {
        assert_eq!((self.status, self.stdout.as_str(), self.stderr.as_str()), (status, "", line));
    }
}
