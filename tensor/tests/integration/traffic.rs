//! The traffic of plans is as large as the published formulas say, and goes where the algorithms say.

use crate::random;
use std::collections::{BTreeMap, BTreeSet};

use fastrand::Rng;
use maniple_tensor::algorithms::*;
use maniple_tensor::concrete::Statement;
use maniple_tensor::element::ElementType::I64;
use maniple_tensor::machine::Machine;
use maniple_tensor::notation::{IndexVariable, TensorVariable, parse_with_extents};
use maniple_tensor::placement::{Placed, Placement};
use maniple_tensor::plan::{Plan, Privilege};
use maniple_tensor::rectangle::Rectangle;
use maniple_tensor::traffic::{Cause, Traffic, TrafficError, draw};
use random::{Problem, schedule};

fn statement(text: &str, extents: &[i64]) -> Statement {
    let names = ["i", "j", "k", "l"].map(IndexVariable::new);
    let extents: Vec<_> = names.into_iter().zip(extents.iter().copied()).collect();
    Statement::new(&parse_with_extents(text, I64, &extents).unwrap())
}

fn product(n: i64) -> Statement {
    statement("A(i,j) = B(i,k) * C(k,j)", &[n, n, n])
}

fn machine(grid: &[i64]) -> Machine {
    let extents: Vec<String> = grid.iter().map(ToString::to_string).collect();
    extents.join("x").parse().unwrap()
}

fn traffic(algorithm: &Algorithm) -> Traffic {
    let plan = Plan::new(&algorithm.statement).unwrap();
    Traffic::new(&plan, &machine(&algorithm.grid), &algorithm.placements).unwrap()
}

/// Elements of each tensor that are sent. All have eight bytes.
fn words(traffic: &Traffic, tensors: [&str; 3]) -> [i64; 3] {
    tensors.map(|name| traffic.of_tensor(name) as i64 / 8)
}

const ABC: [&str; 3] = ["A", "B", "C"];

/// Each of `p = g * g` processors needs `2 n^2 / sqrt(p)` elements, a block of rows and one of columns, of which it has
/// its tiles, `2 n^2 / p` (Cannon 1969; van de Geijn and Watts 1997; Choi, Dongarra, Walker 1994).
#[test]
fn two_dimensional_algorithms_move_two_n_squared_by_the_root_of_p_less_what_is_there() {
    let n = 16;
    for g in [1, 2, 4, 8] {
        let mut all = vec![cannon(&product(n), [g, g]).unwrap(), pumma(&product(n), [g, g]).unwrap()];
        all.extend([1, 2, 5, n].map(|chunk| summa(&product(n), [g, g], chunk).unwrap()));
        for algorithm in all {
            let traffic = traffic(&algorithm);
            assert_eq!(words(&traffic, ABC), [0, n * n * (g - 1), n * n * (g - 1)], "{}", algorithm.statement);
            let each = (2 * n * n / g - 2 * n * n / (g * g)) as u64 * 8;
            assert_eq!(traffic.received(), vec![each; (g * g) as usize]);
        }
    }
}

#[test]
fn summa_on_a_grid_that_is_no_square_moves_a_block_of_rows_and_one_of_columns() {
    let n = 24;
    for [rows, columns] in [[1, 4], [2, 3], [8, 2], [6, 8]] {
        let traffic = traffic(&summa(&product(n), [rows, columns], 4).unwrap());
        let tile = n * n / (rows * columns);
        let each = (n * n / rows - tile) + (n * n / columns - tile);
        assert_eq!(traffic.received(), vec![each as u64 * 8; (rows * columns) as usize]);
    }
}

/// Each of `p = q^3` processors needs a tile of `n^2 / p^(2/3)` elements of each tensor: `3 n^2 / p^(2/3)` move, but on
/// the faces, which have them (Agarwal et al. 1995).
#[test]
fn johnsons_algorithm_moves_three_n_squared_by_p_to_two_thirds() {
    let n = 24;
    for q in [1, 2, 3, 4] {
        let traffic = traffic(&johnson(&product(n), [q, q, q]).unwrap());
        let tile = n * n / (q * q);
        assert_eq!(words(&traffic, ABC), [tile * (q * q * q - q * q); 3]);
        let (sent, received) = (traffic.sent(), traffic.received());
        // The last processor is on no face.
        let last = (q * q * q - 1) as usize;
        if q > 1 {
            assert_eq!((sent[last] + received[last]) as i64 / 8, 3 * tile);
        }
    }
}

