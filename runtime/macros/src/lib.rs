//! # The attribute `#[task]` and the derive `Fields`
//!
//! Syntax only: everything that these macros write, a program could write by hand against the dynamic API of the crate
//! `maniple`, which re-exports both. What they add is that the compiler knows the privileges: a body has accessors for
//! the fields that it declared and for no others, and only the context of a task that may launch gives a way to launch.
//! In reading order:
//!
//! - `fields`: [`Fields`](derive@Fields), from the members of a struct to the fields of a region;
//! - `hash`: how the two macros agree on names without seeing each other's input;
//! - `task`: [`task`](macro@task), from a function to a registered variant and a function that describes launches. Its
//!   parts are `options` and `parameter`, read by `parse` into one checked description, from which `launch`, `body` and
//!   `expand` write the items.
//!
//! ```
//! # extern crate self as maniple; // A model of the runtime stands in for it: see `tests/model`.
//! # #[path = "../tests/model/mod.rs"]
//! # mod model;
//! # pub use model::*;
//! use maniple_macros::{Fields, task};
//!
//! /// One node of the circuit. Each member is a field of the region.
//! #[derive(Fields)]
//! struct Node {
//!     charge: f32,
//!     voltage: f32,
//! }
//!
//! /// The variant that runs, and what it is allowed to do.
//! #[task(leaf)]
//! fn update_voltages(#[reads(charge)] #[writes(voltage)] nodes: Piece<Node>, steps: u32) -> u32 {
//!     // `nodes.charge` can be read, `nodes.voltage` written; there is nothing else.
//!     steps + 1
//! }
//!
//! fn main() -> Result<()> {
//!     let nodes: Region<Node> = Region::named("nodes");
//!     // Calling the task describes a launch of it. A context would take the description and launch.
//!     let launch = update_voltages(&nodes, 41);
//!     assert_eq!(launch.builder.requirements[0].1, Privilege::Read);
//!     assert_eq!(launch.builder.requirements[1].1, Privilege::ReadWrite);
//!     assert_eq!(launch.run_variant("update_voltages")?, 42);
//!     Ok(())
//! }
//! ```

mod fields;
mod hash;
mod task;

use proc_macro::TokenStream;

/// Makes the members of a struct the fields of regions.
///
/// Member `i` is field `i` of every region made for the struct. The struct itself is never stored; it names columns. It
/// gets
///
/// - an implementation of `maniple::Fields`: the names and types of the members, in order;
/// - for each member an implementation of `maniple::FieldNamed`, through which [`task`](macro@task) finds the member's
///   type by a hash of its name;
/// - an implementation of `maniple::NamedFields`, with a struct `FieldsOfNode` that has the same members, in which the
///   compiler looks for the names that [`task`](macro@task) is given;
/// - for each member a constant of its name, visibility and documentation: `Node::voltage` is a
///   `maniple::Field<Node, f32>`.
///
/// The struct has named members, each of a type that implements `maniple::FieldValue`, and no generic parameters;
/// anything else is a compile error.
///
/// `#[fields(crate = path)]` on the struct says where the runtime's names are, if not at `::maniple`.
#[proc_macro_derive(Fields, attributes(fields))]
pub fn derive_fields(input: TokenStream) -> TokenStream {
    fields::expand(input.into()).unwrap_or_else(syn::Error::into_compile_error).into()
}

/// Makes a function a task: calling it describes a launch, which a context takes.
///
/// ```text
/// #[task(leaf)]
/// fn distribute_charge(
///     #[reads(from, to, current)] wires: Piece<Wire>,
///     #[reduces(Sum, charge)] nodes: Piece<Node>,
///     dt: f32,
/// ) { .. }
///
/// #[task]
/// async fn simulate(cx: &Context, #[writes(voltage)] nodes: Region<Node>, steps: u32) -> Result<f64> { .. }
/// ```
///
/// # Options
///
/// | option | meaning |
/// | --- | --- |
/// | `leaf` | the task launches nothing and never waits. Every task without a context is a leaf; the word says so |
/// | `inner` | the task launches and never touches data itself. It needs a context |
/// | `name = ".."` | the name of the task, or with `variant_of` of the variant, in mappers and messages; the function's name if left out |
/// | `variant_of(path)` | the function is another way to run the task at `path`: same parameters, same privileges |
/// | `mapper = "name"` | the mapper that is asked about launches of the task, unless they name one: see `RuntimeBuilder::mapper_named` |
/// | `layout = soa`, `layout = aos` | the body gets its data as a struct of arrays, or an array of structs, whatever the mapper says. Orders of dimensions, alignment and padding are said of a parameter: `#[layout(column_major)]`, see below |
/// | `crate = path` | where the runtime's names are, if not at `::maniple` |
///
/// # Parameters
///
/// | parameter | meaning |
/// | --- | --- |
/// | `cx: &Context` | first, if at all: the task launches others and may be an `async fn` that waits |
/// | `#[..] wires: Piece<F, D>` | the data of a region with fields `F` and `D` dimensions (1 if left out), in a task without a context |
/// | `#[..] wires: Region<F, D>` | the region by name, to launch with, in a task with a context |
/// | `#[point] p: Point<D>` | the point of the index launch |
/// | `name: T` | an argument, passed by value or as a future of its value |
///
/// `#[layout(..)]` beside the privileges of a region says how the body gets the data of just this one, whatever the
/// mapper says: `soa` or `aos`, `row_major` or `column_major`, `align = BYTES` or `pad = POINTS`, or several of these.
/// `pad` gives fields that the task writes or discards room for so many points around the region, a rectangle, on both
/// sides of each dimension: the accessors reach them, they are zero when the body begins, and are lost when it ends.
///
/// `Context`, `Piece`, `Region` and `Point` are known by the last segment of their path. A region has at least one
/// privilege, and each of its fields is named at most once:
///
/// | privilege | meaning | the member of that name in the body |
/// | --- | --- | --- |
/// | `#[reads(f, ..)]` | look at values | `access::Read` |
/// | `#[writes(f, ..)]` | look at values and change them | `access::Write` |
/// | `#[discards(f, ..)]` | write every value without looking at the old ones | `access::Write` |
/// | `#[reduces(Op, f, ..)]` | fold contributions with the operator `Op` | `access::Reduce` |
///
/// Each attribute becomes one requirement, in the order in which they are written. A piece also has the methods of
/// `access::PieceInfo`.
///
/// # Value
///
/// Nothing, a value, or a `Result` (known by the last segment of its path), whose error the launcher receives as
/// `Error::from_task`.
///
/// # What is written
///
/// - A function of the task's name, visibility and documentation that takes a target for each region and a value or
///   future for each argument and returns `maniple::Launch<T>`. `allow`, `deprecated` and `must_use` go with it; other
///   attributes, and `allow`, with the body.
/// - The body, as it was, under a name that nothing else can see; within it the task's own name means the launching
///   function.
/// - The registration of the variant with the program's tasks, made when the program is linked, under the task's module
///   path and name.
///
/// With `variant_of` the launching function is the other task's, and the compiler checks that the parameters and
/// privileges agree.
///
/// # Errors
///
/// A function that is not of this form does not compile. Each mistake is reported where it stands, with what was
/// expected and what to do.
#[proc_macro_attribute]
pub fn task(options: TokenStream, function: TokenStream) -> TokenStream {
    task::expand(options.into(), function.into()).unwrap_or_else(syn::Error::into_compile_error).into()
}
