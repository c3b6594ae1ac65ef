//! What can be wrong with files that are attached to data.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

/// Why a file cannot be attached to the values of a field, read, or written.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FileError {
    /// The system refused something.
    #[error("cannot {action} file `{}` at byte {offset}: {source}; {advice}", .path.display())]
    System {
        /// What was to be done.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// Where in the file.
        offset: u64,
        /// What the system says.
        source: Arc<io::Error>,
        /// What may help.
        advice: &'static str,
    },
    /// The file ends too early.
    #[error(
        "file `{}` has {found} bytes, but the values of `{region}` are its bytes {offset} to {end}: attach a smaller region, another offset, \
         or create the file", .path.display()
    )]
    TooShort {
        /// The file.
        path: PathBuf,
        /// The region.
        region: String,
        /// Where its values begin.
        offset: u64,
        /// Where they end.
        end: u64,
        /// The length of the file.
        found: u64,
    },
}
