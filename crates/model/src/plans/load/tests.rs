//! Tests of the text forms of loads.

use super::*;
use crate::plans::cell::tests::refusals;

#[test]
fn loads_print_as_they_are_typed() {
    let with_options = [
        "cpu:1",
        "cpu:99",
        "messaging:groups=1",
        "messaging:groups=1000",
        "messaging+disk",
        "disk:/mnt/a b",
        "files:/x+cpu:50+messaging:groups=2",
        "cmd:a + b",
        "light+stress-ng:--vm 1 --vm-bytes 50%",
        "ping:::1",
        "build=cmd:X=1 make -j4",
        "two=messaging+disk",
        "high",
    ];
    let words = Load::KNOWN.iter().filter(|form| !form.contains(':') || form.contains('['));
    let words = words.map(|form| form.split(['[', ':']).next().unwrap_or(form)).filter(|word| *word != "stress-ng");
    for text in words.chain(with_options) {
        assert_eq!(text.parse::<Load>().map(|load| load.to_string()), Ok(text.to_owned()));
    }
    assert_eq!("idle".parse(), Ok(Load::NONE));
    for (text, whole) in
        [("stress-ng", "stress-ng:--cpu 0 --vm 1"), ("disk+stress-ng", "disk+stress-ng:--cpu 0 --vm 1")]
    {
        assert_eq!(text.parse::<Load>().map(|load| load.to_string()), Ok(whole.to_owned()));
    }
    assert_eq!("cpu:100".parse::<Load>().map(|load| load.to_string()), Ok("cpu".to_owned()));
    assert_eq!("high+messaging".parse::<Load>().map(|load| load.to_string()), Ok("cpu+disk+messaging".to_owned()));
}

#[test]
fn people_see_the_name_or_the_beginning() {
    let label = |text: &str| text.parse::<Load>().map(|load| load.label());
    assert_eq!(label("none"), Ok("none".to_owned()));
    assert_eq!(label("half"), Ok("half".to_owned()));
    assert_eq!(label("build=cmd:make -j4"), Ok("build".to_owned()));
    assert_eq!(label("cmd:find / -name punctual"), Ok("cmd:find / -name punctual".to_owned()));
    assert_eq!(label("cmd:find / -name punctual-or-not"), Ok("cmd:find / -name punctual-or-not".to_owned()));
    assert_eq!(label("cmd:find / -name punctual-or-nots"), Ok("cmd:find / -name punctual-or-...".to_owned()));
}

#[test]
fn a_plan_can_name_loads_and_combine_them() {
    let mut named = NamedLoads::new();
    for (name, text) in [("noisy", "messaging+disk"), ("build", "cmd:make")] {
        named.insert(name.to_owned(), Load::parse(text, &named).and_then(|load| load.named(name)).unwrap());
    }
    let read = |text: &str| Load::parse(text, &named).map(|load| (load.label(), load.to_string()));
    let both = |label: &str, text: &str| Ok((label.to_owned(), text.to_owned()));
    assert_eq!(read("noisy"), both("noisy", "noisy=messaging+disk"));
    assert_eq!(read("cpu:50+noisy"), both("cpu:50+messaging+disk", "cpu:50+messaging+disk"));
    assert_eq!(read("noisy+cmd:a+noisy"), both("messaging+disk+cmd:a+noisy", "messaging+disk+cmd:a+noisy"));
    assert_eq!("noisy".parse::<Load>().map_err(|err| matches!(err, LoadError::Unknown(_))), Err(true));
}

#[test]
fn what_is_no_load_is_one_line_that_says_what_to_write() {
    for (text, message) in refusals(include_str!("../../../tests/refusals/loads.txt")) {
        assert_eq!(text.parse::<Load>().map_err(|err| err.to_string()), Err(message.to_owned()));
    }
    for (text, nearest) in [
        ("mesaging", Some("messaging")),
        ("disc", Some("disk")),
        ("", None),
        ("none:1", None),
        ("cpu+", None),
        ("pipe:1", None),
        ("stres-ng:--cpu 1", Some("stress-ng:--cpu 1")),
    ] {
        let Err(LoadError::Unknown(unknown)) = text.parse::<Load>() else { panic!("{text}") };
        assert_eq!(unknown.nearest().as_deref(), nearest, "{text}");
    }
}
