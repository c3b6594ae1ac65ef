//! What dependent partitioning costs, against reading the field and sorting what was read.
//!
//! `cargo run --release -p maniple-space --example image_cost [POINTERS] [COLORS]`
//!
//! The rival of an image reads the pointers of each color and sorts them. The rival of a partition
//! by field, and of a preimage, reads the color of each point and sorts pairs of color and point.
//! A ratio below 1 means that the operator, which also removes repetitions and builds the spaces,
//! is faster.

use std::hint::black_box;
use std::time::{Duration, Instant};

use maniple_space::partition::{self, SliceField};
use maniple_space::{IndexSpace, Point, Rect};

/// Runs an operator and its rival in turn, and prints the shortest time of each, as anything longer
/// was disturbed, and their ratio.
fn compare<T, U>(what: &str, mut ours: impl FnMut() -> T, mut rival: impl FnMut() -> U) {
    const RUNS: usize = 5;
    let mut best = [Duration::MAX; 2];
    for _ in 0..RUNS {
        let start = Instant::now();
        let result = black_box(ours());
        best[0] = best[0].min(start.elapsed());
        drop(result);
        let start = Instant::now();
        black_box(rival());
        best[1] = best[1].min(start.elapsed());
    }
    let [ours, rival] = best.map(|time| time.as_secs_f64());
    println!("{what:<44} {:>9.1} ms {:>9.1} ms {:>6.2}", ours * 1e3, rival * 1e3, ours / rival);
}

/// A sequence of numbers that looks random (the generator of Steele, Lea and Flood,
/// *Fast Splittable Pseudorandom Number Generators*, 2014).
fn random(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let z = (*state ^ (*state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// Reads the values of each source and sorts them.
fn read_and_sort(sources: &[IndexSpace<1>], pointers: &[Point<1>]) -> usize {
    let mut read = Vec::new();
    sources
        .iter()
        .map(|source| {
            read.clear();
            for rect in source.rects() {
                read.extend_from_slice(&pointers[rect.lo[0] as usize..=rect.hi[0] as usize]);
            }
            read.sort_unstable();
            read.len()
        })
        .sum()
}

/// Reads a number for each point and sorts the points by it.
fn read_and_sort_pairs(colors: impl Iterator<Item = i64>) -> usize {
    let mut pairs: Vec<(u32, u32)> = colors.zip(0..).map(|(color, at)| (color as u32, at)).collect();
    pairs.sort_unstable();
    pairs.len()
}

fn main() {
    let mut arguments = std::env::args().skip(1).map(|argument| argument.parse::<i64>());
    let mut number = |default| match arguments.next() {
        None => default,
        Some(Ok(number)) if number > 0 => number,
        Some(_) => {
            eprintln!("usage: image_cost [POINTERS] [COLORS], both positive numbers");
            std::process::exit(2);
        }
    };
    let (n, colors) = (number(10_000_000), number(1_000));
    let pieces = colors as usize;
    println!("{n} pointers, {colors} colors");
    println!("{:<44} {:>12} {:>12} {:>6}", "", "operator", "read + sort", "ratio");

    let all = Rect::from(0..n);
    let space = IndexSpace::from(all);
    let blocks = partition::equal(&space, pieces).expect("there are pieces");
    let mut state = 1;
    let mut anywhere = || (random(&mut state) % n as u64) as i64;
    let scattered: Vec<Point<1>> = (0..n).map(|_| Point([anywhere()])).collect();
    let near = |at: i64, to: i64| Point([(at + to % 10_000 - 5_000).clamp(0, n - 1)]);
    let local: Vec<Point<1>> = (0..n).map(|at| near(at, anywhere())).collect();
    let color_of: Vec<i64> = (0..n).map(|_| anywhere() % colors).collect();
    let colored = SliceField::new(all, &color_of);
    let random_pieces = partition::by_field(&space, pieces, &colored).expect("there are pieces");

    for (what, sources, pointers) in [
        ("image, pointers anywhere", &blocks, &scattered),
        ("image, pointers within 5000", &blocks, &local),
        ("image of scattered sources", &random_pieces, &scattered),
        ("image of scattered sources, within 5000", &random_pieces, &local),
    ] {
        let field = SliceField::new(all, pointers);
        let ours = || partition::image(sources, &field, &space);
        compare(what, ours, || read_and_sort(sources, pointers));
    }

    let wide = 1 << 40;
    let target = IndexSpace::from(Rect::from(0..wide));
    let far: Vec<Point<1>> = (0..n).map(|_| Point([(random(&mut state) % wide as u64) as i64])).collect();
    let field = SliceField::new(all, &far);
    let ours = || partition::image(&blocks, &field, &target);
    compare("image, pointers in 2^40 points", ours, || read_and_sort(&blocks, &far));

    let ours = || partition::by_field(&space, pieces, &colored);
    compare("by field, random colors", ours, || read_and_sort_pairs(color_of.iter().copied()));

    let field = SliceField::new(all, &scattered);
    let per_piece = n / colors + 1;
    let targets = || scattered.iter().map(|to| to[0] / per_piece);
    let ours = || partition::preimage(&blocks, &field, &space);
    compare("preimage of blocks", ours, || read_and_sort_pairs(targets()));
    let targets = || scattered.iter().map(|to| color_of[to[0] as usize]);
    let ours = || partition::preimage(&random_pieces, &field, &space);
    compare("preimage of scattered targets", ours, || read_and_sort_pairs(targets()));

    // What is true of a partition, against sorting as many points as it has.
    let sort = || read_and_sort(std::slice::from_ref(&space), &scattered);
    compare("is it disjoint? scattered pieces", || partition::is_disjoint(&random_pieces), sort);
    compare("is it complete? scattered pieces", || partition::is_complete(&random_pieces, &space), sort);
}
