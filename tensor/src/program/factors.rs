//! Products of several tensors to products of two.
//!
//! A sum of products of `n` tensors takes as many operations as the product of all extents; two tensors at a time, with
//! the sums that can be taken then, mostly take fewer. The order is found by dynamic programming over sets of factors
//! (the optimal order of contractions: Lam, Sadayappan, Wenger, *On optimizing a class of multi-dimensional loops with
//! reductions for parallel execution*, Parallel Processing Letters 7(2), 1997), with the time of each step by
//! [`Rates`]. Numbers and scalars among the factors go into the smallest tensor, so that what is left are products of
//! two tensors, which a library may know.

use std::collections::{BTreeMap, BTreeSet};

use crate::concrete::{Statement, Substitution};
use crate::cost::Rates;
use crate::loops::{BinaryOperator, FreshNames, Reduction};
use crate::notation::{Access, Assignment, Expression, IndexVariable, Literal, TensorVariable, TextPlace};

/// More factors are left as they are: the number of orders grows fast.
const MOST: usize = 8;
/// Temporary tensors have at most so many dimensions, as regions have.
const DIMENSIONS: usize = 4;
/// Dividing has to be faster by this factor: estimates are rough.
const GAIN: f64 = 1.5;

/// The assignments that together do the same as `statement`; itself, if that is expected to be as fast.
pub(super) fn divide(statement: &Assignment, rates: &Rates, names: &mut FreshNames) -> Vec<Assignment> {
    let whole = || vec![statement.clone()];
    let Some(product) = Product::of(statement) else { return whole() };
    let Some(plan) = Planner { product: &product, rates, known: BTreeMap::new() }.best(product.all()) else {
        return whole();
    };
    let before = product.seconds_at_once(statement, rates);
    let scaling = product.coefficient.is_some().then(|| product.smallest()).flatten();
    let worth = plan.seconds * GAIN < before;
    if !(worth && (product.factors.len() > 2 || scaling.is_some())) {
        return whole();
    }
    let mut maker = Maker { product, names, parts: Vec::new() };
    maker.scale();
    let written = maker.write(&plan, statement);
    // A shift that stands alone in a part could say another extent than all of the statement did.
    let is_of_same_extents = |part: &Assignment| {
        part.extents().iter().all(|(variable, extent)| statement.extents().get(variable) == Some(extent))
    };
    match written {
        Some(()) if maker.parts.iter().all(is_of_same_extents) => maker.parts,
        _ => whole(),
    }
}

/// A set of factors, by their numbers.
type Set = BTreeSet<usize>;

/// The variables that an access goes over, with those of parts and shifts.
fn variables(access: &Access) -> impl Iterator<Item = &IndexVariable> {
    access.variables.iter().map(IndexVariable::base)
}

/// A sum of products of tensors.
struct Product {
    left: Access,
    extents: BTreeMap<IndexVariable, i64>,
    /// The tensors.
    factors: Vec<Access>,
    /// The numbers and scalars among the factors.
    coefficient: Option<Expression>,
}

impl Product {
    /// The product that an assignment is, if it is one, of different index variables in each factor.
    fn of(statement: &Assignment) -> Option<Self> {
        let mut value = statement.right();
        while let Expression::Reduce(Reduction::Sum, _, operand) = value {
            value = operand;
        }
        let is_sum = value != statement.right();
        let adds = matches!(statement.accumulation(), None | Some(Reduction::Sum));
        let mut product = Self {
            left: statement.left().clone(),
            extents: statement.extents().clone(),
            factors: Vec::new(),
            coefficient: None,
        };
        product.collect(value)?;
        let distinct = |access: &Access| {
            let all: BTreeSet<&IndexVariable> = variables(access).collect();
            all.len() == access.variables.len()
        };
        let other = |access: &Access| access.tensor != product.left.tensor;
        let fits = product.factors.len() >= 2 && product.factors.len() <= MOST;
        let clean = product.factors.iter().all(|access| distinct(access) && other(access)) && distinct(&product.left);
        (is_sum && adds && fits && clean).then_some(product)
    }

