//! Sparse operands that points use parts of which do not lie together, as columns of rows: stored by blocks of that
//! dimension, each node has what its points use, and no more is moved.

use std::sync::Arc;

use fastrand::Rng;
use maniple::{Context, Result, Runtime};
use maniple_tensor::distributed::{Computation as Distributed, Tensor};
use maniple_tensor::element::{ElementType, Scalar};
use maniple_tensor::format::Format;
use maniple_tensor::kernel::{Kernels, Serial};
use maniple_tensor::notation::{Assignment, DenseArray, IndexVariable, TensorVariable, evaluate, parse};
use maniple_tensor::plan::Plan;
use maniple_tensor::schedule::Schedule;
use maniple_tensor::sparse::Computation;
use maniple_tensor::storage::SparseTensor;
use maniple_tests::nodes::{Nodes, on_nodes};

use crate::sparse_tensors::{assignment, tensor};

/// Bytes that a node may have besides its share: pages at the ends of its parts, of which other nodes have the rest.
const SLACK: u64 = 64 << 10;

/// A statement, its tensors, how it is scheduled, in which format its second tensor is then stored, and how many rows
/// that has in each block.
type Case = (&'static str, [(&'static str, &'static str, &'static [i64]); 3], &'static str, &'static str, u64);

/// In each, `NODES` points have as many columns.
const CASES: [Case; 6] = [
    (
        "y(i) = A(i,j) * x(j)",
        [("y", "dense", &[1200]), ("A", "csr", &[1200, 960]), ("x", "dense", &[960])],
        "divide(j, jo, ji, NODES); reorder({jo, i, ji}); distribute(jo)",
        "(i,j) -> (j/LENGTH: D, i: D, j%LENGTH: C)",
        1200,
    ),
    (
        "y(i) = A(i,j) * x(j)",
        [("y", "dense", &[1200]), ("A", "dcsr", &[1200, 960]), ("x", "dense", &[960])],
        "divide(j, jo, ji, NODES); reorder({jo, i, ji}); distribute(jo)",
        "(i,j) -> (j/LENGTH: D, i: C, j%LENGTH: C)",
        1200,
    ),
    (
        "y(i) = A(j,i) * x(j)",
        [("y", "dense", &[1200]), ("A", "csc", &[960, 1200]), ("x", "dense", &[960])],
        "divide(j, jo, ji, NODES); reorder({jo, i, ji}); distribute(jo)",
        "(i,j) -> (i/LENGTH: D, j: D, i%LENGTH: C)",
        1200,
    ),
    (
        "Y(i,k) = A(i,j) * X(j,k)",
        [("Y", "dense", &[1200, 2]), ("A", "csr", &[1200, 960]), ("X", "dense", &[960, 2])],
        "divide(j, jo, ji, NODES); reorder({jo, i, ji, k}); distribute(jo)",
        "(i,j) -> (j/LENGTH: D, i: D, j%LENGTH: C)",
        1200,
    ),
    (
        "Y(i,j) = A(i,j,k) * x(k)",
        [("Y", "dense", &[40, 30]), ("A", "csf:3", &[40, 30, 960]), ("x", "dense", &[960])],
        "divide(k, ko, ki, NODES); reorder({ko, i, j, ki}); distribute(ko)",
        "(i,j,k) -> (k/LENGTH: D, i: C, j: C, k%LENGTH: C)",
        1200,
    ),
    (
        "Y(i,k) = A(i,j,k) * x(j)",
        [("Y", "dense", &[40, 30]), ("A", "csf:3", &[40, 960, 30]), ("x", "dense", &[960])],
        "divide(j, jo, ji, NODES); reorder({jo, i, ji, k}); distribute(jo)",
        "(i,j,k) -> (j/LENGTH: D, i: C, j%LENGTH: C, k: C)",
        24000,
    ),
];

/// An operand, dealt to all nodes and then made of that the one that the loops use.
async fn operand(
    cx: &Context,
    (used, stored): (&TensorVariable, &TensorVariable),
    (declared, values): (&TensorVariable, &Arc<SparseTensor<i64>>),
) -> Result<Tensor> {
    if used.format().is_dense() {
        let tensor = Tensor::new(cx, used)?;
        tensor.write_elements(cx, values.elements())?;
        return Ok(tensor);
    }
    let own = Tensor::from_sparse(cx, declared, Arc::clone(values))?;
    if stored.format() == declared.format() {
        return Ok(own);
    }
    let made = own.converted(cx, stored).await?;
    own.destroy(cx)?;
    Ok(if used.dimensions() == stored.dimensions() { made } else { made.reshaped(used)? })
}

