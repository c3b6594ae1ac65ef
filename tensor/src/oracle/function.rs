//! Functions of index variables that have one value at all but some points.

use std::collections::BTreeMap;

use maniple_storage::identical;

use super::map::{Points, volume};
use crate::element::ElementType;
use crate::notation::{IndexVariable, Reduction, Term, TermResult, Value, reduce};

/// The most points at which a function is evaluated.
pub(super) const MOST: u64 = 10_000_000;

/// A function needs more than [`MOST`] points.
#[derive(Clone, Copy, Debug)]
pub(super) struct Large;

/// A function of index variables: `background` everywhere but at `points`. Integers that are divided by zero are values
/// too, which count only if they are used.
#[derive(Clone, Debug)]
pub(super) struct Function {
    pub(super) variables: Vec<IndexVariable>,
    pub(super) extents: Vec<i64>,
    pub(super) background: TermResult,
    pub(super) points: BTreeMap<Vec<i64>, TermResult>,
}

fn is_same(one: TermResult, other: TermResult) -> bool {
    match (one, other) {
        (Ok(one), Ok(other)) => one.presence == other.presence && identical(one.value, other.value),
        (one, other) => one.is_err() && other.is_err(),
    }
}

fn is_same_value(one: Value, other: Value) -> bool {
    match (one, other) {
        (Ok(one), Ok(other)) => identical(one, other),
        (one, other) => one.is_err() && other.is_err(),
    }
}

impl Function {
    /// A function without variables.
    pub(super) fn constant(value: TermResult) -> Self {
        Self { variables: Vec::new(), extents: Vec::new(), background: value, points: BTreeMap::new() }
    }

    /// The function with each value changed.
    pub(super) fn map(mut self, change: impl Fn(Term) -> TermResult) -> Self {
        self.background = self.background.and_then(&change);
        self.points.values_mut().for_each(|value| *value = value.and_then(&change));
        self
    }

    /// The number of points, if there are few enough.
    fn few(extents: &[i64]) -> Result<u64, Large> {
        volume(extents).filter(|&points| points <= MOST).ok_or(Large)
    }

    /// `combine(self, other)` at every point. Only points where a value differs from that of both backgrounds are
    /// visited.
    pub(super) fn join(&self, other: &Self, combine: impl Fn(Term, Term) -> TermResult) -> Result<Self, Large> {
        let combine = |one: TermResult, other: TermResult| combine(one?, other?);
        let background = combine(self.background, other.background);
        let own: Vec<usize> = places(&other.variables, |variable| !self.variables.contains(variable));
        let shared: Vec<usize> = places(&other.variables, |variable| self.variables.contains(variable));
        let of = |at: &[usize]| at.iter().map(|&place| other.extents[place]).collect::<Vec<_>>();
        let own_extents = of(&own);
        let mut joined = Self {
            variables: self.variables.iter().chain(own.iter().map(|&place| &other.variables[place])).cloned().collect(),
            extents: self.extents.iter().chain(&own_extents).copied().collect(),
            background,
            points: BTreeMap::new(),
        };
        // Where in this function's points the shared variables are, and the other function's points by their values.
        let in_self: Vec<usize> = shared.iter().filter_map(|&place| self.place(&other.variables[place])).collect();
        let mut by_shared: BTreeMap<Vec<i64>, Vec<(Vec<i64>, TermResult)>> = BTreeMap::new();
        for (point, &value) in &other.points {
            by_shared.entry(pick(point, &shared)).or_default().push((pick(point, &own), value));
        }
        let (is_partial, is_other_partial) = (self.has_background(), other.has_background());
        let mut rest = MOST;
        for (point, &value) in &self.points {
            let alone = combine(value, other.background);
            if is_other_partial && !is_same(alone, background) {
                rest = rest.checked_sub(Self::few(&own_extents)?).ok_or(Large)?;
                for more in Points::of(&own_extents) {
                    joined.points.insert([point.as_slice(), &more].concat(), alone);
                }
            }
            for (more, other) in by_shared.get(&pick(point, &in_self)).into_iter().flatten() {
                rest = rest.checked_sub(1).ok_or(Large)?;
                joined.points.insert([point.as_slice(), more].concat(), combine(value, *other));
            }
        }
        // What the other function has where this one has its background.
        let missing: Vec<usize> = places(&self.variables, |variable| !other.variables.contains(variable));
        let missing_extents: Vec<i64> = missing.iter().map(|&place| self.extents[place]).collect();
        for (point, &value) in other.points.iter().filter(|_| is_partial) {
            let alone = combine(self.background, value);
            if is_same(alone, background) {
                continue;
            }
            rest = rest.checked_sub(Self::few(&missing_extents)?).ok_or(Large)?;
            for more in Points::of(&missing_extents) {
                let mut full = vec![0; self.variables.len()];
                in_self.iter().zip(&shared).for_each(|(&to, &from)| full[to] = point[from]);
                missing.iter().zip(&more).for_each(|(&to, &coordinate)| full[to] = coordinate);
                if !self.points.contains_key(&full) {
                    joined.points.insert([full, pick(point, &own)].concat(), alone);
                }
            }
        }
        Ok(joined)
    }

