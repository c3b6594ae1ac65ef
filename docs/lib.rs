//! The book of Maniple, as a crate: each chapter is a module, so that `cargo test` compiles and runs every sample in
//! it.
//!
//! The chapters are Markdown under `src/`, in the order of `src/SUMMARY.md`; `mdbook build docs` makes a site of them.
//! Samples are ordinary doc tests, with lines hidden by `# ` as rustdoc and mdBook both know them.

#[doc = include_str!("../README.md")]
pub mod readme {}

#[doc = include_str!("src/introduction.md")]
pub mod introduction {}

#[doc = include_str!("src/getting-started.md")]
pub mod getting_started {}

#[doc = include_str!("src/commands.md")]
pub mod commands {}

#[doc = include_str!("src/tutorial/index.md")]
pub mod tutorial {}

#[doc = include_str!("src/tutorial/regions.md")]
pub mod tutorial_regions {}

#[doc = include_str!("src/tutorial/partitions.md")]
pub mod tutorial_partitions {}

#[doc = include_str!("src/tutorial/futures.md")]
pub mod tutorial_futures {}

#[doc = include_str!("src/tutorial/circuit.md")]
pub mod tutorial_circuit {}

#[doc = include_str!("src/tutorial/nesting.md")]
pub mod tutorial_nesting {}

#[doc = include_str!("src/tutorial/more.md")]
pub mod tutorial_more {}

#[doc = include_str!("src/examples.md")]
pub mod examples {}

#[doc = include_str!("src/concepts.md")]
pub mod concepts {}

#[doc = include_str!("src/sessions.md")]
pub mod sessions {}

#[doc = include_str!("src/mapper.md")]
pub mod mapper {}

#[doc = include_str!("src/mapping-files.md")]
pub mod mapping_files {}

#[doc = include_str!("src/traces.md")]
pub mod traces {}

#[doc = include_str!("src/outside.md")]
pub mod outside {}

#[doc = include_str!("src/looking.md")]
pub mod looking {}

#[doc = include_str!("src/nodes.md")]
pub mod nodes {}

#[doc = include_str!("src/launching.md")]
pub mod launching {}

#[doc = include_str!("src/tensors.md")]
pub mod tensors {}
#[doc = include_str!("src/sparse.md")]
pub mod sparse {}

#[doc = include_str!("src/blocks.md")]
pub mod blocks {}

#[doc = include_str!("src/tcs.md")]
pub mod tcs {}

#[doc = include_str!("src/performance.md")]
pub mod performance {}

#[doc = include_str!("src/taskbench.md")]
pub mod taskbench {}

#[doc = include_str!("src/profiling.md")]
pub mod profiling {}

#[doc = include_str!("src/insides.md")]
pub mod insides {}

#[doc = include_str!("src/architecture.md")]
pub mod architecture {}

#[doc = include_str!("src/coming-from.md")]
pub mod coming_from {}

#[doc = include_str!("src/glossary.md")]
pub mod glossary {}
