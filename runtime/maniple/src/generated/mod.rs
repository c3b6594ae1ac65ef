//! What the code that `#[task]` generates calls. Not for use by hand.

use std::any::Any;
use std::marker::PhantomData;

use bytemuck::NoUninit;
use maniple_region::{Field, FieldId, FieldType, FieldValue, Privilege, ReductionOperator, Requirement, Target};
use maniple_space::{AnyPoint, Point};
use serde::Serialize;
use serde::de::DeserializeOwned;

mod argument;

pub use linkme;
pub use maniple_region::Checked;

pub use self::argument::IntoArgument;
pub use crate::fork::{ForkCall, Free, FreeResult};
pub use crate::future::Argument;
pub use crate::output::{Row, RowColumn};
pub use crate::task::migratable::{Migratable, MigratedRequirement};
pub use crate::task::registry::{Options, StaticBody as Body, TASKS, TaskHandle, VariantRegistration};
pub use crate::task::{BoxFuture, Codec, ContextCall, LeafCall, Value};

use crate::error::{Error, Result};
use crate::fork::{self, Sources};
use crate::launch::{Launch, TaskLauncher};
use crate::task::arguments::Own;

/// Compiles if operator `Op` is defined on the type of a field.
pub const fn is_reducible<Op: ReductionOperator<T>, F, T: FieldValue>(_: Field<F, T>) {}

/// Finds the [`Codec`] of a type, if serde knows the type: by `CodecOf::<T>::NEW.codec()` with [`NoCodec`] in scope.
pub struct CodecOf<T>(PhantomData<fn() -> T>);

impl<T> CodecOf<T> {
    /// To be asked.
    pub const NEW: Self = Self(PhantomData);
}

impl<T: Serialize + DeserializeOwned + Send + Sync + 'static> CodecOf<T> {
    /// The codec.
    #[must_use]
    pub fn codec(&self) -> Option<Codec> {
        Some(Codec::of::<T>())
    }
}

/// What the compiler finds where serde does not know the type.
pub trait NoCodec {
    /// None.
    fn codec(&self) -> Option<Codec> {
        None
    }
}

impl<T> NoCodec for CodecOf<T> {}

/// Finds the [`FieldType`] of a type without padding: by `PlainTypeOf::<T>::NEW.plain_type()` with [`NoPlainType`] in
/// scope.
pub struct PlainTypeOf<T>(PhantomData<fn() -> T>);

impl<T> PlainTypeOf<T> {
    /// To be asked.
    pub const NEW: Self = Self(PhantomData);
}

impl<T: FieldValue + NoUninit> PlainTypeOf<T> {
    /// The type, of which it is known that it has no padding.
    #[must_use]
    pub fn plain_type(&self) -> Option<FieldType> {
        Some(FieldType::plain::<T>())
    }
}

/// What the compiler finds where a type may have padding.
pub trait NoPlainType {
    /// None.
    fn plain_type(&self) -> Option<FieldType> {
        None
    }
}

impl<T> NoPlainType for PlainTypeOf<T> {}

/// Finds how a task migrates to another node, if serde knows its arguments `A`: as [`CodecOf`].
pub struct MigratableOf<A>(PhantomData<fn() -> A>);

impl<A> MigratableOf<A> {
    /// To be asked.
    pub const NEW: Self = Self(PhantomData);
}

impl<A: Serialize + DeserializeOwned + Send + Sync + 'static> MigratableOf<A> {
    /// How.
    #[must_use]
    pub fn migratable(&self, requirements: fn() -> Vec<MigratedRequirement>) -> Option<Migratable> {
        Some(Migratable::of::<A>(requirements()))
    }
}

/// What the compiler finds where serde does not know the arguments.
pub trait NotMigratable {
    /// The task stays.
    fn migratable(&self, _requirements: fn() -> Vec<MigratedRequirement>) -> Option<Migratable> {
        None
    }
}

impl<A> NotMigratable for MigratableOf<A> {}

/// A launch being put together.
pub struct Builder<'a> {
    /// None for a task without regions.
    general: Option<&'a mut General>,
    own: Own,
    /// What arguments are results of.
    sources: Sources,
}