    fn collect(&mut self, value: &Expression) -> Option<()> {
        match value {
            Expression::Access(access) if !access.variables.is_empty() => self.factors.push(access.clone()),
            Expression::Access(_) | Expression::Literal(..) => self.scale_by(value.clone()),
            Expression::Negate(operand) => {
                self.collect(operand)?;
                let minus = match self.coefficient.take() {
                    Some(coefficient) => Expression::Negate(Box::new(coefficient)),
                    None => Expression::Literal(Literal::Integer(-1), TextPlace::default()),
                };
                self.coefficient = Some(minus);
            }
            Expression::Binary(BinaryOperator::Multiply, left, right) => {
                self.collect(left)?;
                self.collect(right)?;
            }
            _ => return None,
        }
        Some(())
    }

    fn scale_by(&mut self, value: Expression) {
        self.coefficient = Some(match self.coefficient.take() {
            Some(known) => Expression::Binary(BinaryOperator::Multiply, Box::new(known), Box::new(value)),
            None => value,
        });
    }

    fn all(&self) -> Set {
        (0..self.factors.len()).collect()
    }

    fn size<'a>(&self, variables: impl IntoIterator<Item = &'a IndexVariable>) -> f64 {
        variables.into_iter().map(|variable| self.extents[variable] as f64).product()
    }

    /// The factor with the fewest elements.
    fn smallest(&self) -> Option<usize> {
        let size = |factor: &usize| self.size(variables(&self.factors[*factor]));
        (0..self.factors.len()).min_by(|one, other| size(one).total_cmp(&size(other)))
    }

    /// The variables that the product of some factors still has when all others are summed over.
    fn kept(&self, set: &Set) -> Vec<IndexVariable> {
        let outside =
            |variable: &IndexVariable| {
                self.left.variables.contains(variable)
                    || self.factors.iter().enumerate().any(|(number, access)| {
                        !set.contains(&number) && variables(access).any(|other| other == variable)
                    })
            };
        let mut kept = Vec::new();
        for variable in set.iter().flat_map(|&number| variables(&self.factors[number])) {
            if outside(variable) && !kept.contains(variable) {
                kept.push(variable.clone());
            }
        }
        kept
    }

    fn bytes<'a>(&self, variables: impl IntoIterator<Item = &'a IndexVariable>) -> f64 {
        self.size(variables) * self.left.tensor.element().size() as f64
    }

    /// The time of one nest of loops over everything.
    fn seconds_at_once(&self, statement: &Assignment, rates: &Rates) -> f64 {
        let all: BTreeSet<&IndexVariable> = self.extents.keys().collect();
        let concrete = Statement::new(statement);
        let loops: Vec<IndexVariable> = concrete.spine().iter().map(|outer| outer.variable.clone()).collect();
        let rate = match concrete.substitute(loops, Substitution::GEMM) {
            Ok(_) => rates.products,
            Err(_) => rates.loops,
        };
        let factors = self.factors.len() + usize::from(self.coefficient.is_some());
        let bytes: f64 = self.factors.iter().map(|access| self.bytes(variables(access))).sum();
        (self.size(all) * factors as f64 / rate).max(bytes / rates.memory)
    }
}

/// How a set of factors is multiplied.
#[derive(Clone)]
struct FactorOrder {
    set: Set,
    /// Both parts, unless it is one factor.
    parts: Option<Box<[FactorOrder; 2]>>,
    seconds: f64,
}

struct Planner<'a> {
    product: &'a Product,
    rates: &'a Rates,
    known: BTreeMap<Set, Option<FactorOrder>>,
}

