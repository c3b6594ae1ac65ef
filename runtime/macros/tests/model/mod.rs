//! The names that the macros' output refers to, as small as they can be: a launch remembers what it was told, a call
//! hands out accessors that remember what they were made for, and nothing is scheduled.

#![allow(dead_code)]

use std::any::{Any, TypeId, type_name};
use std::fmt;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::{Arc, Mutex};

pub mod access;
pub mod generated;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FieldId(pub u32);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FieldType(pub &'static str);

impl FieldType {
    pub fn of<T: Copy + 'static>() -> Self {
        Self(type_name::<T>())
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldDescriptor {
    pub name: String,
    pub ty: FieldType,
}

pub trait Fields: 'static {
    fn descriptors() -> Vec<FieldDescriptor>;
}

pub trait NamedFields: Fields {
    type Names;
    const NAMES: Self::Names;
}

pub trait FieldNamed<const NAME: u64> {
    type Type: Copy + 'static;
    const ID: FieldId;
}

pub struct Field<F, T> {
    pub id: FieldId,
    marker: PhantomData<(F, T)>,
}

impl<F, T> Field<F, T> {
    pub const fn new(id: FieldId) -> Self {
        Self { id, marker: PhantomData }
    }
}

#[derive(Debug, PartialEq)]
pub struct Ptr<F>(pub i64, PhantomData<F>);

impl<F> Clone for Ptr<F> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<F> Copy for Ptr<F> {}

pub struct Sum;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OperatorId(TypeId);

impl OperatorId {
    pub fn of<Op: 'static>() -> Self {
        Self(TypeId::of::<Op>())
    }
}

/// Operators and field types that were made known, by name.
pub static REDUCTIONS: Mutex<Vec<(&'static str, &'static str)>> = Mutex::new(Vec::new());

pub fn register_reduction<Op: 'static, T: 'static>() {
    REDUCTIONS.lock().expect("no test panics while it looks").push((type_name::<Op>(), type_name::<T>()));
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Privilege {
    Read,
    ReadWrite,
    Discard,
    Reduce(OperatorId),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProcessorKind {
    Cpu,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrangement {
    StructOfArrays,
    ArrayOfStructs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DimensionOrder {
    RowMajor(usize),
    ColumnMajor(usize),
}

impl DimensionOrder {
    pub fn row_major(dimensions: usize) -> Self {
        Self::RowMajor(dimensions)
    }

    pub fn column_major(dimensions: usize) -> Self {
        Self::ColumnMajor(dimensions)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LayoutConstraint {
    pub arrangement: Option<Arrangement>,
    pub order: Option<DimensionOrder>,
    pub align: Option<u32>,
    pub pad: Option<u32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Point<const D: usize>(pub [i64; D]);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AnyPoint(pub i64);

#[derive(Debug, PartialEq, Eq)]
pub struct Error(pub String);

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Error {
    pub fn from_task(error: impl fmt::Display) -> Self {
        Self(format!("task: {error}"))
    }
}

pub type Result<T, E = Error> = std::result::Result<T, E>;

/// A region by name.
pub struct Region<F, const D: usize = 1> {
    pub name: &'static str,
    marker: PhantomData<fn() -> F>,
}

impl<F, const D: usize> Region<F, D> {
    pub fn named(name: &'static str) -> Self {
        Self { name, marker: PhantomData }
    }
}

pub trait IntoTarget<F, const D: usize> {
    fn into_target(self) -> &'static str;
}

impl<F, const D: usize> IntoTarget<F, D> for &Region<F, D> {
    fn into_target(self) -> &'static str {
        self.name
    }
}

pub trait IntoArgument<T> {
    fn into_argument(self, builder: &mut generated::Builder) -> generated::Argument<T>;
}

impl<T> IntoArgument<T> for T {
    fn into_argument(self, _: &mut generated::Builder) -> generated::Argument<T> {
        generated::Argument(self)
    }
}

/// The context from which the body of a task launches.
pub struct Context {
    pub depth: usize,
}

/// A launch, as it was described.
pub struct Launch<T> {
    pub handle: &'static generated::TaskHandle,
    pub builder: generated::Builder,
    /// The body of a task without regions, by its types.
    pub free: Option<generated::FreeBody<T>>,
    marker: PhantomData<fn() -> T>,
}

impl<T> Launch<T> {
    /// Runs the body of a task without regions at point 7.
    pub fn run_free(self) -> Result<T> {
        let arguments = self.builder.arguments.expect("every launch says its arguments, if only ()");
        self.free.expect("the task has no regions")(arguments)
    }
}

impl<T: 'static> Launch<T> {
    /// Runs a variant of the task at point 7.
    pub fn run_variant(self, name: &str) -> Result<T> {
        let variant = generated::TASKS
            .iter()
            .find(|registration| std::ptr::eq((registration.task)(), self.handle) && registration.variant == name)
            .unwrap_or_else(|| panic!("no variant `{name}` is registered"));
        let arguments: Arc<dyn Any + Send + Sync> =
            self.builder.arguments.expect("every launch says its arguments, if only ()");
        let value = match variant.body {
            generated::Body::Leaf(run) => run(&generated::LeafCall::new(arguments.as_ref())),
            generated::Body::Context(run) => block_on(run(generated::ContextCall::new(arguments.clone()))),
        }?;
        Ok(*value.downcast().expect("a task's value has the type of its launch"))
    }
}

fn block_on<T>(mut future: Pin<Box<dyn Future<Output = T> + Send>>) -> T {
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    match future.as_mut().poll(&mut context) {
        std::task::Poll::Ready(value) => value,
        std::task::Poll::Pending => panic!("no body of these tests waits for another"),
    }
}
