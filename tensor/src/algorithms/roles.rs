//! Which tensor and which variable is which.

use std::collections::BTreeMap;

use super::{Algorithm, AlgorithmError};
use crate::concrete::{Node, Statement};
use crate::notation::{Access, BinaryOperator, Expression, IndexVariable, TensorVariable};

/// The names of a statement that has a certain form, by those of the form.
pub(super) struct Roles {
    variables: BTreeMap<char, IndexVariable>,
    tensors: Vec<TensorVariable>,
}

impl Roles {
    /// Compares a statement with `form`: the letters of the result's variables, and then those of each factor.
    pub(super) fn new(
        algorithm: &'static str,
        wanted: &'static str,
        form: &[&str],
        statement: &Statement,
    ) -> Result<Self, AlgorithmError> {
        Self::find(form, statement).ok_or_else(|| AlgorithmError::Form {
            algorithm,
            wanted,
            found: statement.to_string(),
        })
    }

    fn find(form: &[&str], statement: &Statement) -> Option<Self> {
        let mut node = statement.body();
        while let Node::Forall(outer, body) = node {
            if !outer.is_plain() {
                return None;
            }
            node = body;
        }
        let Node::Assign { target, value, .. } = node else { return None };
        let mut accesses = vec![target];
        factors(value, &mut accesses)?;
        let mut variables = BTreeMap::new();
        for (access, letters) in accesses.iter().zip(form) {
            for (variable, letter) in access.variables.iter().zip(letters.chars()) {
                if *variables.entry(letter).or_insert_with(|| variable.clone()) != *variable {
                    return None;
                }
            }
        }
        let orders = accesses.iter().zip(form).all(|(access, letters)| access.variables.len() == letters.len());
        let distinct = variables.values().collect::<std::collections::BTreeSet<_>>().len() == variables.len();
        let tensors: Vec<_> = accesses.iter().map(|access| access.tensor.clone()).collect();
        let fits = orders && distinct && accesses.len() == form.len() && statement.relations().is_empty();
        fits.then_some(Self { variables, tensors })
    }

    /// The variable that the form calls `letter`, with `suffix`.
    pub(super) fn name(&self, letter: char, suffix: &str) -> IndexVariable {
        let variable = self.variables.get(&letter).map_or("", IndexVariable::name);
        IndexVariable::new(&format!("{variable}{suffix}"))
    }

    /// The names that a list like `"io jo ki"` stands for.
    pub(super) fn names(&self, list: &str) -> Vec<IndexVariable> {
        list.split_whitespace()
            .filter_map(|name| name.chars().next().map(|letter| self.name(letter, &name[letter.len_utf8()..])))
            .collect()
    }

    /// The one name that `name` stands for.
    pub(super) fn one(&self, name: &str) -> IndexVariable {
        self.names(name).swap_remove(0)
    }

    /// The tensors with these numbers; the result is number 0.
    pub(super) fn tensors(&self, numbers: &[usize]) -> Vec<String> {
        let mut names: Vec<String> = numbers.iter().map(|&number| self.tensors[number].name().to_owned()).collect();
        names.sort();
        names.dedup();
        names
    }

    /// The algorithm, with a placement for each tensor.
    pub(super) fn algorithm(&self, statement: Statement, grid: &[i64], placements: &[&'static str]) -> Algorithm {
        let placements =
            placements.iter().map(|text| text.parse().expect("the placements of algorithms are well formed"));
        let placements = self.tensors.iter().cloned().zip(placements).collect();
        Algorithm { statement, grid: grid.to_vec(), placements }
    }
}

/// The accesses of a product, from left to right.
fn factors<'a>(value: &'a Expression, found: &mut Vec<&'a Access>) -> Option<()> {
    match value {
        Expression::Access(access) => found.push(access),
        Expression::Binary(BinaryOperator::Multiply, left, right) => {
            factors(left, found)?;
            factors(right, found)?;
        }
        _ => return None,
    }
    Some(())
}

/// The names of a product of matrices.
pub(super) fn matrices(algorithm: &'static str, statement: &Statement) -> Result<Roles, AlgorithmError> {
    Roles::new(algorithm, "A(i,j) = B(i,k) * C(k,j)", &["ij", "ik", "kj"], statement)
}
