//! Partitions by pointers: the edges that leave each piece of a graph, and the nodes where those end.
//!
//! Run it with `cargo run -p maniple --example image_preimage`.

use maniple::prelude::*;

#[derive(Fields)]
struct Node {
    value: f64,
}

#[derive(Fields)]
struct Edge {
    from: Ptr<Node>,
    to: Ptr<Node>,
}

/// Connects each of so many nodes with the next one, and the last with the first.
#[task(leaf)]
fn connect(#[discards(from, to)] edges: Piece<Edge>, nodes: i64) {
    for edge in edges.points() {
        edges.from[edge] = Ptr::row(edge[0]);
        edges.to[edge] = Ptr::row((edge[0] + 1) % nodes);
    }
}

fn main() -> Result<()> {
    let runtime = Runtime::builder().build()?;
    runtime.run(async |cx| {
        let (nodes, edges) = (cx.region::<Node>(12)?, cx.region::<Edge>(12)?);
        cx.launch(connect(&edges, 12));

        let owned = nodes.partition(3).equal()?;
        let leaving = cx.preimage(&edges, Edge::from, &owned).await?; // edges whose `from` is in a piece
        let reached = cx.image(&nodes, &leaving, Edge::to).await?; // nodes to which those lead
        println!("piece 0 owns {:?} and reaches {:?}", owned.piece(0)?.bounds(), reached.piece(0)?.bounds());
        assert_eq!(leaving.piece(0)?.volume(), 4);
        assert_eq!(reached.piece(0)?.bounds(), Rect::from(1..5));
        Ok(())
    })
}
