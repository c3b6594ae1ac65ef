//! Several plans as one: partitions of tensors, and launches over their pieces.
//!
//! A [`Graph`] has the plans of a program's statements in their order. Where a plan names rectangles, a graph names
//! pieces of [`Partition`]s, each of which is made once, whichever launches use it, and says by a function which piece
//! a point of a launch is given. What operations depend on each other is not written down: it follows from the pieces
//! that they use, and what they do with them. Operations that use different ones may run at the same time, those of
//! different statements too.
//!
//! ```
//! use std::sync::Arc;
//!
//! use maniple_tensor::concrete::Statement;
//! use maniple_tensor::element::ElementType;
//! use maniple_tensor::notation::{TensorVariable, parse};
//! use maniple_tensor::plan::{Graph, Plan};
//!
//! let tensors = ["A", "B", "C", "D"].map(|name| TensorVariable::new(name, ElementType::F64, [100, 100]));
//! let product = Statement::new(&parse("A(i,j) = B(i,k) * C(k,j)", &tensors)?)
//!     .distribute(["i"], ["io"], ["ii"], &[4])?
//!     .divide("k", "ko", "ki", 5)?
//!     .reorder(["ko", "ii", "j", "ki"])?
//!     .communicate(["B", "C"], "ko")?;
//! let sum = Statement::new(&parse("D(i,j) = A(i,j) + B(i,j)", &tensors)?).distribute(["i"], ["io"], ["ii"], &[4])?;
//! let plans = [Arc::new(Plan::new(&product)?), Arc::new(Plan::new(&sum)?)];
//! assert_eq!(
//!     Graph::new(&plans).to_string(),
//!     "A.0 = A in 4 pieces
//! B.0 = B in 20 pieces
//! C.0 = C in 5 pieces
//! fill A with 0.0
//! for ko in 0..5
//!   launch A over 4 points: A.0 read and written, B.0 read, C.0 read
//! D.0 = D in 4 pieces
//! B.1 = B in 4 pieces
//! launch D over 4 points: D.0 written, A.0 read, B.1 read
//! "
//! );
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use super::order::PlanOrder;
use super::share::{Share, Shares};
use super::space::Space;
use super::step::{Plan, Privilege};
use crate::bounds::Colors;
use crate::element::Scalar;
use crate::format::{Level, StoredDimension};
use crate::notation::{Expression, IndexVariable, Literal, TensorVariable, TextPlace};
use crate::rectangle::Rectangle;

/// The operations of the plans of a program, one after the other.
#[derive(Clone, Debug, Default)]
pub struct Graph {
    /// All tensors, by whose positions others name them.
    pub tensors: Vec<TensorVariable>,
    /// The partitions that operations make, by whose positions others name them.
    pub partitions: Vec<Partition>,
    /// The operations, in their order.
    pub operations: Vec<GraphOperation>,
    /// How many launches it names.
    launches: usize,
    /// Whether points are given no more of operands than what their parts of levels name.
    gathers: bool,
}

/// A space of a tensor, cut into pieces.
#[derive(Clone, Debug)]
pub struct Partition {
    /// The position of the tensor.
    pub tensor: usize,
    /// The space that is cut.
    pub space: Space,
    /// The pieces.
    pub pieces: Pieces,
}

/// In which pieces something is.
#[derive(Clone, Debug)]
pub enum Pieces {
    /// The pieces with the coordinates that follow from the bounds of loops.
    Bounds(Arc<Colors>),
    /// The positions below those of the pieces of offsets: the position of their partition.
    Below(usize),
    /// The elements at the coordinates, in one dimension, that a level stores at the positions of its pieces.
    Named {
        /// The position of their partition.
        positions: usize,
        /// The dimension; of a tensor in levels 0, for the one of its outermost level.
        dimension: usize,
    },
    /// The pieces that belong to equal parts of the positions of a level.
    Shares(Shares),
    /// The pieces below those coordinates of the outermost level that follow from the bounds of loops: each piece has
    /// all coordinates from its first to its last.
    Rows(Arc<Colors>),
}

