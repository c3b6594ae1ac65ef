//! Computations with sparse tensors, and the data that all contestants get.

use std::path::PathBuf;

use maniple_tensor::element::ElementType::F64;
use maniple_tensor::generate::Generator;
use maniple_tensor::notation::{Assignment, TensorVariable, parse};
use maniple_tensor::storage::{Duplicates, EntryList, SparseTensor, pack};

use crate::error::{Error, Result};
use crate::tensors::contest::Stage;

/// A computation on matrices of one kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Work {
    /// `spmv`, `spmm` with the number of columns, `spadd3`, `spgemm`, `sddmm` with the number of columns, `triangles`,
    /// `spttv`, or `mttkrp` with the number of columns.
    pub kernel: String,
    /// A generator's name, a colon, and the number of rows, or the grid's extent, or the logarithm of the number of
    /// rows.
    pub kind: String,
}

/// Compressed fibers, with numbers as wide as kernels read them, and rivals have them: narrower ones are widened for
/// each run.
const CUBE: &str = "{C<i32,i32>,C<i32,i32>,C<i32,i32>}";

/// The operands of a work, by name.
pub type Operands = Vec<(String, SparseTensor<f64>)>;

impl Work {
    /// The statement, with the extents and formats of its tensors, given the number of rows.
    ///
    /// # Errors
    /// If there is no such kernel.
    pub fn assignment(&self, rows: i64) -> Result<Assignment> {
        let columns = |name: &str| {
            let number = self.kernel.strip_prefix(name).filter(|number| !number.is_empty());
            number.map(|number| number.parse::<i64>().map_err(|_| self.unknown())).transpose()
        };
        let tensor = |name: &str, extents: &[i64], format: &str| {
            let format = format.parse().map_err(Error::tensor)?;
            Ok::<_, Error>(TensorVariable::new(name, F64, extents).stored(format))
        };
        let matrix = |name: &str| tensor(name, &[rows, rows], "csr");
        // As three dimensions of a well-known tensor of films: users, films, and days.
        let [films, days] = [rows * 3 / 80, rows / 24];
        let (text, tensors) = match (columns("spmm")?, columns("sddmm")?, columns("mttkrp")?) {
            (Some(columns), ..) => {
                let dense = |name: &str| tensor(name, &[rows, columns], "rows");
                ("Y(i,k) = A(i,j) * X(j,k)", vec![dense("Y")?, matrix("A")?, dense("X")?])
            }
            (_, Some(columns), _) => {
                let dense = |name: &str| tensor(name, &[rows, columns], "rows");
                ("Y(i,j) = A(i,j) * C(i,k) * D(j,k)", vec![matrix("Y")?, matrix("A")?, dense("C")?, dense("D")?])
            }
            (.., Some(columns)) => {
                let dense = |name: &str, extent: i64| tensor(name, &[extent, columns], "rows");
                let cube = tensor("T", &[rows, films, days], CUBE)?;
                let tensors = vec![dense("Y", rows)?, cube, dense("C", films)?, dense("D", days)?];
                ("Y(i,l) = T(i,j,k) * C(j,l) * D(k,l)", tensors)
            }
            _ => match self.kernel.as_str() {
                "spmv" => {
                    let vector = |name: &str| tensor(name, &[rows], "{D}");
                    ("y(i) = A(i,j) * x(j)", vec![vector("y")?, matrix("A")?, vector("x")?])
                }
                "spadd3" => {
                    let matrices = ["Y", "A", "B", "C"].into_iter().map(matrix).collect::<Result<_>>()?;
                    ("Y(i,j) = A(i,j) + B(i,j) + C(i,j)", matrices)
                }
                "spgemm" => ("Y(i,j) = A(i,k) * A(k,j)", vec![matrix("Y")?, matrix("A")?]),
                // Of a graph, whose edges lead to nodes with lower numbers.
                "triangles" => ("t = A(i,j) * A(i,k) * A(j,k)", vec![tensor("t", &[], "{}")?, matrix("A")?]),
                "spttv" => {
                    let cube = tensor("T", &[rows, films, days], CUBE)?;
                    let result = tensor("Y", &[rows, films], "{C<i32,i32>,C<i32,i32>}")?;
                    ("Y(i,j) = T(i,j,k) * x(k)", vec![result, cube, tensor("x", &[days], "{D}")?])
                }
                _ => return Err(self.unknown()),
            },
        };
        parse(text, &tensors).map_err(Error::tensor)
    }

