//! The arrays of a tensor in regions, cut into pieces as its file is.

use std::sync::Arc;

use maniple::space::{AnyPoint, AnyRect, AnySpace, Point, Rect};
use maniple::task::{Codec, LeafCall, TaskDefinition, TaskOptions, Value};
use maniple::{
    Arrangement, Context, Error, FieldId, FieldMask, LayoutConstraint, LogicalPartition, Privilege, Projection,
    Requirement, Target, TaskLauncher,
};
use maniple_files::tcs::load::Pieces;
use maniple_files::tcs::{Summed, TcsHeader, TcsPart};

use crate::distributed::error::DistributedError;
use crate::distributed::levels::Component;
use crate::distributed::modes::rect;
use crate::distributed::tensor::Tensor;
use crate::element::ElementType;
use crate::lower::Slot;

/// The place of an array of the file: a field of a requirement.
#[derive(Clone, Copy)]
pub(super) struct Array {
    pub(super) part: TcsPart,
    pub(super) requirement: usize,
    pub(super) field: FieldId,
    pub(super) element: ElementType,
}

/// All arrays of a tensor in the order of its file, and the partitions of their regions into pieces.
pub(super) struct Arrays {
    pub(super) all: Vec<Array>,
    pub(super) pieces: Arc<Pieces>,
    requirements: Vec<(LogicalPartition, FieldMask)>,
}

/// How many write a file at the same time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Writers {
    /// All nodes.
    #[default]
    Together,
    /// One node after the other: for file systems on which several can't write one file, as with NFS.
    InTurn,
}

/// The outcome of a task: the checksum of its piece of each array, or a description of the problem.
pub(super) type Outcome = Result<Vec<(u32, u64)>, String>;

impl Arrays {
    pub(super) fn new(
        cx: &Context,
        tensor: &Tensor,
        header: &TcsHeader,
        pieces: Pieces,
    ) -> Result<Self, DistributedError> {
        let mut found: Vec<(Component, Vec<Array>)> = Vec::new();
        let mut all = Vec::new();
        for part in header.parts() {
            let component = component(tensor, part);
            let known = found.iter().position(|(other, _)| other.region == component.region);
            let requirement = known.unwrap_or(found.len());
            let array = Array { part, requirement, field: component.field, element: component.element };
            match known {
                Some(known) => found[known].1.push(array),
                None => found.push((component, vec![array])),
            }
            all.push(array);
        }
        let partition = |(component, arrays): (Component, Vec<Array>)| {
            let pieces = (0..pieces.count()).map(|piece| space(tensor, header, &pieces, arrays[0].part, piece));
            let mut pieces = pieces.collect::<Result<Vec<_>, _>>()?;
            // The last one is nothing.
            let dimensions = component.region.space().space().dim();
            pieces.push(AnySpace::empty(dimensions).expect("regions have as many dimensions as spaces can have"));
            let partitioning = cx.index_partition(component.region.space(), pieces.len(), &pieces)?;
            let fields = arrays.iter().map(|array| FieldMask::of(array.field));
            let fields = fields.reduce(|all, field| all.union(&field)).unwrap_or_default();
            Ok((component.region.partition(&partitioning).map_err(Error::from)?, fields))
        };
        let requirements = found.into_iter().map(partition).collect::<Result<_, DistributedError>>()?;
        Ok(Self { all, pieces: Arc::new(pieces), requirements })
    }

    /// Runs a task for each piece, all at once or one after the other: gives the checksums of each array, in the order
    /// of pieces, or what one of them says is wrong with the file of this name.
    pub(super) async fn run(
        &self,
        cx: &Context,
        what: &str,
        name: &str,
        privilege: Privilege,
        writers: Writers,
        run: impl Fn(&LeafCall<'_>, usize) -> maniple::Result<Outcome> + Send + Sync + 'static,
    ) -> Result<Vec<Vec<Summed>>, DistributedError> {
        let layout = LayoutConstraint { arrangement: Some(Arrangement::StructOfArrays), ..LayoutConstraint::default() };
        let (run, count) = (Arc::new(run), self.pieces.count());
        let turns = match writers {
            Writers::Together => vec![None],
            Writers::InTurn => (0..count).map(Some).collect(),
        };
        let mut outcomes = Vec::new();
        for turn in turns {
            // The task of a piece that has to wait is given nothing, at the place where it will be its turn.
            let is_due = move |piece: usize| turn.is_none_or(|turn| turn == piece);
            let options = TaskOptions { layout, ..TaskOptions::default() };
            let task = TaskDefinition::new(&format!("{what} {name}")).codec(Codec::of::<Outcome>());
            let run = Arc::clone(&run);
            let task = task.leaf(options, move |call| {
                let piece = call.point().coords()[0] as usize;
                Ok(Value::new(if is_due(piece) { run(call, piece)? } else { Outcome::Ok(Vec::new()) }))
            });
            let mut launcher = TaskLauncher::new(&Arc::new(task));
            for (partition, fields) in &self.requirements {
                let color = move |point: AnyPoint| if is_due(point[0] as usize) { point[0] } else { count as i64 };
                let own = Projection::Color(Arc::new(move |point: AnyPoint| Point([color(point)]).into()));
                let target = Target::Partition(partition.clone(), own);
                launcher = launcher.requirement(Requirement::new(target, fields.clone(), privilege));
            }
            let domain = AnyRect::from(Rect::<1>::from(0..count as i64));
            let found = cx.index_launch(domain, launcher.typed::<Outcome>()).all().await?;
            outcomes.extend(found.into_iter().enumerate().filter(|(piece, _)| is_due(*piece)).map(|(_, found)| found));
        }
        let mut sums = vec![Vec::new(); self.all.len()];
        for outcome in outcomes {
            let outcome =
                outcome.map_err(|reason| DistributedError::File { name: name.to_owned(), reason, is_input: true })?;
            for (sums, (checksum, bytes)) in sums.iter_mut().zip(outcome) {
                sums.push(Summed { checksum, bytes });
            }
        }
        Ok(sums)
    }
}

fn component(tensor: &Tensor, part: TcsPart) -> Component {
    tensor.component(&match part {
        TcsPart::Pos(level) => Slot::Positions(String::new(), level),
        TcsPart::Idx(level) => Slot::Coordinates(String::new(), level),
        TcsPart::Values => Slot::Values(String::new()),
    })
}

/// The rows of a region that a piece has: of a dense tensor, those of the dimension that is stored first.
fn space(
    tensor: &Tensor,
    header: &TcsHeader,
    pieces: &Pieces,
    part: TcsPart,
    piece: usize,
) -> Result<AnySpace, DistributedError> {
    let range = pieces.range(part, piece);
    if tensor.levels().is_some() {
        return Ok(AnyRect::from(Rect::<1>::from(range.start as i64..range.end as i64)).into());
    }
    let extents: Vec<i64> = header.levels.iter().map(|level| level.extent() as i64).collect();
    let below: i64 = extents[1..].iter().product();
    let row = |place: u64| (place as i64).checked_div(below).unwrap_or(0);
    let rows = [(row(range.start), row(range.end))].into_iter().chain(extents[1..].iter().map(|&extent| (0, extent)));
    let rows = rect(&rows.collect::<Vec<_>>());
    rows.map(AnySpace::from).ok_or_else(|| tensor.too_many_dimensions())
}
