//! Variants that are made while the program runs.

use std::fmt;
use std::sync::{Arc, OnceLock};

use maniple_mapper::VariantInfo;
use maniple_realm::fault;
use maniple_realm::layout::LayoutConstraint;
use maniple_realm::locks::Mutex;
use maniple_realm::machine::ProcessorKind;
use maniple_region::{FieldType, Privilege};

use super::LeafCall;
use super::body::{Body, Variant};
use crate::data::value::Value;
use crate::support::error::Result;

/// The processor and the data of a variant for which a [generator](crate::task::TaskDefinition::generator) is asked.
#[derive(Clone, Debug, PartialEq)]
pub struct VariantRequest {
    /// The kind of processor.
    pub processor: ProcessorKind,
    /// The data of each requirement.
    pub requirements: Vec<WantedData>,
}

/// The data of a requirement.
#[derive(Clone, Debug, PartialEq)]
pub struct WantedData {
    /// The layout of its instances: what is `None` they do not have in common.
    pub layout: LayoutConstraint,
    /// The types of its fields, by their ids.
    pub fields: Vec<FieldType>,
    /// How many dimensions its region has.
    pub dimensions: usize,
    /// The privilege of the requirement.
    pub privilege: Privilege,
}

/// A variant that launches nothing, made for a [request](VariantRequest).
pub struct GeneratedVariant {
    body: Body,
    layouts: Vec<LayoutConstraint>,
}

impl GeneratedVariant {
    /// A variant that works with any layout of the requested dimensions and types.
    #[must_use]
    pub fn new(body: impl Fn(&LeafCall<'_>) -> Result<Value> + Send + Sync + 'static) -> Self {
        Self { body: Body::Leaf(Arc::new(body)), layouts: Vec::new() }
    }

    /// Says what it asks of the layout of one requirement's data: no more than was requested.
    #[must_use]
    pub fn layout_of(mut self, requirement: usize, layout: LayoutConstraint) -> Self {
        self.layouts.resize(self.layouts.len().max(requirement + 1), LayoutConstraint::default());
        self.layouts[requirement] = layout;
        self
    }

    /// Says that it asks for the layouts that were requested, all of them.
    #[must_use]
    pub fn for_layouts_of(mut self, request: &VariantRequest) -> Self {
        self.layouts = request.requirements.iter().map(|data| data.layout).collect();
        self
    }
}

impl fmt::Debug for GeneratedVariant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GeneratedVariant").field("layouts", &self.layouts).finish_non_exhaustive()
    }
}

/// So many variants are made of one task at most, and so many requests answered.
const MOST: usize = CHUNK * CHUNK;

/// Variants are kept in so many chunks of so many, which are made when they are needed.
const CHUNK: usize = 64;

type Chunk = [OnceLock<(VariantInfo, Variant)>; CHUNK];

/// Makes variants of one task.
pub(crate) struct Generator {
    make: Box<Make>,
    /// Requests, each with the answer once it is there.
    asked: Mutex<Vec<(VariantRequest, Arc<OnceLock<()>>)>>,
    made: [OnceLock<Box<Chunk>>; CHUNK],
}

type Make = dyn Fn(&VariantRequest) -> Option<GeneratedVariant> + Send + Sync;

impl Generator {
    pub(super) fn new(make: impl Fn(&VariantRequest) -> Option<GeneratedVariant> + Send + Sync + 'static) -> Self {
        Self { make: Box::new(make), asked: Mutex::default(), made: [const { OnceLock::new() }; CHUNK] }
    }

    /// Whether a request was not answered yet.
    pub(crate) fn is_to_be_asked(&self, request: &VariantRequest) -> bool {
        let asked = self.asked.lock();
        match asked.iter().find(|(known, _)| known == request) {
            Some((_, answer)) => answer.get().is_none(),
            None => asked.len() < MOST,
        }
    }

    /// Has a variant made for a request. Asked for the same at a time, one thread makes it, and the others wait.
    pub(super) fn generate(&self, task: &str, request: VariantRequest) {
        let mut asked = self.asked.lock();
        let answer = match asked.iter().find(|(known, _)| *known == request) {
            Some((_, answer)) => Arc::clone(answer),
            None => {
                let answer = Arc::default();
                asked.push((request.clone(), Arc::clone(&answer)));
                answer
            }
        };
        drop(asked);
        answer.get_or_init(|| self.make(task, &request));
    }

    fn make(&self, task: &str, request: &VariantRequest) {
        let made = fault::catch(|| (self.make)(request)).unwrap_or_else(|fault| {
            let problem = fault.panic().map_or_else(|| fault.to_string(), |panic| panic.message.clone());
            tracing::warn!(task, problem, "the generator of a task's variants panicked; it counts as having made none");
            None
        });
        let Some(GeneratedVariant { body, layouts }) = made else { return };
        let number = self.infos().count();
        let wanted = |requirement: usize| request.requirements.get(requirement).map(|data| data.layout);
        let asks_for_more = layouts
            .iter()
            .enumerate()
            .find(|(requirement, layout)| !wanted(*requirement).unwrap_or_default().entails(layout));
        if let Some((requirement, layout)) = asks_for_more {
            let has = wanted(requirement).unwrap_or_default();
            let problem = format!("it asks for requirement {requirement} as {layout}, which is there as {has}");
            tracing::warn!(task, problem, "a variant that was generated does not fit the request; it is not used");
            return;
        }
        let info = VariantInfo {
            name: "generated",
            processor: request.processor,
            layout: LayoutConstraint::default(),
            requirement_layouts: layouts,
            is_leaf: true,
            is_inner: false,
        };
        // Another thread may make one for another request.
        let mut new = Some((info, Variant { body }));
        for number in number..MOST {
            let chunk = self.made[number / CHUNK].get_or_init(|| Box::new([const { OnceLock::new() }; CHUNK]));
            match new.take().map(|variant| chunk[number % CHUNK].set(variant)) {
                Some(Err(variant)) => new = Some(variant),
                Some(Ok(())) | None => return,
            }
        }
    }

    /// The descriptions of the variants that were made, in the order of their numbers.
    pub(super) fn infos(&self) -> impl Iterator<Item = &VariantInfo> {
        let made = self.made.iter().map_while(OnceLock::get).flat_map(|chunk| chunk.iter());
        made.map_while(OnceLock::get).map(|(info, _)| info)
    }

    pub(super) fn made(&self, number: usize) -> Option<&(VariantInfo, Variant)> {
        self.made.get(number / CHUNK)?.get()?[number % CHUNK].get()
    }
}
