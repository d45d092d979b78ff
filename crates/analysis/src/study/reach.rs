//! Conclusions that no result of some plans can show, known before they run.

use super::conclusion::{Judgment, StudyVerdict, judge};
use super::measured::StudyMeasurement;
use punctual_model::{Flavour, Header, Host, Kernel, KernelSource, Preemption, StudyConclusion, StudyDefinition};

/// A conclusion that no result of some plans can show.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutOfReach {
    /// The conclusion as published.
    pub says: String,
    /// What the plans lack.
    pub lacks: String,
}

/// The conclusions that stay undecided even if the measurements of these plans, on this machine (`here`) and in its
/// guests, are exactly as published; `None` if that is not known before they run, because a kernel does not tell its
/// preemption model.
pub fn out_of_reach(definition: &StudyDefinition, plans: &[&Header], here: &Host) -> Option<Vec<OutOfReach>> {
    let planned = planned(definition, plans, here)?;
    let of = |conclusion: &StudyConclusion| {
        let ideal: Vec<_> = planned.iter().map(|one| one.assuming(as_published(conclusion, one))).collect();
        let Judgment { verdict, lacks, .. } = judge(definition, conclusion, &ideal);
        (verdict != StudyVerdict::FoundAgain).then(|| OutOfReach { says: conclusion.says.clone(), lacks })
    };
    Some(definition.conclusions.iter().filter_map(of).collect())
}

/// A value of this measurement with which it agrees with the conclusion: below its limit, or each group at a tenth of
/// the one before.
fn as_published(conclusion: &StudyConclusion, measurement: &StudyMeasurement<'_>) -> f64 {
    let group = conclusion.falls.iter().zip(0..).find(|(group, _)| measurement.is_in(group));
    group.map_or(0.0, |(_, n)| 0.1f64.powi(n))
}

/// The measurements that plans ask for, each with the assumed value 0; `None` if the preemption model of a kernel of
/// theirs is not known before it boots.
fn planned<'a>(
    definition: &'a StudyDefinition,
    plans: &[&'a Header],
    here: &Host,
) -> Option<Vec<StudyMeasurement<'a>>> {
    let mut all = Vec::new();
    for (run, header) in plans.iter().enumerate() {
        for (index, planned) in header.measurements().into_iter().enumerate() {
            let cell = header.cells.get(planned.cell_index)?;
            let host = expected_host(&cell.kernel, here)?;
            let of_cell = StudyMeasurement::of_cell(definition, cell, &host, (run, index));
            all.extend(of_cell.into_iter().flat_map(|one| one.each_thread(cell)));
        }
    }
    Some(all)
}

/// What is known of the machine of a kernel before it boots.
fn expected_host(kernel: &Kernel, here: &Host) -> Option<Host> {
    let kernel = match kernel {
        Kernel::Running => return here.preemption.map(|_| here.clone()),
        Kernel::Installed(_) => return None,
        Kernel::Lab(kernel) => kernel,
    };
    let preemption = match (&kernel.source, Preemption::asked_by(&kernel.arguments).next_back()) {
        (KernelSource::Debian { flavour: Flavour::Rt, .. }, _) => Preemption::Realtime,
        (_, Some(asked)) => asked,
        // Debian builds them so.
        (KernelSource::Debian { .. }, None) => Preemption::Voluntary,
        (KernelSource::File(_), None) => return None,
    };
    Some(Host { preemption: Some(preemption), ..Host::default() })
}
