//! Copies that nodes forget, so that what passes by needs no room on each of them.

use std::collections::BTreeMap;
use std::sync::Arc;

use maniple::Result;
use maniple_tensor::concrete::Statement;
use maniple_tensor::distributed::{Computation, Tensor};
use maniple_tensor::element::{ElementType, Scalar};
use maniple_tensor::notation::{Assignment, DenseArray, IndexVariable, evaluate, parse_with_extents};
use maniple_tensor::plan::Plan;
use maniple_tests::nodes::{Nodes, on_nodes};

/// Of `C` each node has half, which is 64 KiB, and uses all, in 16 steps.
fn product() -> (Assignment, Arc<Plan>) {
    let extents: Vec<_> =
        [("i", 8), ("j", 64), ("k", 256)].map(|(name, extent)| (IndexVariable::new(name), extent)).into();
    let assignment = parse_with_extents("A(i,j) = B(i,k) * C(k,j)", ElementType::I64, &extents).unwrap();
    let statement = Statement::new(&assignment)
        .distribute(["i"], ["io"], ["ii"], &[2])
        .and_then(|statement| statement.divide("k", "ko", "ki", 16))
        .and_then(|statement| statement.reorder(["ko", "ii", "j", "ki"]))
        .and_then(|statement| statement.communicate(["B", "C"], "ko"))
        .unwrap();
    let plan = Arc::new(Plan::new(&statement).unwrap());
    (assignment, plan)
}

fn element(at: &[i64]) -> i64 {
    at[0] * 7 % 11 + at[1] * 5 % 13 - 4
}

/// The traffic and the memory of a node.
#[derive(Debug)]
struct Found {
    /// The bytes that it has received the first time, and in all.
    received: [u64; 2],
    /// The bytes of data that it has in the end.
    left: u64,
}

/// Computes twice on two nodes with so much memory.
fn compute(memory: u64, forgets: bool) -> Vec<Result<Found>> {
    let (assignment, plan) = product();
    let array = |dimensions: &[i64]| DenseArray::from_fn(ElementType::I64, dimensions, |at| Scalar::I64(element(at)));
    let operands = [("B", array(&[8, 256])), ("C", array(&[256, 64]))];
    let operands: BTreeMap<String, DenseArray> =
        operands.into_iter().map(|(name, array)| (name.to_owned(), array)).collect();
    let expected = evaluate(&assignment, &operands).unwrap();
    on_nodes(Nodes::new(2).with_memory(memory), async |cx, runtime| {
        let mut tensors = Vec::new();
        for variable in assignment.tensors() {
            let tensor = Tensor::new(cx, &variable)?;
            if operands.contains_key(variable.name()) {
                tensor.generate(cx, &tensor.slabs(2), element)?;
            }
            tensors.push(tensor);
        }
        let computation = Computation::new(cx, &plan, &tensors.iter().collect::<Vec<_>>()).await?;
        let mut received = [0; 2];
        for received in &mut received {
            match forgets {
                true => computation.run_in_steps(cx).await?,
                false => computation.launch(cx)?.await?,
            }
            cx.execution_fence().await?;
            *received = runtime.statistics().parcel_bytes_received;
        }
        let left = runtime.memories().iter().map(|memory| memory.used).sum();
        assert!(tensors[0].read(cx).await? == expected);
        Ok(Found { received, left })
    })
}

/// Half of `C`.
const HALF: u64 = 64 << 10;

/// The part of `C` that a step uses.
const BLOCK: u64 = 8 << 10;

/// All of `B` and `A`, which are so small that an instance is for all.
const OTHERS: u64 = 8 * 8 * (256 + 64);

#[test]
fn operands_that_pass_by_need_room_for_a_block() {
    for found in compute(120 << 10, true) {
        let Found { received: [once, twice], left } =
            found.expect("half of C, two blocks of the other half, twice, and those of B fit");
        assert!(once >= HALF && twice >= once + HALF, "blocks move in each run: {once}, {twice}");
        // SuperTaco's rule: of each block one instance is left, on its own node. Those of the last two steps, and
        // copies of them, may be about to go.
        let own = HALF..=HALF + OTHERS + 4 * BLOCK;
        assert!(own.contains(&left), "a node has its own data in the end: {left}, not {own:?}");
    }
}

#[test]
fn operands_are_kept_unless_they_are_to_be_forgotten() {
    for found in compute(1 << 30, false) {
        let Found { received: [once, twice], left } = found.expect("there is room for all");
        assert!(once >= HALF && twice < once + HALF, "blocks are there in the second run: {once}, {twice}");
        assert!(left >= 2 * HALF, "a node has all blocks in the end: {left}");
    }
    for found in compute(120 << 10, false) {
        found.expect_err("all of C does not fit");
    }
}
