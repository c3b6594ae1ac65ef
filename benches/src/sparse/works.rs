//! What is computed with sparse tensors, and the data that all get.

use std::path::PathBuf;

use maniple_tensor::element::ElementType::F64;
use maniple_tensor::generate::Generator;
use maniple_tensor::notation::{Assignment, TensorVariable, parse};
use maniple_tensor::storage::{Duplicates, SparseTensor, pack};

use crate::error::{Error, Result};
use crate::tensors::contest::Stage;

/// A computation on matrices of one kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Work {
    /// `spmv`, `spmm` with the number of columns, `spadd3` or `spgemm`.
    pub kernel: String,
    /// A generator's name, a colon, and the number of rows, or the grid's extent.
    pub kind: String,
}

/// The operands of a work, by name.
pub type Operands = Vec<(String, SparseTensor<f64>)>;

impl Work {
    /// The statement, with the extents and formats of its tensors.
    ///
    /// # Errors
    /// If there is no such kernel.
    pub fn assignment(&self, rows: i64) -> Result<Assignment> {
        let (text, columns) = match self.kernel.strip_prefix("spmm") {
            Some(columns) => ("Y(i,k) = A(i,j) * X(j,k)", columns.parse().map_err(|_| self.unknown())?),
            None => match self.kernel.as_str() {
                "spmv" => ("y(i) = A(i,j) * x(j)", 1),
                "spadd3" => ("Y(i,j) = A(i,j) + B(i,j) + C(i,j)", rows),
                "spgemm" => ("Y(i,j) = A(i,k) * A(k,j)", rows),
                _ => return Err(self.unknown()),
            },
        };
        let csr = |name: &str| {
            let format = "csr".parse().map_err(Error::tensor)?;
            Ok::<_, Error>(TensorVariable::new(name, F64, [rows, rows]).stored(format))
        };
        let result = match text.contains("X(") {
            true => TensorVariable::new("Y", F64, [rows, columns]),
            false => csr("Y")?,
        };
        let (x, y) = (TensorVariable::new("x", F64, [rows]), TensorVariable::new("y", F64, [rows]));
        let tensors = [csr("A")?, csr("B")?, csr("C")?, result, x, y, TensorVariable::new("X", F64, [rows, columns])];
        parse(text, &tensors).map_err(Error::tensor)
    }

    fn unknown(&self) -> Error {
        Error::tensor(std::io::Error::other(format!("no work {} on {}", self.kernel, self.kind)))
    }

    /// The operands: matrices by the generator, from different seeds, with whole numbers, so that sums are exact in any order; dense ones with whole numbers.
    ///
    /// # Errors
    /// If there is no such generator, or memory is short.
    pub fn operands(&self) -> Result<(Assignment, Operands)> {
        let (name, extent) = self.kind.split_once(':').ok_or_else(|| self.unknown())?;
        let extent: i64 = extent.parse().map_err(|_| self.unknown())?;
        let (generator, rows) = match name {
            "poisson" => (self.kind.clone(), extent * extent),
            "uniform" => (format!("uniform:{}", 8.0 / extent as f64), extent),
            _ => (self.kind.clone(), extent),
        };
        let generator: Generator = generator.parse().map_err(Error::tensor)?;
        let assignment = self.assignment(rows)?;
        let mut operands = Operands::new();
        for tensor in assignment.tensors().iter().filter(|tensor| tensor.name() != assignment.left().tensor.name()) {
            let made = match tensor.format().to_string().as_str() {
                "{D,C}(0,1)" | "csr" => {
                    let seed = u64::from(tensor.name().as_bytes()[0]);
                    let entries = generator.rows(&[rows, rows], 0..rows, seed).map_err(Error::tensor)?;
                    let packed = pack(tensor.format(), &[rows, rows], 0.0, entries, Duplicates::First);
                    let mut matrix = packed.map_err(Error::tensor)?.tensor;
                    matrix.values_mut().iter_mut().enumerate().for_each(|(at, value)| *value = (at % 7) as f64 + 1.0);
                    matrix
                }
                _ => {
                    let count = tensor.dimensions().iter().product::<i64>() as usize;
                    let elements = (0..count).map(|at| (at % 5) as f64 + 1.0).collect();
                    SparseTensor::from_elements(tensor.dimensions(), 0.0, elements).map_err(Error::tensor)?
                }
            };
            operands.push((tensor.name().to_owned(), made));
        }
        Ok((assignment, operands))
    }

    /// Where the data of a work is.
    #[must_use]
    pub fn folder(&self, stage: &Stage) -> PathBuf {
        stage.toolbox.folder().join(format!("{}-{}", self.kernel, self.kind.replace(':', "-")))
    }
}
