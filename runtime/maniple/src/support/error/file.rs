//! Errors of files that are attached to data.

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
        /// The action that was refused.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The offset in the file, in bytes.
        offset: u64,
        /// The error of the system.
        source: Arc<io::Error>,
        /// The advice for this kind of error.
        advice: &'static str,
    },
    /// The file ends too early.
    #[error(
        "file `{}` has {found} bytes, but the values of {region} are its bytes {offset} to {end}: attach a smaller region, another offset, \
         or create the file", .path.display()
    )]
    TooShort {
        /// The file.
        path: PathBuf,
        /// The region.
        region: String,
        /// The offset of its first value in the file, in bytes.
        offset: u64,
        /// The offset of the end of its last value, in bytes.
        end: u64,
        /// The length of the file.
        found: u64,
    },
    /// The file is no `.npy` file, or a broken one.
    #[error("file `{}` cannot be attached as a .npy file: {problem}", .path.display())]
    Npy {
        /// The file.
        path: PathBuf,
        /// The problem, and its place in the file.
        problem: String,
    },
    /// The header of the file tells of other values than the field's.
    #[error(
        "file `{}` has {what} {found}, where field `{field}` of {region} needs {expected}: {advice}", .path.display()
    )]
    Differs {
        /// The file.
        path: PathBuf,
        /// The property that differs.
        what: &'static str,
        /// The value of the property that the field needs.
        expected: String,
        /// The value of the property in the file.
        found: String,
        /// The field.
        field: String,
        /// The region.
        region: String,
        /// The advice for this property.
        advice: &'static str,
    },
    /// The values of the field are no numbers that NumPy has.
    #[error(
        "file `{}` cannot hold field `{field}` of {region}: values of `{ty}` have no type in .npy files; use integers, floats or complex numbers, or a raw file", .path.display()
    )]
    NotNumbers {
        /// The file.
        path: PathBuf,
        /// The field.
        field: String,
        /// The region.
        region: String,
        /// The type of its values.
        ty: &'static str,
    },
    /// The file is said to have other points than the region's.
    #[error(
        "file `{}` has the values of {bounds}, and field `{field}` of {region} those of {area}: attach a region within that rectangle, or give another to `File::within`", .path.display()
    )]
    NotWithin {
        /// The file.
        path: PathBuf,
        /// The field.
        field: String,
        /// The region.
        region: String,
        /// The points of the region.
        area: String,
        /// The points that the file has.
        bounds: String,
    },
    /// There is something that is no file.
    #[error("`{}` cannot be attached: it is a folder, a pipe or a device; give the path of a file, or one at which there is nothing", .path.display())]
    NotRegular {
        /// The path.
        path: PathBuf,
    },
    /// The values are more than memory can hold.
    #[error(
        "field `{field}` of {region} has {points} values, more than memory can hold: attach the file piece by piece, with `File::within`"
    )]
    TooLarge {
        /// The field.
        field: String,
        /// The region.
        region: String,
        /// The number of values.
        points: u64,
    },
    /// The file is attached to something else, and both would be written.
    #[error(
        "file `{}` is attached already, to be written where this attachment writes: detach it first, attach other values of the file, or only read it", .path.display()
    )]
    InUse {
        /// The file.
        path: PathBuf,
    },
    /// Another file has taken its place since it was attached.
    #[error(
        "file `{}` cannot be written: since it was attached, it was removed or another file has taken its place; attach the one that is there now, or create it", .path.display()
    )]
    Replaced {
        /// The file.
        path: PathBuf,
    },
    /// Another node could not write its part of the file.
    #[error("file `{}` is not whole: on node {node}, {problem}", .path.display())]
    OnNode {
        /// The file.
        path: PathBuf,
        /// The node.
        node: usize,
        /// The problem there.
        problem: String,
    },
}
