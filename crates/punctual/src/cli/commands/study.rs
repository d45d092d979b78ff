//! `punctual study`: repeats a published study, fills its tables and judges its conclusions.

use super::read::Read;
use super::{plan, run, run_directory};
use crate::cli::arguments::{
    Common, Format, RunArguments, RunFormat, StudyCommand, StudyFormat, StudyRunArguments, StudyShowArguments,
};
use crate::cli::terminal::{ERROR, Outcome, note, output};
use punctual_analysis::study::out_of_reach;
use punctual_campaign::{Interrupted, forecast};
use punctual_host::HostFs;
use punctual_model::{Setting, Study, StudyWay, shell_word};
use punctual_report::study::{StudyList, StudyReport, WayReport, of_runs};
use punctual_report::{Results, Style, html};
use std::error::Error;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Carries out `punctual study`.
pub(super) fn command(command: StudyCommand) -> Outcome {
    if !Study::ARE_KNOWN {
        return Err(punctual_model::left_out("published studies", "studies").into());
    }
    match command {
        StudyCommand::List(arguments) => {
            output::write(&list(arguments.format, output::style(false))?)?;
            Ok(0)
        }
        StudyCommand::Show(arguments) => show(&arguments),
        StudyCommand::Run(arguments) => carry_out(&arguments),
    }
}

/// The list of all studies.
pub(super) fn list(format: Format, style: Style) -> Result<Vec<u8>, Box<dyn Error>> {
    let (list, mut text) = (StudyList::new(), Vec::new());
    match format {
        Format::Text => list.text(&mut text, style)?,
        Format::Json => output::json(&mut text, &list)?,
    }
    Ok(text)
}

fn show(arguments: &StudyShowArguments) -> Outcome {
    let runs: Result<Vec<_>, _> = arguments.runs.iter().map(|path| Ok((path.as_path(), Read::open(path)?))).collect();
    let runs: Vec<(&Path, Read)> = runs.map_err(|err: punctual_store::StoreError| err.to_string())?;
    if let Some((path, _)) = runs.iter().find(|(_, read)| matches!(read, Read::Imported(..))) {
        return Err(format!("{}: imported measurements do not belong to a study; name a run", path.display()).into());
    }
    runs.iter().for_each(|(_, read)| read.note_damage());
    print(&filled(arguments.study, &runs, way_reports(arguments.study)), arguments.format)?;
    Ok(if runs.iter().all(|(_, read)| read.is_whole()) { 0 } else { ERROR })
}

/// The study with the values of runs, and the ways to repeat it here.
fn filled(study: Study, runs: &[(&Path, Read)], ways: Vec<WayReport>) -> StudyReport {
    let named: Vec<_> = runs.iter().map(|(path, _)| path.display().to_string()).collect();
    let own = runs.iter().zip(&named).filter_map(|((_, read), name)| match read.results(name) {
        Results::Own(run) => Some(run),
        Results::Imported(_) => None,
    });
    of_runs(study, &own.collect::<Vec<_>>(), ways)
}

/// What this machine can measure of each way of a study.
fn way_reports(study: Study) -> Vec<WayReport> {
    study.definition().ways.iter().map(way_report).collect()
}

fn print(report: &StudyReport, format: StudyFormat) -> Result<(), Box<dyn Error>> {
    let mut text = Vec::new();
    match format {
        StudyFormat::Text => report.text(&mut text, output::style(false))?,
        StudyFormat::Json => output::json(&mut text, report)?,
        StudyFormat::Csv => text.extend_from_slice(report.csv().as_bytes()),
    }
    output::write(&text)
}

/// What this machine can measure of a way.
fn way_report(way: &'static StudyWay) -> WayReport {
    let mut report = WayReport {
        name: &way.name,
        plan: &way.plan,
        what: &way.what,
        needs: way.needs.as_deref(),
        measurements: None,
        expected_ns: None,
        missing: Vec::new(),
    };
    // The plan of a way with needs names nothing that exists.
    if way.needs.is_some() {
        return report;
    }
    let forecast = run_arguments(way, None).and_then(|run| {
        let (plan, _) = plan::plan(&run)?;
        forecast(plan, None, false, None, None, &|_| ())
    });
    match forecast {
        Ok(forecast) => {
            report.measurements = Some(forecast.header.n_measurements());
            report.expected_ns = u64::try_from(forecast.time.as_nanos()).ok();
            for skipped in forecast.header.skipped {
                if !report.missing.contains(&skipped.reason) {
                    report.missing.push(skipped.reason);
                }
            }
        }
        Err(err) => report.missing.push(err.to_string()),
    }
    report
}

/// The arguments of `punctual run` for a way; without those of `punctual study run` for its plan as it is.
fn run_arguments(way: &StudyWay, study: Option<(&StudyRunArguments, PathBuf)>) -> Result<RunArguments, Box<dyn Error>> {
    let set: Result<Vec<Setting>, _> = way.set.iter().map(|setting| setting.parse()).collect();
    let mut arguments = RunArguments {
        plan: Some(PathBuf::from(&way.plan)),
        set: set.map_err(|err| format!("{}: {err}", way.plan))?,
        dry_run: false,
        quick: false,
        duration: None,
        repetitions: None,
        out: None,
        reboot: false,
        resume: false,
        force: false,
        blocks: None,
        until: None,
        at_most: None,
        shard: None,
        seed: None,
        on: None,
        samples: false,
        common: Common {
            require: None,
            cpus: None,
            format: RunFormat::Text,
            cpu_dma_latency: None,
            prepare: None,
            wait: false,
            yes: false,
        },
    };
    if let Some((study, out)) = study {
        // Its own values, in place of those of the way.
        arguments.set.retain(|of_way| study.set.iter().all(|own| own.key() != of_way.key()));
        arguments.set.extend(study.set.iter().cloned());
        (arguments.quick, arguments.repetitions) = (study.quick, study.repetitions);
        (arguments.common.wait, arguments.common.yes) = (study.wait, study.yes);
        arguments.resume = study.resume && punctual_store::file_of(&out).exists();
        arguments.out = Some(out);
    }
    Ok(arguments)
}

