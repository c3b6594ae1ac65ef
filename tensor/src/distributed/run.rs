//! A plan as launches.

use std::collections::HashMap;
use std::sync::Arc;

use maniple::space::{AnyRect, AnySpace, Point, Rect};
use maniple::task::{LeafCall, TaskDefinition, TaskOptions};
use maniple::{
    Context, Error, FieldId, FieldMask, Future, LogicalPartition, Privilege as Held, Projection, Requirement,
    TaskLauncher,
};

use super::error::DistributedError;
use super::operators::operator;
use super::tensor::{Tensor, bounds, view};
use crate::kernel::{Argument, Executable, Kernels, Serial};
use crate::notation::{IndexVariable, TensorVariable};
use crate::plan::{Plan, Privilege, Step, Use};
use crate::rectangle::Rectangle;

/// Runs a plan on tensors: launches all that it says. The future is there when all of that has ended, well or badly: what has failed is told by
/// [`Tensor::read`], or else at the end of the program.
///
/// # Errors
///
/// [`DistributedError::Missing`] if a tensor of the plan is not among `tensors`, [`DistributedError::Shape`] if it has other extents, and what keeps the kernel from being made.
pub fn compute(cx: &Context, plan: &Arc<Plan>, tensors: &[&Tensor]) -> Result<Future<()>, DistributedError> {
    let order = Order::of(plan);
    let leaf = plan.leaf();
    let operands: Vec<&Tensor> =
        leaf.tensors.iter().map(|variable| find(tensors, variable)).collect::<Result<_, _>>()?;
    if let Some(initial) = plan.initial {
        operands[0].fill(cx, initial)?;
    }
    let executable = Kernels::shared().get(&leaf.kernel)?;
    let fields = operands.iter().map(|tensor| tensor.field()).collect();
    let task = Arc::new(definition(plan, &order, executable, fields));
    let uses: Vec<Fetch> = operands.iter().map(|tensor| Fetch::new(plan, &order, tensor)).collect::<Result<_, _>>()?;
    let partitions: Vec<LogicalPartition> =
        operands.iter().zip(&uses).map(|(tensor, fetch)| fetch.partition(cx, tensor)).collect::<Result<_, _>>()?;
    let domain = AnyRect::from(Rect::<1>::from(0..order.points()));
    let mut launchers: HashMap<Vec<usize>, TaskLauncher> = HashMap::new();
    for step in 0..order.steps() {
        let tables: Vec<usize> = uses.iter().map(|fetch| fetch.table_of_step[step as usize]).collect();
        let launcher = launchers.entry(tables).or_insert_with_key(|tables| {
            let mut launcher = TaskLauncher::new(&task);
            for (((tensor, fetch), partition), &table) in operands.iter().zip(&uses).zip(&partitions).zip(tables) {
                let target = maniple::Target::Partition(partition.clone(), fetch.projections[table].clone());
                launcher =
                    launcher.requirement(Requirement::new(target, FieldMask::of(tensor.field()), fetch.privilege));
            }
            launcher
        });
        cx.index_launch(domain, launcher.clone().arguments(step).typed::<()>());
    }
    Ok(cx.execution_fence())
}

fn find<'a>(tensors: &[&'a Tensor], variable: &TensorVariable) -> Result<&'a Tensor, DistributedError> {
    let found = tensors.iter().find(|tensor| tensor.variable().name() == variable.name());
    let found = found.ok_or_else(|| DistributedError::Missing {
        tensor: variable.name().to_owned(),
        given: tensors.iter().map(|tensor| tensor.variable().name()).collect::<Vec<_>>().join(", "),
    })?;
    if found.variable() != variable {
        let describe = |variable: &TensorVariable| {
            format!("{} elements with extents {:?}", variable.element(), variable.dimensions())
        };
        return Err(DistributedError::Shape {
            tensor: variable.name().to_owned(),
            expected: describe(variable),
            found: describe(found.variable()),
        });
    }
    Ok(found)
}

/// The variables of a plan's steps: which are numbered by the steps of the program, and which by the points of launches.
struct Order {
    /// Of the leaf's variables, from the outermost: whether it is a launch's, and its extent.
    variables: Vec<(bool, i64)>,
}

impl Order {
    fn of(plan: &Plan) -> Self {
        let mut variables = Vec::new();
        let mut step = &plan.root;
        loop {
            step = match step {
                Step::Launch(launch) => {
                    variables.extend(launch.extents.iter().map(|&extent| (true, extent)));
                    &launch.body
                }
                Step::Sequence(sequence) => {
                    variables.push((false, sequence.extent));
                    &sequence.body
                }
                Step::Leaf(_) => return Self { variables },
            };
        }
    }

    fn count(&self, of_launches: bool) -> i64 {
        self.variables.iter().filter(|(launched, _)| *launched == of_launches).map(|(_, extent)| extent).product()
    }

    fn points(&self) -> i64 {
        self.count(true)
    }

    fn steps(&self) -> i64 {
        self.count(false)
    }

    /// The value of each variable.
    fn values(&self, mut step: i64, mut point: i64) -> Vec<i64> {
        let mut values = vec![0; self.variables.len()];
        for (value, &(launched, extent)) in values.iter_mut().zip(&self.variables).rev() {
            let number = if launched { &mut point } else { &mut step };
            *value = *number % extent;
            *number /= extent;
        }
        values
    }
}

/// What is fetched of one tensor.
struct Fetch {
    privilege: Held,
    /// All rectangles that occur.
    pieces: Vec<Rectangle>,
    /// For each different table, the piece of each point.
    projections: Vec<Projection>,
    table_of_step: Vec<usize>,
}

