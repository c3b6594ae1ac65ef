//! Tensors written to files of text by tasks, each node the lines of its own entries.
//!
//! How long a line is, its numbers tell. So all lines are made twice: first to find out how long those of each part
//! are, and so where the next ones begin; and then to be written there.

use std::fs::OpenOptions;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use maniple::space::{AnyRect, Rect};
use maniple::task::{LeafCall, TaskDefinition};
use maniple::{Context, TaskLauncher};
use maniple_files::tcs::store::Target;
use maniple_files::{EntryLines, Number, matrix_market};

use super::aside::{Aside, UNSHARED, alone, create, finish, wrong};
use super::convert::ConversionSource;
use super::error::DistributedError;
use super::lists::Lists;
use super::packing::task;
use super::pending::Pending;
use super::tcs::{Writers, WrittenTensor};
use super::tensor::Tensor;
use crate::element::Scalar;
use crate::format::Format;
use crate::notation::cast;
use crate::storage::SparseTensor;
use crate::with_element;

/// A kind of files of text that have entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextForm {
    /// Matrix Market, in the layout `coordinate`: matrices, and vectors as matrices of one column.
    MatrixMarket,
    /// `.tns`: tensors of one dimension or more, whose extents it does not say.
    Coordinates,
}

/// So many lines are made before they are written.
const LINES: usize = 1 << 13;

impl Tensor {
    /// Writes the entries of a tensor in levels to a file of text, sorted by their coordinates: each node writes those
    /// that it has at their place, in a file beside the one that is asked for, in a folder that all nodes see. When all
    /// is written, the file takes the name; if anything fails before, it is removed, and what had the name stays as it
    /// was. A tensor that is not stored in that order is converted before. Waits until it is done.
    ///
    /// # Errors
    ///
    /// [`DistributedError::File`] if it can't be written, or there are no such files of the tensor;
    /// [`DistributedError::Dense`] if it is not in levels; [`DistributedError::Runtime`].
    pub fn store_text<'a>(
        &'a self,
        cx: &'a Context,
        path: &'a Path,
        form: TextForm,
        writers: Writers,
    ) -> Pending<'a, WrittenTensor> {
        Box::pin(async move {
            let (variable, name) = (self.variable(), || self.variable().name().to_owned());
            if !self.is_in_levels() {
                return Err(DistributedError::Dense { tensor: name() });
            }
            let (order, most) = (variable.order(), if form == TextForm::MatrixMarket { 2 } else { usize::MAX });
            if order == 0 || order > most {
                return Err(wrong(path, format!("such files have no tensors of {order} dimensions")));
            }
            if variable.fill() != cast(Scalar::I32(0), variable.element()) {
                let fill = variable.fill();
                return Err(wrong(
                    path,
                    format!("what is not stored is zero in such files, and {fill:?} in {}", name()),
                ));
            }
            if !variable.format().is_in_order() {
                let sorted = self.converted(cx, &variable.stored(Format::coordinates(order))).await?;
                let written = sorted.lines(cx, path, form, writers).await;
                sorted.destroy(cx)?;
                return written;
            }
            self.lines(cx, path, form, writers).await
        })
    }

    async fn lines(
        &self,
        cx: &Context,
        path: &Path,
        form: TextForm,
        writers: Writers,
    ) -> Result<WrittenTensor, DistributedError> {
        let source = Arc::new(ConversionSource::of(cx, self).await?.0);
        let parts = source.parts();
        let launcher = |task: &Arc<TaskDefinition>| {
            source.requirements().iter().cloned().fold(TaskLauncher::new(task), TaskLauncher::requirement)
        };
        let of = Arc::clone(&source);
        let measure = task("measure", self.variable(), move |call| {
            let mut bytes = 0;
            let mut add = |text: &[u8]| {
                bytes += text.len() as u64;
                Ok(())
            };
            let count = each_text(&of, call, form, &mut add)?.map_err(maniple::Error::from_task)?;
            Ok((bytes, count))
        });
        let all = AnyRect::from(Rect::<1>::from(0..parts));
        let measured = cx.index_launch(all, launcher(&measure).typed::<(u64, u64)>()).all().await?;
        let mut head = Vec::new();
        if form == TextForm::MatrixMarket {
            let extent = |mode: usize| self.variable().dimensions().get(mode).map_or(1, |&extent| extent as u64);
            let count = measured.iter().map(|(_, count)| count).sum();
            with_element!(source.element(), T => {
                matrix_market::write_head::<T>(&mut head, extent(0), extent(1), count)
            })
            .map_err(|error| wrong(path, error.to_string()))?;
        }
        let mut end = head.len() as u64;
        let begin = |(bytes, _): &(u64, u64)| {
            end += bytes;
            end - bytes
        };
        let starts: Vec<u64> = measured.iter().map(begin).collect();

        let of = path.to_owned();
        let number = alone(cx, "create a file", move || create(&of, end)).await?.map_err(|error| wrong(path, error))?;
        // From here on whatever happens removes the file, unless it gets its name.
        let aside = Aside::new(path, number);
        let written = Arc::new(AtomicU64::new(0));
        let (of, to, count) = (Arc::clone(&source), aside.path.clone(), Arc::clone(&written));
        let write = task("write", self.variable(), move |call: &LeafCall<'_>| {
            let file = match OpenOptions::new().write(true).open(&to) {
                Ok(file) => file,
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Err(UNSHARED.to_owned())),
                Err(error) => return Ok(Err(error.to_string())),
            };
            let mut at = starts[call.point().coords()[0] as usize];
            let mut put = |text: &[u8]| {
                file.write_at(at, text)?;
                at += text.len() as u64;
                count.fetch_add(text.len() as u64, Ordering::Relaxed);
                Ok(())
            };
            let done = each_text(&of, call, form, &mut put)?.and_then(|_| file.sync_data());
            Ok(done.map_err(|error| error.to_string()))
        });
        let domains: Vec<AnyRect> = match writers {
            Writers::Together => vec![all],
            Writers::InTurn => (0..parts).map(|part| AnyRect::from(Rect::<1>::from(part..part + 1))).collect(),
        };
        for domain in domains {
            let done = cx.index_launch(domain, launcher(&write).typed::<Result<(), String>>()).all().await?;
            done.into_iter().collect::<Result<(), String>>().map_err(|error| wrong(path, error))?;
        }
        let (from, to) = (aside.path.clone(), path.to_owned());
        _ = alone(cx, "name a file", move || finish(&from, &to, &head)).await?.map_err(|error| wrong(path, error))?;
        aside.keep();
        let bytes = cx.per_node(written.load(Ordering::Relaxed)).all().await?;
        Ok(WrittenTensor { pieces: parts as usize, bytes })
    }
}

