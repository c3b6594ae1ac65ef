//! Traces of a context, and the templates that were recorded of them.

use std::fmt;
use std::sync::Arc;

use maniple_analysis::repeats::CandidateId;
use maniple_realm::locks::Mutex;
use maniple_realm::{Event, Realm};
use maniple_region::TreeId;
use rustc_hash::FxHashMap;

use super::template::Template;
use crate::instances::store::{Cache, Discard};
use crate::launch::recording::RecordingProblem;
use crate::launch::recording::content::Fit;
use crate::launch::recording::recording::RecordingStep;
use crate::launch::{FillSite, LaunchSite};

/// Names a trace within its context.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum TraceId {
    /// One that the program has named.
    Named(&'static str),
    /// One that was found in the stream of launches.
    Found(CandidateId),
}

impl fmt::Display for TraceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Named(name) => write!(f, "trace `{name}`"),
            Self::Found(candidate) => write!(f, "found trace {candidate:?}"),
        }
    }
}

/// A stretch of launches that repeats.
pub(crate) struct Trace {
    pub(super) id: TraceId,
    /// The recorded templates, one for each state that the data was found in. The one used last comes last.
    pub(super) templates: Vec<Arc<Template>>,
    /// Recordings in a row that were of no use.
    failures: u32,
    /// So many runs are not recorded.
    rest: u32,
}

/// The first step of a run.
#[derive(Clone, Copy)]
pub(super) enum First<'a> {
    Launch(&'a LaunchSite),
    Fill(&'a FillSite),
}

impl First<'_> {
    fn begins(self, template: &Template) -> bool {
        match (self, template.steps.first()) {
            (First::Launch(site), Some(&RecordingStep::Launch(stage))) => template.stages[stage].site.is_like(site),
            (First::Fill(site), Some(&RecordingStep::Fill(fill))) => template.fills[fill].site.is_like(site),
            _ => false,
        }
    }
}

/// So many templates are kept of a trace.
const MOST_TEMPLATES: usize = 16;

/// After so many recordings in a row that were of no use, fewer and fewer are made.
const PATIENCE: u32 = 4;

impl Trace {
    fn new(id: TraceId) -> Self {
        Self { id, templates: Vec::new(), failures: 0, rest: 0 }
    }

    /// Takes up the template that begins with a launch or fill and whose launches would find everything as it is, if
    /// there is one.
    ///
    /// # Errors
    /// An event after which that is known.
    pub(super) fn take_up(&mut self, first: First<'_>, realm: &Realm) -> Result<Option<Arc<Template>>, Event> {
        for place in (0..self.templates.len()).rev() {
            let template = &self.templates[place];
            if !first.begins(template) {
                continue;
            }
            match template.take_up(realm) {
                Fit::No => {
                    if tracing::enabled!(tracing::Level::DEBUG) {
                        let unlike = template.misfits(realm);
                        tracing::debug!(trace = %self.id, unlike, "a recording does not fit now: it found this data elsewhere, or made by others; another is looked for, or made");
                    }
                }
                Fit::After(event) => return Err(event),
                Fit::Yes => {
                    let template = self.templates.remove(place);
                    self.templates.push(Arc::clone(&template));
                    return Ok(Some(template));
                }
            }
        }
        Ok(None)
    }

    /// Whether the next run is to be recorded.
    pub(super) fn wants_recording(&mut self) -> bool {
        if self.rest > 0 {
            self.rest -= 1;
            return false;
        }
        true
    }

    pub(super) fn add(&mut self, template: Template) {
        if self.templates.len() == MOST_TEMPLATES {
            self.templates.remove(0);
        }
        self.templates.push(Arc::new(template));
        self.failures = 0;
    }

    /// A recording was of no use. The time until the next one grows, to a limit.
    pub(super) fn failed(&mut self, problem: RecordingProblem) {
        self.failures += 1;
        if self.failures > PATIENCE {
            self.rest = 1 << (self.failures - PATIENCE).min(10);
        }
        let (id, failures) = (self.id, self.failures);
        match id {
            TraceId::Named(_) => tracing::info!(trace = %id, %problem, failures, "a run was recorded in vain"),
            TraceId::Found(_) => tracing::debug!(trace = %id, %problem, failures, "a run was recorded in vain"),
        }
    }

    /// Lets go of some templates, but for those that are being replayed. Whether there were any.
    fn forget_templates(&mut self, is_meant: impl Fn(&Template) -> bool) -> bool {
        let before = self.templates.len();
        self.templates.retain(|template| Arc::strong_count(template) > 1 || !is_meant(template));
        self.templates.len() < before
    }

    fn forget_tree(&mut self, tree: TreeId) {
        self.templates.retain(|template| !template.uses(tree));
    }

    /// Whether a template uses a region tree.
    pub(super) fn uses(&self, tree: TreeId) -> bool {
        self.templates.iter().any(|template| template.uses(tree))
    }
}

/// Templates, which hold on to instances. A trace that is being worked on keeps them.
impl Cache for Mutex<Trace> {
    fn discard(&self, extent: Discard) -> bool {
        extent == Discard::Instances && self.try_lock().is_some_and(|mut trace| trace.forget_templates(|_| true))
    }

    fn discard_of(&self, tree: TreeId) {
        if let Some(mut trace) = self.try_lock() {
            trace.forget_templates(|template| template.uses(tree));
        }
    }
}

/// All traces of a context.
#[derive(Default)]
pub(crate) struct TraceBook {
    traces: FxHashMap<TraceId, Arc<Mutex<Trace>>>,
    /// How many `trace` calls the program is inside of.
    pub(crate) depth: usize,
}

impl TraceBook {
    /// A trace, and whether it is new.
    pub(crate) fn get(&mut self, id: TraceId) -> (Arc<Mutex<Trace>>, bool) {
        let mut is_new = false;
        let trace = self.traces.entry(id).or_insert_with(|| {
            is_new = true;
            Arc::new(Mutex::new(Trace::new(id)))
        });
        (Arc::clone(trace), is_new)
    }

    pub(crate) fn forget(&mut self, id: TraceId) {
        self.traces.remove(&id);
    }

    /// A region was destroyed.
    pub(crate) fn forget_tree(&mut self, tree: TreeId) {
        self.traces.values().for_each(|trace| trace.lock().forget_tree(tree));
    }
}
