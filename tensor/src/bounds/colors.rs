//! Parts of a tensor by number.

use super::formula::{Formulas, RectangleOf, apart};
use crate::rectangle::Rectangle;

/// With more conditions than these it is not told apart which of a tensor's accesses happen.
const MOST_CONDITIONS: usize = 3;

/// The different parts that a part of a statement uses of a tensor, numbered from 0: which one is used where, and which
/// elements it has, follow from the relations between variables. Nothing goes through the places where the statement
/// runs, and so nothing costs more for there being many.
///
/// A part depends on those variables that have one value each where it is used, and on no others: on the number of a
/// block, for one that is divided, and on the value of a loop that is rotated, whichever values make it. Combinations
/// of these values are the numbers. Number 0 is the part without elements, which of a tensor without dimensions has its
/// element too.
///
/// ```
/// use maniple_tensor::concrete::Statement;
/// use maniple_tensor::element::ElementType;
/// use maniple_tensor::notation::{TensorVariable, parse};
/// use maniple_tensor::plan::Plan;
///
/// let tensors = ["A", "B"].map(|name| TensorVariable::new(name, ElementType::F64, [1 << 20, 1 << 20]));
/// let statement = Statement::new(&parse("A(i,j) = 2 * B(j,i)", &tensors)?);
/// let tiled = statement.distribute(["i", "j"], ["io", "jo"], ["ii", "ji"], &[1024, 1024])?;
/// let colors = Plan::new(&tiled)?.rectangles("B", &["io".into(), "jo".into()]).colors();
/// assert_eq!(colors.count(), 1 + 1024 * 1024);
/// let color = colors.at(&[3, 1000]);
/// assert_eq!(colors.parts(color)[0].to_string(), "[1024000..1025024, 3072..4096]");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Colors {
    formulas: Formulas,
    /// Variables with one value, by their formulas, and the number of values.
    single: Vec<(usize, i64)>,
    /// The conditions of accesses: the formulas that must all have values, or the access uses nothing.
    conditions: Vec<Vec<usize>>,
    /// Of each access: its condition, and its dimensions.
    accesses: Vec<(usize, Vec<usize>)>,
    order: usize,
    loops: usize,
}

impl RectangleOf {
    /// The different parts that there are.
    pub fn colors(&self) -> Colors {
        Colors::new(self)
    }
}

impl Colors {
    fn new(of: &RectangleOf) -> Self {
        let (formulas, mut single) = (of.formulas.clone(), Vec::new());
        let mut conditions: Vec<Vec<usize>> = Vec::new();
        for (needed, dimensions) in &of.accesses {
            dimensions.iter().for_each(|&dimension| formulas.single_below(dimension, &mut single));
            if !conditions.contains(needed) {
                conditions.push(needed.clone());
            }
        }
        single.sort_unstable();
        single.dedup();
        let single = single.into_iter().map(|position| (position, formulas.extent(position).max(1))).collect();
        let condition = |needed| conditions.iter().position(|other| other == needed).unwrap_or(0);
        let accesses = of.accesses.iter().map(|(needed, dimensions)| (condition(needed), dimensions.clone())).collect();
        Self { formulas, single, accesses, order: of.order, loops: of.loops, conditions }
    }

    /// How many combinations of accesses are told apart, of those of which something happens.
    fn combinations(&self) -> i64 {
        if self.conditions.len() <= MOST_CONDITIONS { (1 << self.conditions.len()) - 1 } else { 1 }
    }

    /// How many parts there are. Some may have the same elements, and some be used nowhere.
    pub fn count(&self) -> i64 {
        self.single
            .iter()
            .fold(self.combinations(), |count, (_, extent)| count.saturating_mul(*extent))
            .saturating_add(1)
    }

