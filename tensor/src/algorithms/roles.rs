//! Which tensor and which variable is which.

use std::collections::BTreeMap;

use super::{Algorithm, AlgorithmError};
use crate::concrete::{Statement, StatementNode};
use crate::notation::{Access, BinaryOperator, Expression, IndexVariable, TensorVariable};
use crate::placement::{Along, Placement};

/// The names of a statement that has a certain form, by those of the form.
pub(super) struct Roles {
    variables: BTreeMap<char, IndexVariable>,
    /// The result, and then the tensor of each factor of the form.
    operands: Vec<Operand>,
}

/// A tensor in its role.
struct Operand {
    tensor: TensorVariable,
    /// For each of the form's letters, the dimension of the tensor that it indexes.
    dimensions: Vec<usize>,
}

impl Roles {
    /// Compares a statement with `form`: the letters of the result's variables, and then those of each factor. Factors
    /// may be transposed; if there are several ways to match, the one that changes least is taken.
    pub(super) fn new(
        algorithm: &'static str,
        wanted: &'static str,
        form: &[&str],
        statement: &Statement,
    ) -> Result<Self, AlgorithmError> {
        let found = Self::exactly(form, statement).or_else(|| {
            let (target, factors) = product(statement)?;
            Self::find(form, target, &factors, true)
        });
        found.ok_or_else(|| AlgorithmError::Form { algorithm, wanted, found: statement.to_string() })
    }

    /// The same, with factors and their dimensions in the order of the form.
    pub(super) fn exactly(form: &[&str], statement: &Statement) -> Option<Self> {
        let (target, factors) = product(statement)?;
        Self::find(form, target, &factors, false)
    }

    /// Compares factors in this order, the result as it is, and the others transposed if they may be.
    fn find(form: &[&str], target: &Access, factors: &[&Access], transposed: bool) -> Option<Self> {
        let mut roles = Self { variables: BTreeMap::new(), operands: Vec::new() };
        let accesses: Vec<&Access> = std::iter::once(target).chain(factors.iter().copied()).collect();
        let orders = accesses.iter().zip(form).all(|(access, letters)| access.variables.len() == letters.len());
        if !orders || accesses.len() != form.len() {
            return None;
        }
        roles.assign(&accesses, form, transposed).then_some(roles)
    }

    /// Gives letters to the variables of the remaining accesses.
    fn assign(&mut self, accesses: &[&Access], form: &[&str], transposed: bool) -> bool {
        let ([access, rest @ ..], [letters, forms @ ..]) = (accesses, form) else { return true };
        let mut orders = permutations(letters.len());
        if !transposed || self.operands.is_empty() {
            orders.truncate(1);
        }
        for dimensions in orders {
            let before = self.variables.clone();
            let variables = dimensions.iter().map(|&dimension| &access.variables[dimension]);
            let fits = letters.chars().zip(variables).all(|(letter, variable)| {
                let is_others = self.variables.iter().any(|(other, known)| *other != letter && known == variable);
                !is_others && *self.variables.entry(letter).or_insert_with(|| variable.clone()) == *variable
            });
            self.operands.push(Operand { tensor: access.tensor.clone(), dimensions });
            if fits && self.assign(rest, forms, transposed) {
                return true;
            }
            self.operands.pop();
            self.variables = before;
        }
        false
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
        let mut names: Vec<String> =
            numbers.iter().map(|&number| self.operands[number].tensor.name().to_owned()).collect();
        names.sort();
        names.dedup();
        names
    }

    /// The algorithm, with a placement for each tensor, in terms of the form's letters.
    pub(super) fn algorithm(&self, statement: Statement, grid: &[i64], placements: &[&'static str]) -> Algorithm {
        let place = |(operand, text): (&Operand, &&str)| {
            let mut placement: Placement = text.parse().expect("the placements of algorithms are well formed");
            for along in placement.levels.iter_mut().flat_map(|level| &mut level.grid) {
                if let Along::Partition(dimension, _) = along {
                    *dimension = operand.dimensions[*dimension];
                }
            }
            (operand.tensor.clone(), placement)
        };
        let placements = self.operands.iter().zip(placements).map(place).collect();
        Algorithm { statement, grid: grid.to_vec(), placements }
    }
}

/// The result and the factors of an unscheduled product.
pub(super) fn product(statement: &Statement) -> Option<(&Access, Vec<&Access>)> {
    let mut node = statement.body();
    while let StatementNode::Forall(outer, body) = node {
        if !outer.is_plain() {
            return None;
        }
        node = body;
    }
    let StatementNode::Assign { target, value, .. } = node else { return None };
    let mut found = Vec::new();
    factors(value, &mut found)?;
    statement.relations().is_empty().then_some((target, found))
}

/// All orders of so many things, the first as they are.
pub(super) fn permutations(count: usize) -> Vec<Vec<usize>> {
    if count == 0 {
        return vec![Vec::new()];
    }
    let shorter = permutations(count - 1);
    let with_last = |at: usize| {
        shorter.iter().map(move |order| {
            let mut order = order.clone();
            order.insert(at, count - 1);
            order
        })
    };
    (0..count).rev().flat_map(with_last).collect()
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
