//! Launches over fused loops.

use std::collections::BTreeMap;

use maniple_tensor::concrete::Statement;
use maniple_tensor::element::ElementType::I64;
use maniple_tensor::element::Scalar;
use maniple_tensor::notation::{Assignment, DenseArray, IndexVariable, evaluate, parse_with_extents};
use maniple_tensor::plan::{Plan, PlanError, Privilege};
use maniple_tensor::rectangle::Rectangle;

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

/// The result of `A(i,j) = B(i,j) + 1` by points that have so many blocks of a fused loop.
fn check(extents: [i64; 2], pieces: i64) -> Plan {
    let copied = assignment("A(i,j) = B(i,j) + 1", extents);
    let plan = fused(&copied, pieces).expect("blocks are disjoint");
    assert!(matches!(plan.launches()[0].uses[0].privilege, Privilege::Write), "{plan}");
    let operands =
        BTreeMap::from([("B".to_owned(), DenseArray::from_fn(I64, &extents, |at| Scalar::I64(at[0] * 9 + at[1])))]);
    let (found, fetched) = plan.run_sequentially(&operands).expect("it runs");
    assert_eq!(found, evaluate(&copied, &operands).expect("a value"));
    assert_eq!(fetched.iter().map(|fetch| fetch.elements).sum::<i64>(), extents[0] * extents[1]);
    plan
}

#[test]
fn blocks_of_two_fused_loops_are_written_each_by_its_own_point() {
    check([4, 6], 2);
    // Less than a row, one and a half, five and a third.
    for (extents, pieces) in [([4, 6], 5), ([3, 6], 2), ([5, 7], 9), ([1, 9], 4), ([9, 1], 4), ([20, 6], 4)] {
        check(extents, pieces);
    }
    let plan = check([4, 6], 5);
    let fixed = ["fo".into()];
    let parts: Vec<String> = plan.rectangles("A", &fixed).parts(&[1]).iter().map(|part| part.to_string()).collect();
    assert_eq!(parts, ["[0..1, 5..6]", "[1..2, 0..4]"]);
    let parts = plan.rectangles("A", &fixed).parts(&[4]);
    assert_eq!(parts, [Rectangle::new([(3, 4), (2, 6)])]);
}

#[test]
fn points_that_meet_in_a_part_of_a_fused_loop_are_refused_or_reduce() {
    // Both points write the same row.
    let sums = assignment("A(i) = reduce(+, j, B(i,j))", [3, 6]);
    let plan = fused(&sums, 2).expect("sums are combined");
    assert!(matches!(plan.launches()[0].uses[0].privilege, Privilege::Reduce(_)), "{plan}");
    let statement = Statement::new(&assignment("A(i,j) = B(i,j) + 1", [4, 6])).fuse("i", "j", "f");
    // Every fifth element.
    let cyclic =
        statement.and_then(|fused| fused.split("f", "fo", "fi", 5)?.reorder(["fi", "fo"])?.distribute_loops(["fi"]));
    assert!(matches!(Plan::new(&cyclic.expect("it is legal")), Err(PlanError::Overlap { .. })));
}
