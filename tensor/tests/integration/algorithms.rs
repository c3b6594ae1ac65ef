//! Each published algorithm computes what it should, moves what it should, and refuses what it can't do.

use std::collections::BTreeMap;

use maniple_tensor::algorithms::*;
use maniple_tensor::concrete::Statement;
use maniple_tensor::element::ElementType::I64;
use maniple_tensor::element::Scalar;
use maniple_tensor::kernel::Serial;
use maniple_tensor::loops::Reduction;
use maniple_tensor::machine::{Grid, Machine};
use maniple_tensor::notation::{Assignment, DenseArray, IndexVariable, evaluate, parse_with_extents};
use maniple_tensor::placement::Placed;
use maniple_tensor::plan::{Plan, Privilege};
use maniple_tensor::rectangle::Rectangle;

fn assignment(text: &str, extents: &[i64]) -> Assignment {
    let extents: Vec<_> = ["i", "j", "k", "l"]
        .into_iter()
        .zip(extents)
        .map(|(name, &extent)| (IndexVariable::new(name), extent))
        .collect();
    parse_with_extents(text, I64, &extents).expect("the text is fine")
}

fn product(extents: [i64; 3]) -> Assignment {
    assignment("A(i,j) = B(i,k) * C(k,j)", &extents)
}

fn operands(assignment: &Assignment) -> BTreeMap<String, DenseArray> {
    let mut random = fastrand::Rng::with_seed(7);
    let mut array = |dimensions: &[i64]| DenseArray::from_fn(I64, dimensions, |_| Scalar::I64(random.i64(-9..10)));
    assignment.tensors().iter().map(|tensor| (tensor.name().to_owned(), array(tensor.dimensions()))).collect()
}

/// Runs the algorithm's plan, compares the result with the definition, and gives the number of elements of each tensor
/// that were fetched.
fn fetched(assignment: &Assignment, algorithm: &Algorithm) -> BTreeMap<String, i64> {
    let operands = operands(assignment);
    let plan = Plan::new(&algorithm.statement).expect("all algorithms have plans");
    let (result, fetches) = plan.run_sequentially(&operands).unwrap_or_else(|error| panic!("{error}\n{plan}"));
    assert_eq!(result, evaluate(assignment, &operands).expect("there is an answer"), "{assignment}\n{plan}");
    if plan.leaf().substituted.is_some() {
        // The library computes the same.
        let library = plan.run_with(&operands, &mut |values, arguments| {
            assert!(plan.substitute(values, arguments, &Serial)?);
            Ok(())
        });
        assert_eq!(library.unwrap_or_else(|error| panic!("{error}\n{plan}")).0, result, "{plan}");
    }
    let mut sums = BTreeMap::new();
    for fetch in fetches {
        *sums.entry(fetch.tensor).or_default() += fetch.elements;
    }
    sums
}

/// Sizes that a grid divides, does not divide, and is larger than.
const SIZES: [[i64; 3]; 5] = [[12, 12, 12], [8, 12, 16], [7, 11, 13], [2, 3, 1], [13, 1, 5]];

#[test]
fn two_dimensional_algorithms_multiply_matrices_on_any_grid() {
    for size in SIZES {
        let assignment = product(size);
        let statement = Statement::new(&assignment);
        for grid in [[1, 1], [2, 2], [2, 3], [3, 2], [4, 4], [1, 5]] {
            fetched(&assignment, &cannon(&statement, grid).unwrap());
            fetched(&assignment, &pumma(&statement, grid).unwrap());
            for chunk in [1, 3, 4, 100] {
                fetched(&assignment, &summa(&statement, grid, chunk).unwrap());
            }
        }
    }
}

#[test]
fn three_dimensional_algorithms_multiply_matrices_on_any_grid() {
    for size in SIZES {
        let assignment = product(size);
        let statement = Statement::new(&assignment);
        for grid in [[1, 1, 1], [2, 2, 2], [2, 3, 1], [1, 2, 3], [3, 3, 3]] {
            fetched(&assignment, &johnson(&statement, grid).unwrap());
            for steps in [[1, 1, 1], [1, 1, 3], [2, 1, 2], [2, 3, 1]] {
                fetched(&assignment, &cosma(&statement, CosmaGrid { grid, steps }).unwrap());
            }
        }
        for (processors, copies) in [(4, 1), (9, 1), (8, 2), (27, 3), (32, 2)] {
            fetched(&assignment, &solomonik(&statement, processors, copies).unwrap());
        }
    }
}

