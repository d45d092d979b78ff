//! Tests of the text forms of loads.

use super::*;

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
    let percent = |text| format!("invalid load `{text}`: expected a share of 1 to 100 percent, like cpu:50");
    let groups = |text| format!("invalid load `{text}`: expected 1 to 1000 groups, like messaging:groups=10");
    let program = |word, example| format!("invalid load `{word}`: expected arguments on one line, like `{example}`");
    for (text, message) in [
        ("cpu:0", percent("cpu:0")),
        ("cpu:101", percent("cpu:101")),
        ("cpu:", percent("cpu:")),
        ("cpu:half", percent("cpu:half")),
        ("messaging:groups=0", groups("messaging:groups=0")),
        ("messaging:groups=1001", groups("messaging:groups=1001")),
        ("messaging:loops=5", groups("messaging:loops=5")),
        ("disk:tmp", "invalid load `disk:tmp`: expected an absolute path, like disk:/var/tmp".to_owned()),
        ("files:", "invalid load `files:`: expected an absolute path, like files:/var/tmp".to_owned()),
        ("cmd:", program("cmd", "cmd:make -j4")),
        ("cmd", program("cmd", "cmd:make -j4")),
        ("cmd:a\nb", program("cmd", "cmd:make -j4")),
        ("stress-ng:", program("stress-ng", "stress-ng:--vm 1")),
        (
            "hackbench",
            "invalid load `hackbench`: expected hackbench:ARGUMENTS like hackbench:-g 10, or messaging, which is built in"
                .to_owned(),
        ),
        ("hackbench:", program("hackbench", "hackbench:-g 10")),
        ("cpu=50", "invalid load `cpu=50`: expected cpu:50".to_owned()),
        ("messaging=groups=2", "invalid load `messaging=groups=2`: expected messaging:groups=2".to_owned()),
        ("idle+cpu", "load `none` cannot be combined with others; leave it out".to_owned()),
        ("ping:-c1 host", program("ping", "ping:127.0.0.1")),
        ("disk+cpu+disk", "duplicate part `disk` in a load; give each part once".to_owned()),
        ("none+cpu", "load `none` cannot be combined with others; leave it out".to_owned()),
        ("cpu=messaging", "invalid load name `cpu`: already a built-in load; choose another name".to_owned()),
        (
            "My=messaging",
            "invalid load name `My`: expected lower-case letters, digits, - and _, beginning with a letter".to_owned(),
        ),
    ] {
        assert_eq!(text.parse::<Load>().map_err(|err| err.to_string()), Err(message));
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
