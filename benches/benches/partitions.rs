//! Cost of dependent partitioning, against reading the field and sorting the values that were read: 10 million
//! pointers, 1,000 colors.
//!
//! The rival of an image reads the pointers of each color and sorts them. The rival of a partition by field, and of a
//! preimage, reads the color of each point and sorts pairs of color and point. A ratio below 1 means that the operator,
//! which also removes repetitions and builds the spaces, is faster.

use std::hint::black_box;

use maniple_benches::side_by_side;
use maniple_space::partition::{self, SliceField};
use maniple_space::{IndexSpace, Point, Rect};

const ROUNDS: usize = 3;

/// Runs an operator and its rival in turn, and prints the median time of each and their ratio.
fn compare<T, U>(what: &str, mut ours: impl FnMut() -> T, mut rival: impl FnMut() -> U) {
    let (ours, rival) = side_by_side(ROUNDS, || drop(black_box(ours())), || drop(black_box(rival())));
    println!("{what:<44} {:>9.1} ms {:>9.1} ms {:>6.2}", ours * 1e3, rival * 1e3, ours / rival);
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
    let (n, colors) = (10_000_000_i64, 1_000_i64);
    let pieces = colors as usize;
    println!("{n} pointers, {colors} colors");
    println!("{:<44} {:>12} {:>12} {:>6}", "", "operator", "read + sort", "ratio");

    let all = Rect::from(0..n);
    let space = IndexSpace::from(all);
    let blocks = partition::equal(&space, pieces).expect("there are pieces");
    let mut random = fastrand::Rng::with_seed(1);
    let mut anywhere = || random.i64(0..n);
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
    let far: Vec<Point<1>> = (0..n).map(|_| Point([random.i64(0..wide)])).collect();
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