    fn unknown(&self) -> Error {
        Error::tensor(std::io::Error::other(format!("no work {} on {}", self.kernel, self.kind)))
    }

    /// The operands: matrices by the generator, from different seeds, with whole numbers, so that sums are exact in any
    /// order; dense ones with whole numbers.
    ///
    /// # Errors
    /// If there is no such generator, or memory is short.
    pub fn operands(&self) -> Result<(Assignment, Operands)> {
        let (name, extent) = self.kind.split_once(':').ok_or_else(|| self.unknown())?;
        let extent: i64 = extent.parse().map_err(|_| self.unknown())?;
        let (generator, rows) = match name {
            "poisson" => (self.kind.clone(), extent * extent),
            "uniform" => (format!("uniform:{}", 8.0 / extent as f64), extent),
            // As many elements for each row as a tenth of that tensor has.
            "films" => (format!("uniform:{}", 208.0 / (extent * 3 / 80 * (extent / 24)) as f64), extent),
            "rmat" => (self.kind.clone(), 1 << extent),
            "zipf" => (format!("zipf:{}", extent * 10), extent),
            "band" => (format!("band:{}", 64.min(extent)), extent),
            "arrow" => ("arrow".to_owned(), extent),
            _ => (self.kind.clone(), extent),
        };
        let generator: Generator = generator.parse().map_err(Error::tensor)?;
        let assignment = self.assignment(rows)?;
        let mut operands = Operands::new();
        for tensor in assignment.tensors().iter().filter(|tensor| tensor.name() != assignment.left().tensor.name()) {
            let made = match tensor.format().is_dense() {
                false => {
                    let seed = u64::from(tensor.name().as_bytes()[0]);
                    let extents = tensor.dimensions();
                    let mut entries = generator.rows(extents, 0..rows, seed).map_err(Error::tensor)?;
                    if name == "rmat" {
                        entries = lower(&entries);
                    }
                    let packed = pack(tensor.format(), extents, 0.0, entries, Duplicates::First);
                    let mut matrix = packed.map_err(Error::tensor)?.tensor;
                    let is_graph = name == "rmat";
                    let value = |at: usize| if is_graph { 1.0 } else { (at % 7) as f64 + 1.0 };
                    matrix.values_mut().iter_mut().enumerate().for_each(|(at, element)| *element = value(at));
                    matrix
                }
                true => {
                    // Packed, as all is, and so in large pages, in which NumPy's arrays are too.
                    let (extents, nothing) = (tensor.dimensions(), EntryList::new(tensor.dimensions().len()));
                    let packed = pack(tensor.format(), extents, 0.0, nothing, Duplicates::First);
                    let mut dense = packed.map_err(Error::tensor)?.tensor;
                    let all = dense.values_mut().iter_mut().enumerate();
                    all.for_each(|(at, element)| *element = (at % 5) as f64 + 1.0);
                    dense
                }
            };
            operands.push((tensor.name().to_owned(), made));
        }
        Ok((assignment, operands))
    }

    /// The folder of the data of a work.
    #[must_use]
    pub fn folder(&self, stage: &Stage) -> PathBuf {
        stage.toolbox.folder().join(format!("{}-{}", self.kernel, self.kind.replace(':', "-")))
    }
}

/// The edges of a graph, each from the node with the higher number, without those from a node to itself.
fn lower(edges: &EntryList<f64>) -> EntryList<f64> {
    let mut lower = EntryList::new(2);
    let ends = (0..edges.len()).map(|edge| edges.coordinates(edge)).filter(|ends| ends[0] != ends[1]);
    ends.for_each(|ends| lower.push(&[ends[0].max(ends[1]), ends[0].min(ends[1])], 1.0));
    lower
}
