//! Tensors in files: NumPy's `.npy`, and Matrix Market `array` files of matrices (`.mtx`).

mod array;
mod header;
mod market;
mod npy;

use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::str::FromStr;

pub use self::array::{Array, Stored};
use crate::error::{Error, Result};
use crate::market::MatrixError;
use crate::options::place;

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
    /// That which its first byte says: of a pipe, whose name tells nothing.
    ByContent,
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
        let data = file.metadata().map_err(unreadable)?;
        if data.is_dir() {
            return Err(unreadable(io::ErrorKind::IsADirectory.into()).into());
        }
        if !data.is_file() && place().nodes > 1 {
            return Err(Error::Usage(format!(
                "{}: each node of a job reads its inputs, and this is no plain file; write it to one first",
                self.path.display()
            )));
        }
        let mut file = BufReader::new(file);
        let is_numpy = match self.form {
            Form::Numpy => true,
            Form::MatrixMarket => false,
            Form::ByContent => file.fill_buf().map_err(unreadable)?.first() == header::MAGIC.first(),
        };
        Ok(match (is_numpy, data.is_file()) {
            (true, true) => npy::read(&self.path, file, data.len())?,
            (true, false) => {
                // How long a pipe is, is known at its end.
                let mut content = Vec::new();
                file.read_to_end(&mut content).map_err(unreadable)?;
                npy::read(&self.path, &content[..], content.len() as u64)?
            }
            (false, _) => market::read(&self.path, file)?,
        })
    }

    /// A file that is read. Of a pipe or device, such as `/dev/stdin` or what a shell makes of `<(...)`, the content says what it is.
    ///
    /// # Errors
    /// If it is a plain file whose name does not tell what is in it.
    pub fn input(text: &str) -> Result<Self, String> {
        text.parse().or_else(|error| {
            let path = PathBuf::from(text);
            let is_special = path.starts_with("/dev")
                || std::fs::metadata(&path).is_ok_and(|data| !data.is_file() && !data.is_dir());
            if is_special { Ok(Self { path, form: Form::ByContent }) } else { Err(error) }
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
                // What is written has a name that tells.
                Form::MatrixMarket | Form::ByContent => market::write(array, &mut file)?,
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
