//! The program that all nodes of a job run.

use std::fmt;
use std::fs::File;
use std::io::{self, Read};

use super::wire::cut;

/// Names the program that a node runs: nodes of one job run the same build.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BuildId(String);

impl BuildId {
    /// The longest name.
    pub(crate) const LONGEST: usize = 200;

    /// A build of this name; what is beyond 200 bytes is cut off.
    #[must_use]
    pub fn new(name: impl Into<String>) -> Self {
        Self(cut(&name.into(), Self::LONGEST).to_owned())
    }

    /// The build of the running program, named after what is in its file (a check sum and the length). This is against
    /// mistakes, not against malice: a node that knows the secret may name any build.
    ///
    /// # Errors
    ///
    /// If the file cannot be read.
    pub fn of_this_program() -> io::Result<Self> {
        let mut file = File::open(std::env::current_exe()?)?;
        let (mut sum, mut bytes) = (crc32fast::Hasher::new(), 0);
        let mut buffer = vec![0; 1 << 16];
        loop {
            let length = file.read(&mut buffer)?;
            if length == 0 {
                return Ok(Self(format!("{:08x}-{bytes}", sum.finalize())));
            }
            sum.update(&buffer[..length]);
            bytes += length;
        }
    }

    /// Its name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for BuildId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_program_has_one_build() {
        assert_eq!(BuildId::of_this_program().unwrap(), BuildId::of_this_program().unwrap());
        assert_eq!(BuildId::new("é".repeat(200)).as_str().len(), 200);
    }
}
