//! Draws a placement as SVG: `cargo run -p maniple-tensor --example placements -- 'xy -> xy*' 8x6 2x3x2 > picture.svg`.

use maniple_tensor::machine::Machine;
use maniple_tensor::placement::{Placed, Placement, draw};
use maniple_tensor::rectangle::Rectangle;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let mut next = |default: &str| arguments.next().unwrap_or_else(|| default.to_owned());
    let (placement, extents, machine) = (next("xy -> xy*"), next("8x6"), next("2x3x2"));
    let extents: Vec<i64> = extents.split('x').map(str::parse).collect::<Result<_, _>>()?;
    let placed =
        Placed::new(&placement.parse::<Placement>()?, &Rectangle::whole(&extents), &machine.parse::<Machine>()?)?;
    print!("{}", draw(&placed, &format!("A tensor of {extents:?}")));
    Ok(())
}
