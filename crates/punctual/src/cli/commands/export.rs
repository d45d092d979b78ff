//! `punctual export`: writes the files that carry out the shards of a plan on an engine.

use super::new_directory::NewDirectory;
use super::{again, plan, read};
use crate::cli::arguments::{Engine, ExportArguments, ExportCommand, PerfettoArguments};
use crate::cli::terminal::{ERROR, Outcome, note, output};
use punctual_analysis::wording::things;
use punctual_campaign::Extent;
use punctual_ftrace::Spike;
use punctual_model::{Architecture, Kernel, KernelSource, Plan};
use punctual_report::engines::{File, Job, ansible, k8s, labgrid, lava, slurm};
use std::error::Error;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

pub(super) fn export(arguments: &ExportArguments) -> Outcome {
    let (engine, path) = match arguments {
        ExportArguments { command: Some(ExportCommand::Perfetto(arguments)), .. } => return perfetto(arguments),
        ExportArguments { engine: Some(engine), plan: Some(path), .. } => (*engine, path),
        _ => return Err("an engine and a plan are missing; see: punctual export --help".into()),
    };
    let (mut plan, origin) = plan::portable(path, &arguments.set)?;
    origin.map_or(Ok(()), |origin| origin.permit_copy(arguments.yes))?;
    plan.repetitions = arguments.repetitions.unwrap_or(plan.repetitions);
    plan.seed = arguments.seed.or(plan.seed).or_else(|| Some(punctual_campaign::drawn_seed()));
    let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let dir = arguments.out.clone().unwrap_or_else(|| PathBuf::from(format!("{name}-{}", engine.name())));
    let programs = if engine.takes_programs() { programs() } else { Vec::new() };
    let job = job(arguments, name, &plan, &programs)?;
    let files = match engine {
        Engine::Ansible => ansible(&job),
        Engine::Labgrid => labgrid(&job),
        Engine::Lava => lava(&job),
        Engine::K8s => k8s(&job),
        Engine::Slurm => slurm(&job),
    };
    let new = NewDirectory::make(&dir)?;
    for File { name, text, executable } in &files {
        new.write(name, text.as_bytes(), *executable)?;
    }
    for (architecture, path) in &programs {
        let whole = fs::read(path).map_err(|err| format!("{}: {err}", path.display()))?;
        let program = punctual_lab::without_sections(whole.clone()).unwrap_or(whole);
        new.write(&format!("bin/punctual-{architecture}"), &program, true)?;
    }
    new.finish()?;
    let local = local_files(&plan);
    if !local.is_empty() {
        note(format_args!("the plan uses files of this machine, which are not exported: {}", local.join(", ")));
    }
    let listed = files.iter().map(|file| format!("{}\n", dir.join(&file.name).display()));
    output::write(listed.collect::<String>().as_bytes())?;
    Ok(0)
}

/// Writes all kept spikes of a run as one file for Perfetto.
fn perfetto(arguments: &PerfettoArguments) -> Outcome {
    let dir = read::named_or_latest(arguments.run.as_deref())?;
    let (captures, unreadable) = again::captures(&dir)?;
    let traces = captures.iter().map(|(name, capture)| capture.trace().map_err(|err| format!("{name}: {err}")));
    let traces = traces.collect::<Result<Vec<_>, String>>()?;
    let mut spikes = Vec::new();
    for ((_, capture), trace) in captures.iter().zip(&traces) {
        spikes.extend(capture.cases().map(|(case, explanation)| Spike { explanation, subject: &case.subject, trace }));
    }
    let path =
        arguments.output.clone().unwrap_or_else(|| punctual_store::report_path(&dir).with_file_name("perfetto.json"));
    let text = punctual_ftrace::timeline(&spikes).to_string();
    punctual_store::write_page(&path, arguments.output.is_some(), &text)?;
    output::write(format!("{}\n", path.display()).as_bytes())?;
    Ok(if unreadable.is_empty() { 0 } else { ERROR })
}