/// An operation of a graph.
#[derive(Clone, Debug)]
pub enum GraphOperation {
    /// A tensor is partitioned: the position of the partition.
    Partition(usize),
    /// All elements of a tensor become a value.
    Fill {
        /// The position of the tensor.
        tensor: usize,
        /// The value.
        value: Scalar,
    },
    /// Something is done several times.
    Loop {
        /// The loop's variable.
        variable: IndexVariable,
        /// How often.
        steps: i64,
        /// The operations of each step.
        body: Vec<GraphOperation>,
    },
    /// Points run at the same time.
    Launch(Launching),
}

/// Points that run at the same time, with pieces of tensors.
#[derive(Clone, Debug)]
pub struct Launching {
    /// The plan that it is of.
    pub plan: Arc<Plan>,
    /// Its points and steps.
    pub order: Arc<PlanOrder>,
    /// How many of the steps are those of loops that are not around this launch, but around the plan's leaf.
    pub inner_steps: i64,
    /// Whether points run the plan's leaf. Otherwise they do nothing but have their pieces brought near.
    pub runs_leaf: bool,
    /// The number of this launch among all of the graph.
    pub number: usize,
    /// The fetches of each point: if the point runs a leaf, its kernel's [slots](super::Leaf::slots) are views of them.
    /// Each [space](Fetch::space) of a tensor is there once.
    pub fetches: Vec<Fetch>,
}

/// A fetch of one space of a tensor, for each point of a launch.
#[derive(Clone, Debug)]
pub struct Fetch {
    /// The position of the tensor.
    pub tensor: usize,
    /// The space of which the point is given a piece.
    pub space: Space,
    /// The position of the partition; none: all of it.
    pub partition: Option<usize>,
    /// Which piece is used where, if it follows from the bounds of loops.
    pub colors: Arc<Colors>,
    /// The number of the loop whose value is the number of the piece; none: see `colors`.
    pub by: Option<usize>,
    /// The privilege on the piece, for all steps together.
    privilege: Privilege,
    /// The piece is the same wherever the outermost variables have the same values: so many.
    pub depth: usize,
    /// Whether of all points with the same piece the first alone is given it.
    pub by_the_first: bool,
}

impl Fetch {
    /// The privilege on a point's piece at a step: of steps that together write all of it, the first alone may lose the
    /// old elements.
    pub fn privilege(&self, order: &PlanOrder, step: i64) -> Privilege {
        match self.privilege {
            Privilege::Write if order.first_of(step, self.depth) != step => Privilege::ReadWrite,
            privilege => privilege,
        }
    }

    /// The color of a point's piece at a step.
    pub fn color(&self, order: &PlanOrder, step: i64, point: i64) -> i64 {
        let values = order.values(step, point);
        let idle = self.by_the_first && values[self.depth..].iter().any(|value| *value != 0);
        match self.by {
            _ if idle => 0,
            Some(by) => values[by],
            None => self.colors.at(&values[..self.depth]),
        }
    }

    /// The numbers of the loops on whose values the piece depends.
    pub fn loops(&self) -> Vec<usize> {
        self.by.map_or_else(|| self.colors.loops(), |by| vec![by])
    }
}

impl Graph {
    /// The graph of plans that run one after the other.
    pub fn new(plans: &[Arc<Plan>]) -> Self {
        let mut graph = Self::default();
        plans.iter().for_each(|plan| graph.add(plan));
        graph
    }

    /// The same where points are given no more of a vector than the elements that their parts of levels name, and of a
    /// matrix than the rows, if these parts are known, and it is not cut in another way: where operands lie in other
    /// memories, less has to be moved.
    pub fn gathering(plans: &[Arc<Plan>]) -> Self {
        let mut graph = Self { gathers: true, ..Self::default() };
        plans.iter().for_each(|plan| graph.add(plan));
        graph
    }

