//! Tests of Maniple across crates: random programs that run in parallel must equal a sequential oracle, value by value.
//!
//! In reading order:
//!
//! - [`program`]: programs as plain data: statements over region trees, nested blocks for tasks that launch, loops turn
//!   by turn; [`value`]: what fields hold and how it is reduced;
//! - [`oracle`]: what a program means: run statement by statement on one copy of each region, from sets of points
//!   alone;
//! - [`generate`]: programs from seeds, made beside the oracle so that nearly every statement is legal, and the others
//!   must be refused; [`census`]: what such programs consist of;
//! - [`environment`]: random machines, mappers and limits from seeds, none of which may change a result;
//! - [`execute`]: a program carried out through the public interface of the runtime, compared with the oracle on the
//!   way and at the end; also the mistakes on purpose that show that the comparison is no formality;
//! - [`trial`]: one seed of one family of programs: program, environment, run and outcome; [`records`]: what its nodes
//!   have done; [`watch`]: the same for programs that may hang; [`processes`]: the same with a process for each node;
//! - [`shrink`]: a smaller program that still fails;
//! - [`naive`]: a second opinion on the records of runs, for the checker of records; [`mutation`]: records made wrong
//!   on purpose.
//!
//! [`mixed`], [`nodes`] and [`slicing`] are for programs on several nodes, [`lifetime`] for whether a runtime has gone.
//!
//! Two programs use it: `tests/integration/random_programs.rs` runs a fixed set of seeds, `src/bin/stress.rs` as many
//! as one likes, and replays failures.
//!
//! [`imports`] reads what the sources import, for the test of their order, and [`pictures`] draws it for the book: by
//! `src/bin/imports.rs`.
//!
//! The other tests of `tests/integration` do without: `rules.rs` (the programming model, a rule a test), `misuse.rs`
//! (errors that name task, region and field), `golden_circuit.rs` and `golden_sources.rs` (which tasks wait for which,
//! and what is copied), `compile_fail.rs` (what must not compile), `checker.rs` (whether the checker of records notices
//! what is wrong). `tests/alone` has those that count what the whole process does.
//!
//! ```
//! use maniple_tests::trial::{Family, Trial};
//!
//! let trial = Trial::new(Family::Nested, 7);
//! println!("{} in {:?}", trial.program(), trial.environment());
//! let outcome = trial.run();
//! assert!(outcome.is_right(), "{:?}", outcome.deviations);
//! ```

pub mod census;
pub mod circuit;
pub mod environment;
pub mod execute;
pub mod generate;
pub mod imports;
pub mod lifetime;
pub mod mixed;
pub mod mutation;
pub mod naive;
pub mod nodes;
pub mod oracle;
pub mod pictures;
pub mod processes;
pub mod program;
pub mod records;
pub mod scattered;
pub mod shrink;
pub mod slicing;
pub mod trial;
pub mod value;
pub mod watch;