#[test]
fn algorithms_of_higher_order_compute_what_they_should() {
    for extents in [[8, 6, 4, 5], [7, 5, 3, 2], [2, 1, 3, 1]] {
        let ttv_assignment = assignment("A(i,j) = B(i,j,k) * c(k)", &extents);
        for grid in [[1, 1], [2, 2], [3, 2]] {
            fetched(&ttv_assignment, &ttv(&Statement::new(&ttv_assignment), grid).unwrap());
        }
        let inner = assignment("a = B(i,j,k) * C(i,j,k)", &extents);
        for grid in [&[3][..], &[2, 2], &[2, 3, 2]] {
            fetched(&inner, &innerprod(&Statement::new(&inner), grid).unwrap());
        }
        let ttm_assignment = assignment("A(i,j,l) = B(i,j,k) * C(k,l)", &extents);
        for processors in [1, 2, 5] {
            fetched(&ttm_assignment, &ttm(&Statement::new(&ttm_assignment), processors).unwrap());
        }
        let khatri_rao = assignment("A(i,l) = B(i,j,k) * C(j,l) * D(k,l)", &extents);
        for grid in [[1, 1, 1], [2, 2, 2], [3, 1, 2]] {
            fetched(&khatri_rao, &mttkrp(&Statement::new(&khatri_rao), grid).unwrap());
        }
    }
}

#[test]
fn names_do_not_matter() {
    let assignment = parse_with_extents(
        "result(row,column) = right(t,column) * left(row,t)",
        I64,
        &[("row", 6), ("column", 5), ("t", 4)].map(|(name, extent)| (IndexVariable::new(name), extent)),
    )
    .unwrap();
    // The factors are the other way round, so this is no `A(i,j) = B(i,k) * C(k,j)`.
    assert!(cannon(&Statement::new(&assignment), [2, 2]).is_err());
    let assignment = parse_with_extents(
        "result(row,column) = left(row,t) * right(t,column)",
        I64,
        &[("row", 6), ("column", 5), ("t", 4)].map(|(name, extent)| (IndexVariable::new(name), extent)),
    )
    .unwrap();
    fetched(&assignment, &cannon(&Statement::new(&assignment), [2, 2]).unwrap());
}

#[test]
fn a_matrix_may_be_multiplied_with_itself() {
    let extents = ["i", "j", "k"].map(|name| (IndexVariable::new(name), 6));
    let assignment = parse_with_extents("A(i,j) = B(i,k) * B(k,j)", I64, &extents).unwrap();
    fetched(&assignment, &summa(&Statement::new(&assignment), [2, 2], 2).unwrap());
}

/// `g * g` processors, each of which fetches a tile of each operand in each of `g` steps.
#[test]
fn the_elements_that_are_fetched_are_those_of_the_formulas() {
    let n = 12;
    let assignment = product([n, n, n]);
    let statement = Statement::new(&assignment);
    let counts =
        |a: i64, b: i64, c: i64| BTreeMap::from([("A".to_owned(), a), ("B".to_owned(), b), ("C".to_owned(), c)]);
    for g in [2, 3] {
        let each = n * n * g;
        assert_eq!(fetched(&assignment, &cannon(&statement, [g, g]).unwrap()), counts(n * n, each, each));
        assert_eq!(fetched(&assignment, &pumma(&statement, [g, g]).unwrap()), counts(n * n, each, each));
        assert_eq!(fetched(&assignment, &summa(&statement, [g, g], 4).unwrap()), counts(n * n, each, each));
        // Results are reduced, and not fetched.
        let mut johnson = fetched(&assignment, &johnson(&statement, [g, g, g]).unwrap());
        assert_eq!(johnson.remove("A"), None);
        assert_eq!(johnson, BTreeMap::from([("B".to_owned(), each), ("C".to_owned(), each)]));
    }
    // Each of c layers goes through k / c: with s = 4 and c = 2, s * s * c processors fetch s / c tiles of n / s by n /
    // s / c * ... elements.
    let mut layers = fetched(&assignment, &solomonik(&statement, 32, 2).unwrap());
    assert_eq!(layers.remove("A"), None);
    // On each processor n/4 x n/2 of each operand.
    let each = 32 * (n / 4) * (n / 2);
    assert_eq!(layers, BTreeMap::from([("B".to_owned(), each), ("C".to_owned(), each)]));
}

