//! Every operation of the table can be made ready, and does as often what it says as it is asked to.

use model::COST_OPERATIONS;

#[test]
fn every_operation_of_the_table_is_made() {
    let unknown: Vec<_> = COST_OPERATIONS
        .iter()
        .filter(|operation| operation.fixed == 0 || operation.does.is_empty())
        .map(|operation| operation.name)
        .collect();
    assert_eq!(unknown, Vec::<&str>::new());
}
