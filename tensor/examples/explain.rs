//! Chooses a schedule and says why:
//! `cargo run -p maniple-tensor --example explain -- 'A(i,j) = B(i,k) * C(k,j)' i=2048,j=2048,k=2048 4`.

use maniple_tensor::choose::choose;
use maniple_tensor::cost::Rates;
use maniple_tensor::element::ElementType;
use maniple_tensor::notation::{IndexVariable, parse_with_extents};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let mut next = |default: &str| arguments.next().unwrap_or_else(|| default.to_owned());
    let (text, sizes, processors) = (next("A(i,j) = B(i,k) * C(k,j)"), next("i=2048,j=2048,k=2048"), next("4"));
    let size = |size: &str| -> Result<(IndexVariable, i64), Box<dyn std::error::Error>> {
        let (name, extent) = size.split_once('=').ok_or("sizes are written i=100,j=200")?;
        Ok((IndexVariable::new(name), extent.parse()?))
    };
    let extents = sizes.split(',').map(size).collect::<Result<Vec<_>, _>>()?;
    let assignment = parse_with_extents(&text, ElementType::F64, &extents)?;
    print!("{}", choose(&assignment, processors.parse()?, &Rates::default()).explain());
    Ok(())
}