    fn add(&mut self, plan: &Arc<Plan>) {
        let (order, leaf) = (Arc::new(plan.order()), plan.leaf());
        let mut launches = Vec::new();
        for tensor in &leaf.tensors {
            for fixed in plan.outer_fetches(tensor.name()) {
                let fetches =
                    leaf.spaces(tensor).map(|space| self.fetch(plan, fixed, tensor, space, Privilege::Read, true));
                launches.push((false, fixed.len(), fetches.collect()));
            }
        }
        launches.sort_by_key(|(_, depth, _)| *depth);
        let mut fetches: Vec<Fetch> = Vec::new();
        let (last, first): (Vec<&TensorVariable>, Vec<&TensorVariable>) =
            leaf.tensors.iter().partition(|tensor| self.gathers && leaf.gathered.contains_key(tensor.name()));
        for tensor in first {
            let (fixed, privilege) = plan.innermost_fetch(tensor.name());
            fetches.extend(leaf.spaces(tensor).map(|space| self.fetch(plan, fixed, tensor, space, privilege, false)));
        }
        for tensor in last {
            let (fixed, privilege) = plan.innermost_fetch(tensor.name());
            for space in leaf.spaces(tensor) {
                let gathered = self.gathered(plan, fixed, tensor, space, &fetches);
                fetches.push(gathered.unwrap_or_else(|| self.fetch(plan, fixed, tensor, space, privilege, false)));
            }
        }
        launches.push((true, leaf.fixed.len(), fetches));
        if let Some(value) = plan.initial {
            let tensor = self.tensor(plan.statement.result());
            self.operations.push(GraphOperation::Fill { tensor, value });
        }
        let loops: Vec<(usize, i64)> = order.sequences().collect();
        let mut operations = Vec::new();
        // From the innermost loop outwards, each around what is launched inside of it.
        for level in (0..=loops.len()).rev() {
            let around = |depth: &usize| loops.iter().filter(|(position, _)| position < depth).count();
            let here = launches.extract_if(.., |(_, depth, _)| around(depth) == level);
            let launch = |(runs_leaf, _, fetches)| {
                let inner_steps = loops[level..].iter().map(|(_, steps)| steps).product();
                let (plan, order) = (Arc::clone(plan), Arc::clone(&order));
                self.launches += 1;
                let number = self.launches - 1;
                GraphOperation::Launch(Launching { plan, order, inner_steps, runs_leaf, number, fetches })
            };
            let mut body: Vec<GraphOperation> = here.map(launch).collect();
            body.append(&mut operations);
            operations = match level.checked_sub(1).map(|outer| loops[outer]) {
                None => body,
                Some((position, steps)) => {
                    vec![GraphOperation::Loop { variable: leaf.fixed[position].clone(), steps, body }]
                }
            };
        }
        self.operations.append(&mut operations);
    }

    /// The fetch of a space of a tensor for the points of a launch, where the loops over `fixed` have values.
    fn fetch(
        &mut self,
        plan: &Plan,
        fixed: &[IndexVariable],
        variable: &TensorVariable,
        space: Space,
        privilege: Privilege,
        by_the_first: bool,
    ) -> Fetch {
        let colors = Arc::new(plan.rectangles(variable.name(), fixed).colors());
        // Where a loop has no iterations, offsets of others may be looked at all the same.
        let is_told = space == Space::Elements || plan.statement.extents.values().all(|extent| *extent > 0);
        let share = Share::new(&plan.statement, fixed, variable, space).filter(|_| is_told && !by_the_first);
        let (partition, by) = match share {
            Some(Share { of: (of, level), parts, by, rows }) => {
                let shares = Shares { tensor: self.tensor(of), level, parts, rows };
                (Some(self.partition(variable, space, Pieces::Shares(shares))), Some(by))
            }
            None => (is_told.then(|| self.partition_by(variable, space, &colors)).flatten(), None),
        };
        let tensor = self.tensor(variable);
        Fetch { tensor, space, partition, colors, by, privilege, depth: fixed.len(), by_the_first }
    }

