//! Products of sparse matrices in rounds over rows of the result: how much of the second matrix a node has at a time,
//! as the runtime counts bytes of instances.

use std::sync::Arc;

use maniple::{Context, Result};
use maniple_tensor::distributed::{Rehearsal, Tensor, assemble, assemble_in_steps};
use maniple_tensor::kernel::{Kernels, Serial};
use maniple_tensor::notation::Assignment;
use maniple_tensor::plan::Plan;
use maniple_tensor::schedule::Schedule;
use maniple_tensor::sparse::Computation;
use maniple_tensor::storage::{Duplicates, EntryList, SparseTensor, pack};
use maniple_tests::nodes::{Nodes, on_nodes};

use crate::sparse_tensors::assignment;

/// The rows of the first matrix, those of the second one, and its columns.
const EXTENTS: [i64; 3] = [384, 3072, 1 << 20];

/// The entries of a row of each.
const ENTRIES: [i64; 2] = [8, 96];

/// The bytes of a row of the second matrix: coordinates of 32 bits, and elements.
const ROW: u64 = ENTRIES[1] as u64 * 12;

fn product(format: &str) -> Assignment {
    let [i, j, k] = EXTENTS;
    let tensors: [(&str, &str, &[i64]); 3] = [("C", format, &[i, k]), ("A", "csr", &[i, j]), ("B", "csr", &[j, k])];
    assignment("C(i,k) = A(i,j) * B(j,k)", &tensors)
}

/// Blocks of rows on points, each in so many rounds.
fn plan(product: &Assignment, points: u64, rounds: u64) -> Arc<Plan> {
    let (rows, computation) = (EXTENTS[0] as u64, Computation::new(product).unwrap());
    let commands =
        format!("divide(i, io, ii, {points}); divide(ii, ir, ic, {rounds}); distribute(io); communicate({{A, B}}, ir)");
    assert_eq!(rows % (points * rounds), 0);
    let schedule = Schedule::parse(&commands, &product.tensors()).unwrap();
    Arc::new(Plan::new(&schedule.apply(computation.statement()).unwrap()).unwrap())
}

/// Rows of the first matrix name rows of the second one that are spread over it; few rows name the same.
fn matrices() -> [SparseTensor<i64>; 2] {
    let [i, j, k] = EXTENTS;
    let (mut a, mut b) = (EntryList::new(2), EntryList::new(2));
    for row in 0..i {
        (0..ENTRIES[0]).for_each(|entry| a.push(&[row, (row * ENTRIES[0] + entry * 997) % j], row % 5 + entry - 3));
    }
    for row in 0..j {
        (0..ENTRIES[1]).for_each(|entry| b.push(&[row, (row * 7919 + entry * 10_007) % k], (row + entry) % 7 - 3));
    }
    let packed = |entries, extents: &[i64]| {
        pack(&"csr".parse().unwrap(), extents, 0, entries, Duplicates::Refuse).unwrap().tensor
    };
    [packed(a, &[i, j]), packed(b, &[j, k])]
}

/// Both as they are dealt to all nodes.
fn dealt(cx: &Context, product: &Assignment, given: &[Arc<SparseTensor<i64>>; 2]) -> Result<[Tensor; 2]> {
    let variables = product.tensors();
    let of = |number: usize| Tensor::from_sparse(cx, &variables[number + 1], Arc::clone(&given[number]));
    Ok([of(0)?, of(1)?])
}

