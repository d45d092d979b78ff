//! Settings of guests' threads taken over from domains of libvirt, so that records hold them and not the file's name.

use crate::cli::terminal::note;
use punctual_import::{Domain, READS_RESULTS, left_out, libvirt_domain};
use punctual_model::{GuestThreadKind, GuestThreads, Kernel};
use std::error::Error;
use std::path::Path;

/// Takes over the settings of each kernel that names a domain, and names what is not taken over.
pub(super) fn take_over(kernels: &mut [Kernel]) -> Result<(), Box<dyn Error>> {
    for kernel in kernels {
        let Kernel::Lab(kernel) = kernel else { continue };
        let Some(path) = kernel.libvirt.take() else { continue };
        if !READS_RESULTS {
            return Err(left_out().into());
        }
        let Domain { vcpus, threads, not_taken } = libvirt_domain(Path::new(&path))?;
        kernel.threads = joined(&kernel.threads, &threads)
            .map_err(|twice| format!("{path}: sets {twice}, as the plan does; leave `{twice}` out of the plan"))?;
        kernel.cpus = vcpus.filter(|_| kernel.cpus == 1).unwrap_or(kernel.cpus);
        if !not_taken.is_empty() {
            note(format_args!("{path}: not taken over: {}", not_taken.join("; ")));
        }
    }
    Ok(())
}

/// Both settings together; the name of one that both have.
fn joined(plan: &GuestThreads, domain: &GuestThreads) -> Result<GuestThreads, String> {
    let mut all = domain.clone();
    for kind in GuestThreadKind::ALL {
        let (asked, there) = (plan.of(kind), all.of_mut(kind));
        if asked.policy.is_some() && there.policy.is_some() {
            return Err(format!("{}_policy", kind.name()));
        }
        if asked.cpus.is_some() && there.cpus.is_some() {
            return Err(format!("{}_cpus", kind.name()));
        }
        there.policy = asked.policy.or(there.policy);
        there.cpus = asked.cpus.clone().or(there.cpus.take());
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn threads(words: &str) -> GuestThreads {
        match format!("/k clock=emulated {words}").parse().unwrap() {
            Kernel::Lab(kernel) => kernel.threads,
            _ => panic!("{words}"),
        }
    }

    #[test]
    fn a_setting_comes_from_the_plan_or_from_the_domain() {
        let domain = threads("vcpu_policy=fifo:50 emulator_cpus=0");
        let both = joined(&threads("vcpu_cpus=1"), &domain).unwrap();
        assert_eq!(both.to_string(), "vcpu_policy=fifo:50 vcpu_cpus=1 emulator_cpus=0");
        assert_eq!(joined(&threads("emulator_cpus=0"), &domain), Err("emulator_cpus".to_owned()));
        assert_eq!(joined(&threads("vcpu_policy=rr:1"), &domain), Err("vcpu_policy".to_owned()));
    }
}
