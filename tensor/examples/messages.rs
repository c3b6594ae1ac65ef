//! Draws the messages of each step of Cannon's algorithm as SVG:
//! `cargo run -p maniple-tensor --example messages -- 4 > picture.svg`.

use maniple_tensor::algorithms;
use maniple_tensor::concrete::Statement;
use maniple_tensor::element::ElementType;
use maniple_tensor::machine::{Grid, Machine};
use maniple_tensor::notation::{TensorVariable, parse};
use maniple_tensor::plan::Plan;
use maniple_tensor::traffic::{Traffic, draw};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let side: usize = std::env::args().nth(1).map_or(Ok(4), |side| side.parse())?;
    let tensors = ["A", "B", "C"].map(|name| TensorVariable::new(name, ElementType::F64, [256, 256]));
    let product = Statement::new(&parse("A(i,j) = B(i,k) * C(k,j)", &tensors)?);
    let cannon = algorithms::cannon(&product, [side as i64; 2])?;
    let machine = Machine::from(Grid::new([side, side])?);
    let traffic = Traffic::new(&Plan::new(&cannon.statement)?, &machine, &cannon.placements)?;
    print!("{}", draw(&traffic, "Cannon's algorithm"));
    Ok(())
}
