//! Files for pictures.

use std::io::Write;
use std::path::PathBuf;
use std::str::FromStr;

use crate::error::Result as AppResult;
use crate::options::place;
use crate::output::{self, Way};

/// A file for a picture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SvgFile(PathBuf);

impl FromStr for SvgFile {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let path = PathBuf::from(text);
        let ending = path.extension().map(|ending| ending.to_string_lossy().to_ascii_lowercase());
        match ending.as_deref() {
            _ if output::is_special(&path) => Ok(Self(path)),
            Some("svg") => Ok(Self(path)),
            _ => Err("its name must end in .svg, which is what is drawn".to_owned()),
        }
    }
}

impl SvgFile {
    /// Refuses a file that can't be written. Node 0 of a job draws.
    ///
    /// # Errors
    /// [`Error::Write`](crate::error::Error::Write).
    pub(super) fn check(&self) -> AppResult<()> {
        if place().rank.0 == 0 { output::check(&self.0, Way::Beside) } else { Ok(()) }
    }

    /// Whether it is the standard output.
    pub(super) fn is_standard(&self) -> bool {
        output::is_standard(&self.0)
    }

    /// Writes a picture on node 0.
    ///
    /// # Errors
    /// [`Error::Write`](crate::error::Error::Write).
    pub(super) fn write(&self, svg: &str) -> AppResult<()> {
        match place().rank.0 {
            0 => output::write(&self.0, |file| file.write_all(svg.as_bytes())),
            _ => Ok(()),
        }
    }
}
