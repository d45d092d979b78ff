//! Command line parser like getopt_long(3) in cyclictest: clusters, attached values, prefixes of long names.

use std::iter::Peekable;
use std::slice::Iter;

/// Argument of an option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ArgumentKind {
    /// No argument: `-q`
    Nothing,
    /// Required: `-p80`, `-p 80`, `--priority=80`, `--priority 80`
    Value,
    /// Optional. A following word is also taken: cyclictest does so itself, getopt does not.
    MaybeValue,
}

/// Specification of an option: its letter, its long name (empty if it has none), and its argument.
#[derive(Debug)]
pub(super) struct OptionSpec<Id: 'static> {
    pub(super) id: Id,
    pub(super) short: Option<char>,
    pub(super) long: &'static str,
    pub(super) takes: ArgumentKind,
    /// Not matched by prefixes, so that prefixes of cyclictest 2.4 stay unambiguous: ours, or of older releases.
    pub(super) in_full: bool,
}

/// The specification of an option that prefixes match.
pub(super) const fn option<Id>(id: Id, short: Option<char>, long: &'static str, takes: ArgumentKind) -> OptionSpec<Id> {
    OptionSpec { id, short, long, takes, in_full: false }
}

/// An option given on the command line.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct GivenOption<Id> {
    pub(super) id: Id,
    /// The option as typed, without its value: `-p`, `--prio`.
    pub(super) typed: String,
    pub(super) value: Option<String>,
}

/// Parses the options in `words`, in order. Errors: one line: an unknown or ambiguous option, a missing or extra value,
/// or a word that belongs to no option.
pub(super) fn options<Id: Copy>(
    known: &'static [OptionSpec<Id>],
    words: &[String],
) -> Result<Vec<GivenOption<Id>>, String> {
    let mut given = Vec::new();
    let mut words = words.iter().peekable();
    while let Some(word) = words.next() {
        // Shell scripts and rteval pass an empty word for an unset option; getopt skips it, too.
        if word.is_empty() {
            continue;
        }
        if let Some(long) = word.strip_prefix("--").filter(|long| !long.is_empty()) {
            given.push(by_name(known, long, &mut words)?);
        } else if let Some(cluster) = word.strip_prefix('-').filter(|cluster| !cluster.is_empty() && word != "--") {
            by_letters(known, cluster, &mut words, &mut given)?;
        } else if word != "--" || words.peek().is_some() {
            let word = if word == "--" { words.next().unwrap_or(word) } else { word };
            return Err(format!("unexpected argument `{word}`; see --help"));
        }
    }
    Ok(given)
}

/// Parses `--name`, `--name=value` or `--name value`, where `name` may be an unambiguous prefix.
fn by_name<Id: Copy>(
    known: &'static [OptionSpec<Id>],
    long: &str,
    words: &mut Peekable<Iter<'_, String>>,
) -> Result<GivenOption<Id>, String> {
    let (name, attached) = long.split_once('=').map_or((long, None), |(name, value)| (name, Some(value.to_owned())));
    let typed = format!("--{name}");
    let exact = known.iter().find(|option| option.long == name && !name.is_empty());
    let option = exact.map_or_else(
        || {
            let fits = |option: &&OptionSpec<Id>| !option.in_full && option.long.starts_with(name) && !name.is_empty();
            let fitting: Vec<_> = known.iter().filter(fits).collect();
            match fitting[..] {
                [] => Err(format!("unknown option `{typed}`; see --help")),
                [option] => Ok(option),
                _ => {
                    let names: Vec<_> = fitting.iter().map(|option| format!("--{}", option.long)).collect();
                    Err(format!("ambiguous option `{typed}`: expected one of {}", names.join(" ")))
                }
            }
        },
        Ok,
    )?;
    if option.takes == ArgumentKind::Nothing && attached.is_some() {
        return Err(format!("unexpected value for {typed}"));
    }
    let value = attached.or_else(|| next_word(option.takes, words));
    complete(option, typed, value)
}