/// Each of `p` processors goes through `sqrt(p / c^3)` steps with tiles of `n^2 c / p`: `2 n^2 / sqrt(c p)` elements,
/// less those of its layer's tiles that are there; and the layers are summed (Solomonik and Demmel 2011).
#[test]
fn the_two_and_a_half_dimensional_algorithm_moves_two_n_squared_by_the_root_of_c_p() {
    let n = 16;
    for (p, c) in [(1, 1), (4, 1), (16, 1), (64, 1), (8, 2), (32, 2), (128, 2), (64, 4)] {
        let algorithm = solomonik(&product(n), p, c).unwrap();
        let [side, _, layers] = algorithm.grid[..] else { panic!("a grid of three dimensions") };
        assert_eq!((side * side * layers, layers), (p, c));
        let traffic = traffic(&algorithm);
        // In the first layer, side * side / c processors have one of the tiles of each operand that they need.
        let tile = n * n / (side * side);
        let moved = p * (side / c) * tile - side * side / c * tile;
        assert_eq!(words(&traffic, ABC), [(c - 1) * n * n, moved, moved], "{p} processors, {c} copies");
        // All that a processor in another layer gets: 2 n^2 / sqrt(c p) = 2 n^2 / (side * c).
        if c > 1 {
            assert_eq!(traffic.received()[1], (2 * n * n / (side * c)) as u64 * 8);
        }
    }
}

#[test]
fn cannons_steps_after_the_first_are_between_neighbours_alone() {
    for g in [2, 3, 4, 8] {
        let traffic = traffic(&cannon(&product(24), [g, g]).unwrap());
        let after: Vec<_> = traffic.messages().iter().filter(|message| message.step > 0).collect();
        // In each of them each processor gets two tiles, but where it has the tile.
        assert_eq!(after.len() as i64, 2 * (g * g * (g - 1) - g * (g - 1)));
        for message in after {
            // Tiles of B come from the right, those of C from below.
            let (row, column) = (message.to as i64 / g, message.to as i64 % g);
            let next = if message.tensor == 1 { row * g + (column + 1) % g } else { (row + 1) % g * g + column };
            assert_eq!(message.from as i64, next, "{message:?}");
            assert_eq!(traffic.distance(message.from, message.to), [1], "{message:?}");
        }
        assert!(
            g < 4 || traffic.messages().iter().any(|message| traffic.distance(message.from, message.to)[0] > 1),
            "tiles are skewed at first"
        );
    }
}

#[test]
fn rotation_keeps_to_neighbours_in_each_layer_too() {
    let traffic = traffic(&solomonik(&product(16), 128, 2).unwrap());
    let fetched = traffic.messages().iter().filter(|message| message.cause == Cause::Fetch && message.step > 0);
    assert!(fetched.clone().count() > 100);
    fetched.for_each(|message| assert_eq!(traffic.distance(message.from, message.to), [1], "{message:?}"));
}

#[test]
fn summa_and_pumma_send_along_rows_and_columns() {
    let g = 4;
    let row = |processor: usize| processor / g;
    let column = |processor: usize| processor % g;
    for algorithm in [summa(&product(16), [g as i64; 2], 4).unwrap(), pumma(&product(16), [g as i64; 2]).unwrap()] {
        for message in traffic(&algorithm).messages() {
            match message.tensor {
                1 => assert_eq!(row(message.from), row(message.to)),
                2 => assert_eq!(column(message.from), column(message.to)),
                other => panic!("tensor {other} moves"),
            }
        }
    }
}

