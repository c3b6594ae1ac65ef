//! The program as its users run it.

#![allow(clippy::unwrap_used)] // in a test, a panic is the report

mod browser;
mod command_line;
mod decomposition;
mod every_option;
#[cfg(target_os = "linux")]
mod failure;
mod graphs;
#[cfg(unix)]
mod inputs_on_nodes;
#[cfg(unix)]
mod launch;
mod mappers;
mod mapping_files;
#[cfg(unix)]
mod nodes;
mod options_on_nodes;
mod profile;
#[cfg(target_os = "linux")]
mod slurm;
mod tensor_blocks;
mod tensor_chapter;
mod tensor_command;
mod tensor_convert;
mod tensor_distributed;
#[cfg(target_os = "linux")]
mod tensor_entries_on_nodes;
mod tensor_explained_on_nodes;
mod tensor_failure;
mod tensor_files;
#[cfg(target_os = "linux")]
mod tensor_opens;
mod tensor_parts;
#[cfg(unix)]
mod tensor_pipes;
mod tensor_programs;
mod tensor_sparse;
mod tensor_tcs;
mod tensor_tcs_on_nodes;
mod tensor_text;
mod tensor_types;
mod tracing;
#[cfg(target_os = "linux")]
mod unread;