    fn tensor(&mut self, tensor: &TensorVariable) -> usize {
        let known = self.tensors.iter().position(|known| known == tensor);
        known.unwrap_or_else(|| {
            self.tensors.push(tensor.clone());
            self.tensors.len() - 1
        })
    }

    /// The partition of what is stored of a tensor that has these parts of its coordinates. None if it can't be told
    /// which positions these are, because levels around have no pieces themselves, and the outermost one has all
    /// coordinates in each, or stores them in no order.
    fn partition_by(&mut self, tensor: &TensorVariable, space: Space, colors: &Arc<Colors>) -> Option<usize> {
        let format = tensor.format();
        let are_dense =
            |count: usize| format.is_plain() && format.levels()[..count].iter().all(|level| *level == Level::Dense);
        let pieces = match space {
            Space::Elements => Pieces::Bounds(Arc::clone(colors)),
            // Along the diagonals.
            Space::Positions(1) if matches!(format.by_dimensions(), Some((_, StoredDimension::Diagonals(_)))) => {
                Pieces::Bounds(Arc::clone(colors))
            }
            // Those of an outermost level are two.
            Space::Offsets(level) if level > 0 && are_dense(level) => Pieces::Bounds(Arc::clone(colors)),
            // What is below a position follows from it.
            Space::Words(level) | Space::Positions(level)
                if level > 0 && are_dense(level) && format.levels()[level] == Level::Bitmap =>
            {
                Pieces::Bounds(Arc::clone(colors))
            }
            Space::Positions(level) if level > 0 && are_dense(level) && !are_dense(level + 1) => {
                Pieces::Below(self.partition_by(tensor, Space::Offsets(level), colors)?)
            }
            Space::Offsets(0) => return None,
            Space::Offsets(_) | Space::Words(_) | Space::Positions(_) if are_rows_apart(tensor, colors) => {
                Pieces::Rows(Arc::clone(colors))
            }
            Space::Offsets(_) | Space::Words(_) | Space::Positions(_) => return None,
        };
        Some(self.partition(tensor, space, pieces))
    }

    /// The fetch of a tensor that is read at coordinates of one level alone: points are given the elements that their
    /// parts of the level name. None if points have no parts of the level.
    fn gathered(
        &mut self,
        plan: &Plan,
        fixed: &[IndexVariable],
        tensor: &TensorVariable,
        space: Space,
        fetches: &[Fetch],
    ) -> Option<Fetch> {
        let gathered = plan.leaf().gathered.get(tensor.name()).filter(|gathered| gathered.levels.len() == 1)?;
        let (name, level) = gathered.levels.first()?;
        let is_level =
            |fetch: &&Fetch| self.tensors[fetch.tensor].name() == name && fetch.space == Space::Positions(*level);
        let of = fetches.iter().find(is_level)?;
        let (positions, dimension) = (of.partition?, gathered.dimension);
        // What is cut in other ways too, as into parts that pass by, is brought as these are.
        let is_whole = || {
            let colors = plan.rectangles(tensor.name(), fixed).colors();
            colors.count() == 2 && colors.parts(1) == [Rectangle::whole(tensor.dimensions())]
        };
        if Share::new(&plan.statement, fixed, tensor, space).is_some_and(|share| share.of.0.name() == tensor.name()) {
            return None;
        }
        let are_rows = || tensor.format().is_plain() && *tensor.format().levels() == [Level::Dense, Level::Compressed];
        let pieces = match space {
            Space::Elements if tensor.order() == 1 || is_whole() => Pieces::Named { positions, dimension },
            Space::Offsets(1) if are_rows() && is_whole() => Pieces::Named { positions, dimension },
            Space::Positions(1) if are_rows() => {
                let is_offsets =
                    |fetch: &&Fetch| self.tensors[fetch.tensor] == *tensor && fetch.space == Space::Offsets(1);
                let offsets = fetches.iter().find(is_offsets)?.partition?;
                let is_named = matches!(self.partitions[offsets].pieces, Pieces::Named { .. });
                is_named.then_some(Pieces::Below(offsets))?
            }
            _ => return None,
        };
        let of = of.clone();
        let partition = Some(self.partition(tensor, space, pieces));
        Some(Fetch { tensor: self.tensor(tensor), space, partition, ..of })
    }