fn used(runtime: &Runtime) -> u64 {
    runtime.memories().iter().map(|memory| memory.used).sum()
}

#[test]
fn a_node_has_the_columns_that_its_points_use() {
    for (text, tensors, schedule, expected, rows) in CASES {
        for nodes in [2, 3, 4] {
            let product = assignment(text, &tensors);
            let variables: Vec<TensorVariable> = product.tensors();
            let filled =
                |text: &str| text.replace("NODES", &nodes.to_string()).replace("LENGTH", &(960 / nodes).to_string());
            let schedule = Schedule::parse(&filled(schedule), &variables).unwrap();
            let whole = Computation::new(&product).unwrap().scheduled(&schedule).unwrap();
            let stored = whole.stored_by_points();
            let formats: Vec<String> = stored.iter().map(|tensor| tensor.format().to_string()).collect();
            assert_eq!(formats, [filled(expected)], "{text}");
            let columns = whole.reading(&stored).unwrap().scheduled(&schedule).unwrap();
            assert_eq!(columns.conversions(), [], "{text}");
            let plan = Arc::new(Plan::new(columns.statement()).unwrap());
            let given = |variable: &TensorVariable| (variable.clone(), Arc::new(tensor(variable, 7)));
            let given: Vec<(TensorVariable, Arc<SparseTensor<i64>>)> = variables.iter().map(given).collect();
            let values: Vec<(&str, &SparseTensor<i64>)> =
                given.iter().map(|(variable, values)| (variable.name(), &**values)).collect();
            let result = Computation::new(&product).unwrap().run_by(&values, &Kernels::new(None, None), &Serial);
            let (result, dense) = (result.unwrap(), [0, 2].map(|of: usize| given[of].1.values().len() as u64 * 8));
            let entries = given[1].1.values().len() as u64;
            let done = on_nodes(Nodes::new(nodes as usize).with_memory(1 << 30), async |cx, runtime| -> Result<_> {
                let mut operands = vec![Tensor::new(cx, &variables[0])?];
                for own in plan.statement.operands() {
                    let stored = columns.stored_as(own);
                    let (declared, values) = given.iter().find(|(of, _)| of.name() == stored.name()).unwrap();
                    operands.push(operand(cx, (own, &stored), (declared, values)).await?);
                }
                let operands: Vec<&Tensor> = operands.iter().collect();
                let computation = Distributed::new(cx, &plan, &operands).await?;
                let mut moved = Vec::new();
                for _ in 0..3 {
                    cx.execution_fence().await?;
                    let before = runtime.statistics().parcel_bytes_received;
                    computation.launch(cx)?.await?;
                    cx.execution_fence().await?;
                    moved.push(runtime.statistics().parcel_bytes_received - before);
                    assert_eq!(operands[0].read_elements::<i64>(cx).await?, result.elements(), "{text}");
                }
                Ok((used(runtime), moved))
            });
            for (used, moved) in done.into_iter().map(Result::unwrap) {
                // Positions and coordinates of 32 bits; a copy of the result, in which a node adds up, and what it
                // reads of it.
                let share = entries / nodes * 12 * 11 / 10 + rows * 16 + dense[1] + 2 * dense[0];
                assert!(used <= share + SLACK, "{text}: {used} of {share} on {nodes}, {entries} entries");
                // Nothing of what the operand stores moves again.
                assert!(moved[1] <= dense[0] && moved[2] <= dense[0], "{text}: {moved:?} on {nodes}");
            }
        }
    }
}

/// Statements of which any loops may be distributed, with dense results.
const STATEMENTS: [&str; 9] = [
    "y(i) = A(i,j) * x(j)",
    "y(j) = A(i,j) * x(i)",
    "y(i) = A(i,j) * B(i,j)",
    "y(i) = A(i,j) + B(i,j) * x(j)",
    "a = A(i,j) * x(j) * z(i)",
    "Y(i,k) = A(i,j) * X(j,k)",
    "Y(i,j) = A(i,j,k) * x(k)",
    "Y(i,k) = A(i,j,k) * x(j)",
    "Y(i,l) = A(i,j,k) * X(j,l) * Z(k,l)",
];

/// Of matrices, and of tensors of order three.
const FORMATS: [&[&str]; 2] =
    [&["csr", "csc", "dcsr", "dcsc", "{C,D}", "coo"], &["csf:3", "{D,C,C}(2,0,1)", "{D,D,C}", "{C,D,C}(1,2,0)"]];

