//! The rules of the programming model, on one node.

#![allow(clippy::unwrap_used)] // in a test, a panic is the report

mod attached_arrays;
mod attached_files;
mod attached_memory;
mod copies;
mod deletions;
mod dense_pieces;
mod end_of_tasks;
mod examples;
mod failures;
mod fences;
mod filled_traces;
mod fitting_variants;
mod forks;
mod forks_cut_short;
mod futures;
mod inline_mappings;
mod keeping;
mod launches;
mod layouts;
mod lifetimes;
mod local_fields;
mod long_programs;
mod many_fields;
mod mapping;
mod mapping_results;
mod named_mappers;
mod names_and_types;
mod nothing;
mod outputs;
mod panics;
mod provenance;
mod records;
mod records_of_traces;
mod reductions;
mod sessions;
mod shared_partitioning;
mod sharing;
mod sparse_launches;
mod sparse_regions;
mod stranded;
mod strict_traces;
mod temporary;
mod timing;
mod traces;
