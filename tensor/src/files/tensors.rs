//! Files as tensors of the runtime.

use std::io;

use maniple::Context;

use super::error::FileError;
use super::in_parts::FileInParts;
use super::named::TensorFile;
use super::opened::Opened;
use crate::distributed::{DistributedError, Pending, Tensor, Writers, alone};
use crate::format::Format;
use crate::notation::TensorVariable;
use crate::storage::{Duplicates, DynamicTensor};

impl TensorFile {
    /// Reads the tensor that statements call `name`, with elements of the type of the file: by the tasks of all nodes,
    /// each its parts of the file, where the file can be read so; otherwise each node reads all of it. It is stored in
    /// a format; without one, as a `.tcs` file says, or densely if the file has all elements. All nodes open the same
    /// file.
    ///
    /// ```
    /// use maniple_tensor::prelude::*;
    ///
    /// # let folder = tempfile::tempdir()?;
    /// # let (matrix, product) = (folder.path().join("a.mtx"), folder.path().join("y.npy"));
    /// # std::fs::write(&matrix, "%%MatrixMarket matrix coordinate real general\n3 3 2\n1 2 0.5\n3 3 1.5\n")?;
    /// let runtime = Runtime::builder().workers(2).mapper(TensorMapper::new()).build()?;
    /// let elements = runtime.run(async |cx| {
    ///     let a = TensorFile::of(&matrix)?.tensor(cx, "A", Some("csr".parse()?)).await?;
    ///     let x = Tensor::new(cx, &TensorVariable::new("x", F64, [3]))?;
    ///     x.fill(cx, 2.0.into())?;
    ///     let y = cx.compute("y(i) = A(i,j) * x(j)").with([&a, &x]).run().await?;
    ///     TensorFile::of(&product)?.save(cx, &y).await?;
    ///     Ok(TensorFile::of(&product)?.tensor(cx, "z", None).await?.read_elements::<f64>(cx).await?)
    /// })?;
    /// assert_eq!(elements, [1.0, 0.0, 3.0]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`DistributedError::File`] if a node can't read the file, or has another one than node 0, and if it lists the
    /// entries of a sparse tensor and no format is given; [`DistributedError::Unfit`] if the format does not fit the
    /// tensor; [`DistributedError::Runtime`].
    pub fn tensor<'a>(&'a self, cx: &'a Context, name: &'a str, format: Option<Format>) -> Pending<'a, Tensor> {
        Box::pin(async move {
            let opened = self.open(true).and_then(|opened| self.prepared(opened, name, format));
            let own: Result<u64, String> = match &opened {
                Ok(readable) => Ok(readable.digest()),
                Err(error) => Err(self.reason(error)),
            };
            let all = cx.per_node(own).all().await?;
            if let Some(reason) = all.iter().find_map(|found| found.as_ref().err()) {
                return Err(self.refused(reason.clone(), true));
            }
            let readable = opened.map_err(|error| self.refused(self.reason(&error), true))?;
            check_alike(&readable.name, &all)?;
            readable.read(cx).await
        })
    }

    /// Writes a tensor: by the tasks of all nodes, each its part, where the file can be written so; otherwise one
    /// node writes all of it.
    ///
    /// # Errors
    ///
    /// [`DistributedError::File`] if the file can't be written, or holds no such tensors;
    /// [`DistributedError::Runtime`].
    pub fn save<'a>(&'a self, cx: &'a Context, tensor: &'a Tensor) -> Pending<'a, ()> {
        Box::pin(async move {
            if self.store(cx, tensor, Writers::Together).await?.is_some() {
                return Ok(());
            }
            let (whole, file) = (tensor.read_dynamic(cx).await?, self.clone());
            let write = move || file.write(&whole).map(|()| 0).map_err(|error| io::Error::other(file.reason(&error)));
            let written = alone(cx, "write a file", write).await?;
            written.map(drop).map_err(|reason| self.refused(reason, false))
        })
    }

    /// The tensor that an opened file becomes.
    fn prepared(&self, mut opened: Opened, name: &str, format: Option<Format>) -> Result<Readable, FileError> {
        let unfit = |reason: String| FileError::Unfit(reason);
        let format = match format.or_else(|| opened.format()) {
            Some(format) => format,
            None if opened.is_list() => {
                let known = "such as csr, coo or csf:3";
                return Err(unfit(format!("it lists the entries of a sparse tensor: say how to store it, {known}")));
            }
            None => Format::dense(opened.dimensions().len()),
        };
        if opened.is_without_entries() {
            return Err(unfit("it has no entries, which would tell the extents".to_owned()));
        }
        if opened.dimensions().len() != format.rank() {
            opened.take_order(format.rank());
        }
        let (element, dimensions) = (opened.element(), opened.dimensions());
        format.check_rank(dimensions.len()).map_err(|error| unfit(error.to_string()))?;
        let variable = TensorVariable::new(name, element, dimensions).stored(format);
        let variable = opened.fill().map_or_else(|| variable.clone(), |fill| variable.filled(fill));
        opened.readable(&variable, true)
    }

    /// The message of an error without the name of the file.
    fn reason(&self, error: &FileError) -> String {
        let (text, name) = (error.to_string(), format!("{}: ", self.path().display()));
        text.strip_prefix(&name).map_or_else(|| text.clone(), str::to_owned)
    }

    fn refused(&self, reason: String, is_input: bool) -> DistributedError {
        DistributedError::File { name: self.path().display().to_string(), reason, is_input }
    }
}