/// The job of a plan. Errors: if the plan cannot be carried out in so many shards, or cannot be written.
fn job(
    arguments: &ExportArguments,
    name: String,
    plan: &Plan,
    programs: &[(&str, PathBuf)],
) -> Result<Job, Box<dyn Error>> {
    let extent = extent(plan)?;
    let shards = arguments.shards;
    let n = usize::try_from(shards)?;
    let is_virtual = plan.axes.kernel.iter().all(Kernel::is_virtual);
    // As `punctual run --shard` divides a plan: whole blocks on real machines.
    let (most, what) = if is_virtual { (extent.measurements, "measurement") } else { (blocks(plan), "block") };
    if n > most {
        let has = things(most as u64, what);
        return Err(format!("cannot make {shards} shards: the plan has {has}; name fewer with --shards").into());
    }
    if let Some((role, site)) = plan.conditions.roles.elsewhere().next().filter(|_| shards > 1) {
        return Err(format!(
            "cannot make {shards} shards: the {role} of the plan is one machine, {site}; leave --shards out"
        )
        .into());
    }
    let text = plan.to_toml();
    if Plan::parse(&text).as_ref() != Ok(plan) {
        return Err(format!("{}: cannot be written as a plan of its own", name).into());
    }
    let of_shard = most.div_ceil(n).saturating_mul(extent.measurements / most.max(1));
    let of_shard = u32::try_from(of_shard).unwrap_or(u32::MAX);
    let one = extent.time.div_f64(extent.measurements.max(1) as f64);
    Ok(Job {
        name,
        title: plan.title.clone(),
        plan: text,
        shards,
        duration: one.saturating_mul(of_shard).max(Duration::from_secs(1)),
        needs_root: plan::needs_root(plan),
        virtual_time: is_virtual,
        cpus: cpus(plan),
        architectures: programs.iter().map(|(architecture, _)| (*architecture).to_owned()).collect(),
        targets: arguments.target.clone(),
        source: arguments.from.clone(),
    })
}

fn blocks(plan: &Plan) -> usize {
    usize::try_from(plan.repetitions).unwrap_or(usize::MAX)
}

/// CPUs of a shard: those that the plan measures, and one for everything else. Guests in virtual time have one CPU.
fn cpus(plan: &Plan) -> u32 {
    let measured = plan.cpus.as_ref().map_or(1, |cpus| u32::try_from(cpus.len()).unwrap_or(u32::MAX));
    measured.saturating_add(1)
}

/// The extent of a plan, also of one whose kernels cannot run here, being of another architecture.
fn extent(plan: &Plan) -> Result<Extent, Box<dyn Error>> {
    /// Time of a measurement besides its cycles: the boot of a guest.
    const OVERHEAD: Duration = Duration::from_secs(20);
    let here = punctual_campaign::extent(plan)?;
    if here.measurements > 0 {
        return Ok(here);
    }
    let cells = plan.axes.points().len();
    let measurements = cells.saturating_mul(usize::try_from(plan.repetitions)?);
    let ns = plan.duration.ns().saturating_add(plan.conditions.warm_up.ns());
    let one = Duration::from_nanos(ns).saturating_add(OVERHEAD);
    Ok(Extent { cells, measurements, time: one.saturating_mul(u32::try_from(measurements).unwrap_or(u32::MAX)) })
}

/// Files of this machine that the plan names, without duplicates: kernels, modules, files of guests and of instruments.
fn local_files(plan: &Plan) -> Vec<String> {
    let of_kernel = |kernel: &Kernel| {
        let Kernel::Lab(kernel) = kernel else { return Vec::new() };
        let image = match &kernel.source {
            KernelSource::File(path) => Some(path.clone()),
            KernelSource::Debian { .. } => None,
        };
        let files = kernel.files.iter().map(|file| file.from.clone());
        image.into_iter().chain(kernel.modules.clone()).chain(files).collect::<Vec<_>>()
    };
    let of_instruments = plan.axes.task.iter().filter_map(|task| task.instrument()).flat_map(|it| it.files.clone());
    let mut all: Vec<_> = plan.axes.kernel.iter().flat_map(of_kernel).chain(of_instruments).collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// The programs that are at hand, by the names of their architectures.
fn programs() -> Vec<(&'static str, PathBuf)> {
    let names = Architecture::ALL.map(|architecture| (architecture.name(), architecture.name()));
    let all = names.into_iter().chain([("arm", "armv7l")]);
    all.filter_map(|(name, machine)| Some((name, punctual_host::program_for(machine)?.ok()?))).collect()
}