#[test]
fn products_of_higher_order_move_what_is_summed_and_what_is_broadcast() {
    let [i, j, k, l] = [8, 12, 4, 5];
    let by_vector = ttv(&statement("A(i,j) = B(i,j,k) * c(k)", &[i, j, k]), [4, 3]).unwrap();
    assert_eq!(traffic(&by_vector).bytes(), 0);
    let by_matrix = ttm(&statement("A(i,j,l) = B(i,j,k) * C(k,l)", &[i, j, k, l]), 4).unwrap();
    assert_eq!(traffic(&by_matrix).bytes(), 0);
    // One number from each processor but the first.
    let inner = innerprod(&statement("a = B(i,j,k) * C(i,j,k)", &[i, j, k]), &[4, 2]).unwrap();
    assert_eq!(words(&traffic(&inner), ["a", "B", "C"]), [7, 0, 0]);
    // Ballard, Knight, Rouse 2018: B stays, blocks of the matrices go to all processors that use them.
    let [x, y, z] = [4, 3, 2];
    let khatri_rao = statement("A(i,l) = B(i,j,k) * C(j,l) * D(k,l)", &[i, j, k, l]);
    let moved = traffic(&mttkrp(&khatri_rao, [x, y, z]).unwrap());
    assert_eq!(words(&moved, ["A", "C", "D"]), [i * l * (y * z - 1), j * l * (x * z - 1), k * l * (x * y - 1)]);
    assert_eq!(moved.of_tensor("B"), 0);
}

#[test]
fn a_result_that_is_placed_elsewhere_goes_there_in_the_end() {
    let mut algorithm = summa(&product(12), [3, 3], 4).unwrap();
    algorithm.placements[0].1 = "xy -> yx".parse().unwrap();
    let moved = traffic(&algorithm);
    // All tiles but those on the diagonal, once, although A is reused in each step.
    assert_eq!(moved.of_tensor("A"), 6 * 16 * 8);
    let of_result = moved.messages().iter().filter(|message| message.tensor == 0);
    for message in of_result {
        assert_eq!((message.cause, message.step), (Cause::Return, 2));
        assert_eq!((message.from / 3, message.from % 3), (message.to % 3, message.to / 3));
    }
    // Copies of the result are sent to all that should have them.
    algorithm.placements[0].1 = "xy -> **".parse().unwrap();
    assert_eq!(traffic(&algorithm).of_tensor("A"), 9 * 8 * 16 * 8);
}

#[test]
fn what_is_added_to_is_fetched_before() {
    let sum = statement("A(i,j) += B(i,k) * C(k,j)", &[12, 12, 12]);
    let mut algorithm = summa(&sum, [3, 3], 4).unwrap();
    assert_eq!(traffic(&algorithm).of_tensor("A"), 0);
    algorithm.placements[0].1 = "xy -> yx".parse().unwrap();
    assert_eq!(traffic(&algorithm).of_tensor("A"), 2 * 6 * 16 * 8);
}

#[test]
fn sums_are_combined_in_one_place_and_copied_from_there() {
    let mut algorithm = johnson(&product(8), [2, 2, 2]).unwrap();
    algorithm.placements[0].1 = "xy -> xy*".parse().unwrap();
    let moved = traffic(&algorithm);
    let count = |cause| moved.messages().iter().filter(|message| message.tensor == 0 && message.cause == cause).count();
    assert_eq!((count(Cause::Reduce), count(Cause::Return)), (4, 4));
}

#[test]
fn the_nearest_copy_is_sent_and_the_own_node_is_near() {
    // Columns of B are on each node, cut over its processors.
    let sum = statement("A(i) = B(i,j)", &[8, 8]);
    let rows = sum.distribute(["i"], ["io"], ["ii"], &[8]).unwrap();
    let rows = rows.communicate(["A", "B"], "io").unwrap();
    let machine: Machine = "2/4".parse().unwrap();
    let placements = placements(&rows, &["x -> x; x -> x", "xy -> *; xy -> y"]);
    let moved = Traffic::new(&Plan::new(&rows).unwrap(), &machine, &placements).unwrap();
    assert!(moved.of_tensor("B") > 0);
    assert_eq!(moved.between(|processor| processor / 4), 0);
    assert_eq!(moved.between(|processor| processor), moved.bytes());
    assert_eq!(moved.distance(0, 7), [1, 1]);
}

#[test]
fn memory_is_what_is_placed_and_two_steps_of_what_is_fetched() {
    let (n, g) = (16, 4);
    let tile = (n / g * (n / g) * 8) as u64;
    // A tile of each tensor, and of each operand the tile of this step and that of the last one.
    let cannon = traffic(&cannon(&product(n), [g, g]).unwrap());
    assert_eq!(cannon.memory().iter().max(), Some(&(3 * tile + 4 * tile)));
    // Nothing but the tiles on one processor.
    let alone = traffic(&summa(&product(n), [1, 1], 4).unwrap());
    assert_eq!(alone.memory(), [3 * (n * n * 8) as u64]);
    // What no layer but the first has, it has beside.
    let johnson = traffic(&johnson(&product(n), [2, 2, 2]).unwrap());
    assert_eq!(johnson.memory()[7], 3 * (8 * 8 * 8));
    assert_eq!(johnson.memory(), [3 * (8 * 8 * 8); 8]);
}

