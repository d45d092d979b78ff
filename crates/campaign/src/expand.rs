//! Expansion of a plan into the cells for this machine and user.

use punctual_model::{Cell, Conditions, CpuSet, Kernel, Load, Method, Plan, Policy, Skipped, Task};
use std::collections::HashMap;

/// Limit of cells of a run: each is in its header and in memory, and takes a second at least.
const MAX_CELLS: usize = 100_000;

/// Capabilities of the machine and privileges of the user that affect cells.
#[expect(missing_debug_implementations, reason = "a closure has nothing to show")]
pub struct Machine<'a> {
    /// CPUs this process may use.
    pub cpus: CpuSet,
    /// Whether memory can be locked.
    pub lock_memory: bool,
    /// Whether `/dev/cpu_dma_latency` can be held.
    pub dma_latency: bool,
    /// Whether a thread may have a policy. Queried once for each.
    pub may_have: &'a dyn Fn(Policy) -> bool,
    /// Reason why the program of a task, a language or an outside one, cannot be run; `None` when it can, or the task
    /// has none. Queried once for each.
    pub why_not: &'a dyn Fn(&Task) -> Option<String>,
    /// Reason why a load is not available; `None` when it is. Queried once for each.
    pub why_no_load: &'a dyn Fn(&Load) -> Option<String>,
}

/// The cells of `plan` on this machine, and the combinations that this user cannot measure.
///
/// Optional settings without the privilege (memory lock, idle states) are removed from the cells, visible in each of
/// them; the axes of a cell are never replaced. Errors: one line, if the plan names absent CPUs or a cell is
/// impossible.
pub fn expand(plan: &Plan, machine: &Machine<'_>) -> Result<(Vec<Cell>, Vec<Skipped>), String> {
    plan.conditions.roles.check_plan(plan.cpus.as_ref(), &plan.axes.load)?;
    let cpus = plan.cpus.clone().unwrap_or_else(|| machine.cpus.clone());
    let absent = cpus.minus(&machine.cpus);
    // A remote logger checks its CPUs itself.
    let is_elsewhere = plan.conditions.roles.is_logged_elsewhere();
    if !absent.is_empty() && !is_elsewhere {
        let allowed = &machine.cpus;
        return Err(format!("cannot use CPU {absent}: this process may use {allowed} (--cpus, key `cpus`)"));
    }
    if plan.conditions.timer_slack.is_some() && plan.axes.policy.iter().all(|policy| policy.is_realtime()) {
        return Err(
            "timer_slack has no effect with real-time policies, the only ones of this plan; remove it".to_owned()
        );
    }
    let is_costs = plan.axes.runtime.is_empty() && plan.axes.task.iter().all(|task| !task.has_latencies());
    if is_costs && !plan.require.is_empty() {
        return Err("unsupported: requirements in a plan of costs; they limit latencies; leave them out".to_owned());
    }
    let n = plan.axes.n_points().saturating_mul(if plan.aa { 2 } else { 1 });
    if n > MAX_CELLS {
        return Err(format!("the axes have {n} combinations, a run at most {MAX_CELLS} cells; remove some values"));
    }
    let load_cpus = plan.load_cpus.resolve(&machine.cpus, &cpus)?;
    let (mut cells, mut skipped) = (Vec::new(), Vec::new());
    // A check of a policy takes a thread, and a search for a program the whole of PATH.
    let mut programs: HashMap<Task, Option<String>> = HashMap::new();
    let mut policies: HashMap<Policy, bool> = HashMap::new();
    let mut loads: HashMap<Load, Option<String>> = HashMap::new();
    // A guest has all privileges, and CPUs of its own: as many of them are measured as the plan names.
    let named = plan.cpus.as_ref().and_then(|cpus| u32::try_from(cpus.len()).ok());
    let measured = |kernel: &Kernel, task: &Task| match kernel {
        // One thread waits for responses, or never waits: on the last CPU, which is the least busy on most machines.
        Kernel::Running | Kernel::Installed(_) if (task.link().is_some() || task.is_noise()) && named.is_none() => {
            cpus.iter().last().into_iter().collect()
        }
        // So does the driver; the timer of its handler is always on CPU 0.
        Kernel::Running | Kernel::Installed(_) if task.cobalt_context().is_some() && named.is_none() => {
            cpus.iter().next().into_iter().collect()
        }
        Kernel::Running | Kernel::Installed(_) => cpus.clone(),
        Kernel::Lab(_) if task.link().is_some() || task.cobalt_context().is_some() => (0..named.unwrap_or(1)).collect(),
        Kernel::Lab(kernel) => (0..named.unwrap_or(kernel.cpus)).collect(),
    };
    for (kernel, load, policy, period, task, prepare) in plan.axes.points() {
        // Operations and loops without waits have no period: they get cells for the first period only.
        if (!task.has_latencies() || task.is_noise()) && plan.axes.period.first() != Some(&period) {
            continue;
        }
        let is_here = kernel.is_here();
        let has_program = task.runtime().is_some() || task.is_reported() || task.watch().is_some();
        let is_loaded = !load.parts().is_empty();
        let conditions = plan.conditions.that_apply(&task, policy, is_loaded);
        let cell = Cell {
            cpus: if task.has_latencies() {
                measured(&kernel, &task)
            } else {
                one_of(&measured(&kernel, &task), plan, is_costs)?
            },
            kernel,
            load,
            policy,
            period: if task.is_noise() { Method::NOISE_PERIOD } else { period },
            duration: plan.duration_of(period),
            deadline: plan.require.max.filter(|_| task.has_latencies()),
            lock_memory: (machine.lock_memory || !is_here) && !has_program && task.has_latencies(),
            load_cpus: load_cpus.clone().filter(|_| is_loaded && is_here),
            task,
            conditions: Conditions {
                cpu_dma_latency_us: conditions.cpu_dma_latency_us.filter(|_| machine.dma_latency || !is_here),
                prepare: prepare.unwrap_or(conditions.prepare),
                ..conditions
            },
        };
        cell.check()?;
        if is_here {
            cell.check_on(&machine.cpus)?;
        }
        let mut why_not =
            |task: &Task| programs.entry(task.clone()).or_insert_with_key(|task| (machine.why_not)(task)).clone();
        let missing = Some(&cell.task).filter(|_| has_program && !is_elsewhere).and_then(&mut why_not);
        let mut may_have = |policy| *policies.entry(policy).or_insert_with(|| (machine.may_have)(policy));
        let mut why_no_load =
            |load: Load| loads.entry(load).or_insert_with_key(|load| (machine.why_no_load)(load)).clone();
        let mut here = || match () {
            () if !may_have(policy) => Some(punctual_host::how_to_allow(policy)),
            () => missing.clone().or_else(|| why_no_load(plan.conditions.roles.shares(&cell.load).logger)),
        };
        let reason = match () {
            () if is_elsewhere => None,
            () if is_here => here(),
            () => punctual_lab::why_not(&cell).or(missing),
        };
        match reason {
            None => cells.push(cell),
            Some(reason) => skipped.push(Skipped { cell, reason }),
        }
    }
    if plan.aa {
        cells.extend_from_within(..);
    }
    Ok((cells, skipped))
}

