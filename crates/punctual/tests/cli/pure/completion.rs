//! Completion scripts in the shells that they are for.

use crate::program::{Scratch, ended, is_installed, punctual, skip_unless};
use std::process::Command;

/// Writes the script of `shell` to `name` in a new directory.
fn script(shell: &str, name: &str) -> Scratch {
    let scratch = Scratch::new(&format!("completion-{shell}"));
    let said = punctual(&format!("completion {shell}"));
    assert_eq!(said.status, 0, "{said:?}");
    scratch.file(name, said.stdout);
    scratch
}

/// Runs a script in a shell without its start files; returns its output.
fn run_in(shell: &str, options: &[&str], scratch: &Scratch, commands: &str) -> String {
    let mut command = Command::new(shell);
    command.args(options).args(["-c", commands]).current_dir(scratch.path(""));
    let said = ended(command.env("HOME", scratch.path("")).env("TERM", "dumb"));
    assert_eq!(said.status, 0, "{shell}: {said:?}");
    said.stdout
}

#[test]
fn bash_completes_commands_and_options() {
    skip_unless!(is_installed("bash", "bash"));
    let scratch = script("bash", "punctual.bash");
    let commands = "
        source ./punctual.bash
        complete=$(complete -p punctual); complete=${complete##*-F }; complete=${complete%% *}
        COMP_WORDS=(punctual mea) COMP_CWORD=1; $complete punctual mea punctual; echo ${COMPREPLY[@]}
        COMP_WORDS=(punctual measure --load-m) COMP_CWORD=2; $complete punctual --load-m measure; echo ${COMPREPLY[@]}
    ";
    assert_eq!(run_in("bash", &["--norc", "--noprofile"], &scratch, commands), "measure\n--load-must-hold\n");
}

#[test]
fn fish_completes_commands_and_options() {
    skip_unless!(is_installed("fish", "fish"));
    let scratch = script("fish", "punctual.fish");
    let commands = "source ./punctual.fish; complete -C 'punctual mea'; complete -C 'punctual measure --load-m'";
    let said = run_in("fish", &["--no-config"], &scratch, commands);
    let words: Vec<_> = said.lines().filter_map(|line| line.split('\t').next()).collect();
    assert_eq!(words, ["measure", "--load-must-hold"], "{said}");
}

#[test]
fn zsh_completes_commands_and_options() {
    skip_unless!(is_installed("zsh", "zsh"));
    let scratch = script("zsh", "_punctual");
    // Completion needs a terminal. Each read waits for its pattern; The echo of `rea''dy` does not match.
    let commands = r#"
        zmodload zsh/zpty
        zpty shell zsh -f -i
        zpty -w shell "PS1='> '; fpath=($PWD \$fpath); autoload -U compinit; compinit -u -D; echo rea''dy"
        zpty -r -m shell text '*ready*'
        zpty -w -n shell $'punctual mea\t'
        zpty -r -m shell text '*measure *'
        zpty -w -n shell $'--load-m\t'
        zpty -r -m shell text '*--load-must-hold*'
        print -r -- "${text##*$'\b'}"
        zpty -d shell
    "#;
    let said = run_in("zsh", &["-f"], &scratch, commands);
    assert!(said.contains("--load-must-hold"), "{said:?}");
}
