//! What the menu of a stick offers.

/// An entry of the menu.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Choice {
    pub(super) key: char,
    pub(super) title: &'static str,
    pub(super) does: Action,
}

/// What an entry does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Action {
    /// Shows the output of a command of this program.
    Show(&'static [&'static str]),
    /// Measures the plan of this name on this kernel.
    Measure(&'static str),
    /// Measures the plan of this name on each kernel of the stick.
    EachKernel(&'static str),
    Restart,
    PowerOff,
}

/// The menu. A command of this program that answers a question about a PC has its line here.
pub(super) const CHOICES: [Choice; 8] = [
    Choice { key: '1', title: "Doctor: settings of this PC that cause latency", does: Action::Show(&["doctor"]) },
    Choice { key: '2', title: "Ten minutes, idle and loaded", does: Action::Measure("ten-minutes") },
    Choice { key: '3', title: "An hour under load", does: Action::Measure("hour") },
    Choice { key: '4', title: "Ten minutes on each kernel of this stick", does: Action::EachKernel("ten-minutes") },
    Choice { key: '5', title: "One minute, a trial", does: Action::Measure("minute") },
    Choice {
        key: '6',
        title: "Floor: what no setting of this PC lowers (three minutes)",
        does: Action::Show(&["floor", "--no-keep"]),
    },
    Choice { key: '8', title: "Restart", does: Action::Restart },
    Choice { key: '9', title: "Power off", does: Action::PowerOff },
];

/// Loads that hold up a thread on some kernel, and none that writes to a disk.
const LOADS: &str = r#""messaging", "mmap+exec+tcp""#;

/// The plans, by name. The thread wakes every 250 us, so that the answers for all longer periods are in one cell; the
/// verdict of the page is that for 1 ms.
pub(super) fn plans() -> [(&'static str, String); 3] {
    let plan = |title: &str, loads: &str, blocks: u32, duration: &str| {
        format!(
            "title = \"{title}\"\nrepetitions = {blocks}\nduration = \"{duration}\"\nwarm_up = \"500ms\"\n\n[axes]\n\
             load = [{loads}]\npolicy = [\"fifo:80\"]\nperiod = [\"250us\"]\n\n[require]\nmax = \"500us\"\n"
        )
    };
    let with_idle = format!("\"none\", {LOADS}");
    [
        ("ten-minutes", plan("Ten minutes, idle and loaded", &with_idle, 4, "48s")),
        ("hour", plan("An hour under load", LOADS, 6, "290s")),
        ("minute", plan("One minute, a trial", &with_idle, 2, "9s")),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use punctual_model::Load;

    #[test]
    fn each_key_is_of_one_choice_and_each_plan_is_there() {
        let plans = plans();
        for (n, choice) in CHOICES.iter().enumerate() {
            assert!(CHOICES[..n].iter().all(|other| other.key != choice.key), "{choice:?}");
            if let Action::Measure(name) | Action::EachKernel(name) = choice.does {
                assert!(plans.iter().any(|(known, _)| *known == name), "{name}");
            }
        }
    }

    #[test]
    fn no_plan_of_a_stick_writes_to_a_disk() {
        for (_, text) in plans() {
            let loads = text.lines().find(|line| line.starts_with("load = [")).unwrap();
            let names = loads.trim_start_matches("load = [").trim_end_matches(']').split(", ");
            for load in names.map(|name| name.trim_matches('"').parse::<Load>().unwrap()) {
                let parts = load.parts();
                assert!(parts.iter().all(|part| !matches!(part, punctual_model::LoadPart::Files { .. })), "{load}");
            }
        }
    }
}
