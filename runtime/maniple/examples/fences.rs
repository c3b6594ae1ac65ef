//! Fences: order between tasks that share no data, here around a file that the runtime knows nothing of.
//!
//! Run it with `cargo run -p maniple --example fences`.

use std::fs;
use std::path::PathBuf;

use maniple::prelude::*;

#[task(leaf)]
fn store(#[point] part: Point<1>, folder: PathBuf) -> Result<()> {
    fs::write(folder.join(part[0].to_string()), "a part").map_err(Error::application)
}

#[task(leaf)]
fn count(folder: PathBuf) -> Result<usize> {
    Ok(fs::read_dir(folder).map_err(Error::application)?.count())
}

fn main() -> Result<()> {
    let folder = std::env::temp_dir().join(format!("maniple-fences-{}", std::process::id()));
    fs::create_dir(&folder).map_err(Error::application)?;
    let runtime = Runtime::builder().build()?;
    runtime.run(async |cx| {
        cx.index_launch(8, store(folder.clone()));
        cx.execution_fence(); // what is launched later comes after all that was launched before
        let files = cx.launch(count(folder.clone())).await?;
        println!("{files} files");
        assert_eq!(files, 8);
        Ok(())
    })?;
    fs::remove_dir_all(&folder).map_err(Error::application)
}