/// A statement with random extents and formats of its sparse operands, which begin with `A` and `B`.
fn a_statement(random: &mut Rng) -> Assignment {
    let text = STATEMENTS[random.usize(..STATEMENTS.len())];
    let extents: Vec<(char, i64)> = "ijkl".chars().map(|name| (name, random.i64(1..14))).collect();
    let accesses = text.split(['=', '*', '+']).map(str::trim);
    let variable = |access: &str| {
        let (name, variables) = access.split_once('(').unwrap_or((access, ")"));
        let extent = |own: char| extents.iter().find(|(name, _)| *name == own).map(|(_, extent)| *extent);
        let extents: Vec<i64> = variables.chars().filter_map(extent).collect();
        let format = match FORMATS.get(extents.len().wrapping_sub(2)).filter(|_| ["A", "B"].contains(&name)) {
            Some(formats) => formats[random.usize(..formats.len())].parse().unwrap(),
            None => Format::dense(extents.len()),
        };
        TensorVariable::new(name, ElementType::I64, extents).stored(format)
    };
    let variables: Vec<TensorVariable> = accesses.map(variable).collect();
    parse(text, &variables).unwrap()
}

/// A schedule that distributes one loop or two, and leaves the others in their order.
fn a_schedule(loops: &[IndexVariable], random: &mut Rng) -> String {
    let mut distributed = loops.to_vec();
    random.shuffle(&mut distributed);
    distributed.truncate(random.usize(1..=2));
    let named = |suffix: &str| distributed.iter().map(|own| format!("{own}{suffix}")).collect::<Vec<_>>();
    let divided = distributed.iter().map(|own| format!("divide({own}, {own}o, {own}i, {})", random.i64(1..5)));
    let inner = loops.iter().map(|own| if distributed.contains(own) { format!("{own}i") } else { own.to_string() });
    let order: Vec<String> = named("o").into_iter().chain(inner).collect();
    let divided = divided.collect::<Vec<_>>().join("; ");
    format!("{divided}; reorder({{{}}}); distribute({{{}}})", order.join(", "), named("o").join(", "))
}

/// 150 statements; `MANIPLE_TESTS_COUNT` of them, if that is set.
#[test]
fn random_statements_are_the_same_with_parts_together() {
    let most = std::env::var("MANIPLE_TESTS_COUNT").ok().and_then(|count| count.parse().ok()).unwrap_or(150);
    let (mut random, mut tried, mut together) = (Rng::with_seed(29), 0, 0);
    while tried < most {
        let product = a_statement(&mut random);
        let plain = Computation::new(&product).unwrap();
        let text = a_schedule(&plain.free_loops(), &mut random);
        let schedule = Schedule::parse(&text, &product.tensors()).unwrap();
        // Some loops can't be distributed, as those over what is gathered in a workspace.
        let Ok(whole) = plain.scheduled(&schedule) else { continue };
        let stored = whole.stored_by_points();
        let columns = whole.reading(&stored).ok().and_then(|columns| columns.scheduled(&schedule).ok());
        let used = columns.filter(|columns| !stored.is_empty() && columns.conversions().is_empty());
        let computation = used.as_ref().unwrap_or(&whole);
        let Ok(plan) = Plan::new(computation.statement()).map(Arc::new) else { continue };
        together += usize::from(used.is_some());
        let given: Vec<(TensorVariable, Arc<SparseTensor<i64>>)> = product
            .tensors()
            .into_iter()
            .map(|variable| (variable.clone(), Arc::new(tensor(&variable, random.i64(2..9)))))
            .collect();
        let dense = |values: &SparseTensor<i64>| {
            DenseArray::from_fn(ElementType::I64, values.dimensions(), |at| Scalar::I64(values.get(at)))
        };
        let arrays = given.iter().map(|(variable, values)| (variable.name().to_owned(), dense(values))).collect();
        let expected = evaluate(&product, &arrays).unwrap();
        let about = format!("{product} of {:?} on {tried}: {text}", product.tensors());
        let done = on_nodes(Nodes::new(1 + tried % 4), async |cx, _| -> Result<()> {
            let mut operands = vec![Tensor::new(cx, &product.left().tensor)?];
            for own in plan.statement.operands() {
                let stored = computation.stored_as(own);
                let (declared, values) = given.iter().find(|(of, _)| of.name() == stored.name()).unwrap();
                operands.push(operand(cx, (own, &stored), (declared, values)).await?);
            }
            let computation = Distributed::new(cx, &plan, &operands.iter().collect::<Vec<_>>()).await?;
            for _ in 0..2 {
                computation.launch(cx)?.await?;
                assert!(operands[0].read(cx).await? == expected, "{about}");
            }
            Ok(())
        });
        done.into_iter().for_each(|done| done.unwrap_or_else(|error| panic!("{about}: {error}")));
        tried += 1;
    }
    assert!(together > tried / 8, "parts are together in {together} of {tried}");
}
