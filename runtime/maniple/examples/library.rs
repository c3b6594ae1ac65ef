//! A library, in a file of its own, that ships its own mapper: used by a program that has another.
//!
//! Run it with `cargo run -p maniple --example library`.

#[path = "library/solver.rs"]
mod solver;

use maniple::mapper::{DefaultMapper, RandomMapper};
use maniple::prelude::*;

/// A node of a chain that is pulled, and by how much it moves.
#[derive(Fields)]
struct Node {
    moved: f64,
}

/// The largest force that is left at a node, where neighbours pull as much as they are further.
#[task(leaf)]
fn largest_force(#[reads(moved)] around: Piece<Node>, #[reads(moved)] nodes: Piece<Node>, pull: f64) -> f64 {
    let moved = |node: i64| around.moved.get(node).unwrap_or(0.0);
    let force = |node: i64| (2.0 * moved(node) - moved(node - 1) - moved(node + 1) - pull).abs();
    nodes.points().map(|node| force(node[0])).fold(0.0, f64::max)
}

const NODES: usize = 200;

async fn program(cx: &Context) -> Result<(usize, f64, f64)> {
    let nodes = cx.region::<Node>(NODES)?;
    let steps = solver::solve(cx, vec![1e-3; NODES], (&nodes, Node::moved)).await?;
    let (pieces, around) = (nodes.partition(5).equal()?, nodes.tiles([40], [1])?);
    let force = cx.index_launch(5, largest_force(&around, &pieces, 1e-3)).reduce(Max).await?;
    let middle = cx.map_read(&nodes, Node::moved).await?[NODES as i64 / 2];
    Ok((steps, force, middle))
}

fn main() -> Result<()> {
    // The program's own tasks are mapped by chance; another program has no mapper of its own at all. The library's
    // tasks are mapped as the library knows best.
    let (builder, asked) = solver::install(Runtime::builder().workers(2).mapper(RandomMapper::new(7)));
    let (steps, force, middle) = builder.build()?.run(program)?;
    println!("{steps} steps; the largest force is {force:.1e}, the middle moves by {middle:.3}");
    println!("the library's mapper has mapped {} points", asked.points());
    assert!(force < 1e-8 && (middle - 5.05).abs() < 1e-6);
    assert!(asked.points() > 0);

    let (builder, _) = solver::install(Runtime::builder().workers(1).mapper(DefaultMapper::new()));
    let (same_steps, _, same) = builder.build()?.run(program)?;
    assert!(same_steps.abs_diff(steps) <= 2 && (same - middle).abs() < 1e-6);

    // Without its mapper the library says so at its first launch.
    let error = Runtime::builder().workers(1).build()?.run(program).expect_err("the mapper is not there");
    println!("{error}");
    assert!(error.to_string().contains("solver"));
    Ok(())
}