    /// All values over `variable`, which are of type `element`, combined. They are `of_none` where no operand in levels
    /// has an entry, if that is known.
    pub(super) fn reduce(
        &self,
        reduction: Reduction,
        variable: &IndexVariable,
        extent: i64,
        element: ElementType,
        of_none: Option<Term>,
    ) -> Result<Self, Large> {
        let made = |value: Value| value.map(|value| Term::reduced(value, reduction, of_none));
        let own = |term: TermResult| term.map(|term| term.value);
        let default = own(self.background);
        let Some(place) = self.place(variable) else {
            // Combined with itself.
            let again = |term: TermResult| Ok(made(repeated(reduction, None, own(term), extent, element)?));
            let background = again(self.background)?;
            let points = self.points.iter().map(|(point, &term)| Ok((point.clone(), again(term)?)));
            return Ok(Self { background, points: points.collect::<Result<_, Large>>()?, ..self.clone() });
        };
        let mut rows: BTreeMap<Vec<i64>, Vec<(i64, Value)>> = BTreeMap::new();
        for (point, &term) in &self.points {
            let mut row = point.clone();
            let at = row.remove(place);
            rows.entry(row).or_default().push((at, own(term)));
        }
        let mut reduced = Self { background: self.background, points: BTreeMap::new(), ..self.clone() };
        reduced.variables.remove(place);
        reduced.extents.remove(place);
        let background = repeated(reduction, None, default, extent, element)?;
        reduced.background = made(background);
        for (row, values) in rows {
            // In ascending order, with the background between.
            let (mut total, mut next) = (None, 0);
            for (at, value) in values {
                total = between(reduction, total, default, at - next, element)?;
                total = Some(combined(reduction, total, value, element));
                next = at + 1;
            }
            total = between(reduction, total, default, extent - next, element)?;
            reduced.points.insert(row, made(total.unwrap_or(background)));
        }
        Ok(reduced)
    }

    /// The function with more variables, on which it does not depend, in this order.
    pub(super) fn over(&self, variables: &[IndexVariable], extents: &[i64]) -> Result<Self, Large> {
        let added: Vec<usize> = places(variables, |variable| !self.variables.contains(variable));
        let constant = Self {
            variables: added.iter().map(|&place| variables[place].clone()).collect(),
            extents: added.iter().map(|&place| extents[place]).collect(),
            ..Self::constant(self.background)
        };
        let wide = self.join(&constant, |value, _| Ok(value))?;
        let order: Vec<usize> = variables.iter().filter_map(|variable| wide.place(variable)).collect();
        let points = wide.points.iter().map(|(point, &value)| (pick(point, &order), value)).collect();
        Ok(Self { variables: variables.to_vec(), extents: extents.to_vec(), background: wide.background, points })
    }

    /// Whether there is a point with the value of the background.
    pub(super) fn has_background(&self) -> bool {
        volume(&self.extents) != Some(self.points.len() as u64)
    }

    fn place(&self, variable: &IndexVariable) -> Option<usize> {
        self.variables.iter().position(|own| own == variable)
    }
}

/// `total` and `value` combined; the first value stands for itself, but sums and the like start with the identity.
fn combined(reduction: Reduction, total: Option<Value>, value: Value, element: ElementType) -> Value {
    let start = reduction.identity(element).filter(|_| reduction.starts_with_identity());
    match total.or(start.map(Ok)) {
        None => value,
        Some(total) => Ok(reduce(reduction, total?, value?)),
    }
}

/// `count` times `value`, after `total`.
fn between(
    reduction: Reduction,
    total: Option<Value>,
    value: Value,
    count: i64,
    element: ElementType,
) -> Result<Option<Value>, Large> {
    if count <= 0 { Ok(total) } else { repeated(reduction, total, value, count, element).map(Some) }
}

/// `count` times `value`, after `total`. What is combined with itself to itself is combined once.
fn repeated(
    reduction: Reduction,
    total: Option<Value>,
    value: Value,
    count: i64,
    element: ElementType,
) -> Result<Value, Large> {
    if count <= 0 {
        let identity = reduction.identity(element);
        return Ok(total.or(identity.map(Ok)).unwrap_or(value));
    }
    let mut total = combined(reduction, total, value, element);
    for step in 1..count {
        let next = combined(reduction, Some(total), value, element);
        if is_same_value(next, total) {
            break;
        }
        if step as u64 > MOST {
            return Err(Large);
        }
        total = next;
    }
    Ok(total)
}

fn places(variables: &[IndexVariable], is_wanted: impl Fn(&IndexVariable) -> bool) -> Vec<usize> {
    (0..variables.len()).filter(|&place| is_wanted(&variables[place])).collect()
}

fn pick(point: &[i64], places: &[usize]) -> Vec<i64> {
    places.iter().map(|&place| point[place]).collect()
}
