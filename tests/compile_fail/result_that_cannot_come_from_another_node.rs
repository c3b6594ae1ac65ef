//! Results that serde reads only out of data that stays.

use maniple::prelude::*;

#[task(leaf)]
fn name() -> &'static str { //~ expected a result that can come from another node
    "cell"
}

#[task(leaf)]
fn bytes() -> Result<Option<&'static [u8]>> { //~ return an owned value, such as `String` for `&str`, `Vec<u8>` for `&[u8]`
    Ok(None)
}

fn main() {}
