//! What the code that `#[task]` generates calls. Not for use by hand.

use std::any::Any;

use maniple_region::{FieldId, Privilege, Requirement, Target};
use maniple_space::{AnyPoint, Point};

pub use linkme;

pub use crate::fork::ForkCall;
pub use crate::task::registry::{Options, StaticBody as Body, TASKS, TaskHandle, VariantRegistration};
pub use crate::task::{Argument, BoxFuture, ContextCall, LeafCall, Value};

use crate::error::{Error, Result};
use crate::fork;
use crate::future::Source;
use crate::launch::{Launch, TaskLauncher};

/// A launch being put together.
pub struct Builder {
    /// None for a task without regions.
    launcher: Option<TaskLauncher>,
    target: Option<Target>,
    /// No argument owns anything.
    is_plain: bool,
    /// What arguments are results of.
    sources: Vec<Source>,
}

impl Builder {
    fn new(launcher: Option<TaskLauncher>) -> Self {
        Self { launcher, target: None, is_plain: true, sources: Vec::new() }
    }

    /// The data of a region parameter.
    pub fn region(&mut self, _number: usize, _name: &str, target: Target) {
        self.target = Some(target);
    }

    /// What is done with fields of the last region.
    pub fn requirement(&mut self, privilege: Privilege, fields: &[FieldId]) {
        if let (Some(target), Some(launcher)) = (&self.target, &mut self.launcher) {
            launcher.add_requirement(Requirement::new(target.clone(), fields.iter().copied().collect(), privilege));
        }
    }

    /// All arguments.
    pub fn arguments<A: Any + Send + Sync>(&mut self, arguments: A) {
        if let Some(launcher) = &mut self.launcher {
            launcher.set_arguments(arguments, self.is_plain);
        }
    }

    /// Has the launch wait for an argument.
    pub fn wait_for<T: Clone + Send + Sync + 'static>(&mut self, argument: Argument<T>) -> Argument<T> {
        self.is_plain = false;
        match &mut self.launcher {
            Some(launcher) => launcher.wait_for(&argument),
            None => self.sources.extend(argument.source()),
        }
        argument
    }

    /// An argument is a value of this type.
    pub fn value<T>(&mut self) {
        self.is_plain &= !std::mem::needs_drop::<T>();
    }
}

/// Puts a launch together.
pub fn launch<T>(handle: &'static TaskHandle, build: impl FnOnce(&mut Builder)) -> Launch<T> {
    let mut builder = Builder::new(Some(TaskLauncher::new(handle.definition())));
    build(&mut builder);
    builder.launcher.expect("it was given").typed()
}

/// The body of a task without regions, by its types.
pub trait Free {
    /// The arguments, a tuple.
    type Arguments: Clone + Send + Sync + 'static;
    /// What the task returns.
    type Value: Send + Sync + 'static;

    /// The body, with these arguments.
    fn start(call: ForkCall, arguments: Self::Arguments) -> impl Future<Output = Result<Self::Value>> + Send + 'static;
}

/// Puts a launch of a task without regions together.
pub fn launch_free<B: Free>(
    handle: &'static TaskHandle,
    build: impl FnOnce(&mut Builder) -> B::Arguments,
) -> Launch<B::Value> {
    let mut builder = Builder::new(None);
    let arguments = build(&mut builder);
    let Builder { is_plain, sources, .. } = builder;
    Launch::free(fork::describe(handle.definition(), (arguments, is_plain), sources, |call, arguments| {
        B::start(call, arguments)
    }))
}

/// The result of a body without regions that can't fail.
///
/// # Errors
/// Never.
pub fn free_value<T>(value: T) -> Result<T> {
    Ok(value)
}

/// The result of a body without regions that can fail.
///
/// # Errors
/// The body's, as an error of the application unless it is one of the runtime's.
pub fn free_fallible<T, E: Into<Box<dyn std::error::Error + Send + Sync>>>(
    result: std::result::Result<T, E>,
) -> Result<T> {
    result.map_err(Error::from_task)
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
    Ok(Box::new(value))
}

/// The result of a body that can fail.
///
/// # Errors
/// The body's, as an error of the application unless it is one of the runtime's.
pub fn fallible<T: Send + Sync + 'static, E: Into<Box<dyn std::error::Error + Send + Sync>>>(
    result: std::result::Result<T, E>,
) -> Result<Value> {
    result.map(|value| Box::new(value) as Value).map_err(Error::from_task)
}
