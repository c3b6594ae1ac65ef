//! Tensors read from [files of entries](super::entry_file) by tasks.
//!
//! Each task reads the entries of its range to count them. They are kept until they are listed, where there is room for
//! them, and read once more otherwise. No node has all of the tensor. All elements of a dense tensor are read once.

use std::ops::Range;
use std::sync::Arc;

use maniple::task::LeafCall;
use maniple::{Context, FieldValue};
use maniple_files::{Number, Order};

use super::batches::Batches;
use super::entry_file::{EntryFile, told};
use super::error::DistributedError;
use super::lists::{Evidence, FileProblem, Lists, check_packed, packed, tasks_for};
use super::modes::is_in_region;
use super::numbers::{HAS_ELEMENT, as_element, element_that_is, no_element};
use super::pending::Pending;
use super::rows::blocks_for;
use super::tensor::Tensor;
use crate::element::{Element, ElementType, Scalar};
use crate::format::Format;
use crate::notation::TensorVariable;
use crate::rectangle::Rectangle;
use crate::with_element;

/// So many elements of a dense tensor are read at once, if rows are shorter.
const READ_AT_ONCE: i64 = 1 << 15;

impl Tensor {
    /// The tensor that statements call `variable`, with the entries of a file: those at the same place are added in the
    /// order of the file. Elements of another type become those of the tensor; floats are rounded. Each node reads the
    /// ranges that are dealt to it, twice if they are larger than a sixteenth of its memory, and packs the blocks that
    /// are; of a dense tensor whose file has all elements it reads once the blocks that are its. Waits until all is
    /// read. With the bytes that each node has read.
    ///
    /// # Errors
    ///
    /// [`DistributedError::Shape`] if the file has other extents; [`DistributedError::Dense`] and
    /// [`DistributedError::Stored`] if the tensor is stored as [tasks make no tensor](super::is_made_by_tasks);
    /// [`DistributedError::File`] if the file can't be read, is wrong, has numbers that are no elements of the tensor's
    /// type, or is another one on another node; [`DistributedError::Runtime`].
    pub fn read_entries<'a>(
        cx: &'a Context,
        variable: &'a TensorVariable,
        file: &'a EntryFile,
    ) -> Pending<'a, (Self, Vec<u64>)> {
        Box::pin(async move {
            if *variable.dimensions() != *file.dimensions() {
                let describe = |dimensions: &[i64]| format!("extents {dimensions:?}");
                let (expected, found) = (describe(variable.dimensions()), describe(file.dimensions()));
                return Err(DistributedError::Shape { tensor: variable.name().to_owned(), expected, found });
            }
            let is_dense = is_in_region(variable.format()) || variable.order() == 0;
            if !is_dense {
                check_packed(variable)?;
            }
            if file.element().is_complex() && !variable.element().is_complex() {
                return Err(file.wrong("its elements are complex, and must be real here".to_owned().into()));
            }
            // What one node can't read, all must know of.
            let digests = cx.per_node(file.digest().map_err(|error| told(&error))).all().await?;
            let digests: Vec<u64> =
                digests.into_iter().collect::<Result<_, _>>().map_err(|problem: FileProblem| file.wrong(problem))?;
            if let Some(node) = digests.iter().position(|digest| *digest != digests[0]) {
                let reason =
                    format!("it is not the same on node {node} as on node 0: all nodes must have the same file");
                return Err(file.wrong(reason.into()));
            }
            let before = file.bytes_read();
            let listed = match is_dense {
                true => variable.stored(Format::coordinates(variable.order())),
                false => variable.clone(),
            };
            let mut tensor = match file.order().filter(|_| is_dense) {
                Some(_) if variable.order() == 0 => read_number(cx, variable, file).await?,
                Some(order) => {
                    with_element!(variable.element(), T => read_dense::<T>(cx, variable, file, order).await)?
                }
                None => {
                    let parts = tasks_for(cx, file.length() as usize);
                    let entries = EntryParts { file: file.clone(), element: variable.element(), parts };
                    packed(cx, &listed, Arc::new(entries), parts).await?
                }
            };
            if *tensor.variable() != *variable {
                let dense = tensor.converted(cx, variable).await?;
                tensor.destroy(cx)?;
                tensor = dense;
            }
            let bytes = cx.per_node(file.bytes_read() - before).all().await?;
            Ok((tensor, bytes))
        })
    }
}