fn placements(statement: &Statement, texts: &[&str]) -> Vec<(TensorVariable, Placement)> {
    let placements = texts.iter().map(|text| text.parse().unwrap());
    statement.tensors().into_iter().cloned().zip(placements).collect()
}

#[test]
fn placements_are_needed_and_have_to_fit() {
    let plan = Plan::new(&product(4)).unwrap();
    let given = placements(&product(4), &["xy -> x", "xy -> x"]);
    let missing = Traffic::new(&plan, &machine(&[2]), &given).unwrap_err();
    assert_eq!(missing.to_string(), "there is no placement for C, only for A, B; give one");
    let given = placements(&product(4), &["xy -> x", "xy -> xy", "xy -> x"]);
    let wrong = Traffic::new(&plan, &machine(&[2]), &given).unwrap_err();
    assert!(matches!(&wrong, TrafficError::Placement { tensor, .. } if tensor == "B"), "{wrong}");
}

#[test]
fn each_step_is_drawn_with_its_messages() {
    let moved = traffic(&cannon(&product(12), [3, 3]).unwrap());
    let svg = draw(&moved, "A < B");
    assert!(
        svg.contains("A &lt; B")
            && svg.contains("<title>(0,0) sends to (0,2): B [0..4, 0..4], 16 elements, 128 bytes</title>"),
        "{svg}"
    );
    assert_eq!(svg.matches("<g class=\"message\">").count(), moved.messages().len());
    assert_eq!(svg.matches(">step ").count(), 3);
    assert_eq!(svg.matches("<g").count(), svg.matches("</g>").count());
    // Long runs are cut, and say so.
    let many = draw(&traffic(&summa(&product(100), [2, 2], 1).unwrap()), "SUMMA");
    assert_eq!(many.matches(">step ").count(), 64);
    assert!(many.contains("100 steps, of which the first 64 are drawn"));
}

/// All elements of a rectangle.
fn elements(rectangle: &Rectangle) -> BTreeSet<Vec<i64>> {
    let mut points = vec![Vec::new()];
    for (low, high) in rectangle.bounds() {
        points = points.iter().flat_map(|point| (low..high).map(move |at| [&point[..], &[at]].concat())).collect();
    }
    points.into_iter().collect()
}

