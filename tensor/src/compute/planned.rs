//! A statement as tasks.

use std::sync::Arc;

use crate::format::Format;
use crate::lower::Output;
use crate::notation::TensorVariable;
use crate::plan::{Graph, Plan, PlanError};
use crate::sparse::Computation;

/// A statement that is planned, with the tensors that it needs.
#[derive(Clone, Debug)]
pub struct Planned {
    plan: Arc<Plan>,
    /// The operands, each as the plan has it and as the program calls it, in the format in which it is used.
    operands: Vec<(TensorVariable, TensorVariable)>,
    /// The result as it is declared, which it is converted to if points assemble it in another format.
    declared: TensorVariable,
}

impl Planned {
    /// A statement on tensors in levels, with its result as it is declared.
    ///
    /// # Errors
    /// [`PlanError`] if it can't be tasks.
    pub fn new(computation: &Computation<'_>, declared: &TensorVariable) -> Result<Self, PlanError> {
        let plan = Arc::new(Plan::new(computation.statement())?);
        let operands = plan.statement.operands().iter();
        let operands = operands.map(|own| (own.clone(), computation.stored_as(own))).collect();
        Ok(Self { plan, operands, declared: declared.clone() })
    }

    /// A statement on dense tensors.
    #[must_use]
    pub fn dense(plan: Arc<Plan>) -> Self {
        let operands = plan.statement.operands().iter().map(|own| (own.clone(), own.clone())).collect();
        let declared = plan.statement.result().clone();
        Self { plan, operands, declared }
    }

    /// The plan.
    #[must_use]
    pub fn plan(&self) -> &Arc<Plan> {
        &self.plan
    }

    /// The result as it is declared.
    #[must_use]
    pub fn declared(&self) -> &TensorVariable {
        &self.declared
    }

    /// The operands under their names in the program, in the formats in which they are used.
    pub fn operands(&self) -> impl Iterator<Item = &TensorVariable> + Clone {
        self.operands.iter().map(|(_, stored)| stored)
    }

    /// Whether the tensor that the program calls so is an operand.
    #[must_use]
    pub fn reads(&self, name: &str) -> bool {
        self.operands().any(|stored| stored.name() == name)
    }

    /// The operands, each as the plan has it and as the program calls it.
    pub(super) fn used(&self) -> &[(TensorVariable, TensorVariable)] {
        &self.operands
    }

    /// Whether the result is converted to the format that is declared.
    pub(super) fn is_converted(&self) -> bool {
        self.plan.statement.result().format() != self.declared.format()
    }

    /// The operands that are what the result was before.
    pub(super) fn old(&self) -> impl Iterator<Item = &TensorVariable> {
        self.operands.iter().filter(|(_, stored)| stored.name() == self.declared.name()).map(|(used, _)| used)
    }
}

/// Statements that are planned, in their order.
#[derive(Clone, Debug)]
pub struct Statements(Vec<Planned>);

impl Statements {
    /// These, in this order.
    #[must_use]
    pub fn new(planned: Vec<Planned>) -> Self {
        Self(planned)
    }

    /// All of them.
    #[must_use]
    pub fn all(&self) -> &[Planned] {
        &self.0
    }

    /// The graph of partitions and launches, on so many nodes.
    #[must_use]
    pub fn graph(&self, nodes: usize) -> Graph {
        let plans: Vec<Arc<Plan>> = self.0.iter().map(|planned| Arc::clone(planned.plan())).collect();
        if nodes > 1 { Graph::gathering(&plans) } else { Graph::new(&plans) }
    }

    /// The operands, each once in each format in which it is used, under their names in the program.
    #[must_use]
    pub fn operands(&self) -> Vec<TensorVariable> {
        let mut all: Vec<TensorVariable> = Vec::new();
        for stored in self.0.iter().flat_map(Planned::operands) {
            if !all.contains(stored) {
                all.push(stored.clone());
            }
        }
        all
    }

    /// The results as they are declared.
    pub fn results(&self) -> impl Iterator<Item = &TensorVariable> + Clone {
        self.0.iter().map(Planned::declared)
    }

    /// Whether a statement assigns to the tensor that the program calls so.
    #[must_use]
    pub fn assign(&self, name: &str) -> bool {
        self.results().any(|result| result.name() == name)
    }

    /// The formats in which an operand is used, and its own.
    #[must_use]
    pub fn formats(&self, tensor: &TensorVariable) -> Vec<Format> {
        let used = self.operands().into_iter().filter(|used| used.name() == tensor.name());
        used.map(|used| used.format().clone()).chain([tensor.format().clone()]).collect()
    }

    /// Whether all statements can be prepared before they run, if these tensors are there. What is assembled or
    /// converted is made anew each time, and so is all that is prepared for it; and what takes the place of another
    /// tensor is made when it is its turn.
    #[must_use]
    pub fn are_prepared_once(&self, is_there: impl Fn(&str) -> bool) -> bool {
        let names: Vec<&str> = self.results().map(TensorVariable::name).collect();
        let is_made = |(number, planned): (usize, &Planned)| {
            let is_other = is_there(names[number]) || names[..number].contains(&names[number]);
            let reads_other = planned.operands().any(|stored| {
                self.results().any(|result| result.name() == stored.name() && result.format() != stored.format())
            });
            let output = planned.plan.leaf().output;
            !planned.is_converted()
                && !reads_other
                && planned.old().next().is_none()
                && (output == Output::Elements || output == Output::Beside && !is_other)
        };
        self.0.iter().enumerate().all(is_made)
    }
}
