//! Completion scripts in the shells that they are for.

use crate::program::{PROGRAM, Scratch, ended, is_installed, punctual, skip_unless};
use std::path::Path;
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
    // The scripts ask the program that is typed.
    let path = std::env::var("PATH").unwrap_or_default();
    let path = format!("{}:{path}", Path::new(PROGRAM).parent().unwrap().display());
    let said = ended(command.env("HOME", scratch.path("")).env("TERM", "dumb").env("PATH", path));
    assert_eq!(said.status, 0, "{shell}: {said:?}");
    said.stdout
}

#[test]
fn bash_completes_words_and_values() {
    skip_unless!(is_installed("bash", "bash"));
    let scratch = script("bash", "punctual.bash");
    let commands = "
        source ./punctual.bash
        words() { COMP_LINE=\"punctual $1\" COMP_POINT=$((9 + ${#1})); _punctual punctual; echo ${COMPREPLY[@]}; }
        complete -p punctual
        words mea; words 'measure --load-m'; words 'measure --policy fifo:8'; words 'measure --policy fif'
        words 'measure --load=disk+mess'; words 'run quick'; words 'show ./x'
    ";
    let said = run_in("bash", &["--norc", "--noprofile"], &scratch, commands);
    let expected = "complete -o bashdefault -o default -F _punctual punctual\nmeasure\n--load-must-hold\n\nfifo:\n\
                    disk+messaging\nquick-look\n\n";
    assert_eq!(said, expected);
}

#[test]
fn fish_completes_commands_and_options() {
    skip_unless!(is_installed("fish", "fish"));
    let scratch = script("fish", "punctual.fish");
    let commands = "source ./punctual.fish; complete -C 'punctual mea'; complete -C 'punctual measure --load-m';
                    complete -C 'punctual run quick'";
    let said = run_in("fish", &["--no-config"], &scratch, commands);
    let words: Vec<_> = said.lines().filter_map(|line| line.split('\t').next()).collect();
    assert_eq!(words, ["measure", "--load-must-hold", "quick-look"], "{said}");
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