fn carry_out(arguments: &StudyRunArguments) -> Outcome {
    let study = arguments.study;
    let (ways, here) = (ways(arguments)?, way_reports(study));
    let default = || {
        Path::new(crate::cli::terminal::RUNS).join(format!("{study}-{}", punctual_campaign::stamp(SystemTime::now())))
    };
    let dir = arguments.out.clone().unwrap_or_else(default);
    if !arguments.resume {
        note_out_of_reach(arguments, &ways, &here);
    }
    let mut failed = Vec::new();
    for (index, way) in ways.iter().enumerate() {
        if let Some(nothing) = here.iter().find(|here| here.name == way.name && here.measurements == Some(0)) {
            note(format_args!("{study}, way {}: skipped: {}", way.name, nothing.missing.join("; ")));
            continue;
        }
        note(format_args!("{study}, way {} of {}: {} ({})", index + 1, ways.len(), way.name, way.what));
        let measured = run_arguments(way, Some((arguments, dir.join(&way.name))))
            .and_then(|arguments| run::measure(arguments, None));
        match measured {
            Ok((dir, session)) => run_directory::note_failures(&session, &dir),
            Err(err) if err.is::<Interrupted>() => {
                note(format_args!("all ways: {}", resume(arguments, &dir)));
                return Err(err);
            }
            Err(err) => {
                note(format_args!("punctual: {study}, way {}: {err}", way.name));
                failed.push(way.name.as_str());
            }
        }
    }
    // A way that failed may have measured a part.
    let paths: Vec<PathBuf> = ways.iter().map(|way| dir.join(&way.name)).filter(|path| path.is_dir()).collect();
    let mut runs = Vec::new();
    for path in &paths {
        match Read::open(path) {
            Ok(read) => runs.push((path.as_path(), read)),
            Err(err) => note(format_args!("punctual: {err}")),
        }
    }
    print(&filled(study, &runs, here), arguments.format)?;
    if !runs.is_empty() {
        let named: Vec<_> = runs.iter().map(|(path, _)| path.display().to_string()).collect();
        let shown: Vec<_> = runs.iter().zip(&named).map(|((_, read), name)| read.results(name)).collect();
        let page = dir.join("report.html");
        punctual_store::write_page(&page, false, &html(&shown))?;
        note(format_args!("report: {}", page.display()));
    }
    if failed.is_empty() {
        return Ok(0);
    }
    Err(format!("{}: failed; try again with: {}", failed.join(", "), resume(arguments, &dir)).into())
}

/// Says which conclusions no result of these ways can show, before they are measured. A way that cannot be forecast
/// says why when it is carried out.
fn note_out_of_reach(arguments: &StudyRunArguments, ways: &[&'static StudyWay], here: &[WayReport]) {
    let is_skipped = |way: &&&StudyWay| here.iter().any(|one| one.name == way.name && one.measurements == Some(0));
    let header = |way: &&'static StudyWay| {
        let run = run_arguments(way, Some((arguments, PathBuf::new()))).ok()?;
        let (plan, _) = plan::plan(&run).ok()?;
        forecast(plan, None, false, None, None, &|_| ()).ok().map(|forecast| forecast.header)
    };
    let headers: Option<Vec<_>> = ways.iter().filter(|way| !is_skipped(way)).map(header).collect();
    let Some(headers) = headers else { return };
    let definition = arguments.study.definition();
    let (headers, here) = (headers.iter().collect::<Vec<_>>(), punctual_host::snapshot(&HostFs::here()));
    let Some(out_of_reach) = out_of_reach(definition, &headers, &here) else { return };
    let all = definition.conclusions.len();
    let within = all - out_of_reach.len();
    note(format_args!("{}: {within} of its {all} conclusions can be judged by these ways", arguments.study));
    for one in out_of_reach {
        note(format_args!("  not: {}: {}", one.says.trim_end_matches('.'), one.lacks));
    }
}

/// The command that continues the runs in `dir`, of the ways that were named.
fn resume(arguments: &StudyRunArguments, dir: &Path) -> String {
    let StudyRunArguments { study, way, .. } = arguments;
    let ways = if way.is_empty() { String::new() } else { format!(" --way {}", way.join(",")) };
    format!("punctual study run {study}{ways} --resume --out {}", shell_word(&dir.display().to_string()))
}

/// The ways to measure: those that are named, or all that need nothing else.
fn ways(arguments: &StudyRunArguments) -> Result<Vec<&'static StudyWay>, Box<dyn Error>> {
    let definition = arguments.study.definition();
    if definition.ways.is_empty() {
        let study = arguments.study;
        return Err(format!("unsupported: no plan repeats {study}, whose numbers only are known").into());
    }
    if arguments.way.is_empty() {
        return Ok(definition.ways.iter().filter(|way| way.needs.is_none()).collect());
    }
    let mut ways = Vec::new();
    for name in &arguments.way {
        let way = definition.way(name)?;
        if let Some(needs) = way.needs.as_ref().filter(|_| arguments.set.is_empty() && !arguments.resume) {
            return Err(format!("way {name} needs {needs}").into());
        }
        ways.push(way);
    }
    Ok(ways)
}