/// The part of `tensor` that each processor of a plan with a launch and a sequence uses in each step.
fn parts(plan: &Plan, tensor: &str, grid: [i64; 2], step: i64) -> BTreeMap<[i64; 2], Rectangle> {
    let fixed = &plan.leaf().fixed;
    let points = (0..grid[0]).flat_map(|row| (0..grid[1]).map(move |column| [row, column]));
    points.map(|[row, column]| ([row, column], plan.rectangle(tensor, fixed, &[row, column, step]))).collect()
}

#[test]
fn cannons_processors_use_different_tiles_which_a_neighbour_had_before() {
    let (n, g) = (12, 3);
    let plan = Plan::new(&cannon(&Statement::new(&product([n, n, n])), [g, g]).unwrap().statement).unwrap();
    for step in 0..g {
        let (left, right) = (parts(&plan, "B", [g, g], step), parts(&plan, "C", [g, g], step));
        for row in 0..g {
            for column in 0..g {
                for other in (0..g).filter(|other| *other != column) {
                    assert_ne!(left[&[row, column]], left[&[row, other]]);
                    assert_ne!(right[&[column, row]], right[&[other, row]]);
                }
            }
        }
        if step > 0 {
            let (left_before, right_before) =
                (parts(&plan, "B", [g, g], step - 1), parts(&plan, "C", [g, g], step - 1));
            for [row, column] in left.keys().copied() {
                assert_eq!(left[&[row, column]], left_before[&[row, (column + 1) % g]]);
                assert_eq!(right[&[row, column]], right_before[&[(row + 1) % g, column]]);
            }
        }
    }
}

#[test]
fn pummas_rows_share_a_tile_of_the_one_operand_and_pass_on_the_other() {
    let (n, g) = (12, 3);
    let plan = Plan::new(&pumma(&Statement::new(&product([n, n, n])), [g, g]).unwrap().statement).unwrap();
    for step in 1..g {
        let (left, right) = (parts(&plan, "B", [g, g], step), parts(&plan, "C", [g, g], step));
        let before = parts(&plan, "C", [g, g], step - 1);
        for [row, column] in left.keys().copied() {
            assert_eq!(left[&[row, column]], left[&[row, 0]]);
            assert_eq!(right[&[row, column]], before[&[(row + 1) % g, column]]);
        }
    }
}

#[test]
fn results_are_reduced_where_sums_are_distributed_and_only_there() {
    let of_result = |algorithm: Algorithm| {
        let plan = Plan::new(&algorithm.statement).unwrap();
        plan.launches()[0].uses[0].privilege
    };
    let statement = Statement::new(&product([8, 8, 8]));
    assert_eq!(of_result(cannon(&statement, [2, 2]).unwrap()), Privilege::ReadWrite);
    assert_eq!(of_result(summa(&statement, [2, 2], 2).unwrap()), Privilege::ReadWrite);
    assert_eq!(of_result(johnson(&statement, [2, 2, 2]).unwrap()), Privilege::Reduce(Reduction::Sum));
    assert_eq!(of_result(johnson(&statement, [2, 2, 1]).unwrap()), Privilege::Reduce(Reduction::Sum));
    assert_eq!(of_result(solomonik(&statement, 8, 2).unwrap()), Privilege::Reduce(Reduction::Sum));
    let copy = Statement::new(&assignment("A(i,j) = B(j,i)", &[4, 4]));
    let copied = copy.distribute(["i", "j"], ["io", "jo"], ["ii", "ji"], &[2, 2]).unwrap();
    assert_eq!(Plan::new(&copied).unwrap().launches()[0].uses[0].privilege, Privilege::Write);
}

#[test]
fn a_hierarchy_of_grids_is_a_launch_in_a_launch() {
    let assignment = product([13, 11, 9]);
    let statement = cannon(&Statement::new(&assignment), [2, 2]).unwrap().statement;
    // The leaf is no library's any more, but distributed again within each node.
    let nodes = Statement::new(&assignment)
        .distribute(["i", "j"], ["io", "jo"], ["ii", "ji"], &[2, 2])
        .and_then(|nodes| nodes.divide("k", "ko", "ki", 2))
        .and_then(|nodes| nodes.reorder(["ko", "ii", "ji", "ki"]))
        .and_then(|nodes| nodes.rotate("ko", ["io", "jo"], "kos"))
        .and_then(|nodes| nodes.communicate(["A"], "jo"))
        .and_then(|nodes| nodes.communicate(["B", "C"], "kos"))
        .and_then(|nodes| nodes.distribute(["ii", "ji"], ["iio", "jio"], ["iii", "jii"], &[2, 3]))
        .and_then(|nodes| nodes.communicate(["A", "B", "C"], "jio"))
        .unwrap();
    let grid = vec![2, 2, 2, 3];
    let algorithm = Algorithm { statement: nodes, grid, placements: Vec::new() };
    fetched(&assignment, &algorithm);
    let plan = Plan::new(&algorithm.statement).unwrap();
    let depths: Vec<_> = plan.launches().iter().map(|launch| (launch.depth, launch.extents.clone())).collect();
    assert_eq!(depths, [(0, vec![2, 2]), (1, vec![2, 3])]);
    assert!(statement.distribute(["ii", "ji"], ["iio", "jio"], ["iii", "jii"], &[2, 3]).is_err());
}

