//! Tensors brought to where they are placed.

use std::sync::{Arc, LazyLock};

use maniple::space::{AnyRect, Rect};
use maniple::task::{LeafCall, TaskDefinition, TaskOptions, Value};
use maniple::{Context, Error, FieldId, FieldMask, FieldValue, Privilege, Requirement, Target, TaskLauncher};

use super::error::DistributedError;
use super::fetch::by_color;
use super::home::Home;
use super::launched::Launched;
use super::tensor::Tensor;
use crate::element::{Element, Scalar};
use crate::machine::Machine;
use crate::placement::{Along, Placed, Placement};
use crate::rectangle::Rectangle;
use crate::with_element;

/// Does nothing. What it asks for is brought to where it runs.
pub(super) static PLACE: LazyLock<Arc<TaskDefinition>> =
    LazyLock::new(|| Arc::new(TaskDefinition::new("place").leaf(TaskOptions::default(), |_| Ok(Value::new(())))));

impl Tensor {
    /// Moves the tensor to where a placement says that it is on a machine, whose processors run on the nodes of the job
    /// in blocks. What is there already stays, and costs nothing. From now on results of computations are collected
    /// there.
    ///
    /// # Errors
    ///
    /// [`DistributedError::Placement`] if the placement does not fit the tensor and the machine,
    /// [`DistributedError::Runtime`].
    pub fn place(&self, cx: &Context, placement: &Placement, machine: &Machine) -> Result<Launched, DistributedError> {
        self.check_dense()?;
        let placed = Placed::new(placement, &Rectangle::whole(self.variable().dimensions()), machine)?;
        let known = self.home().filter(|home| *home.placed == placed);
        // To take the elements from all others first would have copies that are there made again.
        let are_copies_there = known.as_ref().is_some_and(|home| home.all.is_some());
        let home = known.map_or_else(|| Home::new(cx, self, placed), Ok)?;
        let own = (!are_copies_there).then_some((&home.own, Privilege::ReadWrite));
        let moves = own.into_iter().chain(home.all.as_ref().map(|all| (all, Privilege::Read)));
        let launcher = |(target, privilege)| home.launcher(self, &PLACE, target, privilege).typed();
        let launched = Launched { steps: moves.map(|own| cx.index_launch(home.domain, launcher(own))).collect() };
        self.settle(home);
        Ok(launched)
    }

    /// The launch that sets all elements where they are placed; none if they are not placed.
    pub(super) fn fill_at_home(&self, value: Scalar) -> Option<(AnyRect, TaskLauncher)> {
        let home = self.home()?;
        let (field, element) = (self.field(), self.variable().element());
        let fill = move |call: &LeafCall<'_>| {
            with_element!(element, T => fill::<T>(call, field, value))?;
            Ok(Value::new(()))
        };
        let task = Arc::new(TaskDefinition::new("fill tensor").leaf(TaskOptions::default(), fill));
        Some((home.domain, home.launcher(self, &task, &home.own, Privilege::Discard)))
    }
}

impl Home {
    fn new(cx: &Context, tensor: &Tensor, placed: Placed) -> Result<Self, DistributedError> {
        // The first piece has nothing.
        let pieces = placed.pieces().map(|piece| piece.rectangles().collect());
        let pieces: Vec<Vec<Rectangle>> = std::iter::once(Vec::new()).chain(pieces).collect();
        let spaces = pieces.iter().map(|parts| tensor.space(parts)).collect::<Result<Vec<_>, _>>()?;
        let partitioning = cx.index_partition(tensor.region().space(), spaces.len(), &spaces)?;
        let partition = tensor.region().partition(&partitioning).map_err(Error::from)?;
        let (processors, placed) = (placed.machine().size() as i64, Arc::new(placed));
        let target = |by_the_first: bool| {
            let placed = Arc::clone(&placed);
            let color = move |processor: i64| {
                let point = placed.machine().point(processor as usize);
                let idle = by_the_first && !is_first(&placed, &point);
                placed.number(&point).filter(|_| !idle).map_or(0, |piece| piece as i64 + 1)
            };
            Target::Partition(partition.clone(), by_color(processors, color))
        };
        let domain = AnyRect::from(Rect::<1>::from(0..processors));
        let (own, all) = (target(true), (!placed.is_disjoint()).then(|| target(false)));
        Ok(Self { placed, domain, own, all })
    }

    fn launcher(
        &self,
        tensor: &Tensor,
        task: &Arc<TaskDefinition>,
        target: &Target,
        privilege: Privilege,
    ) -> TaskLauncher {
        TaskLauncher::new(task).requirement(Requirement::new(target.clone(), FieldMask::of(tensor.field()), privilege))
    }
}

/// Whether a processor is the first of those that hold copies of one piece.
fn is_first(placed: &Placed, point: &[usize]) -> bool {
    let along = placed.placement().levels.iter().flat_map(|level| &level.grid);
    along.zip(point).all(|(along, &index)| *along != Along::Broadcast || index == 0)
}

fn fill<T: Element + FieldValue>(call: &LeafCall<'_>, field: FieldId, value: Scalar) -> maniple::Result<()> {
    let Some(value) = T::from_scalar(value) else { return Ok(()) };
    call.write_rows(0, field, &mut |_, into: &mut [T]| into.fill(value))
}
