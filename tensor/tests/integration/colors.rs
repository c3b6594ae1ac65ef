//! Parts of tensors by number are the parts that points use, however many points there are.

use crate::random;
use fastrand::Rng;
use maniple_tensor::algorithms::{Algorithm, cannon, johnson, pumma, summa};
use maniple_tensor::concrete::Statement;
use maniple_tensor::element::ElementType::F64;
use maniple_tensor::notation::{IndexVariable, parse_with_extents};
use maniple_tensor::plan::Plan;
use maniple_tensor::rectangle::Rectangle;
use random::{Problem, fused, nested, schedule};

fn sorted(mut parts: Vec<Rectangle>) -> Vec<Rectangle> {
    parts.sort();
    parts
}

#[test]
fn the_part_of_a_color_is_what_is_used_where_the_color_is() {
    let (mut compared, mut several) = (0, 0);
    for seed in 0..900 {
        let mut random = Rng::with_seed(seed);
        let problem = Problem::new(&mut random);
        let statement = match seed % 3 {
            0 => Some(schedule(&problem.assignment, &mut random).0),
            1 => fused(&problem.assignment, &mut random),
            _ => nested(&problem.assignment, &mut random),
        };
        let Some(Ok(plan)) = statement.map(|statement| Plan::new(&statement)) else { continue };
        let order = plan.order();
        if order.steps() * order.points() > 300 {
            continue;
        }
        for tensor in plan.statement.tensors() {
            let mut levels = plan.outer_fetches(tensor.name());
            levels.push(plan.innermost_fetch(tensor.name()).0);
            for fixed in levels {
                let rectangles = plan.rectangles(tensor.name(), fixed);
                let colors = rectangles.colors();
                let loops = colors.loops();
                let mut of_loops = std::collections::BTreeMap::new();
                for step in 0..order.steps() {
                    for point in 0..order.points() {
                        let values = &order.values(step, point)[..fixed.len()];
                        let color = colors.at(values);
                        assert!((0..colors.count()).contains(&color), "seed {seed}");
                        let (found, expected) = (sorted(colors.parts(color)), sorted(rectangles.parts(values)));
                        assert_eq!(found, expected, "seed {seed}: {tensor} at {values:?}\n{}\n{plan}", plan.statement);
                        let values: Vec<i64> = loops.iter().map(|&position| values[position]).collect();
                        assert_eq!(*of_loops.entry(values).or_insert(color), color, "seed {seed}");
                        compared += 1;
                        several += usize::from(found.len() > 1);
                    }
                }
            }
        }
    }
    assert!(compared > 10_000 && several > 200, "{compared} {several}");
}

/// A million points in up to a million steps: to go through them would take hours.
#[test]
fn a_million_points_are_planned_without_going_through_them() {
    let n = 1 << 21;
    let extents = ["i", "j", "k"].map(|name| (IndexVariable::new(name), n));
    let product = parse_with_extents("A(i,j) = B(i,k) * C(k,j)", F64, &extents).unwrap();
    let statement = Statement::new(&product);
    let algorithms: Vec<(&str, Algorithm)> = vec![
        ("cannon", cannon(&statement, [1024, 1024]).unwrap()),
        ("pumma", pumma(&statement, [1024, 1024]).unwrap()),
        ("summa", summa(&statement, [1024, 1024], 2).unwrap()),
        ("johnson", johnson(&statement, [100, 100, 100]).unwrap()),
    ];
    for (name, algorithm) in algorithms {
        let plan = Plan::new(&algorithm.statement).unwrap();
        let order = plan.order();
        assert!(order.points() >= 1_000_000, "{name}");
        for tensor in plan.statement.tensors() {
            let (fixed, _) = plan.innermost_fetch(tensor.name());
            let colors = plan.rectangles(tensor.name(), fixed).colors();
            let (step, point) = (order.steps() - 1, order.points() / 3);
            let values = &order.values(step, point)[..fixed.len()];
            let used = plan.rectangle(tensor.name(), fixed, values);
            assert_eq!(colors.parts(colors.at(values)), [used], "{name}");
            // Tiles of the tensor, and the part without elements: not one for each point and step.
            let tile = plan.rectangle(tensor.name(), fixed, &vec![0; fixed.len()]);
            let tiles: i64 =
                tensor.dimensions().iter().zip(tile.extents()).map(|(all, own)| (all + own - 1) / own).product();
            assert_eq!(colors.count(), 1 + tiles, "{name}: {tensor}");
        }
    }
}
