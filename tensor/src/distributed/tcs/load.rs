//! Tensors read from files by tasks.

use std::ops::Range;
use std::sync::Arc;

use maniple::access::Write;
use maniple::space::{AnyRect, Point, Rect};
use maniple::task::{Codec, LeafCall, TaskDefinition, TaskOptions, Value};
use maniple::{Context, FieldValue, Privilege, TaskLauncher};
use maniple_files::tcs::load::{Finder, Pieces, Values, check_gaps, check_piece, read_numbers};
use maniple_files::tcs::{Summed, TcsLevelKind, TcsPart};
use maniple_files::{Number, ReadError};

use super::arrays::{Array, Arrays, Outcome, Writers};
use super::file::TcsFile;
use crate::distributed::error::DistributedError;
use crate::distributed::levels::{Levels, Narrowed};
use crate::distributed::pending::Pending;
use crate::distributed::rows::blocks_for;
use crate::distributed::tensor::Tensor;
use crate::element::{Element, ElementType};
use crate::notation::TensorVariable;
use crate::with_element;

/// How a tensor was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loaded {
    /// In how many pieces.
    pub pieces: usize,
    /// How many places were looked at to find where pieces end.
    pub probes: u64,
    /// The bytes that each node has read.
    pub bytes: Vec<u64>,
}

/// The end of a piece, and the number of places that were looked at; or a description of the problem with the file.
type End = Result<(Vec<u64>, u32), String>;

impl Tensor {
    /// The tensor that statements call `variable`, read from a file that has it in the variable's format. Each node
    /// reads and keeps the pieces that are dealt to it, which have equally many bytes, and no node reads all. Waits
    /// until all is read, and checked.
    ///
    /// # Errors
    ///
    /// [`DistributedError::Shape`] if the file has other extents, elements or levels; [`DistributedError::File`] if it
    /// can't be read, is damaged, or is another one on another node; [`DistributedError::Runtime`].
    pub fn load<'a>(cx: &'a Context, variable: &'a TensorVariable, file: &'a TcsFile) -> Pending<'a, (Self, Loaded)> {
        Box::pin(async move {
            check_fits(variable, file)?;
            let before = file.bytes_read();
            let headers = cx.per_node(file.header().to_bytes()).all().await?;
            if let Some(node) = headers.iter().position(|header| *header != headers[0]) {
                return Err(wrong(
                    file,
                    format!("it is not the same on node {node} as on node 0: all nodes must have the same file"),
                ));
            }
            let tensor = made(cx, variable, file)?;
            let count = blocks_for(cx, file.bytes() as usize).next_multiple_of(cx.nodes());
            let is_dense = tensor.levels().is_none();
            let (pieces, probes) = match is_dense {
                true => (Pieces::equal(file.header(), count), 0),
                false => find_pieces(cx, file, count).await?,
            };
            let arrays = Arrays::new(cx, &tensor, file.header(), pieces)?;
            let (of, all, pieces) = (file.clone(), arrays.all.clone(), Arc::clone(&arrays.pieces));
            let read = move |call: &LeafCall<'_>, piece: usize| {
                let sums = read_piece(call, &of, &all, &pieces, piece)?;
                Ok(sums
                    .map(|sums| sums.iter().map(|sum| (sum.checksum, sum.bytes)).collect())
                    .map_err(|error| text(&error))) as maniple::Result<Outcome>
            };
            let sums = arrays.run(cx, "load", file.name(), Privilege::Discard, Writers::Together, read).await?;
            for (array, sums) in arrays.all.iter().zip(sums) {
                Summed::check(file.header(), array.part, sums).map_err(|error| wrong(file, text(&error)))?;
            }
            let bytes = cx.per_node(file.bytes_read() - before).all().await?;
            Ok((tensor, Loaded { pieces: arrays.pieces.count(), probes, bytes }))
        })
    }
}

/// The message of a reader, without the number of a byte.
fn text(error: &ReadError) -> String {
    match error {
        ReadError::Byte { problem, .. } => problem.to_string(),
        other => other.to_string(),
    }
}

fn wrong(file: &TcsFile, reason: String) -> DistributedError {
    DistributedError::File { name: file.name().to_owned(), reason, is_input: true }
}

fn check_fits(variable: &TensorVariable, file: &TcsFile) -> Result<(), DistributedError> {
    let format = file.format()?;
    let is_plain = variable.format().properties() == format.properties();
    let fits = file.element() == variable.element()
        && file.dimensions() == variable.dimensions()
        && format == *variable.format()
        && is_plain;
    if !fits {
        let describe = |element, dimensions: &[i64], format| {
            format!("{element} elements with extents {dimensions:?} stored as {format}")
        };
        return Err(DistributedError::Shape {
            tensor: variable.name().to_owned(),
            expected: describe(variable.element(), variable.dimensions(), variable.format()),
            found: describe(file.element(), &file.dimensions(), &format),
        });
    }
    match file.is_whole() {
        true => Ok(()),
        false => Err(wrong(file, "it is a part of a tensor, and tasks load whole ones".to_owned())),
    }
}

/// The tensor with room for what the file has.
fn made(cx: &Context, variable: &TensorVariable, file: &TcsFile) -> Result<Tensor, DistributedError> {
    if variable.format().is_dense() {
        return Tensor::new(cx, variable);
    }
    let (header, nodes) = (file.header(), file.header().nodes());
    let positions = nodes.iter().map(|nodes| *nodes as usize).collect::<Vec<_>>();
    let narrow = u64::from(i32::MAX.unsigned_abs());
    let is_narrow = header.levels.iter().zip(&nodes).filter(|(level, _)| level.kind == TcsLevelKind::Sparse);
    let is_narrow =
        is_narrow.map(|(level, nodes)| (*nodes).max(level.extent().saturating_sub(1))).all(|most| most <= narrow);
    let kinds = variable.format().levels();
    Tensor::in_levels(variable, Levels::with_room(cx, variable.element(), is_narrow, kinds, positions)?)
}