/// Computes the product, in steps or with all of them launched, on nodes that have so much memory each, and a share of
/// both matrices: the most bytes that a node had, or why not.
fn compute(
    (product, plan): (&Assignment, &Arc<Plan>),
    given: &[Arc<SparseTensor<i64>>; 2],
    (nodes, memory, in_steps): (u64, u64, bool),
) -> Vec<Result<u64>> {
    let values: Vec<(&str, &SparseTensor<i64>)> = vec![("A", &given[0]), ("B", &given[1])];
    let made = Computation::new(product).unwrap().run_by(&values, &Kernels::new(None, None), &Serial).unwrap();
    let mut expected = Sum::default();
    made.for_each(|at, value| add(&mut expected, at, value));
    on_nodes(Nodes::new(nodes as usize).with_memory(memory), async |cx, runtime| {
        let [a, b] = dealt(cx, product, given)?;
        cx.execution_fence().await?;
        runtime.reset_peaks();
        let made = match in_steps {
            true => assemble_in_steps(cx, plan, &[&a, &b]).await?,
            false => assemble(cx, plan, &[&a, &b]).await?,
        };
        cx.execution_fence().await?;
        let most = runtime.memories().iter().map(|memory| memory.peak).sum();
        a.destroy(cx)?;
        b.destroy(cx)?;
        // No node has room for all of the result.
        let found = made.fold_entries(cx, Sum::default, |sum: &mut Sum, at, value: i64| add(sum, at, value)).await?;
        let found =
            found.into_iter().fold(Sum::default(), |(count, sum), part| (count + part.0, sum.wrapping_add(part.1)));
        assert_eq!(found, expected);
        Ok(most)
    })
}

/// How many entries there are, and a sum of them in which each place counts for something else.
type Sum = (u64, i64);

fn add((count, sum): &mut Sum, at: &[i64], value: i64) {
    let place = at[0].wrapping_mul(EXTENTS[2]).wrapping_add(at[1]).wrapping_mul(0x9E37_79B9_7F4A_7C15_u64 as i64);
    (*count, *sum) = (*count + 1, sum.wrapping_add((place ^ place >> 29).wrapping_mul(value)));
}

#[test]
fn rounds_over_rows_need_room_for_what_two_of_them_name() {
    let given = matrices().map(Arc::new);
    for (format, nodes, rounds) in [("csr", 2, 16), ("csr", 4, 16), ("dcsr", 3, 16)] {
        let product = product(format);
        let plan = plan(&product, nodes, rounds);
        // Rows that a round names, at most; each with where it begins.
        let named = EXTENTS[0] as u64 / nodes / rounds * ENTRIES[0] as u64;
        let promised = on_nodes(Nodes::new(nodes as usize), async |cx, _| -> Result<u64> {
            let [a, b] = dealt(cx, &product, &given)?;
            Ok(Rehearsal::new(cx, &[Arc::clone(&plan)], &[&a, &b]).await?.passing()["B"])
        });
        let promised = promised.into_iter().map(Result::unwrap).max().unwrap();
        let expected = 3 * named * ROW..=3 * 2 * named * (ROW + 8);
        assert!(expected.contains(&promised), "{promised} bytes for {named} rows");
        let result = EXTENTS[0] as u64 / nodes * ENTRIES[0] as u64 * ENTRIES[1] as u64 * 12;
        // What is packed has two coordinates before.
        let result = if format == "csr" { result } else { result * 8 / 3 };
        // Its own rows, those that pass by, and the result; and the first matrix, what is small, and what comes early
        // from nodes that are ahead.
        let most = EXTENTS[1] as u64 * ROW / nodes + promised + result + (256 << 10);
        for found in compute((&product, &plan), &given, (nodes, most, true)) {
            found.unwrap_or_else(|error| panic!("{format} on {nodes} nodes in {rounds} rounds: {error}"));
        }
        // They have no more where there is more room; but what the packing of a result leaves goes when its room is
        // needed.
        for found in compute((&product, &plan), &given, (nodes, 1 << 30, true)) {
            let found = found.unwrap();
            assert!(
                found <= most || format != "csr",
                "{format} on {nodes} nodes in {rounds} rounds: {found} of {most} bytes"
            );
        }
        for found in compute((&product, &plan), &given, (nodes, most, false)) {
            found.expect_err("all rows that are named do not fit");
        }
    }
}