impl Fetch {
    fn new(plan: &Plan, order: &Order, tensor: &Tensor) -> Result<Self, DistributedError> {
        let (name, element) = (tensor.variable().name(), tensor.variable().element());
        let (fixed, privilege) = innermost_fetch(plan, name);
        let privilege = match privilege {
            Privilege::Read => Held::Read,
            Privilege::ReadWrite => Held::ReadWrite,
            Privilege::Write => Held::Discard,
            Privilege::Reduce(reduction) => Held::Reduce(
                operator(reduction, element)
                    .ok_or_else(|| DistributedError::NoOperator { operator: format!("{reduction:?}") })?,
            ),
        };
        let mut fetch = Self { privilege, pieces: Vec::new(), projections: Vec::new(), table_of_step: Vec::new() };
        let (mut numbers, mut known, mut tables) = (HashMap::new(), HashMap::new(), HashMap::new());
        for step in 0..order.steps() {
            let piece = |point| {
                let mut values = order.values(step, point);
                values.truncate(fixed.len());
                *known.entry(values).or_insert_with_key(|values| {
                    let rectangle = plan.rectangle(name, fixed, values);
                    let next = numbers.len() as i64;
                    *numbers.entry(rectangle.clone()).or_insert_with(|| {
                        fetch.pieces.push(rectangle);
                        next
                    })
                })
            };
            let table: Vec<i64> = (0..order.points()).map(piece).collect();
            let next = fetch.projections.len();
            let table = *tables.entry(table).or_insert_with_key(|table: &Vec<i64>| {
                let table = table.clone();
                let color = move |point: maniple::space::AnyPoint| Point([table[point.coords()[0] as usize]]).into();
                fetch.projections.push(Projection::Color(Arc::new(color)));
                next
            });
            fetch.table_of_step.push(table);
        }
        Ok(fetch)
    }

    /// A partition of the tensor with all pieces.
    fn partition(&self, cx: &Context, tensor: &Tensor) -> Result<LogicalPartition, DistributedError> {
        let space = |piece: &Rectangle| {
            let rect = bounds(&piece.bounds().collect::<Vec<_>>());
            rect.map(AnySpace::from).ok_or_else(|| DistributedError::Order {
                tensor: tensor.variable().name().to_owned(),
                found: piece.order(),
            })
        };
        let pieces = self.pieces.iter().map(space).collect::<Result<Vec<_>, _>>()?;
        let partitioning = cx.index_partition(tensor.region().space(), pieces.len(), &pieces)?;
        Ok(tensor.region().partition(&partitioning).map_err(Error::from)?)
    }
}

/// Where a tensor is fetched last on the way to the leaf: the variables with values there, and what is done with it. What no step fetches is used whole.
fn innermost_fetch<'a>(plan: &'a Plan, tensor: &str) -> (&'a [IndexVariable], Privilege) {
    let used = |uses: &'a [Use]| uses.iter().find(|used| used.tensor.name() == tensor);
    // A plan without steps names no uses.
    let is_result = plan.statement.result().name() == tensor;
    let (mut found, mut privilege) = (&[][..], if is_result { Privilege::ReadWrite } else { Privilege::Read });
    let mut step = &plan.root;
    loop {
        let (fixed, uses, body) = match step {
            Step::Launch(launch) => (&launch.fixed, &launch.uses, &launch.body),
            Step::Sequence(sequence) => (&sequence.fixed, &sequence.uses, &sequence.body),
            Step::Leaf(_) => return (found, privilege),
        };
        if let Some(used) = used(uses) {
            privilege = used.privilege;
            if used.fetched {
                found = fixed;
            }
        }
        step = body;
    }
}

/// The task that runs the leaf.
fn definition(plan: &Arc<Plan>, order: &Order, executable: Arc<Executable>, fields: Vec<FieldId>) -> TaskDefinition {
    let (plan, order) = (Arc::clone(plan), Order { variables: order.variables.clone() });
    TaskDefinition::new(&plan.leaf().kernel.name.clone()).leaf(TaskOptions::default(), move |call| {
        let values = order.values(*call.arguments::<i64>()?, call.point().coords()[0]);
        run_leaf(call, &plan, &values, (&executable, &fields))?;
        Ok(Box::new(()))
    })
}

fn run_leaf(
    call: &LeafCall<'_>,
    plan: &Plan,
    values: &[i64],
    (executable, fields): (&Executable, &[FieldId]),
) -> maniple::Result<()> {
    let leaf = plan.leaf();
    let mut arguments: Vec<Argument<'_>> = Vec::with_capacity(leaf.tensors.len() + values.len());
    for (number, (tensor, &field)) in leaf.tensors.iter().zip(fields).enumerate() {
        // SAFETY: the view goes with `arguments`, before the call does; the kernel writes to its first buffer alone, for which the task has a privilege.
        let view = unsafe { view(call, (number, field), (tensor.element(), tensor.order())) }?;
        arguments.push(view.into());
    }
    if arguments.iter().any(|argument| matches!(argument, Argument::View(view) if view.is_empty())) {
        // No iteration touches elements that there are not.
        return Ok(());
    }
    if plan.multiply(values, &mut arguments, &Serial).map_err(Error::from_task)? {
        return Ok(());
    }
    arguments.extend(values.iter().map(|&value| Argument::from(value)));
    // SAFETY: the plan's rectangles cover all that the kernel accesses, which is verified and has no buffers of its own that are not written first; iterations of its parallel
    // loops are independent, or the schedule would have been refused.
    unsafe { executable.call(&mut arguments, &Serial) }.map_err(Error::from_task)
}