#[test]
fn what_an_algorithm_can_not_do_is_refused() {
    let statement = Statement::new(&product([8, 8, 8]));
    let said = |result: Result<Algorithm, AlgorithmError>| result.unwrap_err().to_string();
    for (processors, copies) in [(8, 1), (16, 4), (12, 3), (8, 0), (0, 1), (-4, 1), (64, 2)] {
        assert_eq!(
            said(solomonik(&statement, processors, copies)),
            format!(
                "the 2.5D algorithm can't use {processors} processors and {copies} copies: \
                 processors / copies and processors / copies^3 have to be squares of whole numbers"
            )
        );
    }
    assert_eq!(
        said(cannon(&statement, [0, 2])),
        "distribute({i, j}, {io, jo}, {ii, ji}, {0, 2}): the number of pieces is 0; it has to be at least 1"
    );
    assert_eq!(said(summa(&statement, [2, 2], 0)), "split(k, ko, ki, 0): the factor is 0; it has to be at least 1");
    assert_eq!(
        said(ttm(&statement, 2)),
        "TTM computes A(i,j,l) = B(i,j,k) * C(k,l), unscheduled, not\nA(i,j) = 0\nfor i in 0..8\n  for j in 0..8\n    \
         for k in 0..8\n      A(i,j) += B(i,k) * C(k,j)\n"
    );
    let inner = Statement::new(&assignment("a = B(i,j,k) * C(i,j,k)", &[2, 2, 2]));
    assert_eq!(
        said(innerprod(&inner, &[1, 1, 1, 1])),
        "innerprod can't use a grid of 4 dimensions: it takes one, two or three dimensions"
    );
    assert!(
        said(cannon(&statement.split("k", "a", "b", 2).unwrap(), [2, 2])).starts_with("Cannon's algorithm computes")
    );
}

#[test]
fn cosma_takes_cubes_where_it_can() {
    let of = |size, processors| cosma_grid(size, processors, 1, None).grid;
    assert_eq!(of([100, 100, 100], 8), [2, 2, 2]);
    assert_eq!(of([100, 100, 100], 1), [1, 1, 1]);
    assert_eq!(of([1000, 10, 10], 8), [8, 1, 1]);
    assert_eq!(of([10, 10, 100_000], 16), [1, 1, 16]);
    assert_eq!(of([200, 200, 50], 16), [4, 4, 1]);
    // No more processors than there is work for.
    assert_eq!(of([2, 2, 1], 100), [2, 2, 1]);
    assert_eq!(cosma_grid([100, 100, 100], 64, 50, None).grid, [2, 2, 2]);
    assert_eq!(of([0, 5, 5], 4).iter().product::<i64>(), 4);
}

#[test]
fn cosma_goes_in_steps_where_memory_is_short() {
    let steps = |memory| cosma_grid([64, 64, 64], 8, 1, Some(memory)).steps;
    assert_eq!(steps(3 * 32 * 32), [1, 1, 1]);
    assert_eq!(steps(2 * 32 * 32), [1, 1, 2]);
    // The block of the result alone has 1024 elements.
    let steps = steps(1000);
    assert!(steps[0] > 1 || steps[1] > 1, "{steps:?}");
    let assignment = product([64, 64, 64].map(|extent| extent / 8));
    let grid = cosma_grid([8, 8, 8], 8, 1, Some(20));
    let most: i64 = {
        let algorithm = cosma(&Statement::new(&assignment), grid).unwrap();
        fetched(&assignment, &algorithm);
        let plan = Plan::new(&algorithm.statement).unwrap();
        let leaf = plan.leaf();
        let zeros = vec![0; leaf.fixed.len()];
        leaf.tensors.iter().map(|tensor| plan.rectangle(tensor.name(), &leaf.fixed, &zeros).volume()).sum()
    };
    assert!(most <= 20, "{most} elements at {grid:?}");
    assert_eq!(cosma_grid([1, 1, 1], 1, 1, Some(0)).steps, [1, 1, 1]);
}

