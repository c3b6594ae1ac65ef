//! Tensors that tasks write to files, each node its part.

use maniple::Context;
use maniple_files::output::is_special;

use super::kind::FileKind;
use super::named::TensorFile;
use super::tcs::levels;
use crate::distributed::{Pending, Tensor, TextForm, Writers, is_stored_as_npy};
use crate::element::Scalar;
use crate::notation::{TensorVariable, cast};

/// The parts that nodes write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NodeParts {
    /// Elements of all.
    Elements,
    /// Arrays of levels.
    Levels,
    /// Lines of text.
    Lines(TextForm),
}

impl TensorFile {
    /// Whether the tasks of so many nodes can [write](Self::store) a tensor, each node its part.
    #[must_use]
    pub fn is_written_in_parts(&self, tensor: &TensorVariable, nodes: usize) -> bool {
        self.parts(tensor, nodes).is_some()
    }

    fn parts(&self, tensor: &TensorVariable, nodes: usize) -> Option<NodeParts> {
        let (format, by_nodes) = (tensor.format(), nodes > 1);
        let lines = |form: TextForm| {
            let is_zero = tensor.fill() == cast(Scalar::I32(0), tensor.element());
            let fits = tensor.order() <= 2 || form == TextForm::Coordinates;
            (by_nodes && !format.is_dense() && is_zero && fits).then_some(NodeParts::Lines(form))
        };
        // Pipes and devices are written by one node.
        match self.kind.filter(|_| !is_special(self.path()))? {
            FileKind::Numpy => (by_nodes && is_stored_as_npy(format)).then_some(NodeParts::Elements),
            FileKind::MatrixMarket => lines(TextForm::MatrixMarket),
            FileKind::Coordinates => lines(TextForm::Coordinates),
            // A number has no levels, and of other levels one node writes the entries.
            FileKind::Levels => (tensor.order() > 0 && levels(format).is_some()).then_some(NodeParts::Levels),
            FileKind::Archive => None,
        }
    }

    /// Has tasks write a tensor, each node its part, and waits for them: with the bytes that each node has written;
    /// none if [they can't](Self::is_written_in_parts), and nothing is written.
    ///
    /// # Errors
    ///
    /// As of [`Tensor::store_npy`], [`Tensor::store_by`] and [`Tensor::store_text`].
    pub fn store<'a>(&'a self, cx: &'a Context, tensor: &'a Tensor, writers: Writers) -> Pending<'a, Option<Vec<u64>>> {
        Box::pin(async move {
            let Some(parts) = self.parts(tensor.variable(), cx.nodes()) else { return Ok(None) };
            let written = match parts {
                NodeParts::Elements => tensor.store_npy(cx, self.path(), writers).await?,
                NodeParts::Levels => tensor.store_by(cx, self.path(), self.width(), writers).await?,
                NodeParts::Lines(form) => tensor.store_text(cx, self.path(), form, writers).await?,
            };
            Ok(Some(written.bytes))
        })
    }
}
