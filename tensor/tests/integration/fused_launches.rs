//! Launches over fused loops.

use std::collections::BTreeMap;

use maniple_tensor::concrete::Statement;
use maniple_tensor::element::ElementType::I64;
use maniple_tensor::element::Scalar;
use maniple_tensor::notation::{Assignment, DenseArray, IndexVariable, evaluate, parse_with_extents};
use maniple_tensor::plan::{Plan, PlanError, Privilege};

fn assignment(text: &str, extents: [i64; 2]) -> Assignment {
    let extents: Vec<_> = ["i", "j"].into_iter().map(IndexVariable::new).zip(extents).collect();
    parse_with_extents(text, I64, &extents).expect("a statement")
}

fn fused(assignment: &Assignment, pieces: i64) -> Result<Plan, PlanError> {
    let statement = Statement::new(assignment)
        .fuse("i", "j", "f")
        .and_then(|fused| fused.divide("f", "fo", "fi", pieces)?.distribute_loops(["fo"]));
    Plan::new(&statement.expect("it is legal"))
}

#[test]
fn parts_that_are_whole_rows_are_written_each_by_its_own_point() {
    let copied = assignment("A(i,j) = B(i,j) + 1", [4, 6]);
    let plan = fused(&copied, 2).expect("two rows for each point");
    assert!(matches!(plan.launches()[0].uses[0].privilege, Privilege::ReadWrite | Privilege::Write), "{plan}");
    let operands =
        BTreeMap::from([("B".to_owned(), DenseArray::from_fn(I64, &[4, 6], |at| Scalar::I64(at[0] * 9 + at[1])))]);
    let (found, _) = plan.run_sequentially(&operands).expect("it runs");
    assert_eq!(found, evaluate(&copied, &operands).expect("a value"));
    // Five and a third, and one and a half rows.
    assert!(matches!(fused(&copied, 5), Err(PlanError::Overlap { .. })));
    assert!(matches!(fused(&assignment("A(i,j) = B(i,j) + 1", [3, 6]), 2), Err(PlanError::Overlap { .. })));
}