    /// A partition. One that is there already is taken.
    fn partition(&mut self, tensor: &TensorVariable, space: Space, pieces: Pieces) -> usize {
        let tensor = self.tensor(tensor);
        let is_same = |known: &Partition| {
            (known.tensor, known.space) == (tensor, space)
                && match (&known.pieces, &pieces) {
                    (Pieces::Bounds(known), Pieces::Bounds(colors)) => known.has_parts_of(colors),
                    (Pieces::Below(known), Pieces::Below(offsets)) => known == offsets,
                    (
                        Pieces::Named { positions: known, dimension: of_known },
                        Pieces::Named { positions, dimension },
                    ) => (known, of_known) == (positions, dimension),
                    (Pieces::Shares(known), Pieces::Shares(shares)) => known == shares,
                    (Pieces::Rows(known), Pieces::Rows(colors)) => known.has_parts_of(colors),
                    _ => false,
                }
        };
        if let Some(known) = self.partitions.iter().position(is_same) {
            return known;
        }
        self.partitions.push(Partition { tensor, space, pieces });
        let partition = self.partitions.len() - 1;
        self.operations.push(GraphOperation::Partition(partition));
        partition
    }

    /// Goes through all that is done in its order, again and again what is in loops: `visit` is told the number of the
    /// step too, of those of the [`PlanOrder`] of a launch the first one with the values that loops around have.
    ///
    /// # Errors
    ///
    /// The first one of `visit`.
    pub fn run<'g, E>(&'g self, visit: &mut dyn FnMut(&'g GraphOperation, i64) -> Result<(), E>) -> Result<(), E> {
        fn run<'g, E>(
            operations: &'g [GraphOperation],
            around: i64,
            visit: &mut dyn FnMut(&'g GraphOperation, i64) -> Result<(), E>,
        ) -> Result<(), E> {
            operations.iter().try_for_each(|operation| match operation {
                GraphOperation::Loop { steps, body, .. } => {
                    (0..*steps).try_for_each(|step| run(body, around * steps + step, visit))
                }
                GraphOperation::Launch(launching) => visit(operation, around * launching.inner_steps),
                GraphOperation::Partition(_) | GraphOperation::Fill { .. } => visit(operation, around),
            })
        }
        run(&self.operations, 0, visit)
    }

    /// The numbers of the pieces of a partition: those of bounds begin with one that has nothing.
    pub(crate) fn colors(&self, partition: usize) -> Range<i64> {
        match &self.partitions[partition].pieces {
            Pieces::Bounds(colors) | Pieces::Rows(colors) => 1..colors.count(),
            Pieces::Shares(shares) => 0..shares.parts,
            Pieces::Below(of) | Pieces::Named { positions: of, .. } => self.colors(*of),
        }
    }

    /// The name of a partition.
    fn name(&self, partition: usize) -> String {
        let tensor = self.partitions[partition].tensor;
        let before = self.partitions[..partition].iter().filter(|other| other.tensor == tensor).count();
        format!("{}.{before}", self.tensors[tensor].name())
    }

