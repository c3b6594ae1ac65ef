//! Errors of this crate as errors of tasks, so that bodies of tasks pass them on by `?`.

use crate::generate::{self, GenerateError};
use crate::notation::NotationError;
use crate::plan::PlanError;
use crate::schedule::{self, ScheduleError};
use crate::sparse::SparseError;

macro_rules! errors_of_tasks {
    ($($error:ty),*) => {$(
        impl From<$error> for maniple::Error {
            fn from(error: $error) -> Self {
                Self::from_task(error)
            }
        }
    )*};
}

errors_of_tasks!(
    generate::ParseError,
    GenerateError,
    NotationError,
    PlanError,
    schedule::ParseError,
    ScheduleError,
    SparseError
);
