//! Shards of a run: the same order of measurements on every machine, and the part of one of them.

use punctual_analysis::wording::things;
use punctual_model::{Header, Plan, Shard, fnv1a};

/// The plan of a shard has a seed: without a given one, it follows from the plan, so that all machines draw one order.
/// Errors: if the plan cannot be written as JSON.
pub(super) fn seeded(mut plan: Plan, shard: Option<Shard>) -> Result<Plan, serde_json::Error> {
    if shard.is_some() && plan.seed.is_none() {
        // Readers of JSON in other languages keep 53 bits of a number.
        plan.seed = Some(fnv1a(&serde_json::to_string(&plan)?) >> 11);
    }
    Ok(plan)
}

/// The header of this shard of a run. Errors: if nothing belongs to it.
pub(super) fn sharded(header: Header, shard: Option<Shard>) -> Result<Header, String> {
    let Some(shard) = shard else { return Ok(header) };
    let header = Header { shard: Some(shard), ..header };
    if header.n_measurements() > 0 || header.cells.is_empty() {
        return Ok(header);
    }
    let blocks = u64::from(header.plan.repetitions);
    let (whole, most) = match header.is_virtual() {
        true => {
            let all = blocks.saturating_mul(u64::try_from(header.cells.len()).unwrap_or(u64::MAX));
            (things(all, "measurement"), all)
        }
        false => (things(blocks, "block"), blocks),
    };
    Err(format!("invalid --shard {shard}: this plan has {whole}; use N up to {most}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use punctual_analysis::testing::RunBuilder;

    #[test]
    fn all_shards_of_a_plan_have_one_seed_and_a_given_one_stays() {
        let shard = |text: &str| Some(text.parse().unwrap());
        let seed = |plan: &Plan, of: &str| seeded(plan.clone(), shard(of)).unwrap().seed;
        let plan = Plan { seed: None, ..Plan::default() };
        assert!(seed(&plan, "1/3").is_some());
        assert_eq!(seed(&plan, "1/3"), seed(&plan, "3/4"));
        assert_ne!(seed(&plan, "1/3"), seed(&Plan { repetitions: 9, ..plan.clone() }, "1/3"));
        assert_eq!(seed(&Plan { seed: Some(4), ..plan.clone() }, "1/3"), Some(4));
        assert_eq!(seeded(plan, None).unwrap().seed, None);
    }

    #[test]
    fn a_shard_without_measurements_is_refused() {
        let mut run = RunBuilder::new();
        run.cell("none", "other").cell("none", "fifo:80").header.plan.repetitions = 3;
        let of = |text: &str| sharded(run.header.clone(), Some(text.parse().unwrap())).map(|one| one.n_measurements());
        assert_eq!((of("1/1"), of("1/2"), of("2/2"), of("3/3")), (Ok(6), Ok(4), Ok(2), Ok(2)));
        assert_eq!(of("4/4"), Err("invalid --shard 4/4: this plan has 3 blocks; use N up to 3".to_owned()));
    }
}
