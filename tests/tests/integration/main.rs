//! Rules, random programs and simulations across crates.

#![allow(clippy::unwrap_used)] // in a test, a panic is the report

mod accumulations;
mod attached_arrays;
mod attached_memory;
mod balanced_rows;
mod batched_products;
mod blocks_on_nodes;
mod book;
mod checker;
mod checker_of_traces;
mod chunked_products;
mod collection;
mod columns_on_nodes;
mod compile_fail;
mod deletions;
mod differing_ends;
mod distributed_pieces;
mod distributed_pieces_in_programs;
mod entry_files;
mod forgotten_copies;
mod gathered_rows;
mod generated_tensors;
mod golden_circuit;
mod golden_sources;
mod launches_over_sets;
mod layers;
mod levels_on_nodes;
mod mapper_messages;
mod memory_on_nodes;
mod migrated_padding;
mod migrated_tasks;
#[cfg(unix)]
mod migrated_tasks_over_tcp;
mod misuse;
mod named_mappers;
mod nodes;
mod once_failed;
mod one_node_fails;
mod partitions_on_nodes;
#[cfg(unix)]
mod processes;
#[path = "../../../tensor/tests/integration/random/mod.rs"]
mod random;
mod random_blocks;
mod random_programs;
mod random_tensors;
mod readers;
mod relations;
mod renewed_regions;
mod replays;
mod rules;
mod scans;
mod sessions;
mod simulated_tensors;
mod simulation;
mod six_kernels;
mod slices;
mod slices_with_data;
mod sparse_conversions;
mod sparse_placements;
mod sparse_results;
mod sparse_tensors;
mod sparse_traffic;
mod statements_by_text;
mod stolen_slices;
mod stolen_tasks;
mod tcs_files;
mod tcs_on_nodes;
mod tensor_elements;
mod tensor_threads;
mod tensor_traffic;
mod tensors;
mod tensors_cut_once;
mod weak_scaling;
mod writers_in_turn;