/// Reads elements of a file that has all, as elements of a type; `at` gives the coordinates of one by its number.
fn read_elements<T: Number>(
    file: &EntryFile,
    elements: Range<u64>,
    at: &dyn Fn(i64) -> Vec<i64>,
) -> Result<Vec<T>, FileProblem> {
    if file.has(<T as Element>::TYPE) {
        return file.read_elements(elements);
    }
    let first = elements.start as i64;
    let scalars = with_element!(file.element(), S => scalars::<S>(file, elements))?;
    let element = |(number, scalar)| {
        let what = || format!("element {:?} is", at(first + number as i64));
        element_that_is(scalar).ok_or_else(|| no_element(what, scalar, <T as Element>::TYPE))
    };
    scalars.into_iter().enumerate().map(element).collect()
}

fn scalars<S: Number>(file: &EntryFile, elements: Range<u64>) -> Result<Vec<Scalar>, FileProblem> {
    Ok(file.read_elements::<S>(elements)?.into_iter().map(Element::to_scalar).collect())
}

/// Reads the one element of a tensor without dimensions, on each node.
async fn read_number(cx: &Context, variable: &TensorVariable, file: &EntryFile) -> Result<Tensor, DistributedError> {
    let read = with_element!(variable.element(), T => {
        read_elements::<T>(file, 0..1, &|_| Vec::new()).map(|found| found[0].to_scalar())
    });
    let all = cx.per_node(read.as_ref().map(drop).map_err(Clone::clone)).all().await?;
    all.into_iter().collect::<Result<(), _>>().map_err(|problem| file.wrong(problem))?;
    let tensor = Tensor::new(cx, variable)?;
    tensor.fill(cx, read.map_err(|problem| file.wrong(problem))?)?;
    Ok(tensor)
}

/// Reads all elements, which the file has in an order, in pieces that lie in the file without a gap.
async fn read_dense<T: Element + FieldValue + Number>(
    cx: &Context,
    variable: &TensorVariable,
    file: &EntryFile,
    order: Order,
) -> Result<Tensor, DistributedError> {
    let tensor = Tensor::new(cx, variable)?;
    let runs = Runs::new(cx, variable, order);
    let step = tensor.modes().last().map_or(1, |last| runs.strides[last]);
    let (pieces, source) = (runs.pieces(), file.clone());
    let read = move |window: &mut (i64, Vec<T>), at: &[i64], into: &mut [T]| {
        let place = at.iter().zip(&runs.strides).map(|(at, stride)| at * stride).sum::<i64>();
        let wanted = place..place + (into.len() as i64 - 1) * step + 1;
        if wanted.start < window.0 || wanted.end > window.0 + window.1.len() as i64 {
            let run = runs.around(at);
            // Rows that lie in the file one after the other are read as they come, and others with all between them.
            let next = match step {
                1 => place..(place + READ_AT_ONCE.max(into.len() as i64)).min(run.end),
                _ => run,
            };
            *window = (
                next.start,
                read_elements::<T>(&source, next.start as u64..next.end as u64, &|number| runs.coordinates(number))?,
            );
        }
        let found = window.1[(place - window.0) as usize..].iter().step_by(step as usize);
        into.iter_mut().zip(found).for_each(|(into, found)| *into = *found);
        Ok(())
    };
    if let Some(launched) = tensor.put(cx, &pieces, read)? {
        let done = launched.all().await?;
        done.into_iter().collect::<Result<(), _>>().map_err(|problem| file.wrong(problem))?;
    }
    Ok(tensor)
}

/// A dense tensor in pieces whose elements lie side by side in a file: blocks of one dimension, at one coordinate of
/// each that varies slower.
struct Runs {
    dimensions: Vec<i64>,
    /// The dimensions, the one that varies slowest first.
    order: Vec<usize>,
    /// How far elements of the file are apart that are neighbours in each dimension.
    strides: Vec<i64>,
    /// How many dimensions are cut into single coordinates, and the extent of blocks of the one after them.
    cut: (usize, i64),
}

impl Runs {
    fn new(cx: &Context, variable: &TensorVariable, order: Order) -> Self {
        let dimensions = variable.dimensions().to_vec();
        let mut order_of: Vec<usize> = (0..dimensions.len()).collect();
        if order == Order::Columns {
            order_of.reverse();
        }
        let (mut strides, mut count) = (vec![0; dimensions.len()], 1);
        for &mode in order_of.iter().rev() {
            strides[mode] = count;
            count *= dimensions[mode];
        }
        let blocks = blocks_for(cx, count as usize * variable.element().size()) as u64;
        let most = ((count as u64).div_ceil(blocks) as i64).max(1);
        let last = order_of.len() - 1;
        let outer = order_of.iter().position(|&mode| strides[mode] <= most).unwrap_or(last);
        let mode = order_of[outer];
        let block = match outer {
            // In as many blocks as there are to be, of equal size.
            0 => (dimensions[mode] as u64).div_ceil(blocks) as i64,
            _ => most / strides[mode].max(1),
        };
        Self { dimensions, order: order_of, strides, cut: (outer, block.max(1)) }
    }

