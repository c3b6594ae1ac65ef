//! Names that only the macros' output uses.

use std::any::Any;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;

pub use linkme;

use super::access::{PieceInfo, Read, Reduce, Write};
use super::{
    AnyPoint, Arrangement, Context, Error, Field, FieldId, FieldNamed, FieldType, Launch, LayoutConstraint, Point,
    Privilege, ProcessorKind, Region, Result,
};

pub struct Checked<F, const CHECKED: bool>(PhantomData<F>);

impl<F: FieldNamed<NAME>, const NAME: u64> FieldNamed<NAME> for Checked<F, true> {
    type Type = F::Type;
    const ID: FieldId = F::ID;
}

pub const fn is_reducible<Op: 'static, F, T: 'static>(_: Field<F, T>) {}

#[linkme::distributed_slice]
pub static TASKS: [VariantRegistration];

pub struct TaskHandle {
    pub name: &'static str,
    pub path: &'static str,
}

impl TaskHandle {
    pub const fn new(name: &'static str, path: &'static str) -> Self {
        Self { name, path }
    }
}

pub struct VariantRegistration {
    pub task: fn() -> &'static TaskHandle,
    pub variant: &'static str,
    pub declares: bool,
    pub place: (&'static str, u32, u32),
    pub processor: ProcessorKind,
    pub options: Options,
    pub layouts: fn() -> Vec<(usize, LayoutConstraint)>,
    pub codec: fn() -> Option<Codec>,
    pub migratable: fn() -> Option<Migratable>,
    pub body: Body,
}

pub struct PlainTypeOf<T>(PhantomData<T>);

impl<T> PlainTypeOf<T> {
    pub const NEW: Self = Self(PhantomData);
}

/// Nothing is known of types, here.
pub trait NoPlainType {
    fn plain_type(&self) -> Option<FieldType> {
        None
    }
}

impl<T> NoPlainType for PlainTypeOf<T> {}

/// Stands for a way to send results: of types that are `Copy`, here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Codec;

pub struct CodecOf<T>(PhantomData<T>);

impl<T> CodecOf<T> {
    pub const NEW: Self = Self(PhantomData);
}

impl<T: Copy> CodecOf<T> {
    pub fn codec(&self) -> Option<Codec> {
        Some(Codec)
    }
}

pub trait NoCodec {
    fn codec(&self) -> Option<Codec> {
        None
    }
}

impl<T> NoCodec for CodecOf<T> {}

/// Stands for how a task migrates: if its arguments are `Copy`, here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Migratable(pub Vec<MigratedRequirement>);

/// One requirement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MigratedRequirement {
    pub row: &'static str,
    pub privilege: Privilege,
    pub fields: Vec<FieldId>,
}

impl MigratedRequirement {
    pub fn of<F>(privilege: Privilege, fields: &[FieldId]) -> Self {
        Self { row: std::any::type_name::<F>(), privilege, fields: fields.to_vec() }
    }
}

pub struct MigratableOf<A>(PhantomData<A>);

impl<A> MigratableOf<A> {
    pub const NEW: Self = Self(PhantomData);
}

impl<A: Copy> MigratableOf<A> {
    pub fn migratable(&self, requirements: fn() -> Vec<MigratedRequirement>) -> Option<Migratable> {
        Some(Migratable(requirements()))
    }
}

pub trait NotMigratable {
    fn migratable(&self, _: fn() -> Vec<MigratedRequirement>) -> Option<Migratable> {
        None
    }
}

impl<A> NotMigratable for MigratableOf<A> {}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    pub inner: bool,
    pub layout: Option<Arrangement>,
    pub mapper: Option<&'static str>,
}

pub enum Body {
    Leaf(for<'a> fn(&LeafCall<'a>) -> Result<Value>),
    Context(fn(ContextCall) -> BoxFuture),
}

pub type Value = Box<dyn Any + Send + Sync>;
pub type BoxFuture = Pin<Box<dyn Future<Output = Result<Value>> + Send>>;

#[derive(Clone, Copy)]
pub struct Argument<T>(pub T);

impl<T: Clone> Argument<T> {
    pub fn get(&self, _: AnyPoint) -> Result<T> {
        Ok(self.0.clone())
    }
}

impl<T> Argument<T> {
    pub fn take(self, _: AnyPoint) -> Result<T> {
        Ok(self.0)
    }
}

/// The data and the arguments of a launch, in the order in which it was told of them.
#[derive(Default)]
pub struct Builder {
    pub regions: Vec<(usize, &'static str, &'static str)>,
    pub requirements: Vec<(usize, Privilege, Vec<FieldId>)>,
    pub arguments: Option<Arc<dyn Any + Send + Sync>>,
}

impl Builder {
    pub fn region(&mut self, number: usize, name: &'static str, target: &'static str) {
        self.regions.push((number, name, target));
    }

    pub fn requirement(&mut self, privilege: Privilege, fields: &[FieldId]) {
        let region = self.regions.len() - 1;
        self.requirements.push((region, privilege, fields.to_vec()));
    }

    pub fn arguments(&mut self, arguments: impl Any + Send + Sync) {
        self.arguments = Some(Arc::new(arguments));
    }
}

pub fn launch<T>(handle: &'static TaskHandle, describe: impl FnOnce(&mut Builder)) -> Launch<T> {
    let mut builder = Builder::default();
    describe(&mut builder);
    Launch { handle, builder, free: None, marker: PhantomData }
}

