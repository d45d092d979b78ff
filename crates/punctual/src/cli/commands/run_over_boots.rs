//! Runs over boots: what `punctual run` does before and after the cells of one installed kernel.

use crate::cli::terminal::{Outcome, note};
use punctual_campaign::{NextBoot, Session};
use punctual_host::{
    BootWay, HostFs, ResumeUnit, boot_next, changeable_by_others, forget_boots, is_lost_by_a_boot, other_users,
    restart_system, way_to_boot,
};
use punctual_model::{Header, shell_word};
use std::error::Error;
use std::path::{Path, PathBuf};

/// Rejects `--reboot` where this machine cannot do it by itself.
pub(super) fn permit(header: &Header, is_confirmed: bool) -> Result<(), Box<dyn Error>> {
    let fs = HostFs::here();
    if !header.is_over_boots() {
        return Err(
            "--reboot: no kernel of this plan has to be booted; name one, like installed:6.1.0-13-rt-amd64".into()
        );
    }
    if punctual_sys::process::effective_user_id() != 0 {
        return Err("--reboot needs root; leave it out, and boot by hand".into());
    }
    let own = std::env::var("SUDO_UID").ok().and_then(|uid| uid.parse().ok()).unwrap_or(0);
    if let Some(user) = other_users(&fs, own).first().filter(|_| !is_confirmed) {
        return Err(format!("{user} has a session on this machine, which --reboot ends; add --yes to do so").into());
    }
    header.cells.iter().filter_map(|cell| cell.kernel.installed()).try_for_each(|kernel| {
        way_to_boot(&fs, kernel)?;
        Ok(())
    })
}

/// Boots the kernel that the run in `dir` needs next, or says how; the `words` of this program and the directory go on
/// with it. Errors: if the machine cannot be set to boot it.
pub(super) fn go_on(dir: &Path, session: Session, next: &NextBoot, words: &[String], reboots: bool) -> Outcome {
    let NextBoot { kernel, without, block, done, all } = next;
    note(format_args!("{done} of {all} boots measured; next: block {} with {kernel}", block + 1));
    if !reboots {
        let words = words.iter().map(|word| shell_word(word)).collect::<Vec<_>>().join(" ");
        let resume = format!("punctual {words} {}", shell_word(&dir.display().to_string()));
        note(format_args!("boot it and go on by itself: {resume} --reboot; or boot it by hand, then: {resume}"));
        return Ok(0);
    }
    let fs = HostFs::here();
    let run = kept(dir)?;
    let way = way_to_boot(&fs, kernel)?;
    let end = [&run.display().to_string(), "--reboot", "--yes", "--wait"].map(str::to_owned);
    let words = [words, &end].concat();
    let ask = || -> Result<(), Box<dyn Error>> {
        ResumeUnit { run: &run, words: &words }.install(&fs)?;
        punctual_sys::fail::point("boot-unit-made");
        boot_next(&fs, way, kernel, without)?;
        punctual_sys::fail::point("boot-set");
        Ok(session.ask_for(next)?)
    };
    ask().inspect_err(|_| drop(forget_boots(&fs)))?;
    punctual_sys::fail::point("boot-asked");
    let by = if way == BootWay::Grub { "GRUB" } else { "kexec" };
    note(format_args!("booting it by {by}; the run goes on by itself (punctual-resume.service)"));
    drop(session);
    // Nothing is taken back if this fails: it also does when the machine goes down first.
    restart_system(way)?;
    punctual_sys::fail::point("boot-restarts");
    Ok(0)
}

/// The absolute path of a run that a boot keeps, and that root alone can change. Errors: if it is none.
pub(super) fn kept(dir: &Path) -> Result<PathBuf, Box<dyn Error>> {
    let run = dir.canonicalize().map_err(|err| format!("{}: {err}", dir.display()))?;
    if let Some(kind) = is_lost_by_a_boot(&HostFs::here(), &run) {
        return Err(format!("{}: a boot empties this {kind}; name another directory with --out", run.display()).into());
    }
    if let Some(part) = changeable_by_others(&run) {
        return Err(format!(
            "{}: --reboot goes on with the run as root, and another user can change {}; name a directory below /root with \
             --out",
            run.display(),
            part.display()
        )
        .into());
    }
    Ok(run)
}

/// Removes what boots have left at the end of a run.
pub(super) fn end() -> Result<(), Box<dyn Error>> {
    forget_boots(&HostFs::here())?.iter().for_each(|path| note(format_args!("removed {}", path.display())));
    Ok(())
}