/// Takes the text of some lines.
type Put<'a> = dyn FnMut(&[u8]) -> io::Result<()> + 'a;

/// The lines of the entries of the part of a task's point, some thousands at a time; gives how many entries there are,
/// or the first error of `put`.
fn each_text(
    source: &ConversionSource,
    call: &LeafCall<'_>,
    form: TextForm,
    put: &mut Put<'_>,
) -> maniple::Result<io::Result<u64>> {
    with_element!(source.element(), T => Ok(each_text_of::<T>(&source.part(call)?, form, put)))
}

fn each_text_of<T: Number>(tensor: &SparseTensor<T>, form: TextForm, put: &mut Put<'_>) -> io::Result<u64> {
    // A vector is a matrix of one column.
    let columns = if form == TextForm::MatrixMarket { 2 } else { tensor.dimensions().len() };
    let (mut at, mut lines, mut count, mut done) = (vec![0; columns], EntryLines::default(), 0_u64, Ok(()));
    tensor.for_each(|coordinates, value| {
        at[..coordinates.len()].copy_from_slice(coordinates);
        lines.add(&at, value);
        count += 1;
        if count.is_multiple_of(LINES as u64) {
            let text = std::mem::take(&mut lines);
            done = std::mem::replace(&mut done, Ok(())).and_then(|()| put(text.as_ref()));
        }
    });
    done?;
    put(lines.as_ref())?;
    Ok(count)
}