    fn pieces(&self) -> Vec<Rectangle> {
        let (cut, block) = self.cut;
        let whole: Vec<(i64, i64)> = self.dimensions.iter().map(|&extent| (0, extent)).collect();
        let mut pieces = vec![whole];
        for (number, &mode) in self.order[..=cut].iter().enumerate() {
            let (extent, block) = (self.dimensions[mode], if number == cut { block } else { 1 });
            let parts = |piece: Vec<(i64, i64)>| {
                (0..extent).step_by(block as usize).map(move |first| {
                    let mut part = piece.clone();
                    part[mode] = (first, (first + block).min(extent));
                    part
                })
            };
            pieces = pieces.into_iter().flat_map(parts).collect();
        }
        pieces.into_iter().map(Rectangle::new).collect()
    }

    /// The coordinates of an element, by its number in the file.
    fn coordinates(&self, number: i64) -> Vec<i64> {
        let (mut at, mut rest) = (vec![0; self.dimensions.len()], number);
        for &mode in &self.order {
            let stride = self.strides[mode].max(1);
            (at[mode], rest) = (rest / stride, rest % stride);
        }
        at
    }

    /// The range of elements in the file that is the piece around an element.
    fn around(&self, at: &[i64]) -> Range<i64> {
        let (cut, block) = self.cut;
        let before: i64 = self.order[..cut].iter().map(|&mode| at[mode] * self.strides[mode]).sum();
        let mode = self.order[cut];
        let first = at[mode] / block * block;
        let end = (first + block).min(self.dimensions[mode]);
        before + first * self.strides[mode]..before + end * self.strides[mode]
    }
}

/// The entries of a file in so many parts, as elements of a type.
struct EntryParts {
    file: EntryFile,
    element: ElementType,
    parts: i64,
}

/// A filter that hands on the entries of a file, and keeps the coordinates of the first entry outside of the tensor.
struct Within<'a, 'b> {
    extents: &'a [i64],
    at: Vec<i64>,
    outside: Option<Vec<i64>>,
    into: &'a mut Batches<'b>,
}

impl Within<'_, '_> {
    /// Hands on an entry if it is inside.
    fn hand_on(&mut self, at: &[u64], hand_on: impl FnOnce(&mut Batches<'_>, &[i64])) {
        self.at.iter_mut().zip(at).for_each(|(signed, &at)| *signed = at as i64);
        match at.iter().zip(self.extents).all(|(at, &extent)| *at < extent as u64) {
            true => hand_on(self.into, &self.at),
            false => self.outside = self.outside.take().or_else(|| Some(self.at.clone())),
        }
    }
}

impl EntryParts {
    /// Lists entries whose elements are read as those of a type.
    fn read<T: Number>(&self, part: u64, within: &mut Within<'_, '_>) -> Result<Evidence, FileProblem> {
        let parts = self.parts as u64;
        self.file.read_part(part, parts, &mut |at, value: T| within.hand_on(at, |into, at| into.push(at, value)))
    }

    /// Lists entries whose elements are read as those of a type, and converted.
    fn convert<T: Number>(&self, part: u64, within: &mut Within<'_, '_>) -> Result<Evidence, FileProblem> {
        let (parts, mut wrong) = (self.parts as u64, None);
        let read = self.file.read_part(part, parts, &mut |at, value: T| match as_element(
            value.to_scalar(),
            self.element,
        ) {
            Some(value) => within.hand_on(at, |into, at| into.push_scalar(at, value)),
            None => wrong = wrong.or(Some(value.to_scalar())),
        })?;
        wrong.map_or(Ok(read), |number| Err(no_element(|| HAS_ELEMENT.to_owned(), number, self.element)))
    }
}

impl Lists for EntryParts {
    fn parts(&self) -> i64 {
        self.parts
    }

    fn list(&self, call: &LeafCall<'_>, into: &mut Batches<'_>) -> maniple::Result<Result<Evidence, FileProblem>> {
        let (part, extents) = (call.point().coords()[0] as u64, self.file.dimensions());
        let mut within = Within { extents, at: vec![0; extents.len()], outside: None, into };
        let read = match self.file.has(self.element) {
            true => with_element!(self.element, T => self.read::<T>(part, &mut within)),
            false => with_element!(self.file.element(), T => self.convert::<T>(part, &mut within)),
        };
        Ok(read.and_then(|read| match within.outside {
            None => Ok(read),
            Some(at) => Err(format!("an entry, at {at:?}, is outside of {extents:?}").into()),
        }))
    }

    fn are_kept(&self) -> bool {
        true
    }

    fn check(&self, all: &[Evidence]) -> Result<(), FileProblem> {
        self.file.check(all)
    }

    fn error(&self, problem: FileProblem) -> DistributedError {
        self.file.wrong(problem)
    }
}
