//! The circuit in pieces.

use maniple::prelude::*;

use super::graph::CircuitShape;
use super::tasks::{Node, Wire, make_piece};

/// A circuit, and what each of its pieces has to do with.
pub struct CircuitPieces {
    /// All nodes.
    pub nodes: Region<Node>,
    /// The pieces.
    pub colors: Domain,
    /// The wires that start in a piece.
    pub wires: Partition<Wire>,
    /// Nodes that only wires of their own piece touch, by piece.
    pub private: Partition<Node>,
    /// The other nodes, by piece.
    pub shared: Partition<Node>,
    /// Nodes of other pieces that a piece's wires touch. These overlap.
    pub ghost: Partition<Node>,
}

impl CircuitPieces {
    /// Makes a circuit, and splits it.
    ///
    /// # Errors
    /// The runtime's, for instance for want of memory.
    pub async fn make(cx: &Context, shape: CircuitShape) -> Result<Self> {
        let nodes = cx.region::<Node>(shape.nodes())?;
        let wires = cx.region::<Wire>(shape.wires())?;
        let colors = cx.colors(shape.pieces);
        let make = make_piece(&nodes.partition(colors).equal()?, &wires.partition(colors).equal()?, shape);
        cx.index_launch(colors, make).await?;
        Self::split(cx, nodes, &wires, colors).await
    }

    /// Splits the circuit by what its wires touch, from nothing but the pieces that nodes are said to be in.
    async fn split(cx: &Context, nodes: Region<Node>, wires: &Region<Wire>, colors: Domain) -> Result<Self> {
        let owned = cx.partition_by_field(&nodes, Node::piece, colors).await?;
        let wires_of = cx.preimage(wires, Wire::from, &owned).await?;
        let reached = cx.image(&nodes, &wires_of, Wire::to).await?;
        let foreign = reached.difference(&owned)?;

        // None of this needs to know all pieces in one place.
        Ok(Self {
            colors,
            wires: wires_of.named("wires"),
            private: owned.difference_from_all(&foreign)?.named("private"),
            shared: owned.intersection_with_all(&foreign)?.named("shared"),
            ghost: foreign.named("ghost"),
            nodes,
        })
    }
}