/// Pieces with equally many bytes: a task for each finds where it ends.
async fn find_pieces(cx: &Context, file: &TcsFile, count: usize) -> Result<(Pieces, u64), DistributedError> {
    let (of, pieces) = (file.clone(), count as u64);
    let find = move |call: &LeafCall<'_>| {
        let piece = call.point().coords()[0] as u64 + 1;
        let found = Finder::new(of.source(), of.header()).end_of_piece(piece, pieces);
        let found = found.map(|cut| (cut.positions, cut.probes)).map_err(|error| text(&error));
        Ok(Value::new(found as End))
    };
    let task = TaskDefinition::new(&format!("find pieces of {}", file.name())).codec(Codec::of::<End>());
    let task = Arc::new(task.leaf(TaskOptions::default(), find));
    let domain = AnyRect::from(Rect::<1>::from(0..count as i64));
    let found = cx.index_launch(domain, TaskLauncher::new(&task).typed::<End>()).all().await?;
    let found = found.into_iter().collect::<Result<Vec<_>, _>>().map_err(|reason| wrong(file, reason))?;
    let (ends, probes): (Vec<_>, Vec<_>) = found.into_iter().unzip();
    Ok((Pieces::new(file.header(), &ends), probes.into_iter().map(u64::from).sum()))
}

/// Reads a piece of all arrays, and checks it: gives their checksums.
fn read_piece(
    call: &LeafCall<'_>,
    file: &TcsFile,
    arrays: &[Array],
    pieces: &Pieces,
    piece: usize,
) -> maniple::Result<Result<Vec<Summed>, ReadError>> {
    if piece == 0
        && let Err(error) = check_gaps(file.source(), file.header())
    {
        return Ok(Err(error));
    }
    let mut sums = Vec::new();
    let mut rest = arrays;
    loop {
        let (read, count) = match rest {
            [] => return Ok(Ok(sums)),
            [pos, crd, ..] if matches!(pos.part, TcsPart::Pos(_)) => {
                let read = match pos.element {
                    ElementType::I32 => read_level::<i32>(call, file, [pos, crd], pieces, piece)?,
                    _ => read_level::<i64>(call, file, [pos, crd], pieces, piece)?,
                };
                (read, 2)
            }
            [values, ..] => {
                let range = pieces.range(TcsPart::Values, piece);
                (with_element!(values.element, T => read_elements::<T>(call, file, values, range)?), 1)
            }
        };
        match read {
            Ok(read) => sums.extend(read),
            Err(error) => return Ok(Err(error)),
        }
        rest = &rest[count..];
    }
}

/// Reads a piece of the offsets and coordinates of a level.
fn read_level<N: Element + FieldValue + Narrowed + Into<i64>>(
    call: &LeafCall<'_>,
    file: &TcsFile,
    [pos, crd]: [&Array; 2],
    pieces: &Pieces,
    piece: usize,
) -> maniple::Result<Result<Vec<Summed>, ReadError>> {
    let TcsPart::Pos(level) = pos.part else { return Ok(Ok(Vec::new())) };
    let mut of_pos = call.write::<N, 1>(pos.requirement, pos.field)?;
    let mut of_crd = call.write::<N, 1>(crd.requirement, crd.field)?;
    let read = fill(&mut of_pos, file, pos.part, pieces.range(pos.part, piece))
        .and_then(|one| fill(&mut of_crd, file, crd.part, pieces.range(crd.part, piece)).map(|other| vec![one, other]));
    let number = |numbers: &Write<'_, N, 1>, place: u64| -> u64 {
        let number: i64 = numbers[Point([place as i64])].into();
        number as u64
    };
    let check = |sums| {
        let (pos, crd) = (|place| number(&of_pos, place), |place| number(&of_crd, place));
        check_piece(file.source(), file.header(), pieces, piece, level, pos, crd).map(|()| sums)
    };
    Ok(read.and_then(check))
}

/// Reads a range of numbers to where a task has room for them.
fn fill<N: Element + FieldValue + Narrowed>(
    numbers: &mut Write<'_, N, 1>,
    file: &TcsFile,
    part: TcsPart,
    range: Range<u64>,
) -> Result<Summed, ReadError> {
    let rows = numbers.space().rects().first().copied().filter(|rect| rect.lo <= rect.hi);
    let Some(rows) = rows else { return Ok(Summed::default()) };
    let mut span = numbers.span_mut(rows);
    let mut into = span.iter_mut();
    read_numbers(file.source(), file.header(), part, range, |number| {
        if let Some(place) = into.next() {
            *place = N::narrowed(number as i64);
        }
    })
}

/// Reads a range of elements to where a task has room for them, row after row.
fn read_elements<T: Element + FieldValue + Number>(
    call: &LeafCall<'_>,
    file: &TcsFile,
    array: &Array,
    range: Range<u64>,
) -> maniple::Result<Result<Vec<Summed>, ReadError>> {
    let (mut values, mut read) = (Values::new(file.source(), file.header(), range), Ok(()));
    call.write_rows(array.requirement, array.field, &mut |_, row: &mut [T]| {
        if read.is_ok() {
            read = values.read(row);
        }
    })?;
    Ok(read.and_then(|()| values.finish()).map(|sum| vec![sum]))
}
