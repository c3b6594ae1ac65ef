//! Tasks: a name, and functionally equivalent implementations.

use std::fmt;
use std::sync::Arc;

use maniple_mapper::VariantInfo;
use maniple_realm::layout::LayoutConstraint;
use maniple_realm::machine::ProcessorKind;

use super::arguments::Arguments;
use super::body::{Body, BoxFuture, Variant};
use super::generator::{GeneratedVariant, Generator, VariantRequest};
use super::migratable::Migratable;
use super::{Codec, ContextCall, LeafCall, Value};
use crate::results::{self, Results};
use crate::support::error::Result;

/// A call that the runtime makes when a launch of a task of its own, which was given these arguments, has failed.
pub(crate) type OnFailure = fn(&Arguments, &Results);

/// The promises and requests of a variant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TaskOptions {
    /// It never looks at its data but only launches: it may start before the data is there.
    pub inner: bool,
    /// The layout that it asks of its data, and gets, whatever the mapper says.
    pub layout: LayoutConstraint,
}

/// A task: a name and one or more implementations that do the same.
///
/// `#[task]` makes one from a function; the builder here is what it stands on.
///
/// ```
/// use maniple::prelude::*;
/// use maniple::task::{TaskDefinition, TaskOptions, Value};
/// use std::sync::Arc;
///
/// let answer = TaskDefinition::new("answer").leaf(TaskOptions::default(), |_call| Ok(Value::new(42_i32)));
/// let runtime = Runtime::builder().workers(1).build()?;
/// let result = runtime.run(async |cx| {
///     let future = cx.launch(TaskLauncher::new(&Arc::new(answer)).typed::<i32>());
///     future.await
/// })?;
/// assert_eq!(result, 42);
/// # Ok::<(), maniple::Error>(())
/// ```
#[derive(Clone)]
pub struct TaskDefinition {
    name: String,
    infos: Vec<VariantInfo>,
    variants: Vec<Variant>,
    codec: Option<Codec>,
    /// The name of the mapper that is asked about it.
    mapper: Option<Box<str>>,
    /// The path by which all nodes know the task, and how it migrates to them.
    migratable: Option<(&'static str, Migratable)>,
    is_internal: bool,
    /// See [`may_wait`](Self::may_wait).
    may_wait: bool,
    /// Blocks of points go to nodes, whatever the mapper says.
    is_dealt_in_blocks: bool,
    on_failure: Option<OnFailure>,
    generator: Option<Arc<Generator>>,
}

impl TaskDefinition {
    /// A task without implementations yet.
    #[must_use]
    pub fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            infos: Vec::new(),
            variants: Vec::new(),
            codec: Some(Codec::of::<()>()),
            mapper: None,
            migratable: None,
            is_internal: false,
            may_wait: false,
            is_dealt_in_blocks: false,
            on_failure: None,
            generator: None,
        }
    }

    /// Adds an implementation for CPUs that launches nothing.
    #[must_use]
    pub fn leaf(
        self,
        options: TaskOptions,
        body: impl Fn(&LeafCall<'_>) -> Result<Value> + Send + Sync + 'static,
    ) -> Self {
        self.variant("leaf", ProcessorKind::Cpu, options, Body::Leaf(Arc::new(body)))
    }

    /// Adds an implementation for CPUs that launches other tasks.
    #[must_use]
    pub fn with_context<F>(self, options: TaskOptions, body: impl Fn(ContextCall) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<Value>> + Send + 'static,
    {
        let body = move |call| Box::pin(body(call)) as BoxFuture;
        self.variant("context", ProcessorKind::Cpu, options, Body::Context(Arc::new(body)))
    }

    /// Adds an implementation.
    #[must_use]
    pub fn variant(mut self, name: &'static str, processor: ProcessorKind, options: TaskOptions, body: Body) -> Self {
        self.infos.push(VariantInfo {
            name,
            processor,
            layout: options.layout,
            requirement_layouts: Vec::new(),
            is_leaf: matches!(body, Body::Leaf(_)),
            is_inner: options.inner,
        });
        self.may_wait |= matches!(body, Body::Context(_));
        self.variants.push(Variant { body });
        self
    }

    /// Says what the implementation that was added last asks of the layout of one requirement's data, and gets,
    /// whatever the mapper says. What this leaves open is as [`TaskOptions::layout`] says. There must be an
    /// implementation.
    ///
    /// ```
    /// use maniple::prelude::*;
    /// use maniple::task::{TaskDefinition, TaskOptions, Value};
    /// use maniple::{DimensionOrder, LayoutConstraint};
    ///
    /// // A matrix by columns, as BLAS has it, and a vector.
    /// let columns = LayoutConstraint { order: Some(DimensionOrder::column_major(2)), ..Default::default() };
    /// let multiply = TaskDefinition::new("multiply")
    ///     .leaf(TaskOptions::default(), |_call| Ok(Value::new(())))
    ///     .layout_of(0, columns);
    /// assert_eq!(multiply.variants()[0].layout_of(0), columns);
    /// assert_eq!(multiply.variants()[0].layout_of(1), LayoutConstraint::default());
    /// ```
    #[must_use]
    pub fn layout_of(mut self, requirement: usize, layout: LayoutConstraint) -> Self {
        if let Some(variant) = self.infos.last_mut() {
            let layouts = &mut variant.requirement_layouts;
            layouts.resize(layouts.len().max(requirement + 1), variant.layout);
            let LayoutConstraint { arrangement, order, align, pad } = layouts[requirement];
            layouts[requirement] = LayoutConstraint {
                arrangement: layout.arrangement.or(arrangement),
                order: layout.order.or(order),
                align: layout.align.or(align),
                pad: layout.pad.or(pad),
            };
        }
        self
    }

    /// Has implementations made while the program runs: for the layouts, types and dimensions that launches come with.
    /// It is asked when no implementation can work with the instances that a mapper has chosen: one that leaves the
    /// choice [open](maniple_mapper::TaskMapping::any_variant), as it is where a task has none for the processor.
    ///
    /// It is asked once for each request, and outside of all locks; launches that need the answer wait, and later ones
    /// know it, whichever task launches. What it makes is used wherever it fits. None, or a panic, stands for no
    /// implementation: the mapping has [failed](maniple_mapper::MappingFailure::NoVariant). Of one task up to 4,096
    /// requests are answered. What is made launches nothing, and runs on this node.
    ///
    /// ```
    /// use maniple::prelude::*;
    /// use maniple::task::{GeneratedVariant, TaskDefinition, Value};
    /// use std::sync::Arc;
    ///
    /// // A compiler would look at what is requested.
    /// let task = TaskDefinition::new("answer")
    ///     .codec(maniple::task::Codec::of::<i32>())
    ///     .generator(|_request| Some(GeneratedVariant::new(|_call| Ok(Value::new(42_i32)))));
    /// let task = Arc::new(task);
    /// let runtime = Runtime::builder().workers(1).build()?;
    /// let result = runtime.run(async |cx| cx.launch(TaskLauncher::new(&task).typed::<i32>()).await)?;
    /// assert_eq!(result, 42);
    /// # Ok::<(), maniple::Error>(())
    /// ```
    #[must_use]
    pub fn generator(
        mut self,
        make: impl Fn(&VariantRequest) -> Option<GeneratedVariant> + Send + Sync + 'static,
    ) -> Self {
        self.generator = Some(Arc::new(Generator::new(make)));
        self
    }

    pub(crate) fn generator_of(&self) -> Option<&Generator> {
        self.generator.as_deref()
    }

    /// Has an implementation made for a request.
    pub(crate) fn generate(&self, request: VariantRequest) {
        if let Some(generator) = &self.generator {
            generator.generate(&self.name, request);
        }
    }

    /// Has a mapper [of this name](crate::RuntimeBuilder::mapper_named) asked about its launches, unless they name
    /// another.
    #[must_use]
    pub fn mapper(mut self, name: &str) -> Self {
        self.mapper = Some(name.into());
        self
    }

    /// The name of the mapper that is asked about its launches, if it names one.
    #[must_use]
    pub fn mapper_name(&self) -> Option<&str> {
        self.mapper.as_deref()
    }

    /// Says how results go to other nodes; none if they can't. Without this, only `()` does.
    #[must_use]
    pub fn codec(mut self, codec: impl Into<Option<Codec>>) -> Self {
        self.codec = codec.into();
        self
    }

    /// Says how tasks migrate to other nodes.
    pub(crate) fn migrates(self, migratable: Option<(&'static str, Migratable)>) -> Self {
        Self { migratable, ..self }
    }

    pub(crate) fn migratable(&self) -> Option<(&'static str, &Migratable)> {
        self.migratable.as_ref().map(|(path, migratable)| (*path, migratable))
    }

    /// A task of the runtime's own, with which nodes exchange data.
    pub(crate) fn internal(self) -> Self {
        Self { is_internal: true, ..self }
    }

    /// Deals its points to nodes in blocks, without asking the mapper.
    pub(crate) fn dealt_in_blocks(self) -> Self {
        Self { is_dealt_in_blocks: true, ..self }
    }

    pub(crate) fn is_dealt_in_blocks(&self) -> bool {
        self.is_dealt_in_blocks
    }

    /// Whether it has an implementation that launches, and so may wait.
    #[inline]
    pub(crate) fn may_wait(&self) -> bool {
        self.may_wait
    }

    pub(crate) fn is_internal(&self) -> bool {
        self.is_internal
    }

    /// Has something done after each launch that fails, wholly or at some points. Those that end well pay nothing for
    /// it when they are replayed.
    pub(crate) fn when_failed(self, call: OnFailure) -> Self {
        Self { on_failure: Some(call), ..self }
    }

    pub(crate) fn on_failure(&self) -> Option<OnFailure> {
        self.on_failure
    }

    pub(crate) fn result_codec(&self) -> Option<Codec> {
        self.codec
    }

    /// The task's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The implementations.
    #[must_use]
    pub fn variants(&self) -> &[VariantInfo] {
        &self.infos
    }

    /// All implementations, with their numbers: those that were made while the program runs come last.
    pub(crate) fn infos(&self) -> impl Iterator<Item = (usize, &VariantInfo)> {
        let made = self.generator.iter().flat_map(|generator| generator.infos());
        self.infos.iter().chain(made).enumerate()
    }

    /// The description of a variant, which must exist.
    pub(crate) fn info(&self, variant: usize) -> &VariantInfo {
        match self.made(variant) {
            Some((info, _)) => info,
            None => &self.infos[variant],
        }
    }

    pub(crate) fn body(&self, variant: usize) -> &Body {
        match self.made(variant) {
            Some((_, made)) => &made.body,
            None => &self.variants[variant].body,
        }
    }

    /// The code of a variant, if there is that.
    pub(crate) fn body_if_any(&self, variant: usize) -> Option<&Body> {
        self.variants.get(variant).map(|variant| &variant.body)
    }

    #[inline]
    fn made(&self, variant: usize) -> Option<&(VariantInfo, Variant)> {
        self.generator.as_ref()?.made(variant.checked_sub(self.variants.len())?)
    }
}

impl fmt::Debug for TaskDefinition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TaskDefinition").field("name", &self.name).field("variants", &self.infos).finish()
    }
}

impl results::Task for TaskDefinition {
    fn name(&self) -> &str {
        self.name()
    }

    fn result_codec(&self) -> Option<Codec> {
        self.result_codec()
    }
}