/// A tensor in a file that was opened: all nodes can read it.
#[derive(Debug)]
pub struct Readable {
    /// The file, as it is called.
    name: String,
    variable: TensorVariable,
    source: ContentSource,
}

/// The contents of a file.
#[derive(Debug)]
enum ContentSource {
    /// A file that tasks read in parts.
    Parts(FileInParts),
    /// The tensor, which each node has whole.
    Whole(DynamicTensor),
}

impl Opened {
    /// The file as the tensor that statements call `variable`. Unless tasks [can read it in
    /// parts](FileInParts::fits), it is read here, with the zeros that it has or without.
    ///
    /// # Errors
    ///
    /// [`FileError`] if the file can't be read, or does not fit the variable.
    pub fn readable(self, variable: &TensorVariable, with_zeros: bool) -> Result<Readable, FileError> {
        let (name, variable) = (self.name().display().to_string(), variable.clone());
        if let Some(parts) = self.parts().filter(|parts| parts.fits([variable.format()].into_iter())) {
            return Ok(Readable { name, variable, source: ContentSource::Parts(parts.clone()) });
        }
        let entries = self.read(variable.element())?.entries;
        let entries = if with_zeros { entries } else { entries.without_zeros() };
        let packed = entries.pack(variable.format(), variable.dimensions(), variable.fill(), Duplicates::Sum);
        let (tensor, _) = packed.map_err(|error| FileError::Unfit(error.to_string()))?;
        Ok(Readable { name, variable, source: ContentSource::Whole(tensor) })
    }
}

impl Readable {
    /// Whether tasks read it in parts.
    #[must_use]
    pub fn is_in_parts(&self) -> bool {
        matches!(self.source, ContentSource::Parts(_))
    }

    /// The variable by which statements name the tensor.
    #[must_use]
    pub fn variable(&self) -> &TensorVariable {
        &self.variable
    }

    /// Reads the tensor on all nodes.
    ///
    /// # Errors
    ///
    /// As of [`TensorFile::tensor`].
    pub fn tensor<'a>(&'a self, cx: &'a Context) -> Pending<'a, Tensor> {
        Box::pin(async move {
            if !self.is_in_parts() {
                check_alike(&self.name, &cx.per_node(self.digest()).all().await?)?;
            }
            self.read(cx).await
        })
    }

    async fn read(&self, cx: &Context) -> Result<Tensor, DistributedError> {
        match &self.source {
            ContentSource::Parts(parts) => {
                let (tensor, _) = parts.read(cx, &self.variable).await?;
                let converted = tensor.converted(cx, &self.variable).await?;
                if *tensor.variable() != *converted.variable() {
                    tensor.destroy(cx)?;
                }
                Ok(converted)
            }
            ContentSource::Whole(tensor) => Tensor::from_dynamic(cx, &self.variable, tensor),
        }
    }

    /// A number that is another one for other contents, or most of them.
    fn digest(&self) -> u64 {
        match &self.source {
            ContentSource::Parts(parts) => parts.digest(),
            ContentSource::Whole(tensor) => tensor.digest(),
        }
    }
}

/// Checks that all nodes have found the same in a file.
fn check_alike<D: PartialEq>(name: &str, digests: &[D]) -> Result<(), DistributedError> {
    match digests.iter().position(|digest| *digest != digests[0]) {
        None => Ok(()),
        Some(node) => {
            let reason = format!("it is not the same on node {node} as on node 0: all nodes must have the same file");
            Err(DistributedError::File { name: name.to_owned(), reason, is_input: true })
        }
    }
}
