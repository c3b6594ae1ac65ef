//! The machine layer of Maniple: events, operations, processors, memories, instances, transfers.
//!
//! Everything here is deferred. Whatever is asked of a [`Realm`] takes preconditions ([`After`]), does not block, and
//! gives an [`Event`] that triggers when it is done. Programs are graphs of operations; the realm runs each as soon as
//! what it waits for has happened, on workers that steal from one another and sleep when no work is left.
//!
//! # The parts, from the ground up
//!
//! A part imports only parts before it in this list; a test holds that there are no circles. What a lower one needs of
//! a higher one, it is given: as a value, a closure, or through a trait that it owns.
//!
//! The outside world:
//! * [`fault`], [`locks`], `prefetch`: why something failed; locks that are counted; hints for caches.
//! * [`threads`], `sync`, [`clock`]: the system's threads, parking, time. A simulation takes the system's place through
//!   a trait of `threads`.
//! * [`io`]: threads that wait for files; [`disk`]: what these ask the disk.
//! * [`machine`], [`topology`], [`pressure`]: processors, memories, which of them reach which; how that is found out;
//!   what the process may use of it.
//! * [`profile`]: records of what ran when, and after what.
//!
//! Data:
//! * [`memory`], [`layout`], [`reduction`]: bytes with a capacity, how elements lie in them, how values are folded.
//! * `scheduler`: what waits where, and which workers are awake.
//! * `events` ([`event`]): handles to what has happened or will; the slots behind them; poison, by which failures
//!   travel.
//! * [`instance`], [`transfer`]: memory with a layout; copies, fills, gathers and scatters between instances.
//! * [`net`]: several nodes: messages, bytes from memory to memory, agreements; in one process, or over TCP (feature
//!   `tcp`).
//!
//! Execution:
//! * [`operation`]: [`Work`] that waits for events and runs once; where ([`Target`]) and how urgently; what a trigger
//!   sets off; async bodies; jobs.
//! * [`barrier`], [`reservation`]: phase barriers, and locks that are acquired by an event.
//! * [`graph`]: work that repeats, compiled once and run many times without events.
//! * [`worker`]: the threads behind the processors: stealing, sleeping, waiting by helping.
//! * `realm`: [`Realm`], the handle by which all of that is used.
//! * [`simulation`]: all of that in one thread, in an order that a seed decides.
//!
//! The protocols (event words, sleeping workers, barriers, reservations, shutdown) are told, with their races and why
//! each is won, in the crate's `README.md`; `tests/loom` checks them.
//!
//! # A program
//!
//! ```
//! use std::sync::Arc;
//! use std::sync::atomic::{AtomicU64, Ordering};
//!
//! use maniple_realm::{Fault, Realm, Spawn};
//!
//! let realm = Realm::builder().workers(2).build()?;
//! let sum = Arc::new(AtomicU64::new(0));
//!
//! // A hundred tasks that wait for one event of ours, and one that waits for them all.
//! let start = realm.user_event();
//! let parts: Vec<_> = (0..100)
//!     .map(|part| {
//!         let sum = Arc::clone(&sum);
//!         realm.spawn(&start.event(), move || {
//!             sum.fetch_add(part, Ordering::Relaxed);
//!         })
//!     })
//!     .collect();
//! let total = Arc::clone(&sum);
//! let check = realm.spawn(&parts, move || match total.load(Ordering::Relaxed) {
//!     4950 => Ok(()),
//!     other => Err(Fault::new(format!("the sum is {other}, not 4950"))),
//! });
//!
//! assert!(!realm.has_triggered(check));
//! realm.trigger(start);
//! realm.wait(check)?;
//!
//! // Failures travel: what needs a failed operation does not run, and knows why.
//! let failed = realm.spawn(Spawn::ANYWHERE, || -> () { panic!("no luck") });
//! let skipped = realm.spawn(&failed, || println!("not reached"));
//! assert!(realm.wait(skipped).unwrap_err().to_string().contains("no luck"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod barrier;
pub mod clock;
pub mod disk;
mod events;
pub mod fault;
pub mod graph;
#[doc(hidden)]
pub mod io;
pub mod locks;
pub mod operation;
mod prefetch;
pub mod profile;
mod realm;
pub mod reservation;
mod scheduler;
pub mod simulation;
mod sync;
pub mod threads;
pub mod worker;

/// Events: what has happened, and what waits for it.
pub mod event {
    pub use crate::events::{After, AlreadyTriggered, Event, EventStatus, UserEvent};

    /// Awaiting an event.
    pub mod future {
        pub use crate::operation::EventFuture;
    }
}

pub use barrier::{Barrier, BarrierError};
pub use events::{After, Event, EventStatus, UserEvent};
pub use fault::Fault;
pub use operation::job::{Job, JobHead, JobTable};
pub use operation::{Breakdown, BreakdownWatch, Class, GroupId, RealmError, Spawn, Target, Work, WorkerContext};
#[doc(hidden)]
pub use prefetch::{prefetch_for_reading, prefetch_for_writing};
pub use realm::{Realm, RealmBuilder};
pub use reservation::{Mode, Reservation};

pub mod instance;
pub mod layout;
pub mod machine;
pub mod memory;
pub mod net;
pub mod pressure;
pub mod reduction;
pub mod topology;
pub mod transfer;