/// Parses `-qmu` or `-Sp90`: letters without a value, then at most one whose value is the rest of the word, or the next
/// word.
fn by_letters<Id: Copy>(
    known: &'static [OptionSpec<Id>],
    cluster: &str,
    words: &mut Peekable<Iter<'_, String>>,
    given: &mut Vec<GivenOption<Id>>,
) -> Result<(), String> {
    let mut rest = cluster.chars();
    while let Some(letter) = rest.next() {
        let typed = format!("-{letter}");
        let option = known
            .iter()
            .find(|option| option.short == Some(letter))
            .ok_or_else(|| format!("unknown option `{typed}` in `-{cluster}`; see --help"))?;
        let attached =
            (option.takes != ArgumentKind::Nothing && !rest.as_str().is_empty()).then(|| rest.as_str().to_owned());
        if attached.is_some() {
            rest = "".chars();
        }
        let value = attached.or_else(|| next_word(option.takes, words));
        given.push(complete(option, typed, value)?);
    }
    Ok(())
}

/// ArgumentKind the next word as the argument: any word if it is required, else one that is not an option.
fn next_word(takes: ArgumentKind, words: &mut Peekable<Iter<'_, String>>) -> Option<String> {
    match takes {
        ArgumentKind::Nothing => None,
        ArgumentKind::Value => words.next().cloned(),
        ArgumentKind::MaybeValue => words.next_if(|word| !word.is_empty() && !word.starts_with('-')).cloned(),
    }
}

fn complete<Id: Copy>(
    option: &OptionSpec<Id>,
    typed: String,
    value: Option<String>,
) -> Result<GivenOption<Id>, String> {
    if option.takes == ArgumentKind::Value && value.is_none() {
        return Err(format!("{typed} needs a value; see --help"));
    }
    Ok(GivenOption { id: option.id, typed, value })
}

#[cfg(test)]
mod tests {
    use super::*;

    const KNOWN: &[OptionSpec<char>] = &[
        OptionSpec { id: 'q', short: Some('q'), long: "quiet", takes: ArgumentKind::Nothing, in_full: false },
        OptionSpec { id: 'p', short: Some('p'), long: "priority", takes: ArgumentKind::Value, in_full: false },
        OptionSpec { id: 's', short: None, long: "priospread", takes: ArgumentKind::Nothing, in_full: false },
        OptionSpec { id: 't', short: Some('t'), long: "threads", takes: ArgumentKind::MaybeValue, in_full: false },
        OptionSpec { id: 'o', short: None, long: "quick", takes: ArgumentKind::Nothing, in_full: true },
    ];

    fn parsed(line: &[&str]) -> Result<String, String> {
        let words: Vec<String> = line.iter().map(|word| (*word).to_owned()).collect();
        let given = options(KNOWN, &words)?;
        let one = |given: &GivenOption<char>| format!("{}{}", given.id, given.value.clone().unwrap_or_default());
        Ok(given.iter().map(one).collect::<Vec<_>>().join(","))
    }

    #[test]
    fn options_are_found_as_getopt_finds_them() {
        for (line, found) in [
            (&[][..], ""),
            (&[""], ""),
            (&["", "-q", "", "-t", "", "-p", "80", ""], "q,t,p80"),
            (&["-p", ""], "p"),
            (&["-q"], "q"),
            (&["-qt4"], "q,t4"),
            (&["-qt", "4", "-q"], "q,t4,q"),
            (&["-t", "-q"], "t,q"),
            (&["-qp80"], "q,p80"),
            (&["-qp", "80"], "q,p80"),
            (&["-p", "-5"], "p-5"),
            (&["-p 80"], "p 80"),
            (&["--priority=80"], "p80"),
            (&["--priority", "80"], "p80"),
            (&["--pri", "x"], "ambiguous option `--pri`: expected one of --priority --priospread"),
            (&["--prior=7", "--qui"], "p7,q"),
            (&["--quick"], "o"),
            (&["--quic"], "unknown option `--quic`; see --help"),
            (&["--threads", "--thr=3"], "t,t3"),
            (&["--"], ""),
            (&["--", "-q"], "unexpected argument `-q`; see --help"),
            (&["-q", "word"], "unexpected argument `word`; see --help"),
            (&["-"], "unexpected argument `-`; see --help"),
            (&["-qz"], "unknown option `-z` in `-qz`; see --help"),
            (&["--=x"], "unknown option `--`; see --help"),
            (&["--nosuch=1"], "unknown option `--nosuch`; see --help"),
            (&["--quiet=1"], "unexpected value for --quiet"),
            (&["-p"], "-p needs a value; see --help"),
            (&["--prior"], "--prior needs a value; see --help"),
        ] {
            assert_eq!(parsed(line).unwrap_or_else(|err| err), found, "{line:?}");
        }
    }
}
