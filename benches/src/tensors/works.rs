//! Computations of this project's program, and their methods.

use std::fmt;
use std::str::FromStr;

use maniple_tensor::algorithms::{self, Algorithm};
use maniple_tensor::concrete::Statement;
use maniple_tensor::element::ElementType;
use maniple_tensor::notation::{IndexVariable, parse_with_extents};

use super::expected;
use crate::error::{Error, Result};

/// A statement with the sizes of its tensors, and how it is computed. Its text is how the program is told.
#[derive(Clone, Debug, PartialEq)]
pub struct Work {
    /// How.
    pub method: Method,
    /// On a grid of so many processors.
    pub grid: Vec<i64>,
    /// The type of all elements.
    pub element: ElementType,
    /// The extents of i, j, k and so on.
    pub extents: Vec<u64>,
}

/// How something is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// A product of matrices, each processor a tile of the result, all at once.
    Gemm,
    /// A product of matrices by SUMMA.
    Summa,
    /// A product of matrices by Cannon's algorithm.
    Cannon,
    /// A tensor times a vector.
    Ttv,
    /// The inner product of two tensors.
    Innerprod,
    /// A tensor times a matrix.
    Ttm,
    /// A matricised tensor times a Khatri-Rao product, which keeps its first index.
    First,
    /// The same for the second index.
    Second,
    /// The same for the third index.
    Third,
}

/// All methods: what they are called, the statement, and the letters of each access.
const METHODS: &[(Method, &str, &str, &[&str])] = {
    const PRODUCT: &str = "A(i,j) = B(i,k) * C(k,j)";
    const OF_PRODUCT: &[&str] = &["ij", "ik", "kj"];
    &[
        (Method::Gemm, "gemm", PRODUCT, OF_PRODUCT),
        (Method::Summa, "summa", PRODUCT, OF_PRODUCT),
        (Method::Cannon, "cannon", PRODUCT, OF_PRODUCT),
        (Method::Ttv, "ttv", "A(i,j) = B(i,j,k) * c(k)", &["ij", "ijk", "k"]),
        (Method::Innerprod, "innerprod", "a = B(i,j,k) * C(i,j,k)", &["", "ijk", "ijk"]),
        (Method::Ttm, "ttm", "A(i,j,l) = B(i,j,k) * C(k,l)", &["ijl", "ijk", "kl"]),
        (Method::First, "first", "A(i,l) = B(i,j,k) * C(j,l) * D(k,l)", &["il", "ijk", "jl", "kl"]),
        (Method::Second, "second", "A(j,l) = B(i,j,k) * C(i,l) * D(k,l)", &["jl", "ijk", "il", "kl"]),
        (Method::Third, "third", "A(k,l) = B(i,j,k) * C(i,l) * D(j,l)", &["kl", "ijk", "il", "jl"]),
    ]
};

impl Method {
    fn entry(self) -> &'static (Method, &'static str, &'static str, &'static [&'static str]) {
        METHODS.iter().find(|(method, ..)| *method == self).unwrap_or(&METHODS[0])
    }

    /// The letters of the result's indices, and of each factor's.
    #[must_use]
    pub fn accesses(self) -> &'static [&'static str] {
        self.entry().3
    }
}

impl Work {
    /// How and on which grid, with elements of 64 bits.
    #[must_use]
    pub fn new(method: Method, grid: &[i64], extents: &[u64]) -> Self {
        Self { method, grid: grid.to_vec(), element: ElementType::F64, extents: extents.to_vec() }
    }

    /// The answer that each contestant must find.
    #[must_use]
    pub fn answer(&self) -> u64 {
        expected::answer(self.method.accesses(), &self.extents)
    }

    /// Two operations for each combination of indices, in thousand millions.
    #[must_use]
    pub fn operations(&self) -> f64 {
        self.extents.iter().fold(2e-9, |product, &extent| product * extent as f64)
    }

    /// The scheduled statement.
    ///
    /// # Errors
    /// If the grid does not fit the method.
    pub fn algorithm(&self) -> Result<Algorithm> {
        let names = ["i", "j", "k", "l"].map(IndexVariable::new);
        let extents: Vec<_> = names.into_iter().zip(self.extents.iter().map(|&extent| extent as i64)).collect();
        let assignment = parse_with_extents(self.method.entry().2, self.element, &extents).map_err(Error::tensor)?;
        let statement = Statement::new(&assignment);
        let wrong = || Error::NotBuilt(format!("{self}: the grid has other dimensions"));
        let line = || <[i64; 1]>::try_from(&self.grid[..]).map_err(|_| wrong());
        let plane = || <[i64; 2]>::try_from(&self.grid[..]).map_err(|_| wrong());
        let space = || <[i64; 3]>::try_from(&self.grid[..]).map_err(|_| wrong());
        let algorithm = match self.method {
            Method::Gemm => algorithms::summa(&statement, plane()?, self.extents[2] as i64),
            Method::Summa => algorithms::summa(&statement, plane()?, self.extents[2].div_ceil(8) as i64),
            Method::Cannon => algorithms::cannon(&statement, plane()?),
            Method::Ttv => algorithms::ttv(&statement, plane()?),
            Method::Innerprod => algorithms::innerprod(&statement, &self.grid),
            Method::Ttm => algorithms::ttm(&statement, line()?[0]),
            Method::First | Method::Second | Method::Third => algorithms::mttkrp(&statement, space()?),
        };
        algorithm.map_err(Error::tensor)
    }
}

impl fmt::Display for Work {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let joined = |numbers: Vec<String>| numbers.join("x");
        let grid = joined(self.grid.iter().map(ToString::to_string).collect());
        let extents = joined(self.extents.iter().map(ToString::to_string).collect());
        write!(f, "{},{grid},{},{extents}", self.method.entry().1, self.element)
    }
}

impl FromStr for Work {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text} should be METHOD,GRID,ELEMENT,EXTENTS, such as ttv,1x2,f64,8x8x8");
        let [method, grid, element, extents] = text.split(',').collect::<Vec<_>>()[..] else { return Err(wrong()) };
        let (method, ..) = *METHODS.iter().find(|(_, name, ..)| *name == method).ok_or_else(wrong)?;
        let elements = [ElementType::F32, ElementType::F64];
        let element = elements.into_iter().find(|known| known.to_string() == element).ok_or_else(wrong)?;
        fn numbers<N: FromStr>(text: &str) -> Result<Vec<N>, N::Err> {
            text.split('x').map(str::parse).collect()
        }
        let grid = numbers(grid).map_err(|_| wrong())?;
        Ok(Self { method, grid, element, extents: numbers(extents).map_err(|_| wrong())? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_work_is_told_by_its_text() {
        for (method, ..) in METHODS {
            let work = Work { element: ElementType::F32, ..Work::new(*method, &[1, 2], &[3, 4, 5, 6]) };
            assert_eq!(work.to_string().parse(), Ok(work));
        }
        assert!("ttv,1x2,f64".parse::<Work>().is_err());
        assert!("ttv,1x,f64,8x8x8".parse::<Work>().is_err());
        assert!("sort,1x2,f64,8x8x8".parse::<Work>().is_err());
    }
}
