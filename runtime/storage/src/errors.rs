//! Errors of this crate as errors of tasks, so that bodies of tasks pass them on by `?`.

use crate::format::{FormatError, ParseError};
use crate::tensors::StorageError;

macro_rules! errors_of_tasks {
    ($($error:ty),*) => {$(
        impl From<$error> for maniple::Error {
            fn from(error: $error) -> Self {
                Self::from_task(error)
            }
        }
    )*};
}

errors_of_tasks!(ParseError, FormatError, StorageError);
