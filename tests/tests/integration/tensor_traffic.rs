//! Traffic of plans between nodes, as the runtime counts it: it equals the traffic of the model, which follows the
//! published formulas.

use std::collections::BTreeMap;
use std::sync::Arc;

use maniple::{PeerStatistics, Result, Statistics};
use maniple_tensor::algorithms::*;
use maniple_tensor::concrete::{Statement, Substitution};
use maniple_tensor::distributed::{Tensor, compute};
use maniple_tensor::element::{ElementType, Scalar};
use maniple_tensor::machine::{Grid, Machine};
use maniple_tensor::notation::{Assignment, DenseArray, IndexVariable, TensorVariable, evaluate, parse_with_extents};
use maniple_tensor::plan::Plan;
use maniple_tensor::schedule::ScheduleError;
use maniple_tensor::traffic::Traffic;
use maniple_tests::nodes::{Nodes, on_nodes};

fn product(n: i64) -> Assignment {
    let extents: Vec<_> = ["i", "j", "k"].map(|name| (IndexVariable::new(name), n)).into();
    parse_with_extents("A(i,j) = B(i,k) * C(k,j)", ElementType::I64, &extents).unwrap()
}

/// The bytes that each node (first index) sends to each other one while an algorithm runs, from tensors that are placed
/// as it says to a result that is.
type Bytes = Vec<Vec<u64>>;

fn moved(algorithm: &Algorithm, assignment: &Assignment) -> Bytes {
    let machine = machine(algorithm);
    let plan = Arc::new(Plan::new(&algorithm.statement).unwrap());
    let array = |tensor: &TensorVariable| {
        let mut next = 0;
        DenseArray::from_fn(tensor.element(), tensor.dimensions(), |_| {
            next = (next * 7 + 3) % 11;
            Scalar::I64(next)
        })
    };
    let operands: BTreeMap<String, DenseArray> =
        assignment.tensors().iter().map(|tensor| (tensor.name().to_owned(), array(tensor))).collect();
    let expected = evaluate(assignment, &operands).unwrap();
    let results = on_nodes(Nodes::new(machine.size()), async |cx, runtime| -> Result<(Vec<u64>, Vec<u64>)> {
        let mut tensors = Vec::new();
        for (variable, placement) in &algorithm.placements {
            let tensor = Tensor::new(cx, variable)?;
            tensor.write(cx, &operands[variable.name()])?;
            tensor.place(cx, placement, &machine)?.await?;
            tensors.push(tensor);
        }
        let before = (runtime.statistics(), runtime.peers());
        compute(cx, &plan, &tensors.iter().collect::<Vec<_>>()).await?.await?;
        tensors[0].place(cx, &algorithm.placements[0].1, &machine)?.await?;
        let after = (runtime.statistics(), runtime.peers());
        assert!(tensors[0].read(cx).await? == expected);
        let of_peers = |count: fn(&PeerStatistics) -> u64| -> Vec<u64> {
            after.1.iter().zip(&before.1).map(|(after, before)| count(after) - count(before)).collect()
        };
        let (sent, received) = (of_peers(|peer| peer.parcel_bytes_sent), of_peers(|peer| peer.parcel_bytes_received));
        let of_all = |count: fn(&Statistics) -> u64| count(&after.0) - count(&before.0);
        assert_eq!(sent.iter().sum::<u64>(), of_all(|all| all.parcel_bytes_sent));
        assert_eq!(received.iter().sum::<u64>(), of_all(|all| all.parcel_bytes_received));
        Ok((sent, received))
    });
    let (sent, received): (Bytes, Bytes) = results.into_iter().map(|result| result.unwrap()).unzip();
    for (from, sent) in sent.iter().enumerate() {
        assert_eq!(sent[from], 0, "nobody sends himself anything");
        for (to, &bytes) in sent.iter().enumerate() {
            assert_eq!(bytes, received[to][from], "what node {from} sends to node {to} arrives there");
        }
    }
    sent
}

/// The bytes that each node sends.
fn sent(moved: &Bytes) -> Vec<u64> {
    moved.iter().map(|to| to.iter().sum()).collect()
}

/// The bytes that each node receives.
fn received(moved: &Bytes) -> Vec<u64> {
    (0..moved.len()).map(|to| moved.iter().map(|sent| sent[to]).sum()).collect()
}

fn machine(algorithm: &Algorithm) -> Machine {
    let extents: Vec<usize> = algorithm.grid.iter().map(|&extent| extent as usize).collect();
    Grid::new(extents).unwrap().into()
}

/// The model of an algorithm's traffic.
fn traffic(algorithm: &Algorithm) -> Traffic {
    Traffic::new(&Plan::new(&algorithm.statement).unwrap(), &machine(algorithm), &algorithm.placements).unwrap()
}

