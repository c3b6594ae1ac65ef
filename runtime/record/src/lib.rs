//! # What a run did, and whether it was right
//!
//! A runtime that finds parallelism by itself has to be believed, unless it leaves something that can be checked. A
//! [`Record`] is that: every launch, and every operation that was issued to the machine, with the operations that it
//! was made to wait for. It is plain data, and knows nothing of threads: that two operations were ordered is true of
//! all runs that issue the same operations, not only of the one that was watched.
//!
//! In reading order:
//!
//! - `record`: the data: [`Launch`], [`Operation`] and its [`Kind`], where it stands in program order ([`Place`]), what
//!   it does with which data ([`Usage`]); `names`: what operations are called in messages;
//! - `check`: [`check()`] proves from a record that all interfering operations were ordered and every task saw the
//!   right values, or says what is wrong: a [`Violation`];
//! - `picture`: a [`Graph`] of the operations or of the launches, as DOT or SVG.
//!
//! A runtime keeps a record if it is built with `RuntimeBuilder::record_operations`. Here is one made by hand, of two
//! tasks of which the second reads what the first has written, without having been made to wait for it:
//!
//! ```
//! use maniple_record::{check, Instance, Kind, LaunchNumber, Operation, OperationNumber, Place, Record, Task, Usage, Violation};
//! use maniple_mapper::InstanceId;
//! use maniple_region::{FieldMask, FieldType, Forest, Privilege};
//! use maniple_space::{AnySpace, Rect};
//!
//! let forest = Forest::new();
//! let (rows, columns) = (forest.index_space(&AnySpace::from(Rect::<1>::from(0..10))), forest.field_space(1));
//! let fields = FieldMask::of(columns.allocate("charge", FieldType::of::<f32>())?);
//! let nodes = forest.region(&rows, &columns)?;
//! let memory = InstanceId(0);
//!
//! let top = OperationNumber(0);
//! let task = |name: &str, launch: u64, privilege: Privilege| Kind::Task(Task {
//!     place: Place { parent: top, launch: LaunchNumber(launch), index: 0 },
//!     name: name.to_owned(),
//!     point: None,
//!     is_leaf: true,
//!     usages: vec![Usage {
//!         region: nodes.clone(),
//!         fields: fields.clone(),
//!         privilege,
//!         instances: vec![(fields.clone(), memory)],
//!     }],
//! });
//! let mut record = Record {
//!     operations: vec![
//!         Operation { kind: Kind::TopLevel, after: vec![] },
//!         Operation { kind: task("write", 0, Privilege::Discard), after: vec![top] },
//!         Operation { kind: task("read", 1, Privilege::Read), after: vec![top] },
//!     ],
//!     instances: [(memory, Instance { region: nodes.clone(), fields: fields.clone(), buffer: None })].into(),
//!     ..Record::default()
//! };
//! let violation = check(&record).unwrap_err();
//! assert!(matches!(violation, Violation::Unordered { .. }), "{violation}");
//!
//! record.operations[2].after.push(OperationNumber(1));
//! assert_eq!(check(&record)?.pairs, 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

// What is in `clippy.toml`: the outside world enters through `realm` alone.
#![cfg_attr(not(test), warn(clippy::disallowed_methods))]
#![forbid(unsafe_code)]

mod check;
mod names;
mod picture;
mod record;

pub use check::{Data, Proof, Violation, check};
pub use names::OperationName;
pub use picture::{Class, Edge, Graph, Node, TooLarge};
pub use record::{
    Because, Contribution, Dependence, Instance, Kind, Launch, LaunchNumber, Operation, OperationNumber, Part, Place,
    Record, Task, Usage, Value,
};
