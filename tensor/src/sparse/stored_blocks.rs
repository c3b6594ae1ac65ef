//! Operands that are better stored by blocks of a dimension that they store below another one: what is in a block is
//! then together.

use super::compute::Computation;
use crate::concrete::Relation;
use crate::format::{Format, Level, LevelExpression, Properties};
use crate::notation::{Access, Assignment, IndexVariable, TensorVariable};

/// So many rows, counted in each block, are stored at most.
const MOST_ROWS: i64 = 1 << 28;

/// The operands of a statement that are better stored by blocks, as in *SuperTaco*, where loops go through blocks of a
/// dimension that is stored below another one: else the part of a row that is in a block would be searched for in each.
/// A function gives how long the blocks of a variable are, of those that have some. Each operand is given in that
/// format: of `csr` in blocks of 250 columns it is `(i,j) -> (j/250: D, i: D, j%250: C)`. Those of dense and compressed
/// levels are, where a statement reads them once.
pub fn stored_by_blocks(
    assignment: &Assignment,
    length: impl Fn(&IndexVariable) -> Option<i64>,
) -> Vec<TensorVariable> {
    let accesses = assignment.right().accesses();
    let stored = |access: &&Access| {
        let (tensor, format) = (&access.tensor, access.tensor.format());
        let is_simple = |(level, properties): (&Level, &Properties)| {
            matches!(level, Level::Dense | Level::Compressed) && *properties == Properties::default()
        };
        let is_alone = accesses.iter().filter(|other| other.tensor.name() == tensor.name()).count() == 1;
        let levels = format.levels().iter().zip(format.properties());
        if !is_alone || !format.is_plain() || !levels.clone().all(is_simple) {
            return None;
        }
        let (mut outer, mut inner, mut rows) = (Vec::new(), Vec::new(), 1_i64);
        for (number, ((&mode, &level), &properties)) in
            format.order().iter().zip(format.levels()).zip(format.properties()).enumerate()
        {
            match length(&access.variables[mode])
                .filter(|length| *length > 0 && number > 0 && level == Level::Compressed)
            {
                Some(length) => {
                    outer.push((LevelExpression::Block(mode, length), Level::Dense, Properties::default()));
                    inner.push((LevelExpression::Within(mode, length), level, properties));
                    rows = rows.saturating_mul((tensor.dimensions()[mode] + length - 1) / length);
                }
                None => inner.push((LevelExpression::Mode(mode), level, properties)),
            }
        }
        let dense = format.order().iter().zip(format.levels()).take_while(|(_, level)| **level == Level::Dense);
        rows = dense.fold(rows, |rows, (&mode, _)| rows.saturating_mul(tensor.dimensions()[mode]));
        if outer.is_empty() || rows > MOST_ROWS {
            return None;
        }
        Format::of_levels(format.rank(), [outer, inner].concat()).ok().map(|format| tensor.stored(format))
    };
    accesses.iter().filter_map(stored).collect()
}

impl Computation<'_> {
    /// The operands of which points of a launch use parts that do not lie together, as columns of `csr`, in [the
    /// format](stored_by_blocks) in which they do: a part is then what is stored there, and the offsets of its own
    /// rows, where each point would be given all of the operand else. So are the columns of matrices distributed in
    /// Yadav, Aiken, Kjolstad, *SpDISTAL: compiling distributed sparse tensor computations*, SC 2022.
    ///
    /// ```
    /// use maniple_tensor::element::ElementType::F64;
    /// use maniple_tensor::notation::{TensorVariable, parse};
    /// use maniple_tensor::schedule::Schedule;
    /// use maniple_tensor::sparse::Computation;
    ///
    /// let tensors = [("A", "csr"), ("x", "dense"), ("y", "dense")].map(|(name, format)| match name {
    ///     "A" => TensorVariable::new(name, F64, [1000, 1000]).stored(format.parse().unwrap()),
    ///     _ => TensorVariable::new(name, F64, [1000]),
    /// });
    /// let product = parse("y(i) = A(i,j) * x(j)", &tensors)?;
    /// let schedule = Schedule::parse("divide(j, jo, ji, 4); reorder({jo, i, ji}); distribute(jo)", &tensors)?;
    /// let columns = Computation::new(&product)?.scheduled(&schedule)?;
    /// let stored = columns.stored_by_points();
    /// assert_eq!(stored[0].format().to_string(), "(i,j) -> (j/250: D, i: D, j%250: C)");
    /// let columns = columns.reading(&stored)?.scheduled(&schedule)?;
    /// assert_eq!(columns.conversions(), []);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn stored_by_points(&self) -> Vec<TensorVariable> {
        let statement = self.run_loops();
        let spine = statement.spine();
        let distributed: Vec<_> = spine.iter().filter(|outer| outer.level().is_some()).collect();
        let length = |variable: &IndexVariable| match statement.recovery(variable)? {
            Relation::Split { outer, factor: length, .. } | Relation::Divide { outer, length, .. } => {
                distributed.iter().any(|own| own.variable == *outer).then_some(*length)
            }
            _ => None,
        };
        stored_by_blocks(self.assignment(), length)
    }
}