fn all(algorithm: &Algorithm, n: i64) -> u64 {
    let (moved, traffic) = (moved(algorithm, &product(n)), traffic(algorithm));
    assert_eq!(received(&moved), traffic.received(), "{}", algorithm.statement);
    assert_eq!(sent(&moved).iter().sum::<u64>(), traffic.bytes());
    traffic.bytes()
}

/// `2 n^2 (sqrt(p) - 1)` elements: each processor gets the rest of a block of rows and of one of columns.
#[test]
fn two_dimensional_algorithms_move_what_their_formula_says() {
    for (g, n) in [(2, 8), (3, 9), (4, 16), (8, 16)] {
        let statement = Statement::new(&product(n));
        let mut algorithms = vec![cannon(&statement, [g, g]).unwrap(), summa(&statement, [g, g], n / g).unwrap()];
        if g < 8 {
            algorithms.push(pumma(&statement, [g, g]).unwrap());
            algorithms.push(summa(&statement, [g, g], 1).unwrap());
        }
        for algorithm in algorithms {
            assert_eq!(all(&algorithm, n), (8 * 2 * n * n * (g - 1)) as u64, "{}", algorithm.statement);
        }
    }
}

/// Tiles go around: a processor sends as much as it gets.
#[test]
fn rotated_tiles_are_passed_on_evenly() {
    let (g, n) = (4, 16);
    let algorithm = cannon(&Statement::new(&product(n)), [g, g]).unwrap();
    let moved = moved(&algorithm, &product(n));
    assert_eq!(sent(&moved), received(&moved));
}

/// The bytes that the model has between each two processors.
fn modelled(algorithm: &Algorithm) -> Bytes {
    let traffic = traffic(algorithm);
    let mut bytes = vec![vec![0; traffic.machine().size()]; traffic.machine().size()];
    traffic.messages().iter().for_each(|message| bytes[message.from][message.to] += message.bytes);
    bytes
}

/// The coordinates of the processors of a square grid.
fn processors(g: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..g * g).map(move |processor| (processor / g, processor % g))
}

/// At first, processor (i, j) fetches tile (i, i + j) of B and tile (i + j, j) of C from where they are placed. From
/// then on tiles of B go to the left and tiles of C upwards, on a torus, and there are no other messages.
#[test]
fn processors_pass_rotated_tiles_to_neighbours_and_to_nobody_else() {
    for (g, n) in [(2_usize, 8), (4, 16), (8, 16)] {
        let algorithm = cannon(&Statement::new(&product(n)), [g as i64, g as i64]).unwrap();
        let mut moved = moved(&algorithm, &product(n));
        assert_eq!(moved, modelled(&algorithm));
        let (number, tile) = (|(i, j): (usize, usize)| i * g + j, 8 * (n as u64 / g as u64).pow(2));
        for (i, j) in processors(g) {
            let first = (i + j) % g;
            for from in [(i, first), (first, j)].into_iter().filter(|&from| from != (i, j)) {
                moved[number(from)][number((i, j))] -= tile;
            }
        }
        for (i, j) in processors(g) {
            let (left, above) = (number((i, (j + g - 1) % g)), number(((i + g - 1) % g, j)));
            for (to, &bytes) in moved[number((i, j))].iter().enumerate() {
                // All steps but the first, without that in which the receiver has the tile from the beginning.
                let receives = |at: usize| (g - 1 - usize::from(at != 0)) as u64 * tile;
                let expected = match to {
                    to if to == left => receives(i),
                    to if to == above => receives(j),
                    _ => 0,
                };
                assert_eq!(bytes, expected, "from ({i}, {j}) to processor {to} of a grid of {g} by {g}");
            }
        }
    }
}

/// The same tiles in an order that is the same everywhere: as much is sent, but across the grid.
#[test]
fn without_rotation_tiles_come_from_afar() {
    let (g, n) = (4, 16);
    let statement = Statement::new(&product(n));
    let rotated = cannon(&statement, [g, g]).unwrap();
    let scheduled = statement
        .distribute(["i", "j"], ["io", "jo"], ["ii", "ji"], &[g, g])
        .and_then(|statement| statement.divide("k", "ko", "ki", g))
        .and_then(|statement| statement.reorder(["ko", "ii", "ji", "ki"]))
        .and_then(|statement| statement.communicate(["A"], "jo"))
        .and_then(|statement| statement.communicate(["B", "C"], "ko"))
        .and_then(|statement| statement.substitute(["ii", "ji", "ki"], Substitution::GEMM))
        .unwrap();
    let algorithm = Algorithm { statement: scheduled, ..rotated.clone() };
    let (still, rotated) = (moved(&algorithm, &product(n)), moved(&rotated, &product(n)));
    assert_eq!(received(&still), received(&rotated));
    let traffic = traffic(&algorithm);
    let far = |moved: &Bytes| -> u64 {
        let pairs = moved
            .iter()
            .enumerate()
            .flat_map(|(from, sent)| sent.iter().enumerate().map(move |(to, &bytes)| (from, to, bytes)));
        pairs.filter(|&(from, to, _)| traffic.distance(from, to)[0] > 1).map(|(.., bytes)| bytes).sum()
    };
    // With rotation that is the first step's alone.
    let tile = (8 * n * n / (g * g)) as u64;
    assert_eq!(far(&rotated), 2 * 4 * tile);
    assert!(far(&still) > far(&rotated), "{} bytes go across the grid", far(&still));
}

