//! Several mappers: a library brings one of its own, by a name, for its tasks alone.
//!
//! `cargo run -p maniple --example named_mappers`

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use maniple::mapper::{DefaultMapper, Mapper, MappingContext, TaskInfo, TaskMapping};
use maniple::prelude::*;

#[derive(Fields)]
struct Unknown {
    x: f64,
}

/// A task of the library, which its own mapper knows best.
#[task(leaf, mapper = "solver")]
fn relax(#[writes(x)] part: Piece<Unknown>) {
    part.points().for_each(|point| part.x[point] *= 0.5);
}

/// A task of the program, which is left to the program's mapper unless a launch says otherwise.
#[task(leaf)]
fn sum(#[reads(x)] part: Piece<Unknown>) -> f64 {
    part.points().map(|point| part.x[point]).sum()
}

/// Lets its tasks go first, and counts what it was asked.
#[derive(Clone, Default)]
struct SolverMapper {
    inner: DefaultMapper,
    asked: Arc<AtomicU64>,
}

impl Mapper for SolverMapper {
    fn inner(&mut self) -> Option<&mut dyn Mapper> {
        Some(&mut self.inner)
    }

    fn map_task(&mut self, task: &TaskInfo<'_>, context: &dyn MappingContext) -> TaskMapping {
        self.asked.fetch_add(1, Ordering::Relaxed);
        TaskMapping { priority: 1, ..self.inner.map_task(task, context) }
    }
}

fn main() -> Result<()> {
    let solver = SolverMapper::default();
    let asked = Arc::clone(&solver.asked);
    let runtime = Runtime::builder().workers(2).mapper(DefaultMapper::new()).mapper_named("solver", solver).build()?;
    let (total, half) = runtime.run(async |cx| {
        let unknowns = cx.region::<Unknown>(100)?;
        let parts = unknowns.partition(4).equal()?;
        cx.fill(&unknowns, Unknown::x, 2.0)?;
        cx.index_launch(4, relax(&parts));
        let total = cx.index_launch(4, sum(&parts)).reduce(Sum).await?;
        // All that is launched from here, and one launch by itself.
        let solver = cx.with_mapper("solver")?;
        solver.index_launch(4, relax(&parts));
        let half = cx.index_launch(4, sum(&parts).mapper("solver")).reduce(Sum).await?;
        Ok((total, half))
    })?;
    assert_eq!((total, half), (100.0, 50.0));
    // 4 points of `relax` twice, and of the last `sum`; decisions about the first `relax` may still hold for the
    // second.
    let asked = asked.load(Ordering::Relaxed);
    println!("the solver's mapper was asked {asked} times");
    assert!((8..=12).contains(&asked));

    let error = runtime.run(async |cx| cx.with_mapper("slover").map(|_| ())).expect_err("no mapper has that name");
    println!("{error}");
    assert!(error.to_string().contains("the one mapper with a name is `solver`"));
    Ok(())
}
