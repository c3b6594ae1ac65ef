//! Intervals against the coordinates that really occur.

use crate::random;
use std::collections::BTreeMap;

use fastrand::Rng;
use maniple_tensor::bounds::Bounds;
use maniple_tensor::concrete::{Statement, StatementNode};
use maniple_tensor::element::ElementType::F64;
use maniple_tensor::notation::{Access, IndexVariable, parse_with_extents};
use maniple_tensor::rectangle::Rectangle;
use random::{Problem, schedule};

type Values = BTreeMap<IndexVariable, i64>;

/// The value of `variable`, recovered by the definition of the relations.
fn value(statement: &Statement, variable: &IndexVariable, loops: &Values) -> Option<i64> {
    use maniple_tensor::concrete::Relation::*;
    if let Some(value) = loops.get(variable) {
        return Some(*value);
    }
    let of = |variable| value(statement, variable, loops);
    Some(match statement.recovery(variable)? {
        Split { outer, inner, factor, .. } => of(outer)? * factor + of(inner)?,
        Divide { outer, inner, length, .. } => of(outer)? * length + of(inner)?,
        SplitAt { outer, inner, points, .. } => {
            let begin = of(outer)?.checked_sub(1).and_then(|part| points.get(part as usize));
            begin.copied().unwrap_or(0) + of(inner)?
        }
        Fuse { outer, fused, extent, .. } if variable == outer => of(fused)? / extent,
        Fuse { fused, extent, .. } => of(fused)? % extent,
        Bound { bounded, .. } => of(bounded)?,
        // All are stored.
        Positions(positions) => of(&positions.position)?,
        Window { of: variable, start, step, .. } => start + step * of(variable)?,
        Rotate { by, result, extent, .. } => {
            let mut sum = of(result)?;
            for variable in by {
                sum += of(variable)?;
            }
            sum % extent
        }
    })
}

/// Calls `visit` with the loops' values at each assignment under `node` that happens.
fn visit<'n>(
    statement: &Statement,
    node: &'n StatementNode,
    loops: &mut Values,
    found: &mut impl FnMut(&'n Access, &Values),
) {
    match node {
        StatementNode::Forall(outer, body) => {
            for value in 0..statement.extent(&outer.variable).expect("it has one") {
                loops.insert(outer.variable.clone(), value);
                visit(statement, body, loops, found);
            }
            loops.remove(&outer.variable);
        }
        StatementNode::Where { consumer, producer, .. } => {
            visit(statement, consumer, loops, found);
            visit(statement, producer, loops, found);
        }
        StatementNode::Assign { target, value: expression, .. } => {
            let inside = statement.relations().iter().flat_map(|relation| relation.parents()).all(|parent| {
                value(statement, parent, loops)
                    .is_none_or(|value| value < statement.extent(parent).expect("it has one"))
            });
            if inside {
                std::iter::once(target).chain(expression.accesses()).for_each(|access| found(access, loops));
            }
        }
    }
}

/// Calls `check` with each combination of values of the first `depth` loops, and the elements that each access uses
/// then.
fn each_fixing(
    statement: &Statement,
    depth: usize,
    mut check: impl FnMut(&Values, &[(&Access, Rectangle, Option<Rectangle>)]),
) {
    let spine = statement.spine();
    let fixed: Vec<IndexVariable> = spine[..depth].iter().map(|outer| outer.variable.clone()).collect();
    let mut node = statement.body();
    for _ in 0..depth {
        if let StatementNode::Forall(_, body) = node {
            node = body;
        }
    }
    let extents: Vec<i64> = fixed.iter().map(|variable| statement.extent(variable).expect("it has one")).collect();
    for point in 0..extents.iter().product::<i64>() {
        let mut rest = point;
        let mut loops = Values::new();
        for (variable, extent) in fixed.iter().zip(&extents) {
            loops.insert(variable.clone(), rest % extent);
            rest /= extent;
        }
        let mut used: Vec<(&Access, Rectangle, Option<Rectangle>)> = Bounds::new(statement, loops.clone())
            .uses(node)
            .into_iter()
            .map(|(access, rectangle)| (access, rectangle, None))
            .collect();
        visit(statement, node, &mut loops.clone(), &mut |access, loops| {
            let coordinate = |variable| value(statement, variable, loops).expect("all loops are there");
            let element = Rectangle::new(access.variables.iter().map(coordinate).map(|at| (at, at + 1)));
            for (_, _, hull) in used.iter_mut().filter(|(other, ..)| std::ptr::eq(*other, access)) {
                *hull = Some(hull.as_ref().map_or(element.clone(), |hull| hull.hull(&element)));
            }
        });
        check(&loops, &used);
    }
}

