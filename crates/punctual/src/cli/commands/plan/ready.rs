//! The ready plans: those of `plans/`, compiled into the program.

use crate::cli::arguments::{Format, PlanCommand};
use crate::cli::terminal::{Outcome, output};
use punctual_analysis::wording::things;
use punctual_model::{Kernel, Plan, PlanError, Policy, UnknownWord};
use punctual_report::json::{ReadyPlan, ReadyPlans};
use std::error::Error;

/// Names and texts of all ready plans.
macro_rules! ready_plans {
    ($($name:literal),* $(,)?) => {
        /// Name and TOML of each ready plan, in the order of their names.
        const ALL: &[(&str, &str)] = &[
            $(($name, include_str!(concat!("../../../../plans/", $name, ".toml")))),*
        ];
        const NAMES: &[&str] = &[$($name),*];
    };
}

ready_plans![
    "aa-recording",
    "cost-here",
    "cost-of-real-time",
    "cost-with-interrupts",
    "debian-stock-vs-rt",
    "debian-stock-vs-rt-lab",
    "full-or-lazy",
    "interrupt-response",
    "interrupt-response-cokernel",
    "interrupt-response-machines",
    "loads",
    "periodic-tasks",
    "periodic-tasks-cokernel",
    "periodic-tasks-lab",
    "preemption-models",
    "preemption-models-arm64",
    "preemption-models-here",
    "preemption-models-interrupts",
    "quick-look",
    "sleep-error",
    "sleep-error-guest",
    "sleep-error-loaded-host",
    "watch-program",
];

/// The TOML of the ready plan with this name. Errors: one line with the nearest name, if there is none.
pub(super) fn text_of(name: &str) -> Result<&'static str, String> {
    if let Some((_, text)) = ALL.iter().find(|(known, _)| *known == name) {
        return Ok(text);
    }
    let near = UnknownWord::new("plan", name, NAMES).nearest();
    let near = near.map(|near| format!("did you mean `{near}`? ")).unwrap_or_default();
    Err(format!("unknown plan `{name}` ({near}see punctual plan list; a file is named by its path, like ./{name})"))
}

/// Carries out `punctual plan`.
pub(in crate::cli) fn command(command: &PlanCommand) -> Outcome {
    let mut text = Vec::new();
    match command {
        PlanCommand::Show(arguments) => text.extend_from_slice(text_of(&arguments.plan)?.as_bytes()),
        PlanCommand::List(arguments) => {
            let plans = ReadyPlans { plans: all()? };
            match arguments.format {
                Format::Text => punctual_report::ready_plans(&plans, &mut text, output::style(false))?,
                Format::Json => output::json(&mut text, &plans)?,
            }
        }
    }
    output::write(&text)?;
    Ok(0)
}

/// All ready plans.
pub(in crate::cli) fn all() -> Result<Vec<ReadyPlan>, Box<dyn Error>> {
    ALL.iter().map(|(name, text)| listed(name, text)).collect()
}

fn listed(name: &'static str, text: &str) -> Result<ReadyPlan, Box<dyn Error>> {
    let plan = Plan::parse(text).map_err(|err: PlanError| format!("{name}: {err}"))?;
    let extent = punctual_campaign::extent(&plan)?;
    Ok(ReadyPlan {
        name,
        needs: needs(&plan),
        cells: extent.cells,
        blocks: plan.repetitions,
        measurements: extent.measurements,
        expected_ns: u64::try_from(extent.time.as_nanos())?,
        title: plan.title,
    })
}

/// Whether the policies of the plan, or the trace of a watched program, need root, or its capabilities, on the
/// measuring machine.
pub(in crate::cli) fn needs_root(plan: &Plan) -> bool {
    let is_privileged =
        |policy: &Policy| policy.is_realtime() || matches!(policy, Policy::Other(nice) if nice.get() < 0);
    // A guest has all privileges.
    plan.axes.kernel.iter().any(Kernel::is_here)
        && (plan.axes.policy.iter().any(is_privileged) || plan.axes.task.iter().any(|task| task.watch().is_some()))
}

/// Privileges, programs and machines without which cells of the plan are skipped.
fn needs(plan: &Plan) -> Vec<String> {
    let is_guest = |kernel: &Kernel| !kernel.is_here();
    let root = needs_root(plan).then(|| "root".to_owned());
    let lab = plan.axes.kernel.iter().any(is_guest).then(|| "QEMU".to_owned());
    let n_machines = plan.conditions.roles.elsewhere().count();
    let machines = (n_machines > 0).then(|| things(n_machines as u64, "machine"));
    let languages = plan.axes.runtime.iter().map(ToString::to_string);
    let programs = plan.axes.task.iter().filter_map(|task| task.watch()?.words()?.into_iter().next());
    root.into_iter().chain(lab).chain(machines).chain(languages).chain(programs).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn every_file_of_plans_is_a_ready_plan() {
        let files = std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../plans")).unwrap();
        let mut files: Vec<_> = files.map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
        files.sort_unstable();
        let mut ready: Vec<_> = NAMES.iter().map(|name| format!("{name}.toml")).collect();
        ready.sort_unstable();
        assert_eq!(files, ready, "add the new plan to the list of ready.rs");
    }

    #[test]
    fn a_plan_is_named_or_the_nearest_name_is_offered() {
        assert!(text_of("quick-look").unwrap().contains("title = "));
        for (name, near) in [("quick-lok", "did you mean `quick-look`? "), ("xyzzy", "")] {
            let expected = format!(
                "unknown plan `{name}` ({near}see punctual plan list; a file is named by its path, like ./{name})"
            );
            assert_eq!(text_of(name), Err(expected));
        }
    }

    #[test]
    fn a_plan_is_listed_with_its_size_and_what_it_needs() {
        let of = |name: &'static str| listed(name, text_of(name).unwrap()).unwrap();
        let quick = of("quick-look");
        assert_eq!((quick.cells, quick.blocks, quick.measurements), (8, 6, 48));
        assert_eq!(quick.needs, ["root"]);
        assert_eq!(of("preemption-models").needs, ["QEMU"]);
        assert_eq!(of("loads").cells, 36);
        assert_eq!(of("interrupt-response-machines").needs, ["root", "2 machines"]);
        assert_eq!(of("sleep-error").needs, ["root", "python3"]);
        assert_eq!(of("watch-program").needs, ["root", "python3"]);
        assert!(ALL.iter().all(|(name, text)| listed(name, text).is_ok_and(|plan| !plan.title.is_empty())));
    }
}