    fn write(&self, f: &mut fmt::Formatter<'_>, operations: &[GraphOperation], indent: usize) -> fmt::Result {
        for operation in operations {
            write!(f, "{:indent$}", "")?;
            match operation {
                GraphOperation::Partition(partition) => {
                    let Partition { tensor, space, pieces } = &self.partitions[*partition];
                    let (name, tensor) = (self.name(*partition), self.tensors[*tensor].name());
                    let what = match space {
                        Space::Elements => tensor.to_owned(),
                        Space::Offsets(level) => format!("offsets of level {level} of {tensor}"),
                        Space::Words(level) => format!("bits of level {level} of {tensor}"),
                        Space::Positions(level) => format!("level {level} of {tensor}"),
                    };
                    match pieces {
                        Pieces::Bounds(colors) if colors.count() == 2 => writeln!(f, "{name} = {what} in one piece")?,
                        Pieces::Bounds(colors) => writeln!(f, "{name} = {what} in {} pieces", colors.count() - 1)?,
                        Pieces::Below(offsets) => writeln!(f, "{name} = {what} below {}", self.name(*offsets))?,
                        Pieces::Rows(colors) => {
                            let pieces = colors.count() - 1;
                            writeln!(f, "{name} = {what} below {pieces} parts of its outermost coordinates")?;
                        }
                        Pieces::Named { positions, .. } => writeln!(f, "{name} = {what} at {}", self.name(*positions))?,
                        Pieces::Shares(Shares { tensor: of, level, parts, rows }) => {
                            let (of, beside) =
                                (self.tensors[*of].name(), if rows.is_some() { "at the rows of" } else { "with" });
                            writeln!(f, "{name} = {what} {beside} {parts} equal parts of level {level} of {of}")?;
                        }
                    }
                }
                GraphOperation::Fill { tensor, value } => {
                    let value = Expression::Literal(Literal::Typed(*value), TextPlace::default());
                    writeln!(f, "fill {} with {value}", self.tensors[*tensor].name())?;
                }
                GraphOperation::Loop { variable, steps, body } => {
                    writeln!(f, "for {variable} in 0..{steps}")?;
                    self.write(f, body, indent + 2)?;
                }
                GraphOperation::Launch(Launching { plan, order, runs_leaf, fetches, .. }) => {
                    let what = if *runs_leaf { &plan.leaf().kernel.name } else { "nothing" };
                    let given = |Fetch { tensor, space, partition, privilege, by_the_first, .. }: &Fetch| {
                        let to = if *by_the_first { " by the first" } else { "" };
                        let name = self.tensors[*tensor].name();
                        let whole = || match space {
                            Space::Offsets(0) => format!("offsets of level 0 of {name}"),
                            _ => format!("all of {name}"),
                        };
                        format!("{} {privilege}{to}", partition.map_or_else(whole, |partition| self.name(partition)))
                    };
                    let fetches: Vec<String> = fetches.iter().map(given).collect();
                    let points = match order.points() {
                        1 => "one point".to_owned(),
                        points => format!("{points} points"),
                    };
                    writeln!(f, "launch {what} over {points}: {}", fetches.join(", "))?;
                }
            }
        }
        Ok(())
    }
}

/// More pieces are not told apart by the coordinates of the outermost level.
const MOST_BY_ROWS: i64 = 1 << 12;

/// Whether parts have different coordinates in the dimension that a tensor stores outermost, in their order.
fn are_rows_apart(tensor: &TensorVariable, colors: &Colors) -> bool {
    let format = tensor.format();
    let (Some(kind), Some(&outermost)) = (format.levels().first(), format.order().first()) else { return false };
    let is_in_order = match kind {
        Level::Dense | Level::Bitmap => true,
        Level::Compressed => format.properties()[0].ordered && !format.properties()[0].ranges,
        _ => false,
    };
    let is_whole = |color: i64| rows_of(colors, color, outermost) == (0, tensor.dimensions()[outermost]);
    is_in_order && (3..=MOST_BY_ROWS).contains(&colors.count()) && !(1..colors.count()).all(is_whole)
}

/// The coordinates of a part in a dimension, from the first to before the last.
pub(crate) fn rows_of(colors: &Colors, color: i64, dimension: usize) -> (i64, i64) {
    let parts = colors.parts(color);
    let rows = parts.iter().filter(|part| !part.is_empty()).filter_map(|part| part.bounds().nth(dimension));
    rows.reduce(|one, other| (one.0.min(other.0), one.1.max(other.1))).unwrap_or((0, 0))
}

impl fmt::Display for Graph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write(f, &self.operations, 0)
    }
}
