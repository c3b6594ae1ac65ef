//! # Measuring
//!
//! Every benchmark is a program that prints ratios, ours against hand-written code or a limit in one run, or costs an
//! operation. Run all with `cargo bench -p maniple-benches`, one with `cargo bench -p maniple-benches --bench NAME`:
//!
//! - `overhead`: events, empty tasks of the machine layer, and point tasks of a circuit with tiny pieces;
//! - `recursion`: tasks that launch tasks, without regions, against rayon;
//! - `launches`: whether a million launches grow memory;
//! - `cg`: conjugate gradients against a plain loop on two threads over the same arrays;
//! - `stencil`: a star stencil against rayon;
//! - `partitions`: images, preimages and partitions by field against reading and sorting;
//! - `outside`: attached memory and files, outputs of tasks, and partitions by a field of 10^8 rows;
//! - `profile`: a circuit with and without a profile;
//! - `network`: messages and transfers between nodes, against bare sockets;
//! - `targets`: what the runtime is to cost, laid beside what it does cost;
//! - `rivals`: the same programs on this runtime and on others, as far as this machine has them;
//! - `tensors`: tensor algebra on this runtime, and by OpenBLAS, ScaLAPACK and NumPy, as far as this machine has them;
//! - `sparse`: sparse tensors, and by SciPy and MKL, as far as this machine has them;
//! - `files`: files of tensors, beside what the system takes to read and write as many bytes, SciPy and NumPy.
//!
//! Of `rivals`, the parts in reading order:
//!
//! - [`toolbox`]: which rivals there are, and compiling the programs in the folder `rivals`;
//! - [`contest`]: running programs in turn, and what is made of the times; [`table`]: laying them side by side;
//! - [`rivals`]: the contests; [`machine`]: what figures depend on besides.
//!
//! Of `targets`: [`targets`], with a file for each. Of `tensors`: [`tensors`], which shares [`toolbox`]. Of `sparse`:
//! [`sparse`], whose programs take turns as those of [`tensors`] do. Of `files`: [`files`], which shares them.

pub mod contest;
pub mod error;
pub mod files;
pub mod machine;
pub mod rivals;
pub mod sparse;
pub mod table;
pub mod targets;
pub mod tensors;
pub mod toolbox;

use std::time::Instant;

/// As the `maniple` program has it, and as the book recommends it.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Seconds that a function takes.
pub fn seconds(run: impl FnOnce()) -> f64 {
    let start = Instant::now();
    run();
    start.elapsed().as_secs_f64()
}

/// The median of some measurements.
///
/// # Panics
/// If there are none, or one is not a number.
#[must_use]
pub fn median(mut measurements: Vec<f64>) -> f64 {
    measurements.sort_by(|a, b| a.partial_cmp(b).expect("measurements are numbers"));
    measurements[measurements.len() / 2]
}

/// Runs two programs in turn, so that both meet the same noise; gives the median time of each, in seconds.
pub fn side_by_side(rounds: usize, mut ours: impl FnMut(), mut theirs: impl FnMut()) -> (f64, f64) {
    let (mut first, mut second) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        first.push(seconds(&mut ours));
        second.push(seconds(&mut theirs));
    }
    (median(first), median(second))
}

/// A line of a table: what, the figure, and what is wanted of it.
pub fn line(what: &str, figure: f64, unit: &str, wanted: &str) {
    println!("{what:<48} {figure:>10.3} {unit:<8} {wanted}");
}