/// The number of elements of a tensor that each processor gets in each step, counted element by element.
fn received(plan: &Plan, placed: &Placed, tensor: &str) -> BTreeMap<(i64, usize), i64> {
    let processors: Vec<Vec<usize>> = placed.machine().points().collect();
    let (order, (fixed, privilege)) = (plan.order(), plan.innermost_fetch(tensor));
    let points = |processor| -> Vec<i64> {
        let here = |point: &i64| match order.points() <= processors.len() as i64 {
            true => *point == processor,
            false => *point * processors.len() as i64 / order.points() == processor,
        };
        (0..order.points()).filter(here).collect()
    };
    let needed = |step, processor| -> BTreeSet<Vec<i64>> {
        let used = |fixed: &[IndexVariable], point| -> BTreeSet<Vec<i64>> {
            let parts = plan.rectangles(tensor, fixed).parts(&order.values(step, point)[..fixed.len()]);
            parts.iter().flat_map(elements).collect()
        };
        // What is fetched around launches is for the first of the points inside.
        let is_first =
            |fixed: &[IndexVariable], point| order.values(0, point)[fixed.len()..].iter().all(|value| *value == 0);
        let of_point = |point| {
            let outer = plan.outer_fetches(tensor).into_iter().filter(move |fixed| is_first(fixed, point));
            outer.flat_map(move |fixed| used(fixed, point)).chain(used(fixed, point)).collect::<Vec<_>>()
        };
        points(processor).into_iter().flat_map(of_point).collect()
    };
    let place = |processor: usize, element: &Vec<i64>| placed.piece(&processors[processor]).contains(element);
    let mut received = BTreeMap::<(i64, usize), i64>::new();
    if let Privilege::Reduce(_) = privilege {
        let buffers = |step, processor: usize| -> BTreeSet<Rectangle> {
            if step >= order.steps() {
                return BTreeSet::new();
            }
            let points = points(processor as i64).into_iter();
            points.map(|point| plan.rectangle(tensor, fixed, &order.values(step, point)[..fixed.len()])).collect()
        };
        let holders =
            |element: &Vec<i64>| (0..processors.len()).filter(|to| place(*to, element)).collect::<Vec<usize>>();
        let mut combined = BTreeSet::new();
        for step in 0..order.steps() {
            for processor in 0..processors.len() {
                let next = buffers(step + 1, processor);
                for element in buffers(step, processor).difference(&next).flat_map(elements) {
                    let to = holders(&element)[0];
                    *received.entry((step, to)).or_default() += i64::from(to != processor);
                    combined.insert(element);
                }
            }
        }
        for to in combined.iter().flat_map(|element| holders(element)[1..].to_vec()) {
            *received.entry((order.steps() - 1, to)).or_default() += 1;
        }
        received.retain(|_, count| *count > 0);
        return received;
    }
    // For each element that was written, the processor that wrote it.
    let mut newest = BTreeMap::<Vec<i64>, usize>::new();
    for step in 0..order.steps() {
        let before = newest.clone();
        for processor in 0..processors.len() {
            for element in needed(step, processor as i64) {
                let there = match privilege {
                    Privilege::Read => {
                        place(processor, &element) || step > 0 && needed(step - 1, processor as i64).contains(&element)
                    }
                    Privilege::ReadWrite => match before.get(&element) {
                        Some(by) => *by == processor,
                        None => plan.initial.is_some() || place(processor, &element),
                    },
                    _ => true,
                };
                *received.entry((step, processor)).or_default() += i64::from(!there);
                newest.insert(element, processor);
            }
        }
    }
    if privilege != Privilege::Read {
        for (element, by) in newest {
            for to in (0..processors.len()).filter(|to| *to != by && place(*to, &element)) {
                *received.entry((order.steps() - 1, to)).or_default() += 1;
            }
        }
    }
    received.retain(|_, count| *count > 0);
    received
}

#[test]
fn random_plans_move_what_is_needed_and_not_there_element_by_element() {
    let choices = [
        &[" -> **", " -> 00", " -> 1*"][..],
        &["x -> x*", "x -> *x", "x -> 0x", "x -> **", "x -> *cyclic(x)"],
        &["xy -> xy", "xy -> yx", "xy -> x1", "xy -> **", "xy -> *y", "xy -> cyclic(x),cyclic(y,2)"],
        &["xyz -> xy", "xyz -> zx", "xyz -> *z", "xyz -> 0y", "xyz -> **", "xyz -> y,cyclic(z)"],
    ];
    let (mut compared, mut moved, mut reduced) = (0, 0, 0);
    for seed in 0..150 {
        let mut random = Rng::with_seed(seed);
        let problem = Problem::new(&mut random);
        let (scheduled, _) = schedule(&problem.assignment, &mut random);
        let Ok(plan) = Plan::new(&scheduled) else { continue };
        if plan.order().steps() * plan.order().points() > 200 {
            continue;
        }
        let texts: Vec<&str> =
            scheduled.tensors().iter().map(|tensor| *random.choice(choices[tensor.order()]).unwrap()).collect();
        let placements = placements(&scheduled, &texts);
        let machine = machine(&[2, 3]);
        let traffic = Traffic::new(&plan, &machine, &placements).unwrap();
        for (number, (tensor, placement)) in placements.iter().enumerate() {
            reduced += usize::from(matches!(plan.innermost_fetch(tensor.name()).1, Privilege::Reduce(_)));
            let placed = Placed::new(placement, &Rectangle::whole(tensor.dimensions()), &machine).unwrap();
            let expected = received(&plan, &placed, tensor.name());
            let mut found = BTreeMap::new();
            for message in traffic.messages().iter().filter(|message| message.tensor == number) {
                *found.entry((message.step, message.to)).or_insert(0) += message.elements;
                assert_ne!(message.from, message.to);
                moved += 1;
            }
            assert_eq!(found, expected, "seed {seed}: {tensor} {placement}\n{plan}");
            compared += 1;
        }
    }
    assert!(compared > 150 && moved > 150 && reduced > 10, "{compared} {moved} {reduced}");
}
