//! Programs: assignments that are computed one after the other.
//!
//! A [`Program`] is what the user writes: `T(i,k) = B(i,j) * C(j,k); A(i,l) = T(i,k) * D(k,l)`. Each assignment is a
//! statement of its own, which is scheduled and distributed by itself.
//!
//! An assignment that says several things at once is divided ([`Program::divided`]): sums of products become several
//! assignments, and products of three and more tensors several products of two, with temporary tensors. So each part
//! has loops of its own, over which it can be distributed, or which a library computes.
//!
//! ```
//! use maniple_tensor::cost::Rates;
//! use maniple_tensor::element::ElementType;
//! use maniple_tensor::notation::TensorVariable;
//! use maniple_tensor::program::Program;
//!
//! let tensors = ["A", "B", "C", "D"].map(|name| TensorVariable::new(name, ElementType::F64, [300, 300]));
//! let sum = Program::parse("A(i,j) = B(i,k) * C(k,j) + D(i,j)", &tensors)?;
//! assert_eq!(sum.divided(&Rates::default()).to_string(), "A(i,j) = D(i,j)\nA(i,j) += reduce(+, k, B(i,k) * C(k,j))\n");
//!
//! let chain = Program::parse("A(i,l) = B(i,j) * C(j,k) * D(k,l)", &tensors)?;
//! assert_eq!(
//!     chain.divided(&Rates::default()).to_string(),
//!     "t(i,k) = reduce(+, j, B(i,j) * C(j,k))\nA(i,l) = reduce(+, k, t(i,k) * D(k,l))\n"
//! );
//! # Ok::<(), maniple_tensor::notation::NotationError>(())
//! ```
//!
//! | in reading order | |
//! | --- | --- |
//! | here | programs, their tensors, their text, and what they mean |
//! | `terms` | sums to several assignments |
//! | `factors` | products of several tensors to products of two |
//! | `extents`, `types` | the extents and types that follow from some tensors for others |
//! | `definitions`, `work` | what each result is, and what computing it takes |

mod definitions;
mod extents;
mod factors;
mod terms;
mod types;
mod work;

use std::collections::{BTreeMap, HashSet};
use std::fmt;

pub use self::definitions::DefinitionError;
pub use self::extents::{ExtentError, Extents};
pub(crate) use self::terms::terms;
pub use self::work::OfNothing;
use crate::cost::Rates;
use crate::element::ElementType;
use crate::loops::FreshNames;
use crate::notation::{
    self, Assignment, DenseArray, EvaluateError, IndexVariable, NotationError, NotationErrorKind, TensorVariable,
};

/// Assignments that are computed one after the other.
#[derive(Clone, Debug, PartialEq)]
pub struct Program {
    statements: Vec<Assignment>,
    temporaries: HashSet<String>,
}

impl Program {
    /// A program of these assignments.
    ///
    /// # Errors
    ///
    /// [`NotationErrorKind::TwoTensors`] if tensors of two assignments have one name, and differ.
    pub fn new(statements: impl Into<Vec<Assignment>>) -> Result<Self, NotationError> {
        let program = Self { statements: statements.into(), temporaries: HashSet::new() };
        let mut known: BTreeMap<String, TensorVariable> = BTreeMap::new();
        for statement in &program.statements {
            for access in statement.right().accesses().into_iter().chain([statement.left()]) {
                let name = access.tensor.name();
                if *known.entry(name.to_owned()).or_insert_with(|| access.tensor.clone()) != access.tensor {
                    return Err(NotationErrorKind::TwoTensors(name.to_owned()).at(access.place));
                }
            }
        }
        Ok(program)
    }

    /// Reads a program to and from given tensors: assignments with `;` or the beginning of a line between them.
    ///
    /// # Errors
    ///
    /// As of [`notation::parse`]; the message points at the place.
    pub fn parse(text: &str, tensors: &[TensorVariable]) -> Result<Self, NotationError> {
        notation::parse_all(text, tensors).and_then(Self::new).map_err(|error| error.within(text))
    }

    /// The same, with tensors that are made on the way, as those of [`notation::parse_with_extents`].
    ///
    /// # Errors
    ///
    /// As of [`parse`](Self::parse).
    pub fn parse_with_extents(
        text: &str,
        element: ElementType,
        extents: &[(IndexVariable, i64)],
    ) -> Result<Self, NotationError> {
        let statements = notation::parse_all_with_extents(text, element, extents);
        statements.and_then(Self::new).map_err(|error| error.within(text))
    }

    /// The same with extents that are [made up](notation::sketch_all): what a text says of its tensors before anything
    /// is known of extents.
    ///
    /// # Errors
    ///
    /// As of [`parse`](Self::parse).
    pub fn sketch(text: &str, element: ElementType, variables: &[IndexVariable]) -> Result<Self, NotationError> {
        notation::sketch_all(text, element, variables).and_then(Self::new).map_err(|error| error.within(text))
    }