/// The tensors of which some processor fetches, at its launch or in some step, what its placement does not put there.
fn moved(algorithm: &Algorithm) -> Vec<String> {
    let plan = Plan::new(&algorithm.statement).expect("all algorithms have plans");
    let extents: Vec<usize> = algorithm.grid.iter().map(|&extent| extent as usize).collect();
    let machine = Machine::new([Grid::new(extents).expect("it is a grid")]).expect("it is a machine");
    let mut moved = Vec::new();
    for (tensor, placement) in &algorithm.placements {
        let domain = Rectangle::whole(tensor.dimensions());
        let placed = Placed::new(placement, &domain, &machine).unwrap_or_else(|error| panic!("{tensor}: {error}"));
        let fixed = &plan.launches()[0].fixed;
        let stays = machine.points().all(|point| {
            let values: Vec<i64> = point.iter().map(|&coordinate| coordinate as i64).collect();
            let used = plan.rectangle(tensor.name(), fixed, &values);
            used.is_empty() || placed.piece(&point).rectangles().any(|held| held.covers(&used))
        });
        if !stays {
            moved.push(tensor.name().to_owned());
        }
    }
    moved
}

#[test]
fn placements_put_data_where_it_is_used_as_far_as_the_algorithm_says() {
    let statement = Statement::new(&product([12, 10, 14]));
    for algorithm in
        [cannon(&statement, [2, 2]).unwrap(), pumma(&statement, [2, 3]).unwrap(), summa(&statement, [3, 2], 4).unwrap()]
    {
        // The result stays, and operands move, as each processor needs whole rows and columns.
        assert_eq!(moved(&algorithm), ["B", "C"]);
    }
    for algorithm in [
        johnson(&statement, [2, 2, 2]).unwrap(),
        solomonik(&statement, 8, 2).unwrap(),
        cosma(&statement, CosmaGrid { grid: [2, 2, 2], steps: [1, 1, 2] }).unwrap(),
    ] {
        // All layers but one reduce into a result elsewhere.
        assert_eq!(moved(&algorithm), ["A", "B", "C"]);
    }
    let statement = Statement::new(&assignment("A(i,j) = B(i,j,k) * c(k)", &[8, 6, 5]));
    assert_eq!(moved(&ttv(&statement, [2, 2]).unwrap()), [""; 0]);
    let statement = Statement::new(&assignment("A(i,j,l) = B(i,j,k) * C(k,l)", &[8, 6, 5, 3]));
    assert_eq!(moved(&ttm(&statement, 3).unwrap()), [""; 0]);
    let statement = Statement::new(&assignment("A(i,l) = B(i,j,k) * C(j,l) * D(k,l)", &[8, 6, 5, 3]));
    assert_eq!(moved(&mttkrp(&statement, [2, 2, 2]).unwrap()), ["A", "C", "D"]);
    let statement = Statement::new(&assignment("a = B(i,j,k) * C(i,j,k)", &[8, 6, 5]));
    for grid in [&[3][..], &[2, 2], &[2, 2, 2]] {
        assert_eq!(moved(&innerprod(&statement, grid).unwrap()), ["a"]);
    }
}

/// The faces that operands lie on meet the processors that use them.
#[test]
fn johnsons_operands_lie_on_the_faces_from_which_they_are_broadcast() {
    let algorithm = johnson(&Statement::new(&product([12, 10, 14])), [2, 3, 4]).unwrap();
    let plan = Plan::new(&algorithm.statement).unwrap();
    let machine = Machine::new([Grid::new([2, 3, 4]).unwrap()]).unwrap();
    let face = |point: &[usize], dimension: usize| point[dimension] == 0;
    for (number, (tensor, placement)) in algorithm.placements.iter().enumerate() {
        let placed = Placed::new(placement, &Rectangle::whole(tensor.dimensions()), &machine).unwrap();
        // A lies where k is 0, B where j is, C where i is.
        let across = [2, 1, 0][number];
        for point in machine.points().filter(|point| face(point, across)) {
            let values: Vec<i64> = point.iter().map(|&coordinate| coordinate as i64).collect();
            let used = plan.rectangle(tensor.name(), &plan.leaf().fixed, &values);
            let held: Vec<Rectangle> = placed.piece(&point).rectangles().collect();
            assert!(used.is_empty() || held == [used.clone()], "{tensor} at {point:?}: {used} {held:?}");
        }
    }
}