    /// The number of the part that is used where the loops have these values.
    ///
    /// # Panics
    ///
    /// If there are fewer values than loops.
    pub fn at(&self, values: &[i64]) -> i64 {
        let intervals = self.formulas.evaluate(values);
        let happens = |needed: &Vec<usize>| needed.iter().all(|&position| !intervals[position].is_empty());
        let bits = self.conditions.iter().enumerate().filter(|(_, needed)| happens(needed));
        let happening: i64 = bits.map(|(condition, _)| 1 << condition).sum();
        if happening == 0 {
            return 0;
        }
        // What is beyond the end matters to nothing that happens.
        let value = |position: usize, extent: i64| intervals[position].low.clamp(0, extent - 1);
        let combination = if self.conditions.len() <= MOST_CONDITIONS { happening - 1 } else { 0 };
        1 + self.single.iter().fold(combination, |sum, &(position, extent)| sum * extent + value(position, extent))
    }

    /// The elements of a part, as [`RectangleOf::parts`] has them.
    pub fn parts(&self, color: i64) -> Vec<Rectangle> {
        if color == 0 {
            // A scalar has an element wherever it is used.
            return Some(Rectangle::empty(self.order)).filter(|nothing| !nothing.is_empty()).into_iter().collect();
        }
        let mut rest = color - 1;
        let mut known = vec![None; self.formulas.count()];
        for &(position, extent) in self.single.iter().rev() {
            known[position] = Some(rest % extent);
            rest /= extent;
        }
        let happens = |condition: usize| self.conditions.len() > MOST_CONDITIONS || (rest + 1) >> condition & 1 == 1;
        let accesses = || self.accesses.iter().filter(|(condition, _)| happens(*condition));
        let cases = self.formulas.cases(&vec![0; self.loops], &known);
        let hulls = cases.iter().map(|case| {
            let rectangle = |dimensions: &Vec<usize>| {
                Rectangle::new(dimensions.iter().map(|&dimension| (case[dimension].low, case[dimension].high)))
            };
            let rectangles = accesses().map(|(_, dimensions)| rectangle(dimensions));
            rectangles.reduce(|first, second| first.hull(&second)).unwrap_or_else(|| Rectangle::empty(self.order))
        });
        apart(hulls, self.order)
    }

    /// Whether each number has the same part here and there, as far as the relations say so: loops may have other
    /// names, and others may be around them.
    pub fn has_parts_of(&self, other: &Self) -> bool {
        let extents = |of: &Self| of.single.iter().map(|(_, extent)| *extent).collect::<Vec<_>>();
        let conditions = |of: &Self| of.accesses.iter().map(|(condition, _)| *condition).collect::<Vec<_>>();
        let dimensions =
            |of: &Self| of.accesses.iter().flat_map(|(_, dimensions)| dimensions.clone()).collect::<Vec<_>>();
        let (here, there) = (dimensions(self), dimensions(other));
        self.order == other.order
            && self.conditions.len() == other.conditions.len()
            && (extents(self), conditions(self), here.len()) == (extents(other), conditions(other), there.len())
            && here.iter().zip(&there).all(|(&here, &there)| self.is_like(here, other, there))
    }

    /// Whether the intervals of two formulas follow alike from the variables with one value.
    fn is_like(&self, here: usize, other: &Self, there: usize) -> bool {
        let single = |of: &Self, position| of.single.iter().position(|(single, _)| *single == position);
        match (single(self, here), single(other, there)) {
            (None, None) => {
                let (mine, others) = (self.formulas.below(here), other.formulas.below(there));
                self.formulas.is_like(here, &other.formulas, there)
                    && mine.len() == others.len()
                    && mine.into_iter().zip(others).all(|(here, there)| self.is_like(here, other, there))
            }
            (here, there) => here == there,
        }
    }

    /// The positions of those loops on whose values the number depends.
    pub fn loops(&self) -> Vec<usize> {
        let mut loops = Vec::new();
        let single = self.single.iter().map(|(position, _)| position);
        single
            .chain(self.conditions.iter().flatten())
            .for_each(|&position| self.formulas.loops_below(position, &mut loops));
        loops.sort_unstable();
        loops.dedup();
        loops
    }
}
