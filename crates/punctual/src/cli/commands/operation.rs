//! `punctual operation`: repeats one operation of the cost suite, for strace, perf and tests.

use crate::cli::arguments::OperationArguments;
use crate::cli::terminal::{Outcome, output};
use serde_json::json;
use workload::cost;

pub(super) fn operation(arguments: &OperationArguments) -> Outcome {
    let used = cost::carry_out(arguments.operation, arguments.count)?;
    let mut text = Vec::new();
    output::json(
        &mut text,
        &json!({
            "minor_faults": used.minor_faults,
            "voluntary_switches": used.voluntary_switches,
            "involuntary_switches": used.involuntary_switches,
            "signals_and_faults_handled": sys::signal_handler::n_handled(),
        }),
    )?;
    output::write(&text).map(|()| 0)
}