    /// The index variables of a text: what tensors are indexed by in it, as far as it can be read.
    pub fn index_variables(text: &str) -> Vec<IndexVariable> {
        let mut known: Vec<IndexVariable> = Vec::new();
        while let Err(error) = Self::sketch(text, ElementType::F64, &known) {
            // Each time, the first that is not known yet.
            match &error.kind {
                NotationErrorKind::UnknownVariable(name) if known.iter().all(|known| known.name() != name) => {
                    known.push(IndexVariable::new(name));
                }
                // Other mistakes are told when it is read with its own types.
                _ => break,
            }
        }
        known
    }

    /// The assignments, in their order.
    pub fn statements(&self) -> &[Assignment] {
        &self.statements
    }

    /// All tensors, each once: of each assignment the result, then operands in order of appearance.
    pub fn tensors(&self) -> Vec<TensorVariable> {
        let mut tensors: Vec<TensorVariable> = Vec::new();
        for tensor in self.statements.iter().flat_map(Assignment::tensors) {
            if !tensors.contains(&tensor) {
                tensors.push(tensor);
            }
        }
        tensors
    }

    /// The tensors whose elements at the beginning count: those that are read before they are assigned.
    pub fn inputs(&self) -> Vec<TensorVariable> {
        let (mut inputs, mut assigned): (Vec<TensorVariable>, Vec<TensorVariable>) = (Vec::new(), Vec::new());
        for statement in &self.statements {
            let left = &statement.left().tensor;
            let old = statement.accumulates().then_some(left);
            for tensor in statement.right().accesses().into_iter().map(|access| &access.tensor).chain(old) {
                if !assigned.contains(tensor) && !inputs.contains(tensor) {
                    inputs.push(tensor.clone());
                }
            }
            assigned.push(left.clone());
        }
        inputs
    }

    /// The tensors that are assigned, each once, in the order of their first assignments; without those that dividing
    /// has made.
    pub fn results(&self) -> Vec<TensorVariable> {
        let mut results: Vec<TensorVariable> = Vec::new();
        for statement in &self.statements {
            let left = &statement.left().tensor;
            if !results.contains(left) && !self.temporaries.contains(left.name()) {
                results.push(left.clone());
            }
        }
        results
    }

    /// The same program, with statements that can be scheduled well: sums and products of several tensors are divided
    /// where that is expected to be faster.
    ///
    /// Each element is the same, up to rounding.
    pub fn divided(&self, rates: &Rates) -> Self {
        let mut names = FreshNames::default();
        for statement in &self.statements {
            statement.tensors().iter().for_each(|tensor| _ = names.fresh(tensor.name()));
            statement.extents().keys().for_each(|variable| _ = names.fresh(variable.name()));
        }
        let mut divided = Self { statements: Vec::new(), temporaries: self.temporaries.clone() };
        for statement in self.statements.iter().flat_map(terms::divide) {
            let parts = factors::divide(&statement, rates, &mut names);
            let made = parts
                .iter()
                .map(|part| part.left().tensor.name())
                .filter(|name| *name != statement.left().tensor.name());
            divided.temporaries.extend(made.map(str::to_owned));
            divided.statements.extend(parts);
        }
        divided
    }

    /// The same program, with an assignment for each sum of those statements that `is_wanted` says: `a = B(i) + C(i)`
    /// becomes `a = B(i); a += C(i)`. Statements that are no such sums stay, and those that read what they assign.
    ///
    /// Each element is the same, up to rounding.
    pub fn by_terms(&self, is_wanted: impl Fn(&Assignment) -> bool) -> Self {
        let parts = |statement: &Assignment| match is_wanted(statement) {
            true => terms::divide(statement),
            false => vec![statement.clone()],
        };
        Self { statements: self.statements.iter().flat_map(parts).collect(), temporaries: self.temporaries.clone() }
    }

    /// Evaluates the program: gives the elements of all tensors at the end, by name, given those of its
    /// [inputs](Self::inputs).
    ///
    /// # Errors
    ///
    /// As of [`notation::evaluate`].
    pub fn evaluate(
        &self,
        operands: &BTreeMap<String, DenseArray>,
    ) -> Result<BTreeMap<String, DenseArray>, EvaluateError> {
        let mut values = operands.clone();
        for statement in &self.statements {
            let result = notation::evaluate(statement, &values)?;
            values.insert(statement.left().tensor.name().to_owned(), result);
        }
        Ok(values)
    }
}

impl fmt::Display for Program {
    /// Writes a line for each assignment, which parse to the same program.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.statements.iter().try_for_each(|statement| writeln!(formatter, "{statement}"))
    }
}
