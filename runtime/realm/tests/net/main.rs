//! The rules of the network, whatever the transport; then the rules of each transport.
//!
//! A rule of the suite is a function of a [`Cluster`]; [`rules!`] makes a test of it for each transport. On loopback it
//! runs with many seeds, and a thread that waits steps the network: if nothing is left to be received and the wait is
//! not over, the rule is broken, and the test says so.

#![allow(clippy::unwrap_used)] // in a test, a panic is the report

mod agreements;
mod cluster;
mod failures;
mod loopback;
mod messages;
#[cfg(all(feature = "mpi", unix))]
mod mpi_cluster;
#[cfg(all(feature = "mpi", unix))]
mod mpi_processes;
#[cfg(all(feature = "tcp", unix))]
mod processes;
#[cfg(feature = "tcp")]
mod tcp_cluster;
mod transfers;
