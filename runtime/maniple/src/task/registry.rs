//! Tasks that `#[task]` makes known at link time, so that every process of a run knows every task by the same name.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, LazyLock, OnceLock};

use linkme::distributed_slice;
use maniple_realm::layout::{Arrangement, LayoutConstraint};
use maniple_realm::machine::ProcessorKind;

use super::migratable::Migratable;
use super::{Body, BoxFuture, Codec, ContextCall, LeafCall, TaskDefinition, TaskOptions, Value};
use crate::support::error::Result;

/// All variants of all tasks that `#[task]` declares in the program.
#[distributed_slice]
pub static TASKS: [VariantRegistration];

/// One `#[task]` function.
pub struct VariantRegistration {
    /// The task that it implements.
    pub task: fn() -> &'static TaskHandle,
    /// The function's name.
    pub variant: &'static str,
    /// It declares the task: others are variants of it.
    pub declares: bool,
    /// The module, line and column in which it is written.
    pub place: (&'static str, u32, u32),
    /// The kind of processor that it runs on.
    pub processor: ProcessorKind,
    /// The options of the attribute.
    pub options: Options,
    /// The layouts that parameters ask for, by the numbers of their requirements.
    pub layouts: fn() -> Vec<(usize, LayoutConstraint)>,
    /// How results go to other nodes, if they can.
    pub codec: fn() -> Option<Codec>,
    /// How tasks migrate to other nodes, if they can.
    pub migratable: fn() -> Option<Migratable>,
    /// The code.
    pub body: StaticBody,
}

/// The options of a `#[task]` attribute.
pub struct Options {
    /// It only launches.
    pub inner: bool,
    /// The layout that it wants.
    pub layout: Option<Arrangement>,
    /// The mapper that is asked about the task.
    pub mapper: Option<&'static str>,
}

/// The code of a `#[task]` function.
pub enum StaticBody {
    /// Launches nothing.
    Leaf(fn(&LeafCall<'_>) -> Result<Value>),
    /// Launches.
    Context(fn(ContextCall) -> BoxFuture),
}

/// The name of a task that `#[task]` declares, and, once asked for, its definition with all variants of the program.
pub struct TaskHandle {
    name: &'static str,
    path: &'static str,
    definition: OnceLock<Arc<TaskDefinition>>,
}

impl TaskHandle {
    /// A handle. `path` is the task's full path.
    #[must_use]
    pub const fn new(name: &'static str, path: &'static str) -> Self {
        Self { name, path, definition: OnceLock::new() }
    }

    /// The task's name.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// The task's full path.
    #[must_use]
    pub fn path(&self) -> &'static str {
        self.path
    }

    /// The task, with its variants: the one that declares the task comes first, the others by name and place, which are
    /// the same on all nodes.
    #[inline]
    #[must_use]
    pub fn definition(&'static self) -> &'static Arc<TaskDefinition> {
        self.definition.get_or_init(|| Arc::new(self.define()))
    }

    fn define(&'static self) -> TaskDefinition {
        let mut mine: Vec<_> = TASKS.iter().filter(|variant| std::ptr::eq((variant.task)(), self)).collect();
        mine.sort_by_key(|variant| (!variant.declares, variant.variant, variant.place));
        let declaring = mine.first().filter(|variant| variant.declares);
        // Variants of one task return values of one type.
        let codec = declaring.and_then(|variant| (variant.codec)());
        let migratable = declaring.and_then(|variant| Some((self.path, (variant.migratable)()?)));
        let task = TaskDefinition::new(self.name).codec(codec).migrates(migratable);
        let task = match declaring.and_then(|variant| variant.options.mapper) {
            Some(mapper) => task.mapper(mapper),
            None => task,
        };
        mine.into_iter().fold(task, |task, variant| {
            let Options { inner, layout, mapper: _ } = variant.options;
            let layout = LayoutConstraint { arrangement: layout, ..LayoutConstraint::default() };
            let options = TaskOptions { inner, layout };
            let body = match variant.body {
                StaticBody::Leaf(body) => Body::Leaf(Arc::new(body)),
                StaticBody::Context(body) => Body::Context(Arc::new(body)),
            };
            let task = task.variant(variant.variant, variant.processor, options, body);
            (variant.layouts)()
                .into_iter()
                .fold(task, |task, (requirement, layout)| task.layout_of(requirement, layout))
        })
    }
}

/// The names of all tasks that `#[task]` declares in the program, in alphabetical order. Others may be made while it
/// runs.
#[must_use]
pub fn declared() -> Vec<&'static str> {
    let names: BTreeSet<&'static str> = TASKS.iter().map(|variant| (variant.task)().name()).collect();
    names.into_iter().collect()
}

/// The task of this path.
pub(crate) fn find(path: &str) -> Option<&'static Arc<TaskDefinition>> {
    static HANDLES: LazyLock<HashMap<&'static str, &'static TaskHandle>> =
        LazyLock::new(|| TASKS.iter().map(|variant| (variant.task)()).map(|handle| (handle.path(), handle)).collect());
    HANDLES.get(path).map(|handle| handle.definition())
}