/// Runs the body of a task without regions with its arguments.
pub type FreeBody<T> = fn(Arc<dyn Any + Send + Sync>) -> Result<T>;

/// The body of a task without regions.
pub trait Free {
    type Arguments: Any + Clone + Send + Sync;
    type Value: Any + Send + Sync;

    const LAUNCHES: bool;

    fn start(
        call: ForkCall,
        arguments: Self::Arguments,
    ) -> impl Future<Output = FreeResult<Self::Value>> + Send + 'static;
}

pub fn launch_free<B: Free>(
    handle: &'static TaskHandle,
    describe: impl FnOnce(&mut Builder) -> B::Arguments,
) -> Launch<B::Value> {
    let mut builder = Builder::default();
    let arguments = describe(&mut builder);
    builder.arguments(arguments);
    Launch { handle, builder, free: Some(start::<B>), marker: PhantomData }
}

fn start<B: Free>(arguments: Arc<dyn Any + Send + Sync>) -> Result<B::Value> {
    let arguments = arguments.downcast::<B::Arguments>().ok().and_then(Arc::into_inner);
    let call = ForkCall { context: Context { depth: 3 } };
    let body = B::start(call, arguments.expect("the launch alone has its arguments"));
    super::block_on(Box::pin(body)).map_err(|error| *error)
}

/// The future of such a body in another launch.
pub fn run_free<B: Free>(call: ContextCall) -> BoxFuture {
    Box::pin(async move {
        let arguments = call.arguments::<B::Arguments>()?;
        let body = B::start(ForkCall { context: Context { depth: 3 } }, B::Arguments::clone(&arguments));
        body.await.map(|value| Box::new(value) as Value).map_err(|error| *error)
    })
}

pub struct ForkCall {
    context: Context,
}

impl ForkCall {
    pub fn context(&self) -> &Context {
        &self.context
    }

    pub fn point(&self) -> AnyPoint {
        AnyPoint(7)
    }
}

pub struct LeafCall<'a> {
    arguments: &'a (dyn Any + Send + Sync),
}

impl<'a> LeafCall<'a> {
    pub(super) fn new(arguments: &'a (dyn Any + Send + Sync)) -> Self {
        Self { arguments }
    }

    pub fn arguments<A: 'static>(&self) -> Result<&'a A> {
        self.arguments.downcast_ref().ok_or_else(|| Error("the arguments have other types".into()))
    }

    pub fn point(&self) -> AnyPoint {
        AnyPoint(7)
    }

    pub fn read<T, const D: usize>(&self, requirement: usize, field: FieldId) -> Result<Read<'a, T, D>> {
        Ok(Read(requirement, field, PhantomData))
    }

    pub fn write<T, const D: usize>(&self, requirement: usize, field: FieldId) -> Result<Write<'a, T, D>> {
        Ok(Write(requirement, field, PhantomData))
    }

    pub fn reduce<Op, T, const D: usize>(&self, requirement: usize, field: FieldId) -> Result<Reduce<'a, Op, T, D>> {
        Ok(Reduce(requirement, field, PhantomData))
    }

    pub fn piece<F, const D: usize>(&self, requirement: usize) -> Result<PieceInfo<'a, F, D>> {
        Ok(PieceInfo(requirement, PhantomData))
    }
}

pub struct ContextCall {
    arguments: Arc<dyn Any + Send + Sync>,
    context: Context,
}

impl ContextCall {
    pub(super) fn new(arguments: Arc<dyn Any + Send + Sync>) -> Self {
        Self { arguments, context: Context { depth: 3 } }
    }

    pub fn context(&self) -> &Context {
        &self.context
    }

    pub fn arguments<A: Any + Send + Sync>(&self) -> Result<Arc<A>> {
        self.arguments.clone().downcast().map_err(|_| Error("the arguments have other types".into()))
    }

    pub fn point(&self) -> AnyPoint {
        AnyPoint(7)
    }

    pub fn region<F, const D: usize>(&self, requirement: usize) -> Result<Region<F, D>> {
        Ok(Region::named(["first", "second", "third", "fourth"][requirement]))
    }
}

pub fn point<const D: usize>(point: AnyPoint) -> Result<Point<D>> {
    Ok(Point([point.0; D]))
}

pub fn value<T: Any + Send + Sync>(value: T) -> Result<Value> {
    Ok(Box::new(value))
}

pub fn fallible<T: Any + Send + Sync, E: std::fmt::Display>(result: Result<T, E>) -> Result<Value> {
    result.map(|value| Box::new(value) as Value).map_err(Error::from_task)
}

pub type FreeResult<T> = Result<T, Box<Error>>;

pub fn free_value<T>(value: T) -> FreeResult<T> {
    Ok(value)
}

pub fn free_fallible<T, E: std::fmt::Display>(result: Result<T, E>) -> FreeResult<T> {
    result.map_err(|error| Box::new(Error::from_task(error)))
}

/// Rows that a task returns.
pub trait Row: Sized {
    type Columns: Default;
    fn push(self, columns: &mut Self::Columns);
    fn each(columns: &mut Self::Columns, visit: &mut dyn FnMut(FieldId, &mut dyn RowColumn));
}

/// The values of one field of them.
pub trait RowColumn {
    fn rows(&self) -> usize;
}

impl<T> RowColumn for Vec<T> {
    fn rows(&self) -> usize {
        self.len()
    }
}
