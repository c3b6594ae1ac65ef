//! Tensors in files: NumPy's `.npy`, and Matrix Market `array` files of matrices (`.mtx`).

mod array;
mod header;
mod market;
mod npy;

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::str::FromStr;

pub use self::array::{Array, Stored};
use crate::error::{Error, Result};
use crate::market::MatrixError;

/// A file whose name says what is in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorFile {
    path: PathBuf,
    form: Form,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Numpy,
    MatrixMarket,
}

impl TensorFile {
    /// The file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Reads the tensor.
    ///
    /// # Errors
    /// [`Error::Matrix`] if the file can't be read, or what is in it is no tensor of one of the six element types.
    pub fn read(&self) -> Result<Array> {
        let unreadable = |source| MatrixError::Unreadable { file: self.path.clone(), source };
        let file = File::open(&self.path).map_err(unreadable)?;
        Ok(match self.form {
            Form::Numpy => {
                let size = file.metadata().map_err(unreadable)?.len();
                npy::read(&self.path, std::io::BufReader::new(file), size)?
            }
            Form::MatrixMarket => market::read(&self.path, file)?,
        })
    }

    /// Whether a tensor of so many dimensions can be written here.
    ///
    /// # Errors
    /// [`Error::Usage`] if not.
    pub fn takes(&self, order: usize) -> Result<()> {
        if self.form == Form::MatrixMarket && order > 2 {
            return Err(Error::Usage(format!(
                "{}: Matrix Market files hold matrices; write a tensor of {order} dimensions to a .npy file",
                self.path.display()
            )));
        }
        Ok(())
    }

    /// Writes a tensor.
    ///
    /// # Errors
    /// [`Error::Write`].
    pub fn write(&self, array: &Array) -> Result<()> {
        let write = || {
            let mut file = BufWriter::new(File::create(&self.path)?);
            match self.form {
                Form::Numpy => npy::write(array, &mut file)?,
                Form::MatrixMarket => market::write(array, &mut file)?,
            }
            file.flush()
        };
        write().map_err(|source| Error::Write { path: self.path.clone(), source })
    }
}

impl FromStr for TensorFile {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let path = PathBuf::from(text);
        let form = match path.extension().and_then(|extension| extension.to_str()) {
            Some("npy") => Form::Numpy,
            Some("mtx") => Form::MatrixMarket,
            _ => return Err("the name must end with .npy (NumPy) or .mtx (Matrix Market)".to_owned()),
        };
        Ok(Self { path, form })
    }
}
