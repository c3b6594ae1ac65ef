//! Arguments and results of the program's own types, which serde takes to other nodes of a job.
//!
//! Run it with `cargo run -p maniple --example arguments`.

use maniple::prelude::*;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Options {
    word: String,
    exact: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
struct Found {
    words: usize,
    matches: usize,
}

#[task(leaf)]
fn search(text: String, options: Options) -> Found {
    let is_match = |word: &&str| if options.exact { *word == options.word } else { word.contains(&options.word) };
    Found { words: text.split(' ').count(), matches: text.split(' ').filter(is_match).count() }
}

fn main() -> Result<()> {
    let runtime = Runtime::builder().build()?;
    runtime.run(async |cx| {
        let text = "the other one is another one than the one before";
        let options = Options { word: "other".to_owned(), exact: false };
        let any = cx.launch(search(text.to_owned(), options.clone()));
        let exact = cx.launch(search(text.to_owned(), Options { exact: true, ..options }));
        let (any, exact) = (any.await?, exact.await?);
        println!("{any:?}, {exact:?}");
        assert_eq!((any, exact), (Found { words: 10, matches: 2 }, Found { words: 10, matches: 1 }));
        Ok(())
    })
}