/// `3 n^2 (q - 1)` elements on a cube of `q^3`: the tiles of a face go along a dimension to all other layers, or come
/// from them.
#[test]
fn johnsons_algorithm_moves_what_its_formula_says() {
    for (q, n) in [(2, 8), (3, 9), (4, 8)] {
        let algorithm = johnson(&Statement::new(&product(n)), [q, q, q]).unwrap();
        assert_eq!(all(&algorithm, n), (8 * 3 * n * n * (q - 1)) as u64);
    }
}

#[test]
fn the_algorithm_in_two_and_a_half_dimensions_moves_what_its_model_says() {
    for (processors, copies, n) in [(4, 1, 8), (8, 2, 8), (32, 2, 16), (128, 2, 16)] {
        let algorithm = solomonik(&Statement::new(&product(n)), processors, copies).unwrap();
        all(&algorithm, n);
    }
}

/// Rows over two groups, and in each columns over two nodes, in four steps. What is fetched around the inner launch
/// comes to the first node of the group as a whole, and goes on from there.
#[test]
fn what_is_fetched_around_a_launch_is_brought_to_one_of_its_nodes() {
    let n = 8;
    let run = |around: bool| {
        let scheduled = || -> std::result::Result<Statement, ScheduleError> {
            let groups = Statement::new(&product(n)).distribute(["i"], ["io"], ["ii"], &[2])?;
            let groups = if around { groups.communicate(["C"], "io")? } else { groups };
            let steps = groups.divide("k", "ko", "ki", 4)?.reorder(["ko", "j", "ii", "ki"])?;
            steps.distribute(["j"], ["jo"], ["ji"], &[2])?.communicate(["A", "B", "C"], "jo")
        };
        let placements = [("A", "xy -> xy"), ("B", "xy -> x*"), ("C", "xy -> 00")];
        let placed =
            placements.map(|(name, text)| (TensorVariable::new(name, ElementType::I64, [n, n]), text.parse().unwrap()));
        all(&Algorithm { statement: scheduled().unwrap(), grid: vec![2, 2], placements: placed.into() }, n)
    };
    // Half of C for each of three nodes; or all of it for one, from which its neighbour has a half, and a half for the
    // other.
    assert_eq!(run(false), (8 * 3 * n * n / 2) as u64);
    assert_eq!(run(true), (8 * 2 * n * n) as u64);
}

/// Of a tensor that is placed by the second placement after the first, and then again: the bytes that all nodes send
/// each time.
fn placed_twice(first: &str, second: &str) -> [u64; 2] {
    let variable = TensorVariable::new("A", ElementType::I64, [16, 16]);
    let array = DenseArray::from_fn(ElementType::I64, &[16, 16], |at| Scalar::I64(at[0] * 16 + at[1]));
    let machine: Machine = Grid::new(vec![2, 2]).unwrap().into();
    let sent = on_nodes(Nodes::new(4), async |cx, runtime| -> Result<[u64; 2]> {
        let tensor = Tensor::new(cx, &variable)?;
        tensor.write(cx, &array)?;
        tensor.place(cx, &first.parse().unwrap(), &machine)?.await?;
        let mut sent = [0; 2];
        for sent in &mut sent {
            let before = runtime.statistics().parcel_bytes_sent;
            tensor.place(cx, &second.parse().unwrap(), &machine)?.await?;
            *sent = runtime.statistics().parcel_bytes_sent - before;
        }
        assert!(tensor.read(cx).await? == array);
        Ok(sent)
    });
    sent.into_iter().map(|sent| sent.unwrap()).fold([0; 2], |sum, sent| [sum[0] + sent[0], sum[1] + sent[1]])
}

#[test]
fn placing_a_tensor_where_it_is_moves_nothing() {
    for (first, second) in
        [("xy -> xy", "xy -> yx"), ("xy -> xy", "xy -> x*"), ("xy -> x*", "xy -> *y"), ("xy -> xy", "xy -> x0")]
    {
        let [moved, again] = placed_twice(first, second);
        assert!(moved > 0, "from {first} to {second}");
        assert_eq!(again, 0, "{second}, where it is already");
    }
}