impl Planner<'_> {
    /// The fastest way to multiply a set of factors; none if temporary tensors would have too many dimensions.
    fn best(&mut self, set: Set) -> Option<FactorOrder> {
        if set.len() == 1 {
            return Some(FactorOrder { set, parts: None, seconds: 0.0 });
        }
        if let Some(known) = self.known.get(&set) {
            return known.clone();
        }
        let members: Vec<usize> = set.iter().copied().collect();
        let mut best: Option<FactorOrder> = None;
        // Each division once: the first factor is in the first part, which of equally good ones is as long as it can
        // be.
        for chosen in (0..(1_usize << (members.len() - 1)) - 1).rev() {
            let first: Set = members
                .iter()
                .enumerate()
                .filter(|(at, _)| *at == 0 || chosen >> (at - 1) & 1 == 1)
                .map(|(_, &member)| member)
                .collect();
            let second: Set = set.difference(&first).copied().collect();
            let (Some(one), Some(two)) = (self.best(first), self.best(second)) else { continue };
            let Some(own) = self.seconds(&one.set, &two.set, &set) else { continue };
            let seconds = own + one.seconds + two.seconds;
            if best.as_ref().is_none_or(|best| seconds < best.seconds) {
                best = Some(FactorOrder { set: set.clone(), parts: Some(Box::new([one, two])), seconds });
            }
        }
        self.known.insert(set, best.clone());
        best
    }

    /// The time of one product of two tensors.
    fn seconds(&self, one: &Set, two: &Set, both: &Set) -> Option<f64> {
        let product = self.product;
        let (left, right) = (product.kept(one), product.kept(two));
        let target = if *both == product.all() { product.left.variables.clone() } else { product.kept(both) };
        if *both != product.all() && target.len() > DIMENSIONS {
            return None;
        }
        let used: BTreeSet<&IndexVariable> = left.iter().chain(&right).chain(&target).collect();
        let is_shared = |variable: &&IndexVariable| {
            [&left, &right, &target].iter().filter(|list| list.contains(variable)).count() >= 2
        };
        let sums = used.iter().any(|variable| !target.contains(variable));
        let rate = if sums && used.iter().all(is_shared) { self.rates.products } else { self.rates.loops };
        let bytes = product.bytes(&left) + product.bytes(&right) + product.bytes(&target);
        Some((2.0 * product.size(used) / rate).max(bytes / self.rates.memory))
    }
}

/// Writes the assignments of an order.
struct Maker<'a> {
    product: Product,
    names: &'a mut FreshNames,
    parts: Vec<Assignment>,
}

impl Maker<'_> {
    /// Multiplies the smallest tensor by the coefficient, if there is one.
    fn scale(&mut self) {
        let Some(coefficient) = self.product.coefficient.take() else { return };
        let Some(smallest) = self.product.smallest() else { return };
        let access = self.product.factors[smallest].clone();
        let target = self.temporary(&variables(&access).cloned().collect::<Vec<_>>());
        let value =
            Expression::Binary(BinaryOperator::Multiply, Box::new(coefficient), Box::new(Expression::Access(access)));
        if let Ok(part) = Assignment::new(target.clone(), false, value) {
            self.parts.push(part);
            self.product.factors[smallest] = target;
        }
    }

    fn write(&mut self, order: &FactorOrder, statement: &Assignment) -> Option<()> {
        let [one, two] = &**order.parts.as_ref()?;
        let (one, two) = (self.operand(one)?, self.operand(two)?);
        let value = product_of(one, two);
        self.parts.push(Assignment::accumulating(self.product.left.clone(), statement.accumulation(), value).ok()?);
        Some(())
    }

    /// The tensor that holds the product of a set of factors.
    fn operand(&mut self, order: &FactorOrder) -> Option<Access> {
        let Some(parts) = &order.parts else { return Some(self.product.factors[*order.set.first()?].clone()) };
        let (one, two) = (self.operand(&parts[0])?, self.operand(&parts[1])?);
        let target = self.temporary(&self.product.kept(&order.set));
        let value = product_of(one, two);
        self.parts.push(Assignment::new(target.clone(), false, value).ok()?);
        Some(target)
    }

    fn temporary(&mut self, variables: &[IndexVariable]) -> Access {
        let dimensions: Vec<i64> = variables.iter().map(|variable| self.product.extents[variable]).collect();
        let tensor = TensorVariable::new(&self.names.fresh("t"), self.product.left.tensor.element(), dimensions);
        Access { tensor, variables: variables.to_vec(), place: TextPlace::default() }
    }
}

/// The product of two tensors, which is summed over what the target does not have when it is assigned.
fn product_of(one: Access, two: Access) -> Expression {
    Expression::Binary(BinaryOperator::Multiply, Box::new(Expression::Access(one)), Box::new(Expression::Access(two)))
}