/// The CPU that the processes of the cost suite share: the one named by a plan of costs only, or the last of the
/// measured ones, because the first receives most device interrupts.
fn one_of(measured: &CpuSet, plan: &Plan, is_alone: bool) -> Result<CpuSet, String> {
    match plan.cpus.as_ref().filter(|cpus| is_alone && cpus.len() > 1) {
        Some(cpus) => Err(format!("invalid CPUs `{cpus}`: the cost suite runs on one CPU; name one")),
        None => Ok(measured.iter().last().into_iter().collect()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use punctual_model::Span;
    use punctual_model::{Period, Runtime};
    use std::cell::Cell;

    fn machine(may_have: &dyn Fn(Policy) -> bool) -> Machine<'_> {
        let why_not = &|task: &Task| (*task == Task::Sleep(Runtime::Java)).then(|| "java is not installed".to_owned());
        Machine {
            cpus: [0, 1].into_iter().collect(),
            lock_memory: false,
            dma_latency: false,
            may_have,
            why_not,
            why_no_load: &|_| None,
        }
    }

    #[test]
    fn a_privileged_user_measures_all_cells_of_the_default_plan() {
        let (cells, skipped) = expand(&Plan::default(), &machine(&|_| true)).unwrap();
        assert_eq!((cells.len(), skipped.len()), (4, 0));
        assert!(cells.iter().all(|cell| cell.cpus.len() == 2));
    }

    #[test]
    fn only_normal_threads_are_measured_without_privilege_others_are_named() {
        let (cells, skipped) = expand(&Plan::default(), &machine(&|policy| !policy.is_realtime())).unwrap();
        assert!(cells.iter().all(|cell| cell.policy == Policy::OTHER && !cell.lock_memory));
        assert_eq!(cells.iter().filter(|cell| cell.conditions.cpu_dma_latency_us.is_some()).count(), 0);
        assert_eq!(skipped.len(), 2);
        assert!(skipped[0].reason.contains("sudo setcap cap_sys_nice,cap_ipc_lock+ep /"), "{}", skipped[0].reason);
    }

    #[test]
    fn a_plan_may_measure_every_cell_twice() {
        let plan = Plan { aa: true, ..Plan::default() };
        let (cells, skipped) = expand(&plan, &machine(&|policy| !policy.is_realtime())).unwrap();
        assert_eq!((cells.len(), skipped.len()), (4, 2));
        assert_eq!(cells[..2], cells[2..]);
    }

    #[test]
    fn privileges_and_programs_are_checked_once_after_the_number_of_cells() {
        let mut plan = Plan::default();
        let periods = |n: u64| (0..n).map(|n| Period::try_from(Span(10_000 + n)).unwrap()).collect();
        plan.axes.period = periods(500);
        let (policies, loads) = (Cell::new(0), Cell::new(0));
        let count = |counter: &Cell<u32>| counter.set(counter.get() + 1);
        let machine = Machine {
            may_have: &|_| {
                count(&policies);
                true
            },
            why_no_load: &|_| {
                count(&loads);
                None
            },
            ..machine(&|_| true)
        };
        assert_eq!(expand(&plan, &machine).unwrap().0.len(), 2000);
        assert_eq!((policies.get(), loads.get()), (2, 2));
        plan.axes.period = periods(25_001);
        let refused = "the axes have 100004 combinations, a run at most 100000 cells; remove some values";
        assert_eq!(expand(&plan, &machine).unwrap_err(), refused);
        (plan.axes.period, plan.aa) = (periods(12_501), true);
        assert_eq!(expand(&plan, &machine).unwrap_err(), refused.replace('4', "8"));
    }

    #[test]
    fn cpus_that_are_not_there_are_refused() {
        let plan = Plan { cpus: Some("1,99".parse().unwrap()), ..Plan::default() };
        assert_eq!(
            expand(&plan, &machine(&|_| true)).unwrap_err(),
            "cannot use CPU 99: this process may use 0-1 (--cpus, key `cpus`)"
        );
    }

    #[test]
    fn slack_is_a_matter_of_normal_threads_only() {
        let plan = Plan {
            conditions: Conditions { timer_slack: Some("1us".parse().unwrap()), ..Plan::default().conditions },
            ..Plan::default()
        };
        let (cells, _) = expand(&plan, &machine(&|_| true)).unwrap();
        assert!(cells.iter().all(|cell| cell.conditions.timer_slack.is_none() == cell.policy.is_realtime()));
    }

    #[test]
    fn one_cpu_of_a_guest_waits_for_responses_and_all_for_timers() {
        let plan = Plan::parse(
            "[axes]\nkernel = [\"debian:6.1 clock=emulated cpus=2\"]\nload = [\"none\"]\npolicy = [\"fifo:90\"]\n\
             period = [\"5ms\"]\nmethod = [\"response:serial-loop\", \"timerfd\"]\n",
        );
        let (cells, _) = expand(&plan.unwrap(), &machine(&|_| true)).unwrap();
        assert_eq!(cells.iter().map(|cell| cell.cpus.to_string()).collect::<Vec<_>>(), ["0", "0-1"]);
    }

    #[test]
    fn missing_languages_are_skipped_and_others_need_no_lock_or_warm_up() {
        let mut plan = Plan { min_cycles: Some(3), ..Plan::default() };
        plan.axes.runtime = vec![Runtime::Java, Runtime::Go];
        plan.axes.period = vec!["1ms".parse().unwrap(), "10s".parse().unwrap()];
        let (cells, skipped) = expand(&plan, &Machine { lock_memory: true, ..machine(&|_| true) }).unwrap();
        assert_eq!((cells.len(), skipped.len()), (8, 8));
        assert!(cells.iter().all(|cell| cell.task == Task::Sleep(Runtime::Go)));
        assert!(cells.iter().all(|cell| !cell.lock_memory && cell.conditions.warm_up == Span(0)));
        assert!(skipped.iter().all(|skipped| skipped.reason == "java is not installed"));
        assert_eq!((cells[0].duration, cells[7].duration), (plan.duration, "30s".parse().unwrap()));
    }
}
