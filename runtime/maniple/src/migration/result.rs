//! The results of migrated tasks.

use bytes::Bytes;

use crate::support::error::{Error, Result};

/// How a migrated task has ended.
pub(crate) enum TaskResult {
    /// With this value, and what it has made of its data.
    Ended {
        value: Vec<u8>,
        values: Bytes,
    },
    Failed(Error),
    /// It was not run, for want of memory, say.
    Refused(String),
}

impl TaskResult {
    /// The result of a task that was not sent, as the job has ended.
    pub(crate) fn too_late() -> Self {
        Self::Refused("nothing is received any more".to_owned())
    }

    /// The value of a task without regions; `refused` makes an error of why it was not run.
    pub(crate) fn value(self, refused: impl FnOnce(&str) -> Error) -> Result<Vec<u8>> {
        match self {
            Self::Ended { value, .. } => Ok(value),
            Self::Failed(error) => Err(error),
            Self::Refused(why) => Err(refused(&why)),
        }
    }
}