#[test]
fn rectangles_cover_all_that_is_used_and_stay_inside_of_tensors() {
    let mut compared = 0;
    for seed in 1000..1060 {
        let mut random = Rng::with_seed(seed);
        let problem = Problem::new(&mut random);
        let (statement, _) = schedule(&problem.assignment, &mut random);
        for depth in 0..=statement.spine().len().min(3) {
            each_fixing(&statement, depth, |fixed, used| {
                for (access, rectangle, occurring) in used {
                    let whole = Rectangle::whole(access.tensor.dimensions());
                    assert!(whole.covers(rectangle), "seed {seed}: {access} {rectangle} {fixed:?}\n{statement}");
                    // Shifts go beyond the tensor.
                    if let Some(occurring) = occurring.as_ref().map(|occurring| occurring.intersection(&whole)) {
                        assert!(
                            rectangle.covers(&occurring),
                            "seed {seed}: {access} {rectangle} misses some of {occurring} at {fixed:?}\n{statement}"
                        );
                        compared += 1;
                    }
                }
            });
        }
    }
    assert!(compared > 1000);
}

/// Checks that the rectangles of all accesses are exact for every value of the first `depth` loops.
fn exact(statement: &Statement, depth: usize) {
    each_fixing(statement, depth, |fixed, used| {
        for (access, rectangle, occurring) in used {
            let same = match occurring {
                None => rectangle.is_empty(),
                Some(occurring) => rectangle == occurring,
            };
            assert!(same, "{access}: {rectangle}, but {occurring:?} at {fixed:?}\n{statement}");
        }
    });
}

fn product(i: i64, j: i64, k: i64) -> Statement {
    let extents = [("i", i), ("j", j), ("k", k)].map(|(name, extent)| (IndexVariable::new(name), extent));
    Statement::new(&parse_with_extents("A(i,j) = B(i,k) * C(k,j)", F64, &extents).expect("the text is fine"))
}

#[test]
fn blocks_are_exact_when_their_number_is_known() {
    for (i, j, k, grid) in [(8, 6, 4, [2, 3]), (7, 5, 9, [3, 2]), (2, 3, 1, [5, 4]), (5, 5, 5, [5, 5])] {
        let tiled = product(i, j, k).distribute(["i", "j"], ["io", "jo"], ["ii", "ji"], &grid).unwrap();
        exact(&tiled, 2);
        let steps = tiled.split("k", "ko", "ki", 3).unwrap().reorder(["ko", "ii", "ji", "ki"]).unwrap();
        exact(&steps, 3);
        let nested = steps.distribute(["ii", "ji"], ["iio", "jio"], ["iii", "jii"], &[2, 2]).unwrap();
        exact(&nested, 5);
    }
}

#[test]
fn rotations_are_exact_when_all_is_known() {
    for (i, j, k, grid) in [(8, 6, 4, [2, 2]), (7, 5, 9, [3, 3]), (4, 4, 2, [3, 3])] {
        let cannon = product(i, j, k)
            .distribute(["i", "j"], ["io", "jo"], ["ii", "ji"], &grid)
            .and_then(|tiled| tiled.divide("k", "ko", "ki", grid[0]))
            .and_then(|tiled| tiled.reorder(["ko", "ii", "ji", "ki"]))
            .and_then(|tiled| tiled.rotate("ko", ["io", "jo"], "kos"))
            .unwrap();
        exact(&cannon, 3);
    }
}

#[test]
fn a_fused_loop_is_exact_when_it_is_known() {
    exact(&product(4, 3, 2).fuse("i", "j", "f").unwrap(), 1);
    let rows = product(4, 3, 2).fuse("i", "j", "f").unwrap().split("f", "fo", "fi", 3).unwrap();
    exact(&rows, 1);
}

#[test]
fn part_of_a_fused_loop_covers_whole_rows_if_it_has_several() {
    let statement = product(4, 3, 2).fuse("i", "j", "f").unwrap().split("f", "fo", "fi", 4).unwrap();
    let bounds = Bounds::new(&statement, [(IndexVariable::new("fo"), 1)]);
    // Pairs 4 to 7 are (1,1) to (2,1).
    assert_eq!(bounds.tensor(statement.body(), "A").unwrap().to_string(), "[1..3, 0..3]");
}

#[test]
fn nothing_is_used_where_a_block_is_empty() {
    let statement = product(4, 3, 2).distribute(["i"], ["io"], ["ii"], &[3]).unwrap();
    let bounds = Bounds::new(&statement, [(IndexVariable::new("io"), 2)]);
    for tensor in ["A", "B", "C"] {
        assert!(bounds.tensor(statement.body(), tensor).unwrap().is_empty(), "{tensor}");
    }
}
