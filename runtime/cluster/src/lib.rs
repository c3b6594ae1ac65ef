//! # One process of a job
//!
//! A *job* is one program on several nodes: each runs the whole of it, and they exchange what each needs of the others.
//! This crate knows which nodes there are, sends bytes between them, and ends the job on all of them when one is lost
//! or does something else. It knows nothing of tasks or regions.
//!
//! In reading order:
//!
//! - [`JobBuilder`] and [`Job`]: joining and leaving; [`Layer`]: what the code above is asked;
//! - [`Job::send_parcel`], [`Job::expect`], [`ParcelFuture`]: messages that the receiver awaits by [name](ParcelName),
//!   in any order;
//! - [`Job::all_reduce`], [`Job::all_gather`]: collectives over a binomial tree; [`Rounds`]: all-gathers with a sparse
//!   all-to-all;
//! - [`JobMessageKind`], [`Outgoing`], [`Received`], [`Messenger`]: messages of kinds that layers register, each with
//!   its handler;
//! - [`Job::begin_operation`], [`Job::end_program`], [`DeterminismCheck`]: whether all nodes do the same, also where
//!   they get no further;
//! - [`Error`], [`Failure`]: why a job ends, and failures that go from node to node.
//!
//! The protocols, with their messages and races, are described in the crate's `README.md`.
//!
//! # Example
//!
//! Two nodes in one process add up their numbers, and the first sends a word to the second.
//!
//! ```
//! use std::sync::mpsc::channel;
//!
//! use bytes::Bytes;
//! use maniple_cluster::{CollectiveName, Job, JobBuilder, ParcelFuture, ParcelName};
//! use maniple_realm::Realm;
//! use maniple_realm::machine::NodeId;
//! use maniple_realm::net::loopback::Network;
//!
//! fn program(job: &Job) -> u64 {
//!     // All nodes count operations alike: the number names what they exchange.
//!     let operation = job.begin_operation("add up");
//!     let combine = |parts: Vec<Bytes>| {
//!         let numbers = parts.iter().map(|part| u64::from_le_bytes(part[..].try_into().unwrap()));
//!         Bytes::copy_from_slice(&numbers.sum::<u64>().to_le_bytes())
//!     };
//!     let (sender, sum) = channel();
//!     let mine = Bytes::copy_from_slice(&(job.rank() as u64 + 1).to_le_bytes());
//!     let name = CollectiveName { operation, part: 0 };
//!     job.all_reduce(name, mine, Box::new(combine), Box::new(move |sum| sender.send(sum).unwrap()));
//!
//!     let word = ParcelName { operation: job.begin_operation("greet"), exchange: 0, number: 0 };
//!     if job.rank() == 0 {
//!         job.send_parcel(1, word, Ok(Bytes::from("hello")));
//!     } else {
//!         let parcels = ParcelFuture::new(1, job.realm());
//!         job.expect(&parcels, [(0, word)].into_iter());
//!         job.realm().wait(parcels.complete(job.realm())).unwrap();
//!         assert_eq!(parcels.take(0, job.realm()), Some(Ok(Bytes::from("hello"))));
//!     }
//!     u64::from_le_bytes(sum.recv().unwrap()[..].try_into().unwrap())
//! }
//!
//! let network = Network::new(2);
//! let pump = network.pump();
//! std::thread::scope(|scope| {
//!     for rank in 0..2 {
//!         let transport = network.node(NodeId(rank));
//!         scope.spawn(move || {
//!             let realm = Realm::builder().workers(1).build().unwrap();
//!             let job = JobBuilder::new(transport, &realm).join();
//!             assert_eq!(program(&job), 3);
//!             job.leave();
//!         });
//!     }
//! });
//! # drop(pump);
//! ```

// What is in `clippy.toml`: the outside world enters through `realm` alone.
#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

mod builder;
mod collectives;
mod determinism;
mod ends;
mod error;
mod evidence;
mod fragments;
mod job;
mod last_operations;
mod layer;
mod leaving;
mod log;
mod matching;
mod message;
mod names;
mod outbox;
mod profile;
mod received;
mod rounds;
mod running;
mod shared;
mod standstill;
mod tree;
mod wire;

pub use builder::JobBuilder;
pub use determinism::DeterminismCheck;
pub use error::{Error, Failure, Result};
pub use evidence::{Describe, Differing};
pub use job::{Gathered, Job, Wait};
pub use layer::Layer;
pub use matching::{Delivery, ParcelFuture};
pub use message::{JobMessageKind, Outgoing};
pub use names::{CollectiveName, Named, OperationName, ParcelName, Rank};
pub use received::{Messenger, Received};
pub use rounds::{Exchanged, Rounds, ready};
pub use tree::{Combine, Done};
pub use wire::{decode, encode};