/// The launch of a task with regions.
struct General {
    launcher: TaskLauncher,
    /// Of a region parameter that has no requirement yet.
    target: Option<Target>,
}

impl Builder<'_> {
    /// The data of a region parameter.
    pub fn region(&mut self, _number: usize, _name: &str, target: Target) {
        if let Some(general) = &mut self.general {
            general.target = Some(target);
        }
    }

    /// What is done with fields of the last region.
    pub fn requirement(&mut self, privilege: Privilege, fields: &[FieldId]) {
        if let Some(General { launcher, target }) = &mut self.general
            // The first requirement takes the target, others are of the same as the one before.
            && let Some(target) =
                target.take().or_else(|| launcher.requirements().last().map(|last| last.target.clone()))
        {
            launcher.add_requirement(Requirement::new(target, fields.iter().copied().collect(), privilege));
        }
    }

    /// All arguments.
    pub fn arguments<A: Any + Send + Sync>(&mut self, arguments: A) {
        if let Some(general) = &mut self.general {
            general.launcher.set_arguments(arguments, self.own);
        }
    }

    /// Has the launch wait for an argument.
    pub fn wait_for<T: Clone + Send + Sync + 'static>(&mut self, argument: Argument<T>) -> Argument<T> {
        self.own = self.own.max(Own::of::<T>()).max(Own::Futures);
        match &mut self.general {
            Some(general) => general.launcher.wait_for(&argument),
            None => self.sources.add(argument.source()),
        }
        argument
    }

    /// An argument is a value of this type.
    #[inline]
    pub fn value<T>(&mut self) {
        self.own = self.own.max(Own::of::<T>());
    }
}

/// Puts a launch together.
pub fn launch<T>(handle: &'static TaskHandle, build: impl FnOnce(&mut Builder<'_>)) -> Launch<T> {
    let mut general = General { launcher: TaskLauncher::new(handle.definition()), target: None };
    build(&mut Builder { general: Some(&mut general), own: Own::Nothing, sources: Sources::default() });
    general.launcher.typed()
}

/// Puts a launch of a task without regions together.
#[inline]
pub fn launch_free<B: Free>(
    handle: &'static TaskHandle,
    build: impl FnOnce(&mut Builder<'_>) -> B::Arguments,
) -> Launch<B::Value> {
    let mut builder = Builder { general: None, own: Own::Nothing, sources: Sources::default() };
    let arguments = build(&mut builder);
    let Builder { own, sources, .. } = builder;
    let call = |call, arguments| B::start(call, arguments);
    Launch::free(fork::describe::<B, _, _>(handle.definition(), (arguments, own), sources, call))
}

/// The result of a body without regions that can't fail.
///
/// # Errors
/// Never.
#[inline]
pub fn free_value<T>(value: T) -> FreeResult<T> {
    Ok(value)
}

/// The result of a body without regions that can fail.
///
/// # Errors
/// The body's, as an error of the application unless it is one of the runtime's.
#[inline]
pub fn free_fallible<T, E: Into<Box<dyn std::error::Error + Send + Sync>>>(
    result: std::result::Result<T, E>,
) -> FreeResult<T> {
    match result {
        Ok(value) => Ok(value),
        Err(error) => Err(Box::new(Error::from_task(error))),
    }
}

/// The point of a call, in the dimension that the task declares.
///
/// # Errors
/// [`Error::Launch`] if the launch has another.
pub fn point<const D: usize>(point: AnyPoint) -> Result<Point<D>> {
    point.typed().map_err(|error| Error::launch("point", error.to_string()))
}

/// The result of a body that can't fail.
///
/// # Errors
/// Never.
pub fn value<T: Send + Sync + 'static>(value: T) -> Result<Value> {
    Ok(Value::new(value))
}

/// The result of a body that can fail.
///
/// # Errors
/// The body's, as an error of the application unless it is one of the runtime's.
pub fn fallible<T: Send + Sync + 'static, E: Into<Box<dyn std::error::Error + Send + Sync>>>(
    result: std::result::Result<T, E>,
) -> Result<Value> {
    result.map(Value::new).map_err(Error::from_task)
}
